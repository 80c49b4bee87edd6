package group

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestR38AJoinWaitsForAllKnownMembersOrItsTime(t *testing.T) {
	b := newBench(t)
	ids, generation := b.stable(3)
	late := b.send(joinRequest(ids[0])) // the leader joins again: a new round
	second := b.send(joinRequest(ids[1]))
	if b.reply[late] != nil || b.reply[second] != nil {
		t.Fatal("a join is answered before the third member has come")
	}
	third := b.send(joinRequest(ids[2]))
	for _, n := range []int{late, second, third} {
		r := got[*kmsg.JoinGroupResponse](b, n)
		b.code(nil, r.ErrorCode, "join")
		if r.Generation != generation+1 {
			t.Errorf("generation %d after %d", r.Generation, generation)
		}
	}

	// Again, and the third one does not come: the rebalance timeout (20 s) ends the round without it. Heartbeats keep it alive until then.
	b.send(syncRequest(ids[0], generation+1, nil))
	late, second = b.send(joinRequest(ids[0])), b.send(joinRequest(ids[1]))
	for range 4 {
		b.pass(4800 * time.Millisecond)
		b.code(kerr.RebalanceInProgress, do[*kmsg.HeartbeatResponse](b, heartbeatRequest(ids[2], generation+1)).ErrorCode, "heartbeat in a round (R43)")
		if b.reply[late] != nil {
			t.Fatal("the round ended before its time")
		}
	}
	b.pass(time.Second)
	if r := got[*kmsg.JoinGroupResponse](b, late); r.Generation != generation+2 || len(r.Members) != 2 {
		t.Errorf("generation %d with %d members, expected %d with 2", r.Generation, len(r.Members), generation+2)
	}
	got[*kmsg.JoinGroupResponse](b, second)
	b.code(kerr.UnknownMemberID, do[*kmsg.HeartbeatResponse](b, heartbeatRequest(ids[2], generation+2)).ErrorCode, "heartbeat of the one that did not come")
}

func TestR38SyncHeartbeatAndCommitAreCheckedByMemberAndGeneration(t *testing.T) {
	b := newBench(t)
	ids, generation := b.stable(2)
	for _, x := range []struct {
		id         string
		generation int32
		want       *kerr.Error
	}{
		{ids[0], generation, nil}, {ids[1], generation - 1, kerr.IllegalGeneration}, {ids[1], generation + 1, kerr.IllegalGeneration}, {"stranger", generation, kerr.UnknownMemberID}, {"", -1, kerr.UnknownMemberID},
	} {
		b.code(x.want, b.commitAs(x.id, x.generation, "a", 0, 7), "commit of "+x.id)
		if x.id == "" {
			continue
		}
		b.code(x.want, do[*kmsg.HeartbeatResponse](b, heartbeatRequest(x.id, x.generation)).ErrorCode, "heartbeat of "+x.id)
		b.code(x.want, do[*kmsg.SyncGroupResponse](b, syncRequest(x.id, x.generation, nil)).ErrorCode, "sync of "+x.id)
	}
	wrong := syncRequest(ids[0], generation, nil)
	wrong.Protocol = kmsg.StringPtr("roundrobin")
	b.code(kerr.InconsistentGroupProtocol, do[*kmsg.SyncGroupResponse](b, wrong).ErrorCode, "sync for another protocol")
	wrong.Protocol = nil
	b.code(kerr.InconsistentGroupProtocol, do[*kmsg.SyncGroupResponse](b, wrong).ErrorCode, "sync for no protocol")

	// Between join and sync a commit is refused: the assignment may be another one.
	b.send(joinRequest(ids[0]))
	r := got[*kmsg.JoinGroupResponse](b, b.send(joinRequest(ids[1])))
	b.code(kerr.RebalanceInProgress, b.commitAs(ids[0], r.Generation, "a", 0, 8), "commit between join and sync")
	b.code(nil, do[*kmsg.HeartbeatResponse](b, heartbeatRequest(ids[0], r.Generation)).ErrorCode, "heartbeat between join and sync")
	if o := b.committed("a", 0); o != 7 {
		t.Errorf("offset %d, expected 7", o)
	}
}

func TestR39MemberIDRequired(t *testing.T) {
	b := newBench(t)
	id := b.announce()
	if r := do[*kmsg.JoinGroupResponse](b, joinRequest("made-up")); r.ErrorCode != kerr.UnknownMemberID.Code {
		t.Errorf("an id that was never given out: code %d", r.ErrorCode)
	}
	b.pass(11 * time.Second) // the session of the one that never came back
	if r := do[*kmsg.JoinGroupResponse](b, joinRequest(id)); r.ErrorCode != kerr.UnknownMemberID.Code {
		t.Errorf("an id whose time is over: code %d", r.ErrorCode)
	}
	if len(b.c.groups) != 0 || len(b.log) != 0 {
		t.Errorf("%d groups and %d batches are left of somebody who only asked for an id", len(b.c.groups), len(b.log))
	}
	old := joinRequest("")
	old.Version = 3 // before KIP-394
	n := b.send(old)
	b.pass(3 * time.Second)
	b.code(nil, got[*kmsg.JoinGroupResponse](b, n).ErrorCode, "join v3")
}

