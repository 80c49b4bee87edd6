package kafka

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/workloads"
)

// ProduceInOrder writes batches of one idempotent producer to one partition, all of them under way at once, as max.in.flight.requests.per.connection allows; between one
// and the next it waits for a time drawn up to apart, as a producer does whose records come one by one. Those
// whose first attempt is not answered with success are sent again one after the other, unchanged and in their order, until the fate of each is known or the
// deadline has passed. Outcomes are those of Produce. Once one is not known to be applied, none of those behind it is sent again.
func (c *Client) ProduceInOrder(batches []Batch, apart, deadline time.Duration) []Produced {
	until := c.env.Now() + deadline
	var requests []*kmsg.ProduceRequest
	for _, b := range batches {
		requests = append(requests, c.produceRequest(b))
	}
	out := c.together(batches[0].Partition, requests, apart)
	again := true
	for i, b := range batches {
		if out[i].Outcome == Applied {
			continue
		}
		c.Forget(b.Partition)
		if !again || out[i].Outcome == NotApplied && !slices.Contains(passing, out[i].Code) {
			again = false
			continue
		}
		first := out[i]
		if out[i] = c.produce(b, requests[i], until); out[i].Outcome != Applied {
			again = false
			if first.Outcome == Unknown {
				out[i].Outcome = Unknown
			}
		}
	}
	return out
}

// passing are refusals that may not be repeated: the in-sync set is too small, or an earlier batch was refused.
var passing = []int16{NoRoute, 19, 45}

// together sends the requests to the believed leader, each behind the other, and then takes the answers.
func (c *Client) together(partition int32, requests []*kmsg.ProduceRequest, apart time.Duration) []Produced {
	out := make([]Produced, len(requests))
	for i := range out {
		out[i] = Produced{Outcome: NotApplied, Code: NoRoute, Offset: -1}
	}
	leader, err := c.Leader(partition)
	if err != nil {
		return out
	}
	if c.conns[leader.Node] == nil { // the greeting opens it
		if _, err := c.ask(leader.Node, kmsg.NewPtrApiVersionsRequest(), c.cfg.DialTimeout); err != nil {
			return out
		}
	}
	conn, ok := c.conns[leader.Node].(workloads.Pipeline)
	if !ok {
		return out // one after the other, then
	}
	for i := range out {
		out[i] = Produced{Outcome: Unknown, Code: NoAnswer, Offset: -1, Node: leader.Node, Attempts: 1}
	}
	for i, req := range requests {
		if i > 0 && apart > 0 {
			c.env.Sleep(time.Duration(c.env.Rand().Int64N(int64(apart))))
		}
		if err := conn.Send(req); err != nil {
			c.drop(leader.Node)
			return out
		}
	}
	for i := range out {
		kresp, err := conn.Receive(c.cfg.RequestTimeout + c.cfg.DialTimeout)
		if err != nil {
			c.drop(leader.Node)
			return out
		}
		out[i] = c.produced(kresp, partition, leader.Node)
		out[i].Attempts = 1
	}
	return out
}
