package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/record"
)

// produceRequest makes a Produce request v13 of one batch.
func produceRequest(topic [16]byte, partition int32, acks int16, values ...string) *kmsg.ProduceRequest {
	q := kmsg.NewPtrProduceRequest()
	q.Version, q.Acks, q.TimeoutMillis = 13, acks, 10_000
	t := kmsg.NewProduceRequestTopic()
	t.TopicID = topic
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition = partition
	raw := make([][]byte, len(values))
	for i, v := range values {
		raw[i] = []byte(v)
	}
	p.Records = record.Build(record.Spec{ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, Timestamp: time.Now().UnixMilli(), Values: raw}).Bytes()
	t.Partitions = append(t.Partitions, p)
	q.Topics = append(q.Topics, t)
	return q
}

func fetchRequest(version int16, name string, topic [16]byte, offset int64) *kmsg.FetchRequest {
	q := kmsg.NewPtrFetchRequest()
	q.Version, q.MaxBytes, q.MinBytes, q.ReplicaID = version, 1<<20, 1, -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = name, topic
	p := kmsg.NewFetchRequestTopicPartition()
	p.FetchOffset, p.PartitionMaxBytes = offset, 1<<20
	t.Partitions = append(t.Partitions, p)
	q.Topics = append(q.Topics, t)
	return q
}

func fetched(resp kmsg.Response) kmsg.FetchResponseTopicPartition {
	return resp.(*kmsg.FetchResponse).Topics[0].Partitions[0]
}

