package group

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/record"
)

// load replays batches of the log (R41). A record that does not parse is reported and left out: the others are worth having.
func (c *Coordinator) load(in Load) {
	if c.phase != loading {
		return
	}
	for _, b := range in.Batches {
		c.bytes += int(b.Length)
		if err := c.replay(b); err != nil {
			c.out = append(c.out, Unread{Err: err})
		}
	}
}

func (c *Coordinator) replay(b record.Batch) error {
	var first error
	err := decode(b, func(e entry) error {
		if err := c.apply(e); err != nil && first == nil {
			first = fmt.Errorf("%w: in the batch at offset %d: %v", errRecord, b.BaseOffset, err)
		}
		return nil
	})
	if first != nil {
		return first
	}
	return err
}

// apply takes one record over.
func (c *Coordinator) apply(e entry) error {
	if len(e.key) < 2 {
		return fmt.Errorf("key of %d bytes", len(e.key))
	}
	switch kind := int16(binary.BigEndian.Uint16(e.key)); kind {
	case 0, kindOffset:
		return c.applyOffsetRecord(e)
	case kindClassic:
		return c.applyClassic(e)
	case kindConsumer, kindMember, kindTargetEpoch, kindTarget, kindCurrent:
		return c.applyConsumer(kind, e)
	}
	return nil // of a kind that a newer version knows, and nothing here depends on
}

func (c *Coordinator) applyOffsetRecord(e entry) error {
	var k kmsg.OffsetCommitKey
	if err := k.ReadFrom(e.key); err != nil {
		return fmt.Errorf("key of an offset: %w", err)
	}
	change := offsetChange{group: k.Group, at: topicPartition{k.Topic, k.Partition}}
	if e.value != nil {
		v := kmsg.NewOffsetCommitValue()
		v.LeaderEpoch, v.ExpireTimestamp = -1, -1
		if err := v.ReadFrom(e.value); err != nil {
			return fmt.Errorf("offset of %q for %s-%d: %w", k.Group, k.Topic, k.Partition, err)
		}
		change.to = &offset{offset: v.Offset, leaderEpoch: v.LeaderEpoch, metadata: v.Metadata, committed: v.CommitTimestamp, expires: v.ExpireTimestamp}
	}
	c.applyOffset(change)
	return nil
}

// found gives the group that a record is of, without a bound: what is in the log was accepted once.
func (c *Coordinator) found(id string) *group {
	g := c.groups[id]
	if g == nil {
		g = &group{id: id, offsets: map[topicPartition]*offset{}}
		c.groups[id] = g
	}
	return g
}

func (c *Coordinator) applyClassic(e entry) error {
	var key kmsg.GroupMetadataKey
	if err := key.ReadFrom(e.key); err != nil {
		return fmt.Errorf("key of a group: %w", err)
	}
	g := c.found(key.Group)
	if e.value == nil {
		g.classic, g.stored = nil, nil
		c.gone(g)
		return nil
	}
	v := kmsg.NewGroupMetadataValue()
	v.CurrentStateTimestamp = -1
	if err := v.ReadFrom(e.value); err != nil {
		return fmt.Errorf("group %q: %w", key.Group, err)
	}
	k := newClassic()
	k.protocolType, k.generation, k.since = v.ProtocolType, v.Generation, v.CurrentStateTimestamp
	if v.Protocol != nil {
		k.protocol = *v.Protocol
	}
	for _, one := range v.Members {
		m := &member{id: one.MemberID, instance: one.InstanceID, clientID: one.ClientID, host: one.ClientHost, assignment: one.Assignment,
			session: time.Duration(one.SessionTimeoutMillis) * time.Millisecond, rebalance: time.Duration(one.RebalanceTimeoutMillis) * time.Millisecond,
			protocols: []kmsg.JoinGroupRequestProtocol{{Name: k.protocol, Metadata: one.Subscription}}}
		k.add(m)
	}
	if v.Leader != nil && k.byID[*v.Leader] != nil {
		k.leader = *v.Leader
	}
	if len(k.members) > 0 {
		k.state = stateStable
	}
	g.classic, g.consumer, g.stored = k, nil, e.value
	return nil
}

