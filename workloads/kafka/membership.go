package kafka

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The classic protocol of consumer groups, at versions that every broker since Kafka 3.0 knows.
const (
	versionJoinGroup  = 7
	versionSyncGroup  = 5
	versionHeartbeat  = 4
	versionLeaveGroup = 4
	// ProtocolType is that of consumers.
	ProtocolType = "consumer"
)

// Member is how a client presents itself to a coordinator: by the id that it was given, and by the generation (classic) or member epoch (KIP-848) that it knows.
type Member struct {
	Group      string
	ID         string // "": none yet
	Generation int32  // −1: none
	Instance   string // group.instance.id of a static member (KIP-345); "": it is none
}

func (m Member) instance() *string {
	if m.Instance == "" {
		return nil
	}
	return &m.Instance
}

// Joining is a request to join.
type Joining struct {
	Session, Rebalance time.Duration
	Assignor           string // the one protocol that is offered
	Metadata           []byte // for whoever leads
}

// Joined is the answer. Code 0: the round is complete.
type Joined struct {
	Code       int16 // with CodeMemberIDRequired, ID is the one to join with (KIP-394)
	ID         string
	Generation int32
	Leads      bool              // the client has to assign: Members are all
	Members    map[string][]byte // id → metadata
}

// Join sends JoinGroup and waits for the end of the round.
func (c *Client) Join(m Member, j Joining) Joined {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version, req.Group, req.MemberID, req.ProtocolType, req.InstanceID = versionJoinGroup, m.Group, m.ID, ProtocolType, m.instance()
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = int32(j.Session.Milliseconds()), int32(j.Rebalance.Milliseconds())
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name, protocol.Metadata = j.Assignor, j.Metadata
	req.Protocols = append(req.Protocols, protocol)
	kresp, _, code := c.askCoordinator(m.Group, req, j.Rebalance+c.cfg.RequestTimeout+c.cfg.DialTimeout)
	if code != 0 {
		return Joined{Code: code, ID: m.ID, Generation: -1}
	}
	resp := kresp.(*kmsg.JoinGroupResponse)
	out := Joined{Code: c.settle(m.Group, resp.ErrorCode), ID: resp.MemberID, Generation: resp.Generation}
	if out.Leads = out.Code == 0 && resp.LeaderID == resp.MemberID; out.Leads {
		out.Members = map[string][]byte{}
		for _, one := range resp.Members {
			out.Members[one.MemberID] = one.ProtocolMetadata
		}
	}
	return out
}

// Sync sends SyncGroup, with everybody's assignment if this member leads, and returns its own.
func (c *Client) Sync(m Member, assignor string, assignments map[string][]byte) (assignment []byte, code int16) {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Version, req.Group, req.Generation, req.MemberID, req.InstanceID = versionSyncGroup, m.Group, m.Generation, m.ID, m.instance()
	req.ProtocolType, req.Protocol = kmsg.StringPtr(ProtocolType), &assignor
	for _, id := range sortedKeys(assignments) {
		one := kmsg.NewSyncGroupRequestGroupAssignment()
		one.MemberID, one.MemberAssignment = id, assignments[id]
		req.GroupAssignment = append(req.GroupAssignment, one)
	}
	kresp, _, code := c.askCoordinator(m.Group, req, c.cfg.RequestTimeout+c.cfg.DialTimeout)
	if code != 0 {
		return nil, code
	}
	resp := kresp.(*kmsg.SyncGroupResponse)
	return resp.MemberAssignment, c.settle(m.Group, resp.ErrorCode)
}

// Heartbeat tells the coordinator that the member lives. CodeRebalanceInProgress asks it to join.
func (c *Client) Heartbeat(m Member) (code int16) {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version, req.Group, req.Generation, req.MemberID, req.InstanceID = versionHeartbeat, m.Group, m.Generation, m.ID, m.instance()
	kresp, _, code := c.askCoordinator(m.Group, req, c.cfg.DialTimeout)
	if code != 0 {
		return code
	}
	return c.settle(m.Group, kresp.(*kmsg.HeartbeatResponse).ErrorCode)
}

// Leave takes the member out of the group.
func (c *Client) Leave(m Member) (code int16) {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Version, req.Group = versionLeaveGroup, m.Group
	one := kmsg.NewLeaveGroupRequestMember()
	one.MemberID, one.InstanceID = m.ID, m.instance()
	req.Members = append(req.Members, one)
	kresp, _, code := c.askCoordinator(m.Group, req, c.cfg.DialTimeout)
	if code != 0 {
		return code
	}
	resp := kresp.(*kmsg.LeaveGroupResponse)
	if resp.ErrorCode == 0 && len(resp.Members) == 1 {
		return resp.Members[0].ErrorCode
	}
	return c.settle(m.Group, resp.ErrorCode)
}