func staticJoin(id, instance string) *kmsg.JoinGroupRequest {
	q := joinRequest(id)
	q.InstanceID = &instance
	return q
}

func TestR39StaticMembersAreReplacedAndFenced(t *testing.T) {
	b := newBench(t)
	one, two := b.send(staticJoin("", "i1")), b.send(staticJoin("", "i2"))
	b.pass(6 * time.Second)
	r1, r2 := got[*kmsg.JoinGroupResponse](b, one), got[*kmsg.JoinGroupResponse](b, two)
	s := syncRequest(r1.MemberID, r1.Generation, map[string]string{r1.MemberID: "x", r2.MemberID: "y"})
	b.code(nil, do[*kmsg.SyncGroupResponse](b, s).ErrorCode, "sync")

	// The second one restarts: same generation, same assignment, another id, and it is in the log before it is told.
	b.hold = true
	n := b.send(staticJoin("", "i2"))
	if b.reply[n] != nil {
		t.Fatal("R41: the new id is told before it is in the log")
	}
	b.hold = false
	b.commit()
	again := got[*kmsg.JoinGroupResponse](b, n)
	b.code(nil, again.ErrorCode, "join of a static member that restarted")
	if again.Generation != r1.Generation || again.MemberID == r2.MemberID {
		t.Errorf("generation %d, id %q; before: %d, %q", again.Generation, again.MemberID, r1.Generation, r2.MemberID)
	}
	sync := syncRequest(again.MemberID, again.Generation, nil)
	sync.InstanceID = kmsg.StringPtr("i2")
	if r := do[*kmsg.SyncGroupResponse](b, sync); string(r.MemberAssignment) != "y" {
		t.Errorf("assignment %q, expected the one of before", r.MemberAssignment)
	}
	former := heartbeatRequest(r2.MemberID, r2.Generation)
	former.InstanceID = kmsg.StringPtr("i2")
	b.code(kerr.FencedInstanceID, do[*kmsg.HeartbeatResponse](b, former).ErrorCode, "heartbeat of the former one")
	late := commitRequest(r2.MemberID, r2.Generation, "a", 0, 1)
	late.InstanceID = kmsg.StringPtr("i2")
	b.code(kerr.FencedInstanceID, do[*kmsg.OffsetCommitResponse](b, late).Topics[0].Partitions[0].ErrorCode, "commit of the former one")

	// The leader restarts: it is told that it leads and has nothing to assign.
	lead := got[*kmsg.JoinGroupResponse](b, b.send(staticJoin("", "i1")))
	if !lead.SkipAssignment || lead.LeaderID != lead.MemberID || len(lead.Members) != 2 {
		t.Errorf("leader after its restart: %+v", lead)
	}
	// With another subscription it is a new round.
	other := staticJoin("", "i2")
	other.Protocols[0].Metadata = consumerMetadata("b")
	if n := b.send(other); b.reply[n] != nil {
		t.Error("a static member with another subscription is let in without a round")
	}
}

func TestR40CooperativeRoundsAreTheLeadersToBegin(t *testing.T) {
	b := newBench(t)
	ids, generation := b.stable(2)
	// A follower that joins again with what it had is told the current generation: nothing has changed.
	r := do[*kmsg.JoinGroupResponse](b, joinRequest(ids[1]))
	if r.ErrorCode != 0 || r.Generation != generation {
		t.Fatalf("follower, unchanged: code %d, generation %d", r.ErrorCode, r.Generation)
	}
	// With other owned partitions in its metadata it begins a round; so does the leader in any case.
	revoked := joinRequest(ids[1])
	revoked.Protocols[0].Metadata = append(consumerMetadata("a"), 0)
	for _, round := range [][2]*kmsg.JoinGroupRequest{{revoked, joinRequest(ids[0])}, {joinRequest(ids[0]), revoked}} {
		if n := b.send(round[0]); b.reply[n] != nil {
			t.Fatal("the join was answered without a round")
		}
		b.code(kerr.RebalanceInProgress, do[*kmsg.HeartbeatResponse](b, heartbeatRequest(ids[0], generation)).ErrorCode, "heartbeat in the round")
		b.send(round[1])
		generation++
		b.send(syncRequest(ids[0], generation, map[string]string{ids[0]: "exactly", ids[1]: "this"}))
		if s := do[*kmsg.SyncGroupResponse](b, syncRequest(ids[1], generation, nil)); string(s.MemberAssignment) != "this" {
			t.Fatalf("assignment %q (code %d), expected what the leader gave", s.MemberAssignment, s.ErrorCode)
		}
	}
}

