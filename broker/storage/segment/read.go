package segment

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"

	"ackproof/broker/record"
	"ackproof/broker/storage"
	"ackproof/broker/storage/files"
	"ackproof/broker/storage/internal/window"
)

// errCut: the log was truncated while it was walked, and what follows is another history.
var errCut = fmt.Errorf("%w: the log was truncated during the walk", storage.ErrOutOfRange)

// view is a segment as it was at one moment.
type view struct {
	summary
	index index
	file  *handle // nil if nothing is in it
	path  string
	cuts  int
}

// partAt is the position in parts of the one that holds an offset in [start, end].
func (l *Log) partAt(offset int64) int {
	return max(0, sort.Search(len(l.parts), func(i int) bool { return l.parts[i].Base > offset })-1)
}

// view gives the segment that holds an offset, with its file open. The caller releases it.
func (l *Log) view(offset int64) (view, error) {
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
		p := l.parts[l.partAt(offset)]
		if p.index == nil {
			l.mu.Unlock()
			if err := l.ensureIndexed(p); err != nil {
				return view{}, err
			}
			continue
		}
		defer l.mu.Unlock()
		v := view{summary: p.summary, index: *p.index, path: l.path(p.Base, logSuffix), cuts: l.cuts}
		if p.Bytes == 0 {
			return v, nil
		}
		file, err := l.acquire(p)
		v.file = file
		return v, err
	}
}

func (v view) release() {
	if v.file != nil {
		v.file.release()
	}
}

func (l *Log) inRange(offset int64) error {
	if b := l.bounds; offset < b.Start || offset > b.End {
		return fmt.Errorf("%s: offset %d: %w: it has [%d, %d)", l.dir, offset, storage.ErrOutOfRange, b.Start, b.End)
	}
	return nil
}

// acquire gives the open file of a segment. The caller holds mu.
func (l *Log) acquire(p *part) (*handle, error) {
	if p.file == nil {
		file, err := l.fs.Open(l.path(p.Base, logSuffix))
		if err != nil {
			return nil, err
		}
		p.file = &handle{file: file}
		p.file.refs.Store(1)
		if l.open = append(l.open, p); len(l.open) > maxOpenFiles {
			l.letGo(l.open[0])
		}
	}
	return p.file.retain(), nil
}

// letGo closes the file of a segment when its last reader is through, and forgets the index, unless it grows. The caller holds mu.
func (l *Log) letGo(p *part) {
	if p.file != nil {
		p.file.release()
		p.file = nil
		l.open = slices.DeleteFunc(l.open, func(o *part) bool { return o == p })
	}
	if p != l.last() {
		p.index = nil
	}
}

