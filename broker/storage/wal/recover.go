package wal

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"ackproof/broker/fault"
	"ackproof/broker/internal/durable"
	"ackproof/broker/storage"
	"ackproof/broker/storage/internal/rawwal"
)

// recover makes the files right before anything is served, and tells what is in them. In this order: leftovers of the library, a cut that was under way, then
// the entries: all of them, with checksums, unless the clean-shutdown marker vouches for the files (R23). A bad entry at or above the recovery point is a torn
// tail and is cut off with all behind it (S2); one below it is damage, and nothing is changed.
func (l *Log) recover() error {
	// What a killed process has named may be in memory only. If a cut were done on the strength of such a state, a loss of power could bring the old
	// state back without the files that it tells of (S5, S6).
	if err := errors.Join(durable.SyncDir(l.dir), durable.SyncDir(l.files)); err != nil {
		return err
	}
	if err := rawwal.Tidy(l.files); err != nil {
		if errors.Is(err, rawwal.ErrAmbiguous) {
			return fmt.Errorf("%w: %w", storage.ErrDamaged, err)
		}
		return err
	}
	st, known, err := readState(l.dir)
	if err != nil {
		return err
	}
	if st.Cut != nil {
		if err := st.Cut.apply(l.files, l.step); err != nil {
			return fmt.Errorf("finish a cut: %w", err)
		}
		st.Cut = nil
		if err := st.write(l.dir); err != nil {
			return err
		}
	}
	found, err := rawwal.Segments(l.files)
	if err != nil {
		return err
	}
	if !known && len(found) > 0 {
		return fmt.Errorf("%w: there are segments, but no file %q", storage.ErrDamaged, stateFile)
	}
	m, clean, err := takeMarker(l.dir)
	if err != nil {
		return err
	}
	segments := m.restore()
	if !clean || !m.matches(found, st) {
		if segments, err = l.repair(found, st); err != nil {
			return err
		}
	}
	first, last := segments[0], segments[len(segments)-1]
	l.segments = segments
	l.bounds = storage.Bounds{Start: first.Base, Durable: last.End, End: last.End}
	if st.Checkpoint.LogStart > last.End { // the batches that it deleted are lost; so are those that it kept
		start := st.Checkpoint.LogStart
		return l.Reset(start, st.Checkpoint.Within(storage.Bounds{Start: start, Durable: start, End: start}))
	}
	cp := st.Checkpoint.Within(l.bounds)
	return l.Save(cp)
}

// matches tells whether the files are those that a clean close left.
func (m marker) matches(found []rawwal.Segment, st state) bool {
	if len(m.Segments) == 0 || m.Segments[0].Base != st.Start || m.End != st.Recovery || m.Segments[len(m.Segments)-1].End != m.End {
		return false
	}
	return slices.EqualFunc(m.existing(), found, func(a summary, b rawwal.Segment) bool { return a.Index == b.Index && a.Bytes == b.Bytes })
}

// existing leaves out a segment that has no file yet, because nothing has been appended to it.
func (m marker) existing() []summary {
	if n := len(m.Segments); n == 1 && m.Segments[0].Entries == 0 {
		return nil
	}
	return m.Segments
}

// restore makes the segments that the marker tells of.
func (m marker) restore() []*segment {
	var out []*segment
	for _, s := range m.Segments {
		out = append(out, &segment{summary: s, indexed: s.Entries == 0})
	}
	return out
}

// repair walks the files, cuts the tail where it is bad, and flushes what may not have been.
func (l *Log) repair(found []rawwal.Segment, st state) ([]*segment, error) {
	var segments []*segment
	index, offset := uint64(1), st.Start
	if len(found) > 0 {
		index = found[0].Index
	}
	var bad error
	for _, f := range found {
		if f.Index != index {
			bad = fmt.Errorf("%w: segment of entry %d follows, expected one of entry %d", errBad, f.Index, index)
			break
		}
		s, err := l.check(f, offset)
		if err != nil && !errors.Is(err, errBad) {
			return nil, err // the disk cannot be read: no reason to cut
		}
		segments = append(segments, s)
		index, offset = s.nextIndex(), s.End
		if bad = err; bad != nil {
			bad = fmt.Errorf("%s at byte %d: %w", l.path(s), s.Bytes, err)
			break
		}
	}
	if offset < st.Recovery && !fault.On(fault.DamageIsCut) {
		if bad == nil {
			bad = errors.New("the files end there")
		}
		return nil, fmt.Errorf("%w: bad at offset %d, everything below %d had been flushed: %w", storage.ErrDamaged, offset, st.Recovery, bad)
	}
	if len(segments) == 0 {
		return []*segment{newSegment(1, st.Start)}, nil
	}
	tail := segments[len(segments)-1]
	if bad != nil {
		if err := rawwal.Cut(l.files, tail.Index, tail.Bytes); err != nil {
			return nil, fmt.Errorf("cut the torn tail: %w", err)
		}
	}
	for _, s := range segments {
		if s.End >= st.Recovery {
			if err := durable.SyncFile(l.path(s)); err != nil {
				return nil, err
			}
		}
	}
	return segments, durable.SyncDir(l.files)
}

// check walks one segment file, with checksums.
func (l *Log) check(f rawwal.Segment, base int64) (*segment, error) {
	file, err := os.Open(rawwal.Path(l.files, f.Index))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return walk(file, f.Index, base, f.Bytes, true)
}
