package group

import (
	"encoding/binary"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/record"
)

// bench is a coordinator over a log that lives in memory, and a clock that moves when told.
type bench struct {
	t     *testing.T
	cfg   Config
	c     *Coordinator
	now   time.Time
	hold  bool // appends are not answered until commit is called
	fail  int16
	log   []record.Batch // every batch that was written, in order
	open  []Append       // not answered yet
	reply map[int]kmsg.Response
	calls int
	bad   []error
	ended []int16 // codes of Failed
	trims []int64
	lives byte
}

var began = time.UnixMilli(1_700_000_000_000)

func testConfig() Config {
	return Config{
		MinSession: time.Second, MaxSession: time.Minute, InitialRebalanceDelay: 3 * time.Second, NewMemberTimeout: 5 * time.Minute, MaxSize: 100, MaxGroups: 50,
		ConsumerSession: 45 * time.Second, ConsumerHeartbeat: 5 * time.Second,
		MaxMetadata: 64, OffsetsRetention: 24 * time.Hour, RetentionCheck: 10 * time.Minute, CommitTimeout: 5 * time.Second,
	}
}

func topicID(n byte) [16]byte { return [16]byte{15: n} }

var testTopics = NewTopics([]TopicInfo{{"a", topicID(1), 4}, {"b", topicID(2), 2}, {"c", topicID(3), 1}})

func newBench(t *testing.T) *bench {
	b := &bench{t: t, cfg: testConfig(), now: began, reply: map[int]kmsg.Response{}}
	b.boot()
	return b
}

// boot makes a new coordinator from the log, as after a failover.
func (b *bench) boot() {
	b.lives++
	b.cfg.Seed = [16]byte{b.lives}
	b.c, b.open = New(b.cfg), nil
	b.step(TopicsChanged{testTopics})
	b.step(Load{b.log})
	b.step(Loaded{})
}

// step feeds an input and, unless appends are held, the commits that it causes.
func (b *bench) step(in Input) {
	for _, e := range b.c.Step(b.now, in) {
		switch e := e.(type) {
		case Append:
			b.open = append(b.open, e)
			if b.fail == 0 {
				b.log = append(b.log, e.Batch)
			}
		case Reply:
			n := e.Token.(int)
			if b.reply[n] != nil {
				b.t.Fatalf("request %d is answered twice", n)
			}
			b.reply[n] = e.Body
		case Unread:
			b.bad = append(b.bad, e.Err)
		case Trim:
			b.trims = append(b.trims, e.Offset)
		case Failed:
			b.ended = append(b.ended, e.Code)
		}
	}
	if !b.hold {
		b.commit()
	}
}

// commit answers every append that waits.
func (b *bench) commit() {
	for len(b.open) > 0 {
		id := b.open[0].ID
		b.open = b.open[1:]
		b.step(Appended{ID: id, Code: b.fail, Offset: int64(len(b.log) - 1 - len(b.open))})
	}
}

// pass lets time pass in steps, as the shell does.
func (b *bench) pass(d time.Duration) {
	for end := b.now.Add(d); b.now.Before(end); {
		b.now = b.now.Add(min(100*time.Millisecond, end.Sub(b.now)))
		if !b.now.Before(b.c.Due()) {
			b.step(Tick{})
		}
	}
}

// send gives the number of the request.
func (b *bench) send(q kmsg.Request) int {
	b.calls++
	n := b.calls
	b.step(Request{Token: n, Body: q, ClientID: "test", Host: "127.0.0.1"})
	return n
}

// do is send for requests that are answered at once.
func do[R kmsg.Response](b *bench, q kmsg.Request) R {
	b.t.Helper()
	return got[R](b, b.send(q))
}

func got[R kmsg.Response](b *bench, n int) R {
	b.t.Helper()
	r, ok := b.reply[n].(R)
	if !ok {
		b.t.Fatalf("request %d: answer %T %v, expected one of %T", n, b.reply[n], b.reply[n], *new(R))
	}
	return r
}

func (b *bench) code(want *kerr.Error, code int16, what string) {
	b.t.Helper()
	wanted := int16(0)
	if want != nil {
		wanted = want.Code
	}
	if code != wanted {
		b.t.Fatalf("%s: code %d (%v), expected %d (%v)", what, code, kerr.ErrorForCode(code), wanted, kerr.ErrorForCode(wanted))
	}
}

func joinRequest(id string) *kmsg.JoinGroupRequest {
	q := kmsg.NewPtrJoinGroupRequest()
	q.Version, q.Group, q.MemberID, q.ProtocolType = 9, "g", id, "consumer"
	q.SessionTimeoutMillis, q.RebalanceTimeoutMillis = 10_000, 20_000
	q.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: consumerMetadata("a")}}
	return q
}

func consumerMetadata(topics ...string) []byte {
	m := kmsg.NewConsumerMemberMetadata()
	m.Topics = topics
	return m.AppendTo(nil)
}

// announce gets a member id (KIP-394).
func (b *bench) announce() string {
	b.t.Helper()
	r := do[*kmsg.JoinGroupResponse](b, joinRequest(""))
	b.code(kerr.MemberIDRequired, r.ErrorCode, "first join")
	return r.MemberID
}

