package host

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/partition"
)

// Proposal is a leader's proposal for an in-sync set as a part of an AlterPartition request (R16, KIP-903).
func Proposal(topic [16]byte, index int32, a partition.AlterISR) kmsg.AlterPartitionRequestTopic {
	p := kmsg.NewAlterPartitionRequestTopicPartition()
	p.Partition, p.LeaderEpoch, p.PartitionEpoch = index, a.LeaderEpoch, a.PartitionEpoch
	for _, m := range a.ISR {
		member := kmsg.NewAlterPartitionRequestTopicPartitionNewEpochISR()
		member.BrokerID, member.BrokerEpoch = m.Broker, m.Epoch
		p.NewEpochISR = append(p.NewEpochISR, member)
	}
	t := kmsg.NewAlterPartitionRequestTopic()
	t.TopicID = topic
	t.Partitions = append(t.Partitions, p)
	return t
}

// StillAsked tells whether a proposal is worth sending once more: the replica still leads the epoch that it was made in, over the state that it was made from.
func StillAsked(s partition.Status, a partition.AlterISR) bool {
	return s.Role == partition.Leader && s.LeaderEpoch == a.LeaderEpoch && s.PartitionEpoch == a.PartitionEpoch
}
