package segment

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"ackproof/broker/fault"
	"ackproof/broker/storage"
	"ackproof/broker/storage/files"
	"ackproof/broker/storage/internal/window"
)

// found is a segment's log file on disk.
type found struct {
	base  int64
	bytes int64
}

// scan lists the segment files in order, and removes files that were being written.
func (l *Log) scan() ([]found, error) {
	entries, err := l.fs.List(l.dir)
	if err != nil {
		return nil, err
	}
	var out []found
	for _, e := range entries {
		if strings.HasSuffix(e.Name, files.TempSuffix) && !e.Dir {
			if err := l.fs.Remove(path.Join(l.dir, e.Name)); err != nil {
				return nil, err
			}
		}
		if base, ok := baseOf(e.Name, logSuffix); ok && !e.Dir {
			out = append(out, found{base, e.Size})
		}
	}
	return out, nil // by name is by base offset
}

// recover makes the files right before anything is served, and tells what is in them. In this order: a cut that was under way, then the batches: all of
// them, with checksums, unless the clean-shutdown marker vouches for the files (R23). A bad batch at or above the recovery point is a torn tail and is cut
// off with all behind it (S2); one below it is damage, and nothing is changed.
func (l *Log) recover() error {
	// What a killed process has named may be in memory only. If a cut were done on the strength of such a state, a loss of power could bring the old
	// state back without the files that it tells of (S5, S6).
	if err := l.fs.FlushDir(l.dir); err != nil {
		return err
	}
	st, known, err := readState(l.fs, l.dir)
	if err != nil {
		return err
	}
	if st.Cut != nil {
		if err := st.Cut.apply(l); err != nil {
			return fmt.Errorf("finish a cut: %w", err)
		}
		st.Cut = nil
		if err := st.write(l.fs, l.dir); err != nil {
			return err
		}
	}
	logs, err := l.scan()
	if err != nil {
		return err
	}
	if !known && len(logs) > 0 {
		return fmt.Errorf("%w: there are segments, but no file %q", storage.ErrDamaged, stateFile)
	}
	if !known {
		// A new log. What it is needs no saying before it holds something: the first batch, and every cut, are preceded by a state.
		p := newPart(0)
		l.parts = []*part{p}
		return nil
	}
	m, clean, err := takeMarker(l.fs, l.dir)
	if err != nil {
		return err
	}
	l.epochs = st.Epochs
	parts := m.restore()
	if !clean || !m.matches(logs, st) {
		if parts, err = l.repair(logs, st); err != nil {
			return err
		}
	}
	last := parts[len(parts)-1]
	l.parts, l.recovery = parts, last.End
	l.bounds = storage.Bounds{Start: parts[0].Base, Durable: last.End, End: last.End}
	l.epochs = l.epochs.within(l.bounds.Start, l.bounds.End)
	if start := st.Checkpoint.LogStart; start > last.End { // the batches that it deleted are lost; so are those that it kept
		return l.Reset(start, st.Checkpoint.Within(storage.Bounds{Start: start, Durable: start, End: start}))
	}
	return l.Save(st.Checkpoint.Within(l.bounds))
}

// matches tells whether the files are those that a clean close left.
func (m marker) matches(logs []found, st state) bool {
	if len(m.Segments) == 0 || m.Segments[0].Base != st.Start || m.End != st.Recovery || m.Segments[len(m.Segments)-1].End != m.End {
		return false
	}
	listed := slices.DeleteFunc(slices.Clone(m.Segments), func(s summary) bool { return s.Bytes == 0 }) // which may have no file yet
	logs = slices.DeleteFunc(slices.Clone(logs), func(f found) bool { return f.bytes == 0 })
	return slices.EqualFunc(listed, logs, func(s summary, f found) bool { return s.Base == f.base && s.Bytes == f.bytes })
}

// restore makes the segments that the marker tells of.
func (m marker) restore() []*part {
	var out []*part
	for _, s := range m.Segments {
		p := &part{summary: s}
		if s.Bytes == 0 {
			p = newPart(s.Base)
		}
		out = append(out, p)
	}
	return out
}

// repair walks the files, cuts the tail where it is bad, and makes durable what may not have been.
func (l *Log) repair(logs []found, st state) ([]*part, error) {
	var parts []*part
	offset := st.Start
	w := walker{verify: true, epochs: slices.Concat(epochs{}, l.epochs), interval: l.walker.interval}
	var bad error
	for _, f := range logs {
		if f.base != offset {
			bad = fmt.Errorf("%w: segment %d follows, expected %d", errBad, f.base, offset)
			break
		}
		p, err := l.check(w, f)
		if err != nil && !errors.Is(err, errBad) {
			return nil, err // the disk cannot be read: no reason to cut
		}
		parts = append(parts, p)
		if offset = p.End; err != nil {
			bad = fmt.Errorf("%s at byte %d: %w", l.path(p.Base, logSuffix), p.Bytes, err)
			break
		}
	}
	if offset < st.Recovery && !fault.On(fault.DamageIsCut) {
		if bad == nil {
			bad = errors.New("the files end there")
		}
		return nil, fmt.Errorf("%w: bad at offset %d, everything below %d had been flushed: %w", storage.ErrDamaged, offset, st.Recovery, bad)
	}
	for _, f := range logs[len(parts):] {
		if err := l.fs.Remove(l.path(f.base, logSuffix)); err != nil {
			return nil, fmt.Errorf("cut the torn tail: %w", err)
		}
	}
	if logs = logs[:len(parts)]; len(parts) == 0 {
		parts = []*part{newPart(st.Start)}
	}
	for i, p := range parts {
		if i < len(logs) && p.End >= st.Recovery {
			if err := l.rewrite(p, logs[i].bytes, st.Recovery); err != nil {
				return nil, fmt.Errorf("make the tail durable: %w", err)
			}
		}
		if i < len(parts)-1 {
			if err := l.restoreIndex(p); err != nil {
				return nil, err
			}
		}
	}
	return parts, nil // Save, which follows, flushes the folder
}

// check walks one segment file.
func (l *Log) check(w walker, f found) (*part, error) {
	file, err := l.fs.Open(l.path(f.base, logSuffix))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return w.walk(file, f.base, f.bytes)
}

// rewrite cuts off what is bad in a segment's file of so many bytes, writes what may not have been flushed once more, and flushes it. Without the second
// write a flush could promise what is not there: after one that failed, a system takes pages for clean that never reached the disk, and reads them back from
// memory, as the walk did.
func (l *Log) rewrite(p *part, bytes, recovery int64) (err error) {
	path := l.path(p.Base, logSuffix)
	from, err := l.fs.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := l.fs.Edit(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if bytes > p.Bytes {
		if err := to.Truncate(p.Bytes); err != nil {
			return err
		}
	}
	at := p.index.find(recovery - p.Base).pos
	buf := make([]byte, min(p.Bytes-at, window.Most))
	for ; at < p.Bytes; at += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), p.Bytes-at)]
		if _, err := from.ReadAt(buf, at); err != nil {
			return err
		}
		if _, err := to.WriteAt(buf, at); err != nil {
			return err
		}
	}
	return to.Flush()
}

// restoreIndex sees to it that the index files of a closed segment are what they should be, and forgets them.
func (l *Log) restoreIndex(p *part) error {
	p.seal()
	if _, ok := l.readIndex(p.summary); !ok {
		if err := l.writeIndex(p); err != nil {
			return err
		}
	}
	p.index = nil
	return nil
}
