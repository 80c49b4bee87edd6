package group

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestWhoMayCommit(t *testing.T) {
	b := newBench(t)
	b.code(kerr.IllegalGeneration, b.commitAs("x", 3, "a", 0, 1), "a member of a group that is not there")
	b.code(kerr.UnknownMemberID, b.commitAs("x", -1, "a", 0, 1), "a member without generation of a group that is not there")
	b.code(nil, b.commitAs("", -1, "a", 0, 1), "a consumer that assigns itself")
	b.code(kerr.UnknownMemberID, b.commitAs("x", 3, "a", 0, 1), "a member of a group without members")
	b.code(kerr.UnknownTopicOrPartition, b.commitAs("", -1, "a", 4, 1), "a partition that is not there")
	b.code(kerr.UnknownTopicOrPartition, b.commitAs("", -1, "nowhere", 0, 1), "a topic that is not there")
	nameless := commitRequest("x", 3, "a", 0, 1)
	nameless.Group = ""
	b.code(kerr.InvalidGroupID, do[*kmsg.OffsetCommitResponse](b, nameless).Topics[0].Partitions[0].ErrorCode, "a member of a group without a name")
	long := commitRequest("", -1, "a", 0, 2)
	long.Topics[0].Partitions[0].Metadata = kmsg.StringPtr(strings.Repeat("m", 65))
	b.code(kerr.OffsetMetadataTooLarge, do[*kmsg.OffsetCommitResponse](b, long).Topics[0].Partitions[0].ErrorCode, "metadata beyond the limit")
	if o := b.committed("a", 0); o != 1 {
		t.Errorf("offset %d, expected 1", o)
	}
	byID := commitRequest("", -1, "", 1, 9)
	byID.Version, byID.Topics[0].TopicID = 10, topicID(1)
	b.code(nil, do[*kmsg.OffsetCommitResponse](b, byID).Topics[0].Partitions[0].ErrorCode, "commit by topic id")
	byID = commitRequest("", -1, "", 1, 9)
	byID.Version, byID.Topics[0].TopicID = 10, topicID(77)
	b.code(kerr.UnknownTopicID, do[*kmsg.OffsetCommitResponse](b, byID).Topics[0].Partitions[0].ErrorCode, "commit by an unknown topic id")
	if o := b.committed("a", 1); o != 9 {
		t.Errorf("offset %d, expected 9", o)
	}
}

func TestOneRequestWithManyOffsetsOfAPartition(t *testing.T) {
	b := newBench(t)
	q := commitRequest("", -1, "a", 0, 1)
	for o := range int64(1000) {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset = 0, o
		q.Topics[0].Partitions = append(q.Topics[0].Partitions, p)
	}
	do[*kmsg.OffsetCommitResponse](b, q)
	if o := b.committed("a", 0); o != 999 {
		t.Errorf("offset %d, expected the last one", o)
	}
	if n := b.log[0].Count; n != 1 {
		t.Errorf("%d records, expected 1", n)
	}
}

