package cluster

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/group"
	"ackproof/broker/core/host"
	"ackproof/broker/core/partition"
	"ackproof/broker/record"
	"ackproof/sim/world"
)

// Groups is how the cluster serves consumer groups; what a Core leaves zero that every host sets alike is filled in.
type Groups struct {
	Partitions  int32 // of the internal topic, once it is made
	Replication int16
	Core        group.Config
}

// coordinator carries one group.Coordinator, for as long as this broker leads its partition in one epoch, as broker/node does.
type coordinator struct {
	b       *broker
	replica *replica
	epoch   int32 // of the leader
	core    *group.Coordinator
	inbox   []group.Input
	planned bool // the inbox will be looked at
	clock   *world.Event
	over    bool         // it takes nothing in any more
	news    world.Signal // for the loading
}

// What the shells of a broker have in common with broker/node.
const (
	groupTick      = 10 * time.Millisecond  // the finest that time passes in for groups
	reloadPause    = 100 * time.Millisecond // a coordinator that ended by itself stays away so long
	autoCreateWait = 5 * time.Second
	// loadBytes is what the loading of a coordinator reads at once. It is less than in broker/node, since the logs of simulated runs are short: loading one has to take several reads.
	loadBytes = 4 << 10
	forEver   = 100 * 365 * 24 * time.Hour // longer than any leadership
)

// followGroups ends the coordinators whose time is over and begins new ones.
func (b *broker) followGroups() {
	t := b.view.Topics[group.Topic]
	if t == nil {
		return
	}
	topics := host.GroupTopics(b.view)
	b.coordinators = slices.DeleteFunc(b.coordinators, func(c *coordinator) bool {
		if !c.over && c.leads() {
			c.put(group.TopicsChanged{Topics: topics})
			return false
		}
		c.end()
		return true
	})
	for i := range t.Partitions {
		r := b.find(key{t.ID, int32(i)})
		if r == nil || slices.ContainsFunc(b.coordinators, func(c *coordinator) bool { return c.replica == r }) {
			continue
		}
		if s := r.core.Status(); !r.failed && s.Role == partition.Leader {
			b.coordinators = append(b.coordinators, b.coordinate(r, s.LeaderEpoch, topics))
		}
	}
}

// leads tells whether the coordinator's partition is still led by this broker, in the same epoch.
func (c *coordinator) leads() bool {
	s := c.replica.core.Status()
	return !c.replica.closed && !c.replica.failed && s.Role == partition.Leader && s.LeaderEpoch == c.epoch
}

// coordinate starts a coordinator: it is there at once, to answer that it is loading (R41).
func (b *broker) coordinate(r *replica, epoch int32, topics *group.Topics) *coordinator {
	cfg := b.n.c.cfg.Groups.Core
	cfg.MaxGroups, cfg.NewMemberTimeout = group.MaxGroups, group.NewMemberTimeout
	binary.BigEndian.PutUint64(cfg.Seed[:8], b.n.c.rand.Uint64())
	binary.BigEndian.PutUint64(cfg.Seed[8:], b.n.c.rand.Uint64())
	c := &coordinator{b: b, replica: r, epoch: epoch, core: group.New(cfg)}
	b.n.c.w.Note("coordinator", int64(b.n.id), int64(r.key.index), int64(epoch))
	c.put(group.TopicsChanged{Topics: topics})
	b.n.c.w.Go(b.n.process, c.load)
	return c
}

// put gives the coordinator an input; it is taken behind whatever is happening now. It is false if the coordinator takes none any more.
func (c *coordinator) put(in group.Input) bool {
	if c.over {
		return false
	}
	c.inbox = append(c.inbox, in)
	if !c.planned {
		c.planned = true
		c.b.n.c.w.After(0, c.b.n.process, c.work)
	}
	return true
}

func (c *coordinator) work() {
	c.planned = false
	for len(c.inbox) > 0 && !c.over {
		in := c.inbox[0]
		c.inbox = c.inbox[1:]
		c.step(in)
	}
	c.arm()
}

