package controller

import (
	"math"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"
)

// Any request, sensible or not, leaves an image that keeps the rules, the one before untouched, and an answer. lab.do checks that.
func TestAnyRequest(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := newLab(t)
		l.flags = flags(rapid.Uint8Range(0, uint8(allFlags)).Draw(rt, "flags"))
		for range rapid.IntRange(1, 40).Draw(rt, "requests") {
			q := anyRequest(rt, l.image)
			if r := l.do(q); r == nil || r.Key() != q.Key() {
				rt.Fatalf("%T is answered %v", q, r)
			}
		}
	})
}

func anyRequest(t *rapid.T, im *Image) kmsg.Request {
	pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
	broker := func() int32 {
		return rapid.OneOf(rapid.Int32Range(0, 4), rapid.SampledFrom([]int32{-1, math.MaxInt32, math.MinInt32})).Draw(t, "broker")
	}
	brokers := func() []int32 {
		return rapid.OneOf(rapid.SampledFrom([][]int32{{0, 1, 2}, {1, 2}, {3, 0, 1}}), rapid.SliceOfN(rapid.Int32Range(-1, 4), 0, 4)).Draw(t, "brokers")
	}
	epochOf := func(id int32) int64 {
		if b := im.Brokers[id]; b != nil && pick(8) > 0 {
			return b.Epoch
		}
		return rapid.SampledFrom([]int64{-1, 0, 2, math.MaxInt64, math.MinInt64}).Draw(t, "epoch")
	}
	name := func() string {
		return rapid.SampledFrom([]string{"a", "a", "b", "c", "", ".", "a b", "\xff"}).Draw(t, "name")
	}
	partition := func() int32 { return rapid.SampledFrom([]int32{0, 0, 0, 1, 2, -1, math.MaxInt32}).Draw(t, "partition") }
	count := func() int32 {
		return rapid.SampledFrom([]int32{1, 2, 3, 4, -1, 0, 200, math.MaxInt32, math.MinInt32}).Draw(t, "count")
	}
	key := func() string {
		return rapid.SampledFrom([]string{minISRKey, minISRKey, uncleanKey, "retention.ms", "x"}).Draw(t, "key")
	}
	value := func() *string {
		return rapid.SampledFrom([]*string{nil, new("1"), new("2"), new("3"), new("true"), new("false"), new(""), new("-1"), new("99999999999999999999")}).Draw(t, "value")
	}
	topicID := func() (id [16]byte) {
		if tp := im.Topics[name()]; tp != nil {
			id = tp.ID
		}
		return id
	}
	switch pick(10) {
	case 0:
		q := latest(kmsg.NewPtrBrokerRegistrationRequest())
		q.BrokerID = broker()
		q.PreviousBrokerEpoch = epochOf(q.BrokerID)
		q.IncarnationID[0] = byte(pick(3))
		for range pick(3) {
			q.Listeners = append(q.Listeners, kmsg.NewBrokerRegistrationRequestListener())
		}
		return q
	case 1, 2:
		q := latest(kmsg.NewPtrBrokerHeartbeatRequest())
		q.BrokerID = broker()
		q.BrokerEpoch = epochOf(q.BrokerID)
		q.WantFence, q.WantShutdown = pick(4) == 0, pick(6) == 0
		q.CurrentMetadataOffset = int64(im.Index) - int64(pick(5))
		return q
	case 3, 4:
		q := latest(kmsg.NewPtrAlterPartitionRequest())
		qt := kmsg.AlterPartitionRequestTopic{TopicID: topicID()}
		for range pick(3) {
			qp := kmsg.AlterPartitionRequestTopicPartition{Partition: partition(), LeaderRecoveryState: int8(pick(8) / 7)}
			q.BrokerID = broker()
			if tp := im.TopicByID(qt.TopicID); tp != nil && qp.Partition >= 0 && int(qp.Partition) < len(tp.Partitions) && pick(8) > 0 {
				p := tp.Partitions[qp.Partition]
				q.BrokerID, qp.LeaderEpoch, qp.PartitionEpoch = p.Leader, p.LeaderEpoch, p.PartitionEpoch
			}
			for _, id := range brokers() {
				qp.NewEpochISR = append(qp.NewEpochISR, kmsg.AlterPartitionRequestTopicPartitionNewEpochISR{BrokerID: id, BrokerEpoch: epochOf(id)})
			}
			qt.Partitions = append(qt.Partitions, qp)
		}
		q.BrokerEpoch = epochOf(q.BrokerID)
		q.Topics = append(q.Topics, qt)
		return q
	case 5:
		q := latest(kmsg.NewPtrElectLeadersRequest())
		q.ElectionType = int8(pick(3))
		if pick(2) == 0 {
			q.Topics = append(q.Topics, kmsg.ElectLeadersRequestTopic{Topic: name(), Partitions: []int32{partition(), partition()}})
		}
		return q
	case 6:
		q := latest(kmsg.NewPtrCreateTopicsRequest())
		for range pick(3) {
			qt := kmsg.NewCreateTopicsRequestTopic()
			qt.Topic, qt.NumPartitions, qt.ReplicationFactor = name(), count(), int16(count())
			if pick(2) == 0 {
				qt.NumPartitions, qt.ReplicationFactor = -1, -1
				for range 1 + pick(2) {
					qt.ReplicaAssignment = append(qt.ReplicaAssignment, kmsg.CreateTopicsRequestTopicReplicaAssignment{Partition: partition(), Replicas: brokers()})
				}
			}
			for range pick(3) {
				qt.Configs = append(qt.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: key(), Value: value()})
			}
			q.Topics = append(q.Topics, qt)
		}
		return q
	case 7:
		q := latest(kmsg.NewPtrCreatePartitionsRequest())
		for range pick(3) {
			qt := kmsg.CreatePartitionsRequestTopic{Topic: name(), Count: count()}
			for range pick(3) {
				qt.Assignment = append(qt.Assignment, kmsg.CreatePartitionsRequestTopicAssignment{Replicas: brokers()})
			}
			q.Topics = append(q.Topics, qt)
		}
		return q
	case 8:
		q := latest(kmsg.NewPtrIncrementalAlterConfigsRequest())
		res := kmsg.IncrementalAlterConfigsRequestResource{ResourceType: kmsg.ConfigResourceType(pick(6)), ResourceName: name()}
		for range pick(3) {
			res.Configs = append(res.Configs, kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: key(), Op: kmsg.IncrementalAlterConfigOp(pick(5)), Value: value()})
		}
		q.Resources = append(q.Resources, res)
		return q
	}
	q := latest(kmsg.NewPtrDeleteTopicsRequest())
	qt := kmsg.DeleteTopicsRequestTopic{TopicID: topicID()}
	if pick(2) == 0 {
		qt = kmsg.DeleteTopicsRequestTopic{Topic: new(name())}
	}
	q.Topics = append(q.Topics, qt)
	return q
}