func TestOffsetFetchVersions(t *testing.T) {
	b := newBench(t)
	b.code(nil, b.commitAs("", -1, "a", 0, 5), "commit")
	b.code(nil, b.commitAs("", -1, "b", 1, 6), "commit")
	old := kmsg.NewPtrOffsetFetchRequest()
	old.Version, old.Group = 7, "g"
	old.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: "a", Partitions: []int32{0, 3}}}
	r := do[*kmsg.OffsetFetchResponse](b, old)
	if p := r.Topics[0].Partitions; p[0].Offset != 5 || p[1].Offset != -1 || p[1].ErrorCode != 0 || *p[0].Metadata != "m" {
		t.Errorf("v7: %+v", p)
	}
	old = kmsg.NewPtrOffsetFetchRequest() // all of them
	old.Version, old.Group = 7, "g"
	if r = do[*kmsg.OffsetFetchResponse](b, old); len(r.Topics) != 2 || r.Topics[1].Partitions[0].Offset != 6 {
		t.Errorf("v7, all: %+v", r.Topics)
	}
	q := kmsg.NewPtrOffsetFetchRequest()
	q.Version = 10
	q.Groups = []kmsg.OffsetFetchRequestGroup{{Group: "g"}, {Group: "other"}, {Group: "g", Topics: []kmsg.OffsetFetchRequestGroupTopic{{TopicID: topicID(9), Partitions: []int32{0}}}}}
	r = do[*kmsg.OffsetFetchResponse](b, q)
	if g := r.Groups[0]; len(g.Topics) != 2 || g.Topics[0].TopicID != topicID(1) {
		t.Errorf("v10, all: %+v", g)
	}
	if g := r.Groups[1]; g.ErrorCode != 0 || len(g.Topics) != 0 {
		t.Errorf("v10, a group that is not there: %+v", g)
	}
	if p := r.Groups[2].Topics[0].Partitions[0]; p.ErrorCode != kerr.UnknownTopicID.Code || p.Offset != -1 {
		t.Errorf("v10, a topic that is not there: %+v", p)
	}
}

func TestOffsetsAreForgottenOnceNobodyNeedsThem(t *testing.T) {
	b := newBench(t)
	ids, generation := b.stable(1)
	b.code(nil, b.commitAs(ids[0], generation, "a", 0, 5), "commit of a topic that is read")
	b.code(nil, b.commitAs(ids[0], generation, "b", 0, 6), "commit of a topic that is not")
	q := commitRequest("", -1, "c", 0, 7)
	q.Group, q.Version, q.RetentionTimeMillis = "simple", 4, 60_000
	b.code(nil, do[*kmsg.OffsetCommitResponse](b, q).Topics[0].Partitions[0].ErrorCode, "commit with a time of its own")
	beats := func(d time.Duration) {
		for end := b.now.Add(d); b.now.Before(end); {
			b.now = b.now.Add(9 * time.Second)
			b.code(nil, do[*kmsg.HeartbeatResponse](b, heartbeatRequest(ids[0], generation)).ErrorCode, "heartbeat")
			b.step(Tick{})
		}
	}
	beats(11 * time.Minute)
	if b.c.groups["simple"] != nil {
		t.Error("an offset outlived the time that came with it, and its group")
	}
	if o := b.committed("b", 0); o != 6 {
		t.Errorf("offset %d before its time", o)
	}
	beats(25 * time.Hour)
	if x, y := b.committed("a", 0), b.committed("b", 0); x != 5 || y != -1 {
		t.Errorf("offsets %d and %d, expected that only the topic that nobody reads is forgotten", x, y)
	}
	do[*kmsg.LeaveGroupResponse](b, leaveRequest(ids[0]))
	b.pass(10 * time.Second)
	b.now = b.now.Add(23 * time.Hour)
	b.step(Tick{})
	if o := b.committed("a", 0); o != 5 {
		t.Errorf("offset %d, expected 5 while the group has not been empty for the whole time", o)
	}
	b.now = b.now.Add(2 * time.Hour)
	b.step(Tick{})
	if b.committed("a", 0) != -1 || b.c.groups["g"] != nil {
		t.Error("the group is still there")
	}
	b.boot()
	if len(b.c.groups) != 0 {
		t.Errorf("%d groups after a failover, expected none", len(b.c.groups))
	}
}

// A tombstone must not overtake a commit that is on its way.
func TestExpiryDoesNotDeleteACommitThatIsUnderWay(t *testing.T) {
	b := newBench(t)
	b.code(nil, b.commitAs("", -1, "a", 0, 5), "commit")
	b.now = b.now.Add(25 * time.Hour)
	b.hold = true
	n := b.send(commitRequest("", -1, "a", 0, 6))
	b.step(Tick{})
	b.hold = false
	b.commit()
	b.code(nil, got[*kmsg.OffsetCommitResponse](b, n).Topics[0].Partitions[0].ErrorCode, "commit")
	if o := b.committed("a", 0); o != 6 {
		t.Errorf("offset %d, expected 6", o)
	}
}

