package group

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Refusal answers any request of a coordinator with one error code; with code 0 it is the plain success of requests that answer nothing else (Heartbeat). The shell uses it for
// requests that reach no coordinator.
func Refusal(q kmsg.Request, code int16) kmsg.Response {
	resp := q.ResponseKind()
	switch q := q.(type) {
	case *kmsg.JoinGroupRequest:
		return refuseJoin(q, code)
	case *kmsg.SyncGroupRequest:
		resp.(*kmsg.SyncGroupResponse).ErrorCode = code
	case *kmsg.HeartbeatRequest:
		resp.(*kmsg.HeartbeatResponse).ErrorCode = code
	case *kmsg.LeaveGroupRequest:
		resp.(*kmsg.LeaveGroupResponse).ErrorCode = code
	case *kmsg.OffsetCommitRequest:
		return refuseCommit(q, code)
	case *kmsg.OffsetFetchRequest:
		return refuseFetch(q, code)
	case *kmsg.OffsetDeleteRequest:
		resp.(*kmsg.OffsetDeleteResponse).ErrorCode = code
	case *kmsg.ListGroupsRequest:
		resp.(*kmsg.ListGroupsResponse).ErrorCode = code
	case *kmsg.DescribeGroupsRequest:
		for _, id := range q.Groups {
			one := kmsg.NewDescribeGroupsResponseGroup()
			one.Group, one.ErrorCode = id, code
			r := resp.(*kmsg.DescribeGroupsResponse)
			r.Groups = append(r.Groups, one)
		}
	case *kmsg.DeleteGroupsRequest:
		for _, id := range q.Groups {
			r := resp.(*kmsg.DeleteGroupsResponse)
			r.Groups = append(r.Groups, kmsg.DeleteGroupsResponseGroup{Group: id, ErrorCode: code})
		}
	case *kmsg.ConsumerGroupHeartbeatRequest:
		r := resp.(*kmsg.ConsumerGroupHeartbeatResponse)
		r.ErrorCode = code
	case *kmsg.ConsumerGroupDescribeRequest:
		for _, id := range q.Groups {
			one := kmsg.NewConsumerGroupDescribeResponseGroup()
			one.Group, one.ErrorCode = id, code
			r := resp.(*kmsg.ConsumerGroupDescribeResponse)
			r.Groups = append(r.Groups, one)
		}
	default:
		panic(fmt.Sprintf("group: %s is not a request for a coordinator", kmsg.NameForKey(q.Key())))
	}
	return resp
}

func refuseJoin(q *kmsg.JoinGroupRequest, code int16) *kmsg.JoinGroupResponse {
	resp := q.ResponseKind().(*kmsg.JoinGroupResponse)
	resp.ErrorCode, resp.Generation, resp.MemberID = code, -1, q.MemberID
	if q.Version < 7 { // it may be null since, and then is (KIP-559)
		resp.Protocol = kmsg.StringPtr("")
	}
	return resp
}

// refuseCommit answers every partition of a commit with one code.
func refuseCommit(q *kmsg.OffsetCommitRequest, code int16) *kmsg.OffsetCommitResponse {
	resp := q.ResponseKind().(*kmsg.OffsetCommitResponse)
	for _, t := range q.Topics {
		out := kmsg.OffsetCommitResponseTopic{Topic: t.Topic, TopicID: t.TopicID}
		for _, p := range t.Partitions {
			out.Partitions = append(out.Partitions, kmsg.OffsetCommitResponseTopicPartition{Partition: p.Partition, ErrorCode: code})
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

// refuseFetch: before v2 there is no code but that of a partition, and from v8 on each group has its own.
func refuseFetch(q *kmsg.OffsetFetchRequest, code int16) *kmsg.OffsetFetchResponse {
	resp := q.ResponseKind().(*kmsg.OffsetFetchResponse)
	resp.ErrorCode = code
	for _, g := range q.Groups {
		one := kmsg.NewOffsetFetchResponseGroup()
		one.Group, one.ErrorCode = g.Group, code
		resp.Groups = append(resp.Groups, one)
	}
	for _, t := range q.Topics {
		out := kmsg.OffsetFetchResponseTopic{Topic: t.Topic}
		for _, p := range t.Partitions {
			out.Partitions = append(out.Partitions, kmsg.OffsetFetchResponseTopicPartition{Partition: p, Offset: -1, LeaderEpoch: -1, Metadata: kmsg.StringPtr(""), ErrorCode: code})
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}
