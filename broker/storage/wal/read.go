package wal

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"

	"ackproof/broker/record"
	"ackproof/broker/storage"
	"ackproof/broker/storage/internal/window"
)

// copyBelow is the average size of batches below which a run is read into memory instead of being given as one piece of file per batch: each
// piece costs its reader a system call.
const copyBelow = 16 << 10

// errCut: the log was truncated while it was walked, and what follows is another history.
var errCut = fmt.Errorf("%w: the log was truncated during the walk", storage.ErrOutOfRange)

// view is a part of one segment as it was at one moment: the batches from offset on, which begins at pos of the file.
type view struct {
	file   *handle // nil if there is nothing in it
	path   string
	offset int64
	pos    int64
	limit  int64
	end    int64 // offset behind the segment
	cuts   int
}

// segmentAt is the position in segments of the one that holds an offset in [start, end].
func (l *Log) segmentAt(offset int64) int {
	return max(0, sort.Search(len(l.segments), func(i int) bool { return l.segments[i].Base > offset })-1)
}

// view finds the place of the batch that holds offset and opens its file; since skips what has only smaller timestamps. The caller releases the file.
func (l *Log) view(offset, since int64) (view, error) {
	for {
		l.mu.Lock()
		if l.err != nil {
			defer l.mu.Unlock()
			return view{}, l.err
		}
		if err := l.inRange(offset); err != nil {
			defer l.mu.Unlock()
			return view{}, err
		}
		s := l.segments[l.segmentAt(offset)]
		if !s.indexed {
			l.mu.Unlock()
			if err := l.ensureIndexed(s); err != nil {
				return view{}, err
			}
			continue
		}
		defer l.mu.Unlock()
		v := view{path: l.path(s), offset: offset, end: s.End, limit: s.Bytes, cuts: l.cuts}
		if s.MaxTimestamp < since || len(s.marks) == 0 {
			return v, nil
		}
		i := s.markAt(offset)
		for s.marks[i].maxTimestamp < since {
			if i++; i == len(s.marks) {
				return v, nil
			}
		}
		v.offset, v.pos = s.marks[i].offset, s.marks[i].pos
		file, err := l.acquire(s)
		v.file = file
		return v, err
	}
}

func (l *Log) inRange(offset int64) error {
	if b := l.bounds; offset < b.Start || offset > b.End {
		return fmt.Errorf("%s: offset %d: %w: it has [%d, %d)", l.dir, offset, storage.ErrOutOfRange, b.Start, b.End)
	}
	return nil
}

// acquire gives the open file of a segment. The caller holds mu.
func (l *Log) acquire(s *segment) (*handle, error) {
	if s.file == nil {
		h, err := openHandle(l.path(s))
		if err != nil {
			return nil, err
		}
		s.file = h
		if l.open = append(l.open, s); len(l.open) > maxOpenFiles {
			l.letGo(l.open[0])
		}
	}
	return s.file.retain(), nil
}

// letGo closes the file of a segment when its last reader is through. The caller holds mu.
func (l *Log) letGo(s *segment) {
	if s.file != nil {
		s.file.release()
		s.file = nil
		l.open = slices.DeleteFunc(l.open, func(o *segment) bool { return o == s })
	}
}

