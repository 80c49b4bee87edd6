package group

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestJoinIsRefused(t *testing.T) {
	for name, x := range map[string]struct {
		change func(q *kmsg.JoinGroupRequest)
		want   *kerr.Error
	}{
		"no group":                {func(q *kmsg.JoinGroupRequest) { q.Group = "" }, kerr.InvalidGroupID},
		"a session too short":     {func(q *kmsg.JoinGroupRequest) { q.SessionTimeoutMillis = 10 }, kerr.InvalidSessionTimeout},
		"a session too long":      {func(q *kmsg.JoinGroupRequest) { q.SessionTimeoutMillis = 1 << 30 }, kerr.InvalidSessionTimeout},
		"no protocol type":        {func(q *kmsg.JoinGroupRequest) { q.ProtocolType = "" }, kerr.InconsistentGroupProtocol},
		"no protocols":            {func(q *kmsg.JoinGroupRequest) { q.Protocols = nil }, kerr.InconsistentGroupProtocol},
		"another protocol type":   {func(q *kmsg.JoinGroupRequest) { q.ProtocolType = "connect" }, kerr.InconsistentGroupProtocol},
		"no protocol in common":   {func(q *kmsg.JoinGroupRequest) { q.Protocols[0].Name = "mine" }, kerr.InconsistentGroupProtocol},
		"an id from elsewhere":    {func(q *kmsg.JoinGroupRequest) { q.MemberID = "elsewhere" }, kerr.UnknownMemberID},
		"an instance that is new": {func(q *kmsg.JoinGroupRequest) { q.MemberID, q.InstanceID = "elsewhere", kmsg.StringPtr("i") }, kerr.UnknownMemberID},
		"an empty instance id":    {func(q *kmsg.JoinGroupRequest) { q.InstanceID = kmsg.StringPtr("") }, kerr.InvalidRequest},
	} {
		b := newBench(t)
		b.stable(1)
		q := joinRequest("")
		x.change(q)
		b.code(x.want, do[*kmsg.JoinGroupResponse](b, q).ErrorCode, name)
	}
}

func TestTheFirstRoundWaitsForMoreMembers(t *testing.T) {
	b := newBench(t)
	first := b.send(joinRequest(b.announce()))
	b.pass(2900 * time.Millisecond)
	b.send(joinRequest(b.announce()))
	b.pass(2900 * time.Millisecond)
	if b.reply[first] != nil {
		t.Fatal("a newcomer does not prolong the first round")
	}
	b.pass(200 * time.Millisecond)
	if r := got[*kmsg.JoinGroupResponse](b, first); len(r.Members) != 2 {
		t.Errorf("%d members", len(r.Members))
	}
}

func TestProtocolsAreVotedOn(t *testing.T) {
	b := newBench(t)
	join := func(protocols ...string) int {
		q := joinRequest(b.announce())
		q.Protocols = nil
		for _, p := range protocols {
			q.Protocols = append(q.Protocols, kmsg.JoinGroupRequestProtocol{Name: p, Metadata: []byte(p)})
		}
		return b.send(q)
	}
	n := join("sticky", "range")
	join("range", "roundrobin", "sticky")
	join("range", "sticky")
	b.pass(10 * time.Second)
	r := got[*kmsg.JoinGroupResponse](b, n)
	if *r.Protocol != "range" || string(r.Members[1].ProtocolMetadata) != "range" {
		t.Errorf("protocol %q", *r.Protocol)
	}
}

// A static member that is away keeps its place until its session ends, also over a round.
func TestAStaticMemberThatIsAwayKeepsItsPlace(t *testing.T) {
	b := newBench(t)
	one, two := b.send(staticJoin("", "i1")), b.send(staticJoin("", "i2"))
	b.pass(6 * time.Second)
	r1, r2 := got[*kmsg.JoinGroupResponse](b, one), got[*kmsg.JoinGroupResponse](b, two)
	b.send(syncRequest(r1.MemberID, r1.Generation, nil))
	short := staticJoin(r1.MemberID, "i1")
	short.RebalanceTimeoutMillis = 1000
	other := staticJoin(r2.MemberID, "i2")
	other.RebalanceTimeoutMillis, other.SessionTimeoutMillis = 1000, 30_000
	n := b.send(short)
	b.send(other)
	r := got[*kmsg.JoinGroupResponse](b, n)
	b.code(nil, r.ErrorCode, "round with both")
	b.send(syncRequest(r1.MemberID, r.Generation, nil))
	n = b.send(short) // the other one is away
	b.pass(1100 * time.Millisecond)
	if r := got[*kmsg.JoinGroupResponse](b, n); len(r.Members) != 2 || r.LeaderID != r1.MemberID {
		t.Errorf("%d members after a round without the static one, expected 2", len(r.Members))
	}
	// Now the one that leads is away: the other one leads.
	b.send(syncRequest(r1.MemberID, r.Generation+1, nil))
	changed := staticJoin(r2.MemberID, "i2")
	changed.RebalanceTimeoutMillis, changed.SessionTimeoutMillis = 1000, 30_000
	changed.Protocols[0].Metadata = consumerMetadata("b")
	n = b.send(changed)
	b.pass(1100 * time.Millisecond)
	if r := got[*kmsg.JoinGroupResponse](b, n); r.LeaderID != r2.MemberID || len(r.Members) != 2 {
		t.Errorf("leader %q of %d members, expected the one that is there, %q", r.LeaderID, len(r.Members), r2.MemberID)
	}
}

