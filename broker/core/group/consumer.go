package group

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/fault"
)

// consumerGroup is a group of KIP-848: the coordinator computes who shall have what (the target) and leads each member there by its heartbeats.
type consumerGroup struct {
	epoch       int32 // rises with every change of members, subscriptions or topics
	targetEpoch int32 // the epoch that the target was computed for
	topicsHash  int64 // of the subscribed topics as they were then
	members     map[string]*consumerMember
	static      map[string]string // instance id → member id
	target      map[string]parts
	owner       map[part]string // whoever has a partition, or has not given it back yet
	emptySince  int64           // ms
	seen        *Topics         // the topics at the last look
	targeted    time.Time       // when the target was computed
	bytes       int             // of the members' topic names
}

// memberState is how far a member is on the way to its target. The numbers are Kafka's, and stored.
type memberState int8

const (
	settled    memberState = 0 // it has what its epoch says
	unrevoked  memberState = 1 // it has to give partitions back first
	unreleased memberState = 2 // it waits for partitions that others have to give back
)

// consumerMember is one member.
type consumerMember struct {
	id               string
	instance         *string
	rack             *string
	clientID         string
	host             string
	topics           []string
	regex            *string
	rebalanceTimeout time.Duration
	assignor         *string

	epoch         int32
	previousEpoch int32
	state         memberState
	assigned      parts // what it may read
	revoking      parts // what it has to give back, and may still be reading

	until    time.Time // end of the session
	revokeBy time.Time // when it is put out if it has not given back; zero: nothing to give back
	pattern  *regexp.Regexp
}

// Epochs with a meaning of their own, in a member's heartbeat.
const (
	epochJoin        int32 = 0
	epochLeave       int32 = -1
	epochLeaveStatic int32 = -2 // a static member that will be back
)

func newConsumer() *consumerGroup {
	return &consumerGroup{members: map[string]*consumerMember{}, static: map[string]string{}, target: map[string]parts{}, owner: map[part]string{}}
}

// consumerTombstones delete all records of a group that has no members.
func consumerTombstones(g *group) []entry {
	return []entry{{key: consumerKey(kindTargetEpoch, g.id, "")}, {key: consumerKey(kindConsumer, g.id, "")}}
}

// ids gives the members in order.
func (k *consumerGroup) ids() []string { return slices.Sorted(maps.Keys(k.members)) }

// mayUse fences commits and fetches of offsets by the member's epoch (KIP-848).
func (k *consumerGroup) mayUse(id string, epoch int32, version int16) int16 {
	m := k.members[id]
	switch {
	case epoch < 0 && id == "" && len(k.members) == 0:
		return 0
	case m == nil:
		return kerr.UnknownMemberID.Code
	case version < 9:
		return kerr.UnsupportedVersion.Code // it could not say which epoch it means
	case m.epoch != epoch:
		return kerr.StaleMemberEpoch.Code
	}
	return 0
}

// checkHeartbeat tells what is wrong with a heartbeat by itself.
func checkHeartbeat(q *kmsg.ConsumerGroupHeartbeatRequest) (*kerr.Error, string) {
	joins := q.MemberEpoch == epochJoin
	switch {
	case q.Group == "":
		return kerr.InvalidRequest, "the group's id is empty" // sic: Kafka's code here, INVALID_GROUP_ID elsewhere
	case len(q.Group) > maxName:
		return kerr.InvalidGroupID, fmt.Sprintf("the group's id is longer than %d bytes", maxName)
	case !named(q.InstanceID) || !named(q.RackID) || len(q.MemberID) > maxName:
		return kerr.InvalidRequest, fmt.Sprintf("an id is empty or longer than %d bytes", maxName)
	case q.MemberID == "" && (q.Version >= 1 || !joins):
		return kerr.InvalidRequest, "the member's id is empty"
	case q.MemberEpoch < epochLeaveStatic:
		return kerr.InvalidRequest, fmt.Sprintf("member epoch %d, expected −2 or more", q.MemberEpoch)
	case q.MemberEpoch == epochLeaveStatic && q.InstanceID == nil:
		return kerr.InvalidRequest, "member epoch −2 is for members with an instance id"
	case joins && len(q.Topics) > 0:
		return kerr.InvalidRequest, "who joins owns nothing, expected no partitions"
	case joins && q.RebalanceTimeoutMillis < 0:
		return kerr.InvalidRequest, "who joins has to name a rebalance timeout"
	case size(q.SubscribedTopicNames) > maxSubscription:
		return kerr.InvalidRequest, fmt.Sprintf("the names of the subscribed topics are longer than %d bytes", maxSubscription)
	case joins && q.SubscribedTopicNames == nil && (q.SubscribedTopicRegex == nil || *q.SubscribedTopicRegex == ""):
		return kerr.InvalidRequest, "who joins has to subscribe to something"
	case q.ServerAssignor != nil && *q.ServerAssignor != "" && assignors[*q.ServerAssignor] == nil:
		return kerr.UnsupportedAssignor, fmt.Sprintf("assignor %.100q, expected one of %s", *q.ServerAssignor, strings.Join(assignorNames, ", "))
	}
	if q.SubscribedTopicRegex != nil {
		if _, err := compile(*q.SubscribedTopicRegex); err != nil {
			return kerr.InvalidRegularExpression, err.Error()
		}
	}
	return nil, ""
}

