// Package group is the coordinator of consumer groups: the classic protocol (JoinGroup and its relatives, with static members of KIP-345 and the two-step join
// of KIP-394), the newer one in which the broker assigns (KIP-848), and committed offsets. A Coordinator holds the groups of one partition of the internal topic
// __consumer_offsets, for as long as one broker leads that partition.
//
// It is pure: Step(now, input) takes what happened and gives back effects. Its state is what the partition's records say (R41): it is built by replaying them, every
// change is an Append effect, and whatever a client is told about a change is held back until that append is committed.
//
// It must not know of sockets, clocks, replicas and how a group is mapped to a partition. Start reading at Input and Effect, then coordinator.go; classic.go and consumer.go
// have one protocol each, offsets.go has what both share.
package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/record"
)

// Topic is the name of the internal topic that holds groups and offsets, as in Kafka.
const Topic = "__consumer_offsets"

// Input is something that happened. The effects of a step are carried out in their order.
type Input interface{ input() }

// Token is the shell's own name for a waiting request. The core only hands it back.
type Token any

type (
	// Load brings batches of the partition's log, in order. Until Loaded every request is refused (R41).
	Load struct{ Batches []record.Batch }
	// Loaded says that the whole log has been given, up to the end that it had when this broker became the leader, and that all of it is committed.
	Loaded struct{}

	// Request is a client's request: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, OffsetCommit, OffsetFetch, ListGroups, DescribeGroups, DeleteGroups, OffsetDelete,
	// ConsumerGroupHeartbeat or ConsumerGroupDescribe, of groups that belong to this partition. Exactly one Reply follows, now or later. The core owns the body from here on.
	Request struct {
		Token    Token
		Body     kmsg.Request
		ClientID string
		Host     string // the client's address, for DescribeGroups
	}

	// Appended ends an Append. Code 0: committed, that is acknowledged as acks=all is (R41). Any other is Kafka's error code. They may come in any order.
	Appended struct {
		ID     uint64
		Code   int16
		Offset int64 // of the batch, if it is committed
	}

	// TopicsChanged brings a newer list of topics.
	TopicsChanged struct{ Topics *Topics }

	// Resign says that this broker leads the partition no more: every request is answered NOT_COORDINATOR from now on (R41).
	Resign struct{}

	// Tick lets time pass: sessions, rebalances, retention. Coordinator.Due says when the next one is worth it.
	Tick struct{}
)

func (Load) input()          {}
func (Loaded) input()        {}
func (Request) input()       {}
func (Appended) input()      {}
func (TopicsChanged) input() {}
func (Resign) input()        {}
func (Tick) input()          {}

// Effect is something that the shell is to do.
type Effect interface{ effect() }

type (
	// Append: write the batch to the partition with acks=all, then feed Appended. Batches are written in the order of their ids, which rise by one.
	Append struct {
		ID    uint64
		Batch record.Batch
	}
	// Reply answers a Request.
	Reply struct {
		Token Token
		Body  kmsg.Response
	}
	// Failed: an append failed in a way that leaves open whether it is in the log, or that the state has run ahead of. The coordinator has ended; the shell loads a new one.
	Failed struct{ Code int16 }
	// Trim: the log below Offset is not needed any more, a snapshot of everything is committed behind it. Nothing follows.
	Trim struct{ Offset int64 }
	// Unread: a record of the log does not parse and was left out. It is for the shell's log; nothing else follows.
	Unread struct{ Err error }
)

func (Append) effect() {}
func (Reply) effect()  {}
func (Failed) effect() {}
func (Trim) effect()   {}
func (Unread) effect() {}

// Topics is what the coordinator knows of the cluster's topics. Immutable.
type Topics struct {
	ByName map[string]*TopicInfo
	ByID   map[[16]byte]*TopicInfo
}

// TopicInfo is one topic.
type TopicInfo struct {
	Name       string
	ID         [16]byte
	Partitions int32
}

// NewTopics indexes a list of topics.
func NewTopics(list []TopicInfo) *Topics {
	t := &Topics{ByName: make(map[string]*TopicInfo, len(list)), ByID: make(map[[16]byte]*TopicInfo, len(list))}
	for i := range list {
		t.ByName[list[i].Name], t.ByID[list[i].ID] = &list[i], &list[i]
	}
	return t
}

// has tells whether there is such a partition.
func (t *Topics) has(at topicPartition) bool {
	topic := t.ByName[at.topic]
	return topic != nil && at.partition >= 0 && at.partition < topic.Partitions
}

// What every host sets alike.
const (
	MaxGroups        = 10_000          // of a partition
	NewMemberTimeout = 5 * time.Minute // Kafka's
)

// Config is what a coordinator needs to know for its whole life. Names in comments are Kafka's.
type Config struct {
	// Seed makes the member ids. No two coordinators may have the same one: a member id must not come back while a former bearer may still use it.
	Seed [16]byte

	MinSession, MaxSession time.Duration // group.{min,max}.session.timeout.ms
	InitialRebalanceDelay  time.Duration // group.initial.rebalance.delay.ms
	NewMemberTimeout       time.Duration // how long a member that has never joined fully may wait in its first join; Kafka: 5 minutes
	MaxSize                int           // group.max.size and group.consumer.max.size: members of a group
	MaxGroups              int           // groups of this partition; more are refused, so that memory is bounded

	ConsumerSession   time.Duration // group.consumer.session.timeout.ms
	ConsumerHeartbeat time.Duration // group.consumer.heartbeat.interval.ms

	MaxMetadata      int           // offset.metadata.max.bytes
	OffsetsRetention time.Duration // offsets.retention.minutes
	RetentionCheck   time.Duration // offsets.retention.check.interval.ms
	CompactAfter     int           // bytes of log after which a snapshot is written and the rest is trimmed; 0 = never
	CommitTimeout    time.Duration // offsets.commit.timeout.ms: how long an answer waits for its append
}