// ensureIndexed brings the index of a segment into memory: from its files if they have the right checksum, otherwise by a walk, which must find what is
// known about the segment. A segment that a cut has replaced meanwhile is left alone, since its files may be others by now.
func (l *Log) ensureIndexed(p *part) error {
	l.mu.Lock()
	if p.index != nil || !slices.Contains(l.parts, p) {
		l.mu.Unlock()
		return nil
	}
	want := p.summary
	file, err := l.acquire(p)
	l.mu.Unlock()
	if err != nil {
		return err
	}
	defer file.release()
	x, ok := l.readIndex(want)
	if !ok {
		walked, err := l.walker.walk(file.file, want.Base, want.Bytes)
		if err == nil {
			if walked.IndexSum = want.IndexSum; walked.summary != want {
				err = fmt.Errorf("%w: it holds %+v, expected %+v", errBad, walked.summary, want)
			}
		}
		if err != nil {
			return damaged(l.path(want.Base, logSuffix), err)
		}
		x = walked.index
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.index == nil { // else another reader was faster
		p.index = x
	}
	return nil
}

// readIndex reads the index files of a segment; ok is false if they are not what was written.
func (l *Log) readIndex(s summary) (x *index, ok bool) {
	offsets, err := files.ReadAll(l.fs, l.path(s.Base, indexSuffix))
	if err != nil {
		return nil, false
	}
	times, err := files.ReadAll(l.fs, l.path(s.Base, timeSuffix))
	if err != nil {
		return nil, false
	}
	x = &index{offsets: offsets, times: times}
	return x, len(offsets)%offsetEntry == 0 && len(times)%timeEntry == 0 && x.sum() == s.IndexSum
}

// damaged says where a bad batch was found. Other errors are the file's.
func damaged(path string, err error) error {
	if errors.Is(err, errBad) {
		return fmt.Errorf("%s: %w: %w", path, storage.ErrDamaged, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// batches calls visit for each batch from that place on, until visit says no.
func (v view) batches(from place, visit func(pos int64, h record.Header) (more bool)) error {
	if v.file == nil {
		return nil
	}
	c := cursor{window: window.Window{File: v.file.file, Limit: v.Bytes}, pos: from.pos, next: v.Base}
	if from != (place{}) {
		c.next = -1
	}
	for {
		pos := c.pos
		h, err := c.header()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && pos == from.pos && from != (place{}) && h.LastOffset() != v.Base+from.last {
			err = fmt.Errorf("%w: it ends at offset %d, the index says %d", errBad, h.LastOffset(), v.Base+from.last)
		}
		if err != nil {
			return damaged(v.path, fmt.Errorf("at byte %d: %w", pos, err))
		}
		if !visit(pos, h) {
			return nil
		}
	}
}

// first finds the batch that holds an offset below the end of the view.
func (v view) first(offset int64) (at int64, found record.Header, err error) {
	at = -1
	err = v.batches(v.index.find(offset-v.Base), func(pos int64, h record.Header) bool {
		if h.NextOffset() > offset {
			at, found = pos, h
		}
		return at < 0
	})
	if err == nil && at < 0 {
		err = fmt.Errorf("%s: %w: no batch ends above offset %d", v.path, storage.ErrDamaged, offset)
	}
	return at, found, err
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
	return l.readFiles(from, to, int64(limit), cuts)
}

// readFiles is Read from the files: a piece of file per segment. Should the log be truncated meanwhile, the run ends early: what it has was true when it was
// asked for.
func (l *Log) readFiles(from, to, limit int64, cuts int) (storage.Records, error) {
	var chunks []storage.Chunk
	var held []view
	release := func() {
		for _, v := range held {
			v.release()
		}
	}
	for from < to {
		v, err := l.view(from)
		if err == nil {
			held = append(held, v)
			if v.cuts != cuts {
				err = errCut
			}
		}
		var begin, end int64
		if err == nil {
			begin, end, err = v.span(from, to, limit, len(chunks) == 0)
		}
		if err != nil {
			if len(chunks) > 0 && errors.Is(err, storage.ErrOutOfRange) {
				break
			}
			release()
			return storage.Records{}, err
		}
		if end == begin {
			break
		}
		chunks = append(chunks, storage.Chunk{File: v.file.file, Offset: begin, Length: int(end - begin)})
		limit -= end - begin
		if end < v.Bytes {
			break
		}
		from = v.End
	}
	return storage.NewRecords(chunks, release), nil
}

// span gives the bytes of the batches from the one that holds `from` up to the last that ends at or below `to`, no more than limit of them, or one batch if
// there must be something.
func (v view) span(from, to, limit int64, must bool) (begin, end int64, err error) {
	begin, h, err := v.first(from)
	if err != nil {
		return 0, 0, err
	}
	end = begin
	fits := func(h record.Header) bool {
		return h.NextOffset() <= to && (end+int64(h.Length)-begin <= limit || must && end == begin)
	}
	if !fits(h) {
		return begin, begin, nil
	}
	if v.End <= to && v.Bytes-begin <= limit {
		return begin, v.Bytes, nil
	}
	// What lies between the first batch and the last place that is not too far need not be looked at.
	next := v.index.before(begin+limit, to-v.Base)
	if next.pos <= begin {
		next = v.index.find(from - v.Base)
	} else {
		end = next.pos
	}
	err = v.batches(next, func(pos int64, h record.Header) bool {
		if pos < begin {
			return true
		}
		if !fits(h) {
			return false
		}
		end = pos + int64(h.Length)
		return true
	})
	return begin, end, err
}

// Headers implements storage.Log.
func (l *Log) Headers(from int64, visit func(record.Header) error) error {
	l.mu.Lock()
	cuts, end := l.cuts, l.bounds.End
	l.mu.Unlock()
	return l.each(from, end, cuts, func(v view) error {
		var stop error
		err := v.batches(v.index.find(from-v.Base), func(_ int64, h record.Header) bool {
			if h.NextOffset() > from {
				stop = visit(h)
			}
			return stop == nil
		})
		return errors.Join(err, stop)
	})
}

// each calls visit for the segments from the one that holds `from` to the one before end. errCut if the log is truncated meanwhile.
func (l *Log) each(from, end int64, cuts int, visit func(view) error) error {
	for {
		v, err := l.view(from)
		if err != nil {
			return err
		}
		if v.cuts != cuts {
			err = errCut
		} else {
			err = visit(v)
		}
		v.release()
		if err != nil {
			return err
		}
		if from = v.End; from >= end {
			return nil
		}
	}
}

// errFound ends a search.
var errFound = errors.New("found")

// OffsetAt implements storage.Log.
func (l *Log) OffsetAt(ts int64) (found record.Header, ok bool, err error) {
	l.mu.Lock()
	cuts, end := l.cuts, l.bounds.End
	from := min(max(l.bounds.Start, l.checkpoint.LogStart), end)
	l.mu.Unlock()
	err = l.each(from, end, cuts, func(v view) error {
		if v.Largest < ts {
			return nil
		}
		at := v.index.findTime(ts)
		if start := v.index.find(from - v.Base); start.pos > at.pos {
			at = start
		}
		err := v.batches(at, func(_ int64, h record.Header) bool {
			if h.NextOffset() > from && h.MaxTimestamp >= ts {
				found, ok = h, true
			}
			return !ok
		})
		if err == nil && ok {
			err = errFound
		}
		return err
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return found, ok, err
}
