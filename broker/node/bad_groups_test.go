package node

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/wire"
)

// crowd is many members of one group, 16 on each connection: as many requests as a broker takes of one client at a time, and none of them waits for another.
type crowd struct {
	t     *testing.T
	conns []*crowdConn
}

type crowdConn struct {
	net.Conn
	frames *wire.FrameReader
}

const membersPerConn = 16

func newCrowd(t *testing.T, address string, members int) *crowd {
	t.Helper()
	w := &crowd{t: t}
	for range members / membersPerConn {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(patience))
		w.conns = append(w.conns, &crowdConn{conn, wire.NewFrameReader(conn, 64<<20, 0)})
	}
	return w
}

// ask sends one request for each member, all at once, and gives the answers by member.
func (w *crowd) ask(request func(member int) kmsg.Request) []kmsg.Response {
	w.t.Helper()
	answers := make([]kmsg.Response, len(w.conns)*membersPerConn)
	var all sync.WaitGroup
	for i, c := range w.conns {
		all.Go(func() {
			var out []byte
			var asked []kmsg.Request
			for j := range membersPerConn {
				q := request(i*membersPerConn + j)
				asked = append(asked, q)
				out = wire.AppendRequest(out, int32(j), "crowd", q)
			}
			if _, err := c.Write(out); err != nil {
				w.t.Error(err)
				return
			}
			for j, q := range asked {
				frame, err := c.frames.Next(nil)
				if err != nil {
					w.t.Errorf("answer %d of connection %d: %v", j, i, err)
					return
				}
				resp := q.ResponseKind()
				body := frame[4:]
				if resp.IsFlexible() {
					body = body[1:] // no tags
				}
				if err := resp.ReadFrom(body); err != nil {
					w.t.Errorf("answer %d of connection %d: %v", j, i, err)
				}
				answers[i*membersPerConn+j] = resp
			}
		})
	}
	all.Wait()
	if w.t.Failed() {
		w.t.FailNow()
	}
	return answers
}

