package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// group is one group. It is a classic group, a KIP-848 group, or neither: then it has offsets only ("simple"), and takes the form of the first member that comes. A group
// without members changes its form the same way.
type group struct {
	id       string
	classic  *classicGroup
	consumer *consumerGroup
	offsets  map[topicPartition]*offset
	last     *pending  // the newest append with state of this group, nil once it is committed
	due      time.Time // the earliest time at which something of this group may be due; zero: nothing is
	stored   []byte    // the newest classic record that was written: a round under way is in no record yet
}

type topicPartition struct {
	topic     string
	partition int32
}

// empty tells whether the group has no members.
func (g *group) empty() bool {
	switch {
	case g.classic != nil:
		return len(g.classic.members) == 0 && len(g.classic.announced) == 0
	case g.consumer != nil:
		return len(g.consumer.members) == 0
	}
	return true
}

// maxName bounds the names that clients choose (groups, instances, members, protocols), in bytes: Kafka knows no bound, but the records have one of 32767.
const maxName = 4096

func named(s *string) bool { return s == nil || len(*s) <= maxName && len(*s) > 0 }

// make gives the group of that name, and makes it if need be.
func (c *Coordinator) make(id string) (*group, int16) {
	if g := c.groups[id]; g != nil {
		return g, 0
	}
	if c.full() {
		return nil, kerr.GroupMaxSizeReached.Code
	}
	g := &group{id: id, offsets: map[topicPartition]*offset{}}
	c.groups[id] = g
	return g, 0
}

// full tells whether there may be no more groups. Commits that are under way count for the groups that they will make.
func (c *Coordinator) full() bool {
	if len(c.groups)+len(c.pending) < c.cfg.MaxGroups {
		return false // each of them makes one at most
	}
	coming := map[string]bool{}
	for _, p := range c.pending {
		for _, o := range p.offsets {
			if c.groups[o.group] == nil {
				coming[o.group] = true
			}
		}
	}
	return len(c.groups)+len(coming) >= c.cfg.MaxGroups
}

// tidy forgets a group that came to nothing: nobody ever joined fully, nothing was committed, and nothing of it is in the log.
func (c *Coordinator) tidy(g *group) {
	if g.classic != nil && g.classic.generation == 0 && g.empty() && len(g.offsets) == 0 && g.last == nil {
		delete(c.groups, g.id)
	}
}
