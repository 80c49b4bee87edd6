package node

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
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
	c := newCluster(t, 3, groupSets...)
	c.create("t", 4, 3)
	producer := c.client()
	for p := range int32(4) {
		c.produce(producer, "t", p, fmt.Sprintf("%d", p), 10)
	}
	one := c.member("g", "t", kgo.Balancers(kgo.CooperativeStickyBalancer()))
	await(t, "all records", func() bool { return one.values() == 40 })
	if err := one.CommitUncommittedOffsets(c.ctx()); err != nil {
		t.Fatal(err)
	}
	parts := c.nodes[0].view.Load().Topics[group.Topic].Partitions
	coordinator := parts[partitionOf("g", len(parts))].Leader
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
	two := c.member("g", "t", kgo.Balancers(kgo.CooperativeStickyBalancer()))
	c.awaitShares(4, []*groupMember{one, two}, 2, 2)
	for p := range int32(4) {
		c.produce(producer, "t", p, fmt.Sprintf("more-%d", p), 5)
	}
	await(t, "20 records more", func() bool { return one.values()-40+two.values() >= 20 })
}
