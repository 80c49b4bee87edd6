package group

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"
)

func TestHeartbeatIsRefused(t *testing.T) {
	for name, x := range map[string]struct {
		change func(q *kmsg.ConsumerGroupHeartbeatRequest)
		want   *kerr.Error
	}{
		"no group":                {func(q *kmsg.ConsumerGroupHeartbeatRequest) { q.Group = "" }, kerr.InvalidRequest},
		"no member id in v1":      {func(q *kmsg.ConsumerGroupHeartbeatRequest) { q.MemberID = "" }, kerr.InvalidRequest},
		"epoch −3":                {func(q *kmsg.ConsumerGroupHeartbeatRequest) { q.MemberEpoch = -3 }, kerr.InvalidRequest},
		"−2 and no instance":      {func(q *kmsg.ConsumerGroupHeartbeatRequest) { q.MemberEpoch = -2 }, kerr.InvalidRequest},
		"joins and owns":          {func(q *kmsg.ConsumerGroupHeartbeatRequest) { owning(q, parts{{topicID(1), 0}}) }, kerr.InvalidRequest},
		"joins without a timeout": {func(q *kmsg.ConsumerGroupHeartbeatRequest) { q.RebalanceTimeoutMillis = -1 }, kerr.InvalidRequest},
		"subscribes to nothing":   {func(q *kmsg.ConsumerGroupHeartbeatRequest) { q.SubscribedTopicNames = nil }, kerr.InvalidRequest},
		"an unknown assignor":     {func(q *kmsg.ConsumerGroupHeartbeatRequest) { q.ServerAssignor = kmsg.StringPtr("mine") }, kerr.UnsupportedAssignor},
		"a bad expression":        {func(q *kmsg.ConsumerGroupHeartbeatRequest) { q.SubscribedTopicRegex = kmsg.StringPtr("(") }, kerr.InvalidRegularExpression},
		"an epoch from nowhere":   {func(q *kmsg.ConsumerGroupHeartbeatRequest) { q.MemberEpoch = 5 }, kerr.UnknownMemberID},
		"too new an epoch":        {func(q *kmsg.ConsumerGroupHeartbeatRequest) { q.MemberID, q.MemberEpoch = "there", 5 }, kerr.FencedMemberEpoch},
	} {
		b := newBench(t)
		do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("there", 0))
		q := beat("m", 0)
		x.change(q)
		b.code(x.want, do[*kmsg.ConsumerGroupHeartbeatResponse](b, q).ErrorCode, name)
	}
}

