package group

import (
	"maps"
	"slices"
)

// The log of a partition is compacted by its coordinator: from time to time it writes all that is alive once more and lets everything before that be trimmed. Every prefix of a
// snapshot behind the old log replays to the same state, so a failure in the middle does no harm.

// snapshotBatch is about how many bytes of records go into one batch of a snapshot.
const snapshotBatch = 1 << 20

// compact writes a snapshot when the log has grown to several times of what is alive. It waits until nothing is pending, so that state and log agree, and holds new requests
// back meanwhile: that is no longer than a commit takes.
func (c *Coordinator) compact() {
	if c.phase != active || c.cfg.CompactAfter == 0 {
		return
	}
	if !c.compacts {
		c.compacts = c.uncovered == 0 && c.bytes > max(c.cfg.CompactAfter, 4*c.snapshot)
	}
	if !c.compacts || len(c.pending) > 0 {
		return
	}
	c.writeSnapshot()
	c.compacts = false
	queued := c.queued
	c.queued = nil
	for _, in := range queued {
		c.request(in)
	}
}

func (c *Coordinator) writeSnapshot() {
	c.bytes = 0
	var batch []entry
	size, first := 0, int64(-1)
	write := func() {
		if len(batch) == 0 {
			return
		}
		c.uncovered++
		p := c.append(nil, batch, nil)
		p.vital = true
		p.then = func() {
			if c.uncovered--; first < 0 {
				first = p.answer.Offset
			}
			if c.uncovered == 0 {
				c.out = append(c.out, Trim{Offset: first})
			}
		}
		batch, size = nil, 0
	}
	for _, id := range slices.Sorted(maps.Keys(c.groups)) {
		for _, e := range c.groups[id].snapshot() {
			batch = append(batch, e)
			if size += len(e.key) + len(e.value); size >= snapshotBatch {
				write()
			}
		}
	}
	if c.uncovered == 0 && len(batch) == 0 {
		batch = append(batch, barrier()) // nothing is alive: all of the log can go
	}
	write()
	c.snapshot, c.bytes = c.bytes, 0
}

// snapshot is all that the log has to say about a group.
func (g *group) snapshot() []entry {
	var out []entry
	if g.stored != nil {
		out = append(out, entry{classicKey(g.id), g.stored})
	}
	if k := g.consumer; k != nil {
		out = append(out, consumerEntry(g))
		for _, id := range k.ids() {
			out = append(out, memberEntry(g.id, k.members[id]))
		}
		out = append(out, targetEpochEntry(g))
		for _, id := range k.ids() {
			if t, ok := k.target[id]; ok {
				out = append(out, targetEntry(g.id, id, t))
			}
			out = append(out, currentEntry(g.id, k.members[id]))
		}
	}
	for _, at := range g.sortedOffsets() {
		out = append(out, offsetEntry(g.id, at.topic, at.partition, g.offsets[at]))
	}
	return out
}
