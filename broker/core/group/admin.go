package group

import (
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// form is what ListGroups says of a group.
func (g *group) form() (kind, protocolType, state string) {
	switch {
	case g.consumer != nil:
		return "consumer", "consumer", g.consumer.stateOf()
	case g.classic != nil:
		return "classic", g.classic.protocolType, string(g.classic.state)
	}
	return "classic", "", string(stateEmpty)
}

// list handles ListGroups.
func (c *Coordinator) list(in Request, q *kmsg.ListGroupsRequest) {
	resp := q.ResponseKind().(*kmsg.ListGroupsResponse)
	wanted := func(filter []string, s string) bool {
		return len(filter) == 0 || slices.ContainsFunc(filter, func(f string) bool { return strings.EqualFold(f, s) })
	}
	for _, id := range slices.Sorted(maps.Keys(c.groups)) {
		kind, protocolType, state := c.groups[id].form()
		if wanted(q.StatesFilter, state) && wanted(q.TypesFilter, kind) {
			resp.Groups = append(resp.Groups, kmsg.ListGroupsResponseGroup{Group: id, ProtocolType: protocolType, GroupState: state, GroupType: kind})
		}
	}
	c.reply(in.Token, resp)
}

// describe handles DescribeGroups, the one for classic groups. A group that is not there is "Dead", until v6 without an error.
func (c *Coordinator) describe(in Request, q *kmsg.DescribeGroupsRequest) {
	resp := q.ResponseKind().(*kmsg.DescribeGroupsResponse)
	var newest *group
	for _, id := range q.Groups {
		one := kmsg.NewDescribeGroupsResponseGroup()
		one.Group = id
		g := c.groups[id]
		if g == nil || g.consumer != nil {
			one.State = "Dead"
			if q.Version >= 6 {
				why := "there is no classic group of this name"
				one.ErrorCode, one.ErrorMessage = kerr.GroupIDNotFound.Code, &why
			}
			resp.Groups = append(resp.Groups, one)
			continue
		}
		_, one.ProtocolType, one.State = g.form()
		if k := g.classic; k != nil {
			newest = laterOf(newest, g)
			if k.state == stateStable || k.state == stateCompleting {
				one.Protocol = k.protocol
			}
			for _, m := range k.members {
				o := kmsg.NewDescribeGroupsResponseGroupMember()
				o.MemberID, o.InstanceID, o.ClientID, o.ClientHost = m.id, m.instance, m.clientID, m.host
				if k.state == stateStable {
					o.ProtocolMetadata, o.MemberAssignment = m.metadata(k.protocol), m.assignment
				}
				one.Members = append(one.Members, o)
			}
		}
		resp.Groups = append(resp.Groups, one)
	}
	c.answer(newest, in, resp)
}

// laterOf gives the group whose state is committed later: an answer about both waits for that one.
func laterOf(a, b *group) *group {
	if a == nil || a.last == nil || b.last != nil && b.last.id > a.last.id {
		return b
	}
	return a
}

// describeConsumers handles ConsumerGroupDescribe, the one for groups of KIP-848.
func (c *Coordinator) describeConsumers(in Request, q *kmsg.ConsumerGroupDescribeRequest) {
	resp := q.ResponseKind().(*kmsg.ConsumerGroupDescribeResponse)
	var newest *group
	for _, id := range q.Groups {
		one := kmsg.NewConsumerGroupDescribeResponseGroup()
		one.Group = id
		g := c.groups[id]
		if g == nil || g.consumer == nil {
			why := "there is no consumer group of this name"
			one.ErrorCode, one.ErrorMessage = kerr.GroupIDNotFound.Code, &why
			resp.Groups = append(resp.Groups, one)
			continue
		}
		newest = laterOf(newest, g)
		k := g.consumer
		one.State, one.Epoch, one.AssignmentEpoch, one.AssignorName = k.stateOf(), k.epoch, k.targetEpoch, k.assignor()
		for _, id := range k.ids() {
			m := k.members[id]
			o := kmsg.NewConsumerGroupDescribeResponseGroupMember()
			o.MemberID, o.InstanceID, o.RackID, o.MemberEpoch, o.ClientID, o.ClientHost = m.id, m.instance, m.rack, m.epoch, m.clientID, m.host
			o.SubscribedTopics, o.SubscribedTopicRegex, o.MemberType = m.topics, m.regex, 1
			o.Assignment, o.TargetAssignment = c.assignment(m.assigned), c.assignment(k.target[id])
			one.Members = append(one.Members, o)
		}
		resp.Groups = append(resp.Groups, one)
	}
	c.answer(newest, in, resp)
}

func (c *Coordinator) assignment(ps parts) kmsg.Assignment {
	out := kmsg.Assignment{TopicPartitions: []kmsg.AssignmentTopicPartition{}}
	for _, t := range ps.byTopic() {
		one := kmsg.AssignmentTopicPartition{TopicID: t.id, Partitions: t.indexes}
		if info := c.topics.ByID[t.id]; info != nil {
			one.Topic = info.Name
		}
		out.TopicPartitions = append(out.TopicPartitions, one)
	}
	return out
}

// deleteGroups handles DeleteGroups.
func (c *Coordinator) deleteGroups(in Request, q *kmsg.DeleteGroupsRequest) {
	resp := q.ResponseKind().(*kmsg.DeleteGroupsResponse)
	var last *pending
	for _, id := range q.Groups {
		one := kmsg.DeleteGroupsResponseGroup{Group: id}
		switch g := c.groups[id]; {
		case g == nil:
			one.ErrorCode = kerr.GroupIDNotFound.Code
		case !g.empty():
			one.ErrorCode = kerr.NonEmptyGroup.Code
		default:
			var changes []offsetChange
			for _, at := range g.sortedOffsets() {
				changes = append(changes, offsetChange{id, at, nil})
			}
			if p := c.bury(g, changes); p != nil {
				last = p
			}
		}
		resp.Groups = append(resp.Groups, one)
	}
	if last == nil {
		c.reply(in.Token, resp)
		return
	}
	c.hold(last, in, resp)
}