// The answer with a newer epoch may be lost: whoever comes with the one before and has nothing but what it was given is told again.
func TestALostAnswerIsRepeated(t *testing.T) {
	b := newBench(t)
	all, _ := given(do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m1", 0)))
	do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m2", 0))
	kept, _ := given(do[*kmsg.ConsumerGroupHeartbeatResponse](b, owning(beat("m1", 1), all)))
	r := do[*kmsg.ConsumerGroupHeartbeatResponse](b, owning(beat("m1", 1), kept)) // this answer is lost
	if r.MemberEpoch != 2 {
		t.Fatalf("epoch %d", r.MemberEpoch)
	}
	r = do[*kmsg.ConsumerGroupHeartbeatResponse](b, owning(beat("m1", 1), kept))
	if ps, told := given(r); r.ErrorCode != 0 || r.MemberEpoch != 2 || !told || !ps.equal(kept) {
		t.Errorf("repeated: code %d, epoch %d, %v", r.ErrorCode, r.MemberEpoch, ps)
	}
	b.code(kerr.FencedMemberEpoch, do[*kmsg.ConsumerGroupHeartbeatResponse](b, owning(beat("m1", 1), all)).ErrorCode, "an older epoch with more than it was given")
	b.code(kerr.StaleMemberEpoch, b.commitAs("m1", 1, "a", 0, 4), "commit of an older epoch")
	b.code(nil, b.commitAs("m1", 2, "a", 0, 4), "commit")
	old := commitRequest("m1", 2, "a", 0, 5)
	old.Version = 8
	b.code(kerr.UnsupportedVersion, do[*kmsg.OffsetCommitResponse](b, old).Topics[0].Partitions[0].ErrorCode, "commit v8")
	fetch := kmsg.NewPtrOffsetFetchRequest()
	fetch.Version = 9
	fetch.Groups = []kmsg.OffsetFetchRequestGroup{{Group: "g", MemberID: kmsg.StringPtr("m1"), MemberEpoch: 1}}
	b.code(kerr.StaleMemberEpoch, do[*kmsg.OffsetFetchResponse](b, fetch).Groups[0].ErrorCode, "offset fetch of an older epoch")
}

func TestAConsumerGroupSurvivesAFailover(t *testing.T) {
	b := newBench(t)
	all, _ := given(do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m1", 0)))
	q := beat("m2", 0)
	q.InstanceID, q.RackID, q.ServerAssignor = kmsg.StringPtr("i"), kmsg.StringPtr("r"), kmsg.StringPtr("range")
	do[*kmsg.ConsumerGroupHeartbeatResponse](b, q)
	do[*kmsg.ConsumerGroupHeartbeatResponse](b, owning(beat("m1", 1), all)) // it has to give back now
	live := dump(b.c)
	b.boot()
	if log := dump(b.c); log != live {
		t.Fatalf("live:\n%s\nreplayed:\n%s", live, log)
	}
	m := b.c.groups["g"].consumer.members["m2"]
	if *m.instance != "i" || *m.rack != "r" || *m.assignor != "range" || m.clientID != "test" || m.host != "127.0.0.1" || m.rebalanceTimeout != 20*time.Second {
		t.Errorf("%+v", m)
	}
	if r := do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m2", 2)); r.Assignment != nil || r.ErrorCode != 0 {
		t.Errorf("what m1 has not given back is given away by the new coordinator: %+v", r)
	}
	b.pass(46 * time.Second) // nobody comes: sessions end here too
	if n := len(b.c.groups["g"].consumer.members); n != 0 {
		t.Errorf("%d members are left", n)
	}
}

func TestStaticMembersOfTheNewProtocol(t *testing.T) {
	b := newBench(t)
	static := func(id string, epoch int32) *kmsg.ConsumerGroupHeartbeatRequest {
		q := beat(id, epoch)
		q.InstanceID = kmsg.StringPtr("i")
		return q
	}
	all, _ := given(do[*kmsg.ConsumerGroupHeartbeatResponse](b, static("m1", 0)))
	b.code(kerr.UnreleasedInstanceID, do[*kmsg.ConsumerGroupHeartbeatResponse](b, static("m2", 0)).ErrorCode, "a second one while the first is there")
	b.code(nil, do[*kmsg.ConsumerGroupHeartbeatResponse](b, static("m1", -2)).ErrorCode, "it leaves for a while")
	epoch := b.c.groups["g"].consumer.epoch
	r := do[*kmsg.ConsumerGroupHeartbeatResponse](b, static("m2", 0))
	if ps, _ := given(r); r.ErrorCode != 0 || !ps.equal(all) || b.c.groups["g"].consumer.epoch != epoch {
		t.Errorf("code %d, %v in epoch %d, expected %v in %d", r.ErrorCode, ps, b.c.groups["g"].consumer.epoch, all, epoch)
	}
	b.code(kerr.FencedInstanceID, do[*kmsg.ConsumerGroupHeartbeatResponse](b, static("m1", 1)).ErrorCode, "the former one")
	b.code(kerr.UnknownMemberID, b.commitAs("m1", 1, "a", 0, 1), "commit of the former one")
}

func TestTopicsThatComeAndGrow(t *testing.T) {
	b := newBench(t)
	q := beat("m", 0)
	q.SubscribedTopicNames, q.SubscribedTopicRegex = []string{"later"}, kmsg.StringPtr("[bc]")
	r := do[*kmsg.ConsumerGroupHeartbeatResponse](b, q)
	if ps, _ := given(r); len(ps) != 3 {
		t.Fatalf("%v, expected topics b and c by the expression", ps)
	}
	more := NewTopics([]TopicInfo{{"a", topicID(1), 4}, {"b", topicID(2), 3}, {"c", topicID(3), 1}, {"later", topicID(4), 2}, {Topic, topicID(5), 50}})
	b.step(TopicsChanged{more})
	r = do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m", r.MemberEpoch))
	if ps, _ := given(r); len(ps) != 6 || r.MemberEpoch != 2 {
		t.Errorf("epoch %d, %v, expected all six in epoch 2", r.MemberEpoch, ps)
	}
	if r = do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m", 2)); r.MemberEpoch != 2 || r.Assignment != nil {
		t.Errorf("nothing has changed, but: %+v", r)
	}
}

