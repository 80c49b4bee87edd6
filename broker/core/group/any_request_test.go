package group

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"
)

// stranger sends whatever comes to its mind: names of its own, ids of others and of nobody, generations that never were, and what does not parse.
type stranger struct {
	t     *rapid.T
	ids   []string // that some coordinator gave to somebody
	newer int32    // the newest generation or epoch that it heard of
}

// usual tells whether it does here what a client would do: mostly, since what is refused at once leads nowhere.
func (s *stranger) usual() bool { return rapid.IntRange(0, 15).Draw(s.t, "usual") > 0 }

func (s *stranger) of(label string, from ...string) string {
	return rapid.SampledFrom(from).Draw(s.t, label)
}

func (s *stranger) group() string {
	if s.usual() {
		return "g"
	}
	return s.of("group", "h", "", strings.Repeat("n", 5000))
}

func (s *stranger) member() string {
	if n := len(s.ids); n > 0 && s.usual() {
		return s.ids[rapid.IntRange(0, n-1).Draw(s.t, "known")]
	}
	return s.of("member", append([]string{"", "nobody", strings.Repeat("m", 5000)}, s.ids...)...)
}

func (s *stranger) instance() *string {
	if rapid.IntRange(0, 3).Draw(s.t, "static") > 0 {
		return nil
	}
	if name := s.of("instance", "i", "j", "", strings.Repeat("i", 5000)); name != "-" {
		return &name
	}
	return nil
}

func (s *stranger) epoch() int32 {
	if s.usual() {
		return s.newer
	}
	return rapid.SampledFrom([]int32{-3, -2, -1, 0, 1, 2, 3, 4, math.MaxInt32, math.MinInt32}).Draw(s.t, "epoch")
}

func (s *stranger) topic() string {
	if s.usual() {
		return "a"
	}
	return s.of("topic", "a", "b", "nowhere", "", "__consumer_offsets")
}

func (s *stranger) partition() int32 {
	if s.usual() {
		return rapid.Int32Range(0, 3).Draw(s.t, "partition")
	}
	return rapid.SampledFrom([]int32{0, 1, 3, 4, -1, math.MaxInt32}).Draw(s.t, "partition")
}

func (s *stranger) ms() int32 {
	if s.usual() {
		return 10_000
	}
	return rapid.SampledFrom([]int32{10_000, 10_000, 20_000, 0, -1, math.MaxInt32, math.MinInt32}).Draw(s.t, "ms")
}

func (s *stranger) bytes() []byte {
	if rapid.Bool().Draw(s.t, "parses") {
		return consumerMetadata(s.topic())
	}
	return rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(s.t, "bytes")
}

func some[T any](s *stranger, label string, one func() T) (out []T) {
	for range rapid.IntRange(0, 3).Draw(s.t, label) {
		out = append(out, one())
	}
	return out
}

