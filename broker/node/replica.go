package node

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"ackproof/broker/core/controller"
	"ackproof/broker/core/host"
	"ackproof/broker/core/partition"
	"ackproof/broker/storage"
)

// replica carries one partition.Replica: it steps it, carries out its effects and holds its log.
//
// The mutex covers steps only, never a disk or a socket. Storage effects go through a queue in order; whoever finds the queue idle works it off, so
// that the usual append runs in the goroutine of the request that caused it, without a wake-up, and whatever has gathered meanwhile is one append and
// one flush. Replies and wake-ups are delivered outside of the mutex by whoever made the step.
type replica struct {
	key   partitionKey
	topic string
	hooks replicaHooks

	mu       sync.Mutex
	idle     sync.Cond // the queue has been worked off
	core     *partition.Replica
	log      storage.Log
	queue    []partition.Effect // storage effects that wait
	spare    []partition.Effect // the queue's other half
	draining bool
	closed   bool
	alter    *partition.AlterISR // the newest one that the controller has not been asked for yet
	missed   bool                // the fetcher found nothing to ask for because of the queue

	rebuilding atomic.Bool // the copy was lost and is not complete again: it must not lead
}

// replicaHooks is what a replica needs of its node. None of them blocks.
type replicaHooks struct {
	self     int32                 // this broker
	alterISR func(*replica)        // there is a new alter
	role     func(*replica)        // the role has changed, or there is something to fetch again
	offline  func(*replica, error) // the storage failed
	rebuilt  func(*replica)        // a rebuilding copy is in sync again
	note     func(string, *replica)
}

func newReplica(key partitionKey, topic string, core *partition.Replica, log storage.Log, hooks replicaHooks) *replica {
	r := &replica{key: key, topic: topic, core: core, log: log, hooks: hooks}
	r.idle.L = &r.mu
	return r
}

func (r *replica) String() string { return fmt.Sprintf("%s-%d", r.topic, r.key.partition) }

// usualEffects is room on the stack for the effects of a step.
type usualEffects [6]partition.Effect

// step feeds one input and sees to everything that follows from it. When it returns, the replies to the input itself have been delivered; storage
// effects may still be under way in another goroutine.
func (r *replica) step(in partition.Input) {
	var room usualEffects
	r.mu.Lock()
	effects, drain := r.stepLocked(in, room[:0])
	r.mu.Unlock()
	r.deliver(effects)
	if drain {
		r.drain()
	}
}

// stepAsLeader appends if the replica leads in that epoch, and refuses otherwise: what was decided in one epoch must not be written in a later one.
func (r *replica) stepAsLeader(epoch int32, in partition.Produce) {
	var room usualEffects
	r.mu.Lock()
	if s := r.core.Status(); r.closed || s.Role != partition.Leader || s.LeaderEpoch != epoch {
		r.mu.Unlock()
		in.Token.(produceToken).reply(partition.ProduceReply{Token: in.Token, Code: kerr.NotLeaderForPartition.Code, BaseOffset: -1})
		return
	}
	effects, drain := r.stepLocked(in, room[:0])
	r.mu.Unlock()
	r.deliver(effects)
	if drain {
		r.drain()
	}
}

// settle waits until no storage effect is under way: memory that was given to an Append without Keep is free again.
func (r *replica) settle() {
	r.mu.Lock()
	for r.draining {
		r.idle.Wait()
	}
	r.mu.Unlock()
}

// stepLocked makes a step and sorts its effects: it appends those that are not storage to effects, and tells whether the queue is the caller's to drain. The caller holds the mutex.
func (r *replica) stepLocked(in partition.Input, effects []partition.Effect) (_ []partition.Effect, drain bool) {
	if r.closed {
		return effects, false
	}
	for _, e := range r.core.Step(time.Now(), in) {
		switch e := e.(type) {
		case partition.Append:
			for _, b := range e.Batches {
				b.Retain() // until it is in the log
			}
			r.queue = append(r.queue, e)
		case partition.Flush, partition.Truncate, partition.Trim, partition.Reset, partition.Checkpoint:
			r.queue = append(r.queue, e)
		case partition.AlterISR:
			r.alter = &e // under the mutex, so that the newest one is the one that stays
			effects = append(effects, e)
		default:
			effects = append(effects, e)
		}
	}
	if len(r.queue) > 0 && !r.draining {
		r.draining, drain = true, true
	}
	return effects, drain
}

