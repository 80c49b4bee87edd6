package main

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// groupCases are about consumer groups.
var groupCases = []testCase{
	{"find coordinator", 10, func(t *talk) {
		t.coordinator()
		ask := func(step, key string, kind int8) {
			q := kmsg.NewPtrFindCoordinatorRequest()
			q.CoordinatorKey, q.CoordinatorKeys, q.CoordinatorType = key, []string{key}, kind
			t.ask(step, anyBroker, q)
		}
		ask("of a group", t.group, 0)
		if t.v >= 1 {
			ask("no such type", t.group, 7)
		}
	}},
	{"offset commit", 8, func(t *talk) {
		t.make()
		c := t.coordinator()
		ask := func(step string, change func(*kmsg.OffsetCommitRequest)) {
			q := t.commit(4)
			change(q)
			t.ask(step, c, q)
		}
		ask("without members", func(*kmsg.OffsetCommitRequest) {})
		ask("partition that is not there", func(q *kmsg.OffsetCommitRequest) { q.Topics[0].Partitions[0].Partition = 7 })
		ask("topic that is not there", func(q *kmsg.OffsetCommitRequest) { q.Topics[0].Topic, q.Topics[0].TopicID = "nowhere", another })
		ask("long metadata", func(q *kmsg.OffsetCommitRequest) {
			q.Topics[0].Partitions[0].Metadata = kmsg.StringPtr(strings.Repeat("x", 5000))
		})
		ask("negative offset", func(q *kmsg.OffsetCommitRequest) { q.Topics[0].Partitions[0].Offset = -5 })
		ask("unknown group, member and generation", func(q *kmsg.OffsetCommitRequest) { q.Generation, q.MemberID = 3, "nobody" })
		m := t.join(c)
		ask("member", func(q *kmsg.OffsetCommitRequest) { q.MemberID, q.Generation = m.MemberID, m.Generation })
		ask("another generation", func(q *kmsg.OffsetCommitRequest) { q.MemberID, q.Generation = m.MemberID, m.Generation+1 })
		ask("unknown member", func(q *kmsg.OffsetCommitRequest) { q.MemberID, q.Generation = "nobody", m.Generation })
		ask("without being a member, group in use", func(*kmsg.OffsetCommitRequest) {})
		ask("no topics", func(q *kmsg.OffsetCommitRequest) { q.Topics = q.Topics[:0] })
		t.ask("not the coordinator", t.other(c), t.commit(4))
	}},
	{"offset fetch", 9, func(t *talk) {
		t.make()
		c := t.coordinator()
		none := kmsg.NewPtrOffsetFetchRequest()
		none.Group, none.Topics = t.group, []kmsg.OffsetFetchRequestTopic{{Topic: t.topic, Partitions: []int32{0}}}
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group, g.Topics = t.group, []kmsg.OffsetFetchRequestGroupTopic{{Topic: t.topic, TopicID: t.id, Partitions: []int32{0}}}
		none.Groups = append(none.Groups, g)
		t.ask("no such group", c, none)
		if r := prepare[*kmsg.OffsetCommitResponse](t, c, t.commit(4)); r.Topics[0].Partitions[0].ErrorCode != 0 {
			t.fail("commit: %s", code(r.Topics[0].Partitions[0].ErrorCode))
		}
		ask := func(step, group string, all bool, change func(*kmsg.OffsetFetchRequest)) {
			q := kmsg.NewPtrOffsetFetchRequest()
			q.Group = group
			g := kmsg.NewOffsetFetchRequestGroup()
			g.Group = group
			if !all {
				q.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: t.topic, Partitions: []int32{0, 7}}}
				g.Topics = []kmsg.OffsetFetchRequestGroupTopic{{Topic: t.topic, TopicID: t.id, Partitions: []int32{0, 7}}}
			}
			q.Groups = append(q.Groups, g)
			change(q)
			t.ask(step, c, q)
		}
		as := func(*kmsg.OffsetFetchRequest) {}
		ask("committed", t.group, false, as)
		if t.v >= 2 {
			ask("all", t.group, true, as)
		}
		ask("topic that is not there", t.group, false, func(q *kmsg.OffsetFetchRequest) {
			q.Topics[0].Topic, q.Groups[0].Topics[0].Topic, q.Groups[0].Topics[0].TopicID = "nowhere", "nowhere", another
		})
		if t.v >= 9 {
			ask("as an unknown member", t.group, false, func(q *kmsg.OffsetFetchRequest) {
				q.Groups[0].MemberID, q.Groups[0].MemberEpoch = kmsg.StringPtr("nobody"), 3
			})
		}
		q := kmsg.NewPtrOffsetFetchRequest()
		q.Group, q.Groups = t.group, []kmsg.OffsetFetchRequestGroup{{Group: t.group, MemberEpoch: -1}}
		q.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: t.topic, Partitions: []int32{0}}}
		t.ask("not the coordinator", t.other(c), q)
	}},
	{"join group", 11, func(t *talk) {
		c := t.coordinator()
		ask := func(step string, change func(*kmsg.JoinGroupRequest)) *kmsg.JoinGroupResponse {
			q := t.joining()
			change(q)
			r, _ := t.ask(step, c, q).(*kmsg.JoinGroupResponse)
			return r
		}
		as := func(*kmsg.JoinGroupRequest) {}
		ask("no group", func(q *kmsg.JoinGroupRequest) { q.Group = "" })
		ask("session too short", func(q *kmsg.JoinGroupRequest) { q.SessionTimeoutMillis = 1 })
		ask("session too long", func(q *kmsg.JoinGroupRequest) { q.SessionTimeoutMillis = 1 << 30 })
		ask("unknown member", func(q *kmsg.JoinGroupRequest) { q.MemberID = "nobody" })
		ask("no protocol type", func(q *kmsg.JoinGroupRequest) { q.ProtocolType = "" })
		ask("no protocols", func(q *kmsg.JoinGroupRequest) { q.Protocols = q.Protocols[:0] })
		first := ask("first", as)
		if first == nil {
			return
		}
		id := first.MemberID
		if first.ErrorCode != 0 {
			if again := ask("with the id given", func(q *kmsg.JoinGroupRequest) { q.MemberID = id }); again != nil {
				id = again.MemberID
			}
		}
		ask("same protocols again", func(q *kmsg.JoinGroupRequest) { q.MemberID = id })
		ask("another protocol type", func(q *kmsg.JoinGroupRequest) { q.ProtocolType = "connect" })
		ask("protocols that nobody shares", func(q *kmsg.JoinGroupRequest) { q.Protocols[0].Name = "other" })
		t.ask("not the coordinator", t.other(c), t.joining())
	}},
	{"join group static", 11, func(t *talk) {
		if t.v < 5 {
			return
		}
		c := t.coordinator()
		q := t.joining()
		q.InstanceID = kmsg.StringPtr("one")
		first, _ := t.ask("first", c, q).(*kmsg.JoinGroupResponse)
		if first == nil {
			return
		}
		q.MemberID = "nobody"
		t.ask("instance of another id", c, q)
		q.MemberID = ""
		t.ask("again without id", c, q)
	}},
	{"sync group", 14, func(t *talk) {
		c := t.coordinator()
		ask := func(step string, change func(*kmsg.SyncGroupRequest)) {
			q := kmsg.NewPtrSyncGroupRequest()
			q.Group, q.Generation, q.MemberID, q.ProtocolType, q.Protocol = t.group, 1, "nobody", kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
			change(q)
			t.ask(step, c, q)
		}
		ask("unknown group", func(q *kmsg.SyncGroupRequest) {})
		ask("no group", func(q *kmsg.SyncGroupRequest) { q.Group = "" })
		m := t.joinOnly(c)
		ask("unknown member", func(q *kmsg.SyncGroupRequest) {})
		ask("another generation", func(q *kmsg.SyncGroupRequest) { q.MemberID, q.Generation = m.MemberID, m.Generation+1 })
		if t.v >= 5 {
			ask("another protocol", func(q *kmsg.SyncGroupRequest) {
				q.MemberID, q.Generation, q.Protocol = m.MemberID, m.Generation, kmsg.StringPtr("other")
			})
			ask("another type", func(q *kmsg.SyncGroupRequest) {
				q.MemberID, q.Generation, q.ProtocolType = m.MemberID, m.Generation, kmsg.StringPtr("other")
			})
		}
		ask("without a protocol", func(q *kmsg.SyncGroupRequest) {
			q.MemberID, q.Generation, q.ProtocolType, q.Protocol = m.MemberID, m.Generation, nil, nil
		})
		leader := func(q *kmsg.SyncGroupRequest) {
			q.MemberID, q.Generation, q.ProtocolType, q.Protocol = m.MemberID, m.Generation, kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
			q.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: m.MemberID, MemberAssignment: []byte("mine")}}
		}
		ask("leader", leader)
		ask("leader again", leader)
		ask("without an assignment, in a stable group", func(q *kmsg.SyncGroupRequest) { leader(q); q.GroupAssignment = nil })
	}},
	{"heartbeat", 12, func(t *talk) {
		c := t.coordinator()
		ask := func(step string, broker int32, group, member string, generation int32) {
			q := kmsg.NewPtrHeartbeatRequest()
			q.Group, q.MemberID, q.Generation = group, member, generation
			t.ask(step, broker, q)
		}
		ask("unknown group", c, t.group, "nobody", 1)
		ask("no group", c, "", "nobody", 1)
		m := t.join(c)
		ask("member", c, t.group, m.MemberID, m.Generation)
		ask("another generation", c, t.group, m.MemberID, m.Generation+1)
		ask("unknown member", c, t.group, "nobody", m.Generation)
		ask("not the coordinator", t.other(c), t.group, m.MemberID, m.Generation)
		if t.v >= 3 {
			q := kmsg.NewPtrHeartbeatRequest()
			q.Group, q.MemberID, q.Generation, q.InstanceID = t.group, m.MemberID, m.Generation, kmsg.StringPtr("stranger")
			t.ask("unknown instance", c, q)
		}
	}},
	{"leave group", 13, func(t *talk) {
		c := t.coordinator()
		ask := func(step, group, member string) {
			q := kmsg.NewPtrLeaveGroupRequest()
			q.Group, q.MemberID = group, member
			q.Members = []kmsg.LeaveGroupRequestMember{{MemberID: member}}
			t.ask(step, c, q)
		}
		ask("unknown group", t.group, "nobody")
		ask("no group", "", "nobody")
		m := t.join(c)
		ask("unknown member", t.group, "nobody")
		if t.v >= 3 {
			q := kmsg.NewPtrLeaveGroupRequest()
			q.Group, q.Members = t.group, []kmsg.LeaveGroupRequestMember{{InstanceID: kmsg.StringPtr("stranger")}}
			t.ask("unknown instance", c, q)
			q.Members = nil
			t.ask("nobody", c, q)
		}
		ask("member", t.group, m.MemberID)
		ask("member again", t.group, m.MemberID)
	}},
	{"describe groups", 15, func(t *talk) {
		c := t.coordinator()
		ask := func(step string, broker int32, group string, allowed bool) {
			q := kmsg.NewPtrDescribeGroupsRequest()
			q.Groups, q.IncludeAuthorizedOperations = []string{group}, allowed
			t.ask(step, broker, q)
		}
		ask("unknown", c, t.group, false)
		m := t.joinOnly(c)
		ask("waiting for the leader", c, t.group, false)
		t.assign(c, m)
		ask("stable", c, t.group, false)
		ask("with what is allowed", c, t.group, true)
		t.leave(c, m)
		ask("empty", c, t.group, false)
		ask("not the coordinator", t.other(c), t.group, false)
	}},
	{"list groups", 16, func(t *talk) {
		c := t.coordinator()
		t.join(c)
		ask := func(step string, states, types []string) {
			q := kmsg.NewPtrListGroupsRequest()
			q.StatesFilter, q.TypesFilter = states, types
			q.SetVersion(t.v)
			resp, err := t.request(c, q)
			if err != nil {
				t.note(step, "", err.Error())
				return
			}
			list := resp.(*kmsg.ListGroupsResponse)
			kept := []kmsg.ListGroupsResponseGroup{}
			for _, g := range list.Groups {
				if g.Group == t.group {
					kept = append(kept, g)
				}
			}
			list.Groups = kept
			for path, value := range flatten(t, list) {
				t.note(step, path, value)
			}
		}
		ask("all", nil, nil)
		if t.v >= 4 {
			ask("stable", []string{"Stable"}, nil)
			ask("stable in small letters", []string{"stable"}, nil)
			ask("empty ones", []string{"Empty"}, nil)
			ask("no such state", []string{"Weird"}, nil)
		}
		if t.v >= 5 {
			ask("classic", nil, []string{"classic"})
			ask("consumer", nil, []string{"consumer"})
			ask("no such type", nil, []string{"weird"})
		}
	}},
	{"delete groups", 42, func(t *talk) {
		c := t.coordinator()
		ask := func(step string, broker int32, group string) {
			q := kmsg.NewPtrDeleteGroupsRequest()
			q.Groups = []string{group}
			t.ask(step, broker, q)
		}
		ask("unknown", c, t.group)
		m := t.join(c)
		ask("in use", c, t.group)
		t.leave(c, m)
		ask("not the coordinator", t.other(c), t.group)
		ask("empty", c, t.group)
		ask("again", c, t.group)
		find := kmsg.NewPtrFindCoordinatorRequest()
		find.CoordinatorKeys = []string{""}
		ask("no group", prepare[*kmsg.FindCoordinatorResponse](t, c, find).Coordinators[0].NodeID, "")
	}},
	{"offset delete", 47, func(t *talk) {
		t.make()
		c := t.coordinator()
		ask := func(step, topic string, partition int32) {
			q := kmsg.NewPtrOffsetDeleteRequest()
			q.Group = t.group
			q.Topics = []kmsg.OffsetDeleteRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: partition}}}}
			t.ask(step, c, q)
		}
		ask("unknown group", t.topic, 0)
		m := t.join(c)
		commit := t.commit(4)
		commit.MemberID, commit.Generation = m.MemberID, m.Generation
		prepare[*kmsg.OffsetCommitResponse](t, c, commit)
		ask("subscribed to", t.topic, 0)
		t.leave(c, m)
		ask("committed", t.topic, 0)
		ask("not committed", t.topic, 0)
		ask("partition that is not there", t.topic, 7)
		ask("topic that is not there", "nowhere", 0)
		q := kmsg.NewPtrOffsetDeleteRequest()
		q.Topics = []kmsg.OffsetDeleteRequestTopic{{Topic: t.topic, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{}}}}
		t.ask("no group", c, q)
	}},
	{"consumer group heartbeat", 68, func(t *talk) {
		t.make()
		c := t.coordinator()
		ask := func(step string, change func(*kmsg.ConsumerGroupHeartbeatRequest)) *kmsg.ConsumerGroupHeartbeatResponse {
			q := t.beat()
			change(q)
			r, _ := t.ask(step, c, q).(*kmsg.ConsumerGroupHeartbeatResponse)
			if r != nil && r.MemberID != nil && *r.MemberID != "" {
				t.members = append(t.members, *r.MemberID)
			}
			return r
		}
		ask("no group", func(q *kmsg.ConsumerGroupHeartbeatRequest) { q.Group = "" })
		ask("no rebalance time-out", func(q *kmsg.ConsumerGroupHeartbeatRequest) { q.RebalanceTimeoutMillis = 0 })
		ask("no topics", func(q *kmsg.ConsumerGroupHeartbeatRequest) { q.SubscribedTopicNames = nil })
		ask("partitions of its own at once", func(q *kmsg.ConsumerGroupHeartbeatRequest) {
			q.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{{TopicID: t.id, Partitions: []int32{0}}}
		})
		ask("no such assignor", func(q *kmsg.ConsumerGroupHeartbeatRequest) { q.ServerAssignor = kmsg.StringPtr("weird") })
		ask("unknown member", func(q *kmsg.ConsumerGroupHeartbeatRequest) { q.MemberEpoch, q.MemberID = 5, "nobody" })
		ask("no instance", func(q *kmsg.ConsumerGroupHeartbeatRequest) { q.MemberEpoch = -2 })
		ask("epoch below all", func(q *kmsg.ConsumerGroupHeartbeatRequest) { q.MemberEpoch = -7 })
		m := ask("join", func(*kmsg.ConsumerGroupHeartbeatRequest) {})
		if m == nil || m.MemberID == nil {
			return
		}
		as := func(epoch int32) func(*kmsg.ConsumerGroupHeartbeatRequest) {
			return func(q *kmsg.ConsumerGroupHeartbeatRequest) {
				q.MemberID, q.MemberEpoch, q.RebalanceTimeoutMillis, q.SubscribedTopicNames, q.Topics = *m.MemberID, epoch, -1, nil, nil
			}
		}
		ask("holds what it was given", func(q *kmsg.ConsumerGroupHeartbeatRequest) {
			as(m.MemberEpoch)(q)
			q.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{{TopicID: t.id, Partitions: []int32{0}}}
		})
		ask("nothing new", as(m.MemberEpoch))
		ask("later epoch", as(m.MemberEpoch+9))
		ask("unknown member of a group", func(q *kmsg.ConsumerGroupHeartbeatRequest) { as(m.MemberEpoch)(q); q.MemberID = "nobody" })
		ask("leave", as(-1))
		ask("leave again", as(-1))
		q := t.beat()
		t.ask("not the coordinator", t.other(c), q)
	}},
	{"consumer group describe", 69, func(t *talk) {
		t.make()
		c := t.coordinator()
		ask := func(step string, broker int32, group string) {
			q := kmsg.NewPtrConsumerGroupDescribeRequest()
			q.Groups = []string{group}
			t.ask(step, broker, q)
		}
		ask("unknown", c, t.group)
		ask("no group", c, "")
		m := prepare[*kmsg.ConsumerGroupHeartbeatResponse](t, c, t.beat())
		if m.ErrorCode != 0 {
			t.fail("join: %s", code(m.ErrorCode))
		}
		ask("one member", c, t.group)
		ask("not the coordinator", t.other(c), t.group)
	}},
	{"consumer group describe classic", 69, func(t *talk) {
		c := t.coordinator()
		t.join(c)
		q := kmsg.NewPtrConsumerGroupDescribeRequest()
		q.Groups = []string{t.group}
		t.ask("classic group", c, q)
		t.make()
		t.ask("its heartbeat in a classic group", c, t.beat())
	}},
}

