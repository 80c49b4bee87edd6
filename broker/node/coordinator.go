package node

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/group"
	"ackproof/broker/core/host"
	"ackproof/broker/core/partition"
	"ackproof/broker/record"
)

// coordinator carries one group.Coordinator: the groups of one partition of the internal topic, in one epoch in which this broker leads it. One goroutine steps it and carries out
// its effects; another one feeds it the log first.
type coordinator struct {
	n       *Node
	replica *replica
	epoch   int32 // of the leader
	core    *group.Coordinator
	cancel  context.CancelFunc

	mu    sync.Mutex
	inbox []group.Input
	news  chan struct{} // holds one: the inbox is not empty
	over  bool          // nothing is taken in any more
	torn  chan struct{} // closed when the log cannot be read
	ended chan struct{} // closed when it has ended by itself, and another one has to be made
}

// groupCall is a request to a coordinator under way; it is the token of its input.
type groupCall struct{ answer chan kmsg.Response }

// groupAppend is the token of an append: it brings the outcome back.
type groupAppend struct {
	c  *coordinator
	id uint64
}

func (a *groupAppend) reply(e partition.ProduceReply) {
	a.c.put(group.Appended{ID: a.id, Code: e.Code, Offset: e.BaseOffset})
}

func newCoordinator(n *Node, r *replica, epoch int32) *coordinator {
	cfg := n.cfg.Groups
	cfg.MaxGroups, cfg.NewMemberTimeout = group.MaxGroups, group.NewMemberTimeout
	rand.Read(cfg.Seed[:]) // never fails
	return &coordinator{n: n, replica: r, epoch: epoch, core: group.New(cfg), news: make(chan struct{}, 1), torn: make(chan struct{}), ended: make(chan struct{})}
}

// tickAtLeast is the finest that time passes in.
const tickAtLeast = 10 * time.Millisecond

// put gives the coordinator an input. It does not block. It is false if the coordinator takes none any more.
func (c *coordinator) put(in group.Input) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return false
	}
	c.inbox = append(c.inbox, in)
	poke(c.news)
	return true
}

// run steps the coordinator until ctx ends or it has ended by itself. Everybody who waits is answered in either case.
func (c *coordinator) run(ctx context.Context) {
	clock := time.NewTimer(0)
	defer clock.Stop()
	for {
		clock.Reset(max(time.Until(c.core.Due()), tickAtLeast))
		select {
		case <-clock.C:
			if c.step(group.Tick{}) {
				c.finish(nil)
				close(c.ended)
				return
			}
		case <-c.news:
			c.mu.Lock()
			inputs := c.inbox
			c.inbox = nil
			c.mu.Unlock()
			for i, in := range inputs {
				if c.step(in) {
					c.finish(inputs[i+1:])
					close(c.ended)
					return
				}
			}
		case <-c.torn:
			c.step(group.Resign{})
			c.finish(nil)
			close(c.ended)
			return
		case <-ctx.Done():
			c.step(group.Resign{})
			c.finish(nil)
			return
		}
	}
}

// finish answers what came too late.
func (c *coordinator) finish(rest []group.Input) {
	c.mu.Lock()
	c.over = true
	rest = append(rest, c.inbox...)
	c.inbox = nil
	c.mu.Unlock()
	for _, in := range rest {
		c.step(in)
	}
}

// step feeds one input and carries out what follows. It tells whether the coordinator has ended by itself.
func (c *coordinator) step(in group.Input) (ended bool) {
	for _, e := range c.core.Step(time.Now(), in) {
		switch e := e.(type) {
		case group.Reply:
			e.Token.(*groupCall).answer <- e.Body // holds one
		case group.Append:
			// There is no deadline: an append ends with the commit or with the leadership, so the coordinator always learns what the log has.
			c.replica.stepAsLeader(c.epoch, partition.Produce{Token: &groupAppend{c, e.ID}, Batch: e.Batch, Acks: -1, Deadline: time.Now().Add(forEver)})
		case group.Trim:
			done := &deleteSlot{&deleteRecords{}, &kmsg.DeleteRecordsResponseTopicPartition{}} // nobody waits: if it fails, the next snapshot trims more
			done.d.left.Add(1)
			c.replica.step(partition.DeleteRecords{Token: done, Offset: e.Offset, Deadline: time.Now().Add(c.n.cfg.RequestTimeout)})
		case group.Failed:
			c.n.log.Warn("the groups of a partition are loaded again", "partition", c.replica.String(), "code", e.Code)
			ended = true
		case group.Unread:
			c.n.log.Error("a record of the internal topic was left out", "partition", c.replica.String(), "error", e.Err)
		}
	}
	return ended
}

// forEver is longer than any leadership.
const forEver = 100 * 365 * 24 * time.Hour

// loading is the token of a coordinator's own fetches.
type loading struct {
	reply partition.FetchReply
	woken chan struct{} // holds one
}

func (l *loading) answer(e partition.FetchReply) { l.reply = e }
func (l *loading) wake()                         { poke(l.woken) }
func (l *loading) news()                         {} // for followers only

// load feeds the log, up to the end that it has now, as a consumer reads it: what is not committed yet is waited for (R41).
func (c *coordinator) load(ctx context.Context) error {
	c.replica.settle() // what was fetched as a follower may still be on its way to the disk
	status := c.replica.status()
	end := status.LogEnd // nobody else writes to it in this epoch
	slot := loading{woken: make(chan struct{}, 1)}
	for next := status.LogStart; next < end; {
		ask := host.LoadQuestion(c.epoch, next)
		ask.Token = &slot
		c.replica.step(ask)
		if slot.reply.Code != 0 {
			return errNotLeading
		}
		if slot.reply.Registered {
			select {
			case <-slot.woken:
				continue
			case <-ctx.Done():
				c.replica.step(partition.CancelFetch{Token: &slot})
				return ctx.Err()
			}
		}
		batches, err := c.read(next, min(slot.reply.UpTo, end))
		if err != nil {
			return err
		}
		if len(batches) > 0 {
			next = batches[len(batches)-1].NextOffset()
			c.put(group.Load{Batches: batches})
		}
	}
	c.put(group.Loaded{})
	return nil
}

// errNotLeading ends a load: the leadership is gone, and whoever made the coordinator sees to that.
var errNotLeading = errors.New("not the leader any more")

func (c *coordinator) read(from, to int64) ([]record.Batch, error) {
	if from >= to {
		return nil, nil
	}
	records, err := c.replica.read(from, to, 1<<20)
	if err != nil {
		return nil, err
	}
	return host.Batches(records)
}