// TestSingleNode covers what one broker answers, on one cluster for speed.
func TestSingleNode(t *testing.T) {
	c := newCluster(t, 1, "message.max.bytes=100000")
	c.create("t", 1, 1)
	admin := kadm.NewClient(c.client())
	id := c.nodes[0].view.Load().Topics["t"].ID
	begin := time.Now().UnixMilli()
	for _, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()} {
		c.produce(c.client(kgo.ProducerBatchCompression(codec)), "t", 0, "v", 10)
	}

	t.Run("all codecs are read back", func(t *testing.T) {
		for i, got := range c.consume("t", 0, 50) {
			if want := fmt.Sprintf("v-%d", i%10); got != want {
				t.Errorf("record %d is %s, want %s", i, got, want)
			}
		}
	})
	t.Run("produce errors", func(t *testing.T) {
		code := func(change func(q *kmsg.ProduceRequest)) int16 {
			q := produceRequest(id, 0, 1, "x")
			change(q)
			return c.ask(0, q).(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode
		}
		part := func(q *kmsg.ProduceRequest) *kmsg.ProduceRequestTopicPartition { return &q.Topics[0].Partitions[0] }
		for name, tc := range map[string]struct {
			change func(q *kmsg.ProduceRequest)
			want   *kerr.Error
		}{
			"acks=2":            {func(q *kmsg.ProduceRequest) { q.Acks = 2 }, kerr.InvalidRequiredAcks},
			"transactional":     {func(q *kmsg.ProduceRequest) { q.TransactionID = kmsg.StringPtr("x") }, kerr.TransactionalIDAuthorizationFailed},
			"flipped bit":       {func(q *kmsg.ProduceRequest) { part(q).Records[65] ^= 1 }, kerr.CorruptMessage},
			"cut":               {func(q *kmsg.ProduceRequest) { part(q).Records = part(q).Records[:62] }, kerr.InvalidRecord},
			"null":              {func(q *kmsg.ProduceRequest) { part(q).Records = nil }, kerr.InvalidRecord},
			"no records":        {func(q *kmsg.ProduceRequest) { part(q).Records = withCount(part(q).Records, 0) }, kerr.InvalidRecord},
			"one record of two": {func(q *kmsg.ProduceRequest) { part(q).Records = withCount(part(q).Records, 2) }, kerr.InvalidRecord},
			"two records as one": {func(q *kmsg.ProduceRequest) {
				*q = *produceRequest(id, 0, 1, "x", "y")
				part(q).Records = withCount(part(q).Records, 1)
			}, kerr.InvalidRecord},
			"two batches":       {func(q *kmsg.ProduceRequest) { part(q).Records = slices.Concat(part(q).Records, part(q).Records) }, kerr.InvalidRecord},
			"magic 1":           {func(q *kmsg.ProduceRequest) { part(q).Records[16] = 1 }, kerr.UnsupportedForMessageFormat},
			"codec 7":           {func(q *kmsg.ProduceRequest) { part(q).Records = withCodec(part(q).Records, 7) }, kerr.UnsupportedCompressionType},
			"unknown topic id":  {func(q *kmsg.ProduceRequest) { q.Topics[0].TopicID[3] ^= 1 }, kerr.UnknownTopicID},
			"unknown partition": {func(q *kmsg.ProduceRequest) { part(q).Partition = 9 }, kerr.UnknownTopicOrPartition},
			"negative":          {func(q *kmsg.ProduceRequest) { part(q).Partition = -1 }, kerr.UnknownTopicOrPartition},
			"too large": {func(q *kmsg.ProduceRequest) {
				*q = *produceRequest(id, 0, 1, string(make([]byte, 100_001)))
			}, kerr.MessageTooLarge},
		} {
			if got := code(tc.change); got != tc.want.Code {
				t.Errorf("%s: %v, want %v", name, kerr.ErrorForCode(got), tc.want)
			}
		}
		c.consume("t", 0, 50) // and nothing of that is there
	})
	t.Run("fetch waits for min bytes", func(t *testing.T) {
		q := fetchRequest(12, "t", id, 50)
		q.MinBytes, q.MaxWaitMillis = 300, 20_000
		answer := make(chan kmsg.FetchResponseTopicPartition, 1)
		go func() { answer <- fetched(c.ask(0, q)) }()
		plain := c.client(kgo.ProducerBatchCompression(kgo.NoCompression()))
		c.produce(plain, "t", 0, "small", 1)
		c.produce(plain, "t", 0, string(make([]byte, 300)), 1)
		select {
		case got := <-answer:
			if len(got.RecordBatches) < 300 {
				t.Errorf("%d bytes, asked for at least 300", len(got.RecordBatches))
			}
		case <-time.After(10 * time.Second):
			t.Error("no answer though there is enough")
		}
	})
	t.Run("fetch gives up waiting", func(t *testing.T) {
		q := fetchRequest(12, "t", id, 52)
		q.MaxWaitMillis = 50
		if got := fetched(c.ask(0, q)); got.ErrorCode != 0 || len(got.RecordBatches) > 0 || got.HighWatermark != 52 {
			t.Errorf("code %d, %d bytes, high watermark %d", got.ErrorCode, len(got.RecordBatches), got.HighWatermark)
		}
	})
	t.Run("fetch errors", func(t *testing.T) {
		if got := fetched(c.ask(0, fetchRequest(12, "t", id, 5000))); got.ErrorCode != kerr.OffsetOutOfRange.Code {
			t.Errorf("beyond the end: %v", kerr.ErrorForCode(got.ErrorCode))
		}
		if got := fetched(c.ask(0, fetchRequest(13, "", [16]byte{9}, 0))); got.ErrorCode != kerr.UnknownTopicID.Code {
			t.Errorf("unknown id: %v", kerr.ErrorForCode(got.ErrorCode))
		}
		if got := fetched(c.ask(0, fetchRequest(12, "nowhere", [16]byte{}, 0))); got.AbortedTransactions == nil {
			t.Error("unknown topic: no list of aborted transactions, Kafka gives an empty one")
		}
		q := fetchRequest(12, "t", id, 0)
		q.Topics[0].Partitions[0].CurrentLeaderEpoch = 99
		if got := fetched(c.ask(0, q)); got.ErrorCode != kerr.UnknownLeaderEpoch.Code {
			t.Errorf("epoch 99: %v", kerr.ErrorForCode(got.ErrorCode))
		}
	})
	t.Run("every fetch version gives the same records", func(t *testing.T) {
		for v := int16(4); v <= 18; v++ {
			got := fetched(c.ask(0, fetchRequest(v, "t", id, 0)))
			if got.ErrorCode != 0 || len(got.RecordBatches) == 0 {
				t.Errorf("v%d: code %d, %d bytes", v, got.ErrorCode, len(got.RecordBatches))
			}
			if got.AbortedTransactions != nil {
				t.Errorf("v%d: a list of aborted transactions, though not only committed records were asked for", v)
			}
			q := fetchRequest(v, "t", id, 0)
			q.IsolationLevel = 1
			if fetched(c.ask(0, q)).AbortedTransactions == nil {
				t.Errorf("v%d: no list of aborted transactions, though only committed records were asked for", v)
			}
		}
	})
	t.Run("offsets", func(t *testing.T) {
		for name, tc := range map[string]struct{ at, want int64 }{"earliest": {-2, 0}, "latest": {-1, 52}, "earliest here": {-4, 0}, "latest elsewhere": {-5, -1}, "before all": {begin - 1, 0}, "after all": {begin + 3_600_000, -1}} {
			q := kmsg.NewPtrListOffsetsRequest()
			q.Version, q.ReplicaID = 7, -1
			q.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: "t", Partitions: []kmsg.ListOffsetsRequestTopicPartition{{CurrentLeaderEpoch: -1, Timestamp: tc.at}}}}
			if got := c.ask(0, q).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]; got.ErrorCode != 0 || got.Offset != tc.want {
				t.Errorf("%s: offset %d, code %d; want %d", name, got.Offset, got.ErrorCode, tc.want)
			}
		}
	})
	t.Run("offset of the largest time", func(t *testing.T) {
		q := kmsg.NewPtrListOffsetsRequest()
		q.Version, q.ReplicaID = 7, -1
		part := kmsg.NewListOffsetsRequestTopicPartition()
		part.Timestamp = -3
		q.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: "t", Partitions: []kmsg.ListOffsetsRequestTopicPartition{part}}}
		got := c.ask(0, q).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
		var largest int64
		all := fetched(c.ask(0, fetchRequest(12, "t", id, 0)))
		for raw := all.RecordBatches; len(raw) > 0; {
			b, rest, err := record.Parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			largest, raw = max(largest, b.MaxTimestamp), rest
		}
		if got.ErrorCode != 0 || got.Timestamp != largest || got.Offset < 0 || got.Offset >= 52 {
			t.Errorf("offset %d, time %d, code %d; the log's largest time is %d", got.Offset, got.Timestamp, got.ErrorCode, largest)
		}
		q.Topics[0].Partitions[0].Timestamp = -9
		if got := c.ask(0, q).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]; got.ErrorCode != kerr.UnsupportedVersion.Code {
			t.Errorf("timestamp -9: %v", kerr.ErrorForCode(got.ErrorCode))
		}
	})
	t.Run("end of an epoch", func(t *testing.T) {
		q := kmsg.NewPtrOffsetForLeaderEpochRequest()
		q.Version, q.ReplicaID = 4, -1
		q.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{{CurrentLeaderEpoch: -1, LeaderEpoch: 0}}}}
		if got := c.ask(0, q).(*kmsg.OffsetForLeaderEpochResponse).Topics[0].Partitions[0]; got.ErrorCode != 0 || got.EndOffset != 52 || got.LeaderEpoch != 0 {
			t.Errorf("%+v, want end 52 of epoch 0", got)
		}
	})
	t.Run("producer ids", func(t *testing.T) {
		seen := map[int64]bool{}
		for range 3 {
			q := kmsg.NewPtrInitProducerIDRequest()
			q.Version = 4
			r := c.ask(0, q).(*kmsg.InitProducerIDResponse)
			if r.ErrorCode != 0 || seen[r.ProducerID] || r.ProducerID < 0 {
				t.Errorf("%+v, after %v", r, seen)
			}
			seen[r.ProducerID] = true
		}
		for name, tc := range map[string]struct {
			version int16
			tx      *string
			id      int64
			epoch   int16
			want    *kerr.Error
		}{
			"transactional":            {4, kmsg.StringPtr("tx"), -1, -1, kerr.TransactionalIDAuthorizationFailed},
			"empty transactional id":   {4, kmsg.StringPtr(""), -1, -1, kerr.InvalidRequest},
			"the same in v0":           {0, kmsg.StringPtr(""), -1, -1, kerr.InvalidRequest},
			"id without epoch":         {3, nil, 5, -1, kerr.InvalidRequest},
			"epoch without id":         {5, nil, -1, 5, kerr.InvalidRequest},
			"id that v2 does not have": {2, nil, 5, -1, nil},
			"id and epoch":             {4, nil, 5, 0, nil},
		} {
			q := kmsg.NewPtrInitProducerIDRequest()
			q.Version, q.TransactionalID, q.ProducerID, q.ProducerEpoch = tc.version, tc.tx, tc.id, tc.epoch
			want := int16(0)
			if tc.want != nil {
				want = tc.want.Code
			}
			if r := c.ask(0, q).(*kmsg.InitProducerIDResponse); r.ErrorCode != want || (r.ProducerID >= 0) != (want == 0) || (r.ProducerEpoch >= 0) != (want == 0) {
				t.Errorf("%s: code %d, id %d, epoch %d; want code %d", name, r.ErrorCode, r.ProducerID, r.ProducerEpoch, want)
			}
		}
	})
	t.Run("metadata", func(t *testing.T) {
		q := kmsg.NewPtrMetadataRequest()
		q.Version = 12
		q.Topics = []kmsg.MetadataRequestTopic{{TopicID: id}, {TopicID: [16]byte{7}}, {Topic: kmsg.StringPtr("bad name")}, {Topic: kmsg.StringPtr("none")}}
		r := c.ask(0, q).(*kmsg.MetadataResponse)
		var codes []int16
		for _, t := range r.Topics {
			codes = append(codes, t.ErrorCode)
		}
		if want := []int16{0, kerr.UnknownTopicID.Code, kerr.InvalidTopicException.Code, kerr.UnknownTopicOrPartition.Code}; !slices.Equal(codes, want) {
			t.Errorf("codes %v, want %v", codes, want)
		}
		if r.ControllerID != 1 || len(r.Brokers) != 1 || *r.Topics[0].Topic != "t" {
			t.Errorf("%+v", r)
		}
		q.Topics, q.AllowAutoTopicCreation = []kmsg.MetadataRequestTopic{{Topic: kmsg.StringPtr("auto")}}, true
		if got := c.ask(0, q).(*kmsg.MetadataResponse).Topics[0]; got.ErrorCode != 0 || len(got.Partitions) != 3 {
			t.Errorf("auto-created: %+v", got)
		}
	})
	t.Run("configurations", func(t *testing.T) {
		if _, err := admin.AlterTopicConfigs(c.ctx(), []kadm.AlterConfig{{Name: "retention.ms", Value: kadm.StringPtr("1234")}}, "t"); err != nil {
			t.Fatal(err)
		}
		await(t, "retention.ms of t is 1234", func() bool {
			configs, err := admin.DescribeTopicConfigs(c.ctx(), "t")
			if err != nil || len(configs) != 1 || configs[0].Err != nil {
				t.Fatal(configs, err)
			}
			values := map[string]string{}
			for _, k := range configs[0].Configs {
				values[k.Key] = k.MaybeValue()
			}
			return values["retention.ms"] == "1234" && values["max.message.bytes"] == "100000"
		})
		// The older request replaces all of them.
		if r, err := admin.AlterTopicConfigsState(c.ctx(), []kadm.AlterConfig{{Name: "segment.bytes", Value: kadm.StringPtr("5678")}}, "t"); err != nil || r[0].Err != nil {
			t.Fatal(r, err)
		}
		await(t, "segment.bytes of t is 5678, and retention.ms is not set", func() bool {
			configs, err := admin.DescribeTopicConfigs(c.ctx(), "t")
			if err != nil || len(configs) != 1 || configs[0].Err != nil {
				t.Fatal(configs, err)
			}
			values := map[string]string{}
			for _, k := range configs[0].Configs {
				values[k.Key] = k.MaybeValue()
			}
			return values["retention.ms"] == "604800000" && values["segment.bytes"] == "5678"
		})
		twice := kmsg.NewPtrIncrementalAlterConfigsRequest()
		twice.Version = 1
		value := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		value.Name, value.Value = "retention.ms", kmsg.StringPtr("5")
		for _, name := range []string{"t", "none", "t"} {
			twice.Resources = append(twice.Resources, kmsg.IncrementalAlterConfigsRequestResource{
				ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: name, Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{value},
			})
		}
		var codes []int16
		for _, r := range c.ask(0, twice).(*kmsg.IncrementalAlterConfigsResponse).Resources {
			codes = append(codes, r.ErrorCode)
		}
		if want := []int16{kerr.InvalidRequest.Code, kerr.UnknownTopicOrPartition.Code, kerr.InvalidRequest.Code}; !slices.Equal(codes, want) {
			t.Errorf("a topic named twice: codes %v, want %v", codes, want)
		}
		if r, err := admin.AlterTopicConfigsState(c.ctx(), []kadm.AlterConfig{{Name: "no.such.key", Value: kadm.StringPtr("1")}}, "t"); err != nil || !errors.Is(r[0].Err, kerr.InvalidConfig) {
			t.Errorf("an unknown configuration: %v, %v", r, err)
		}
		broker, err := admin.DescribeBrokerConfigs(c.ctx(), 1)
		if err != nil || broker[0].Err != nil || len(broker[0].Configs) < 20 {
			t.Errorf("%v, %v", broker, err)
		}
	})
	t.Run("delete records", func(t *testing.T) {
		deleted, err := admin.DeleteRecords(c.ctx(), kadm.Offsets{"t": {0: kadm.Offset{Topic: "t", At: 20}}})
		if got, _ := deleted.Lookup("t", 0); err != nil || got.Err != nil || got.LowWatermark != 20 {
			t.Errorf("%+v, %v", got, err)
		}
		if got := fetched(c.ask(0, fetchRequest(12, "t", id, 3))); got.ErrorCode != kerr.OffsetOutOfRange.Code {
			t.Errorf("a deleted offset: %v", kerr.ErrorForCode(got.ErrorCode))
		}
	})
	t.Run("topics come and go", func(t *testing.T) {
		if _, err := admin.CreateTopic(c.ctx(), 1, 1, nil, "t"); !errors.Is(err, kerr.TopicAlreadyExists) {
			t.Errorf("made twice: %v", err)
		}
		if r, err := admin.CreatePartitions(c.ctx(), 2, "t"); err != nil || r["t"].Err != nil {
			t.Errorf("%v, %v", r, err)
		}
		await(t, "a second partition", func() bool { return c.exists(0, "t-2") || c.exists(0, "t-1") })
		if r, err := admin.DeleteTopics(c.ctx(), "t"); err != nil || r["t"].Err != nil {
			t.Errorf("%v, %v", r, err)
		}
		c.create("t", 1, 1)
		await(t, "the second partition's folder goes", func() bool { return !c.exists(0, "t-1") })
		// R24: neither the name nor a folder of that name brings the old records back.
		await(t, "the topic is there again, under another id", func() bool {
			again := c.nodes[0].view.Load().Topics["t"]
			return again != nil && again.ID != id
		})
		if got := c.ask(0, produceRequest(id, 0, 1, "x")).(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode; got != kerr.UnknownTopicID.Code {
			t.Errorf("produce to the old id: %v", kerr.ErrorForCode(got))
		}
	})
	t.Run("pages of partitions", func(t *testing.T) {
		c.create("page", 5, 1)
		var got []int32
		q := kmsg.NewPtrDescribeTopicPartitionsRequest()
		q.Topics, q.ResponsePartitionLimit = []kmsg.DescribeTopicPartitionsRequestTopic{{Topic: "page"}}, 2
		for range 10 {
			r := c.ask(0, q).(*kmsg.DescribeTopicPartitionsResponse)
			for _, p := range r.Topics[0].Partitions {
				got = append(got, p.Partition)
			}
			if r.NextCursor == nil {
				break
			}
			q.Cursor = &kmsg.DescribeTopicPartitionsRequestCursor{Topic: r.NextCursor.Topic, Partition: r.NextCursor.Partition}
		}
		if !slices.Equal(got, []int32{0, 1, 2, 3, 4}) {
			t.Errorf("partitions %v", got)
		}
	})
	t.Run("who leads the control plane", func(t *testing.T) {
		f := kmsg.NewPtrFindCoordinatorRequest()
		f.Version, f.CoordinatorType, f.CoordinatorKeys = 6, 7, []string{"g"}
		if got := c.ask(0, f).(*kmsg.FindCoordinatorResponse).Coordinators[0].ErrorCode; got != kerr.InvalidRequest.Code {
			t.Errorf("coordinator of a type that is none: %v", kerr.ErrorForCode(got))
		}
		q := kmsg.NewPtrDescribeQuorumRequest()
		q.Topics = []kmsg.DescribeQuorumRequestTopic{{Topic: "t", Partitions: []kmsg.DescribeQuorumRequestTopicPartition{{Partition: 3}}}}
		if got := c.ask(0, q).(*kmsg.DescribeQuorumResponse).Topics[0].Partitions[0]; got.Partition != 3 || got.ErrorCode != kerr.UnknownTopicOrPartition.Code {
			t.Errorf("the quorum of t: partition %d, %v", got.Partition, kerr.ErrorForCode(got.ErrorCode))
		}
		r := c.ask(0, kmsg.NewPtrDescribeQuorumRequest()).(*kmsg.DescribeQuorumResponse)
		if got := r.Topics[0].Partitions[0].LeaderID; got != 1 {
			t.Errorf("leader %d", got)
		}
	})
}

