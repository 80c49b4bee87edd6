package kafka

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const versionDeleteRecords = 2

// DeleteRecords asks the leader to delete everything below an offset, and gives it that long to do so. Code 0: Offset is where the log begins from then on.
// Any other code leaves it open whether records were deleted. In which leader epoch the answer was given is not known: neither request nor answer names one, and the
// leader may be in a newer epoch than the one that this client has heard of.
func (c *Client) DeleteRecords(partition int32, below int64, limit time.Duration) Answer {
	leader, err := c.Leader(partition)
	if err != nil {
		return Answer{Code: NoRoute, Offset: -1, LeaderEpoch: -1}
	}
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Version = versionDeleteRecords
	req.TimeoutMillis = int32(limit.Milliseconds())
	topic := kmsg.NewDeleteRecordsRequestTopic()
	topic.Topic = c.cfg.Topic
	part := kmsg.NewDeleteRecordsRequestTopicPartition()
	part.Partition, part.Offset = partition, below
	topic.Partitions = append(topic.Partitions, part)
	req.Topics = append(req.Topics, topic)
	none := Answer{Node: leader.Node, Offset: -1, LeaderEpoch: -1}
	kresp, err := c.ask(leader.Node, req, limit+c.cfg.DialTimeout)
	if err != nil {
		none.Code = unanswered(err)
		return none
	}
	for _, t := range kresp.(*kmsg.DeleteRecordsResponse).Topics {
		for _, p := range t.Partitions {
			if t.Topic == c.cfg.Topic && p.Partition == partition {
				return Answer{Code: p.ErrorCode, Node: leader.Node, Offset: p.LowWatermark, LeaderEpoch: -1}
			}
		}
	}
	none.Code = NoAnswer
	return none
}
