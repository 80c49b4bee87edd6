package controller

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// alterPartitions changes in-sync sets at their leaders' wish: a compare-and-set, decided here, where the change takes effect (R16).
func (e *edit) alterPartitions(r *kmsg.AlterPartitionRequest) kmsg.Response {
	resp := r.ResponseKind().(*kmsg.AlterPartitionResponse)
	resp.Topics = []kmsg.AlterPartitionResponseTopic{}
	b := e.image.Brokers[r.BrokerID]
	switch {
	case b == nil:
		resp.ErrorCode = kerr.BrokerIDNotRegistered.Code
		return resp
	case b.Epoch != r.BrokerEpoch:
		resp.ErrorCode = kerr.StaleBrokerEpoch.Code
		return resp
	}
	for _, qt := range r.Topics {
		rt := kmsg.AlterPartitionResponseTopic{TopidID: qt.TopicID, Partitions: []kmsg.AlterPartitionResponseTopicPartition{}}
		t := e.image.TopicByID(qt.TopicID) // R24
		for _, q := range qt.Partitions {
			rp := kmsg.NewAlterPartitionResponseTopicPartition()
			rp.Partition, rp.LeaderID, rp.ISR = q.Partition, none, []int32{}
			if err := e.alterPartition(r.BrokerID, t, q); err != nil {
				rp.ErrorCode = err.Code
			} else {
				p := e.image.Topics[t.Name].Partitions[q.Partition]
				rp.LeaderID, rp.LeaderEpoch, rp.PartitionEpoch = p.Leader, p.LeaderEpoch, p.PartitionEpoch
				rp.ISR = append(rp.ISR, p.ISR...)
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

// alterPartition checks in Kafka's order and then changes.
func (e *edit) alterPartition(sender int32, t *Topic, q kmsg.AlterPartitionRequestTopicPartition) *kerr.Error {
	if t == nil {
		return kerr.UnknownTopicID
	}
	if q.Partition < 0 || int(q.Partition) >= len(t.Partitions) {
		return kerr.UnknownTopicOrPartition
	}
	t = e.image.Topics[t.Name] // as an earlier partition of the same request left it
	p := t.Partitions[q.Partition]
	switch {
	case q.LeaderEpoch > p.LeaderEpoch || q.PartitionEpoch > p.PartitionEpoch:
		return kerr.NotController // the asker knows more than we do, so somebody else decided it
	case q.LeaderEpoch < p.LeaderEpoch:
		return kerr.FencedLeaderEpoch
	case sender != p.Leader:
		return kerr.InvalidRequest
	case q.PartitionEpoch < p.PartitionEpoch:
		return kerr.InvalidUpdateVersion
	case q.LeaderRecoveryState != 0:
		return kerr.InvalidRequest // replicas here have no recovery state (KIP-704)
	}
	if len(q.NewEpochISR) == 0 {
		// Who leads is in sync, so no set without it makes sense, but for one that has found out that its log is gone: it resigns. (A Kafka broker says so by assigning the
		// replica to the directory LOST, KIP-858.)
		e.settle(t, q.Partition, change{isr: without(p.ISR, sender), lost: sender, gone: true})
		return nil
	}
	isr := make([]int32, 0, len(q.NewEpochISR))
	for _, m := range q.NewEpochISR {
		isr = append(isr, m.BrokerID)
	}
	if repeats(isr) || !slices.Contains(isr, p.Leader) || slices.ContainsFunc(isr, func(id int32) bool { return !slices.Contains(p.Replicas, id) }) {
		return kerr.InvalidRequest
	}
	for _, m := range q.NewEpochISR {
		if !e.image.Active(m.BrokerID) {
			return kerr.IneligibleReplica
		}
		// KIP-903: the replica must be the incarnation that the leader saw. Without an epoch it is taken only for one that is in sync already: a restart
		// would have put it out and moved the partition epoch.
		unknown := m.BrokerEpoch == -1 && slices.Contains(p.ISR, m.BrokerID)
		if m.BrokerEpoch != e.image.Brokers[m.BrokerID].Epoch && !unknown {
			return kerr.IneligibleReplica
		}
	}
	// The partition epoch moves even if the set is the one that there was: a leader asks for that to make earlier copies of its request void, which may
	// still be under way (R2, R16).
	e.settle(t, q.Partition, change{isr: isr, lost: none, confirm: true})
	return nil
}