func syncRequest(id string, generation int32, assignments map[string]string) *kmsg.SyncGroupRequest {
	q := kmsg.NewPtrSyncGroupRequest()
	q.Version, q.Group, q.MemberID, q.Generation = 5, "g", id, generation
	q.ProtocolType, q.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
	for _, m := range sortedKeys(assignments) {
		q.GroupAssignment = append(q.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: m, MemberAssignment: []byte(assignments[m])})
	}
	return q
}

func heartbeatRequest(id string, generation int32) *kmsg.HeartbeatRequest {
	q := kmsg.NewPtrHeartbeatRequest()
	q.Version, q.Group, q.MemberID, q.Generation = 4, "g", id, generation
	return q
}

func leaveRequest(ids ...string) *kmsg.LeaveGroupRequest {
	q := kmsg.NewPtrLeaveGroupRequest()
	q.Version, q.Group = 5, "g"
	for _, id := range ids {
		q.Members = append(q.Members, kmsg.LeaveGroupRequestMember{MemberID: id})
	}
	return q
}

func commitRequest(id string, generation int32, topic string, partition int32, offset int64) *kmsg.OffsetCommitRequest {
	q := kmsg.NewPtrOffsetCommitRequest()
	q.Version, q.Group, q.MemberID, q.Generation = 9, "g", id, generation
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic = topic
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset, p.Metadata = partition, offset, kmsg.StringPtr("m")
	t.Partitions = append(t.Partitions, p)
	q.Topics = append(q.Topics, t)
	return q
}

// commitAs commits and gives the partition's code.
func (b *bench) commitAs(id string, generation int32, topic string, partition int32, offset int64) int16 {
	b.t.Helper()
	return do[*kmsg.OffsetCommitResponse](b, commitRequest(id, generation, topic, partition, offset)).Topics[0].Partitions[0].ErrorCode
}

// committed reads an offset back.
func (b *bench) committed(topic string, partition int32) int64 {
	b.t.Helper()
	q := kmsg.NewPtrOffsetFetchRequest()
	q.Version = 8
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = "g"
	g.Topics = []kmsg.OffsetFetchRequestGroupTopic{{Topic: topic, Partitions: []int32{partition}}}
	q.Groups = append(q.Groups, g)
	r := do[*kmsg.OffsetFetchResponse](b, q).Groups[0]
	b.code(nil, r.ErrorCode, "offset fetch")
	return r.Topics[0].Partitions[0].Offset
}

// stable forms a classic group of n members; the first one leads. Each is assigned "for <its id>".
func (b *bench) stable(n int) (ids []string, generation int32) {
	b.t.Helper()
	var joins []int
	for range n {
		ids = append(ids, b.announce())
		joins = append(joins, b.send(joinRequest(ids[len(ids)-1])))
	}
	b.pass(10 * time.Second)
	assignments := map[string]string{}
	for i, j := range joins {
		r := got[*kmsg.JoinGroupResponse](b, j)
		b.code(nil, r.ErrorCode, "join")
		generation = r.Generation
		if r.LeaderID != ids[0] || (len(r.Members) == n) != (i == 0) {
			b.t.Fatalf("member %d: leader %q, %d members told", i, r.LeaderID, len(r.Members))
		}
		assignments[ids[i]] = "for " + ids[i]
	}
	var syncs []int
	for i := range ids {
		give := assignments
		if i > 0 {
			give = nil
		}
		syncs = append(syncs, b.send(syncRequest(ids[i], generation, give)))
	}
	for i, s := range syncs {
		r := got[*kmsg.SyncGroupResponse](b, s)
		b.code(nil, r.ErrorCode, "sync")
		if string(r.MemberAssignment) != "for "+ids[i] {
			b.t.Fatalf("member %d is assigned %q", i, r.MemberAssignment)
		}
	}
	return ids, generation
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func beat(id string, epoch int32) *kmsg.ConsumerGroupHeartbeatRequest {
	q := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	q.Version, q.Group, q.MemberID, q.MemberEpoch = 1, "g", id, epoch
	q.RebalanceTimeoutMillis = -1
	if epoch == 0 {
		q.RebalanceTimeoutMillis, q.SubscribedTopicNames, q.Topics = 20_000, []string{"a"}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	}
	return q
}

// owning adds what the member says it has.
func owning(q *kmsg.ConsumerGroupHeartbeatRequest, ps parts) *kmsg.ConsumerGroupHeartbeatRequest {
	q.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	for _, t := range ps.byTopic() {
		q.Topics = append(q.Topics, kmsg.ConsumerGroupHeartbeatRequestTopic{TopicID: t.id, Partitions: t.indexes})
	}
	return q
}

func given(r *kmsg.ConsumerGroupHeartbeatResponse) (ps parts, told bool) {
	if r.Assignment == nil {
		return nil, false
	}
	for _, t := range r.Assignment.Topics {
		for _, i := range t.Partitions {
			ps = append(ps, part{t.TopicID, i})
		}
	}
	return ps.sorted(), true
}

// kindsOf lists the kinds of the records of a batch, with "-" for tombstones.
func kindsOf(t *testing.T, b record.Batch) (kinds []int) {
	t.Helper()
	err := decode(b, func(e entry) error {
		k := int(binary.BigEndian.Uint16(e.key))
		if e.value == nil {
			k = -k
		}
		kinds = append(kinds, k)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}
