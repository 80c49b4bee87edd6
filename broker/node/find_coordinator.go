package node

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// handleFindCoordinator says that there is no coordinator: groups and transactions are not served. The request itself is, see its API.
func (n *Node) handleFindCoordinator(q *kmsg.FindCoordinatorRequest) kmsg.Response {
	resp := q.ResponseKind().(*kmsg.FindCoordinatorResponse)
	const why = "groups and transactions are not served"
	if q.Version < 4 {
		resp.ErrorCode, resp.ErrorMessage = kerr.CoordinatorNotAvailable.Code, kmsg.StringPtr(why)
		resp.NodeID, resp.Port = -1, -1
		return resp
	}
	for _, key := range q.CoordinatorKeys {
		c := kmsg.NewFindCoordinatorResponseCoordinator()
		c.Key, c.NodeID, c.Port, c.ErrorCode, c.ErrorMessage = key, -1, -1, kerr.CoordinatorNotAvailable.Code, kmsg.StringPtr(why)
		resp.Coordinators = append(resp.Coordinators, c)
	}
	return resp
}
