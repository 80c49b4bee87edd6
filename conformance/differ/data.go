package main

import (
	"bytes"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// another gives an id that no topic has.
var another = [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}

// dataCases are about records.
var dataCases = []testCase{
	{"produce", 0, func(t *talk) {
		t.make()
		leader := t.leader()
		t.ask("one batch", leader, t.produce(0, batch(10, nil)))
		t.ask("the next one", leader, t.produce(0, batch(10, nil)))
		q := t.produce(0, batch(1, nil))
		q.Acks = 1
		t.ask("acks=1", leader, q)
		q = t.produce(0, batch(1, nil))
		q.Acks = 2
		t.ask("acks=2", leader, q)
		t.ask("partition that is not there", leader, t.produce(7, batch(1, nil)))
		q = t.produce(0, batch(1, nil))
		q.Topics[0].Topic, q.Topics[0].TopicID = "nowhere", another
		t.ask("topic that is not there", leader, q)
		t.ask("follower", t.follower(), t.produce(0, batch(1, nil)))
		t.ask("no topics", leader, func() *kmsg.ProduceRequest { q := t.produce(0, nil); q.Topics = q.Topics[:0]; return q }())
	}},
	{"produce bad batches", 0, func(t *talk) {
		t.make()
		leader := t.leader()
		bad := batch(3, nil)
		bad[len(bad)-1] ^= 0xff
		t.ask("checksum", leader, t.produce(0, bad))
		t.ask("no records", leader, t.produce(0, []byte{}))
		t.ask("cut", leader, t.produce(0, batch(3, nil)[:70]))
		t.ask("empty batch", leader, t.produce(0, batch(0, nil)))
		t.ask("count beyond the records", leader, t.produce(0, batch(3, func(b *kmsg.RecordBatch) { b.NumRecords, b.LastOffsetDelta = 9, 8 })))
		t.ask("last offset delta", leader, t.produce(0, batch(3, func(b *kmsg.RecordBatch) { b.LastOffsetDelta = 7 })))
		t.ask("format 1", leader, t.produce(0, batch(3, func(b *kmsg.RecordBatch) { b.Magic = 1 })))
		t.ask("format 3", leader, t.produce(0, batch(3, func(b *kmsg.RecordBatch) { b.Magic = 3 })))
		t.ask("two batches", leader, t.produce(0, append(batch(3, nil), batch(3, nil)...)))
		t.ask("control batch", leader, t.produce(0, batch(1, func(b *kmsg.RecordBatch) { b.Attributes |= 1 << 5 })))
		t.ask("codec 7", leader, t.produce(0, batch(1, func(b *kmsg.RecordBatch) { b.Attributes |= 7 })))
		large := batch(1, func(b *kmsg.RecordBatch) {
			r := kmsg.NewRecord()
			r.Value = bytes.Repeat([]byte("x"), 2<<20)
			r.Length = int32(len(r.AppendTo(nil)) - 1)
			b.Records = r.AppendTo(nil)
		})
		t.ask("too large", leader, t.produce(0, large))
		t.ask("good after all that", leader, t.produce(0, batch(1, nil)))
	}},
	{"produce idempotent", 0, func(t *talk) {
		t.make()
		leader := t.leader()
		q := kmsg.NewPtrInitProducerIDRequest()
		q.TransactionTimeoutMillis, q.ProducerID, q.ProducerEpoch = 60_000, -1, -1
		id := prepare[*kmsg.InitProducerIDResponse](t, anyBroker, q)
		send := func(step string, sequence int32, epoch int16, pid int64) {
			t.ask(step, leader, t.produce(0, batch(2, func(b *kmsg.RecordBatch) { b.ProducerID, b.ProducerEpoch, b.FirstSequence = pid, epoch, sequence })))
		}
		send("first", 0, 0, id.ProducerID)
		send("second", 2, 0, id.ProducerID)
		send("first again", 0, 0, id.ProducerID)
		send("gap", 9, 0, id.ProducerID)
		send("next epoch", 0, 1, id.ProducerID)
		send("former epoch", 4, 0, id.ProducerID)
		send("unknown producer, first sequence 5", 5, 0, id.ProducerID+1_000_000)
		send("new epoch, first sequence 5", 5, 2, id.ProducerID)
		send("negative sequence", -1, 1, id.ProducerID)
	}},
	{"fetch", 1, func(t *talk) {
		t.make()
		t.fill(3)
		leader := t.leader()
		t.ask("from the start", leader, t.fetch(0))
		t.ask("within a batch", leader, t.fetch(15))
		t.ask("at the end", leader, t.fetch(30))
		t.ask("beyond the end", leader, t.fetch(31))
		t.ask("before the start", leader, t.fetch(-1))
		q := t.fetch(0)
		q.Topics[0].Partitions[0].Partition = 7
		t.ask("partition that is not there", leader, q)
		q = t.fetch(0)
		q.Topics[0].Topic, q.Topics[0].TopicID = "nowhere", another
		t.ask("topic that is not there", leader, q)
		for step, epoch := range map[string]int32{"epoch of the leader": 0, "later epoch": 5} {
			q = t.fetch(0)
			q.Topics[0].Partitions[0].CurrentLeaderEpoch = epoch
			t.ask(step, leader, q)
		}
		q = t.fetch(0)
		q.Topics[0].Partitions[0].PartitionMaxBytes = 1
		t.ask("one byte of a partition", leader, q)
		q = t.fetch(0)
		q.MaxBytes = 1
		t.ask("one byte in all", leader, q)
		q = t.fetch(0)
		q.IsolationLevel = 1
		t.ask("read committed", leader, q)
		q = t.fetch(0)
		q.Topics[0].Partitions[0].LastFetchedEpoch, q.Topics[0].Partitions[0].CurrentLeaderEpoch = 3, 0
		t.ask("diverging epoch", leader, q)
		q = t.fetch(0)
		q.Topics = q.Topics[:0]
		t.ask("nothing", leader, q)
	}},
	{"fetch from a follower", 1, func(t *talk) {
		t.make()
		t.fill(3)
		// A follower's own high watermark comes with its next fetch.
		t.until("the follower's high watermark", func() bool {
			q := t.fetch(0)
			r := prepare[*kmsg.FetchResponse](t, t.follower(), q)
			return len(r.Topics) == 1 && r.Topics[0].Partitions[0].HighWatermark == 30
		})
		t.ask("from the start", t.follower(), t.fetch(0))
	}},
	{"fetch sessions", 1, func(t *talk) {
		if t.v < 7 {
			return
		}
		t.make()
		t.fill(1)
		leader := t.leader()
		q := t.fetch(0)
		q.SessionID, q.SessionEpoch = 12345, 3
		t.ask("unknown session", leader, q)
		q = t.fetch(0)
		q.SessionID, q.SessionEpoch = 0, 5
		t.ask("no session, later epoch", leader, q)
	}},
	{"list offsets", 2, func(t *talk) {
		t.make()
		t.fill(2)
		leader := t.leader()
		for _, c := range []struct {
			step string
			at   int64
			from int16
		}{
			{"end", -1, 1}, {"start", -2, 1}, {"largest time", -3, 7}, {"local start", -4, 8}, {"end of what is elsewhere", -5, 9}, {"start of what is elsewhere", -6, 11},
			{"nothing that has a name", -9, 1}, {"time", 1_000_000_000_000, 1}, {"time to come", 9_000_000_000_000, 1},
		} {
			if t.v >= c.from {
				t.ask(c.step, leader, t.listOffsets(c.at))
			}
		}
		q := t.listOffsets(-1)
		q.Topics[0].Partitions[0].Partition = 7
		t.ask("partition that is not there", leader, q)
		q = t.listOffsets(-1)
		q.Topics[0].Topic = "nowhere"
		t.ask("topic that is not there", leader, q)
		t.ask("follower", t.follower(), t.listOffsets(-1))
		q = t.listOffsets(-1)
		q.ReplicaID = -2
		t.ask("follower, as a debugger", t.follower(), q)
		q = t.listOffsets(-1)
		q.Topics[0].Partitions[0].CurrentLeaderEpoch = 5
		t.ask("later epoch", leader, q)
		q = t.listOffsets(-1)
		q.IsolationLevel = 1
		t.ask("read committed", leader, q)
	}},
	{"delete records", 21, func(t *talk) {
		t.make()
		t.fill(2)
		leader := t.leader()
		t.ask("to 5", leader, t.deleteRecords(5))
		t.ask("to 3 after 5", leader, t.deleteRecords(3))
		t.ask("beyond the end", leader, t.deleteRecords(21))
		t.ask("negative", leader, t.deleteRecords(-2))
		q := t.deleteRecords(5)
		q.Topics[0].Partitions[0].Partition = 7
		t.ask("partition that is not there", leader, q)
		q = t.deleteRecords(5)
		q.Topics[0].Topic = "nowhere"
		t.ask("topic that is not there", leader, q)
		t.ask("follower", t.follower(), t.deleteRecords(5))
		t.ask("to the end", leader, t.deleteRecords(-1))
	}},
	{"offsets for leader epoch", 23, func(t *talk) {
		t.make()
		t.fill(2)
		leader := t.leader()
		t.ask("epoch 0", leader, t.epochEnd(0, -1))
		t.ask("epoch to come", leader, t.epochEnd(9, -1))
		t.ask("negative epoch", leader, t.epochEnd(-1, -1))
		t.ask("as of a later epoch", leader, t.epochEnd(0, 4))
		q := t.epochEnd(0, -1)
		q.Topics[0].Partitions[0].Partition = 7
		t.ask("partition that is not there", leader, q)
		q = t.epochEnd(0, -1)
		q.Topics[0].Topic = "nowhere"
		t.ask("topic that is not there", leader, q)
		t.ask("follower", t.follower(), t.epochEnd(0, -1))
	}},
	{"init producer id", 22, func(t *talk) {
		q := func() *kmsg.InitProducerIDRequest {
			q := kmsg.NewPtrInitProducerIDRequest()
			q.TransactionTimeoutMillis, q.ProducerID, q.ProducerEpoch = 60_000, -1, -1
			return q
		}
		t.ask("idempotent", anyBroker, q())
		none := q()
		none.TransactionalID = kmsg.StringPtr("")
		t.ask("empty transactional id", anyBroker, none)
		odd := q()
		odd.ProducerID = 5
		t.ask("id without epoch", anyBroker, odd)
		odd = q()
		odd.ProducerEpoch = 5
		t.ask("epoch without id", anyBroker, odd)
		odd.ProducerID = 5
		t.ask("id and epoch", anyBroker, odd)
	}},
}

func (t *talk) fetch(offset int64) *kmsg.FetchRequest {
	q := kmsg.NewPtrFetchRequest()
	q.ReplicaID, q.MaxWaitMillis, q.MinBytes, q.MaxBytes = -1, 0, 0, 1<<20
	q.SessionEpoch = -1
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = t.topic, t.id
	p := kmsg.NewFetchRequestTopicPartition()
	p.FetchOffset, p.PartitionMaxBytes = offset, 1<<20
	topic.Partitions = append(topic.Partitions, p)
	q.Topics = append(q.Topics, topic)
	return q
}

func (t *talk) listOffsets(at int64) *kmsg.ListOffsetsRequest {
	q := kmsg.NewPtrListOffsetsRequest()
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = t.topic
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp = at
	topic.Partitions = append(topic.Partitions, p)
	q.Topics, q.TimeoutMillis = append(q.Topics, topic), 5000
	return q
}

func (t *talk) deleteRecords(to int64) *kmsg.DeleteRecordsRequest {
	q := kmsg.NewPtrDeleteRecordsRequest()
	topic := kmsg.NewDeleteRecordsRequestTopic()
	topic.Topic = t.topic
	topic.Partitions = append(topic.Partitions, kmsg.DeleteRecordsRequestTopicPartition{Offset: to})
	q.Topics, q.TimeoutMillis = append(q.Topics, topic), 5000
	return q
}

func (t *talk) epochEnd(epoch, current int32) *kmsg.OffsetForLeaderEpochRequest {
	q := kmsg.NewPtrOffsetForLeaderEpochRequest()
	topic := kmsg.NewOffsetForLeaderEpochRequestTopic()
	topic.Topic = t.topic
	p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	p.LeaderEpoch, p.CurrentLeaderEpoch = epoch, current
	topic.Partitions = append(topic.Partitions, p)
	q.ReplicaID, q.Topics = -1, append(q.Topics, topic)
	return q
}