// deliver carries out the effects that are not storage.
func (r *replica) deliver(effects []partition.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case partition.ProduceReply:
			e.Token.(produceToken).reply(e)
		case partition.FetchReply:
			e.Token.(fetchToken).answer(e)
		case partition.Wake:
			e.Token.(fetchToken).wake()
		case partition.News:
			e.Token.(fetchToken).news()
		case partition.OffsetReply:
			*e.Token.(*partition.OffsetReply) = e
		case partition.EpochEndReply:
			*e.Token.(*partition.EpochEndReply) = e
		case partition.DeleteReply:
			e.Token.(*deleteSlot).reply(e)
		case partition.AlterISR:
			r.hooks.alterISR(r)
		case partition.RoleChanged:
			r.hooks.role(r)
		case partition.Offline:
			r.hooks.offline(r, e.Err)
		}
	}
}

// roundsPerDrain bounds how long a request's own goroutine works for others.
const roundsPerDrain = 8

// drain works the queue off. The caller has set draining.
func (r *replica) drain() {
	var inputs []partition.Input
	var room usualEffects
	for round := 0; ; round++ {
		effects := room[:0]
		r.mu.Lock()
		for _, in := range inputs {
			effects, _ = r.stepLocked(in, effects)
		}
		if len(r.queue) == 0 {
			r.draining = false
			r.idle.Broadcast()
			missed := r.missed
			r.missed = false
			r.mu.Unlock()
			r.deliver(effects)
			if missed {
				r.hooks.role(r)
			}
			return
		}
		work := r.queue
		r.queue = r.spare[:0]
		r.mu.Unlock()
		r.deliver(effects)
		if round == roundsPerDrain {
			// The requester waits for its own append only; what others go on adding is theirs, or a goroutine's.
			r.mu.Lock()
			r.queue, r.spare = append(work, r.queue...), nil
			r.mu.Unlock()
			go r.drain()
			return
		}
		inputs = host.CarryOut(r.log, work, inputs[:0])
		for _, e := range work {
			if e, ok := e.(partition.Append); ok {
				for _, b := range e.Batches {
					b.Release()
				}
			}
		}
		clear(work)
		r.spare = work // only the drainer touches it
	}
}

// followState is what the next fetch asks for. If there is nothing to ask because the log is busy, the role hook is called when that has passed.
func (r *replica) followState() (partition.FollowState, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return partition.FollowState{}, false
	}
	fs, ok := r.core.FollowState()
	r.missed = !ok && r.draining
	return fs, ok
}

// status is a snapshot of the replica.
func (r *replica) status() partition.Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.core.Status()
}

// resign gives up an office that this replica never took.
func (r *replica) resign(p *controller.Partition) {
	a := host.Resignation(p)
	r.mu.Lock()
	r.alter = &a
	r.mu.Unlock()
	r.hooks.alterISR(r)
}

// takeAlter takes the AlterISR that waits, nil if there is none.
func (r *replica) takeAlter() *partition.AlterISR {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.alter
	r.alter = nil
	return a
}

// read gives the batches that a fetch reply allows.
func (r *replica) read(from, to int64, max int) (storage.Records, error) {
	r.mu.Lock()
	log, closed := r.log, r.closed
	r.mu.Unlock()
	if closed {
		return storage.Records{}, storage.ErrDead
	}
	return log.Read(from, to, max)
}

// close ends the replica: later steps do nothing, requests that wait stay unanswered (their connections are closed, or they time out). clean saves
// the checkpoint and writes the log's marker.
func (r *replica) close(clean bool) error {
	r.mu.Lock()
	for r.draining {
		r.idle.Wait()
	}
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	clean = clean && r.core.Status().Role != partition.Failed
	checkpoint := r.core.Checkpoint()
	r.mu.Unlock()
	var err error
	if clean {
		if err = r.log.Save(checkpoint); err != nil {
			clean = false
		}
	}
	return errors.Join(err, r.log.Close(clean))
}

// closeLog closes the log of a failed replica, once nothing uses it any more, so that it can be opened again (S3).
func (r *replica) closeLog() error {
	r.mu.Lock()
	for r.draining {
		r.idle.Wait()
	}
	log := r.log
	r.mu.Unlock()
	return log.Close(false)
}

// replace puts another core and log in the place of a failed one, whose log has been closed.
func (r *replica) replace(core *partition.Replica, log storage.Log) {
	r.mu.Lock()
	r.core, r.log, r.queue, r.alter = core, log, nil, nil
	r.mu.Unlock()
}
