package wal

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"ackproof/broker/storage"
	"ackproof/broker/storage/internal/rawwal"
	"ackproof/broker/storage/internal/window"
)

// cut is a change of the log other than an append: it names the segments that stay. It is saved in `state` together with the new checkpoint,
// before a file is touched, and done again from there if a crash came in between; so log and checkpoint move together (S6).
type cut struct {
	First uint64 `json:"first"` // segments before it go; 0: all segments go
	Last  uint64 `json:"last"`  // segments behind it go ...
	Bytes int64  `json:"bytes"` // ... and what it has beyond this
}

// apply does the cut on the files in dir. Doing it again changes nothing.
func (c cut) apply(dir string, step func(string) error) error {
	if c.First == 0 {
		segments, err := rawwal.Segments(dir)
		if err != nil || len(segments) == 0 {
			return err
		}
		return rawwal.DropBelow(dir, segments[len(segments)-1].Index+1)
	}
	if err := rawwal.Cut(dir, c.Last, c.Bytes); err != nil {
		return err
	}
	if err := step("end cut"); err != nil {
		return err
	}
	return rawwal.DropBelow(dir, c.First)
}

// Truncate implements storage.Log. A `to` below the start is ErrOutOfRange: that is for Reset to do.
func (l *Log) Truncate(to int64, cp storage.Checkpoint) error {
	if err := l.alive(); err != nil {
		return err
	}
	if to < l.bounds.Start {
		return fmt.Errorf("truncate %s to %d: %w: it starts at %d", l.dir, to, storage.ErrOutOfRange, l.bounds.Start)
	}
	if to >= l.bounds.End {
		return l.Save(cp)
	}
	i := l.segmentAt(to)
	last, err := l.prefix(l.segments[i], to)
	if err != nil { // nothing has been changed
		return fmt.Errorf("truncate %s to %d: %w", l.dir, to, err)
	}
	segments := append(slices.Clone(l.segments[:i]), last)
	return l.change(segments, cut{First: segments[0].Index, Last: last.Index, Bytes: last.Bytes}, cp)
}

// prefix gives the segment as it will be without the batches that end above `to`.
func (l *Log) prefix(s *segment, to int64) (*segment, error) {
	file, err := openHandle(l.path(s))
	if err != nil {
		return nil, err
	}
	defer file.release()
	c := cursor{window: window.Window{File: file.file, Limit: s.Bytes}}
	for {
		e, err := c.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, damaged(l.path(s), err)
		}
		if !e.isGuard && e.header.NextOffset() > to {
			return walk(file.file, s.Index, s.Base, e.pos, false)
		}
	}
	return nil, fmt.Errorf("%s: %w: no batch ends above offset %d", l.path(s), storage.ErrDamaged, to)
}

// Trim implements storage.Log.
func (l *Log) Trim(cp storage.Checkpoint) error {
	if err := l.alive(); err != nil {
		return err
	}
	b := l.bounds
	if cp.LogStart < b.Start || cp.LogStart > b.End {
		return fmt.Errorf("trim %s to %d: %w: it has [%d, %d)", l.dir, cp.LogStart, storage.ErrOutOfRange, b.Start, b.End)
	}
	if cp.LogStart == b.End && b.Start < b.End {
		return l.Reset(b.End, cp)
	}
	i := l.segmentAt(cp.LogStart)
	if i == 0 {
		return l.Save(cp)
	}
	segments := slices.Clone(l.segments[i:])
	return l.change(segments, cut{First: segments[0].Index, Last: l.tail().Index, Bytes: l.tail().Bytes}, cp)
}

// Reset implements storage.Log.
func (l *Log) Reset(start int64, cp storage.Checkpoint) error {
	if err := l.alive(); err != nil {
		return err
	}
	if start < 0 {
		return fmt.Errorf("reset %s to %d: %w: an offset is not negative", l.dir, start, storage.ErrOutOfRange)
	}
	return l.change([]*segment{newSegment(1, start)}, cut{}, cp)
}

// change carries out a cut that leaves these segments.
func (l *Log) change(segments []*segment, c cut, cp storage.Checkpoint) error {
	// With everything durable, no crash can take away what the cut wants to keep.
	if err := l.closeWAL(); err != nil {
		return l.die("flush before a cut", err)
	}
	end := segments[len(segments)-1].End
	st := state{Version: version, Start: segments[0].Base, Recovery: end, Checkpoint: cp, Cut: &c}
	fail := func(err error) error { return l.die("cut", err) }
	if err := l.step("before intent"); err != nil {
		return fail(err)
	}
	if err := st.write(l.dir); err != nil {
		return fail(err)
	}
	l.adopt(segments, st)
	if err := l.step("intent saved"); err != nil {
		return fail(err)
	}
	if err := c.apply(l.files, l.step); err != nil {
		return fail(err)
	}
	if err := l.step("files cut"); err != nil {
		return fail(err)
	}
	// A reader may have opened the tail before it was replaced: its bytes up to here are the same, those to come are not.
	l.mu.Lock()
	l.letGo(l.tail())
	l.mu.Unlock()
	st.Cut = nil
	if err := st.write(l.dir); err != nil { // before an append that the cut would take away
		return fail(err)
	}
	return l.step("intent gone")
}

// adopt shows the readers the log as the state has it.
func (l *Log) adopt(segments []*segment, st state) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.segments {
		if !slices.Contains(segments, s) {
			l.letGo(s)
		}
	}
	b := storage.Bounds{Start: st.Start, Durable: st.Recovery, End: st.Recovery}
	if b.End != l.bounds.End || b.Start == b.End {
		l.cuts++
		l.ring.Drop()
	}
	l.segments, l.bounds, l.checkpoint = segments, b, st.Checkpoint
}

// Save implements storage.Log.
func (l *Log) Save(cp storage.Checkpoint) error {
	if err := l.alive(); err != nil {
		return err
	}
	if err := l.state(cp).write(l.dir); err != nil {
		return l.die("save checkpoint", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.checkpoint = cp
	return nil
}
