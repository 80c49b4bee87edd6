package host

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/controller"
	"ackproof/broker/core/group"
	"ackproof/broker/core/partition"
)

// GroupTopics is what the coordinators know of an image.
func GroupTopics(im *controller.Image) *group.Topics {
	var list []group.TopicInfo
	for _, name := range slices.Sorted(maps.Keys(im.Topics)) {
		t := im.Topics[name]
		list = append(list, group.TopicInfo{Name: name, ID: t.ID, Partitions: int32(len(t.Partitions))})
	}
	return group.NewTopics(list)
}

// groupBatchBytes is the largest batch of the internal topic: the state of one large group is one batch.
const groupBatchBytes = 64 << 20

// GroupTopicLayout says how the internal topic is made.
func GroupTopicLayout(partitions int32, replication int16) kmsg.CreateTopicsRequestTopic {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = group.Topic, partitions, replication
	set := func(name, value string) {
		t.Configs = append(t.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: name, Value: &value})
	}
	set("max.message.bytes", strconv.Itoa(groupBatchBytes))
	set("retention.ms", "-1")
	return t
}

// coordinatorOfGroup is the kind of key that is asked for; transactions (1) and share groups (2) are not served.
const coordinatorOfGroup int8 = 0

// AsksForGroups tells whether a FindCoordinator request is about groups: then the internal topic is made if it is not there yet.
func AsksForGroups(q *kmsg.FindCoordinatorRequest) bool {
	return q.CoordinatorType == coordinatorOfGroup
}

// FindCoordinator names the coordinator of groups: whoever leads the partition of the internal topic that the group's name falls into.
func FindCoordinator(im *controller.Image, q *kmsg.FindCoordinatorRequest) *kmsg.FindCoordinatorResponse {
	resp := q.ResponseKind().(*kmsg.FindCoordinatorResponse)
	if q.Version < 4 {
		c := coordinatorFor(im, q.CoordinatorType, q.CoordinatorKey)
		resp.ErrorCode, resp.ErrorMessage, resp.NodeID, resp.Host, resp.Port = c.ErrorCode, c.ErrorMessage, c.NodeID, c.Host, c.Port
		return resp
	}
	for _, key := range q.CoordinatorKeys {
		resp.Coordinators = append(resp.Coordinators, coordinatorFor(im, q.CoordinatorType, key))
	}
	return resp
}

func coordinatorFor(im *controller.Image, kind int8, key string) kmsg.FindCoordinatorResponseCoordinator {
	c := kmsg.NewFindCoordinatorResponseCoordinator()
	c.Key, c.NodeID, c.Port = key, -1, -1
	refuse := func(why string) kmsg.FindCoordinatorResponseCoordinator {
		c.ErrorCode, c.ErrorMessage = kerr.CoordinatorNotAvailable.Code, &why
		return c
	}
	t := im.Topics[group.Topic]
	switch {
	case kind < coordinatorOfGroup || kind > 2:
		why := fmt.Sprintf("no coordinator is of type %d, expected 0 (group), 1 (transaction) or 2 (share)", kind)
		c.ErrorCode, c.ErrorMessage = kerr.InvalidRequest.Code, &why
		return c
	case kind != coordinatorOfGroup:
		return refuse("transactions and share groups are not served")
	case t == nil:
		return refuse("the topic " + group.Topic + " could not be created yet")
	}
	i := group.PartitionOf(key, len(t.Partitions))
	b := im.Brokers[t.Partitions[i].Leader]
	if b == nil || b.Fenced {
		return refuse(fmt.Sprintf("%s-%d has no leader", group.Topic, i))
	}
	c.NodeID, c.Host, c.Port = b.ID, b.Host, b.Port
	return c
}

// LoadQuestion is what the loading of a coordinator asks of its partition: as a consumer reads, so that what is not committed yet is waited for (R41). Token is the host's own.
func LoadQuestion(epoch int32, offset int64) partition.Fetch {
	return partition.Fetch{Replica: -1, LeaderEpoch: epoch, LastFetchedEpoch: -1, LogStart: -1, KnownHW: -1, LeaderOnly: true, Wait: true, Offset: offset}
}