// maxSubscription bounds the names that a member subscribes to, in bytes.
const maxSubscription = 1 << 20

func size(names []string) int {
	n := 0
	for _, s := range names {
		n += len(s)
	}
	return n
}

// compile makes a pattern that has to match the whole name.
func compile(pattern string) (*regexp.Regexp, error) {
	if len(pattern) > maxName {
		return nil, fmt.Errorf("regular expression of %d bytes, at most %d", len(pattern), maxName)
	}
	return regexp.Compile(`^(?:` + pattern + `)$`)
}

// consumerHeartbeat handles ConsumerGroupHeartbeat: join, change, acknowledge, leave, or just live.
func (c *Coordinator) consumerHeartbeat(in Request, q *kmsg.ConsumerGroupHeartbeatRequest) {
	refuse := func(e *kerr.Error, why string) {
		resp := Refusal(q, e.Code).(*kmsg.ConsumerGroupHeartbeatResponse)
		if why != "" {
			resp.ErrorMessage = &why
		}
		c.reply(in.Token, resp)
	}
	if e, why := checkHeartbeat(q); e != nil {
		refuse(e, why)
		return
	}
	g := c.groups[q.Group]
	if g != nil && g.classic != nil && !g.empty() {
		refuse(kerr.GroupIDNotFound, "the group has members of the classic protocol")
		return
	}
	if q.MemberEpoch != epochJoin && (g == nil || g.consumer == nil) {
		refuse(kerr.UnknownMemberID, "there is no such group")
		return
	}
	g, code := c.make(q.Group)
	if code != 0 {
		refuse(kerr.GroupMaxSizeReached, "there are too many groups")
		return
	}
	ch := &change{c: c, g: g}
	if g.consumer == nil {
		g.consumer = newConsumer()
		if g.classic != nil {
			g.consumer.epoch = g.classic.generation // epochs go on rising
			g.classic, g.stored = nil, nil
			ch.add(entry{key: classicKey(g.id)})
			ch.header = true
		}
	}
	k := g.consumer
	m, e, why := ch.find(in, q)
	if e != nil {
		ch.write()
		refuse(e, why)
		return
	}
	if q.MemberEpoch < 0 {
		if q.MemberEpoch == epochLeaveStatic {
			ch.release(m, m.revoking) // it reads nothing any more
			m.epoch, m.state, m.revoking, m.revokeBy = epochLeaveStatic, settled, nil, time.Time{}
			c.liveOn(g, m)
			ch.add(currentEntry(g.id, m))
		} else {
			ch.remove(m)
		}
		ch.write()
		resp := q.ResponseKind().(*kmsg.ConsumerGroupHeartbeatResponse)
		resp.MemberID, resp.MemberEpoch = &m.id, q.MemberEpoch
		c.answer(g, in, resp)
		return
	}
	before := *m
	ch.subscribe(m, in, q)
	ch.retarget()
	owned, known := ownedParts(q.Topics)
	ch.reconcile(m, owned, known || q.MemberEpoch == epochJoin)
	if m.epoch != before.epoch || m.state != before.state || !m.assigned.equal(before.assigned) || !m.revoking.equal(before.revoking) || ch.joined {
		ch.add(currentEntry(g.id, m))
	}
	ch.write()
	c.liveOn(g, m)
	resp := q.ResponseKind().(*kmsg.ConsumerGroupHeartbeatResponse)
	resp.MemberID, resp.MemberEpoch, resp.HeartbeatIntervalMillis = &m.id, m.epoch, int32(c.cfg.ConsumerHeartbeat.Milliseconds())
	whole := q.RebalanceTimeoutMillis >= 0 && (q.SubscribedTopicNames != nil || q.SubscribedTopicRegex != nil) && q.Topics != nil
	if q.MemberEpoch == epochJoin || whole || !m.assigned.equal(before.assigned) || q.MemberEpoch != m.epoch || k.unlike(m, owned, known) {
		a := &kmsg.ConsumerGroupHeartbeatResponseAssignment{Topics: []kmsg.ConsumerGroupHeartbeatResponseAssignmentTopic{}}
		for _, t := range m.assigned.byTopic() {
			a.Topics = append(a.Topics, kmsg.ConsumerGroupHeartbeatResponseAssignmentTopic{TopicID: t.id, Partitions: t.indexes})
		}
		resp.Assignment = a
	}
	c.answer(g, in, resp)
}

