package controller

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// register takes a broker in. R19: every start of a broker is a new registration with a new epoch (the index of its entry), and the one before it is out of
// all leaderships and in-sync sets from then on, even if its session had not ended; the new one starts fenced.
//
// Kafka answers DUPLICATE_BROKER_REGISTRATION while another incarnation's session lasts. Here the newer one wins at once: a broker that was killed and
// started again must not wait, and one that is still alive is fenced off by its stale epoch in whatever it asks for.
func (e *edit) register(r *kmsg.BrokerRegistrationRequest) kmsg.Response {
	resp := r.ResponseKind().(*kmsg.BrokerRegistrationResponse)
	old := e.image.Brokers[r.BrokerID]
	if old != nil && old.Incarnation == r.IncarnationID {
		resp.BrokerEpoch = old.Epoch // sent again
		return resp
	}
	if len(r.Listeners) == 0 || r.BrokerID < 0 {
		resp.ErrorCode = kerr.InvalidRegistration.Code
		return resp
	}
	b := &Broker{
		ID:          r.BrokerID,
		Epoch:       int64(e.index),
		Incarnation: r.IncarnationID,
		Host:        r.Listeners[0].Host,
		Port:        int32(r.Listeners[0].Port),
		Fenced:      true,
	}
	if r.Rack != nil {
		b.Rack = *r.Rack
	}
	if old != nil && e.flags&keepRestarted != 0 { // B16: the broker is its id, whatever it has lost
		b.Fenced = old.Fenced
		e.putBroker(b)
		resp.BrokerEpoch = b.Epoch
		return resp
	}
	e.putBroker(b)
	if old != nil {
		// KIP-966: only who proves a clean shutdown of the incarnation before, by its epoch, still has all that it had acknowledged.
		clean := r.Version >= 3 && r.PreviousBrokerEpoch == old.Epoch
		e.takeOut(r.BrokerID, !clean && e.flags&keepLost == 0)
	}
	resp.BrokerEpoch = b.Epoch
	return resp
}

// heartbeat changes a broker's state as it wishes and is allowed to.
func (e *edit) heartbeat(r *kmsg.BrokerHeartbeatRequest) kmsg.Response {
	resp := r.ResponseKind().(*kmsg.BrokerHeartbeatResponse)
	resp.IsFenced = true
	old := e.image.Brokers[r.BrokerID]
	switch {
	case old == nil:
		resp.ErrorCode = kerr.BrokerIDNotRegistered.Code
		return resp
	case old.Epoch != r.BrokerEpoch:
		resp.ErrorCode = kerr.StaleBrokerEpoch.Code
		return resp
	}
	b := *old
	resp.IsCaughtUp = r.CurrentMetadataOffset >= b.Epoch
	switch {
	case b.Fenced && !r.WantFence && !r.WantShutdown && resp.IsCaughtUp:
		b.Fenced = false
		e.putBroker(&b)
		e.letIn(b.ID)
	case !b.Fenced && r.WantFence:
		b.Fenced = true
		e.putBroker(&b)
		e.takeOut(b.ID, false)
	case !b.Fenced && r.WantShutdown && !b.ShuttingDown:
		b.ShuttingDown = true
		e.putBroker(&b)
		e.takeOut(b.ID, false)
	}
	resp.IsFenced = b.Fenced
	resp.ShouldShutdown = b.Fenced && r.WantShutdown
	return resp
}

// takeOut takes a broker that is not active any more out of leaderships and in-sync sets; after an unclean restart also out of the ELR (R18).
func (e *edit) takeOut(id int32, unclean bool) {
	lost := none
	if unclean {
		lost = id
	}
	isOut := func(p *Partition) bool {
		return p.Leader == id || slices.Contains(p.ISR, id) || unclean && slices.Contains(p.ELR, id)
	}
	e.eachPartition(isOut, func(t *Topic, i int32) {
		p := t.Partitions[i]
		e.settle(t, i, change{isr: without(p.ISR, id), lost: lost})
	})
}

// letIn elects leaders where there is none and the broker, which became active, may be one.
func (e *edit) letIn(id int32) {
	waits := func(p *Partition) bool { return p.Leader == none && slices.Contains(p.Replicas, id) }
	e.eachPartition(waits, func(t *Topic, i int32) {
		e.settle(t, i, change{isr: t.Partitions[i].ISR, lost: none})
	})
}

func (e *edit) allocateProducerIDs(r *kmsg.AllocateProducerIDsRequest) kmsg.Response {
	const block = 1000 // R30, as Kafka's
	resp := r.ResponseKind().(*kmsg.AllocateProducerIDsResponse)
	b := e.image.Brokers[r.BrokerID]
	switch {
	case b == nil:
		resp.ErrorCode = kerr.BrokerIDNotRegistered.Code
	case b.Epoch != r.BrokerEpoch:
		resp.ErrorCode = kerr.StaleBrokerEpoch.Code
	default:
		resp.ProducerIDStart, resp.ProducerIDLen = e.image.NextProducerID, block
		e.image.NextProducerID += block
		e.changed = true
	}
	return resp
}

func without(ids []int32, id int32) []int32 {
	out := make([]int32, 0, len(ids))
	for _, x := range ids {
		if x != id {
			out = append(out, x)
		}
	}
	return out
}