func TestARoundWaitsForWhoeverWasGivenAnID(t *testing.T) {
	b := newBench(t)
	ids, _ := b.stable(1)
	late := b.announce()
	n := b.send(joinRequest(ids[0]))
	if b.reply[n] != nil {
		t.Fatal("the round ended before the announced member had come")
	}
	b.send(joinRequest(late))
	if r := got[*kmsg.JoinGroupResponse](b, n); len(r.Members) != 2 {
		t.Errorf("%d members", len(r.Members))
	}
}

// An assignment that is under way when another round begins is of no use any more, and does not stand in the way of the next one.
func TestARoundBeginsWhileAnAssignmentIsUnderWay(t *testing.T) {
	b := newBench(t)
	ids, generation := b.stable(2)
	b.send(joinRequest(ids[0]))
	b.send(joinRequest(ids[1]))
	b.hold = true
	old := b.send(syncRequest(ids[0], generation+1, map[string]string{ids[0]: "old"}))
	changed := joinRequest(ids[1])
	changed.Protocols[0].Metadata = consumerMetadata("b")
	b.send(changed)
	b.code(kerr.RebalanceInProgress, got[*kmsg.SyncGroupResponse](b, old).ErrorCode, "sync of the round before")
	b.send(joinRequest(ids[0]))
	n := b.send(syncRequest(ids[0], generation+2, map[string]string{ids[0]: "new"}))
	b.hold = false
	b.commit()
	if r := got[*kmsg.SyncGroupResponse](b, n); string(r.MemberAssignment) != "new" {
		t.Errorf("assignment %q (code %d)", r.MemberAssignment, r.ErrorCode)
	}
}

func TestAStaticJoinThatWaitsIsFencedByAnother(t *testing.T) {
	b := newBench(t)
	one := b.send(staticJoin("", "i1"))
	two := b.send(staticJoin("", "i1"))
	b.code(kerr.FencedInstanceID, got[*kmsg.JoinGroupResponse](b, one).ErrorCode, "the former one")
	b.pass(4 * time.Second)
	if r := got[*kmsg.JoinGroupResponse](b, two); r.ErrorCode != 0 || len(r.Members) != 1 {
		t.Errorf("code %d, %d members", r.ErrorCode, len(r.Members))
	}
	if k := b.c.groups["g"].classic; k.waiting != 0 {
		t.Errorf("%d are said to wait", k.waiting)
	}
}

func TestASyncDoesNotWaitForTheLogForEver(t *testing.T) {
	b := newBench(t)
	ids, generation := b.stable(2)
	b.send(joinRequest(ids[0]))
	b.send(joinRequest(ids[1]))
	b.hold = true
	follower := b.send(syncRequest(ids[1], generation+1, nil))
	leader := b.send(syncRequest(ids[0], generation+1, map[string]string{ids[1]: "y"}))
	b.pass(11 * time.Second)
	for _, n := range []int{leader, follower} {
		b.code(kerr.CoordinatorNotAvailable, got[*kmsg.SyncGroupResponse](b, n).ErrorCode, "sync")
	}
	again := b.send(syncRequest(ids[1], generation+1, nil))
	b.hold = false
	b.commit()
	if r := got[*kmsg.SyncGroupResponse](b, again); string(r.MemberAssignment) != "y" {
		t.Errorf("assignment %q (code %d)", r.MemberAssignment, r.ErrorCode)
	}
}

func TestWhoeverHasNotBeenInAGenerationCommitsNothing(t *testing.T) {
	b := newBench(t)
	id := b.announce()
	b.send(joinRequest(id))
	b.code(kerr.RebalanceInProgress, b.commitAs(id, 0, "a", 0, 1), "commit before the first round has ended")
}

