package kafka

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/workloads"
)

// Timestamps that ListOffsets takes for a place instead of a time.
const (
	Latest   int64 = -1
	Earliest int64 = -2
)

// Answer is what a broker said to a read. Code is 0 if it is good; NoAnswer or NoRoute if there was none.
type Answer struct {
	Code int16
	Node int32
	// Of Fetch.
	HighWatermark int64 // −1 unknown
	LogStart      int64 // −1 unknown
	Batches       []byte
	// Of Offset.
	Offset      int64
	LeaderEpoch int32 // in which it was given, −1 unknown
}

// Fetch reads from offset on. With node 0 it asks the believed leader and says in which epoch it believes; otherwise that node's own copy,
// up to the high watermark that the copy knows (KIP-392). maxWait is how long the broker may hold the request while there is nothing to
// read.
func (c *Client) Fetch(partition, node int32, offset int64, maxBytes int32, maxWait time.Duration) Answer {
	epoch := int32(-1)
	if node == 0 {
		leader, err := c.Leader(partition)
		if err != nil {
			return Answer{Code: NoRoute, HighWatermark: -1, LogStart: -1}
		}
		node, epoch = leader.Node, leader.Epoch
	}
	req := kmsg.NewPtrFetchRequest()
	req.Version = versionFetch
	req.MaxWaitMillis = int32(maxWait.Milliseconds())
	req.MinBytes = 1
	req.MaxBytes = maxBytes
	part := kmsg.NewFetchRequestTopicPartition()
	part.Partition = partition
	part.CurrentLeaderEpoch = epoch
	part.FetchOffset = offset
	part.PartitionMaxBytes = maxBytes
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.Partitions = c.cfg.Topic, []kmsg.FetchRequestTopicPartition{part}
	req.Topics = []kmsg.FetchRequestTopic{topic}
	none := Answer{Node: node, HighWatermark: -1, LogStart: -1}
	kresp, err := c.ask(node, req, maxWait+c.cfg.DialTimeout)
	if err != nil {
		none.Code = unanswered(err)
		return none
	}
	resp := kresp.(*kmsg.FetchResponse)
	if resp.ErrorCode != 0 {
		none.Code = resp.ErrorCode
		return none
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if t.Topic != c.cfg.Topic || p.Partition != partition {
				continue
			}
			if p.ErrorCode != 0 {
				none.Code = p.ErrorCode
				return none
			}
			return Answer{Node: node, HighWatermark: p.HighWatermark, LogStart: p.LogStartOffset, Batches: p.RecordBatches}
		}
	}
	none.Code = NoAnswer
	return none
}

// Offset asks for the position that timestamp (Latest, Earliest) names. With node 0 it asks the believed leader, which answers Latest with
// the visible end; otherwise that node's own copy, which answers Latest with the end of its log, whatever is visible of it.
func (c *Client) Offset(partition, node int32, timestamp int64) Answer {
	epoch, replica := int32(-1), int32(-2)
	if node == 0 {
		leader, err := c.Leader(partition)
		if err != nil {
			return Answer{Code: NoRoute, Offset: -1, LeaderEpoch: -1}
		}
		node, epoch, replica = leader.Node, leader.Epoch, -1
	}
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version = versionListOffsets
	req.ReplicaID = replica
	part := kmsg.NewListOffsetsRequestTopicPartition()
	part.Partition = partition
	part.CurrentLeaderEpoch = epoch
	part.Timestamp = timestamp
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic, topic.Partitions = c.cfg.Topic, []kmsg.ListOffsetsRequestTopicPartition{part}
	req.Topics = []kmsg.ListOffsetsRequestTopic{topic}
	none := Answer{Node: node, Offset: -1, LeaderEpoch: -1}
	kresp, err := c.ask(node, req, c.cfg.DialTimeout)
	if err != nil {
		none.Code = unanswered(err)
		return none
	}
	for _, t := range kresp.(*kmsg.ListOffsetsResponse).Topics {
		for _, p := range t.Partitions {
			if t.Topic == c.cfg.Topic && p.Partition == partition {
				if epoch < 0 {
					epoch = p.LeaderEpoch
				}
				// The broker has checked that it leads in the epoch that it was asked in (KIP-320). What it answers may be another one, in Kafka that of the record there.
				return Answer{Code: p.ErrorCode, Node: node, Offset: p.Offset, LeaderEpoch: epoch}
			}
		}
	}
	none.Code = NoAnswer
	return none
}

func unanswered(err error) int16 {
	if errors.Is(err, workloads.ErrNotSent) {
		return NoRoute
	}
	return NoAnswer
}