// unlike tells whether a member says that it has something else than it was given: then it is told again.
func (k *consumerGroup) unlike(m *consumerMember, owned parts, known bool) bool {
	return known && !owned.equal(m.assigned)
}

func ownedParts(topics []kmsg.ConsumerGroupHeartbeatRequestTopic) (owned parts, known bool) {
	for _, t := range topics {
		for _, i := range t.Partitions {
			owned = append(owned, part{t.TopicID, i})
		}
	}
	return owned.sorted(), topics != nil
}

// liveOn begins a member's session anew.
func (c *Coordinator) liveOn(g *group, m *consumerMember) {
	m.until = c.now.Add(c.cfg.ConsumerSession)
	c.wake(g, m.until)
	if !m.revokeBy.IsZero() {
		c.wake(g, m.revokeBy)
	}
}

// change collects the records of one step on a group of KIP-848.
type change struct {
	c       *Coordinator
	g       *group
	entries []entry
	bumped  bool
	header  bool // the group's own record has to be written
	joined  bool // the member is new, or begins anew
}

func (ch *change) add(e entry) { ch.entries = append(ch.entries, e) }

// bump raises the group's epoch, once.
func (ch *change) bump() {
	if !ch.bumped {
		ch.bumped, ch.header = true, true
		ch.g.consumer.epoch++
	}
}

func (ch *change) write() {
	if ch.header {
		// In front: whoever reads the log knows the group before its members.
		ch.entries = append([]entry{consumerEntry(ch.g)}, ch.entries...)
	}
	if len(ch.entries) > 0 {
		ch.c.append(ch.g, ch.entries, nil)
	}
	ch.entries, ch.header = nil, false
}