func TestWhoeverDoesNotSyncIsPutOut(t *testing.T) {
	b := newBench(t)
	ids, generation := b.stable(2)
	b.send(joinRequest(ids[0]))
	b.send(joinRequest(ids[1]))
	generation++
	n := b.send(syncRequest(ids[1], generation, nil)) // the leader does not
	for range 4 {
		b.pass(5500 * time.Millisecond)
		b.send(heartbeatRequest(ids[0], generation))
	}
	if r := got[*kmsg.SyncGroupResponse](b, n); r.ErrorCode != kerr.RebalanceInProgress.Code {
		t.Errorf("sync of the follower: code %d, expected a new round", r.ErrorCode)
	}
	b.code(kerr.UnknownMemberID, do[*kmsg.HeartbeatResponse](b, heartbeatRequest(ids[0], generation)).ErrorCode, "heartbeat of the leader that never synced")
}

func TestLeaveAndDescribe(t *testing.T) {
	b := newBench(t)
	ids, generation := b.stable(2)
	describe := func(version int16) kmsg.DescribeGroupsResponseGroup {
		q := kmsg.NewPtrDescribeGroupsRequest()
		q.Version, q.Groups = version, []string{"g", "nobody"}
		r := do[*kmsg.DescribeGroupsResponse](b, q)
		if nobody := r.Groups[1]; nobody.State != "Dead" || (nobody.ErrorCode == kerr.GroupIDNotFound.Code) != (version >= 6) {
			t.Errorf("v%d, a group that is not there: %+v", version, nobody)
		}
		return r.Groups[0]
	}
	if d := describe(5); d.State != "Stable" || d.Protocol != "range" || len(d.Members) != 2 || string(d.Members[1].MemberAssignment) != "for "+ids[1] || d.Members[0].ClientHost != "127.0.0.1" {
		t.Errorf("%+v", d)
	}
	r := do[*kmsg.LeaveGroupResponse](b, leaveRequest(ids[1], "stranger"))
	b.code(nil, r.Members[0].ErrorCode, "leave")
	b.code(kerr.UnknownMemberID, r.Members[1].ErrorCode, "leave of a stranger")
	if d := describe(6); d.State != "PreparingRebalance" || len(d.Members) != 1 {
		t.Errorf("%+v", d)
	}
	b.code(kerr.RebalanceInProgress, do[*kmsg.HeartbeatResponse](b, heartbeatRequest(ids[0], generation)).ErrorCode, "heartbeat of the one that stays")
	old := kmsg.NewPtrLeaveGroupRequest()
	old.Version, old.Group, old.MemberID = 1, "g", ids[0]
	b.code(nil, do[*kmsg.LeaveGroupResponse](b, old).ErrorCode, "leave v1")
	if d := describe(5); d.State != "Empty" {
		t.Errorf("%+v", d)
	}
	list := kmsg.NewPtrListGroupsRequest()
	list.Version, list.StatesFilter, list.TypesFilter = 5, []string{"empty"}, []string{"CLASSIC"}
	if l := do[*kmsg.ListGroupsResponse](b, list); len(l.Groups) != 1 || l.Groups[0].GroupState != "Empty" || l.Groups[0].GroupType != "classic" {
		t.Errorf("%+v", l.Groups)
	}
	list = kmsg.NewPtrListGroupsRequest()
	list.Version, list.StatesFilter = 5, []string{"Stable"}
	if l := do[*kmsg.ListGroupsResponse](b, list); len(l.Groups) != 0 {
		t.Errorf("%+v", l.Groups)
	}
}

// More members than partitions are no matter for the coordinator: whoever leads may give nothing to some.
func TestIdleMembers(t *testing.T) {
	b := newBench(t)
	ids, generation := b.stable(7)
	for _, id := range ids {
		b.code(nil, do[*kmsg.HeartbeatResponse](b, heartbeatRequest(id, generation)).ErrorCode, "heartbeat")
	}
}

func TestTenThousandMembersAtOnce(t *testing.T) {
	b := newBench(t)
	b.cfg.MaxSize = 2000
	b.boot()
	refused := 0
	var ids []string
	for range 10_000 {
		r := do[*kmsg.JoinGroupResponse](b, joinRequest(""))
		switch r.ErrorCode {
		case kerr.MemberIDRequired.Code:
			ids = append(ids, r.MemberID)
		case kerr.GroupMaxSizeReached.Code:
			refused++
		default:
			t.Fatalf("code %d", r.ErrorCode)
		}
	}
	if len(ids) != 2000 || refused != 8000 {
		t.Fatalf("%d let in, %d refused", len(ids), refused)
	}
	var joins []int
	for _, id := range ids {
		joins = append(joins, b.send(joinRequest(id)))
	}
	other := joinRequest("") // another group is served meanwhile
	other.Group = "other"
	b.code(kerr.MemberIDRequired, do[*kmsg.JoinGroupResponse](b, other).ErrorCode, "join of another group")
	for b.reply[joins[0]] == nil {
		b.pass(time.Second)
	}
	assign := map[string]string{}
	generation := got[*kmsg.JoinGroupResponse](b, joins[0]).Generation
	for i, id := range ids {
		b.code(nil, got[*kmsg.JoinGroupResponse](b, joins[i]).ErrorCode, "join")
		assign[id] = fmt.Sprint(i)
	}
	for i, id := range ids {
		give := assign
		if i > 0 {
			give = nil
		}
		if r := do[*kmsg.SyncGroupResponse](b, syncRequest(id, generation, give)); string(r.MemberAssignment) != fmt.Sprint(i) {
			t.Fatalf("member %d is assigned %q (code %d)", i, r.MemberAssignment, r.ErrorCode)
		}
	}
}

