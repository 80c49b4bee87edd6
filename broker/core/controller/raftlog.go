package controller

import (
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"ackproof/broker/fault"
)

const (
	maxMessageBytes     = 1 << 20  // of entries in one raft message, unless one entry is larger
	maxUncommittedBytes = 16 << 20 // of proposals in flight; more are refused
	maxInflight         = 256      // raft messages to one voter without an answer
)

// A raft id is the broker's id + 1: raft reserves 0, Kafka does not.
func raftID(broker int32) uint64 { return uint64(broker) + 1 }
func brokerID(id uint64) int32   { return int32(id - 1) }

// restore builds raft and the image from what is on disk. All voters start from the same snapshot, an empty image at index 1 that names the voters; so there
// are no configuration entries, and every voter starts alike whichever starts first.
func (c *Controller) restore(stored Stored) error {
	snap, hard := stored.Snapshot, stored.HardState
	if snap == nil {
		if len(stored.Entries) > 0 || !raft.IsEmptyHardState(hard) {
			return errors.New("stored state: entries or votes without a snapshot, want all of it or none")
		}
		var err error
		if snap, err = c.firstSnapshot(); err != nil {
			return err
		}
		hard = &raftpb.HardState{Term: new(uint64(1)), Vote: new(uint64(0)), Commit: new(uint64(1))}
		c.emit(Persist{HardState: hard, Snapshot: snap})
	}
	meta := snap.GetMetadata()
	if got := meta.GetConfState().GetVoters(); !slices.Equal(got, c.voters()) {
		return fmt.Errorf("stored snapshot: raft voters %v, want %v: the set of brokers cannot change", got, c.voters())
	}
	image, err := decodeImage(snap.GetData())
	if err != nil {
		return fmt.Errorf("stored snapshot: %w", err)
	}
	if image.Index != meta.GetIndex() {
		return fmt.Errorf("stored snapshot: image of index %d, want %d", image.Index, meta.GetIndex())
	}
	entries, err := behind(stored.Entries, meta.GetIndex(), meta.GetTerm())
	if err != nil {
		return err
	}

	// A crash may have parted the hard state from the entries or the snapshot written with it. Then nothing was sent that depends on them. So a newer term
	// than the hard state's is one in which we have not voted yet; and the commit index is only a hint.
	last, lastTerm := meta.GetIndex(), meta.GetTerm()
	if len(entries) > 0 {
		last, lastTerm = entries[len(entries)-1].GetIndex(), entries[len(entries)-1].GetTerm()
	}
	term, vote := hard.GetTerm(), hard.GetVote()
	if term < lastTerm || fault.On(fault.VoteNotDurable) {
		term, vote = lastTerm, raft.None
	}
	hard = &raftpb.HardState{Term: &term, Vote: &vote, Commit: new(min(max(hard.GetCommit(), meta.GetIndex()), last))}

	c.log = raft.NewMemoryStorage()
	if err := errors.Join(c.log.ApplySnapshot(snap), c.log.SetHardState(hard), c.log.Append(entries)); err != nil {
		return fmt.Errorf("stored state: %w", err)
	}
	c.hard, c.image, c.snapshot, c.appliedTerm = hard, image, meta.GetIndex(), meta.GetTerm()
	c.guard(func() (err error) {
		c.raft, err = raft.NewRawNode(&raft.Config{
			ID:                        raftID(c.cfg.Self),
			ElectionTick:              c.cfg.ElectionTicks,
			HeartbeatTick:             1,
			Storage:                   c.log,
			Applied:                   c.snapshot,
			MaxSizePerMsg:             maxMessageBytes,
			MaxUncommittedEntriesSize: maxUncommittedBytes,
			MaxInflightMsgs:           maxInflight,
			CheckQuorum:               true, // a leader that is cut off resigns
			PreVote:                   true, // and one that comes back disturbs nobody
			DisableProposalForwarding: true, // who answers a request must be who proposed it
			Logger:                    quiet{},
		})
		return err
	})
	return c.failed
}

// behind returns the entries behind the snapshot, which must follow it without a gap.
func behind(entries []*raftpb.Entry, index, term uint64) ([]*raftpb.Entry, error) {
	for len(entries) > 0 && entries[0].GetIndex() <= index {
		if entries[0].GetIndex() == index && entries[0].GetTerm() != term {
			return nil, nil // the snapshot came from another log than these entries
		}
		entries = entries[1:]
	}
	for i, e := range entries {
		if want := index + 1 + uint64(i); e.GetIndex() != want {
			return nil, fmt.Errorf("stored entries: index %d, want %d", e.GetIndex(), want)
		}
		if e.GetTerm() < term {
			return nil, fmt.Errorf("stored entries: term %d at index %d after term %d", e.GetTerm(), e.GetIndex(), term)
		}
		term = e.GetTerm()
	}
	return entries, nil
}

func (c *Controller) voters() []uint64 {
	ids := make([]uint64, len(c.cfg.Voters))
	for i, v := range c.cfg.Voters {
		ids[i] = raftID(v)
	}
	return ids
}

func (c *Controller) firstSnapshot() (*raftpb.Snapshot, error) {
	data, err := encodeImage(emptyImage())
	if err != nil {
		return nil, err
	}
	return &raftpb.Snapshot{
		Data: data,
		Metadata: &raftpb.SnapshotMetadata{
			ConfState: &raftpb.ConfState{Voters: c.voters()},
			Index:     new(uint64(1)),
			Term:      new(uint64(1)),
		},
	}, nil
}