// request is one of any kind that a coordinator serves.
func (s *stranger) request() kmsg.Request {
	keys := []kmsg.Key{kmsg.JoinGroup, kmsg.JoinGroup, kmsg.SyncGroup, kmsg.Heartbeat, kmsg.LeaveGroup, kmsg.OffsetCommit, kmsg.OffsetCommit, kmsg.OffsetFetch, kmsg.OffsetDelete, kmsg.ListGroups,
		kmsg.DescribeGroups, kmsg.DeleteGroups, kmsg.ConsumerGroupHeartbeat, kmsg.ConsumerGroupHeartbeat, kmsg.ConsumerGroupDescribe}
	q := kmsg.RequestForKey(rapid.SampledFrom(keys).Draw(s.t, "key").Int16())
	q.SetVersion(int16(rapid.IntRange(0, int(q.MaxVersion())).Draw(s.t, "version")))
	switch q := q.(type) {
	case *kmsg.JoinGroupRequest:
		q.Group, q.MemberID, q.InstanceID, q.SessionTimeoutMillis, q.RebalanceTimeoutMillis = s.group(), s.member(), s.instance(), s.ms(), s.ms()
		if rapid.IntRange(0, 2).Draw(s.t, "anew") == 0 {
			q.MemberID = ""
		}
		if q.ProtocolType = "consumer"; !s.usual() {
			q.ProtocolType = s.of("type", "connect", "")
		}
		if q.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: consumerMetadata("a")}}; s.usual() {
			break
		}
		q.Protocols = some(s, "protocols", func() kmsg.JoinGroupRequestProtocol {
			return kmsg.JoinGroupRequestProtocol{Name: s.of("protocol", "range", "sticky", ""), Metadata: s.bytes()}
		})
	case *kmsg.SyncGroupRequest:
		q.Group, q.MemberID, q.InstanceID, q.Generation = s.group(), s.member(), s.instance(), s.epoch()
		q.GroupAssignment = some(s, "assignments", func() kmsg.SyncGroupRequestGroupAssignment {
			return kmsg.SyncGroupRequestGroupAssignment{MemberID: s.member(), MemberAssignment: s.bytes()}
		})
	case *kmsg.HeartbeatRequest:
		q.Group, q.MemberID, q.InstanceID, q.Generation = s.group(), s.member(), s.instance(), s.epoch()
	case *kmsg.LeaveGroupRequest:
		q.Group, q.MemberID = s.group(), s.member()
		q.Members = some(s, "members", func() kmsg.LeaveGroupRequestMember {
			return kmsg.LeaveGroupRequestMember{MemberID: s.member(), InstanceID: s.instance()}
		})
	case *kmsg.OffsetCommitRequest:
		q.Group, q.MemberID, q.InstanceID, q.Generation = s.group(), s.member(), s.instance(), s.epoch()
		q.Topics = some(s, "topics", func() kmsg.OffsetCommitRequestTopic {
			return kmsg.OffsetCommitRequestTopic{Topic: s.topic(), TopicID: topicID(byte(s.partition())), Partitions: some(s, "partitions", func() kmsg.OffsetCommitRequestTopicPartition {
				metadata := s.of("metadata", "m", "", strings.Repeat("m", 65), strings.Repeat("m", 40_000))
				return kmsg.OffsetCommitRequestTopicPartition{Partition: s.partition(), Offset: int64(s.epoch()), Metadata: &metadata}
			})}
		})
	case *kmsg.OffsetFetchRequest:
		q.Group = s.group()
		q.Topics = some(s, "topics", func() kmsg.OffsetFetchRequestTopic {
			return kmsg.OffsetFetchRequestTopic{Topic: s.topic(), Partitions: some(s, "partitions", s.partition)}
		})
		member := s.member()
		q.Groups = []kmsg.OffsetFetchRequestGroup{{Group: q.Group, MemberID: &member, MemberEpoch: s.epoch()}}
	case *kmsg.OffsetDeleteRequest:
		q.Group = s.group()
		q.Topics = some(s, "topics", func() kmsg.OffsetDeleteRequestTopic {
			return kmsg.OffsetDeleteRequestTopic{Topic: s.topic(), Partitions: some(s, "partitions", func() kmsg.OffsetDeleteRequestTopicPartition {
				return kmsg.OffsetDeleteRequestTopicPartition{Partition: s.partition()}
			})}
		})
	case *kmsg.DescribeGroupsRequest:
		q.Groups = some(s, "groups", s.group)
	case *kmsg.DeleteGroupsRequest:
		q.Groups = some(s, "groups", s.group)
	case *kmsg.ConsumerGroupDescribeRequest:
		q.Groups = some(s, "groups", s.group)
	case *kmsg.ConsumerGroupHeartbeatRequest:
		q.Group, q.MemberID, q.InstanceID, q.MemberEpoch, q.RebalanceTimeoutMillis = s.group(), s.member(), s.instance(), s.epoch(), s.ms()
		if rapid.Bool().Draw(s.t, "joins") {
			q.MemberEpoch, q.SubscribedTopicNames, q.Topics = 0, []string{"a"}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
			if q.InstanceID != nil {
				q.MemberID, q.MemberEpoch = s.of("place", q.MemberID, "fresh"), int32(-2*rapid.IntRange(0, 1).Draw(s.t, "rests"))
			}
			break
		}
		q.SubscribedTopicNames = some(s, "names", s.topic)
		q.Topics = some(s, "owned", func() kmsg.ConsumerGroupHeartbeatRequestTopic {
			return kmsg.ConsumerGroupHeartbeatRequestTopic{TopicID: topicID(byte(s.partition())), Partitions: some(s, "partitions", s.partition)}
		})
		if rapid.Bool().Draw(s.t, "nothing owned") {
			q.Topics = nil
		}
		if regex := s.of("regex", "-", "-", "a|b", "(", ""); regex != "-" {
			q.SubscribedTopicRegex = &regex
		}
		if assignor := s.of("assignor", "-", "uniform", "range", "mine"); assignor != "-" {
			q.ServerAssignor = &assignor
		}
	}
	return q
}