func TestR41NothingIsAnsweredBeforeItIsCommitted(t *testing.T) {
	b := newBench(t)
	ids, generation := b.stable(1)
	b.hold = true
	n := b.send(commitRequest(ids[0], generation, "a", 0, 5))
	if b.reply[n] != nil {
		t.Fatal("a commit is acknowledged before it is in the log")
	}
	if g := b.c.groups["g"]; len(g.offsets) != 0 {
		t.Fatalf("offsets %v before they are committed", g.offsets)
	}
	b.hold = false
	b.commit()
	b.code(nil, got[*kmsg.OffsetCommitResponse](b, n).Topics[0].Partitions[0].ErrorCode, "commit")
	if o := b.committed("a", 0); o != 5 {
		t.Fatalf("offset %d, expected 5", o)
	}

	// Too long, and the client is told to ask again; the commit itself may still happen.
	b.hold = true
	n = b.send(commitRequest(ids[0], generation, "a", 0, 6))
	b.pass(5 * time.Second)
	b.code(kerr.CoordinatorNotAvailable, got[*kmsg.OffsetCommitResponse](b, n).Topics[0].Partitions[0].ErrorCode, "commit without an end")
	b.hold = false
	b.commit()
	if o := b.committed("a", 0); o != 6 {
		t.Fatalf("offset %d, expected 6", o)
	}
}

func TestR41AssignmentsWaitForTheLog(t *testing.T) {
	b := newBench(t)
	ids, generation := b.stable(2)
	b.send(joinRequest(ids[0]))
	b.send(joinRequest(ids[1]))
	generation++
	b.hold = true
	follower := b.send(syncRequest(ids[1], generation, nil))
	leader := b.send(syncRequest(ids[0], generation, map[string]string{ids[0]: "x", ids[1]: "y"}))
	if b.reply[leader] != nil || b.reply[follower] != nil {
		t.Fatal("an assignment is handed out before it is in the log")
	}
	b.hold = false
	b.commit()
	if r := got[*kmsg.SyncGroupResponse](b, follower); string(r.MemberAssignment) != "y" {
		t.Errorf("assignment %q", r.MemberAssignment)
	}
	got[*kmsg.SyncGroupResponse](b, leader)
}

func TestR41FailoverLoadsEverythingFirst(t *testing.T) {
	b := newBench(t)
	ids, generation := b.stable(2)
	b.code(nil, b.commitAs(ids[0], generation, "a", 1, 11), "commit")

	next := New(b.cfg)
	ask := func(q kmsg.Request) kmsg.Response {
		for _, e := range next.Step(b.now, Request{Token: 0, Body: q}) {
			return e.(Reply).Body
		}
		return nil
	}
	for _, q := range []kmsg.Request{heartbeatRequest(ids[0], generation), joinRequest(""), syncRequest(ids[0], generation, nil)} {
		if r := ask(q); codeOf(r) != kerr.CoordinatorLoadInProgress.Code {
			t.Errorf("%s while loading: %+v", kmsg.NameForKey(q.Key()), r)
		}
	}
	b.boot()
	b.code(nil, do[*kmsg.HeartbeatResponse](b, heartbeatRequest(ids[1], generation)).ErrorCode, "heartbeat at the new coordinator")
	if o := b.committed("a", 1); o != 11 {
		t.Errorf("offset %d after the failover, expected 11", o)
	}
	// The old one answers NOT_COORDINATOR, also to those who wait.
	waits := b.send(joinRequest(ids[0]))
	b.step(Resign{})
	b.code(kerr.NotCoordinator, got[*kmsg.JoinGroupResponse](b, waits).ErrorCode, "a join that waited")
	b.code(kerr.NotCoordinator, do[*kmsg.HeartbeatResponse](b, heartbeatRequest(ids[1], generation)).ErrorCode, "heartbeat at the old coordinator")
}

func codeOf(r kmsg.Response) int16 {
	switch r := r.(type) {
	case *kmsg.HeartbeatResponse:
		return r.ErrorCode
	case *kmsg.JoinGroupResponse:
		return r.ErrorCode
	case *kmsg.SyncGroupResponse:
		return r.ErrorCode
	}
	return 0
}

