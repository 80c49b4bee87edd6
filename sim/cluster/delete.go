package cluster

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/partition"
)

// deletion is a DeleteRecords request under way: it is answered when every in-sync replica has raised its log start (R25).
type deletion struct {
	c    *turn
	resp *kmsg.DeleteRecordsResponse
	left int
}

// deleteSlot is the place of one partition in the answer; it is the token of its input.
type deleteSlot struct {
	d    *deletion
	into *kmsg.DeleteRecordsResponseTopicPartition
}

func (s *deleteSlot) reply(e partition.DeleteReply) {
	s.into.ErrorCode, s.into.LowWatermark = e.Code, e.LowWatermark
	s.d.finish()
}

func (d *deletion) finish() {
	if d.left--; d.left == 0 {
		d.c.Reply(d.resp)
	}
}

func (b *broker) deleteRecords(c *turn, q *kmsg.DeleteRecordsRequest) {
	d := &deletion{c: c, resp: q.ResponseKind().(*kmsg.DeleteRecordsResponse), left: 1}
	deadline := b.n.clock().Add(time.Duration(max(q.TimeoutMillis, 0)) * time.Millisecond)
	d.resp.Topics = make([]kmsg.DeleteRecordsResponseTopic, len(q.Topics))
	for i, t := range q.Topics {
		out := &d.resp.Topics[i]
		out.Topic = t.Topic
		out.Partitions = make([]kmsg.DeleteRecordsResponseTopicPartition, len(t.Partitions))
		for j, p := range t.Partitions {
			into := &out.Partitions[j]
			into.Partition, into.LowWatermark = p.Partition, -1
			r, code, _ := b.lookUp(t.Topic, [16]byte{}, false, p.Partition)
			if code != 0 {
				into.ErrorCode = code
				continue
			}
			d.left++
			r.step(partition.DeleteRecords{Token: &deleteSlot{d, into}, Offset: p.Offset, Deadline: deadline})
		}
	}
	d.finish()
}