// persist takes the durable part of a Ready into our own storage and asks the shell to do the same.
func (c *Controller) persist(ready raft.Ready) error {
	if !raft.IsEmptyHardState(ready.HardState) {
		c.hard = ready.HardState
		if err := c.log.SetHardState(c.hard); err != nil {
			return err
		}
	}
	p := Persist{HardState: c.hard, Entries: ready.Entries}
	if snap := ready.Snapshot; !raft.IsEmptySnap(snap) {
		image, err := decodeImage(snap.GetData())
		if err != nil {
			return fmt.Errorf("snapshot of index %d from the leader: %w", snap.GetMetadata().GetIndex(), err)
		}
		if err := c.log.ApplySnapshot(snap); err != nil {
			return fmt.Errorf("snapshot of index %d from the leader: %w", snap.GetMetadata().GetIndex(), err)
		}
		c.image, c.snapshot, c.appliedTerm = image, snap.GetMetadata().GetIndex(), snap.GetMetadata().GetTerm()
		p.CutFrom, p.Snapshot = c.snapshot, snap
	} else if !ready.MustSync {
		return nil // only the commit index moved; it is learned anew after a restart
	}
	if err := c.log.Append(ready.Entries); err != nil {
		return err
	}
	c.emit(p)
	return nil
}

// compact makes a snapshot of the image every SnapshotAfter entries. As many entries again stay in memory, for a voter that is only a little behind.
func (c *Controller) compact() error {
	keep := uint64(c.cfg.SnapshotAfter)
	if c.image.Index-c.snapshot < keep {
		return nil
	}
	data, err := encodeImage(c.image)
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	snap, err := c.log.CreateSnapshot(c.image.Index, nil, data)
	if err != nil {
		return fmt.Errorf("snapshot of index %d: %w", c.image.Index, err)
	}
	if c.image.Index > keep {
		if err := c.log.Compact(c.image.Index - keep); err != nil && !errors.Is(err, raft.ErrCompacted) {
			return fmt.Errorf("compaction: %w", err)
		}
	}
	c.snapshot = c.image.Index
	c.emit(Persist{Snapshot: snap, HardState: c.hard})
	return nil
}

func (c *Controller) send(m *raftpb.Message) {
	if m.GetType() == raftpb.MsgSnap {
		c.sending[m.GetTo()] = 0
	}
	c.emit(Send{To: brokerID(m.GetTo()), Message: m})
}

// retrySnapshots tells raft that a snapshot may be lost. raft sends nothing more to a voter that it believes to be busy with one, until somebody says so.
func (c *Controller) retrySnapshots() {
	for _, id := range sortedKeys(c.sending) {
		if c.sending[id]++; c.sending[id] > c.cfg.ElectionTicks {
			c.raft.ReportSnapshot(id, raft.SnapshotFailure) // ignored if it has arrived
			delete(c.sending, id)
		}
	}
}

// sound tells whether a message can be one of another voter's raft to ours.
func (c *Controller) sound(m *raftpb.Message) bool {
	from := m.GetFrom()
	if m.GetTo() != raftID(c.cfg.Self) || from == m.GetTo() || !slices.Contains(c.voters(), from) || m.GetTerm() == 0 {
		return false
	}
	switch m.GetType() {
	case raftpb.MsgSnap:
		meta := m.GetSnapshot().GetMetadata()
		image, err := decodeImage(m.GetSnapshot().GetData())
		return err == nil && image.Index == meta.GetIndex() && meta.GetTerm() > 0 && meta.GetTerm() <= m.GetTerm() &&
			slices.Equal(meta.GetConfState().GetVoters(), c.voters())
	case raftpb.MsgApp:
		term := m.GetLogTerm()
		for i, e := range m.GetEntries() {
			if e.GetIndex() != m.GetIndex()+1+uint64(i) || e.GetType() != raftpb.EntryNormal || e.GetTerm() < term || e.GetTerm() > m.GetTerm() {
				return false
			}
			term = e.GetTerm()
		}
		return true
	case raftpb.MsgAppResp, raftpb.MsgHeartbeat, raftpb.MsgHeartbeatResp, raftpb.MsgVote, raftpb.MsgVoteResp, raftpb.MsgPreVote, raftpb.MsgPreVoteResp:
		return true
	}
	return false // local messages, forwarded proposals and the rest are not used here
}

// raftPanic is what raft said before it gave up.
type raftPanic string

// quiet is raft's logger: silent, as what matters shows in the effects. raft gives up through it.
type quiet struct{}

func (quiet) Debug(...any)            {}
func (quiet) Debugf(string, ...any)   {}
func (quiet) Info(...any)             {}
func (quiet) Infof(string, ...any)    {}
func (quiet) Warning(...any)          {}
func (quiet) Warningf(string, ...any) {}
func (quiet) Error(...any)            {}
func (quiet) Errorf(string, ...any)   {}

func (quiet) Fatal(v ...any)                 { panic(raftPanic(fmt.Sprint(v...))) }
func (quiet) Fatalf(format string, v ...any) { panic(raftPanic(fmt.Sprintf(format, v...))) }
func (quiet) Panic(v ...any)                 { panic(raftPanic(fmt.Sprint(v...))) }
func (quiet) Panicf(format string, v ...any) { panic(raftPanic(fmt.Sprintf(format, v...))) }
