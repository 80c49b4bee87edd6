package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/host"
	"ackproof/broker/core/partition"
	"ackproof/broker/wire"
)

// fetchers runs one fetcher for each broker that leads partitions of which this one has a copy.
type fetchers struct {
	n  *Node
	wg sync.WaitGroup

	mu  sync.Mutex
	all map[int32]*fetcher
}

// kick makes the fetcher of the replica's leader look for what to fetch; it is started if there is none.
func (f *fetchers) kick(ctx context.Context, r *replica) {
	s := r.status()
	if s.Role != partition.Follower {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.all[s.Leader]
	if one == nil {
		if ctx.Err() != nil {
			return
		}
		one = &fetcher{n: f.n, leader: s.Leader, kicked: make(chan struct{}, 1), log: f.n.log.With("leader", s.Leader)}
		if f.all == nil {
			f.all = map[int32]*fetcher{}
		}
		f.all[s.Leader] = one
		f.wg.Add(1)
		go func() {
			defer f.wg.Done()
			one.run(ctx)
		}()
	}
	one.kick()
}

// fetcher copies from one leader: one connection, one fetch at a time, all partitions in it. The buffer of the answer is used again, so what is
// appended is not kept.
type fetcher struct {
	n      *Node
	leader int32
	kicked chan struct{} // holds one: something about the set of partitions may have changed
	log    *slog.Logger

	mu          sync.Mutex
	asking      *wire.Client // of the fetch under way, nil if there is none
	number      int          // of that fetch
	interrupted bool         // it has been

	conn    *wire.Client
	unwatch func() bool // the end of the fetcher's context does not close the connection any more
	buf     []byte
	wait    backoff
	held    map[partitionKey]time.Time // partitions that answered an error: not before
	back    map[partitionKey]*backoff
}

// errInterrupted: the fetch under way lacks a partition that is to be fetched now. It would come back only after replica.fetch.wait.max.ms.
var errInterrupted = errors.New("the set of partitions has changed")

// busyAnswer is how soon a fetch comes back if its leader has anything for it. A longer one is a long poll, that is worth interrupting.
const busyAnswer = 5 * time.Millisecond

func (f *fetcher) kick() {
	poke(f.kicked)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asking == nil {
		return
	}
	number := f.number
	time.AfterFunc(busyAnswer, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.asking != nil && f.number == number {
			f.interrupted = true
			f.asking.Until(time.Unix(1, 0))
		}
	})
}

// asked is one partition of a fetch.
type asked struct {
	r     *replica
	state partition.FollowState
}

func (f *fetcher) run(ctx context.Context) {
	f.held, f.back = map[partitionKey]time.Time{}, map[partitionKey]*backoff{}
	defer f.drop()
	for ctx.Err() == nil {
		select {
		case <-f.kicked:
		default:
		}
		parts, wait := f.gather()
		if len(parts) == 0 {
			t := time.NewTimer(wait)
			select {
			case <-f.kicked:
			case <-t.C:
			case <-ctx.Done():
			}
			t.Stop()
			continue
		}
		err := f.fetch(ctx, parts, wait)
		switch {
		case err == nil:
			f.wait.reset()
		case errors.Is(err, errInterrupted):
			f.drop()
		default:
			f.log.Debug("fetch failed", "error", err)
			f.drop()
			sleep(ctx, f.wait.pause())
		}
	}
}

func (f *fetcher) drop() {
	if f.conn != nil {
		f.unwatch()
		f.conn.Close()
		f.conn = nil
	}
}

// gather collects what to ask this leader for, and how long the leader may wait with an answer: not longer than until a partition that is held back
// is due again.
func (f *fetcher) gather() ([]asked, time.Duration) {
	now, wait := time.Now(), f.n.cfg.FetchWait
	var parts []asked
	for _, r := range f.n.replicas.list() {
		s, ok := r.followState()
		if !ok || s.Leader != f.leader {
			continue
		}
		if until, held := f.held[r.key]; held {
			if left := until.Sub(now); left > 0 {
				wait = min(wait, left)
				continue
			}
			delete(f.held, r.key)
		}
		parts = append(parts, asked{r, s})
	}
	return parts, wait
}

// patience is how long a fetch may be silent beyond its own wait before the connection is given up: a cut network is silence, and must be
// noticed well within the lag time.
func (f *fetcher) patience() time.Duration {
	return min(max(f.n.cfg.LagTime/3, 700*time.Millisecond), 3*time.Second)
}