// A group changes its form when it has no members; its numbers go on rising, and the log agrees.
func TestAGroupChangesItsProtocol(t *testing.T) {
	b := newBench(t)
	ids, generation := b.stable(1)
	b.code(nil, b.commitAs(ids[0], generation, "a", 0, 5), "commit")
	b.code(kerr.GroupIDNotFound, do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m", 0)).ErrorCode, "the new protocol while the old one has members")
	do[*kmsg.LeaveGroupResponse](b, leaveRequest(ids[0]))
	r := do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m", 0))
	if r.ErrorCode != 0 || r.MemberEpoch <= generation || b.committed("a", 0) != 5 {
		t.Fatalf("code %d, epoch %d after generation %d, offset %d", r.ErrorCode, r.MemberEpoch, generation, b.committed("a", 0))
	}
	q := joinRequest("")
	q.Version = 3
	b.code(kerr.InconsistentGroupProtocol, do[*kmsg.JoinGroupResponse](b, q).ErrorCode, "the old protocol while the new one has members")
	b.boot()
	if g := b.c.groups["g"]; g.classic != nil || g.consumer == nil {
		t.Fatal("the log says something else")
	}
	do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m", -1))
	n := b.send(q)
	b.pass(4 * time.Second)
	j := got[*kmsg.JoinGroupResponse](b, n)
	b.send(syncRequest(j.MemberID, j.Generation, nil))
	if j.ErrorCode != 0 || j.Generation <= r.MemberEpoch {
		t.Errorf("code %d, generation %d after epoch %d", j.ErrorCode, j.Generation, r.MemberEpoch)
	}
	b.boot()
	if g := b.c.groups["g"]; g.classic == nil || g.consumer != nil || g.classic.generation != j.Generation {
		t.Error("the log says something else")
	}
}

func TestDescribeConsumers(t *testing.T) {
	b := newBench(t)
	do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m", 0))
	q := kmsg.NewPtrConsumerGroupDescribeRequest()
	q.Version, q.Groups = 1, []string{"g", "nobody"}
	r := do[*kmsg.ConsumerGroupDescribeResponse](b, q)
	g := r.Groups[0]
	if g.State != "Stable" || g.Epoch != 1 || g.AssignmentEpoch != 1 || g.AssignorName != "uniform" || len(g.Members) != 1 || g.Members[0].Assignment.TopicPartitions[0].Topic != "a" {
		t.Errorf("%+v", g)
	}
	b.code(kerr.GroupIDNotFound, r.Groups[1].ErrorCode, "a group that is not there")
	do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m2", 0))
	if g = do[*kmsg.ConsumerGroupDescribeResponse](b, q).Groups[0]; g.State != "Reconciling" {
		t.Errorf("state %s, expected Reconciling", g.State)
	}
}

func TestTenThousandMembersOfTheNewProtocol(t *testing.T) {
	b := newBench(t)
	b.cfg.MaxSize = 10_000
	b.boot()
	for i := range 10_001 {
		r := do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat(fmt.Sprintf("m%05d", i), 0))
		want := (*kerr.Error)(nil)
		if i == 10_000 {
			want = kerr.GroupMaxSizeReached
		}
		b.code(want, r.ErrorCode, "join")
		b.now = b.now.Add(time.Millisecond)
	}
	has := 0
	for range 3 {
		b.now = b.now.Add(time.Second)
		has = 0
		for i := range 10_000 {
			m := b.c.groups["g"].consumer.members[fmt.Sprintf("m%05d", i)]
			do[*kmsg.ConsumerGroupHeartbeatResponse](b, owning(beat(m.id, m.epoch), m.assigned))
			has += len(m.assigned)
		}
	}
	if has != 4 {
		t.Errorf("%d partitions are assigned, expected the 4 that there are", has)
	}
}

// TestAssignors: each partition has exactly one owner, who reads its topic; uniform differs by at most one between members that read the same, moves nothing that
// need not move, and range gives runs.
func TestAssignors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		topics := []TopicInfo{}
		for i := range rapid.IntRange(1, 4).Draw(t, "topics") {
			topics = append(topics, TopicInfo{fmt.Sprintf("t%d", i), topicID(byte(i + 1)), int32(rapid.IntRange(1, 9).Draw(t, "partitions"))})
		}
		same := rapid.Bool().Draw(t, "same")
		var members []subscriber
		for i := range rapid.IntRange(1, 7).Draw(t, "members") {
			s := subscriber{id: fmt.Sprintf("m%d", i)}
			for j := range topics {
				if same || rapid.Bool().Draw(t, "reads") {
					s.topics = append(s.topics, &topics[j])
				}
			}
			members = append(members, s)
		}
		for _, name := range assignorNames {
			got := assignors[name](members)
			checkAssignment(t, name, topics, members, got)
			if name != "uniform" {
				continue
			}
			for i := range members {
				members[i].has = got[members[i].id]
			}
			if again := uniform(members); !equalAssignments(got, again) {
				t.Fatalf("uniform is not stable: %v, then %v", got, again)
			}
			if left := members[1:]; len(left) > 0 && same {
				for id, ps := range uniform(left) {
					if len(got[id].minus(ps)) > 0 {
						t.Fatalf("%s has to give back %v though only %s has left", id, got[id].minus(ps), members[0].id)
					}
				}
			}
		}
	})
}

