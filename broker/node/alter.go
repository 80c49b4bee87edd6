package node

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/host"
	"ackproof/broker/core/partition"
)

// alterer carries the replicas' proposals for their in-sync sets to the controller (R16), all that have gathered in one request.
//
// A proposal is sent once. What is certainly not sent, or certainly not decided, is sent again here; a request whose fate is unknown is not, because
// the replica counts how many copies of it may be under way: it is told (ISRUnanswered), and asks anew.
type alterer struct {
	n     *Node
	queue chan *replica
}

const alterQueue = 4096

func newAlterer(n *Node) *alterer {
	return &alterer{n: n, queue: make(chan *replica, alterQueue)}
}

// add says that the replica has a proposal. When the queue is full the replica's own repetition has to do.
func (a *alterer) add(r *replica) {
	select {
	case a.queue <- r:
	default:
	}
}

// proposed is a proposal on its way.
type proposed struct {
	r     *replica
	alter partition.AlterISR
}

func (a *alterer) run(ctx context.Context) {
	var wait backoff
	for {
		var batch []proposed
		select {
		case r := <-a.queue:
			batch = take(batch, r)
		case <-ctx.Done():
			return
		}
	more:
		for {
			select {
			case r := <-a.queue:
				batch = take(batch, r)
			default:
				break more
			}
		}
		for len(batch) > 0 {
			fate := a.send(ctx, batch)
			if fate == answered {
				wait.reset()
				break
			}
			if !sleep(ctx, wait.pause()) {
				return
			}
			if fate == unanswered {
				batch = slices.DeleteFunc(batch, func(p proposed) bool {
					if host.Resigns(p.alter) {
						return false
					}
					p.r.step(partition.ISRUnanswered{LeaderEpoch: p.alter.LeaderEpoch})
					return true
				})
			}
			batch = a.still(batch)
		}
	}
}

func take(batch []proposed, r *replica) []proposed {
	if alter := r.takeAlter(); alter != nil {
		batch = append(batch, proposed{r, *alter})
	}
	return batch
}

// still keeps the proposals that are worth sending: no newer one has come and the replica still leads that epoch.
func (a *alterer) still(batch []proposed) []proposed {
	var out []proposed
	v := a.n.view.Load()
	for _, p := range batch {
		if host.Resigns(p.alter) {
			if host.StillElected(v.Image, a.n.cfg.NodeID, p.r.key.topic, p.r.key.partition, p.alter) {
				out = append(out, p)
			}
			continue
		}
		p.r.mu.Lock()
		s, newer := p.r.core.Status(), p.r.alter != nil
		p.r.mu.Unlock()
		if !newer && host.StillAsked(s, p.alter) {
			out = append(out, p)
		}
	}
	return out
}

// fate is what became of a request.
type fate int

const (
	answered fate = iota
	unsent        // it has certainly had no effect
	unanswered
)

// send makes one attempt.
func (a *alterer) send(ctx context.Context, batch []proposed) fate {
	reg := a.n.registered.Load()
	if reg == nil {
		return unsent
	}
	q := kmsg.NewPtrAlterPartitionRequest()
	q.Version, q.BrokerID, q.BrokerEpoch = 3, a.n.cfg.NodeID, reg.epoch
	for _, p := range batch {
		q.Topics = append(q.Topics, host.Proposal(p.r.key.topic, p.r.key.partition, p.alter))
	}
	ctx, cancel := context.WithTimeout(ctx, max(a.n.cfg.LagTime/2, 100*time.Millisecond))
	defer cancel()
	resp, err := a.n.askOnce(ctx, q)
	var notSent errNotSent
	switch {
	case errors.As(err, &notSent):
		return unsent
	case err != nil:
		a.n.log.Debug("no answer to a change of in-sync sets", "error", err)
		return unanswered
	}
	r := resp.(*kmsg.AlterPartitionResponse)
	if r.ErrorCode != 0 {
		// NOT_CONTROLLER may come from a controller that lost its office with the request under way, so this too leaves its fate open (R26). A stale
		// broker epoch is mended by the next registration, which also ends the leadership.
		a.n.log.Debug("change of in-sync sets refused", "code", r.ErrorCode)
		return unanswered
	}
	answers := map[partitionKey]kmsg.AlterPartitionResponseTopicPartition{}
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			answers[partitionKey{t.TopidID, p.Partition}] = p
		}
	}
	for _, p := range batch {
		if o, found := answers[p.r.key]; found {
			a.n.log.Debug("in-sync set", "partition", p.r.String(), "asked", p.alter.ISR, "code", o.ErrorCode, "is", o.ISR)
			p.r.step(partition.ISRAnswer{Code: o.ErrorCode, LeaderEpoch: p.alter.LeaderEpoch, PartitionEpoch: o.PartitionEpoch, ISR: o.ISR})
		}
	}
	return answered
}
