package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ackproof/broker/core/group"
	"ackproof/broker/core/host"
	"ackproof/broker/core/partition"
	"ackproof/broker/storage"
)

// key names a partition for its whole life (R24).
type key struct {
	topic [16]byte
	index int32
}

// replica carries one partition.Replica: it steps it and carries out its effects. Storage effects are done one after the other, each run of them taking
// its time; replies and wake-ups at once.
type replica struct {
	b      *broker
	key    key
	topic  string
	core   *partition.Replica
	log    storage.Log
	queue  []partition.Effect
	busy   bool
	closed bool
	failed bool
	missed bool                // the fetcher found nothing to ask for because of the queue
	alter  *partition.AlterISR // the newest that the controller has not been asked for
	back   backoff             // after a refused fetch
	heldTo time.Duration       // not fetched before
}

// writeTime is what the operating system takes for a write to its cache.
const writeTime = 30 * time.Microsecond

func (r *replica) folder() string { return folderName(r.topic, r.key.index) }

func folderName(topic string, index int32) string { return fmt.Sprintf("%s-%d", topic, index) }

// step feeds one input and sees to everything that follows from it.
func (r *replica) step(in partition.Input) {
	if r.closed {
		return
	}
	c := r.b.n.c
	watched := c.Stepped != nil && c.about(r)
	var before partition.Status
	if watched {
		before = r.core.Status()
	}
	effects := r.core.Step(r.b.n.clock(), in)
	c.w.Note("step", int64(r.b.n.id), int64(r.key.index), kindOf(in), int64(len(effects)))
	if watched {
		c.Stepped(r.b.n.id, r.key.index, before, r.core.Status())
	}
	for _, e := range effects {
		switch e := e.(type) {
		case partition.Append, partition.Flush, partition.Truncate, partition.Trim, partition.Reset, partition.Checkpoint:
			r.queue = append(r.queue, e)
		case partition.AlterISR:
			if c.Proposed != nil && c.about(r) {
				c.Proposed(&Copy{r}, ids(e.ISR))
			}
			r.propose(&e)
		case partition.ProduceReply:
			e.Token.(interface{ reply(partition.ProduceReply) }).reply(e)
		case partition.DeleteReply:
			e.Token.(interface{ reply(partition.DeleteReply) }).reply(e)
		case partition.FetchReply:
			e.Token.(fetchToken).answer(e)
		case partition.Wake:
			e.Token.(fetchToken).wake()
		case partition.News:
			e.Token.(*fetchSlot).fetch.news()
		case partition.OffsetReply:
			*e.Token.(*partition.OffsetReply) = e
		case partition.EpochEndReply:
			*e.Token.(*partition.EpochEndReply) = e
		case partition.RoleChanged:
			r.b.kick(r)
			if r.topic == group.Topic {
				c.w.After(0, r.b.n.process, r.b.followGroups)
			}
		case partition.Offline:
			r.offline(e.Err)
		}
	}
	if len(r.queue) > 0 && !r.busy {
		r.busy = true
		r.work()
	}
}

// propose has the controller asked for an in-sync set.
func (r *replica) propose(a *partition.AlterISR) {
	r.alter = a
	r.b.proposals = append(r.b.proposals, r)
	r.b.proposed.Broadcast()
}

// fetchToken is the token of a fetch: it is told the answer, and later, if it is registered, that there is more.
type fetchToken interface {
	answer(partition.FetchReply)
	wake()
}

// about tells whether the replica is of the topic that is watched.
func (c *Cluster) about(r *replica) bool {
	return r.topic == c.cfg.Topic && (c.Only == [16]byte{} || c.Only == r.key.topic)
}

// work carries out what has gathered, after the time that it takes. Between writes and the flush that follows them the power may fail.
func (r *replica) work() {
	n, took := r.b.n, writeTime
	if _, write := r.queue[0].(partition.Append); !write {
		took = n.flushTime()
	}
	n.c.w.After(took, n.process, func() {
		if r.closed {
			return
		}
		var work []partition.Effect
		work, r.queue = split(r.queue)
		for _, in := range host.CarryOut(r.log, work, nil) {
			if f, ok := in.(partition.StorageFailed); ok {
				n.c.w.Say("%s %s: %v", n.Name(), r.folder(), f.Err)
			}
			r.step(in)
		}
		if len(r.queue) > 0 {
			r.work()
			return
		}
		r.busy = false
		if r.missed {
			r.missed = false
			r.b.kick(r)
		}
	})
}

// split takes what is done at once off a queue: the writes up to anything but a flush, or what comes before the next write. One flush follows the writes, if one was
// asked for among them.
func split(queue []partition.Effect) (now, later []partition.Effect) {
	if _, write := queue[0].(partition.Append); !write {
		i := slices.IndexFunc(queue, func(e partition.Effect) bool { _, write := e.(partition.Append); return write })
		if i < 0 {
			i = len(queue)
		}
		return queue[:i], queue[i:]
	}
	for i, e := range queue {
		switch e.(type) {
		case partition.Append:
			now = append(now, e)
		case partition.Flush:
			later = []partition.Effect{e}
		default:
			return now, append(later, queue[i:]...)
		}
	}
	return now, later
}

// kindOf is a number for the kind of an input, for the event log.
func kindOf(in partition.Input) int64 {
	switch in.(type) {
	case partition.Assign:
		return 1
	case partition.Produce:
		return 2
	case partition.Fetch:
		return 3
	case partition.Fetched:
		return 4
	case partition.Appended:
		return 5
	case partition.Flushed:
		return 6
	case partition.Cut:
		return 7
	case partition.StorageFailed:
		return 8
	case partition.ISRAnswer:
		return 9
	case partition.Tick:
		return 10
	case partition.DeleteRecords:
		return 11
	}
	return 0
}

func (b *broker) find(k key) *replica {
	for _, r := range b.replicas {
		if r.key == k {
			return r
		}
	}
	return nil
}

func (b *broker) add(r *replica) {
	b.replicas = append(b.replicas, r)
	slices.SortFunc(b.replicas, func(x, y *replica) int {
		return cmp.Or(cmp.Compare(x.topic, y.topic), cmp.Compare(x.key.index, y.key.index))
	})
}
