package node

import (
	"context"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// producerIDs hands out producer ids from blocks that the controller gives (R30). Ids that are left of a block when the broker stops are never used.
type producerIDs struct {
	n *Node

	mu        sync.Mutex // held while a block is fetched: whoever comes meanwhile needs it too
	next, end int64
}

func (p *producerIDs) take(ctx context.Context) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next >= p.end {
		reg := p.n.registered.Load()
		if reg == nil {
			return -1, fmt.Errorf("not registered yet")
		}
		q := kmsg.NewPtrAllocateProducerIDsRequest()
		q.BrokerID, q.BrokerEpoch = p.n.cfg.NodeID, reg.epoch
		resp, err := p.n.askController(ctx, q)
		if err != nil {
			return -1, fmt.Errorf("a block of producer ids: %w", err)
		}
		r := resp.(*kmsg.AllocateProducerIDsResponse)
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			return -1, fmt.Errorf("a block of producer ids: %w", err)
		}
		if r.ProducerIDLen < 1 {
			return -1, fmt.Errorf("a block of producer ids: the controller gave %d", r.ProducerIDLen)
		}
		p.next, p.end = r.ProducerIDStart, r.ProducerIDStart+int64(r.ProducerIDLen)
	}
	p.next++
	return p.next - 1, nil
}

// handleInitProducerID gives an idempotent producer its id. A producer that wants to go on after an error gets a new id, as in Kafka: without a
// transactional id nobody remembers the old one.
func (n *Node) handleInitProducerID(ctx context.Context, q *kmsg.InitProducerIDRequest) kmsg.Response {
	resp := q.ResponseKind().(*kmsg.InitProducerIDResponse)
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	switch {
	case q.TransactionalID != nil && *q.TransactionalID == "", (q.ProducerID == -1) != (q.ProducerEpoch == -1): // as in Kafka; before v3 both are −1
		resp.ErrorCode = kerr.InvalidRequest.Code
		return resp
	case q.TransactionalID != nil:
		resp.ErrorCode = kerr.TransactionalIDAuthorizationFailed.Code // transactions are not served; clients take this as final
		return resp
	}
	ctx, cancel := context.WithTimeout(ctx, n.cfg.RequestTimeout)
	defer cancel()
	id, err := n.producers.take(ctx)
	if err != nil {
		n.log.Warn("no producer id", "error", err)
		resp.ErrorCode = kerr.CoordinatorLoadInProgress.Code // clients retry
		return resp
	}
	resp.ProducerID, resp.ProducerEpoch = id, 0
	return resp
}
