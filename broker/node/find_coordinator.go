package node

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/group"
)

// coordinatorOfGroup is the kind of key that is asked for; transactions (1) and share groups (2) are not served.
const coordinatorOfGroup int8 = 0

// handleFindCoordinator names the coordinator of groups: whoever leads the partition of the internal topic that the group's name falls into. The topic is made when somebody asks
// for the first time.
func (n *Node) handleFindCoordinator(ctx context.Context, q *kmsg.FindCoordinatorRequest) kmsg.Response {
	resp := q.ResponseKind().(*kmsg.FindCoordinatorResponse)
	keys := q.CoordinatorKeys
	if q.Version < 4 {
		keys = []string{q.CoordinatorKey}
	}
	v := n.view.Load()
	if q.CoordinatorType == coordinatorOfGroup && v.Topics[group.Topic] == nil {
		v = n.createMissing(ctx, []string{group.Topic})
	}
	for _, key := range keys {
		resp.Coordinators = append(resp.Coordinators, n.coordinatorFor(v, q.CoordinatorType, key))
	}
	if q.Version < 4 {
		c := resp.Coordinators[0]
		resp.Coordinators = nil
		resp.ErrorCode, resp.ErrorMessage, resp.NodeID, resp.Host, resp.Port = c.ErrorCode, c.ErrorMessage, c.NodeID, c.Host, c.Port
	}
	return resp
}

func (n *Node) coordinatorFor(v *view, kind int8, key string) kmsg.FindCoordinatorResponseCoordinator {
	c := kmsg.NewFindCoordinatorResponseCoordinator()
	c.Key, c.NodeID, c.Port = key, -1, -1
	refuse := func(why string) kmsg.FindCoordinatorResponseCoordinator {
		c.ErrorCode, c.ErrorMessage = kerr.CoordinatorNotAvailable.Code, &why
		return c
	}
	t := v.Topics[group.Topic]
	switch {
	case kind != coordinatorOfGroup:
		return refuse("transactions and share groups are not served")
	case t == nil:
		return refuse("the topic " + group.Topic + " could not be created yet")
	}
	i := group.PartitionOf(key, len(t.Partitions))
	b := v.Brokers[t.Partitions[i].Leader]
	if b == nil || b.Fenced {
		return refuse(fmt.Sprintf("%s-%d has no leader", group.Topic, i))
	}
	c.NodeID, c.Host, c.Port = b.ID, b.Host, b.Port
	return c
}
