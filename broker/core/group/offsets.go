package group

import (
	"cmp"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/fault"
)

// offset is a committed offset. Immutable.
type offset struct {
	offset      int64
	leaderEpoch int32 // −1 unknown
	metadata    string
	committed   int64 // ms
	expires     int64 // ms, −1: by retention (only OffsetCommit v2 to v4 can say otherwise)
}

// offsetChange is a record of an offset on its way: it takes effect when it is committed.
type offsetChange struct {
	group string
	at    topicPartition
	to    *offset // nil: deleted
}

func (c *Coordinator) applyOffset(o offsetChange) {
	g := c.groups[o.group]
	switch {
	case g == nil && o.to == nil:
	case g == nil:
		g = &group{id: o.group, offsets: map[topicPartition]*offset{}}
		c.groups[o.group] = g
		fallthrough
	case o.to != nil:
		g.offsets[o.at] = o.to
	default:
		delete(g.offsets, o.at)
		if g.classic == nil && g.consumer == nil && len(g.offsets) == 0 && g.last == nil {
			delete(c.groups, g.id) // it was nothing but its offsets
		}
	}
}

// sortedOffsets gives what the group has committed, in order.
func (g *group) sortedOffsets() []topicPartition {
	//order-free: sorted by the whole key
	return slices.SortedFunc(maps.Keys(g.offsets), compareTopicPartition)
}

func compareTopicPartition(a, b topicPartition) int {
	if d := cmp.Compare(a.topic, b.topic); d != 0 {
		return d
	}
	return cmp.Compare(a.partition, b.partition)
}

// commit handles OffsetCommit: fenced by generation and member (R38) or by member epoch (KIP-848), and answered when it is committed (R41).
func (c *Coordinator) commit(in Request, q *kmsg.OffsetCommitRequest) {
	g := c.groups[q.Group]
	if code := c.mayCommit(g, q); code != 0 && !fault.On(fault.CommitWithoutFence) {
		c.reply(in.Token, refuseCommit(q, code))
		return
	}
	now := c.now.UnixMilli()
	resp := q.ResponseKind().(*kmsg.OffsetCommitResponse)
	seen := map[topicPartition]int{} // several offsets of one partition: the last one counts
	var changes []offsetChange
	for _, t := range q.Topics {
		out := kmsg.OffsetCommitResponseTopic{Topic: t.Topic, TopicID: t.TopicID}
		topic, unknown := c.topic(q.Version >= 10, t.Topic, t.TopicID)
		for _, p := range t.Partitions {
			one := kmsg.OffsetCommitResponseTopicPartition{Partition: p.Partition}
			metadata := ""
			if p.Metadata != nil {
				metadata = *p.Metadata
			}
			switch {
			case unknown != 0:
				one.ErrorCode = unknown
			case p.Partition < 0 || p.Partition >= topic.Partitions:
				one.ErrorCode = kerr.UnknownTopicOrPartition.Code
			case len(metadata) > c.cfg.MaxMetadata:
				one.ErrorCode = kerr.OffsetMetadataTooLarge.Code
			default:
				o := &offset{offset: p.Offset, leaderEpoch: -1, metadata: metadata, committed: now, expires: -1}
				if q.Version >= 6 {
					o.leaderEpoch = p.LeaderEpoch
				}
				if q.Version >= 2 && q.Version <= 4 && q.RetentionTimeMillis >= 0 {
					o.expires = now + q.RetentionTimeMillis
				}
				at := topicPartition{topic.Name, p.Partition}
				change := offsetChange{q.Group, at, o}
				if i, twice := seen[at]; twice {
					changes[i] = change
				} else {
					seen[at] = len(changes)
					changes = append(changes, change)
				}
			}
			out.Partitions = append(out.Partitions, one)
		}
		resp.Topics = append(resp.Topics, out)
	}
	if len(changes) == 0 {
		c.reply(in.Token, resp)
		return
	}
	p := c.append(nil, offsetEntries(changes), changes)
	if fault.On(fault.CommitBeforeReplicated) {
		for _, o := range changes {
			c.applyOffset(o)
		}
		c.reply(in.Token, resp)
		return
	}
	c.hold(p, in, resp)
}