// TestAnyBroker: requests to the controller may be sent to any broker, and followers serve reads up to their own high watermark (KIP-392).
func TestAnyBroker(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	for i := range c.nodes {
		q := kmsg.NewPtrCreateTopicsRequest()
		q.Version, q.TimeoutMillis = 7, 10_000
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = fmt.Sprintf("by-%d", i), 1, 3
		q.Topics = append(q.Topics, topic)
		if got := c.ask(i, q).(*kmsg.CreateTopicsResponse).Topics[0]; got.ErrorCode != 0 {
			t.Errorf("through broker %d: %v", i+1, kerr.ErrorForCode(got.ErrorCode))
		}
		c.awaitISR(topic.Topic, 3)
	}
	c.produce(c.client(), "by-0", 0, "v", 10)
	c.sameLogs("by-0", 0)
	v := c.nodes[0].view.Load()
	leader := int(v.Topics["by-0"].Partitions[0].Leader) - 1
	for i := range c.nodes {
		if got := fetched(c.ask(i, fetchRequest(11, "by-0", [16]byte{}, 0))); got.ErrorCode != 0 || got.HighWatermark != 10 || len(got.RecordBatches) == 0 {
			t.Errorf("v11 from broker %d: code %d, high watermark %d, %d bytes", i+1, got.ErrorCode, got.HighWatermark, len(got.RecordBatches))
		}
		got := fetched(c.ask(i, fetchRequest(10, "by-0", [16]byte{}, 0)))
		if want := map[bool]int16{true: 0, false: kerr.NotLeaderForPartition.Code}[i == leader]; got.ErrorCode != want {
			t.Errorf("v10 from broker %d: %v", i+1, kerr.ErrorForCode(got.ErrorCode))
		}
	}
	// A debugging consumer is told the log end of the very copy that it asks.
	for i := range c.nodes {
		q := kmsg.NewPtrListOffsetsRequest()
		q.Version, q.ReplicaID = 5, -2
		q.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: "by-0", Partitions: []kmsg.ListOffsetsRequestTopicPartition{{CurrentLeaderEpoch: -1, Timestamp: -1}}}}
		if got := c.ask(i, q).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]; got.ErrorCode != 0 || got.Offset != 10 {
			t.Errorf("end of the copy on broker %d: %d, code %d", i+1, got.Offset, got.ErrorCode)
		}
	}
	// KIP-951: who is not the leader says who is, and where.
	other := (leader + 1) % 3
	r := c.ask(other, produceRequest(v.Topics["by-0"].ID, 0, 1, "x")).(*kmsg.ProduceResponse)
	if p := r.Topics[0].Partitions[0]; p.ErrorCode != kerr.NotLeaderForPartition.Code || p.CurrentLeader.LeaderID != int32(leader+1) || len(r.Brokers) != 1 || r.Brokers[0].NodeID != int32(leader+1) {
		t.Errorf("produce to a follower: %+v, brokers %+v", p, r.Brokers)
	}
}

// withCodec gives a batch another codec, and the checksum that goes with it.
func withCodec(batch []byte, codec byte) []byte {
	batch = slices.Clone(batch)
	batch[22] = batch[22]&^7 | codec
	return sealed(batch)
}

// withCount gives a batch another number of records, and the checksum that goes with it.
func withCount(batch []byte, n int32) []byte {
	batch = slices.Clone(batch)
	binary.BigEndian.PutUint32(batch[23:], uint32(n-1))
	binary.BigEndian.PutUint32(batch[57:], uint32(n))
	return sealed(batch)
}

func sealed(batch []byte) []byte {
	binary.BigEndian.PutUint32(batch[17:], crc32.Checksum(batch[21:], crc32.MakeTable(crc32.Castagnoli)))
	return batch
}