// find gives the member that a heartbeat is of, makes it if it joins, and fences the rest.
func (ch *change) find(in Request, q *kmsg.ConsumerGroupHeartbeatRequest) (*consumerMember, *kerr.Error, string) {
	c, k := ch.c, ch.g.consumer
	m := k.members[q.MemberID]
	if q.InstanceID != nil {
		holder := k.members[k.static[*q.InstanceID]]
		switch {
		case holder == nil && q.MemberEpoch != epochJoin:
			return nil, kerr.UnknownMemberID, "no member has this instance id"
		case holder != nil && holder.id != q.MemberID && q.MemberEpoch != epochJoin:
			return nil, kerr.FencedInstanceID, "another member has this instance id now"
		case holder != nil && holder.id != q.MemberID && holder.epoch != epochLeaveStatic:
			return nil, kerr.UnreleasedInstanceID, "the member with this instance id has not left"
		case holder != nil && holder.id != q.MemberID && m == nil:
			return ch.replace(holder, q.MemberID), nil, ""
		}
	}
	switch {
	case m != nil && q.InstanceID != nil && !equalText(m.instance, q.InstanceID):
		return nil, kerr.InvalidRequest, "the member has another instance id"
	case k.bytes+size(q.SubscribedTopicNames) > maxGroupBytes:
		return nil, kerr.GroupMaxSizeReached, "the members' subscriptions are too long together"
	case q.MemberEpoch == epochJoin && m == nil:
		if len(k.members) >= c.cfg.MaxSize {
			return nil, kerr.GroupMaxSizeReached, fmt.Sprintf("the group has %d members, the most that it takes", len(k.members))
		}
		id := q.MemberID
		if id == "" {
			id = c.newMemberID(in.ClientID)
		}
		m = &consumerMember{id: id, instance: q.InstanceID}
		k.members[id] = m
		if m.instance != nil {
			k.static[*m.instance] = id
		}
		ch.joined = true
		ch.bump()
		return m, nil, ""
	case q.MemberEpoch == epochJoin:
		// It says itself that it owns nothing, so whatever it had is free.
		ch.release(m, m.assigned.or(m.revoking))
		m.epoch, m.previousEpoch, m.state, m.assigned, m.revoking, m.revokeBy = 0, 0, settled, nil, nil, time.Time{}
		ch.joined = true
		return m, nil, ""
	case m == nil:
		return nil, kerr.UnknownMemberID, "the group has no such member"
	case q.MemberEpoch < 0:
		return m, nil, ""
	case q.MemberEpoch > m.epoch:
		return nil, kerr.FencedMemberEpoch, fmt.Sprintf("the member's epoch is %d, not %d", m.epoch, q.MemberEpoch)
	case q.MemberEpoch < m.epoch:
		// The answer with the newer epoch may have been lost: that is so if it has nothing but what it was given.
		owned, known := ownedParts(q.Topics)
		if q.MemberEpoch != m.previousEpoch || !known || len(owned.minus(m.assigned)) > 0 {
			return nil, kerr.FencedMemberEpoch, fmt.Sprintf("the member's epoch is %d, not %d", m.epoch, q.MemberEpoch)
		}
	}
	return m, nil, ""
}

// replace gives the place of a static member that left for a while to a new one, with the target that it had: nobody else is disturbed.
func (ch *change) replace(old *consumerMember, id string) *consumerMember {
	k := ch.g.consumer
	if id == "" {
		id = ch.c.newMemberID(old.clientID)
	}
	m := &consumerMember{id: id, instance: old.instance, rack: old.rack, clientID: old.clientID, host: old.host, topics: old.topics, regex: old.regex, pattern: old.pattern,
		rebalanceTimeout: old.rebalanceTimeout, assignor: old.assignor}
	ch.release(old, old.assigned)
	ch.forget(old)
	k.bytes += size(m.topics)
	k.members[id], k.static[*m.instance] = m, id
	if t := k.target[old.id]; t != nil {
		k.target[id] = t
		ch.add(targetEntry(ch.g.id, id, t))
	}
	delete(k.target, old.id)
	ch.add(memberEntry(ch.g.id, m))
	ch.joined = true
	return m
}

// forget takes a member's records out.
func (ch *change) forget(m *consumerMember) {
	k := ch.g.consumer
	delete(k.members, m.id)
	k.bytes -= size(m.topics)
	if m.instance != nil && k.static[*m.instance] == m.id {
		delete(k.static, *m.instance)
	}
	for _, kind := range []int16{kindCurrent, kindTarget, kindMember} {
		ch.add(entry{key: consumerKey(kind, ch.g.id, m.id)})
	}
}

// remove takes a member out for good: it left, or was silent for too long.
func (ch *change) remove(m *consumerMember) {
	k := ch.g.consumer
	ch.release(m, m.assigned.or(m.revoking))
	ch.forget(m)
	delete(k.target, m.id)
	ch.bump()
	if len(k.members) == 0 {
		k.emptySince = ch.c.now.UnixMilli()
	}
}

func (ch *change) release(m *consumerMember, ps parts) {
	for _, p := range ps {
		if ch.g.consumer.owner[p] == m.id {
			delete(ch.g.consumer.owner, p)
		}
	}
}

