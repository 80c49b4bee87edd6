package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// OfGroup is the part of a request that is about one group.
type OfGroup struct {
	ID   string
	Body kmsg.Request
}

// Nameless is the error code with which any broker refuses the request because the group has no name, whoever coordinates it; 0 if it is not refused. As in Kafka, what old consumers
// did under an empty name goes on: offsets are committed and fetched, and the group is described and deleted.
func (o OfGroup) Nameless() int16 {
	if o.ID != "" {
		return 0
	}
	switch o.Body.(type) {
	case *kmsg.JoinGroupRequest, *kmsg.SyncGroupRequest, *kmsg.HeartbeatRequest, *kmsg.LeaveGroupRequest, *kmsg.OffsetDeleteRequest, *kmsg.ConsumerGroupDescribeRequest:
		return kerr.InvalidGroupID.Code
	case *kmsg.ConsumerGroupHeartbeatRequest:
		return kerr.InvalidRequest.Code
	}
	return 0
}

// Split takes a request apart: its groups may have different coordinators. It gives nothing for ListGroups, which is about all groups of a broker, and for what is no request for a
// coordinator.
func Split(q kmsg.Request) (out []OfGroup) {
	switch q := q.(type) {
	case *kmsg.JoinGroupRequest:
		return []OfGroup{{q.Group, q}}
	case *kmsg.SyncGroupRequest:
		return []OfGroup{{q.Group, q}}
	case *kmsg.HeartbeatRequest:
		return []OfGroup{{q.Group, q}}
	case *kmsg.LeaveGroupRequest:
		return []OfGroup{{q.Group, q}}
	case *kmsg.OffsetCommitRequest:
		return []OfGroup{{q.Group, q}}
	case *kmsg.OffsetDeleteRequest:
		return []OfGroup{{q.Group, q}}
	case *kmsg.ConsumerGroupHeartbeatRequest:
		return []OfGroup{{q.Group, q}}
	case *kmsg.OffsetFetchRequest:
		if q.Version < 8 {
			return []OfGroup{{q.Group, q}}
		}
		for _, g := range q.Groups {
			one := *q
			one.Groups = []kmsg.OffsetFetchRequestGroup{g}
			out = append(out, OfGroup{g.Group, &one})
		}
	case *kmsg.DescribeGroupsRequest:
		for _, id := range q.Groups {
			one := *q
			one.Groups = []string{id}
			out = append(out, OfGroup{id, &one})
		}
	case *kmsg.DeleteGroupsRequest:
		for _, id := range q.Groups {
			one := *q
			one.Groups = []string{id}
			out = append(out, OfGroup{id, &one})
		}
	case *kmsg.ConsumerGroupDescribeRequest:
		for _, id := range q.Groups {
			one := *q
			one.Groups = []string{id}
			out = append(out, OfGroup{id, &one})
		}
	}
	return out
}

// Merge adds the groups of one answer to another one, to a request that several coordinators were asked.
func Merge(into, from kmsg.Response) {
	switch into := into.(type) {
	case *kmsg.ListGroupsResponse:
		r := from.(*kmsg.ListGroupsResponse)
		into.Groups = append(into.Groups, r.Groups...)
		if r.ErrorCode != 0 {
			into.ErrorCode = r.ErrorCode // half a list would look like a whole one
		}
	case *kmsg.DescribeGroupsResponse:
		into.Groups = append(into.Groups, from.(*kmsg.DescribeGroupsResponse).Groups...)
	case *kmsg.DeleteGroupsResponse:
		into.Groups = append(into.Groups, from.(*kmsg.DeleteGroupsResponse).Groups...)
	case *kmsg.ConsumerGroupDescribeResponse:
		into.Groups = append(into.Groups, from.(*kmsg.ConsumerGroupDescribeResponse).Groups...)
	case *kmsg.OffsetFetchResponse:
		into.Groups = append(into.Groups, from.(*kmsg.OffsetFetchResponse).Groups...)
	}
}
