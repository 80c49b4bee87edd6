package host

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/controller"
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

// Resignation is the proposal of a replica that has been elected and has lost its log: an in-sync set of nobody.
func Resignation(p *controller.Partition) partition.AlterISR {
	return partition.AlterISR{LeaderEpoch: p.LeaderEpoch, PartitionEpoch: p.PartitionEpoch}
}

// Resigns tells whether a proposal is one of those. It may be sent as often as one likes: it is about this one state of the partition.
func Resigns(a partition.AlterISR) bool { return len(a.ISR) == 0 }

// StillElected tells whether a resignation is worth sending once more: the partition is as it was, as far as this broker knows.
func StillElected(im *controller.Image, self int32, topic [16]byte, index int32, a partition.AlterISR) bool {
	t := im.TopicByID(topic)
	if t == nil || int(index) >= len(t.Partitions) {
		return false
	}
	p := t.Partitions[index]
	return p.Leader == self && p.LeaderEpoch == a.LeaderEpoch && p.PartitionEpoch == a.PartitionEpoch
}

// StillAsked tells whether a proposal is worth sending once more: the replica still leads the epoch that it was made in, over the state that it was made from.
func StillAsked(s partition.Status, a partition.AlterISR) bool {
	return s.Role == partition.Leader && s.LeaderEpoch == a.LeaderEpoch && s.PartitionEpoch == a.PartitionEpoch
}
