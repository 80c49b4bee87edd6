package controller

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// serves tells whether the control plane answers this kind of request.
func serves(r kmsg.Request) bool {
	switch r.(type) {
	case *kmsg.BrokerRegistrationRequest, *kmsg.BrokerHeartbeatRequest, *kmsg.AlterPartitionRequest, *kmsg.ElectLeadersRequest, *kmsg.CreateTopicsRequest,
		*kmsg.DeleteTopicsRequest, *kmsg.CreatePartitionsRequest, *kmsg.IncrementalAlterConfigsRequest, *kmsg.AllocateProducerIDsRequest:
		return true
	}
	return false
}

// Refusal answers a request to the controller that did not come to it, or whose answer did not come back: for the shell. It is nil for a request of another kind.
func Refusal(q kmsg.Request, code *kerr.Error, why string) kmsg.Response {
	return refusal(q, code, why)
}

// refusal answers a whole request with one error, which most of Kafka's responses can say only once per item. It is nil for a request of another kind.
func refusal(r kmsg.Request, e *kerr.Error, why string) kmsg.Response {
	if !serves(r) {
		return nil
	}
	switch resp := r.ResponseKind().(type) {
	case *kmsg.BrokerRegistrationResponse:
		resp.ErrorCode = e.Code
		return resp
	case *kmsg.BrokerHeartbeatResponse:
		resp.ErrorCode = e.Code
		return resp
	case *kmsg.AlterPartitionResponse:
		resp.ErrorCode = e.Code
		return resp
	case *kmsg.AllocateProducerIDsResponse:
		resp.ErrorCode = e.Code
		return resp
	case *kmsg.ElectLeadersResponse:
		resp.ErrorCode = e.Code
		if resp.Version > 0 {
			return resp
		}
		for _, t := range r.(*kmsg.ElectLeadersRequest).Topics { // version 0 has no code for the whole
			rt := kmsg.ElectLeadersResponseTopic{Topic: t.Topic}
			for _, p := range t.Partitions {
				rt.Partitions = append(rt.Partitions, kmsg.ElectLeadersResponseTopicPartition{Partition: p, ErrorCode: e.Code, ErrorMessage: &why})
			}
			resp.Topics = append(resp.Topics, rt)
		}
		return resp
	case *kmsg.CreateTopicsResponse:
		for _, t := range r.(*kmsg.CreateTopicsRequest).Topics {
			resp.Topics = append(resp.Topics, topicRefused(t.Topic, problem{e, why}))
		}
		return resp
	case *kmsg.DeleteTopicsResponse:
		q := r.(*kmsg.DeleteTopicsRequest)
		for _, t := range deletions(q) {
			resp.Topics = append(resp.Topics, kmsg.DeleteTopicsResponseTopic{Topic: t.Topic, TopicID: t.TopicID, ErrorCode: e.Code, ErrorMessage: &why})
		}
		return resp
	case *kmsg.CreatePartitionsResponse:
		for _, t := range r.(*kmsg.CreatePartitionsRequest).Topics {
			resp.Topics = append(resp.Topics, kmsg.CreatePartitionsResponseTopic{Topic: t.Topic, ErrorCode: e.Code, ErrorMessage: &why})
		}
		return resp
	case *kmsg.IncrementalAlterConfigsResponse:
		for _, c := range r.(*kmsg.IncrementalAlterConfigsRequest).Resources {
			resp.Resources = append(resp.Resources, kmsg.IncrementalAlterConfigsResponseResource{
				ResourceType: c.ResourceType, ResourceName: c.ResourceName, ErrorCode: e.Code, ErrorMessage: &why,
			})
		}
		return resp
	}
	return nil
}

// problem is why one item of a request is refused; the zero value means that it is not.
type problem struct {
	code *kerr.Error
	why  string
}

func (p problem) found() bool { return p.code != nil }

func (p problem) Code() int16 {
	if p.code == nil {
		return 0
	}
	return p.code.Code
}

func (p problem) Message() *string {
	if p.code == nil {
		return nil
	}
	return &p.why
}