// TestTenThousandMembersOverSockets: 10,000 members join a group at once, in either protocol. All are let in, memory is bounded, and another group is served meanwhile.
func TestTenThousandMembersOverSockets(t *testing.T) {
	const (
		members = 10_000
		most    = 128 << 20 // bytes of heap, of the broker and of all its clients, once they are in
	)
	c := newCluster(t, 1, "group.initial.rebalance.delay.ms=500", "offsets.topic.num.partitions=1", "min.insync.replicas=1")
	c.create("t", 4, 1)
	id, cl := c.nodes[0].view.Load().Topics["t"].ID, c.client()
	other := func() (err error) { // is tried again: on a machine that is busy enough the client gives up first
		offsets := kadm.Offsets{}
		offsets.AddOffset("t", 0, 7, -1)
		for end := time.Now().Add(patience); time.Now().Before(end); {
			var r kadm.OffsetResponses
			if r, err = kadm.NewClient(cl).CommitOffsets(c.ctx(), "other", offsets); err == nil {
				err = r.Error()
			}
			if err == nil {
				return nil
			}
		}
		return err
	}
	served := func(err error) {
		t.Helper()
		if err != nil {
			t.Error("a commit of another group:", err)
		}
	}
	served(other()) // the internal topic is there, and loaded
	w := newCrowd(t, c.addrs[0], members)
	before := heap()
	meanwhile := make(chan error, 1)
	go func() { meanwhile <- other() }()
	joined := w.ask(func(int) kmsg.Request {
		q := kmsg.NewPtrJoinGroupRequest()
		q.Version, q.Group, q.ProtocolType, q.SessionTimeoutMillis, q.RebalanceTimeoutMillis = 3, "classic", "consumer", 60_000, 60_000
		q.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte("t")}}
		return q
	})
	served(<-meanwhile)
	ids, seen, leader := make([]string, members), map[string]bool{}, -1
	for i, r := range joined {
		r := r.(*kmsg.JoinGroupResponse)
		if r.ErrorCode != 0 || seen[r.MemberID] || r.Generation != joined[0].(*kmsg.JoinGroupResponse).Generation {
			t.Fatalf("member %d: %v, id %q (twice: %v), generation %d", i, kerr.ErrorForCode(r.ErrorCode), r.MemberID, seen[r.MemberID], r.Generation)
		}
		ids[i], seen[r.MemberID] = r.MemberID, true
		if r.LeaderID == r.MemberID {
			leader = i
			if len(r.Members) != members {
				t.Errorf("the leader is told of %d members", len(r.Members))
			}
		}
	}
	if leader < 0 {
		t.Fatal("nobody leads the group")
	}
	synced := w.ask(func(i int) kmsg.Request {
		q := kmsg.NewPtrSyncGroupRequest()
		q.Version, q.Group, q.MemberID, q.Generation = 2, "classic", ids[i], joined[i].(*kmsg.JoinGroupResponse).Generation
		if i == leader {
			for j, id := range ids {
				q.GroupAssignment = append(q.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: id, MemberAssignment: fmt.Append(nil, j)})
			}
		}
		return q
	})
	for i, r := range synced {
		if r := r.(*kmsg.SyncGroupResponse); r.ErrorCode != 0 || string(r.MemberAssignment) != fmt.Sprint(i) {
			t.Fatalf("member %d: %v, assigned %q", i, kerr.ErrorForCode(r.ErrorCode), r.MemberAssignment)
		}
	}
	go func() { meanwhile <- other() }()
	owned := 0
	for i, r := range w.ask(func(i int) kmsg.Request {
		q := kmsg.NewPtrConsumerGroupHeartbeatRequest()
		q.Version, q.Group, q.MemberID, q.RebalanceTimeoutMillis = 1, "consumer", fmt.Sprintf("member-%d", i), 60_000
		q.SubscribedTopicNames, q.Topics = []string{"t"}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		return q
	}) {
		r := r.(*kmsg.ConsumerGroupHeartbeatResponse)
		if r.ErrorCode != 0 || r.MemberEpoch < 1 {
			t.Fatalf("member %d: %v, epoch %d", i, kerr.ErrorForCode(r.ErrorCode), r.MemberEpoch)
		}
		if r.Assignment != nil {
			for _, a := range r.Assignment.Topics {
				if a.TopicID == id {
					owned += len(a.Partitions)
				}
			}
		}
	}
	served(<-meanwhile)
	if owned > 4 {
		t.Errorf("%d partitions were given out, there are 4", owned)
	}
	if grown := heap() - before; grown > most {
		t.Errorf("%d MiB more than before, expected at most %d", grown>>20, most>>20)
	}
	served(other())
}

