package node

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/controller"
	"ackproof/broker/wire"
)

// Handle implements wire.Handler. Produce, Fetch, DeleteRecords and what is about groups take effect at once and are answered later; everything else is answered before the
// connection's next request is read.
func (n *Node) Handle(ctx context.Context, q wire.Request) wire.Pending {
	switch body := q.Body.(type) {
	case *kmsg.ProduceRequest:
		return n.handleProduce(ctx, body, q.Frame)
	case *kmsg.FetchRequest:
		return n.handleFetch(body)
	case *kmsg.DeleteRecordsRequest:
		return n.handleDeleteRecords(body)
	case *kmsg.JoinGroupRequest, *kmsg.SyncGroupRequest, *kmsg.HeartbeatRequest, *kmsg.LeaveGroupRequest, *kmsg.OffsetCommitRequest, *kmsg.OffsetFetchRequest, *kmsg.OffsetDeleteRequest,
		*kmsg.ListGroupsRequest, *kmsg.DescribeGroupsRequest, *kmsg.DeleteGroupsRequest, *kmsg.ConsumerGroupHeartbeatRequest, *kmsg.ConsumerGroupDescribeRequest:
		return n.handleGroup(ctx, q)
	case *wire.Raft:
		n.handleRaft(body)
		return wire.Ready(nil)
	}
	resp, err := n.answer(ctx, q)
	if err != nil {
		return wire.Fail(err)
	}
	return wire.Ready(resp)
}

func (n *Node) answer(ctx context.Context, q wire.Request) (kmsg.Response, error) {
	switch body := q.Body.(type) {
	case *kmsg.MetadataRequest:
		return n.handleMetadata(ctx, body)
	case *kmsg.ListOffsetsRequest:
		return n.handleListOffsets(body), nil
	case *kmsg.OffsetForLeaderEpochRequest:
		return n.handleEpochEnd(body), nil
	case *kmsg.FindCoordinatorRequest:
		return n.handleFindCoordinator(ctx, body), nil
	case *kmsg.InitProducerIDRequest:
		return n.handleInitProducerID(ctx, body), nil
	case *kmsg.DescribeClusterRequest:
		return n.handleDescribeCluster(ctx, body)
	case *kmsg.DescribeQuorumRequest:
		return n.handleDescribeQuorum(body), nil
	case *kmsg.DescribeConfigsRequest:
		return n.handleDescribeConfigs(ctx, body)
	case *kmsg.DescribeTopicPartitionsRequest:
		return n.handleDescribeTopicPartitions(ctx, body)
	case *kmsg.CreateTopicsRequest:
		return n.forward(ctx, q, body.TimeoutMillis), nil
	case *kmsg.DeleteTopicsRequest:
		return n.forward(ctx, q, body.TimeoutMillis), nil
	case *kmsg.CreatePartitionsRequest:
		return n.forward(ctx, q, body.TimeoutMillis), nil
	case *kmsg.ElectLeadersRequest:
		return n.forward(ctx, q, body.TimeoutMillis), nil
	case *kmsg.IncrementalAlterConfigsRequest:
		return n.forward(ctx, q, 0), nil
	case *kmsg.AlterConfigsRequest:
		return n.handleAlterConfigs(ctx, q, body), nil
	case *kmsg.EnvelopeRequest:
		return n.handleEnvelope(ctx, body), nil
	}
	// What is left are the brokers' own requests to the controller.
	ctx, cancel := context.WithTimeout(ctx, n.cfg.RequestTimeout)
	defer cancel()
	resp, err := n.control.call(ctx, q.Body)
	if err != nil {
		resp = controller.Refusal(q.Body, kerr.RequestTimedOut, err.Error())
	}
	if resp == nil {
		return nil, fmt.Errorf("%s has no handler", q.API.Name)
	}
	return resp, nil
}