// gone forgets a group of which nothing is left.
func (c *Coordinator) gone(g *group) {
	if g.classic == nil && g.consumer == nil && len(g.offsets) == 0 {
		delete(c.groups, g.id)
	}
}

func (c *Coordinator) applyConsumer(kind int16, e entry) error {
	r := kbin.Reader{Src: e.key}
	r.Int16()
	id, memberID := r.String(), ""
	if kind == kindMember || kind == kindTarget || kind == kindCurrent {
		memberID = r.String()
	}
	if err := r.Complete(); err != nil {
		return fmt.Errorf("key of kind %d: %w", kind, err)
	}
	g := c.found(id)
	if e.value == nil {
		c.applyConsumerTombstone(g, kind, memberID)
		return nil
	}
	if g.consumer == nil {
		g.consumer, g.classic, g.stored = newConsumer(), nil, nil
	}
	k := g.consumer
	v := kbin.Reader{Src: e.value}
	v.Int16()
	switch kind {
	case kindConsumer:
		epoch, hash, err := readConsumer(e.value)
		if err != nil {
			return fmt.Errorf("group %q: %w", id, err)
		}
		k.epoch, k.topicsHash = epoch, hash
	case kindTargetEpoch:
		k.targetEpoch = v.Int32()
	case kindTarget:
		k.target[memberID] = readParts(&v)
	case kindMember:
		m, err := readMember(memberID, e.value)
		if err != nil {
			return fmt.Errorf("member %q of group %q: %w", memberID, id, err)
		}
		if old := k.members[memberID]; old != nil {
			m.epoch, m.previousEpoch, m.state, m.assigned, m.revoking = old.epoch, old.previousEpoch, old.state, old.assigned, old.revoking
		}
		k.members[memberID] = m
		if m.instance != nil {
			k.static[*m.instance] = memberID
		}
	case kindCurrent:
		m := k.members[memberID]
		if m == nil {
			m = &consumerMember{id: memberID}
			k.members[memberID] = m
		}
		m.epoch, m.previousEpoch, m.state = v.Int32(), v.Int32(), memberState(v.Int8())
		m.assigned, m.revoking = readParts(&v), readParts(&v)
	}
	if !v.Ok() {
		return fmt.Errorf("value of kind %d of group %q ends early", kind, id)
	}
	return nil
}

func (c *Coordinator) applyConsumerTombstone(g *group, kind int16, memberID string) {
	k := g.consumer
	switch {
	case k == nil:
	case kind == kindConsumer:
		g.consumer = nil
	case kind == kindTarget:
		delete(k.target, memberID)
	case kind == kindMember:
		if m := k.members[memberID]; m != nil && m.instance != nil && k.static[*m.instance] == memberID {
			delete(k.static, *m.instance)
		}
		delete(k.members, memberID)
	}
	c.gone(g)
}

// loaded begins to serve. Everybody is given a full session from now on: nobody could send a heartbeat here before.
func (c *Coordinator) loaded() {
	if c.phase != loading {
		return
	}
	c.phase, c.checked = active, c.now
	for _, id := range slices.Sorted(maps.Keys(c.groups)) {
		g := c.groups[id]
		if k := g.classic; k != nil {
			for _, m := range k.members {
				c.touch(g, m)
			}
		}
		if k := g.consumer; k != nil {
			k.emptySince = c.now.UnixMilli() // not in the log
			for _, id := range k.ids() {
				m := k.members[id]
				k.bytes += size(m.topics)
				for _, p := range m.assigned.or(m.revoking) {
					k.owner[p] = id
				}
				if m.state == unrevoked {
					m.revokeBy = c.now.Add(m.rebalanceTimeout)
				}
				c.liveOn(g, m)
			}
		}
	}
}