func TestDeleteGroupsAndOffsets(t *testing.T) {
	b := newBench(t)
	ids, generation := b.stable(1)
	b.code(nil, b.commitAs(ids[0], generation, "a", 0, 5), "commit")
	b.code(nil, b.commitAs(ids[0], generation, "b", 0, 6), "commit")
	del := kmsg.NewPtrOffsetDeleteRequest()
	del.Group = "g"
	for _, topic := range []string{"a", "b", "nowhere"} {
		del.Topics = append(del.Topics, kmsg.OffsetDeleteRequestTopic{Topic: topic, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}}})
	}
	r := do[*kmsg.OffsetDeleteResponse](b, del)
	b.code(kerr.GroupSubscribedToTopic, r.Topics[0].Partitions[0].ErrorCode, "delete what is read")
	b.code(nil, r.Topics[1].Partitions[0].ErrorCode, "delete what is not")
	b.code(kerr.UnknownTopicOrPartition, r.Topics[2].Partitions[0].ErrorCode, "delete what is not there")
	if o := b.committed("b", 0); o != -1 {
		t.Errorf("offset %d after its deletion", o)
	}
	del.Topics = []kmsg.OffsetDeleteRequestTopic{{Topic: "a", Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 4}, {Partition: -1}}}}
	r = do[*kmsg.OffsetDeleteResponse](b, del)
	b.code(kerr.UnknownTopicOrPartition, r.Topics[0].Partitions[0].ErrorCode, "delete of a partition that is not there")
	b.code(kerr.UnknownTopicOrPartition, r.Topics[0].Partitions[1].ErrorCode, "delete of a negative partition")
	del.Group = ""
	b.code(kerr.InvalidGroupID, do[*kmsg.OffsetDeleteResponse](b, del).ErrorCode, "delete for a group without a name")
	nameless := commitRequest("", -1, "a", 0, 1) // what is committed under no name can be deleted
	nameless.Group = ""
	b.code(nil, do[*kmsg.OffsetCommitResponse](b, nameless).Topics[0].Partitions[0].ErrorCode, "commit without a name")
	groups := kmsg.NewPtrDeleteGroupsRequest()
	groups.Groups = []string{"g", "nobody", ""}
	d := do[*kmsg.DeleteGroupsResponse](b, groups)
	for i, want := range []*kerr.Error{kerr.NonEmptyGroup, kerr.GroupIDNotFound, nil} {
		b.code(want, d.Groups[i].ErrorCode, "delete "+d.Groups[i].Group)
	}
	do[*kmsg.LeaveGroupResponse](b, leaveRequest(ids[0]))
	d = do[*kmsg.DeleteGroupsResponse](b, groups)
	b.code(nil, d.Groups[0].ErrorCode, "delete g")
	if b.committed("a", 0) != -1 || b.c.groups["g"] != nil {
		t.Error("the group is still there")
	}
	b.boot()
	if len(b.c.groups) != 0 {
		t.Error("the group is back after a failover")
	}
}

// The records are Kafka's: kinds, and what kmsg's readers make of them.
func TestRecordsAreKafkas(t *testing.T) {
	b := newBench(t)
	ids, generation := b.stable(1)
	b.code(nil, b.commitAs(ids[0], generation, "a", 3, 5), "commit")
	kinds := [][]int{}
	for _, batch := range b.log {
		kinds = append(kinds, kindsOf(t, batch))
	}
	if !slices.EqualFunc(kinds, [][]int{{2}, {1}}, slices.Equal) {
		t.Errorf("kinds %v, expected the group and then an offset", kinds)
	}
	decode(b.log[1], func(e entry) error {
		var k kmsg.OffsetCommitKey
		var v kmsg.OffsetCommitValue
		if err := k.ReadFrom(e.key); err != nil || k.Group != "g" || k.Topic != "a" || k.Partition != 3 {
			t.Errorf("key %+v, %v", k, err)
		}
		if err := v.ReadFrom(e.value); err != nil || v.Version != 3 || v.Offset != 5 || v.Metadata != "m" {
			t.Errorf("value %+v, %v", v, err)
		}
		return nil
	})
	c := newBench(t)
	do[*kmsg.ConsumerGroupHeartbeatResponse](c, beat("m", 0))
	if k := kindsOf(t, c.log[0]); !slices.Equal(k, []int{3, 5, 7, 6, 8}) {
		t.Errorf("a first member writes kinds %v", k)
	}
	do[*kmsg.ConsumerGroupHeartbeatResponse](c, beat("m", -1))
	if k := kindsOf(t, c.log[1]); !slices.Equal(k, []int{3, -8, -7, -5}) {
		t.Errorf("a member that leaves writes kinds %v", k)
	}
}

