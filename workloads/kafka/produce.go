package kafka

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/workloads"
)

// retryPause is the pause between attempts; long enough for a broker to learn of an election, short beside every time-out of a broker.
const retryPause = 50 * time.Millisecond

// Produced is the outcome of one write, all its attempts taken together.
type Produced struct {
	Outcome  Outcome
	Code     int16 // of the last attempt, 0 if applied; NoAnswer, NoRoute
	Offset   int64 // of the first record if applied; −1: not told
	Node     int32 // that answered, or did not answer, last; 0: none was asked
	Attempts int
}

// Produce writes a batch. A batch of an idempotent producer is sent again, unchanged, until its fate is known or the deadline has passed:
// the broker recognises it, so a later answer settles the earlier attempts too. A plain batch is sent once. NotApplied means that no
// attempt can have been applied.
func (c *Client) Produce(b Batch, deadline time.Duration) Produced {
	return c.produce(b, c.produceRequest(b), c.env.Now()+deadline)
}

func (c *Client) produceRequest(b Batch) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version = versionProduce
	req.Acks = c.cfg.Acks
	req.TimeoutMillis = int32(c.cfg.RequestTimeout.Milliseconds())
	part := kmsg.NewProduceRequestTopicPartition()
	part.Partition = b.Partition
	part.Records = b.encode(c.cfg.StartMS + c.env.Now().Milliseconds())
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic, topic.Partitions = c.cfg.Topic, []kmsg.ProduceRequestTopicPartition{part}
	req.Topics = []kmsg.ProduceRequestTopic{topic}
	return req
}

// produce sends the request until its fate is known or the time has come.
func (c *Client) produce(b Batch, req *kmsg.ProduceRequest, until time.Duration) Produced {
	result := Produced{Outcome: NotApplied, Code: NoRoute, Offset: -1}
	for {
		one := c.produceOnce(b.Partition, req)
		one.Attempts = result.Attempts + 1
		if one.Outcome == Applied {
			return one
		}
		maybe := result.Outcome == Unknown || one.Outcome == Unknown
		result = one
		if maybe {
			result.Outcome = Unknown
		}
		c.Forget(b.Partition)
		again := b.ProducerID >= 0 && maybe && !fenced(one.Code)
		if !again || c.env.Now()+retryPause >= until {
			return result
		}
		c.env.Sleep(retryPause)
		if c.env.Stopped() && c.env.Now() >= until {
			return result
		}
	}
}

// fenced tells codes after which sending the same batch again cannot succeed.
func fenced(code int16) bool { return code == 45 || code == 47 || code == 59 }

// produceOnce sends the request once to the believed leader.
func (c *Client) produceOnce(partition int32, req *kmsg.ProduceRequest) Produced {
	leader, err := c.Leader(partition)
	if err != nil {
		return Produced{Outcome: NotApplied, Code: NoRoute, Offset: -1}
	}
	kresp, err := c.ask(leader.Node, req, c.cfg.RequestTimeout+c.cfg.DialTimeout)
	switch {
	case errors.Is(err, workloads.ErrNotSent):
		return Produced{Outcome: NotApplied, Code: NoRoute, Offset: -1, Node: leader.Node}
	case err != nil:
		return Produced{Outcome: Unknown, Code: NoAnswer, Offset: -1, Node: leader.Node}
	case kresp == nil: // acks=0: the broker does not answer; sent is all that there is to acknowledge
		return Produced{Outcome: Applied, Offset: -1, Node: leader.Node}
	}
	return c.produced(kresp, partition, leader.Node)
}

// produced reads the answer of a node.
func (c *Client) produced(kresp kmsg.Response, partition, node int32) Produced {
	for _, t := range kresp.(*kmsg.ProduceResponse).Topics {
		for _, p := range t.Partitions {
			if p.Partition != partition || t.Topic != c.cfg.Topic {
				continue
			}
			out := Produced{Outcome: ProduceOutcome(p.ErrorCode), Code: p.ErrorCode, Offset: -1, Node: node}
			if out.Outcome == Applied {
				out.Code = 0
				if p.ErrorCode == 0 {
					out.Offset = p.BaseOffset
				}
			}
			return out
		}
	}
	return Produced{Outcome: Unknown, Code: NoAnswer, Offset: -1, Node: node} // an answer about something else
}

// InitProducerID asks any broker for a new producer id, for idempotent writes.
func (c *Client) InitProducerID() (id int64, epoch int16, err error) {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version = versionInitProducerID
	if c.home == 0 {
		if err := c.refresh(); err != nil {
			return 0, 0, err
		}
	}
	node := c.home
	kresp, err := c.ask(node, req, c.cfg.RequestTimeout)
	if err != nil {
		c.home = 0
		return 0, 0, err
	}
	resp := kresp.(*kmsg.InitProducerIDResponse)
	if resp.ErrorCode != 0 {
		c.home = 0
		return 0, 0, fmt.Errorf("producer id from node %d: error code %d", node, resp.ErrorCode)
	}
	return resp.ProducerID, resp.ProducerEpoch, nil
}
