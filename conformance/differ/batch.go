package main

import (
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// batch makes a record batch with n records; change is called before the checksum is taken.
func batch(n int32, change func(*kmsg.RecordBatch)) []byte {
	b := kmsg.NewRecordBatch()
	b.PartitionLeaderEpoch, b.Magic, b.LastOffsetDelta, b.NumRecords = -1, 2, n-1, n
	b.FirstTimestamp = time.Now().UnixMilli()
	b.MaxTimestamp = b.FirstTimestamp
	b.ProducerID, b.ProducerEpoch, b.FirstSequence = -1, -1, -1
	for i := range n {
		r := kmsg.NewRecord()
		r.OffsetDelta, r.Value = i, []byte("value")
		r.Length = int32(len(r.AppendTo(nil)) - 1) // a length of 0 takes one byte
		b.Records = r.AppendTo(b.Records)
	}
	if change != nil {
		change(&b)
	}
	b.Length = int32(49 + len(b.Records))
	raw := b.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	return raw
}

// produce is a request with one batch for partition p of the case's topic; in versions with topic ids, of that id.
func (t *talk) produce(p int32, records []byte) *kmsg.ProduceRequest {
	q := kmsg.NewPtrProduceRequest()
	q.Acks, q.TimeoutMillis = -1, 5000
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic, topic.TopicID = t.topic, t.id
	part := kmsg.NewProduceRequestTopicPartition()
	part.Partition, part.Records = p, records
	topic.Partitions = append(topic.Partitions, part)
	q.Topics = append(q.Topics, topic)
	return q
}

// fill appends n batches of ten records to the case's topic.
func (t *talk) fill(n int) {
	for range n {
		t.until("produce", func() bool {
			c := prepare[*kmsg.ProduceResponse](t, t.leader(), t.produce(0, batch(10, nil))).Topics[0].Partitions[0].ErrorCode
			if c != 0 && c != 6 { // NOT_LEADER_OR_FOLLOWER: the leader does not know yet; nothing was written
				t.fail("produce: %s", code(c))
			}
			return c == 0
		})
	}
}