// subscribe takes over what a heartbeat says about a member, and raises the epoch if its subscription, or a topic in it, is another one.
func (ch *change) subscribe(m *consumerMember, in Request, q *kmsg.ConsumerGroupHeartbeatRequest) {
	k := ch.g.consumer
	was := memberEntry(ch.g.id, m).value
	topics, regex, assignor := m.topics, m.regex, m.assignor
	if q.SubscribedTopicNames != nil {
		m.topics = slices.Compact(slices.Sorted(slices.Values(q.SubscribedTopicNames)))
		k.bytes += size(m.topics) - size(topics)
	}
	if q.SubscribedTopicRegex != nil {
		if m.regex = q.SubscribedTopicRegex; *m.regex == "" {
			m.regex = nil
		}
		m.pattern = nil
	}
	if q.ServerAssignor != nil {
		m.assignor = q.ServerAssignor
	}
	if q.RackID != nil {
		m.rack = q.RackID
	}
	if q.RebalanceTimeoutMillis >= 0 {
		m.rebalanceTimeout = time.Duration(q.RebalanceTimeoutMillis) * time.Millisecond
	}
	m.clientID, m.host = in.ClientID, in.Host
	if len(m.clientID) > maxName {
		m.clientID = m.clientID[:maxName]
	}
	if now := memberEntry(ch.g.id, m); ch.joined || string(now.value) != string(was) {
		ch.add(now)
	}
	if !slices.Equal(topics, m.topics) || !equalText(regex, m.regex) || !equalText(assignor, m.assignor) {
		ch.bump()
	}
	if k.seen != ch.c.topics {
		k.seen = ch.c.topics
		if ch.c.topicsHash(ch.g) != k.topicsHash {
			ch.bump()
		}
	}
}

