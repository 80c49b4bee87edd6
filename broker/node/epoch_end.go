package node

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/partition"
)

// handleEpochEnd answers OffsetForLeaderEpoch (R9).
func (n *Node) handleEpochEnd(q *kmsg.OffsetForLeaderEpochRequest) kmsg.Response {
	resp := q.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
	v := n.view.Load()
	for _, t := range q.Topics {
		out := kmsg.NewOffsetForLeaderEpochResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			o := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			o.Partition, o.LeaderEpoch, o.EndOffset = p.Partition, -1, -1
			if r, _, code := n.find(v, topicRef{name: t.Topic}, p.Partition); code != nil {
				o.ErrorCode = code.Code
			} else {
				var reply partition.EpochEndReply
				r.step(partition.EpochEnd{Token: &reply, LeaderEpoch: p.CurrentLeaderEpoch, Epoch: p.LeaderEpoch})
				o.ErrorCode, o.LeaderEpoch, o.EndOffset = reply.Code, reply.Epoch, reply.EndOffset
			}
			out.Partitions = append(out.Partitions, o)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}