func TestARecordThatDoesNotParseIsReportedAndLeftOut(t *testing.T) {
	b := newBench(t)
	b.code(nil, b.commitAs("", -1, "a", 0, 5), "commit")
	b.log = append(b.log, encode(b.now, []entry{{[]byte{0}, nil}, {[]byte{0, 1, 9}, []byte("x")}, {[]byte{0, 99}, []byte("of a later version")}}))
	b.boot()
	if len(b.bad) != 1 || b.committed("a", 0) != 5 {
		t.Errorf("reported %v, offset %d; expected one report and the offset", b.bad, b.committed("a", 0))
	}
}

func TestTheLogIsCompacted(t *testing.T) {
	b := newBench(t)
	b.cfg.CompactAfter = 20_000
	b.boot()
	ids, generation := b.stable(2)
	q := beat("m", 0)
	q.Group = "new"
	do[*kmsg.ConsumerGroupHeartbeatResponse](b, q)
	for i := range int64(3000) {
		b.code(nil, b.commitAs(ids[0], generation, "a", int32(i%4), i), "commit")
	}
	if len(b.trims) < 3 {
		t.Fatalf("trimmed %d times", len(b.trims))
	}
	live := dump(b.c)
	end := b.trims[len(b.trims)-1]
	if left := int64(len(b.log)) - end; left > 1000 {
		t.Errorf("%d batches are left of %d", left, len(b.log))
	}
	b.log = b.log[end:]
	b.boot()
	if log := dump(b.c); log != live {
		t.Errorf("live:\n%s\nreplayed from the compacted log:\n%s", live, log)
	}
}

// A snapshot waits for what is under way, and whoever asks meanwhile waits for the snapshot.
func TestCompactionHoldsRequestsBack(t *testing.T) {
	b := newBench(t)
	b.cfg.CompactAfter = 1
	b.boot()
	b.hold = true
	first := b.send(commitRequest("", -1, "a", 0, 1))
	second := b.send(commitRequest("", -1, "a", 0, 2))
	if len(b.open) != 1 {
		t.Fatalf("%d appends, expected that the second commit waits", len(b.open))
	}
	b.hold = false
	b.commit()
	for _, n := range []int{first, second} {
		b.code(nil, got[*kmsg.OffsetCommitResponse](b, n).Topics[0].Partitions[0].ErrorCode, "commit")
	}
	if o := b.committed("a", 0); o != 2 || len(b.trims) == 0 {
		t.Errorf("offset %d, trimmed %v", o, b.trims)
	}
	b.hold = true
	b.send(commitRequest("", -1, "a", 0, 3))
	waits := b.send(commitRequest("", -1, "a", 0, 4))
	b.step(Resign{})
	b.code(kerr.NotCoordinator, got[*kmsg.OffsetCommitResponse](b, waits).Topics[0].Partitions[0].ErrorCode, "a commit that was held back")
}