// ensureIndexed walks a segment that came from the clean-shutdown marker. It must turn out to be what the marker says. A segment that a cut has
// replaced meanwhile is left alone, since its file may be another one by now.
func (l *Log) ensureIndexed(s *segment) error {
	l.mu.Lock()
	if s.indexed || !slices.Contains(l.segments, s) {
		l.mu.Unlock()
		return nil
	}
	want := s.summary
	file, err := l.acquire(s)
	l.mu.Unlock()
	if err != nil {
		return err
	}
	defer file.release()
	walked, err := walk(file.file, want.Index, want.Base, want.Bytes, false)
	if err == nil && walked.summary != want {
		err = fmt.Errorf("%w: it holds %+v, the clean-shutdown marker said %+v", errBad, walked.summary, want)
	}
	if err != nil {
		return damaged(l.path(s), err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !s.indexed { // else another reader was faster
		s.indexed, s.marks = true, walked.marks
	}
	return nil
}

// damaged says where a bad entry was found. Other errors are the file's.
func damaged(path string, err error) error {
	if errors.Is(err, errBad) {
		return fmt.Errorf("%s: %w: %w", path, storage.ErrDamaged, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// batches calls visit for each batch of the view that ends above from, until visit says no.
func (v view) batches(from int64, visit func(entry) (more bool)) error {
	c := cursor{window: window.Window{File: v.file.file, Limit: v.limit}, pos: v.pos}
	next := v.offset
	for {
		e, err := c.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && !e.isGuard && e.header.BaseOffset != next {
			err = fmt.Errorf("%w: base offset %d, expected %d", errBad, e.header.BaseOffset, next)
		}
		if err != nil {
			return damaged(v.path, fmt.Errorf("at byte %d: %w", c.pos, err))
		}
		if e.isGuard {
			continue
		}
		if next = e.header.NextOffset(); next > from && !visit(e) {
			return nil
		}
	}
}

// Read implements storage.Log.
func (l *Log) Read(from, to int64, limit int) (storage.Records, error) {
	l.mu.Lock()
	err := l.err
	if err == nil {
		err = l.inRange(from)
	}
	cuts := l.cuts
	to = min(to, l.bounds.End)
	var recent storage.Records
	cached := false
	if err == nil && from < to {
		recent, cached = l.ring.Read(from, to, limit)
	}
	l.mu.Unlock()
	if err != nil || from >= to || cached {
		return recent, err
	}
	return l.readFiles(from, to, limit, cuts)
}

// readFiles is Read from the files. Should the log be truncated meanwhile, the run ends early: what it has was true when it was asked for.
func (l *Log) readFiles(from, to int64, limit, cuts int) (storage.Records, error) {
	var out run
	for from < to {
		v, err := l.view(from, math.MinInt64)
		if err == nil && v.cuts != cuts {
			err = errCut
		}
		var more bool
		if err == nil && v.file != nil {
			more, err = out.add(v, from, to, limit)
		}
		if err != nil {
			if v.file != nil {
				v.file.release()
			}
			if len(out.chunks) > 0 && errors.Is(err, storage.ErrOutOfRange) {
				break
			}
			out.release()
			return storage.Records{}, err
		}
		if !more {
			break
		}
		from = v.end
	}
	return storage.NewRecords(out.chunks, out.release), nil
}

// run gathers what Read gives.
type run struct {
	chunks []storage.Chunk
	bytes  int
	held   []*handle
}

func (r *run) release() {
	for _, h := range r.held {
		h.release()
	}
}

// add takes the batches of a view from the one that holds `from`; more is false when the run is complete. It takes over the view's file unless it fails.
func (r *run) add(v view, from, to int64, limit int) (more bool, err error) {
	var entries []entry
	bytes := 0
	more = true
	err = v.batches(from, func(e entry) bool {
		if total := r.bytes + bytes; e.header.NextOffset() > to || (total > 0 && total+e.size > limit) {
			more = false
			return false
		}
		entries = append(entries, e)
		bytes += e.size
		return true
	})
	if err != nil {
		return false, err
	}
	if len(entries) > 0 && bytes/len(entries) < copyBelow {
		memory, err := gather(v, entries, bytes)
		if err != nil {
			return false, err
		}
		r.chunks = append(r.chunks, storage.Chunk{Memory: memory, Length: bytes})
		v.file.release()
	} else {
		for _, e := range entries {
			r.chunks = append(r.chunks, storage.Chunk{File: v.file.file, Offset: e.data(), Length: e.size})
		}
		r.held = append(r.held, v.file)
	}
	r.bytes += bytes
	return more, nil
}

// gather reads neighbouring entries at once and moves their batches together, over the length prefixes in between.
func gather(v view, entries []entry, bytes int) ([]byte, error) {
	start, end := entries[0].data(), entries[len(entries)-1].end()
	raw := make([]byte, end-start)
	if _, err := v.file.file.ReadAt(raw, start); err != nil {
		return nil, fmt.Errorf("%s: read %d bytes at %d: %w", v.path, len(raw), start, err)
	}
	at := 0
	for _, e := range entries {
		at += copy(raw[at:], raw[e.data()-start:e.end()-start])
	}
	return raw[:bytes], nil
}

// Headers implements storage.Log.
func (l *Log) Headers(from int64, visit func(record.Header) error) error {
	l.mu.Lock()
	cuts, end := l.cuts, l.bounds.End
	l.mu.Unlock()
	for {
		v, err := l.view(from, math.MinInt64)
		if err != nil {
			return err
		}
		if v.file != nil {
			if v.cuts != cuts {
				err = errCut
			} else {
				var stop error
				err = v.batches(from, func(e entry) bool {
					stop = visit(e.header)
					return stop == nil
				})
				err = errors.Join(err, stop)
			}
			v.file.release()
		}
		if err != nil {
			return err
		}
		if from = v.end; from >= end {
			return nil
		}
	}
}

// OffsetAt implements storage.Log.
func (l *Log) OffsetAt(ts int64) (h record.Header, ok bool, err error) {
	l.mu.Lock()
	cuts, end := l.cuts, l.bounds.End
	from := min(max(l.bounds.Start, l.checkpoint.LogStart), end)
	l.mu.Unlock()
	for {
		v, err := l.view(from, ts)
		if err != nil {
			return record.Header{}, false, err
		}
		if v.file != nil {
			if v.cuts != cuts {
				err = errCut
			} else {
				err = v.batches(from, func(e entry) bool {
					h, ok = e.header, e.header.MaxTimestamp >= ts
					return !ok
				})
			}
			v.file.release()
		}
		if err != nil || ok {
			return h, ok, err
		}
		if from = v.end; from >= end {
			return record.Header{}, false, nil
		}
	}
}