func TestMembersWithHugeSubscriptionsAreRefused(t *testing.T) {
	b := newBench(t)
	refused := false
	for range 40 {
		q := joinRequest("")
		q.Version = 3
		q.Protocols[0].Metadata = make([]byte, 1<<20)
		if n := b.send(q); b.reply[n] != nil {
			b.code(kerr.GroupMaxSizeReached, got[*kmsg.JoinGroupResponse](b, n).ErrorCode, "join")
			refused = true
		}
	}
	if !refused {
		t.Error("40 MiB of subscriptions in one group are taken")
	}
}

func TestGroupsAreBounded(t *testing.T) {
	b := newBench(t)
	for i := range 60 {
		q := commitRequest("", -1, "a", 0, 1)
		q.Group = fmt.Sprint(i)
		want := (*kerr.Error)(nil)
		if i >= 50 {
			want = kerr.GroupMaxSizeReached
		}
		b.code(want, do[*kmsg.OffsetCommitResponse](b, q).Topics[0].Partitions[0].ErrorCode, fmt.Sprint("group ", i))
	}
}

func TestTheLeaderAssignsOnce(t *testing.T) {
	b := newBench(t)
	ids, generation := b.stable(2)
	written := len(b.log)
	r := do[*kmsg.SyncGroupResponse](b, syncRequest(ids[0], generation, map[string]string{ids[0]: "something else"}))
	if string(r.MemberAssignment) != "for "+ids[0] || len(b.log) != written {
		t.Errorf("assignment %q, %d batches written", r.MemberAssignment, len(b.log)-written)
	}
	b.send(joinRequest(ids[0]))
	b.send(joinRequest(ids[1]))
	huge := syncRequest(ids[0], generation+1, map[string]string{ids[0]: strings.Repeat("x", 40<<20)})
	b.code(kerr.InvalidCommitOffsetSize, do[*kmsg.SyncGroupResponse](b, huge).ErrorCode, "40 MiB of assignments")
}

// What keeps a member alive, and from when on its session counts. Sessions are 10 s.
func TestSessions(t *testing.T) {
	alive := func(b *bench, id string) bool { return b.c.groups["g"].classic.byID[id] != nil }
	b := newBench(t)
	ids, generation := b.stable(2)
	for range 3 {
		b.pass(9 * time.Second)
		b.code(nil, b.commitAs(ids[0], generation, "a", 0, 1), "commit")
		b.code(nil, do[*kmsg.SyncGroupResponse](b, syncRequest(ids[1], generation, nil)).ErrorCode, "sync")
	}
	if !alive(b, ids[0]) || !alive(b, ids[1]) {
		t.Error("commits and syncs do not keep members alive")
	}
	b.boot()
	b.pass(9900 * time.Millisecond)
	if !alive(b, ids[0]) {
		t.Error("a failover cuts a session short")
	}
	b.pass(200 * time.Millisecond)
	if alive(b, ids[0]) {
		t.Error("after a failover a session has no end")
	}

	b = newBench(t)
	id := b.announce()
	b.send(joinRequest(id))
	for b.c.groups["g"].classic.state != stateCompleting {
		b.pass(time.Second)
	}
	b.pass(10100 * time.Millisecond) // it never syncs
	if alive(b, id) {
		t.Error("after the join a session has no end")
	}
}

func TestDescribeWaitsForWhatItTells(t *testing.T) {
	b := newBench(t)
	b.stable(1)
	b.hold = true
	for _, id := range []string{"x", "y"} {
		q := joinRequest("")
		q.Group, q.Version = id, 3
		b.send(q)
	}
	b.pass(4 * time.Second)
	for _, id := range []string{"x", "y"} {
		k := b.c.groups[id].classic
		q := syncRequest(k.leader, k.generation, nil)
		q.Group = id
		b.send(q)
	}
	ask := kmsg.NewPtrDescribeGroupsRequest()
	ask.Groups = []string{"y", "x", "g"}
	n := b.send(ask)
	if len(b.open) != 2 {
		t.Fatalf("%d appends", len(b.open))
	}
	first := b.open[0].ID
	b.open = b.open[1:]
	b.step(Appended{ID: first})
	if b.reply[n] != nil {
		t.Fatal("a description is given before what it tells is in the log")
	}
	b.hold = false
	b.commit()
	got[*kmsg.DescribeGroupsResponse](b, n)
}
