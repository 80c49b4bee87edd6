package host

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/controller"
	"ackproof/broker/core/group"
)

// DescribeTopic is a topic as a Metadata answer tells it.
func DescribeTopic(im *controller.Image, t *controller.Topic) kmsg.MetadataResponseTopic {
	out := kmsg.NewMetadataResponseTopic()
	out.Topic, out.TopicID, out.IsInternal = kmsg.StringPtr(t.Name), t.ID, t.Name == group.Topic
	for i, p := range t.Partitions {
		o := kmsg.NewMetadataResponseTopicPartition()
		o.Partition, o.Leader, o.LeaderEpoch = int32(i), p.Leader, p.LeaderEpoch
		if p.Leader < 0 {
			o.ErrorCode = kerr.LeaderNotAvailable.Code
		}
		o.Replicas, o.ISR, o.OfflineReplicas = slices.Clone(p.Replicas), slices.Clone(p.ISR), Offline(im, p)
		out.Partitions = append(out.Partitions, o)
	}
	return out
}

// Offline lists the replicas on brokers that are fenced or unknown.
func Offline(im *controller.Image, p *controller.Partition) []int32 {
	out := []int32{}
	for _, id := range p.Replicas {
		if b := im.Brokers[id]; b == nil || b.Fenced {
			out = append(out, id)
		}
	}
	return out
}