func TestR41AFailedAppendEndsTheCoordinator(t *testing.T) {
	// Offsets alone, refused before they were written: nothing has happened.
	b := newBench(t)
	ids, generation := b.stable(1)
	b.fail = kerr.NotEnoughReplicas.Code
	b.code(kerr.CoordinatorNotAvailable, b.commitAs(ids[0], generation, "a", 0, 5), "commit")
	b.fail = 0
	if o := b.committed("a", 0); o != -1 || len(b.ended) > 0 {
		t.Fatalf("offset %d, ended %v", o, b.ended)
	}
	// Group state, or an end that is not known: only the log knows.
	b.fail = kerr.NotEnoughReplicasAfterAppend.Code
	b.code(kerr.CoordinatorNotAvailable, b.commitAs(ids[0], generation, "a", 0, 6), "commit")
	if len(b.ended) != 1 {
		t.Fatalf("ended %v, expected once", b.ended)
	}
	b.code(kerr.CoordinatorNotAvailable, do[*kmsg.HeartbeatResponse](b, heartbeatRequest(ids[0], generation)).ErrorCode, "heartbeat after the end")
}

func TestR42APartitionIsGivenOnceTheOldOwnerHasGivenItBack(t *testing.T) {
	b := newBench(t)
	one := do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m1", 0))
	b.code(nil, one.ErrorCode, "join")
	all, _ := given(one)
	if len(all) != 4 || one.MemberEpoch != 1 {
		t.Fatalf("epoch %d with %v, expected all of topic a in epoch 1", one.MemberEpoch, all)
	}
	two := do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m2", 0))
	if ps, told := given(two); !told || len(ps) != 0 || two.MemberEpoch != 2 {
		t.Fatalf("epoch %d with %v, expected nothing yet in epoch 2", two.MemberEpoch, ps)
	}
	// The old owner is told to give two back, and still has them until it says so.
	r := do[*kmsg.ConsumerGroupHeartbeatResponse](b, owning(beat("m1", 1), all))
	kept, told := given(r)
	if !told || len(kept) != 2 || r.MemberEpoch != 1 {
		t.Fatalf("epoch %d with %v, expected two of them in epoch 1", r.MemberEpoch, kept)
	}
	r = do[*kmsg.ConsumerGroupHeartbeatResponse](b, owning(beat("m1", 1), all))
	if two = do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m2", 2)); two.Assignment != nil || r.MemberEpoch != 1 {
		t.Fatalf("partitions %v are given before they were given back", two.Assignment)
	}
	r = do[*kmsg.ConsumerGroupHeartbeatResponse](b, owning(beat("m1", 1), kept))
	if r.MemberEpoch != 2 {
		t.Fatalf("epoch %d after the revocation, expected 2", r.MemberEpoch)
	}
	two = do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m2", 2))
	if ps, _ := given(two); len(ps) != 2 || len(ps.and(kept)) > 0 {
		t.Fatalf("the new owner has %v, the old one %v", ps, kept)
	}
}

func TestR42WhoeverDoesNotGiveBackIsPutOut(t *testing.T) {
	b := newBench(t)
	all, _ := given(do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m1", 0)))
	do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m2", 0))
	for range 25 { // it goes on sending heartbeats; its rebalance timeout is 20 s
		b.pass(time.Second)
		r := do[*kmsg.ConsumerGroupHeartbeatResponse](b, owning(beat("m1", 1), all))
		if r.ErrorCode == kerr.UnknownMemberID.Code {
			two := do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m2", 2))
			if ps, _ := given(two); len(ps) != 4 {
				t.Fatalf("the new owner has %v, expected all", ps)
			}
			b.code(kerr.UnknownMemberID, b.commitAs("m1", 1, "a", 0, 3), "commit of the one that was put out")
			return
		}
	}
	t.Fatal("the member that gives nothing back is still there")
}

func TestR43BlockedJoinsAndSyncsKeepMembersAlive(t *testing.T) {
	b := newBench(t)
	ids, generation := b.stable(2)
	n := b.send(joinRequest(ids[0]))
	b.pass(15 * time.Second) // longer than its session of 10 s; the other one is out by now
	r := got[*kmsg.JoinGroupResponse](b, n)
	if r.ErrorCode != 0 || r.Generation != generation+1 || len(r.Members) != 1 {
		t.Fatalf("code %d, generation %d, %d members", r.ErrorCode, r.Generation, len(r.Members))
	}
	b.send(syncRequest(ids[0], generation+1, nil))
	b.code(nil, do[*kmsg.HeartbeatResponse](b, heartbeatRequest(ids[0], generation+1)).ErrorCode, "heartbeat")
	b.pass(11 * time.Second)
	b.code(kerr.UnknownMemberID, do[*kmsg.HeartbeatResponse](b, heartbeatRequest(ids[0], generation+1)).ErrorCode, "heartbeat after the session")
}
