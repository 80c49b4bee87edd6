package node

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/partition"
	"ackproof/broker/wire"
)

// deleteRecords is a DeleteRecords request under way: it is answered when every in-sync replica has raised its log start (R25).
type deleteRecords struct {
	resp *kmsg.DeleteRecordsResponse
	left sync.WaitGroup
}

// deleteSlot is the place of one partition in the answer; it is the token of its input.
type deleteSlot struct {
	d    *deleteRecords
	into *kmsg.DeleteRecordsResponseTopicPartition
}

func (s *deleteSlot) reply(e partition.DeleteReply) {
	s.into.ErrorCode, s.into.LowWatermark = e.Code, e.LowWatermark
	s.d.left.Done()
}

func (n *Node) handleDeleteRecords(q *kmsg.DeleteRecordsRequest) wire.Pending {
	d := &deleteRecords{resp: q.ResponseKind().(*kmsg.DeleteRecordsResponse)}
	v := n.view.Load()
	deadline := time.Now().Add(time.Duration(max(q.TimeoutMillis, 0)) * time.Millisecond)
	d.resp.Topics = make([]kmsg.DeleteRecordsResponseTopic, len(q.Topics))
	for i, t := range q.Topics {
		out := &d.resp.Topics[i]
		out.Topic = t.Topic
		out.Partitions = make([]kmsg.DeleteRecordsResponseTopicPartition, len(t.Partitions))
		for j, p := range t.Partitions {
			into := &out.Partitions[j]
			into.Partition, into.LowWatermark = p.Partition, -1
			r, _, code := n.find(v, topicRef{name: t.Topic}, p.Partition)
			if code != nil {
				into.ErrorCode = code.Code
				continue
			}
			d.left.Add(1)
			r.step(partition.DeleteRecords{Token: &deleteSlot{d, into}, Offset: p.Offset, Deadline: deadline})
		}
	}
	return d
}

// Wait implements wire.Pending.
func (d *deleteRecords) Wait(ctx context.Context) (any, error) {
	done := make(chan struct{})
	go func() { d.left.Wait(); close(done) }() // ends at the latest with the deadline, by the replica's tick
	select {
	case <-done:
		return d.resp, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
