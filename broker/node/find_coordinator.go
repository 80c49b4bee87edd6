package node

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/group"
	"ackproof/broker/core/host"
)

// handleFindCoordinator names the coordinator of groups. The internal topic is made when somebody asks for the first time.
func (n *Node) handleFindCoordinator(ctx context.Context, q *kmsg.FindCoordinatorRequest) kmsg.Response {
	v := n.view.Load()
	if host.AsksForGroups(q) && v.Topics[group.Topic] == nil {
		v = n.createMissing(ctx, []string{group.Topic})
	}
	return host.FindCoordinator(v.Image, q)
}