// other gives a broker that is not this one.
func (t *talk) other(than int32) int32 {
	for id := range t.brokers {
		if id != than {
			return id
		}
	}
	return than
}

// commit is a commit of the case's group for its topic, without being a member.
func (t *talk) commit(offset int64) *kmsg.OffsetCommitRequest {
	q := kmsg.NewPtrOffsetCommitRequest()
	q.Group, q.Generation, q.RetentionTimeMillis = t.group, -1, -1
	topic := kmsg.NewOffsetCommitRequestTopic()
	topic.Topic, topic.TopicID = t.topic, t.id
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Offset, p.Metadata = offset, kmsg.StringPtr("by hand")
	topic.Partitions = append(topic.Partitions, p)
	q.Topics = append(q.Topics, topic)
	return q
}

func (t *talk) joining() *kmsg.JoinGroupRequest {
	q := kmsg.NewPtrJoinGroupRequest()
	q.Group, q.SessionTimeoutMillis, q.RebalanceTimeoutMillis, q.ProtocolType = t.group, 30_000, 30_000, "consumer"
	subscription := kmsg.NewConsumerMemberMetadata()
	subscription.Topics = []string{t.topic}
	q.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: subscription.AppendTo(nil)}}
	return q
}

// joinOnly makes a member of the case's group and its leader, which has yet to assign.
func (t *talk) joinOnly(c int32) *kmsg.JoinGroupResponse {
	q := t.joining()
	r := prepare[*kmsg.JoinGroupResponse](t, c, q)
	if r.ErrorCode == 79 { // MEMBER_ID_REQUIRED
		q.MemberID = r.MemberID
		r = prepare[*kmsg.JoinGroupResponse](t, c, q)
	}
	if r.ErrorCode != 0 {
		t.fail("join: %s", code(r.ErrorCode))
	}
	t.members = append(t.members, r.MemberID)
	return r
}