// TestMembersThatFallSilent: the connection of a member is half open, so that the broker hears no end of it. The member is put out after its session, and another one is given its partitions;
// what it says after that is refused, as is whatever strangers say.
func TestMembersThatFallSilent(t *testing.T) {
	c := newCluster(t, 1, append([]string{"group.consumer.session.timeout.ms=1500"}, groupSets...)...)
	c.create("t", 4, 1)
	id := c.nodes[0].view.Load().Topics["t"].ID
	await(t, "the coordinator", func() bool { // the first to ask makes the internal topic
		q := kmsg.NewPtrFindCoordinatorRequest()
		q.CoordinatorKey = "classic"
		return c.ask(0, q).(*kmsg.FindCoordinatorResponse).ErrorCode == 0
	})
	join := kmsg.NewPtrJoinGroupRequest()
	join.Version, join.Group, join.ProtocolType, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = 3, "classic", "consumer", 1000, 1000
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: new(kmsg.ConsumerMemberMetadata).AppendTo(nil)}}
	beat := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	beat.Version, beat.Group, beat.MemberID, beat.RebalanceTimeoutMillis = 1, "consumer", "silent", 1000
	beat.SubscribedTopicNames, beat.Topics = []string{"t"}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}

	silent, err := wire.Dial(c.ctx(), c.addrs[0], "silent", 1<<20) // open to the end, but nothing comes any more
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	var joined *kmsg.JoinGroupResponse
	await(t, "the silent member is in both groups", func() bool {
		r, err := silent.Do(c.ctx(), join)
		if err != nil {
			t.Fatal(err)
		}
		joined = r.(*kmsg.JoinGroupResponse)
		if r, err = silent.Do(c.ctx(), beat); err != nil {
			t.Fatal(err)
		}
		return joined.ErrorCode == 0 && r.(*kmsg.ConsumerGroupHeartbeatResponse).ErrorCode == 0
	})
	classic := c.member("classic", "t", kgo.Balancers(kgo.RangeBalancer()))
	consumer := c.member("consumer", "t", kgo.Balancers(kgo.StickyBalancer()), kgo.ServerSideBalancer())
	c.awaitShares(4, []*groupMember{classic}, 4)
	c.awaitShares(4, []*groupMember{consumer}, 4)

	commit := func(group, member string, generation int32, partition int32, metadata string) int16 {
		q := kmsg.NewPtrOffsetCommitRequest()
		q.Version, q.Group, q.MemberID, q.Generation = 9, group, member, generation
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.Metadata = partition, 3, &metadata
		q.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", TopicID: id, Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
		return c.ask(0, q).(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode
	}
	heartbeat := func(member string) int16 {
		q := kmsg.NewPtrHeartbeatRequest()
		q.Group, q.MemberID, q.Generation = "classic", member, joined.Generation
		return c.ask(0, q).(*kmsg.HeartbeatResponse).ErrorCode
	}
	rejoin := func(member string) int16 {
		q := *join
		q.MemberID = member
		return c.ask(0, &q).(*kmsg.JoinGroupResponse).ErrorCode
	}
	beatAs := func(member string, epoch int32) int16 {
		q := *beat
		q.MemberID, q.MemberEpoch = member, epoch
		return c.ask(0, &q).(*kmsg.ConsumerGroupHeartbeatResponse).ErrorCode
	}
	long := strings.Repeat("m", 4097)
	for _, tc := range []struct {
		what string
		got  int16
		want *kerr.Error
	}{
		{"heartbeat of the silent member", heartbeat(joined.MemberID), kerr.UnknownMemberID},
		{"join of the silent member", rejoin(joined.MemberID), kerr.UnknownMemberID},
		{"commit of the silent member", commit("classic", joined.MemberID, joined.Generation, 0, ""), kerr.UnknownMemberID},
		{"commit of the silent member, KIP-848", commit("consumer", "silent", 1, 0, ""), kerr.UnknownMemberID},
		{"heartbeat of the silent member, KIP-848", beatAs("silent", 1), kerr.UnknownMemberID},
		{"heartbeat of a stranger", heartbeat("stranger"), kerr.UnknownMemberID},
		{"join of a stranger", rejoin("stranger"), kerr.UnknownMemberID},
		{"heartbeat of a stranger, KIP-848", beatAs("stranger", 3), kerr.UnknownMemberID},
		{"commit of nobody in a group with members", commit("classic", "", -1, 0, ""), kerr.UnknownMemberID},
		{"commit for a partition that is not there", commit("elsewhere", "", -1, 4, ""), kerr.UnknownTopicOrPartition},
		{"commit for a negative partition", commit("elsewhere", "", -1, -1, ""), kerr.UnknownTopicOrPartition},
		{"metadata beyond the limit", commit("elsewhere", "", -1, 0, long), kerr.OffsetMetadataTooLarge},
	} {
		if tc.got != tc.want.Code {
			t.Errorf("%s: %v, want %v", tc.what, kerr.ErrorForCode(tc.got), tc.want)
		}
	}
	if code := commit("elsewhere", "", -1, 0, long[:4096]); code != 0 {
		t.Errorf("metadata of just the limit: %v", kerr.ErrorForCode(code))
	}
	producer := c.client()
	for p := range int32(4) {
		c.produce(producer, "t", p, fmt.Sprint(p), 10)
	}
	await(t, "both groups read all 40 records", func() bool { return classic.values() == 40 && consumer.values() == 40 })
}