func offsetEntries(changes []offsetChange) []entry {
	out := make([]entry, len(changes))
	for i, o := range changes {
		out[i] = offsetEntry(o.group, o.at.topic, o.at.partition, o.to)
	}
	return out
}

// topic resolves a topic by name or id.
func (c *Coordinator) topic(byID bool, name string, id [16]byte) (*TopicInfo, int16) {
	if byID {
		if t := c.topics.ByID[id]; t != nil {
			return t, 0
		}
		return nil, kerr.UnknownTopicID.Code
	}
	if t := c.topics.ByName[name]; t != nil {
		return t, 0
	}
	return nil, kerr.UnknownTopicOrPartition.Code
}

// mayCommit tells why a commit is refused, 0 if it is not.
func (c *Coordinator) mayCommit(g *group, q *kmsg.OffsetCommitRequest) int16 {
	generation, id := q.Generation, q.MemberID
	if q.Version < 1 {
		generation, id = -1, ""
	}
	outsider := generation < 0 && id == "" && q.InstanceID == nil // an administrator, or a consumer that assigns itself
	switch {
	case q.Group == "" && !outsider, len(q.Group) > maxName:
		return kerr.InvalidGroupID.Code
	case g == nil && generation >= 0:
		return kerr.IllegalGeneration.Code // as Kafka: the group may be gone, the member is to join again
	case g == nil && !outsider:
		return kerr.UnknownMemberID.Code
	case g == nil:
		if c.full() {
			return kerr.GroupMaxSizeReached.Code
		}
		return 0
	case g.consumer != nil:
		if outsider && g.empty() {
			return 0
		}
		return g.consumer.mayUse(id, generation, q.Version)
	case g.classic == nil || g.empty():
		if outsider {
			return 0
		}
		return kerr.UnknownMemberID.Code
	case outsider:
		return kerr.UnknownMemberID.Code
	}
	k := g.classic
	m, code := k.find(id, q.InstanceID)
	switch {
	case code != 0:
		return code
	case generation != k.generation:
		return kerr.IllegalGeneration.Code
	case k.state == stateCompleting, m.fresh: // whoever has not been in a generation has nothing to commit
		return kerr.RebalanceInProgress.Code
	}
	if m.join == nil && m.sync == nil {
		c.touch(g, m)
	}
	return 0
}

// fetch handles OffsetFetch. What it tells is committed, since offsets change only then; and nobody else has taken over before: that is what the barrier proves. Kafka answers from
// memory, so a coordinator that was cut off tells old offsets for a while.
func (c *Coordinator) fetch(in Request, q *kmsg.OffsetFetchRequest) {
	if c.phase == loading { // a planted bug
		c.reply(in.Token, c.offsetsFor(q))
		return
	}
	p := c.append(nil, []entry{barrier()}, nil)
	h := c.hold(p, in, nil)
	p.then = func() { h.response = c.offsetsFor(q) }
}

// offsetsFor is the answer to an OffsetFetch.
func (c *Coordinator) offsetsFor(q *kmsg.OffsetFetchRequest) *kmsg.OffsetFetchResponse {
	resp := q.ResponseKind().(*kmsg.OffsetFetchResponse)
	if q.Version < 8 {
		g := c.groups[q.Group]
		if q.Topics == nil {
			for _, t := range c.allOffsets(g, false) {
				out := kmsg.OffsetFetchResponseTopic{Topic: t.Topic}
				for _, p := range t.Partitions {
					out.Partitions = append(out.Partitions, kmsg.OffsetFetchResponseTopicPartition(p))
				}
				resp.Topics = append(resp.Topics, out)
			}
		}
		for _, t := range q.Topics {
			out := kmsg.OffsetFetchResponseTopic{Topic: t.Topic}
			for _, p := range t.Partitions {
				out.Partitions = append(out.Partitions, kmsg.OffsetFetchResponseTopicPartition(g.offsetOf(t.Topic, p)))
			}
			resp.Topics = append(resp.Topics, out)
		}
		return resp
	}
	for _, ask := range q.Groups {
		one := kmsg.NewOffsetFetchResponseGroup()
		one.Group = ask.Group
		g := c.groups[ask.Group]
		if q.Version >= 9 && ask.MemberID != nil && g != nil && g.consumer != nil {
			one.ErrorCode = g.consumer.mayUse(*ask.MemberID, ask.MemberEpoch, q.Version)
		}
		switch {
		case one.ErrorCode != 0:
		case ask.Topics == nil:
			one.Topics = c.allOffsets(g, q.Version >= 10)
		default:
			for _, t := range ask.Topics {
				out := kmsg.OffsetFetchResponseGroupTopic{Topic: t.Topic, TopicID: t.TopicID}
				name, unknown := t.Topic, int16(0)
				if q.Version >= 10 {
					if topic := c.topics.ByID[t.TopicID]; topic != nil {
						name = topic.Name
					} else {
						unknown = kerr.UnknownTopicID.Code
					}
				}
				for _, p := range t.Partitions {
					o := g.offsetOf(name, p)
					if unknown != 0 {
						o = (*group)(nil).offsetOf("", p)
						o.ErrorCode = unknown
					}
					out.Partitions = append(out.Partitions, o)
				}
				one.Topics = append(one.Topics, out)
			}
		}
		resp.Groups = append(resp.Groups, one)
	}
	return resp
}

