package node

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/controller"
	"ackproof/broker/wire"
)

// forward passes a client's request on to the controller, in an Envelope if that is another broker (KIP-590), so that clients may ask any broker.
// Without an answer in time the client gets REQUEST_TIMED_OUT: the request may or may not take effect, and it is not repeated here, since the repeat
// could be told "exists already".
func (n *Node) forward(ctx context.Context, q wire.Request, timeoutMillis int32) kmsg.Response {
	timeout := time.Duration(timeoutMillis) * time.Millisecond
	if timeout <= 0 || timeout > n.cfg.RequestTimeout {
		timeout = n.cfg.RequestTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var wait backoff
	for {
		resp, err := n.forwardOnce(ctx, q)
		if err == nil && !refusedByRole(resp) {
			return resp
		}
		var unsent errNotSent
		if err != nil && !errors.As(err, &unsent) || !sleep(ctx, wait.pause()) {
			why := "the controller cannot be reached"
			if err != nil {
				why = err.Error()
			}
			return controller.Refusal(q.Body, kerr.RequestTimedOut, why)
		}
	}
}

func (n *Node) forwardOnce(ctx context.Context, q wire.Request) (kmsg.Response, error) {
	if n.control.leader() == n.cfg.NodeID {
		return n.control.call(ctx, q.Body)
	}
	env := kmsg.NewPtrEnvelopeRequest()
	frame := wire.AppendRequest(nil, q.Correlation, q.ClientID, q.Body)
	env.RequestData, env.ClientHostAddress = frame[4:], []byte{127, 0, 0, 1}
	resp, err := n.askOnce(ctx, env)
	if err != nil {
		return nil, err
	}
	e, ok := resp.(*kmsg.EnvelopeResponse)
	switch {
	case !ok:
		return nil, errNotSent{errNotController}
	case e.ErrorCode == kerr.NotController.Code:
		return nil, errNotSent{errNotController}
	case e.ErrorCode != 0:
		return nil, kerr.ErrorForCode(e.ErrorCode)
	}
	return wire.ParseResponse(e.ResponseData, q.Correlation, q.Body)
}

// handleEnvelope unpacks a request that another broker passes on. It is never passed on again.
func (n *Node) handleEnvelope(ctx context.Context, env *kmsg.EnvelopeRequest) kmsg.Response {
	resp := env.ResponseKind().(*kmsg.EnvelopeResponse)
	q, err := n.table.Parse(env.RequestData)
	if err != nil || !forwarded(q.Body) {
		resp.ErrorCode = kerr.InvalidRequest.Code
		return resp
	}
	if n.control.leader() != n.cfg.NodeID {
		resp.ErrorCode = kerr.NotController.Code
		return resp
	}
	ctx, cancel := context.WithTimeout(ctx, n.cfg.RequestTimeout)
	defer cancel()
	answer, err := n.control.call(ctx, q.Body)
	if err != nil {
		resp.ErrorCode = kerr.RequestTimedOut.Code
		return resp
	}
	resp.ResponseData = wire.AppendResponse(nil, q.Correlation, answer)[4:]
	return resp
}

// forwarded tells the requests of clients that belong to the controller.
func forwarded(q kmsg.Request) bool {
	switch q.(type) {
	case *kmsg.CreateTopicsRequest, *kmsg.DeleteTopicsRequest, *kmsg.CreatePartitionsRequest, *kmsg.IncrementalAlterConfigsRequest, *kmsg.ElectLeadersRequest:
		return true
	}
	return false
}