// fetch makes one round trip and hands what came to the replicas.
func (f *fetcher) fetch(ctx context.Context, parts []asked, wait time.Duration) error {
	deadline := time.Now().Add(wait + f.patience())
	if f.conn == nil {
		dialling, cancel := context.WithDeadline(ctx, deadline)
		conn, err := f.n.peers.dial(dialling, f.leader)
		cancel()
		if err != nil {
			return err
		}
		f.conn = conn
		f.unwatch = context.AfterFunc(ctx, func() { conn.Close() })
	}
	f.conn.Until(deadline)
	f.arm(f.conn)
	if len(f.kicked) > 0 && f.lacks(parts) {
		f.arm(nil)
		return nil // something has come between gathering and arming
	}
	resp, buf, err := f.conn.Exchange(f.request(parts, wait), f.buf)
	f.buf = buf
	interrupted := f.arm(nil)
	if err != nil {
		if interrupted {
			return errInterrupted
		}
		return err
	}
	return f.take(parts, resp.(*kmsg.FetchResponse))
}

// lacks tells whether there is a partition to fetch that is not among parts.
func (f *fetcher) lacks(parts []asked) bool {
	now, _ := f.gather()
	return len(now) > len(parts)
}

// arm begins or, with nil, ends the time in which a fetch may be interrupted, and tells whether it has been.
func (f *fetcher) arm(conn *wire.Client) (interrupted bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	interrupted = f.interrupted
	f.asking, f.interrupted = conn, false
	f.number++
	return interrupted
}

func (f *fetcher) request(parts []asked, wait time.Duration) *kmsg.FetchRequest {
	q := kmsg.NewPtrFetchRequest()
	q.Version = 18
	q.ReplicaState.ID, q.ReplicaState.Epoch = f.n.cfg.NodeID, -1
	if reg := f.n.registered.Load(); reg != nil {
		q.ReplicaState.Epoch = reg.epoch
	}
	q.MaxWaitMillis, q.MinBytes, q.MaxBytes = int32(max(wait.Milliseconds(), 1)), 1, f.n.cfg.FetchResponseMaxBytes
	at := map[[16]byte]int{}
	for _, p := range parts {
		i, found := at[p.r.key.topic]
		if !found {
			i = len(q.Topics)
			at[p.r.key.topic] = i
			t := kmsg.NewFetchRequestTopic()
			t.TopicID = p.r.key.topic
			q.Topics = append(q.Topics, t)
		}
		o := host.FetchPartition(p.r.key.partition, p.state, f.n.cfg.FetchMaxBytes)
		q.Topics[i].Partitions = append(q.Topics[i].Partitions, o)
	}
	return q
}

// take feeds the answer to the replicas. The batches alias the buffer of the answer, so every append is waited for.
func (f *fetcher) take(parts []asked, resp *kmsg.FetchResponse) error {
	if resp.ErrorCode != 0 {
		return fmt.Errorf("fetch from broker %d: %w", f.leader, kerr.ErrorForCode(resp.ErrorCode))
	}
	asked := make(map[partitionKey]asked, len(parts))
	for _, p := range parts {
		asked[p.r.key] = p
	}
	var failed error
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			o := &resp.Topics[i].Partitions[j]
			key := partitionKey{resp.Topics[i].TopicID, o.Partition}
			p, ok := asked[key]
			if !ok {
				return fmt.Errorf("broker %d answered for a partition that it was not asked for: topic id %x, partition %d", f.leader, key.topic, key.partition)
			}
			if o.ErrorCode != 0 {
				f.hold(key)
				f.log.Debug("leader refused a fetch", "partition", p.r.String(), "offset", p.state.Offset, "epoch", p.state.LeaderEpoch, "error", kerr.ErrorForCode(o.ErrorCode))
			} else {
				delete(f.back, key)
			}
			in, err := host.Answered(p.state, o)
			if err != nil {
				// S8, R13: nothing of a damaged answer is taken. The connection is given up, since whoever altered it may alter the next one too.
				failed = fmt.Errorf("%s from offset %d: %w", p.r, p.state.Offset, err)
				f.hold(key)
				continue
			}
			p.r.step(in)
			if len(in.Batches) > 0 {
				p.r.settle()
			}
		}
	}
	return failed
}

// hold keeps a partition out of the next fetches for a moment, so that an error does not become a storm.
func (f *fetcher) hold(key partitionKey) {
	b := f.back[key]
	if b == nil {
		b = &backoff{}
		f.back[key] = b
	}
	f.held[key] = time.Now().Add(b.pause())
}
