package cluster

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/controller"
	"ackproof/broker/core/host"
	"ackproof/broker/core/partition"
	"ackproof/nemesis"
	"ackproof/sim/world"
)

// broker is one life of a broker process: everything that is gone when it dies.
type broker struct {
	n       *Node
	control *control
	links   map[int32]*raftLink // looked up only

	image       *controller.Image // newest that is known to be committed
	view        *controller.Image // the one that the replicas have been told of
	viewNews    world.Signal
	claimed     bool // the first image of this life has been applied
	incarnation [16]byte
	epoch       int64 // of the registration, −1: none yet
	applied     int64 // the registration that the view has, −1: none

	replicas  []*replica // by topic and partition
	fetchers  []*fetcher // by leader
	proposals []*replica // that have something for the controller
	proposed  world.Signal
	again     bool // a new registration is wanted
	againNews world.Signal
	producers struct{ next, end int64 }

	coordinators []*coordinator // of groups; by the partition of the internal topic, as they began
}

func newBroker(n *Node) (*broker, error) {
	b := &broker{n: n, links: map[int32]*raftLink{}, epoch: -1, applied: -1}
	binary.BigEndian.PutUint64(b.incarnation[:], uint64(n.id))
	binary.BigEndian.PutUint64(b.incarnation[8:], uint64(n.lives))
	for _, other := range n.c.nodes {
		if other != n {
			b.links[other.id] = &raftLink{b: b, to: other.id}
		}
	}
	var err error
	b.control, err = newControl(b)
	return b, err
}

func (b *broker) run() {
	w, p := b.n.c.w, b.n.process
	for _, other := range b.n.c.nodes {
		if l := b.links[other.id]; l != nil {
			w.Go(p, l.run)
		}
	}
	b.control.run()
	w.Go(p, b.live)
	w.Go(p, b.propose)
	b.tick()
}

// fail ends this broker by itself: it cannot go on.
func (b *broker) fail(why error) {
	n := b.n
	n.c.w.Note("ended", int64(n.id))
	n.c.w.Say("%s ends by itself: %v", n.Name(), why)
	if n.c.Ended != nil {
		n.c.Ended(int(n.id), why)
	}
	n.c.w.After(0, n.c.w.NewProcess(int(n.id)), n.Kill)
}

// tick lets time pass for the replicas: lag, deadlines, checkpoints.
func (b *broker) tick() {
	every := min(max(b.n.c.cfg.Timers.Lag/20, 20*time.Millisecond), 100*time.Millisecond)
	b.n.c.w.After(b.n.scaled(every), b.n.process, func() {
		for _, r := range slices.Clone(b.replicas) {
			r.step(partition.Tick{})
		}
		b.tick()
	})
}

func (b *broker) publish(image *controller.Image) {
	b.image = image
	b.apply()
}

// ownImage tells whether the image has this life's registration.
func (b *broker) ownImage(image *controller.Image) bool {
	r := image.Brokers[b.n.id]
	return r != nil && r.Incarnation == b.incarnation
}

// backoff is a growing pause with jitter.
type backoff struct {
	c    *Cluster
	next time.Duration
}

func (b *broker) backoff() backoff { return backoff{c: b.n.c} }

const (
	retryAtFirst = 20 * time.Millisecond
	retryAtMost  = time.Second
)

func (b *backoff) pause() time.Duration {
	b.next = min(max(2*b.next, retryAtFirst), retryAtMost)
	return b.c.between(b.next/2, b.next)
}

func (b *backoff) reset() { b.next = 0 }

// asker asks the controller, wherever it is, for one task of the broker.
type asker struct {
	b    *broker
	link *world.Link
	to   int32
	news world.Signal
}

// attemptTime bounds one attempt to reach the controller.
const attemptTime = 2 * time.Second

// fate is what became of a request.
type fate int

const (
	answered fate = iota
	unsent        // it has certainly had no effect
	unanswered
)

// once sends a request to whoever leads the control plane, and gives up after limit or when another one leads.
func (a *asker) once(t *world.Task, q kmsg.Request, limit time.Duration) (kmsg.Response, fate) {
	x := a.b.control
	to, limit := x.lead, min(limit, attemptTime)
	if to < 0 {
		return nil, unsent
	}
	if to == a.b.n.id {
		var answer kmsg.Response
		came := false
		c := x.request(q, func(r kmsg.Response) { answer, came = r, true; a.news.Broadcast() })
		for end := t.Now() + limit; !came && t.Now() < end; {
			t.Wait(&a.news, end-t.Now())
		}
		if !came {
			x.cancel(c)
			return nil, unanswered
		}
		return answer, answered
	}
	end := t.Now() + limit
	if a.link == nil || !a.link.Open() || a.to != to {
		a.drop()
		link, err := a.b.n.c.net.Dial(t, party(a.b.n.id), party(to), limit, &a.news)
		if err != nil {
			return nil, unsent
		}
		a.link, a.to = link, to
	}
	a.link.Send(copyOf(q))
	for {
		if m, err := a.link.Answer(); m != nil {
			return m.(kmsg.Response), answered
		} else if err != nil {
			return nil, unanswered
		}
		if t.Now() >= end || x.lead != to {
			a.drop() // an answer that comes later is not for the next request
			return nil, unanswered
		}
		t.Wait(&a.news, min(end-t.Now(), attemptTime/20))
	}
}

func (a *asker) drop() {
	if a.link != nil {
		a.link.Close()
		a.link = nil
	}
}

