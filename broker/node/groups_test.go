package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/group"
)

// groupSets are the properties for clusters in which groups are tested: no waiting for members that do not come.
var groupSets = []string{"group.initial.rebalance.delay.ms=0", "offsets.topic.num.partitions=4", "group.min.session.timeout.ms=1000", "group.consumer.heartbeat.interval.ms=200"}

// groupMember is a consumer that polls in a goroutine of its own and keeps what it was given.
type groupMember struct {
	*kgo.Client
	mu     sync.Mutex
	got    map[string]int // value → times
	owns   map[int32]bool
	cancel context.CancelFunc
	done   chan struct{}
}

func (c *testCluster) member(groupID, topic string, opts ...kgo.Opt) *groupMember {
	c.t.Helper()
	m := &groupMember{got: map[string]int{}, owns: map[int32]bool{}, done: make(chan struct{})}
	own := func(owns bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
			m.mu.Lock()
			defer m.mu.Unlock()
			for _, p := range parts[topic] {
				m.owns[p] = owns
			}
		}
	}
	m.Client = c.client(append([]kgo.Opt{
		kgo.ConsumerGroup(groupID), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(),
		kgo.SessionTimeout(3 * time.Second), kgo.HeartbeatInterval(200 * time.Millisecond), kgo.RebalanceTimeout(5 * time.Second),
		kgo.OnPartitionsAssigned(own(true)), kgo.OnPartitionsRevoked(own(false)), kgo.OnPartitionsLost(own(false)), kgo.FetchMaxWait(100 * time.Millisecond),
	}, opts...)...)
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	go func() {
		defer close(m.done)
		for ctx.Err() == nil {
			m.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
				m.mu.Lock()
				defer m.mu.Unlock()
				m.got[string(r.Value)]++
			})
		}
	}()
	c.t.Cleanup(m.stop)
	return m
}

func (m *groupMember) stop() {
	m.cancel()
	<-m.done
}

// leave ends the member properly.
func (m *groupMember) leave() {
	m.stop()
	m.Close()
}

