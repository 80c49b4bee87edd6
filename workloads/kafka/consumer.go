package kafka

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// versionConsumerHeartbeat: in version 0 the broker names the member.
const versionConsumerHeartbeat = 0

// Beat is a ConsumerGroupHeartbeat (KIP-848).
type Beat struct {
	TopicID   [16]byte
	Rebalance time.Duration // what the member is given to hand partitions back; sent when it joins
	Owned     []int32       // what the member has
	Tell      bool          // say what it has; always when it joins
}

// Beaten is the answer.
type Beaten struct {
	Code     int16
	ID       string
	Epoch    int32
	Told     bool    // Assigned is what the member shall have from now on
	Assigned []int32 // sorted
}

// MemberEpoch values with a meaning of their own in a Beat.
const (
	EpochJoin  int32 = 0
	EpochLeave int32 = -1
	EpochPause int32 = -2 // a static member that will be back
)

// ConsumerBeat sends a ConsumerGroupHeartbeat; m.Generation is the member epoch, EpochJoin or EpochLeave.
func (c *Client) ConsumerBeat(m Member, b Beat) Beaten {
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.MemberEpoch, req.InstanceID = versionConsumerHeartbeat, m.Group, m.ID, m.Generation, m.instance()
	req.RebalanceTimeoutMillis = -1
	switch {
	case m.Generation == EpochJoin:
		req.RebalanceTimeoutMillis = int32(b.Rebalance.Milliseconds())
		req.SubscribedTopicNames = []string{c.cfg.Topic}
		req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{} // who joins has nothing, and says so
	case b.Tell && m.Generation > 0:
		req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		if len(b.Owned) > 0 {
			t := kmsg.NewConsumerGroupHeartbeatRequestTopic()
			t.TopicID, t.Partitions = b.TopicID, b.Owned
			req.Topics = append(req.Topics, t)
		}
	}
	kresp, _, code := c.askCoordinator(m.Group, req, c.cfg.RequestTimeout+c.cfg.DialTimeout)
	if code != 0 {
		return Beaten{Code: code, ID: m.ID, Epoch: m.Generation}
	}
	resp := kresp.(*kmsg.ConsumerGroupHeartbeatResponse)
	out := Beaten{Code: c.settle(m.Group, resp.ErrorCode), ID: m.ID, Epoch: resp.MemberEpoch, Told: resp.Assignment != nil}
	if resp.MemberID != nil {
		out.ID = *resp.MemberID
	}
	if out.Told {
		for _, t := range resp.Assignment.Topics {
			if t.TopicID == b.TopicID {
				out.Assigned = append(out.Assigned, t.Partitions...)
			}
		}
		slices.Sort(out.Assigned)
	}
	return out
}