func equalText(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// subscription gives the existing topics that a member reads, by name.
func (c *Coordinator) subscription(m *consumerMember) []*TopicInfo {
	var out []*TopicInfo
	for _, name := range m.topics {
		if t := c.topics.ByName[name]; t != nil {
			out = append(out, t)
		}
	}
	if m.regex == nil {
		return out
	}
	if m.pattern == nil {
		p, err := compile(*m.regex)
		if err != nil {
			return out // it was accepted once, by another version
		}
		m.pattern = p
	}
	for _, name := range slices.Sorted(maps.Keys(c.topics.ByName)) {
		if t := c.topics.ByName[name]; name != Topic && m.pattern.MatchString(name) && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b *TopicInfo) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// subscribedTopics are the existing topics that a group reads, by name.
func (c *Coordinator) subscribedTopics(g *group) map[string]*TopicInfo {
	all := map[string]*TopicInfo{}
	for _, id := range g.consumer.ids() {
		for _, t := range c.subscription(g.consumer.members[id]) {
			all[t.Name] = t
		}
	}
	return all
}

// subscribedNames are the names that a group reads, of topics that exist or not.
func (c *Coordinator) subscribedNames(g *group) map[string]bool {
	out := map[string]bool{}
	for _, id := range g.consumer.ids() {
		m := g.consumer.members[id]
		for _, name := range m.topics {
			out[name] = true
		}
		for _, t := range c.subscription(m) {
			out[t.Name] = true
		}
	}
	return out
}

// topicsHash changes when a subscribed topic comes, goes, or gets more partitions.
func (c *Coordinator) topicsHash(g *group) int64 {
	all := c.subscribedTopics(g)
	h := fnv.New64a()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t := all[name]
		h.Write(binary.BigEndian.AppendUint32(t.ID[:], uint32(t.Partitions)))
	}
	return int64(h.Sum64())
}

// A target for many members is computed at most this often: with one for each of ten thousand joins nothing else would be done.
const (
	manyMembers  = 100
	retargetEach = time.Second
)

// retarget computes a new target if the group's epoch has risen since the last one.
func (ch *change) retarget() {
	k := ch.g.consumer
	if k.targetEpoch == k.epoch || len(k.members) > manyMembers && ch.c.now.Sub(k.targeted) < retargetEach {
		return
	}
	k.targeted = ch.c.now
	if h := ch.c.topicsHash(ch.g); h != k.topicsHash {
		k.topicsHash, ch.header = h, true
	}
	members := make([]subscriber, 0, len(k.members))
	for _, id := range k.ids() {
		m := k.members[id]
		members = append(members, subscriber{id: id, instance: m.instance, topics: ch.c.subscription(m), has: k.target[id]})
	}
	next := assignors[k.assignor()](members)
	for _, s := range members {
		if old, had := k.target[s.id]; !had || !next[s.id].equal(old) {
			ch.add(targetEntry(ch.g.id, s.id, next[s.id]))
		}
	}
	k.target, k.targetEpoch = next, k.epoch
	ch.add(targetEpochEntry(ch.g))
}

// assignor is the one that most members ask for; the default if nobody asks, or as many ask for another one.
func (k *consumerGroup) assignor() string {
	votes := map[string]int{}
	for _, id := range k.ids() {
		if a := k.members[id].assignor; a != nil {
			votes[*a]++
		}
	}
	best := assignorNames[0]
	for _, name := range assignorNames {
		if votes[name] > votes[best] {
			best = name
		}
	}
	return best
}

// reconcile takes a member one step towards its target. R42: a partition goes to its new owner only after the old one has given it back, or is out.
func (ch *change) reconcile(m *consumerMember, owned parts, known bool) {
	k := ch.g.consumer
	switch m.state {
	case settled:
		if m.epoch == k.targetEpoch {
			return
		}
	case unrevoked:
		if !known || len(owned.and(m.revoking)) > 0 {
			return
		}
		ch.release(m, m.revoking)
		m.revoking, m.revokeBy = nil, time.Time{}
	}
	target := k.target[m.id]
	kept, revoke := m.assigned.and(target), m.assigned.minus(target)
	if len(revoke) > 0 && (!known || len(owned.and(revoke)) > 0) {
		m.assigned, m.revoking, m.state = kept, revoke, unrevoked
		m.revokeBy = ch.c.now.Add(m.rebalanceTimeout)
		return
	}
	ch.release(m, revoke)
	wanted := target.minus(kept)
	free := wanted.where(func(p part) bool { return k.owner[p] == "" || k.owner[p] == m.id || fault.On(fault.DoubleAssignment) })
	for _, p := range free {
		k.owner[p] = m.id
	}
	m.assigned, m.state = kept.or(free), settled
	if len(free) < len(wanted) {
		m.state = unreleased
	}
	if m.epoch != k.targetEpoch {
		m.previousEpoch, m.epoch = m.epoch, k.targetEpoch
	}
}

// consumerDue looks at sessions and revocations.
func (c *Coordinator) consumerDue(g *group) {
	k := g.consumer
	ch := &change{c: c, g: g}
	for _, id := range k.ids() {
		m := k.members[id]
		switch {
		case !c.now.Before(m.until), !m.revokeBy.IsZero() && !c.now.Before(m.revokeBy):
			ch.remove(m) // R42: it is out, so what it had is free
		default:
			c.wake(g, m.until)
			if !m.revokeBy.IsZero() {
				c.wake(g, m.revokeBy)
			}
		}
	}
	ch.write()
}

// leaveConsumers handles a LeaveGroup for a group of KIP-848: an administrator takes members out.
func (c *Coordinator) leaveConsumers(in Request, g *group, q *kmsg.LeaveGroupRequest, resp *kmsg.LeaveGroupResponse) {
	ch := &change{c: c, g: g}
	out := func(id string, instance *string) int16 {
		if instance != nil {
			holder, found := g.consumer.static[*instance]
			switch {
			case !found:
				return kerr.UnknownMemberID.Code
			case id == "":
				id = holder
			case id != holder:
				return kerr.FencedInstanceID.Code
			}
		}
		m := g.consumer.members[id]
		if m == nil {
			return kerr.UnknownMemberID.Code
		}
		ch.remove(m)
		return 0
	}
	if q.Version < 3 {
		resp.ErrorCode = out(q.MemberID, nil)
	}
	for _, m := range q.Members {
		resp.Members = append(resp.Members, kmsg.LeaveGroupResponseMember{MemberID: m.MemberID, InstanceID: m.InstanceID, ErrorCode: out(m.MemberID, m.InstanceID)})
	}
	ch.write()
	c.answer(g, in, resp)
}

// stateOf is what DescribeGroups and its relatives call the state of a group of KIP-848.
func (k *consumerGroup) stateOf() string {
	switch {
	case len(k.members) == 0:
		return "Empty"
	case k.epoch > k.targetEpoch:
		return "Assigning"
	}
	for _, id := range k.ids() {
		if m := k.members[id]; m.state != settled || m.epoch != k.targetEpoch {
			return "Reconciling"
		}
	}
	return "Stable"
}