func TestTopicsThatKafkaRefuses(t *testing.T) {
	w, l := leading(t, 3, 1, nil)
	create := func(name string) *kmsg.CreateTopicsResponse {
		var answer *kmsg.CreateTopicsResponse
		w.create(l, name, func(r *kmsg.CreateTopicsResponse) { answer = r })
		w.run(5)
		if answer == nil {
			t.Fatal("no answer to CreateTopics")
		}
		return answer
	}
	if got := create("__cluster_metadata").Topics[0].ErrorCode; got != kerr.InvalidRequest.Code {
		t.Errorf("the name of the control plane's log: %v", kerr.ErrorForCode(got))
	}
	if got := create("t").Topics[0].ErrorCode; got != 0 {
		t.Fatal(kerr.ErrorForCode(got))
	}
	q := latest(kmsg.NewPtrDeleteTopicsRequest())
	q.Topics = []kmsg.DeleteTopicsRequestTopic{{Topic: new("t")}, {Topic: new("t")}}
	var answer *kmsg.DeleteTopicsResponse
	w.ask(l, q, func(r kmsg.Response) { answer = r.(*kmsg.DeleteTopicsResponse) })
	w.run(5)
	for _, a := range answer.Topics {
		if a.ErrorCode != kerr.InvalidRequest.Code {
			t.Errorf("a topic that is named twice: %v", kerr.ErrorForCode(a.ErrorCode))
		}
	}
	if l.image.Topics["t"] == nil {
		t.Error("it is gone all the same")
	}
}