func (m *groupMember) owned() (out []int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for p, has := range m.owns {
		if has {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

func (m *groupMember) values() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.got)
}

// awaitShares waits until the members own all partitions of the topic between them, each as many as said.
func (c *testCluster) awaitShares(partitions int, members []*groupMember, shares ...int) {
	c.t.Helper()
	await(c.t, fmt.Sprintf("shares %v", shares), func() bool {
		var all []int32
		for i, m := range members {
			owned := m.owned()
			if len(owned) != shares[i] {
				return false
			}
			all = append(all, owned...)
		}
		slices.Sort(all)
		return len(slices.Compact(all)) == partitions
	})
}

// TestGroups takes a real client through a group's life, in the classic protocol, eager and cooperative, and in the newer one: join, read, commit, rebalance, leave, resume, and the
// death of the coordinator.
func TestGroups(t *testing.T) {
	c := newCluster(t, 3, groupSets...)
	for name, opts := range map[string][]kgo.Opt{
		"eager":       {kgo.Balancers(kgo.RangeBalancer())},
		"cooperative": {kgo.Balancers(kgo.CooperativeStickyBalancer())},
		"consumer":    {kgo.Balancers(kgo.StickyBalancer()), kgo.ServerSideBalancer()},
	} {
		t.Run(name, func(t *testing.T) {
			c := *c
			c.t = t
			topic := "t-" + name
			c.create(topic, 4, 3)
			producer := c.client()
			for p := range int32(4) {
				c.produce(producer, topic, p, fmt.Sprintf("%d", p), 10)
			}
			one := c.member(name, topic, opts...)
			c.awaitShares(4, []*groupMember{one}, 4)
			await(t, "all 40 records", func() bool { return one.values() == 40 })
			if err := one.CommitUncommittedOffsets(c.ctx()); err != nil {
				t.Fatal(err)
			}
			two := c.member(name, topic, opts...)
			c.awaitShares(4, []*groupMember{one, two}, 2, 2)
			listed, err := kadm.NewClient(c.client()).ListGroups(c.ctx())
			if want := map[bool]string{true: "consumer", false: "classic"}[name == "consumer"]; err != nil || listed[name].GroupType != want {
				t.Errorf("ListGroups: %+v, %v; expected the type %q", listed[name], err, want)
			}
			one.leave()
			c.awaitShares(4, []*groupMember{two}, 4)
			for p := range int32(4) {
				c.produce(producer, topic, p, fmt.Sprintf("more-%d", p), 5)
			}
			await(t, "20 records more", func() bool { return two.values() >= 20 })
			two.leave()
			if n := two.values(); n != 20 {
				t.Errorf("the second member read %d records, expected 20: what the first one committed is not read again", n)
			}
		})
	}
}

// TestCoordinatorIsKilled: what was committed is there at the next coordinator, and the group goes on (R41).
func TestCoordinatorIsKilled(t *testing.T) {
	t.Run("classic", func(t *testing.T) { testCoordinatorIsKilled(t, kgo.Balancers(kgo.CooperativeStickyBalancer())) })
	t.Run("consumer", func(t *testing.T) {
		testCoordinatorIsKilled(t, kgo.Balancers(kgo.StickyBalancer()), kgo.ServerSideBalancer())
	})
}

func testCoordinatorIsKilled(t *testing.T, opts ...kgo.Opt) {
	c := newCluster(t, 3, groupSets...)
	c.create("t", 4, 3)
	producer := c.client()
	for p := range int32(4) {
		c.produce(producer, "t", p, fmt.Sprintf("%d", p), 10)
	}
	one := c.member("g", "t", opts...)
	await(t, "all records", func() bool { return one.values() == 40 })
	if err := one.CommitUncommittedOffsets(c.ctx()); err != nil {
		t.Fatal(err)
	}
	parts := c.nodes[0].view.Load().Topics[group.Topic].Partitions
	coordinator := parts[group.PartitionOf("g", len(parts))].Leader
	c.kill(int(coordinator) - 1)

	alive := int(coordinator) % 3 // another one
	await(t, "committed offsets at another coordinator", func() bool {
		find := kmsg.NewPtrFindCoordinatorRequest()
		find.Version, find.CoordinatorKeys = 4, []string{"g"}
		found := c.ask(alive, find).(*kmsg.FindCoordinatorResponse).Coordinators[0]
		if found.ErrorCode != 0 || found.NodeID == coordinator {
			return false
		}
		q := kmsg.NewPtrOffsetFetchRequest()
		q.Version, q.Groups = 8, []kmsg.OffsetFetchRequestGroup{{Group: "g"}}
		r := c.ask(int(found.NodeID)-1, q).(*kmsg.OffsetFetchResponse).Groups[0]
		if r.ErrorCode != 0 {
			return false // it loads, or it does not know yet
		}
		for _, topic := range r.Topics {
			for _, p := range topic.Partitions {
				if p.Offset != 10 {
					t.Fatalf("%s-%d: offset %d, expected 10", topic.Topic, p.Partition, p.Offset)
				}
			}
		}
		if len(r.Topics) != 1 || len(r.Topics[0].Partitions) != 4 {
			t.Fatalf("offsets %+v, expected four partitions of t", r.Topics)
		}
		return true
	})
	two := c.member("g", "t", opts...)
	c.awaitShares(4, []*groupMember{one, two}, 2, 2)
	for p := range int32(4) {
		c.produce(producer, "t", p, fmt.Sprintf("more-%d", p), 5)
	}
	await(t, "20 records more", func() bool { return one.values()-40+two.values() >= 20 })
}

// TestInternalTopic: it is made by the first who asks for a coordinator, as groups need it, marked as internal, closed to producers, and compacted while it is used.
func TestInternalTopic(t *testing.T) {
	c := newCluster(t, 3, append(groupSets, "ackproof.offsets.compact.bytes=20000", "log.segment.bytes=65536")...)
	c.create("t", 1, 3)
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.Version, find.CoordinatorKey = 2, "g"
	found := c.ask(0, find).(*kmsg.FindCoordinatorResponse)
	if found.ErrorCode != 0 {
		t.Fatalf("%+v", found)
	}
	c.awaitISR(group.Topic, 3)
	meta := kmsg.NewPtrMetadataRequest()
	meta.Version = 9
	for _, topic := range c.ask(1, meta).(*kmsg.MetadataResponse).Topics {
		if topic.IsInternal != (*topic.Topic == group.Topic) || topic.IsInternal && len(topic.Partitions) != 4 {
			t.Errorf("%s: internal %t, %d partitions", *topic.Topic, topic.IsInternal, len(topic.Partitions))
		}
	}
	if err := c.client().ProduceSync(c.ctx(), &kgo.Record{Topic: group.Topic, Value: []byte("x")}).FirstErr(); !errors.Is(err, kerr.InvalidTopicException) {
		t.Errorf("a client that writes to the internal topic: %v", err)
	}
	commit := kmsg.NewPtrOffsetCommitRequest()
	commit.Version, commit.Group, commit.Generation = 8, "g", -1
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Metadata = kmsg.StringPtr(strings.Repeat("m", 1000))
	commit.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
	for i := range int64(100) {
		commit.Topics[0].Partitions[0].Offset = i
		if r := c.ask(int(found.NodeID)-1, commit).(*kmsg.OffsetCommitResponse); r.Topics[0].Partitions[0].ErrorCode != 0 {
			t.Fatalf("%+v", r)
		}
	}
	topic := c.nodes[0].view.Load().Topics[group.Topic]
	for _, n := range c.nodes {
		r := n.replicas.get(partitionKey{topic.ID, group.PartitionOf("g", 4)})
		await(t, fmt.Sprintf("a trimmed log of node %d", n.cfg.NodeID), func() bool { return r.status().LogStart > 50 })
	}
	c.kill(int(found.NodeID) - 1)
	if o := c.committed(int(found.NodeID)%3, "g", "t"); o != 99 {
		t.Errorf("offset %d from the compacted log, expected 99", o)
	}
}

// committed reads the offset that a group has for partition 0 of a topic, by way of node i.
func (c *testCluster) committed(i int, id, topic string) (offset int64) {
	c.t.Helper()
	await(c.t, "the offsets of "+id, func() bool {
		find := kmsg.NewPtrFindCoordinatorRequest()
		find.Version, find.CoordinatorKeys = 4, []string{id}
		found := c.ask(i, find).(*kmsg.FindCoordinatorResponse).Coordinators[0]
		if found.ErrorCode != 0 || c.nodes[found.NodeID-1] == nil {
			return false
		}
		q := kmsg.NewPtrOffsetFetchRequest()
		q.Version = 8
		q.Groups = []kmsg.OffsetFetchRequestGroup{{Group: id, Topics: []kmsg.OffsetFetchRequestGroupTopic{{Topic: topic, Partitions: []int32{0}}}}}
		r := c.ask(int(found.NodeID)-1, q).(*kmsg.OffsetFetchResponse).Groups[0]
		if r.ErrorCode == 0 {
			offset = r.Topics[0].Partitions[0].Offset
		}
		return r.ErrorCode == 0
	})
	return offset
}

// TestManyGroupsInOneRequest: their coordinators may be different ones, and who asks a wrong one is told so for each.
func TestManyGroupsInOneRequest(t *testing.T) {
	c := newCluster(t, 3, groupSets...)
	c.create("t", 1, 3)
	admin := kadm.NewClient(c.client())
	c.nameless()
	var ids []string
	for i := range 8 {
		id := fmt.Sprintf("g%d", i)
		ids = append(ids, id)
		offsets := kadm.Offsets{}
		offsets.AddOffset("t", 0, int64(i), -1)
		if r, err := admin.CommitOffsets(c.ctx(), id, offsets); err != nil || r.Error() != nil {
			t.Fatal(err, r.Error())
		}
	}
	q := kmsg.NewPtrOffsetFetchRequest()
	q.Version = 8
	for _, id := range ids {
		q.Groups = append(q.Groups, kmsg.OffsetFetchRequestGroup{Group: id})
	}
	seen := map[string]int64{}
	for i := range c.nodes {
		r := c.ask(i, q).(*kmsg.OffsetFetchResponse)
		if len(r.Groups) != len(ids) {
			t.Fatalf("node %d: %d groups of %d", i+1, len(r.Groups), len(ids))
		}
		for j, g := range r.Groups {
			if g.Group != ids[j] {
				t.Fatalf("node %d: group %q in the place of %q", i+1, g.Group, ids[j])
			}
			if g.ErrorCode == 0 {
				seen[g.Group] = g.Topics[0].Partitions[0].Offset
			} else if g.ErrorCode != kerr.NotCoordinator.Code {
				t.Errorf("node %d, %s: code %d", i+1, g.Group, g.ErrorCode)
			}
		}
	}
	for i, id := range ids {
		if seen[id] != int64(i) {
			t.Errorf("%s: offset %d, expected %d", id, seen[id], i)
		}
	}
	listed, err := admin.ListGroups(c.ctx())
	if err != nil || len(listed) != len(ids) {
		t.Errorf("%d groups listed, %v; expected %d", len(listed), err, len(ids))
	}
	deleted, err := admin.DeleteGroups(c.ctx(), ids...)
	if err != nil || deleted.Error() != nil {
		t.Error(err, deleted.Error())
	}
	if listed, err = admin.ListGroups(c.ctx()); err != nil || len(listed) != 0 {
		t.Errorf("%d groups listed after their deletion, %v", len(listed), err)
	}
}

// nameless asks every broker for what needs the name of a group, without one: as in Kafka, each refuses it, also those that do not coordinate a group of that name.
func (c *testCluster) nameless() {
	describe := kmsg.NewPtrConsumerGroupDescribeRequest()
	describe.Groups = []string{""}
	for _, tc := range []struct {
		q    kmsg.Request
		code func(kmsg.Response) int16
		want *kerr.Error
	}{
		{kmsg.NewPtrJoinGroupRequest(), func(r kmsg.Response) int16 { return r.(*kmsg.JoinGroupResponse).ErrorCode }, kerr.InvalidGroupID},
		{kmsg.NewPtrSyncGroupRequest(), func(r kmsg.Response) int16 { return r.(*kmsg.SyncGroupResponse).ErrorCode }, kerr.InvalidGroupID},
		{kmsg.NewPtrHeartbeatRequest(), func(r kmsg.Response) int16 { return r.(*kmsg.HeartbeatResponse).ErrorCode }, kerr.InvalidGroupID},
		{kmsg.NewPtrLeaveGroupRequest(), func(r kmsg.Response) int16 { return r.(*kmsg.LeaveGroupResponse).ErrorCode }, kerr.InvalidGroupID},
		{kmsg.NewPtrOffsetDeleteRequest(), func(r kmsg.Response) int16 { return r.(*kmsg.OffsetDeleteResponse).ErrorCode }, kerr.InvalidGroupID},
		{kmsg.NewPtrConsumerGroupHeartbeatRequest(), func(r kmsg.Response) int16 { return r.(*kmsg.ConsumerGroupHeartbeatResponse).ErrorCode }, kerr.InvalidRequest},
		{describe, func(r kmsg.Response) int16 { return r.(*kmsg.ConsumerGroupDescribeResponse).Groups[0].ErrorCode }, kerr.InvalidGroupID},
	} {
		for i := range c.nodes {
			if got := tc.code(c.ask(i, tc.q)); got != tc.want.Code {
				c.t.Errorf("broker %d, %s without a group: %v, want %v", i+1, kmsg.NameForKey(tc.q.Key()), kerr.ErrorForCode(got), tc.want)
			}
		}
	}
}