// offsetOf describes one committed offset: −1 if there is none. It may be called on nil.
func (g *group) offsetOf(topic string, partition int32) kmsg.OffsetFetchResponseGroupTopicPartition {
	out := kmsg.OffsetFetchResponseGroupTopicPartition{Partition: partition, Offset: -1, LeaderEpoch: -1, Metadata: kmsg.StringPtr("")}
	if g == nil {
		return out
	}
	if o := g.offsets[topicPartition{topic, partition}]; o != nil {
		out.Offset, out.LeaderEpoch, out.Metadata = o.offset, o.leaderEpoch, &o.metadata
	}
	return out
}

// allOffsets describes all committed offsets of a group. With ids, topics that are gone are left out: they have none.
func (c *Coordinator) allOffsets(g *group, ids bool) []kmsg.OffsetFetchResponseGroupTopic {
	var out []kmsg.OffsetFetchResponseGroupTopic
	if g == nil {
		return nil
	}
	last := ""
	for _, at := range g.sortedOffsets() {
		if len(out) == 0 || last != at.topic {
			t := kmsg.OffsetFetchResponseGroupTopic{Topic: at.topic}
			if info := c.topics.ByName[at.topic]; info != nil {
				t.TopicID = info.ID
			} else if ids {
				continue
			}
			out, last = append(out, t), at.topic
		}
		t := &out[len(out)-1]
		t.Partitions = append(t.Partitions, g.offsetOf(at.topic, at.partition))
	}
	return out
}

// deleteOffsets handles OffsetDelete (KIP-496).
func (c *Coordinator) deleteOffsets(in Request, q *kmsg.OffsetDeleteRequest) {
	resp := q.ResponseKind().(*kmsg.OffsetDeleteResponse)
	g := c.groups[q.Group]
	var subscribed map[string]bool
	switch {
	case q.Group == "":
		resp.ErrorCode = kerr.InvalidGroupID.Code
	case g == nil:
		resp.ErrorCode = kerr.GroupIDNotFound.Code
	case g.consumer != nil:
		subscribed = c.subscribedNames(g)
	case !g.empty():
		var ok bool
		if subscribed, ok = g.classic.subscribed(); !ok {
			resp.ErrorCode = kerr.NonEmptyGroup.Code
		}
	}
	if resp.ErrorCode != 0 {
		c.reply(in.Token, resp)
		return
	}
	var changes []offsetChange
	for _, t := range q.Topics {
		out := kmsg.OffsetDeleteResponseTopic{Topic: t.Topic}
		for _, p := range t.Partitions {
			one := kmsg.OffsetDeleteResponseTopicPartition{Partition: p.Partition}
			at := topicPartition{t.Topic, p.Partition}
			switch {
			case !c.topics.has(at) && g.offsets[at] == nil:
				one.ErrorCode = kerr.UnknownTopicOrPartition.Code
			case subscribed[t.Topic]:
				one.ErrorCode = kerr.GroupSubscribedToTopic.Code
			case g.offsets[at] != nil:
				changes = append(changes, offsetChange{q.Group, at, nil})
			}
			out.Partitions = append(out.Partitions, one)
		}
		resp.Topics = append(resp.Topics, out)
	}
	if len(changes) == 0 {
		c.reply(in.Token, resp)
		return
	}
	c.hold(c.append(nil, offsetEntries(changes), changes), in, resp)
}