// arm sets the clock for what is due next.
func (c *coordinator) arm() {
	n := c.b.n
	n.c.w.Cancel(c.clock)
	if c.over {
		return
	}
	c.clock = n.c.w.After(max(n.scaled(c.core.Due().Sub(n.clock())), groupTick), n.process, func() {
		c.step(group.Tick{})
		c.arm()
	})
}

// end resigns: everybody who waits is answered, and whoever comes later.
func (c *coordinator) end() {
	if c.over {
		return
	}
	c.over = true
	c.step(group.Resign{})
	for _, in := range c.inbox {
		c.step(in)
	}
	c.inbox = nil
	c.b.n.c.w.Cancel(c.clock)
	c.news.Broadcast()
}

// step feeds one input and carries out what follows.
func (c *coordinator) step(in group.Input) {
	n := c.b.n
	for _, e := range c.core.Step(n.clock(), in) {
		switch e := e.(type) {
		case group.Reply:
			e.Token.(*groupPart).reply(e.Body)
		case group.Append:
			// There is no deadline: an append ends with the commit or with the leadership, so the coordinator always learns what the log has.
			ask := partition.Produce{Token: &groupAppend{c, e.ID}, Batch: e.Batch, Acks: -1, Deadline: n.clock().Add(forEver)}
			if !c.leads() {
				ask.Token.(*groupAppend).reply(partition.ProduceReply{Code: kerr.NotLeaderForPartition.Code, BaseOffset: -1})
				continue
			}
			c.replica.step(ask)
		case group.Trim:
			c.replica.step(partition.DeleteRecords{Token: nobodyWaits{}, Offset: e.Offset, Deadline: n.clock().Add(requestTime)})
		case group.Failed:
			n.c.w.Say("%s loads the groups of %s again: code %d", n.Name(), c.replica.folder(), e.Code)
			n.c.w.After(0, n.process, c.end)
			n.c.w.After(n.scaled(reloadPause), n.process, c.b.followGroups)
		case group.Unread:
			n.c.w.Say("%s left out a record of %s: %v", n.Name(), c.replica.folder(), e.Err)
		}
	}
}

// groupAppend is the token of an append: it brings the outcome back.
type groupAppend struct {
	c  *coordinator
	id uint64
}

func (a *groupAppend) reply(e partition.ProduceReply) {
	a.c.put(group.Appended{ID: a.id, Code: e.Code, Offset: e.BaseOffset})
}

// nobodyWaits is the token of a deletion that nobody waits for: if it fails, the next snapshot trims more.
type nobodyWaits struct{}

func (nobodyWaits) reply(partition.DeleteReply) {}

// loading is the token of the fetches by which a coordinator reads its log.
type loading struct {
	c     *coordinator
	reply partition.FetchReply
}

func (l *loading) answer(e partition.FetchReply) { l.reply = e }
func (l *loading) wake()                         { l.c.news.Broadcast() }

// load feeds the log, up to the end that it has now, as a consumer reads it: what is not committed yet is waited for (R41). Each read takes as long as a flush does.
func (c *coordinator) load(t *world.Task) {
	n, r := c.b.n, c.replica
	end := r.core.Status().LogEnd // nobody else writes to it in this epoch
	slot := &loading{c: c}
	for next := r.core.Status().LogStart; next < end; {
		t.Sleep(n.flushTime())
		if c.over || !c.leads() {
			return // whoever made the coordinator sees to that
		}
		ask := host.LoadQuestion(c.epoch, next)
		ask.Token = slot
		r.step(ask)
		if slot.reply.Code != 0 {
			return
		}
		if slot.reply.Registered {
			t.Wait(&c.news, world.Forever)
			if c.over {
				r.step(partition.CancelFetch{Token: slot})
				return
			}
			continue
		}
		batches, err := read(r, next, min(slot.reply.UpTo, end))
		if err != nil {
			n.c.w.Say("%s cannot load the groups of %s: %v", n.Name(), r.folder(), err)
			c.end()
			n.c.w.After(n.scaled(reloadPause), n.process, c.b.followGroups)
			return
		}
		if len(batches) > 0 {
			next = batches[len(batches)-1].NextOffset()
			c.put(group.Load{Batches: batches})
		}
	}
	c.put(group.Loaded{})
}