func TestOffsetsGoWithTheirTopic(t *testing.T) {
	b := newBench(t)
	for _, topic := range []string{"a", "b", "c"} {
		b.code(nil, b.commitAs("", -1, topic, 0, 5), "commit")
	}
	b.hold = true
	n := b.send(commitRequest("", -1, "a", 1, 6)) // under way when the topic goes
	b.step(TopicsChanged{NewTopics([]TopicInfo{{"b", topicID(9), 2}, {"c", topicID(3), 1}})})
	b.hold = false
	b.commit()
	b.code(nil, got[*kmsg.OffsetCommitResponse](b, n).Topics[0].Partitions[0].ErrorCode, "commit")
	for _, x := range []struct {
		topic     string
		partition int32
		want      int64
	}{{"a", 0, -1}, {"a", 1, -1}, {"b", 0, -1}, {"c", 0, 5}} {
		if o := b.committed(x.topic, x.partition); o != x.want {
			t.Errorf("%s-%d: offset %d, expected %d (a is gone, b was made again)", x.topic, x.partition, o, x.want)
		}
	}
	// A coordinator whose first list is older than the log deletes nothing.
	next := New(b.cfg)
	next.Step(b.now, TopicsChanged{NewTopics(nil)})
	next.Step(b.now, Load{b.log})
	next.Step(b.now, Loaded{})
	if out := next.Step(b.now, TopicsChanged{testTopics}); len(out) != 0 {
		t.Errorf("%v, expected nothing", out)
	}
}

func TestOffsetsOfAnEmptyConsumerGroupStayForTheRetentionTime(t *testing.T) {
	b := newBench(t)
	do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m", 0))
	b.code(nil, b.commitAs("m", 1, "a", 0, 5), "commit")
	for range 26 { // a day and two hours, in which it reads and commits nothing
		for range 80 {
			b.now = b.now.Add(45 * time.Second)
			do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m", 1))
			b.step(Tick{})
		}
	}
	do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m", -1))
	b.now = b.now.Add(23 * time.Hour)
	b.step(Tick{})
	if o := b.committed("a", 0); o != 5 {
		t.Errorf("offset %d an hour before its time", o)
	}
	b.now = b.now.Add(2 * time.Hour)
	b.step(Tick{})
	if o := b.committed("a", 0); o != -1 || b.c.groups["g"] != nil {
		t.Errorf("offset %d after its time", o)
	}
	b.boot()
	if len(b.c.groups) != 0 {
		t.Error("the group is back after a failover")
	}
}

func TestAnOffsetWithATimeOfItsOwnStaysThatLong(t *testing.T) {
	b := newBench(t)
	q := commitRequest("", -1, "c", 0, 7)
	q.Version, q.RetentionTimeMillis = 4, (48 * time.Hour).Milliseconds()
	do[*kmsg.OffsetCommitResponse](b, q)
	for _, x := range []struct {
		after time.Duration
		want  int64
	}{{25 * time.Hour, 7}, {24 * time.Hour, -1}} {
		b.now = b.now.Add(x.after)
		b.boot() // the time is in the log
		b.now = b.now.Add(11 * time.Minute)
		b.step(Tick{})
		if o := b.committed("c", 0); o != x.want {
			t.Errorf("offset %d, expected %d", o, x.want)
		}
	}
}

// A snapshot of several batches: only what lies before the first one may go.
func TestALargeSnapshot(t *testing.T) {
	b := newBench(t)
	b.cfg.CompactAfter, b.cfg.MaxMetadata = 4<<20, 30_000
	b.boot()
	for i := range 300 {
		q := commitRequest("", -1, "a", int32(i%4), int64(i))
		q.Group = fmt.Sprint(i % 40)
		q.Topics[0].Partitions[0].Metadata = kmsg.StringPtr(strings.Repeat("m", 30_000))
		b.code(nil, do[*kmsg.OffsetCommitResponse](b, q).Topics[0].Partitions[0].ErrorCode, "commit")
	}
	if len(b.trims) == 0 {
		t.Fatal("never trimmed")
	}
	live := dump(b.c)
	b.log = b.log[b.trims[len(b.trims)-1]:]
	b.boot()
	if dump(b.c) != live {
		t.Error("the compacted log does not say what the state was")
	}
}