// expire removes offsets that nobody has needed for the retention time (KIP-211), and the group with its last one.
func (c *Coordinator) expire(g *group) {
	for _, p := range c.pending {
		if slices.ContainsFunc(p.offsets, func(o offsetChange) bool { return o.group == g.id }) {
			return // a tombstone behind a commit that is under way would delete it
		}
	}
	now, retention := c.now.UnixMilli(), c.cfg.OffsetsRetention.Milliseconds()
	var changes []offsetChange
	reads, known := map[string]bool{}, false
	switch {
	case g.consumer != nil && !g.empty():
		reads, known = c.subscribedNames(g), true
	case g.classic != nil && !g.empty() && g.classic.state == stateStable:
		reads, known = g.classic.subscribed()
	}
	for _, at := range g.sortedOffsets() {
		o := g.offsets[at]
		since := o.committed
		switch {
		case !g.empty() && (!known || reads[at.topic]):
			continue // in use, or nobody can tell
		case g.empty() && g.classic != nil && g.classic.protocolType != "":
			since = max(since, g.classic.since)
		case g.empty() && g.consumer != nil:
			since = max(since, g.consumer.emptySince)
		}
		if o.expires >= 0 && now >= o.expires || o.expires < 0 && now-since >= retention {
			changes = append(changes, offsetChange{g.id, at, nil})
		}
	}
	if len(changes) == len(g.offsets) && g.empty() && g.last == nil && c.emptyLongEnough(g, now-retention) {
		c.bury(g, changes)
	} else if len(changes) > 0 {
		c.append(nil, offsetEntries(changes), changes)
	}
}

// emptyLongEnough: a group without offsets goes after the retention time too, so that groups which never committed do not stay for ever.
func (c *Coordinator) emptyLongEnough(g *group, before int64) bool {
	switch {
	case len(g.offsets) > 0:
		return true // they have all expired
	case g.classic != nil:
		return g.classic.since <= before
	case g.consumer != nil:
		return g.consumer.emptySince <= before
	}
	return true
}

// bury writes the tombstones of a group without members and of its offsets; the group is gone once they are committed, unless somebody has come meanwhile.
func (c *Coordinator) bury(g *group, changes []offsetChange) *pending {
	entries := offsetEntries(changes)
	switch {
	case g.classic != nil:
		entries = append(entries, entry{key: classicKey(g.id)})
		g.stored = nil
	case g.consumer != nil:
		entries = append(entries, consumerTombstones(g)...)
	}
	if len(entries) == 0 {
		delete(c.groups, g.id)
		return nil
	}
	p := c.append(g, entries, changes)
	p.then = func() {
		if !g.empty() || g.last != nil || c.groups[g.id] != g {
			return
		}
		if g.classic, g.consumer = nil, nil; len(g.offsets) == 0 {
			delete(c.groups, g.id)
		}
	}
	return p
}

// topicsChanged takes a newer list of topics, and deletes the offsets of those that are gone: a later topic of the same name begins at 0. Only what this coordinator has seen itself
// counts as gone: its first list may be older than the commits in its log.
func (c *Coordinator) topicsChanged(topics *Topics) {
	before := c.topics
	c.topics = topics
	gone := map[string]bool{}
	for name, t := range before.ByName { //order-free: makes a set
		if now := topics.ByName[name]; now == nil || now.ID != t.ID {
			gone[name] = true
		}
	}
	if len(gone) == 0 || c.phase != active {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(c.groups)) {
		at := map[topicPartition]bool{}
		for _, p := range c.pending { // a commit under way is of the old topic too
			for _, o := range p.offsets {
				if o.group == id && gone[o.at.topic] {
					at[o.at] = true
				}
			}
		}
		var changes []offsetChange
		for _, x := range c.groups[id].sortedOffsets() {
			if gone[x.topic] {
				changes = append(changes, offsetChange{id, x, nil})
				delete(at, x)
			}
		}
		for _, x := range slices.SortedFunc(maps.Keys(at), compareTopicPartition) { //order-free: sorted by the whole key
			changes = append(changes, offsetChange{id, x, nil})
		}
		if len(changes) > 0 {
			c.append(nil, offsetEntries(changes), changes)
		}
	}
}