func (t *talk) assign(c int32, m *kmsg.JoinGroupResponse) {
	q := kmsg.NewPtrSyncGroupRequest()
	q.Group, q.Generation, q.MemberID, q.ProtocolType, q.Protocol = t.group, m.Generation, m.MemberID, kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
	q.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: m.MemberID, MemberAssignment: []byte("mine")}}
	if r := prepare[*kmsg.SyncGroupResponse](t, c, q); r.ErrorCode != 0 {
		t.fail("sync: %s", code(r.ErrorCode))
	}
}

// join makes the only member of a stable group.
func (t *talk) join(c int32) *kmsg.JoinGroupResponse {
	m := t.joinOnly(c)
	t.assign(c, m)
	return m
}

func (t *talk) leave(c int32, m *kmsg.JoinGroupResponse) {
	q := kmsg.NewPtrLeaveGroupRequest()
	q.Group, q.Members = t.group, []kmsg.LeaveGroupRequestMember{{MemberID: m.MemberID}}
	if r := prepare[*kmsg.LeaveGroupResponse](t, c, q); r.ErrorCode != 0 {
		t.fail("leave: %s", code(r.ErrorCode))
	}
}

// beat is the first heartbeat of a member of the case's group in the protocol of KIP-848, which names itself from version 1 on.
func (t *talk) beat() *kmsg.ConsumerGroupHeartbeatRequest {
	q := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	q.Group, q.RebalanceTimeoutMillis, q.SubscribedTopicNames = t.group, 30_000, []string{t.topic}
	q.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	q.MemberID = "AAAAAAAAAAAAAAAAAAAAAQ"
	return q
}