// until sends a request again and again until a controller in office has answered, or the limit has passed (nil). It is for requests that may be repeated.
func (a *asker) until(t *world.Task, q kmsg.Request, limit time.Duration) kmsg.Response {
	wait := a.b.backoff()
	for end := t.Now() + limit; limit < 0 || t.Now() < end; {
		left := attemptTime
		if limit >= 0 {
			left = end - t.Now()
		}
		if r, f := a.once(t, q, left); f == answered && codeOf(r) != kerr.NotController.Code {
			return r
		}
		t.Wait(&a.b.control.changed, wait.pause())
	}
	return nil
}

// codeOf is the error code of an answer to one of a broker's own requests.
func codeOf(r kmsg.Response) int16 {
	switch r := r.(type) {
	case *kmsg.BrokerRegistrationResponse:
		return r.ErrorCode
	case *kmsg.BrokerHeartbeatResponse:
		return r.ErrorCode
	case *kmsg.AlterPartitionResponse:
		return r.ErrorCode
	case *kmsg.AllocateProducerIDsResponse:
		return r.ErrorCode
	}
	return 0
}

// live registers this broker, asks to be unfenced once the image has the registration, and says regularly that it lives (R19).
func (b *broker) live(t *world.Task) {
	a := &asker{b: b}
	for {
		b.register(t, a)
		b.again = false
		b.heartbeats(t, a)
	}
}

func (b *broker) register(t *world.Task, a *asker) {
	q := kmsg.NewPtrBrokerRegistrationRequest()
	q.Version, q.BrokerID, q.ClusterID, q.PreviousBrokerEpoch = 3, b.n.id, clusterID, -1
	b.incarnation[0]++ // a new registration of the same life is another incarnation
	q.IncarnationID = b.incarnation
	l := kmsg.NewBrokerRegistrationRequestListener()
	l.Name, l.Host, l.Port = "PLAINTEXT", b.n.Name(), 9092
	q.Listeners = append(q.Listeners, l)
	wait := b.backoff()
	for {
		r := a.until(t, q, world.Forever).(*kmsg.BrokerRegistrationResponse)
		if r.ErrorCode == 0 {
			b.epoch = r.BrokerEpoch
			b.n.c.w.Note("registered", int64(b.n.id), b.epoch)
			b.apply()
			return
		}
		t.Sleep(wait.pause())
	}
}

// fencedBeat is how often a broker that is not let in yet asks again.
const fencedBeat = 25 * time.Millisecond

func (b *broker) heartbeats(t *world.Task, a *asker) {
	timers := b.n.c.cfg.Timers
	for pause := time.Duration(0); ; {
		if b.again || t.Wait(&b.againNews, b.n.scaled(pause)) && b.again {
			return
		}
		if b.applied < b.epoch {
			pause = 0
			t.Wait(&b.viewNews, timers.Heartbeat)
			continue
		}
		pause = fencedBeat
		q := kmsg.NewPtrBrokerHeartbeatRequest()
		q.Version, q.BrokerID, q.BrokerEpoch, q.CurrentMetadataOffset = 1, b.n.id, b.epoch, int64(b.view.Index)
		switch r, _ := a.until(t, q, timers.Heartbeat+timers.Session/4).(*kmsg.BrokerHeartbeatResponse); {
		case r == nil:
		case r.ErrorCode == kerr.StaleBrokerEpoch.Code:
			return
		case r.ErrorCode == 0 && !r.IsFenced:
			pause = timers.Heartbeat
		}
	}
}

// reregister gives up the registration for a new one, as after a failure of the storage.
func (b *broker) reregister() {
	b.again = true
	b.againNews.Broadcast()
}

// propose carries the replicas' proposals for their in-sync sets to the controller (R16), as broker/node does: a proposal is sent once; what is certainly
// not sent is sent again, and of what is not answered the replica is told.
func (b *broker) propose(t *world.Task) {
	a := &asker{b: b}
	wait := b.backoff()
	for {
		for len(b.proposals) == 0 {
			t.Wait(&b.proposed, world.Forever)
		}
		batch := b.takeProposals()
		for len(batch) > 0 {
			f := b.sendProposals(t, a, batch)
			if f == answered {
				wait.reset()
				break
			}
			t.Sleep(wait.pause())
			if f == unanswered {
				batch = slices.DeleteFunc(batch, func(p proposal) bool {
					if host.Resigns(p.alter) {
						return false
					}
					p.r.step(partition.ISRUnanswered{LeaderEpoch: p.alter.LeaderEpoch})
					return true
				})
			}
			batch = b.still(batch)
		}
	}
}

type proposal struct {
	r     *replica
	alter partition.AlterISR
}

func (b *broker) takeProposals() (out []proposal) {
	for _, r := range b.proposals {
		if r.alter != nil {
			out = append(out, proposal{r, *r.alter})
			r.alter = nil
		}
	}
	b.proposals = nil
	return out
}

// still keeps the proposals that are worth sending.
func (b *broker) still(batch []proposal) (out []proposal) {
	for _, p := range batch {
		asked := host.StillAsked
		if host.Resigns(p.alter) {
			asked = func(_ partition.Status, a partition.AlterISR) bool {
				return host.StillElected(b.view, b.n.id, p.r.key.topic, p.r.key.index, a)
			}
		}
		if p.r.alter == nil && asked(p.r.core.Status(), p.alter) {
			out = append(out, p)
		}
	}
	return out
}

// accept takes a connection: what it returns is called for each message that arrives.
func (b *broker) accept(c *world.Conn) func(any) {
	var l line
	return func(m any) { b.serve(c, &l, m) }
}

// known tells whether the party is one of the cluster's nodes.
func (b *broker) known(p nemesis.Party) bool { return !p.Client && b.links[int32(p.ID)] != nil }