// learn remembers ids that an answer brings.
func (s *stranger) learn(r kmsg.Response) {
	id := ""
	switch r := r.(type) {
	case *kmsg.JoinGroupResponse:
		id, s.newer = r.MemberID, max(s.newer, r.Generation)
	case *kmsg.ConsumerGroupHeartbeatResponse:
		if s.newer = max(s.newer, r.MemberEpoch); r.MemberID != nil {
			id = *r.MemberID
		}
	}
	if id != "" && len(s.ids) < 4 && !slices.Contains(s.ids, id) {
		s.ids = append(s.ids, id)
	}
}

// offsetsOf are the committed offsets of the groups that there may be, as anybody can read them.
func (b *bench) offsetsOf(groups ...string) (out []string) {
	for _, id := range groups {
		q := kmsg.NewPtrOffsetFetchRequest()
		q.Version, q.Groups = 8, []kmsg.OffsetFetchRequestGroup{{Group: id}}
		for _, g := range do[*kmsg.OffsetFetchResponse](b, q).Groups {
			for _, t := range g.Topics {
				for _, p := range t.Partitions {
					out = append(out, fmt.Sprint(id, t.Topic, p.Partition, p.Offset, p.ErrorCode))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// Whatever is sent, in whatever order, with appends and failovers in between: every request gets one answer, nothing grows beyond its bound, and a coordinator that loads the log
// has the offsets and the members that the one before it had.
func TestAnyRequests(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b, s := newBench(t), &stranger{t: rt}
		b.cfg.MaxSize, b.cfg.MaxGroups, b.cfg.CompactAfter = 5, 2, rapid.SampledFrom([]int{0, 500}).Draw(rt, "compact")
		b.boot()
		for range rapid.IntRange(1, 80).Draw(rt, "moves") {
			switch rapid.IntRange(0, 19).Draw(rt, "move") {
			case 0:
				b.hold = !b.hold
				b.commit()
			case 1:
				b.pass(time.Duration(rapid.IntRange(1, 30).Draw(rt, "seconds")) * time.Second)
			case 2:
				b.hold = false
				b.commit()
				b.step(Resign{})
				b.boot()
			default:
				b.send(s.request())
				for n := range b.calls {
					s.learn(b.reply[n+1])
				}
			}
			if n := len(b.c.groups); n > b.cfg.MaxGroups+len(b.c.pending) { // a commit that is under way may bring a group back that was deleted meanwhile
				rt.Fatalf("%d groups, expected %d at most", n, b.cfg.MaxGroups)
			}
			for id, g := range b.c.groups {
				if k := g.classic; k != nil && len(k.members)+len(k.announced) > b.cfg.MaxSize {
					rt.Fatalf("%d members of %q, expected %d at most", len(k.members)+len(k.announced), id, b.cfg.MaxSize)
				}
				if k := g.consumer; k != nil && len(k.members) > b.cfg.MaxSize {
					rt.Fatalf("%d members of %q, expected %d at most", len(k.members), id, b.cfg.MaxSize)
				}
			}
		}
		b.hold = false
		b.commit()
		before := b.offsetsOf("g", "h")
		b.step(Resign{})
		for n := range b.calls {
			if b.reply[n+1] == nil {
				rt.Fatalf("request %d of %d has no answer", n+1, b.calls)
			}
		}
		b.boot()
		if d := cmp.Diff(before, b.offsetsOf("g", "h")); d != "" {
			rt.Fatalf("offsets before and after loading differ:\n%s", d)
		}
		if len(b.bad) > 0 {
			rt.Fatalf("the log has records that do not parse: %v", b.bad)
		}
	})
}
