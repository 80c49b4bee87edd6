package kafka

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/workloads"
)

// Codes of a coordinator with a meaning for its clients.
const (
	CodeCoordinatorLoading      int16 = 14
	CodeCoordinatorNotAvailable int16 = 15
	CodeNotCoordinator          int16 = 16
	CodeIllegalGeneration       int16 = 22
	CodeUnknownMember           int16 = 25
	CodeRebalanceInProgress     int16 = 27
	CodeMemberIDRequired        int16 = 79
	CodeFencedInstance          int16 = 82
	CodeFencedMemberEpoch       int16 = 110
	CodeStaleMemberEpoch        int16 = 113
)

const (
	versionFindCoordinator      = 3
	coordinatorOfGroup     int8 = 0
)

// Coordinator gives the broker that this client takes for the coordinator of a group; it asks a broker if it has none. Errors wrap workloads.ErrNotSent.
func (c *Client) Coordinator(group string) (int32, error) {
	if node, ok := c.coordinators[group]; ok {
		return node, nil
	}
	var failures []error
	for _, node := range c.shuffledNodes() {
		found, err := c.findCoordinator(node, group)
		if err == nil {
			c.coordinators[group] = found
			return found, nil
		}
		failures = append(failures, err)
	}
	return 0, fmt.Errorf("no broker names the coordinator of group %s: %w: %w", group, workloads.ErrNotSent, errors.Join(failures...))
}

// ForgetCoordinator makes the client ask who coordinates before it next turns to the group.
func (c *Client) ForgetCoordinator(group string) { delete(c.coordinators, group) }

func (c *Client) shuffledNodes() []int32 {
	order := slices.Sorted(maps.Keys(c.cfg.Links))
	c.env.Rand().Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

func (c *Client) findCoordinator(node int32, group string) (int32, error) {
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.Version, req.CoordinatorKey, req.CoordinatorType = versionFindCoordinator, group, coordinatorOfGroup
	kresp, err := c.ask(node, req, c.cfg.DialTimeout)
	if err != nil {
		return 0, err
	}
	resp := kresp.(*kmsg.FindCoordinatorResponse)
	if resp.ErrorCode != 0 {
		return 0, fmt.Errorf("coordinator of group %s from node %d: error code %d", group, node, resp.ErrorCode)
	}
	return resp.NodeID, nil
}

// askCoordinator sends a request to the believed coordinator of a group. code is NoRoute where nothing was sent and NoAnswer where there was no answer; then, and when the answer
// says that the broker coordinates no more the next request asks anew who does.
func (c *Client) askCoordinator(group string, req kmsg.Request, timeout time.Duration) (resp kmsg.Response, node int32, code int16) {
	node, err := c.Coordinator(group)
	if err != nil {
		return nil, 0, NoRoute
	}
	if resp, err = c.ask(node, req, timeout); err != nil {
		c.ForgetCoordinator(group)
		return nil, node, unanswered(err)
	}
	return resp, node, 0
}

// settle forgets the coordinator if it says that it is none.
func (c *Client) settle(group string, code int16) int16 {
	if code == CodeNotCoordinator || code == CodeCoordinatorNotAvailable {
		c.ForgetCoordinator(group)
	}
	return code
}