func equalAssignments(a, b map[string]parts) bool {
	for id := range a {
		if !a[id].equal(b[id]) {
			return false
		}
	}
	return len(a) == len(b)
}

func checkAssignment(t *rapid.T, name string, topics []TopicInfo, members []subscriber, got map[string]parts) {
	owner := map[part]string{}
	for _, m := range members {
		for _, p := range got[m.id] {
			if owner[p] != "" || !m.reads(p) {
				t.Fatalf("%s: %v of %s: other owner %q, reads it: %t", name, p, m.id, owner[p], m.reads(p))
			}
			owner[p] = m.id
		}
	}
	for _, topic := range topics {
		readers := slices.ContainsFunc(members, func(m subscriber) bool { return m.reads(part{topic.ID, 0}) })
		for i := range topic.Partitions {
			if (owner[part{topic.ID, i}] != "") != readers {
				t.Fatalf("%s: %s-%d has owner %q, readers: %t", name, topic.Name, i, owner[part{topic.ID, i}], readers)
			}
		}
	}
	for _, a := range members {
		for _, b := range members {
			alike := slices.Equal(a.topics, b.topics)
			if name == "uniform" && alike && len(got[a.id])-len(got[b.id]) > 1 {
				t.Fatalf("uniform: %s has %d, %s has %d", a.id, len(got[a.id]), b.id, len(got[b.id]))
			}
			if name == "uniform" && len(got[a.id])-len(got[b.id]) > 1 && slices.ContainsFunc(got[a.id], b.reads) {
				t.Fatalf("uniform: %s has %d and could give to %s, which has %d", a.id, len(got[a.id]), b.id, len(got[b.id]))
			}
		}
	}
}

// Whoever joins again with epoch 0 says that it owns nothing: it is told everything anew, and what it had to give back is free.
func TestAMemberBeginsAnew(t *testing.T) {
	b := newBench(t)
	all, _ := given(do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m1", 0)))
	if ps, told := given(do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m1", 0))); !told || !ps.equal(all) {
		t.Fatalf("told %v, expected %v", ps, all)
	}
	do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m2", 0))
	do[*kmsg.ConsumerGroupHeartbeatResponse](b, owning(beat("m1", 1), all)) // two to give back
	one := do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m1", 0))
	kept, _ := given(one)
	if one.MemberEpoch != 2 || len(kept) != 2 {
		t.Fatalf("epoch %d with %v", one.MemberEpoch, kept)
	}
	if ps, _ := given(do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m2", 2))); !ps.equal(all.minus(kept)) {
		t.Errorf("the other one has %v, expected %v", ps, all.minus(kept))
	}
}

func TestAStaticMemberThatLeavesForAWhileGivesBackWhatItHadTo(t *testing.T) {
	b := newBench(t)
	static := func(epoch int32) *kmsg.ConsumerGroupHeartbeatRequest {
		q := beat("m1", epoch)
		q.InstanceID = kmsg.StringPtr("i")
		return q
	}
	all, _ := given(do[*kmsg.ConsumerGroupHeartbeatResponse](b, static(0)))
	do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m2", 0))
	kept, _ := given(do[*kmsg.ConsumerGroupHeartbeatResponse](b, owning(static(1), all)))
	b.code(nil, do[*kmsg.ConsumerGroupHeartbeatResponse](b, static(-2)).ErrorCode, "leave")
	if ps, _ := given(do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m2", 2))); !ps.equal(all.minus(kept)) {
		t.Errorf("the other one has %v, expected %v", ps, all.minus(kept))
	}
	b.pass(46 * time.Second) // it does not come back, nor does the other one
	if k := b.c.groups["g"].consumer; len(k.members)+len(k.target)+len(k.owner)+len(k.static)+k.bytes != 0 {
		t.Errorf("left behind: %d members, %d targets, %d owners, %d instances, %d bytes", len(k.members), len(k.target), len(k.owner), len(k.static), k.bytes)
	}
}

func TestR42TheTimeToGiveBackEndsAfterAFailoverToo(t *testing.T) {
	b := newBench(t)
	all, _ := given(do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m1", 0)))
	do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m2", 0))
	do[*kmsg.ConsumerGroupHeartbeatResponse](b, owning(beat("m1", 1), all))
	b.boot()
	for range 21 {
		b.pass(time.Second)
		if r := do[*kmsg.ConsumerGroupHeartbeatResponse](b, owning(beat("m1", 1), all)); r.ErrorCode == kerr.UnknownMemberID.Code {
			return
		}
	}
	t.Error("the member that gives nothing back is still there")
}
