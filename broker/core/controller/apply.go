package controller

import (
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// edit is the next image in the making. It starts as its base and copies what it changes, so that the base stays as it was published.
type edit struct {
	image   *Image
	index   uint64 // of the entry that is applied
	cluster string
	flags   flags
	changed bool

	ownBrokers, ownTopics bool            // these maps are copies already
	own                   map[string]bool // these topics are copies already
}

func newEdit(base *Image, index uint64, cluster string, f flags) *edit {
	return &edit{image: base.at(index), index: index, cluster: cluster, flags: f, own: map[string]bool{}}
}

// apply carries out one request and returns its answer. It depends on nothing but the edit and the request, as every voter does it for itself. internal:
// the request is the controller's own.
func (e *edit) apply(r kmsg.Request, internal bool) kmsg.Response {
	switch r := r.(type) {
	case *kmsg.BrokerRegistrationRequest:
		return e.register(r)
	case *kmsg.BrokerHeartbeatRequest:
		return e.heartbeat(r)
	case *kmsg.AlterPartitionRequest:
		return e.alterPartitions(r)
	case *kmsg.ElectLeadersRequest:
		return e.electLeaders(r)
	case *kmsg.CreateTopicsRequest:
		return e.createTopics(r)
	case *kmsg.DeleteTopicsRequest:
		return e.deleteTopics(r)
	case *kmsg.CreatePartitionsRequest:
		return e.createPartitions(r)
	case *kmsg.IncrementalAlterConfigsRequest:
		return e.alterConfigs(r, internal)
	case *kmsg.AllocateProducerIDsRequest:
		return e.allocateProducerIDs(r)
	}
	panic(raftPanic(fmt.Sprintf("index %d: a %T in the metadata log", e.index, r)))
}

func (e *edit) putBroker(b *Broker) {
	if !e.ownBrokers {
		e.image.Brokers, e.ownBrokers = maps.Clone(e.image.Brokers), true
	}
	e.image.Brokers[b.ID] = b
	e.changed = true
}

func (e *edit) topics() map[string]*Topic {
	if !e.ownTopics {
		e.image.Topics, e.ownTopics = maps.Clone(e.image.Topics), true
	}
	e.changed = true
	return e.image.Topics
}

func (e *edit) putTopic(t *Topic) {
	e.topics()[t.Name] = t
	e.own[t.Name] = true
}

func (e *edit) dropTopic(name string) {
	delete(e.topics(), name)
	delete(e.own, name)
}

// topic returns a topic that may be changed: its lists are copies. The partitions in it are not; they are replaced.
func (e *edit) topic(name string) *Topic {
	t := e.image.Topics[name]
	if !e.own[name] {
		next := *t
		next.Partitions = slices.Clone(t.Partitions)
		next.Configs = maps.Clone(t.Configs)
		e.putTopic(&next)
		t = &next
	}
	return t
}

// eachPartition calls f for the partitions that match; f may replace them.
func (e *edit) eachPartition(match func(*Partition) bool, f func(t *Topic, i int32)) {
	for _, name := range sortedKeys(e.image.Topics) {
		t := e.image.Topics[name]
		for i, p := range t.Partitions {
			if match(p) {
				f(t, int32(i))
			}
		}
	}
}
