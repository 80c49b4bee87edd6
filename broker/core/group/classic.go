package group

import (
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// classicState is where a classic group is in its round. The text is what DescribeGroups says.
type classicState string

const (
	stateEmpty      classicState = "Empty"
	statePreparing  classicState = "PreparingRebalance"  // members are expected to join
	stateCompleting classicState = "CompletingRebalance" // the leader's assignment is expected
	stateStable     classicState = "Stable"
)

// classicGroup is a group whose members assign among themselves: whoever leads computes, the coordinator carries.
type classicGroup struct {
	state        classicState
	generation   int32
	protocolType string // "" until the first member
	protocol     string
	leader       string
	members      []*member // in the order in which they came
	byID         map[string]*member
	static       map[string]*member   // by instance id (KIP-345)
	announced    map[string]time.Time // ids that were given with MEMBER_ID_REQUIRED and have not joined yet (KIP-394), until when
	supports     map[string]int       // protocol → members that have it
	bytes        int                  // of the members' metadata
	waiting      int                  // members in a join
	since        int64                // ms: when the state was entered, for retention

	joinBy   time.Time     // end of the round of joins
	initial  bool          // the first round of a group: nobody is expected, so only time ends it
	more     time.Duration // what the first round may still be prolonged by
	newcomer bool          // somebody came since the first round was prolonged last
	syncBy   time.Time     // by when everybody has to sync
	storing  bool          // the assignment is on its way into the log
	changed  bool          // members have gone since the last round began
}

// member is one member of a classic group.
type member struct {
	id         string
	instance   *string
	clientID   string
	host       string
	session    time.Duration
	rebalance  time.Duration
	protocols  []kmsg.JoinGroupRequestProtocol
	assignment []byte
	fresh      bool // has not completed a join yet
	join, sync *Request
	until      time.Time // end of the session; of the patience with a fresh member; of a sync that waits for the log
}

// maxGroupBytes bounds the metadata and the assignments of a group: they go into one record.
const maxGroupBytes = 16 << 20

func newClassic() *classicGroup {
	return &classicGroup{state: stateEmpty, byID: map[string]*member{}, static: map[string]*member{}, announced: map[string]time.Time{}, supports: map[string]int{}}
}

func (m *member) metadata(protocol string) []byte {
	for _, p := range m.protocols {
		if p.Name == protocol {
			return p.Metadata
		}
	}
	return nil
}

func (m *member) matches(protocols []kmsg.JoinGroupRequestProtocol) bool {
	return slices.EqualFunc(m.protocols, protocols, func(a, b kmsg.JoinGroupRequestProtocol) bool {
		return a.Name == b.Name && string(a.Metadata) == string(b.Metadata)
	})
}

// count adds (or, with −1, takes away) what a member's protocols stand for.
func (k *classicGroup) count(m *member, sign int) {
	for i, p := range m.protocols {
		k.bytes += sign * len(p.Metadata)
		if !slices.ContainsFunc(m.protocols[:i], func(q kmsg.JoinGroupRequestProtocol) bool { return q.Name == p.Name }) {
			if k.supports[p.Name] += sign; k.supports[p.Name] == 0 {
				delete(k.supports, p.Name)
			}
		}
	}
}

// accepts tells whether somebody with these protocols can be in the group: one of them is known to all others.
func (k *classicGroup) accepts(protocolType string, protocols []kmsg.JoinGroupRequestProtocol, self *member) bool {
	others := len(k.members)
	if self != nil {
		others--
	}
	if others == 0 {
		return true
	}
	return protocolType == k.protocolType && slices.ContainsFunc(protocols, func(p kmsg.JoinGroupRequestProtocol) bool {
		n := k.supports[p.Name]
		if self != nil && self.metadataKnown(p.Name) {
			n--
		}
		return n == others
	})
}

func (m *member) metadataKnown(protocol string) bool {
	return slices.ContainsFunc(m.protocols, func(p kmsg.JoinGroupRequestProtocol) bool { return p.Name == protocol })
}

func (k *classicGroup) add(m *member) {
	k.members = append(k.members, m)
	k.byID[m.id] = m
	if m.instance != nil {
		k.static[*m.instance] = m
	}
	k.count(m, 1)
	if k.leader == "" {
		k.leader = m.id
	}
}

// vote chooses the protocol: each member votes for the first of its own that all have. Of equals the one wins that the oldest member likes best.
func (k *classicGroup) vote() string {
	votes := map[string]int{}
	for _, m := range k.members {
		for _, p := range m.protocols {
			if k.supports[p.Name] == len(k.members) {
				votes[p.Name]++
				break
			}
		}
	}
	best := ""
	for _, p := range k.members[0].protocols {
		if votes[p.Name] > votes[best] {
			best = p.Name
		}
	}
	return best
}

func (k *classicGroup) enter(s classicState, now time.Time) { k.state, k.since = s, now.UnixMilli() }

// rebalanceTimeout is the longest one of the members.
func (k *classicGroup) rebalanceTimeout() time.Duration {
	var d time.Duration
	for _, m := range k.members {
		d = max(d, m.rebalance)
	}
	return d
}

// classicEntry is the record of a group, which is about to be written. assignments are by member, nil takes those that the members have.
func classicEntry(g *group, assignments map[string][]byte) entry {
	k := g.classic
	v := kmsg.NewGroupMetadataValue()
	v.Version, v.ProtocolType, v.Generation, v.CurrentStateTimestamp = classicValueVersion, k.protocolType, k.generation, k.since
	if k.protocol != "" {
		v.Protocol = &k.protocol
	}
	if k.leader != "" {
		v.Leader = &k.leader
	}
	v.Members = []kmsg.GroupMetadataValueMember{}
	for _, m := range k.members {
		one := kmsg.NewGroupMetadataValueMember()
		one.MemberID, one.InstanceID, one.ClientID, one.ClientHost = m.id, m.instance, m.clientID, m.host
		one.SessionTimeoutMillis, one.RebalanceTimeoutMillis = int32(m.session.Milliseconds()), int32(m.rebalance.Milliseconds())
		one.Subscription, one.Assignment = m.metadata(k.protocol), m.assignment
		if assignments != nil {
			one.Assignment = assignments[m.id]
		}
		v.Members = append(v.Members, one)
	}
	g.stored = v.AppendTo(nil)
	return entry{classicKey(g.id), g.stored}
}

// classicOf gives the classic side of a group, and makes it if the group has no members of the other kind.
func (c *Coordinator) classicOf(g *group) (*classicGroup, int16) {
	if g.classic == nil {
		if !g.empty() {
			return nil, kerr.InconsistentGroupProtocol.Code
		}
		g.classic = newClassic()
		g.classic.enter(stateEmpty, c.now)
		if g.consumer != nil {
			g.classic.generation = g.consumer.epoch // generations go on rising
			g.consumer = nil
			c.append(g, append(consumerTombstones(g), classicEntry(g, nil)), nil)
		}
	}
	return g.classic, 0
}

// join handles JoinGroup.
func (c *Coordinator) join(in Request, q *kmsg.JoinGroupRequest) {
	session, rebalance := time.Duration(q.SessionTimeoutMillis)*time.Millisecond, time.Duration(q.RebalanceTimeoutMillis)*time.Millisecond
	if q.Version < 1 {
		rebalance = session
	}
	refuse := func(code int16) { c.reply(in.Token, refuseJoin(q, code)) }
	switch {
	case q.Group == "" || len(q.Group) > maxName:
		refuse(kerr.InvalidGroupID.Code)
		return
	case session < c.cfg.MinSession || session > c.cfg.MaxSession:
		refuse(kerr.InvalidSessionTimeout.Code)
		return
	case !named(q.InstanceID) || rebalance < 0:
		refuse(kerr.InvalidRequest.Code)
		return
	case q.ProtocolType == "" || len(q.ProtocolType) > maxName || len(q.Protocols) == 0 || slices.ContainsFunc(q.Protocols, func(p kmsg.JoinGroupRequestProtocol) bool { return len(p.Name) > maxName }):
		refuse(kerr.InconsistentGroupProtocol.Code)
		return
	}
	if c.groups[q.Group] == nil && q.MemberID != "" {
		refuse(kerr.UnknownMemberID.Code)
		return
	}
	g, code := c.make(q.Group)
	if code != 0 {
		refuse(code)
		return
	}
	k, code := c.classicOf(g)
	if code != 0 {
		refuse(code)
		return
	}
	var known *member
	if q.MemberID != "" {
		if known, code = k.find(q.MemberID, q.InstanceID); code != 0 && k.announced[q.MemberID].IsZero() {
			refuse(code)
			return
		}
	} else if q.InstanceID != nil {
		known = k.static[*q.InstanceID]
	}
	if !k.accepts(q.ProtocolType, q.Protocols, known) {
		refuse(kerr.InconsistentGroupProtocol.Code)
		return
	}
	size := 0
	for _, p := range q.Protocols {
		size += len(p.Metadata) + len(p.Name)
	}
	if known == nil && q.MemberID == "" && len(k.members)+len(k.announced) >= c.cfg.MaxSize || k.bytes+size > maxGroupBytes {
		refuse(kerr.GroupMaxSizeReached.Code)
		c.tidy(g)
		return
	}
	m := &member{instance: q.InstanceID, clientID: in.ClientID, host: in.Host, session: session, rebalance: rebalance, protocols: q.Protocols}
	switch {
	case q.MemberID == "" && known != nil:
		c.replaceStatic(g, known, m, in, q)
	case q.MemberID == "" && q.InstanceID == nil && q.Version >= 4:
		// R39, KIP-394: the first join brings an id and nothing else, so that a client that never sees the answer leaves no member behind.
		id := c.newMemberID(in.ClientID)
		k.announced[id] = c.now.Add(session)
		c.wake(g, k.announced[id])
		resp := refuseJoin(q, kerr.MemberIDRequired.Code)
		resp.MemberID = id
		c.reply(in.Token, resp)
	case q.MemberID == "":
		m.id = c.newMemberID(in.ClientID)
		c.admit(g, m, in)
	case known == nil:
		delete(k.announced, q.MemberID)
		m.id, m.instance = q.MemberID, nil
		c.admit(g, m, in)
	default:
		c.rejoin(g, known, m, in, q)
	}
}

// find gives a member by id, checked against the instance id that came with it (R39).
func (k *classicGroup) find(id string, instance *string) (*member, int16) {
	if instance != nil {
		switch m := k.static[*instance]; {
		case m == nil:
			return nil, kerr.UnknownMemberID.Code
		case m.id != id:
			return nil, kerr.FencedInstanceID.Code
		}
	}
	if m := k.byID[id]; m != nil {
		return m, 0
	}
	return nil, kerr.UnknownMemberID.Code
}

// admit takes a new member in.
func (c *Coordinator) admit(g *group, m *member, in Request) {
	k := g.classic
	if len(k.members) == 0 {
		k.protocolType = in.Body.(*kmsg.JoinGroupRequest).ProtocolType
	}
	m.fresh = true
	k.add(m)
	k.newcomer = true
	c.await(g, m, in)
	c.round(g)
}

// rejoin handles the join of a member that the group knows.
func (c *Coordinator) rejoin(g *group, m, as *member, in Request, q *kmsg.JoinGroupRequest) {
	k := g.classic
	same := m.matches(q.Protocols)
	// R40: a leader that joins again wants a new round, since only its assignment says what it saw; the others only if they bring something new.
	if (k.state == stateCompleting || k.state == stateStable && m.id != k.leader) && same {
		c.touch(g, m)
		c.answer(g, in, k.joined(m, q.Version))
		return
	}
	k.count(m, -1)
	m.protocols, m.session, m.rebalance, m.clientID, m.host = as.protocols, as.session, as.rebalance, as.clientID, as.host
	k.count(m, 1)
	c.await(g, m, in)
	c.round(g)
}

// replaceStatic puts a new incarnation in the place of a static member (KIP-345): the former one is fenced, the assignment stays.
func (c *Coordinator) replaceStatic(g *group, old, m *member, in Request, q *kmsg.JoinGroupRequest) {
	k := g.classic
	c.answerWaiting(k, old, kerr.FencedInstanceID.Code)
	m.id, m.assignment = c.newMemberID(in.ClientID), old.assignment
	unchanged := string(old.metadata(k.protocol)) == string(m.metadata(k.protocol))
	k.count(old, -1)
	k.count(m, 1)
	k.members[slices.Index(k.members, old)] = m
	delete(k.byID, old.id)
	k.byID[m.id], k.static[*m.instance] = m, m
	leader := k.leader
	if k.leader == old.id {
		k.leader = m.id
	}
	if k.state != stateStable || !unchanged || k.vote() != k.protocol {
		c.await(g, m, in)
		c.round(g)
		return
	}
	c.touch(g, m)
	p := c.append(g, []entry{classicEntry(g, nil)}, nil)
	resp := k.joined(m, q.Version)
	if m.id == k.leader {
		if q.Version >= 9 {
			resp.SkipAssignment = true
		} else {
			resp.LeaderID, resp.Members = leader, nil // it would assign if it knew that it leads
		}
	}
	c.hold(p, in, resp)
}

// await keeps a join until the round is over. A join of the same member that waits already is told to join again.
func (c *Coordinator) await(g *group, m *member, in Request) {
	if m.join != nil {
		c.answerJoin(g.classic, m, refuseJoin(m.join.Body.(*kmsg.JoinGroupRequest), kerr.RebalanceInProgress.Code))
	}
	m.join = &in
	g.classic.waiting++
	if m.fresh {
		m.until = c.now.Add(c.cfg.NewMemberTimeout)
		c.wake(g, m.until)
	}
}

func (c *Coordinator) answerJoin(k *classicGroup, m *member, resp *kmsg.JoinGroupResponse) {
	token := m.join.Token
	m.join = nil
	k.waiting--
	c.reply(token, resp)
}

// answerWaiting ends what a member waits for with an error.
func (c *Coordinator) answerWaiting(k *classicGroup, m *member, code int16) {
	if m.join != nil {
		k.waiting--
	}
	for _, r := range []*Request{m.join, m.sync} {
		if r != nil {
			c.reply(r.Token, Refusal(r.Body, code))
		}
	}
	m.join, m.sync = nil, nil
}

// touch begins a member's session anew.
func (c *Coordinator) touch(g *group, m *member) {
	m.until = c.now.Add(m.session)
	c.wake(g, m.until)
}

// round begins a round of joins, if none is under way, and ends it if everybody has joined (R38).
func (c *Coordinator) round(g *group) {
	k := g.classic
	if k.state != statePreparing {
		k.storing = false
		for _, m := range k.members {
			if m.sync != nil {
				c.answerSync(g, m, kerr.RebalanceInProgress.Code)
			}
		}
		timeout := k.rebalanceTimeout()
		if k.initial = k.state == stateEmpty; k.initial {
			delay := min(c.cfg.InitialRebalanceDelay, timeout)
			k.joinBy, k.more, k.newcomer = c.now.Add(delay), timeout-delay, false
		} else {
			k.joinBy = c.now.Add(timeout)
		}
		k.enter(statePreparing, c.now)
		c.wake(g, k.joinBy)
	}
	c.maybeComplete(g)
}

func (c *Coordinator) maybeComplete(g *group) {
	k := g.classic
	if k.state == statePreparing && (!k.initial || c.cfg.InitialRebalanceDelay == 0) && k.waiting == len(k.members) && len(k.announced) == 0 {
		c.complete(g)
	}
}

// complete ends a round of joins: whoever has not come is out, unless it is a static member within its session; the rest is the next generation.
func (c *Coordinator) complete(g *group) {
	k := g.classic
	for _, m := range slices.Clone(k.members) {
		if m.join == nil && m.instance == nil {
			c.remove(g, m)
		}
	}
	if len(k.members) > 0 && k.waiting == 0 {
		k.joinBy = c.now.Add(k.rebalanceTimeout()) // static members only, none of them here
		c.wake(g, k.joinBy)
		return
	}
	k.generation++
	k.initial, k.changed = false, false
	if len(k.members) == 0 {
		k.protocol, k.leader = "", ""
		k.enter(stateEmpty, c.now)
		c.append(g, []entry{classicEntry(g, nil)}, nil)
		return
	}
	if k.byID[k.leader].join == nil {
		k.leader = k.members[slices.IndexFunc(k.members, func(m *member) bool { return m.join != nil })].id
	}
	k.protocol = k.vote()
	k.enter(stateCompleting, c.now)
	k.syncBy = c.now.Add(k.rebalanceTimeout())
	c.wake(g, k.syncBy)
	for _, m := range k.members {
		if m.join != nil {
			version := m.join.Body.GetVersion()
			m.fresh = false
			c.touch(g, m)
			c.answerJoin(k, m, k.joined(m, version))
		}
	}
}

// joined is the answer to a join in the current generation.
func (k *classicGroup) joined(m *member, version int16) *kmsg.JoinGroupResponse {
	resp := kmsg.NewPtrJoinGroupResponse()
	resp.Version, resp.Generation, resp.LeaderID, resp.MemberID = version, k.generation, k.leader, m.id
	resp.ProtocolType, resp.Protocol = kmsg.StringPtr(k.protocolType), kmsg.StringPtr(k.protocol)
	if m.id == k.leader {
		for _, one := range k.members {
			resp.Members = append(resp.Members, kmsg.JoinGroupResponseMember{MemberID: one.id, InstanceID: one.instance, ProtocolMetadata: one.metadata(k.protocol)})
		}
	}
	return resp
}

// sync handles SyncGroup.
func (c *Coordinator) sync(in Request, q *kmsg.SyncGroupRequest) {
	g, m, code := c.classicMember(q.Group, q.MemberID, q.InstanceID)
	switch {
	case code != 0:
	case q.Version >= 5 && (q.ProtocolType == nil || *q.ProtocolType != g.classic.protocolType || q.Protocol == nil || *q.Protocol != g.classic.protocol): // KIP-559
		code = kerr.InconsistentGroupProtocol.Code
	case q.Generation != g.classic.generation:
		code = kerr.IllegalGeneration.Code
	case g.classic.state == statePreparing:
		code = kerr.RebalanceInProgress.Code
	}
	if code != 0 {
		c.reply(in.Token, Refusal(q, code))
		return
	}
	k := g.classic
	c.touch(g, m)
	if m.sync != nil {
		c.answerSync(g, m, kerr.RebalanceInProgress.Code) // asked twice: only the newer one is listened to
	}
	m.sync = &in
	if k.state == stateStable {
		c.answerSync(g, m, 0)
		return
	}
	m.until = c.now.Add(max(c.cfg.CommitTimeout, m.session))
	c.wake(g, m.until)
	if m.id == k.leader && !k.storing {
		c.store(g, q)
	}
}

// store writes the leader's assignment. Nobody is told of it before it is committed (R41).
func (c *Coordinator) store(g *group, q *kmsg.SyncGroupRequest) {
	k := g.classic
	assignments, size := map[string][]byte{}, k.bytes
	for _, a := range q.GroupAssignment {
		if k.byID[a.MemberID] != nil {
			size += len(a.MemberAssignment)
			assignments[a.MemberID] = a.MemberAssignment
		}
	}
	if size > 2*maxGroupBytes {
		c.answerSync(g, k.byID[k.leader], kerr.InvalidCommitOffsetSize.Code)
		return
	}
	k.storing = true
	generation := k.generation
	p := c.append(g, []entry{classicEntry(g, assignments)}, nil)
	p.then = func() {
		if k.generation != generation || k.state != stateCompleting {
			return // another round has begun
		}
		k.storing = false
		k.enter(stateStable, c.now)
		for _, m := range k.members {
			m.assignment = assignments[m.id]
			if m.sync != nil {
				c.touch(g, m)
				c.answerSync(g, m, 0)
			}
		}
	}
}

func (c *Coordinator) answerSync(g *group, m *member, code int16) {
	in := *m.sync
	m.sync = nil
	if code != 0 {
		c.reply(in.Token, Refusal(in.Body, code))
		return
	}
	resp := in.Body.ResponseKind().(*kmsg.SyncGroupResponse)
	resp.ProtocolType, resp.Protocol, resp.MemberAssignment = kmsg.StringPtr(g.classic.protocolType), kmsg.StringPtr(g.classic.protocol), m.assignment
	c.answer(g, in, resp)
}

// classicMember finds a member of a classic group.
func (c *Coordinator) classicMember(id, memberID string, instance *string) (*group, *member, int16) {
	g := c.groups[id]
	if id == "" {
		return nil, nil, kerr.InvalidGroupID.Code
	}
	if g == nil || g.classic == nil {
		return nil, nil, kerr.UnknownMemberID.Code
	}
	m, code := g.classic.find(memberID, instance)
	return g, m, code
}

// heartbeat handles Heartbeat. R43: in a round of joins it keeps the member alive and tells it to join.
func (c *Coordinator) heartbeat(in Request, q *kmsg.HeartbeatRequest) {
	g, m, code := c.classicMember(q.Group, q.MemberID, q.InstanceID)
	if code == 0 && q.Generation != g.classic.generation {
		code = kerr.IllegalGeneration.Code
	}
	if code == 0 {
		if m.join == nil && m.sync == nil {
			c.touch(g, m)
		}
		if g.classic.state == statePreparing {
			code = kerr.RebalanceInProgress.Code
		}
	}
	c.reply(in.Token, Refusal(q, code))
}

// leave handles LeaveGroup.
func (c *Coordinator) leave(in Request, q *kmsg.LeaveGroupRequest) {
	resp := q.ResponseKind().(*kmsg.LeaveGroupResponse)
	g := c.groups[q.Group]
	if q.Group == "" {
		resp.ErrorCode = kerr.InvalidGroupID.Code
		c.reply(in.Token, resp)
		return
	}
	if g != nil && g.consumer != nil {
		c.leaveConsumers(in, g, q, resp)
		return
	}
	out := func(id string, instance *string) int16 {
		if g == nil || g.classic == nil {
			return kerr.UnknownMemberID.Code
		}
		k := g.classic
		if !k.announced[id].IsZero() && instance == nil {
			delete(k.announced, id)
			return 0
		}
		if id == "" && instance != nil && k.static[*instance] != nil {
			id = k.static[*instance].id // an administrator who knows the instance only
		}
		m, code := k.find(id, instance)
		if code == 0 {
			c.remove(g, m)
		}
		return code
	}
	if q.Version < 3 {
		resp.ErrorCode = out(q.MemberID, nil)
	}
	for _, m := range q.Members {
		resp.Members = append(resp.Members, kmsg.LeaveGroupResponseMember{MemberID: m.MemberID, InstanceID: m.InstanceID, ErrorCode: out(m.MemberID, m.InstanceID)})
	}
	if g != nil && g.classic != nil {
		c.shrunk(g)
	}
	c.answer(g, in, resp)
}

// remove takes a member out. The caller then calls shrunk.
func (c *Coordinator) remove(g *group, m *member) {
	k := g.classic
	if m.join != nil {
		c.answerJoin(k, m, refuseJoin(m.join.Body.(*kmsg.JoinGroupRequest), kerr.UnknownMemberID.Code))
	}
	if m.sync != nil {
		c.answerSync(g, m, kerr.UnknownMemberID.Code)
	}
	k.count(m, -1)
	k.members = slices.DeleteFunc(k.members, func(x *member) bool { return x == m })
	delete(k.byID, m.id)
	if m.instance != nil && k.static[*m.instance] == m {
		delete(k.static, *m.instance)
	}
	if k.leader == m.id {
		k.leader = ""
		if len(k.members) > 0 {
			k.leader = k.members[0].id
		}
	}
	k.changed = true
}

// shrunk begins a new round if members have gone, or ends the one that waited for them.
func (c *Coordinator) shrunk(g *group) {
	k := g.classic
	if k.changed && (k.state == stateStable || k.state == stateCompleting) {
		k.changed = false
		c.round(g)
		return
	}
	k.changed = false
	c.maybeComplete(g)
}

// classicDue looks at sessions and rounds, and finds out when to look again.
func (c *Coordinator) classicDue(g *group) {
	k := g.classic
	for id, until := range k.announced { //order-free: what is removed does not depend on the order
		if !c.now.Before(until) {
			delete(k.announced, id)
		} else {
			c.wake(g, until)
		}
	}
	for _, m := range slices.Clone(k.members) {
		late := !c.now.Before(m.until)
		switch {
		case m.join != nil && !m.fresh: // R43: it waits for us
		case m.sync != nil:
			if late && k.storing { // the log does not take it; somebody else may coordinate by now
				c.answerSync(g, m, kerr.CoordinatorNotAvailable.Code)
				c.touch(g, m)
			} else if late {
				m.until = c.now.Add(m.session) // R43
			}
			c.wake(g, m.until)
		case late:
			c.remove(g, m)
		default:
			c.wake(g, m.until)
		}
	}
	c.shrunk(g)
	switch {
	case k.state == statePreparing && !c.now.Before(k.joinBy):
		if k.initial && k.newcomer && k.more > 0 {
			delay := min(c.cfg.InitialRebalanceDelay, k.more)
			k.joinBy, k.more, k.newcomer = c.now.Add(delay), k.more-delay, false
			break
		}
		c.complete(g)
	case k.state == stateCompleting && !k.storing && !c.now.Before(k.syncBy):
		for _, m := range slices.Clone(k.members) {
			if m.sync == nil && m.instance == nil {
				c.remove(g, m)
			}
		}
		k.changed = true // also if nobody can be removed: the leader owes an assignment
		c.shrunk(g)
	}
	switch {
	case k.state == statePreparing:
		c.wake(g, k.joinBy)
	case k.state == stateCompleting && !k.storing:
		c.wake(g, k.syncBy)
	}
	c.tidy(g)
}

// subscribed are the topics that the members of a "consumer" group read; ok is false if that cannot be told.
func (k *classicGroup) subscribed() (topics map[string]bool, ok bool) {
	topics = map[string]bool{}
	if !strings.EqualFold(k.protocolType, "consumer") {
		return nil, false
	}
	for _, m := range k.members {
		var meta kmsg.ConsumerMemberMetadata
		raw := m.metadata(k.protocol)
		if k.protocol == "" && len(m.protocols) > 0 {
			raw = m.protocols[0].Metadata
		}
		if err := meta.ReadFrom(raw); err != nil {
			return nil, false
		}
		for _, t := range meta.Topics {
			topics[t] = true
		}
	}
	return topics, true
}
