package node

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/group"
	"ackproof/broker/core/partition"
	"ackproof/broker/record"
	"ackproof/broker/wire"
)

// produce is a Produce request under way: every partition is stepped at once, in the order of the request, and the answer is complete when the last
// one has replied.
type produce struct {
	node  *Node
	frame *wire.Frame
	view  *view
	resp  *kmsg.ProduceResponse
	acks  int16
	began time.Time
	left  atomic.Int32 // replies that are missing, and one until there is somebody to tell
	ready func()       // sends the answer
}

// produceToken is the token of a partition.Produce.
type produceToken interface{ reply(partition.ProduceReply) }

// produceSlot is the place of one partition in the answer; it is the token of its Produce.
type produceSlot struct {
	p    *produce
	into *kmsg.ProduceResponseTopicPartition
}

// handleProduce appends. The batches go to the log without a copy: whoever keeps one holds the frame.
func (n *Node) handleProduce(ctx context.Context, q *kmsg.ProduceRequest, frame *wire.Frame) wire.Pending {
	p := &produce{node: n, frame: frame, view: n.view.Load(), resp: q.ResponseKind().(*kmsg.ProduceResponse), acks: q.Acks, began: time.Now()}
	p.left.Store(1)
	deadline := p.began.Add(time.Duration(max(q.TimeoutMillis, 0)) * time.Millisecond)
	p.resp.Topics = make([]kmsg.ProduceResponseTopic, len(q.Topics))
	for i := range q.Topics {
		in, out := &q.Topics[i], &p.resp.Topics[i]
		*out = kmsg.NewProduceResponseTopic()
		out.Topic, out.TopicID = in.Topic, in.TopicID
		out.Partitions = make([]kmsg.ProduceResponseTopicPartition, len(in.Partitions))
		for j := range in.Partitions {
			slot := &produceSlot{p, &out.Partitions[j]}
			*slot.into = kmsg.NewProduceResponseTopicPartition()
			slot.into.Partition = in.Partitions[j].Partition
			slot.into.BaseOffset, slot.into.LogStartOffset = -1, -1
			p.left.Add(1)
			n.producePartition(ctx, q, in, in.Partitions[j].Records, slot, deadline)
		}
	}
	p.frame = nil // it is the reader's, and who keeps a batch holds it
	return p
}

func (n *Node) producePartition(ctx context.Context, q *kmsg.ProduceRequest, topic *kmsg.ProduceRequestTopic, raw []byte, slot *produceSlot, deadline time.Time) {
	if q.TransactionID != nil {
		slot.fail(kerr.TransactionalIDAuthorizationFailed, "transactions are not served")
		return
	}
	if topic.Topic == group.Topic || topic.Topic == "" && internalID(slot.p.view, topic.TopicID) {
		slot.fail(kerr.InvalidTopicException, "clients cannot write to internal topics")
		return
	}
	if q.Acks < -1 || q.Acks > 1 {
		slot.fail(kerr.InvalidRequiredAcks, fmt.Sprintf("acks = %d, expected -1, 0 or 1", q.Acks))
		return
	}
	r, hint, code := n.findSoon(ctx, slot.p.view, topicRef{topic.Topic, topic.TopicID, q.Version >= 13}, slot.into.Partition, slot.p.began)
	if code != nil {
		if q.Version >= 10 { // KIP-951
			slot.into.CurrentLeader.LeaderID, slot.into.CurrentLeader.LeaderEpoch = hint.leader, hint.epoch
		}
		slot.fail(code, "")
		return
	}
	// Kafka: exactly one batch per partition since v3. S8: the checksum is checked here, once for all that follows on this broker.
	batch, rest, err := record.Parse(raw)
	switch {
	case errors.Is(err, record.ErrMagic):
		slot.fail(kerr.UnsupportedForMessageFormat, err.Error())
	case errors.Is(err, record.ErrShort), errors.Is(err, record.ErrRecords): // not damaged on the way: the same again would not help
		slot.fail(kerr.InvalidRecord, err.Error())
	case err != nil:
		slot.fail(kerr.CorruptMessage, err.Error())
	case batch.Codec() > 4:
		slot.fail(kerr.UnsupportedCompressionType, fmt.Sprintf("compression %d, expected 0 (none) to 4 (zstd)", batch.Codec()))
	case len(rest) > 0:
		slot.fail(kerr.InvalidRecord, fmt.Sprintf("%d bytes behind the batch, expected one batch per partition", len(rest)))
	default:
		if err := batch.CheckRecords(); err != nil {
			slot.fail(kerr.InvalidRecord, err.Error())
			return
		}
		batch.Hold(slot.p.frame)
		r.step(partition.Produce{Token: slot, Batch: batch, Acks: q.Acks, Deadline: deadline})
	}
}

func internalID(v *view, id [16]byte) bool {
	t := v.byID[id]
	return t != nil && t.Name == group.Topic
}

// fail answers the partition without asking its replica.
func (s *produceSlot) fail(code *kerr.Error, message string) {
	s.into.ErrorCode = code.Code
	if message != "" {
		s.into.ErrorMessage = &message
	}
	s.p.finish()
}

// reply takes the replica's answer.
func (s *produceSlot) reply(e partition.ProduceReply) {
	s.into.ErrorCode, s.into.BaseOffset, s.into.LogStartOffset = e.Code, e.BaseOffset, e.LogStart
	if s.p.resp.Version >= 10 { // KIP-951
		s.into.CurrentLeader.LeaderID, s.into.CurrentLeader.LeaderEpoch = e.Leader, e.LeaderEpoch
	}
	s.p.finish()
}

// finish counts a reply down.
func (p *produce) finish() {
	if p.left.Add(-1) == 0 {
		p.ready()
	}
}

// errAcks0 closes the connection of a producer that does not listen to answers: that is how Kafka tells it of an error.
var errAcks0 = errors.New("a request with acks=0 failed")

// Then implements wire.Prompt.
func (p *produce) Then(ready func()) {
	p.ready = ready
	p.finish()
}

// Wait implements wire.Pending.
func (p *produce) Wait(ctx context.Context) (any, error) {
	if p.left.Load() > 0 {
		return nil, ctx.Err()
	}
	hints := hints{view: p.view}
	for i := range p.resp.Topics {
		for j := range p.resp.Topics[i].Partitions {
			part := &p.resp.Topics[i].Partitions[j]
			if p.acks == 0 && part.ErrorCode != 0 {
				return nil, fmt.Errorf("%w: %w", errAcks0, kerr.ErrorForCode(part.ErrorCode))
			}
			hints.add(part.CurrentLeader.LeaderID)
		}
	}
	if p.acks == 0 {
		return nil, nil
	}
	if p.resp.Version >= 10 {
		for _, b := range hints.brokers() {
			p.resp.Brokers = append(p.resp.Brokers, kmsg.ProduceResponseBroker{NodeID: b.ID, Host: b.Host, Port: b.Port, Rack: rack(b)})
		}
	}
	return p.resp, nil
}
