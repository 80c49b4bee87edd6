package raftlog

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"

	"ackproof/broker/core/controller"
)

// content is what all Saves so far add up to.
type content controller.Stored

func (c content) stored() controller.Stored {
	c.Entries = append([]*raftpb.Entry(nil), c.Entries...)
	return controller.Stored(c)
}

// with gives the content after p. It fails, and c is as it was, if p would leave a gap or go behind the snapshot. If it succeeds, c must not be used any
// more: both share the array of entries.
func (c content) with(p controller.Persist) (content, error) {
	if p.HardState != nil {
		c.HardState = p.HardState
	}
	if p.Snapshot != nil {
		if err := c.install(p.Snapshot); err != nil {
			return c, err
		}
	}
	if len(p.Entries) == 0 {
		return c, nil
	}
	first := p.Entries[0].GetIndex()
	for i, e := range p.Entries {
		if e.GetIndex() != first+uint64(i) {
			return c, fmt.Errorf("entry %d follows entry %d, expected %d", e.GetIndex(), first+uint64(i)-1, first+uint64(i))
		}
	}
	begin, next := c.begin(), c.begin()+uint64(len(c.Entries))
	if first > next {
		return c, fmt.Errorf("entries from %d, expected at most %d", first, next)
	}
	entries := p.Entries
	if first < begin { // the snapshot has those already
		entries = entries[min(uint64(len(entries)), begin-first):]
		first = begin
	}
	if len(entries) > 0 {
		c.Entries = append(c.Entries[:first-begin], entries...)
	}
	return c, nil
}

// begin is the index of the first entry that may be stored.
func (c content) begin() uint64 { return c.Snapshot.GetMetadata().GetIndex() + 1 }

// install replaces the entries up to the snapshot's index. Those behind it stay only if the snapshot is of the same history: if the entry at its index has its
// term. Otherwise it came from a leader, and what follows here is an old leader's.
func (c *content) install(s *raftpb.Snapshot) error {
	index, begin := s.GetMetadata().GetIndex(), c.begin()
	if index+1 < begin {
		return fmt.Errorf("snapshot of index %d, there is one of %d", index, begin-1)
	}
	if index == 0 {
		return errors.New("snapshot of index 0")
	}
	term := c.Snapshot.GetMetadata().GetTerm()
	at := index + 1 - begin // entries up to the index
	if at > 0 && at <= uint64(len(c.Entries)) {
		term = c.Entries[at-1].GetTerm()
	}
	if at > uint64(len(c.Entries)) || term != s.GetMetadata().GetTerm() {
		at = uint64(len(c.Entries))
	}
	c.Entries = append([]*raftpb.Entry(nil), c.Entries[at:]...)
	c.Snapshot = s
	return nil
}