func read(r *replica, from, to int64) ([]record.Batch, error) {
	if from >= to {
		return nil, nil
	}
	records, err := r.log.Read(from, to, loadBytes)
	if err != nil {
		return nil, err
	}
	return host.Batches(records)
}

// groupRequest is a request about groups under way: it has been given to one coordinator, or in parts to several.
type groupRequest struct {
	c     *turn
	whole kmsg.Response
	parts []*groupPart
	left  int
}

// groupPart is the part of one coordinator; it is the token of its input.
type groupPart struct {
	of     *groupRequest
	answer kmsg.Response
}

func (p *groupPart) reply(r kmsg.Response) {
	p.answer = r
	p.of.finish()
}

// finish answers once every part is there, in the order of the parts.
func (g *groupRequest) finish() {
	if g.left--; g.left > 0 {
		return
	}
	for i, p := range g.parts {
		if i == 0 {
			g.whole = p.answer
		} else {
			group.Merge(g.whole, p.answer)
		}
	}
	g.c.Reply(g.whole)
}

// groups gives a request to the coordinators that it concerns, in order (R7). The request is copied, as a socket would.
func (b *broker) groups(c *turn, q kmsg.Request) {
	q = copyOf(q)
	g := &groupRequest{c: c, whole: q.ResponseKind(), left: 1}
	give := func(to *coordinator, body kmsg.Request) {
		p := &groupPart{of: g}
		g.parts = append(g.parts, p)
		g.left++
		if to == nil || !to.put(group.Request{Token: p, Body: body, ClientID: "sim", Host: "/sim"}) {
			p.reply(group.Refusal(body, kerr.NotCoordinator.Code))
		}
	}
	if _, all := q.(*kmsg.ListGroupsRequest); all {
		for _, one := range b.coordinators {
			give(one, q)
		}
	}
	for _, one := range group.Split(q) {
		give(b.coordinatorOf(one.ID), one.Body)
	}
	g.finish()
}

// coordinatorOf gives the coordinator of a group, nil if it is not here.
func (b *broker) coordinatorOf(id string) *coordinator {
	t := b.view.Topics[group.Topic]
	if t == nil {
		return nil
	}
	index := group.PartitionOf(id, len(t.Partitions))
	for _, c := range b.coordinators {
		if c.replica.key == (key{t.ID, index}) {
			return c
		}
	}
	return nil
}

// findCoordinator names the coordinator of a group. The internal topic is made when somebody asks for the first time.
func (b *broker) findCoordinator(c *turn, q *kmsg.FindCoordinatorRequest) {
	if !host.AsksForGroups(q) || b.view.Topics[group.Topic] != nil {
		c.Reply(host.FindCoordinator(b.view, q))
		return
	}
	b.n.c.w.Go(b.n.process, func(t *world.Task) {
		a := &asker{b: b}
		defer a.drop()
		ask := kmsg.NewPtrCreateTopicsRequest()
		ask.Version, ask.TimeoutMillis = 7, int32(autoCreateWait.Milliseconds())
		ask.Topics = append(ask.Topics, host.GroupTopicLayout(b.n.c.cfg.Groups.Partitions, b.n.c.cfg.Groups.Replication))
		end := t.Now() + autoCreateWait
		if a.until(t, ask, autoCreateWait) != nil {
			for b.view.Topics[group.Topic] == nil && t.Now() < end {
				t.Wait(&b.viewNews, end-t.Now())
			}
		}
		c.Reply(host.FindCoordinator(b.view, q))
	})
}
