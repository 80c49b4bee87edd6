package cluster

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/host"
	"ackproof/broker/core/partition"
	"ackproof/sim/world"
)

// sendProposals makes one attempt.
func (b *broker) sendProposals(t *world.Task, a *asker, batch []proposal) fate {
	if b.epoch < 0 {
		return unsent
	}
	q := kmsg.NewPtrAlterPartitionRequest()
	q.Version, q.BrokerID, q.BrokerEpoch = 3, b.n.id, b.epoch
	for _, p := range batch {
		q.Topics = append(q.Topics, host.Proposal(p.r.key.topic, p.r.key.index, p.alter))
	}
	resp, f := a.once(t, q, max(b.n.c.cfg.Timers.Lag/2, 100*time.Millisecond))
	if f != answered {
		return f
	}
	r := resp.(*kmsg.AlterPartitionResponse)
	if r.ErrorCode != 0 {
		return unanswered // NOT_CONTROLLER leaves its fate open too (R26)
	}
	answers := map[key]kmsg.AlterPartitionResponseTopicPartition{} // looked up only
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			answers[key{t.TopidID, p.Partition}] = p
		}
	}
	for _, p := range batch {
		if o, found := answers[p.r.key]; found {
			p.r.step(partition.ISRAnswer{Code: o.ErrorCode, LeaderEpoch: p.alter.LeaderEpoch, PartitionEpoch: o.PartitionEpoch, ISR: o.ISR})
		}
	}
	return answered
}
