package node

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/host"
	"ackproof/broker/core/partition"
	"ackproof/broker/storage"
)

// latest is Kafka's special timestamp for the end that the asker may see.
const latest int64 = -1

func (n *Node) handleListOffsets(q *kmsg.ListOffsetsRequest) kmsg.Response {
	resp := q.ResponseKind().(*kmsg.ListOffsetsResponse)
	v := n.view.Load()
	for _, t := range q.Topics {
		out := kmsg.NewListOffsetsResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			o := kmsg.NewListOffsetsResponseTopicPartition()
			o.Partition, o.Offset, o.Timestamp, o.LeaderEpoch = p.Partition, -1, -1, -1
			if r, _, code := n.find(v, topicRef{name: t.Topic}, p.Partition); code != nil {
				o.ErrorCode = code.Code
			} else {
				n.listOffset(r, q, &p, &o)
			}
			out.Partitions = append(out.Partitions, o)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

func (n *Node) listOffset(r *replica, q *kmsg.ListOffsetsRequest, p *kmsg.ListOffsetsRequestTopicPartition, o *kmsg.ListOffsetsResponseTopicPartition) {
	ask := func(timestamp int64) partition.OffsetReply {
		var reply partition.OffsetReply
		r.step(partition.ListOffsets{Token: &reply, Replica: q.ReplicaID, LeaderEpoch: host.EpochOr(q.Version >= 4, p.CurrentLeaderEpoch), Timestamp: timestamp})
		return reply
	}
	if p.Timestamp < 0 {
		reply := ask(p.Timestamp)
		o.ErrorCode, o.Offset, o.LeaderEpoch = reply.Code, reply.Offset, reply.LeaderEpoch
		return
	}
	// By time: the log knows the batch, the replica knows what may be seen.
	end := ask(latest)
	if end.Code != 0 {
		o.ErrorCode = end.Code
		return
	}
	start := ask(earliest)
	if start.Code != 0 {
		o.ErrorCode = start.Code
		return
	}
	offset, timestamp, epoch, err := offsetAt(r, p.Timestamp)
	switch {
	case err != nil:
		n.log.Error("offset by time failed", "partition", r.String(), "timestamp", p.Timestamp, "error", err)
		o.ErrorCode = kerr.KafkaStorageError.Code
	case offset >= 0 && offset < end.Offset:
		o.Offset, o.Timestamp, o.LeaderEpoch = max(offset, start.Offset), timestamp, epoch
	}
}

// earliest is Kafka's special timestamp for the log start.
const earliest int64 = -2

// offsetAt finds the first record whose timestamp is at least ts (ms); offset −1 if there is none.
func offsetAt(r *replica, ts int64) (offset, timestamp int64, epoch int32, err error) {
	r.mu.Lock()
	log, closed := r.log, r.closed
	r.mu.Unlock()
	if closed {
		return -1, -1, -1, storage.ErrDead
	}
	h, found, err := log.OffsetAt(ts)
	if err != nil || !found {
		return -1, -1, -1, err
	}
	records, err := log.Read(h.BaseOffset, h.NextOffset(), 1)
	if err != nil {
		return -1, -1, -1, err
	}
	defer records.Release()
	raw, err := records.Bytes()
	if err != nil {
		return -1, -1, -1, err
	}
	offset, timestamp, err = firstSince(raw, ts)
	return offset, timestamp, h.LeaderEpoch, err
}
