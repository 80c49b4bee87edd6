package node

import (
	"math"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/host"
	"ackproof/broker/core/partition"
	"ackproof/broker/storage"
)

// Kafka's special timestamps.
const (
	latest          int64 = -1 // the end that the asker may see
	earliest        int64 = -2 // the log start
	maxTimestamp    int64 = -3 // the first record with the largest timestamp (KIP-734)
	earliestLocal   int64 = -4 // the start of what is not elsewhere (KIP-405): the log start
	latestTiered    int64 = -5 // the end of what is elsewhere (KIP-1005)
	earliestPending int64 = -6 // the start of what is to go elsewhere (KIP-1023)
)

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
	switch p.Timestamp {
	case latest, earliest, earliestLocal:
		reply := ask(p.Timestamp)
		o.ErrorCode, o.Offset, o.LeaderEpoch = reply.Code, reply.Offset, reply.LeaderEpoch
		return
	case latestTiered, earliestPending: // nothing of a log lies elsewhere
		o.ErrorCode = ask(latest).Code
		return
	}
	if p.Timestamp < 0 && p.Timestamp != maxTimestamp {
		o.ErrorCode = kerr.UnsupportedVersion.Code // as Kafka says
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
	at := p.Timestamp
	var err error
	if at == maxTimestamp {
		at, err = largestTime(r)
	}
	offset, timestamp, epoch := int64(-1), int64(-1), int32(-1)
	if err == nil && at >= 0 {
		offset, timestamp, epoch, err = offsetAt(r, at)
	}
	switch {
	case err != nil:
		n.log.Error("offset by time failed", "partition", r.String(), "timestamp", p.Timestamp, "error", err)
		o.ErrorCode = kerr.KafkaStorageError.Code
	case offset >= 0 && offset < end.Offset:
		o.Offset, o.Timestamp, o.LeaderEpoch = max(offset, start.Offset), timestamp, epoch
	}
}

// largestTime finds the largest timestamp (ms) in a log, −1 if it holds no record with one. It asks the time index, at most once for each bit of a time.
func largestTime(r *replica) (int64, error) {
	r.mu.Lock()
	log, closed := r.log, r.closed
	r.mu.Unlock()
	if closed {
		return -1, storage.ErrDead
	}
	there, none := int64(-1), int64(math.MaxInt64-1) // their difference fits
	for none-there > 1 {
		at := there + (none-there)/2
		h, found, err := log.OffsetAt(at)
		switch {
		case err != nil:
			return -1, err
		case found:
			there = h.MaxTimestamp
		default:
			none = at
		}
	}
	return there, nil
}

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
