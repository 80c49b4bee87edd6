package cluster

import (
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"ackproof/broker/core/controller"
	"ackproof/sim/world"
)

// control carries the control plane of one broker: its inputs one after the other, its effects in order, so that nothing is sent before it is durable.
type control struct {
	b       *broker
	core    *controller.Controller
	inbox   []controller.Input
	busy    bool // a Persist is under way
	lead    int32
	term    uint64 // the newest for which it was elected
	changed world.Signal
}

const (
	eagerEach = 15 * time.Millisecond
	eagerFor  = 2 * time.Second
)

func newControl(b *broker) (*control, error) {
	c, t := b.n.c, b.n.c.cfg.Timers
	core, first, err := controller.New(controller.Config{
		Self: b.n.id, Voters: c.voters(), Cluster: clusterID,
		TickEvery: t.RaftTick, ElectionTicks: int(t.Election / t.RaftTick), SessionTimeout: t.Session, ImbalanceEach: t.Rebalance, SnapshotAfter: 1000,
		Defaults: map[string]string{
			"min.insync.replicas":            strconv.Itoa(c.cfg.MinISR),
			"unclean.leader.election.enable": strconv.FormatBool(c.cfg.Unclean),
			"max.message.bytes":              "1048588",
		},
		DefaultRF: int16(c.cfg.Replication), DefaultParts: int32(c.cfg.Partitions), AllowSingleCopy: c.cfg.Replication == 1,
	}, b.n.raft, b.n.clock())
	if err != nil {
		return nil, err
	}
	x := &control{b: b, core: core, lead: -1}
	x.carryOut(first)
	return x, nil
}

// run starts its clocks. Raft waits a random time before it elects; so that a new cluster is up at once, the voter with the lowest id does not.
func (x *control) run() {
	x.tick()
	if x.b.n.id == 1 {
		x.eager(x.b.n.c.w.Now())
	}
}

func (x *control) tick() {
	n := x.b.n
	every := n.scaled(n.c.cfg.Timers.RaftTick)
	// Ticks of several nodes are not in step, and do not stay where they are: timers of an operating system have some jitter.
	n.c.w.After(every-every/16+n.c.between(0, every/8), n.process, func() {
		x.offer(controller.Tick{})
		x.tick()
	})
}

func (x *control) eager(started time.Duration) {
	w := x.b.n.c.w
	w.After(eagerEach, x.b.n.process, func() {
		if x.lead < 0 && w.Now()-started < eagerFor {
			x.offer(controller.Campaign{})
			x.eager(started)
		}
	})
}

// offer hands in an input.
func (x *control) offer(in controller.Input) {
	x.inbox = append(x.inbox, in)
	x.pump()
}

func (x *control) pump() {
	for len(x.inbox) > 0 && !x.busy {
		in := x.inbox[0]
		x.inbox = x.inbox[1:]
		effects := x.core.Step(x.b.n.clock(), in)
		if term, ok := x.core.Elected(); ok && term != x.term {
			x.term = term
			if told := x.b.n.c.Elected; told != nil {
				told(x.b.n.id, term)
			}
		}
		x.carryOut(effects)
	}
}

func (x *control) carryOut(effects []controller.Effect) {
	n := x.b.n
	for i, e := range effects {
		switch e := e.(type) {
		case controller.Persist:
			x.busy = true
			rest := effects[i+1:]
			n.c.w.After(n.flushTime(), n.process, func() {
				n.persist(e)
				x.busy = false
				x.carryOut(rest)
				x.pump()
			})
			return
		case controller.Send:
			x.b.links[e.To].send(e.Message)
		case controller.Reply:
			e.Token.(*call).reply(e.Response)
		case controller.Publish:
			x.b.publish(e.Image)
		case controller.LeaderChanged:
			n.c.w.Note("controller", int64(n.id), int64(e.Leader))
			x.lead = e.Leader
			x.changed.Broadcast()
		case controller.Failed:
			x.b.fail(e.Err)
			return
		}
	}
}

// persist stores what the control plane must not forget, as broker/storage/raftlog does.
func (n *Node) persist(p controller.Persist) {
	s := &n.raft
	if p.CutFrom > 0 {
		s.Entries = before(s.Entries, p.CutFrom)
	}
	if p.Snapshot != nil {
		s.Snapshot = p.Snapshot
		for len(s.Entries) > 0 && s.Entries[0].GetIndex() <= p.Snapshot.GetMetadata().GetIndex() {
			s.Entries = s.Entries[1:]
		}
	}
	if p.HardState != nil {
		s.HardState = p.HardState
	}
	if len(p.Entries) > 0 {
		s.Entries = append(before(s.Entries, p.Entries[0].GetIndex()), p.Entries...)
	}
}

// before gives a copy of the entries below an index.
func before(entries []*raftpb.Entry, index uint64) []*raftpb.Entry {
	var out []*raftpb.Entry
	for _, e := range entries {
		if e.GetIndex() < index {
			out = append(out, e)
		}
	}
	return out
}

// call is a request to the controller of this broker; it is the token of its input.
type call struct {
	done func(kmsg.Response) // nil once it is over
}

func (c *call) reply(r kmsg.Response) {
	if f := c.done; f != nil {
		c.done = nil
		f(r)
	}
}

// request hands a request in; done is called with the answer, nil if it is no request to the controller. The request is copied, as a socket would.
func (x *control) request(q kmsg.Request, done func(kmsg.Response)) *call {
	c := &call{done: done}
	x.offer(controller.Request{Token: c, Request: copyOf(q)})
	return c
}

func (x *control) cancel(c *call) {
	c.done = nil
	x.offer(controller.CancelRequest{Token: c})
}

// copyOf sends a request through its own encoding, so that nobody shares memory with its sender.
func copyOf(q kmsg.Request) kmsg.Request {
	out := kmsg.RequestForKey(q.Key())
	out.SetVersion(q.GetVersion())
	if err := out.ReadFrom(q.AppendTo(nil)); err != nil {
		panic("sim: a request does not survive its own encoding: " + err.Error())
	}
	return out
}

// raftLink sends raft's messages to one other voter over a connection of its own. What cannot be sent is lost; raft repeats what matters.
type raftLink struct {
	b     *broker
	to    int32
	queue []*raftpb.Message
	news  world.Signal
}

const (
	raftQueue    = 256
	raftDialTime = 500 * time.Millisecond
)

func (l *raftLink) send(m *raftpb.Message) {
	if len(l.queue) < raftQueue {
		l.queue = append(l.queue, m)
		l.news.Broadcast()
	}
}

func (l *raftLink) run(t *world.Task) {
	var link *world.Link
	var ended world.Signal // nobody waits for a one-way connection to end: the next send finds out
	wait := l.b.backoff()
	for {
		for len(l.queue) == 0 {
			t.Wait(&l.news, world.Forever)
		}
		if link == nil || !link.Open() {
			var err error
			if link != nil {
				l.b.control.offer(controller.Unreachable{Node: l.to})
			}
			if link, err = l.b.n.c.net.Dial(t, party(l.b.n.id), party(l.to), raftDialTime, &ended); err != nil {
				link = nil
				l.queue = nil
				l.b.control.offer(controller.Unreachable{Node: l.to})
				t.Sleep(wait.pause())
				continue
			}
			wait.reset()
		}
		queue := l.queue
		l.queue = nil
		for _, m := range queue {
			link.Send(proto.CloneOf(m))
		}
	}
}
