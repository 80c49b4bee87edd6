package cluster

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/host"
	"ackproof/broker/core/partition"
	"ackproof/sim/world"
)

const repairPause = 5 * time.Second

// fetcher copies from one leader: one connection, one fetch at a time, all partitions in it.
type fetcher struct {
	b      *broker
	leader int32
	kicked bool
	news   world.Signal // kicked, or the connection has something to say
	link   *world.Link
}

// kick makes the fetcher of the replica's leader look for what to fetch; it is started if there is none.
func (b *broker) kick(r *replica) {
	s := r.core.Status()
	if s.Role != partition.Follower {
		return
	}
	for _, f := range b.fetchers {
		if f.leader == s.Leader {
			f.kicked = true
			f.news.Broadcast()
			return
		}
	}
	f := &fetcher{b: b, leader: s.Leader, kicked: true}
	b.fetchers = append(b.fetchers, f)
	b.n.c.w.Go(b.n.process, f.run)
}

type asked struct {
	r     *replica
	state partition.FollowState
}

// busyAnswer is how soon a fetch comes back if its leader has anything for it; a longer one is worth interrupting.
const busyAnswer = 5 * time.Millisecond

func (f *fetcher) run(t *world.Task) {
	wait := f.b.backoff()
	for {
		f.kicked = false
		parts, most := f.gather()
		if len(parts) == 0 {
			for end := t.Now() + most; !f.kicked && t.Now() < end; {
				t.Wait(&f.news, end-t.Now())
			}
			continue
		}
		ok, interrupted := f.fetch(t, parts, most)
		switch {
		case ok:
			wait.reset()
		case interrupted:
			f.drop()
		default:
			f.drop()
			t.Sleep(wait.pause())
		}
	}
}

func (f *fetcher) drop() {
	if f.link != nil {
		f.link.Close()
		f.link = nil
	}
}

// gather collects what to ask this leader for, and how long the leader may wait with an answer.
func (f *fetcher) gather() (parts []asked, most time.Duration) {
	now, most := f.b.n.c.w.Now(), f.b.n.c.cfg.Timers.FetchWait
	for _, r := range f.b.replicas {
		if r.failed {
			continue
		}
		s, ok := r.core.FollowState()
		r.missed = !ok && r.busy
		if !ok || s.Leader != f.leader {
			continue
		}
		if left := r.heldTo - now; left > 0 {
			most = min(most, left)
			continue
		}
		parts = append(parts, asked{r, s})
	}
	return parts, most
}

func (f *fetcher) fetch(t *world.Task, parts []asked, most time.Duration) (ok, interrupted bool) {
	n := f.b.n
	limit := most + min(max(n.c.cfg.Timers.Lag/3, 700*time.Millisecond), 3*time.Second)
	end := t.Now() + limit
	if f.link == nil || !f.link.Open() {
		f.link = nil
		link, err := n.c.net.Dial(t, party(n.id), party(f.leader), limit, &f.news)
		if err != nil {
			return false, false
		}
		f.link = link
	}
	f.link.Send(f.request(parts, most))
	var kickedAt time.Duration
	for {
		if m, err := f.link.Answer(); m != nil {
			return f.take(parts, m.(*kmsg.FetchResponse)), false
		} else if err != nil || t.Now() >= end {
			return false, false
		}
		left := end - t.Now()
		if f.kicked {
			if kickedAt == 0 {
				kickedAt = t.Now()
			}
			if left = min(left, kickedAt+busyAnswer-t.Now()); left <= 0 {
				if now, _ := f.gather(); len(now) > len(parts) {
					return false, true
				}
				f.kicked, kickedAt = false, 0
				continue
			}
		}
		t.Wait(&f.news, left)
	}
}

func (f *fetcher) request(parts []asked, most time.Duration) *kmsg.FetchRequest {
	q := kmsg.NewPtrFetchRequest()
	q.Version = 18
	q.ReplicaState.ID, q.ReplicaState.Epoch = f.b.n.id, f.b.epoch
	q.MaxWaitMillis, q.MinBytes, q.MaxBytes = int32(max(most.Milliseconds(), 1)), 1, 10<<20
	for _, p := range parts {
		if last := len(q.Topics) - 1; last < 0 || q.Topics[last].TopicID != p.r.key.topic {
			t := kmsg.NewFetchRequestTopic()
			t.TopicID = p.r.key.topic
			q.Topics = append(q.Topics, t)
		}
		t := &q.Topics[len(q.Topics)-1]
		t.Partitions = append(t.Partitions, host.FetchPartition(p.r.key.index, p.state, 1<<20))
	}
	return q
}

// take feeds the answer to the replicas.
func (f *fetcher) take(parts []asked, resp *kmsg.FetchResponse) bool {
	if resp.ErrorCode != 0 {
		return false
	}
	ok := true
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			o := &resp.Topics[i].Partitions[j]
			for _, p := range parts {
				if p.r.key != (key{resp.Topics[i].TopicID, o.Partition}) {
					continue
				}
				if o.ErrorCode != 0 {
					p.r.hold()
				} else {
					p.r.back.reset()
				}
				in, err := host.Answered(p.state, o)
				if err != nil {
					p.r.hold() // S8, R13
					ok = false
					continue
				}
				p.r.step(in)
			}
		}
	}
	return ok
}

// hold keeps a partition out of the next fetches for a moment.
func (r *replica) hold() { r.heldTo = r.b.n.c.w.Now() + r.back.pause() }
