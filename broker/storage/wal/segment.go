package wal

import (
	"errors"
	"io"
	"math"
	"os"
	"sort"
	"sync/atomic"

	"ackproof/broker/fault"
	"ackproof/broker/record"
	"ackproof/broker/storage/internal/rawwal"
	"ackproof/broker/storage/internal/window"
)

// markEvery is the distance of two marks of the index, in bytes of the file.
const markEvery = 4 << 10

// summary is what is known about a segment without walking it; the clean-shutdown marker holds it.
type summary struct {
	Index        uint64 `json:"index"`   // of the first entry; names the file
	Entries      uint64 `json:"entries"` // batches and guards
	Bytes        int64  `json:"bytes"`   // of whole entries: readers look no further
	Base         int64  `json:"base"`    // first offset
	End          int64  `json:"end"`     // offset behind the last batch
	Epoch        int32  `json:"epoch"`   // of the last guard ...
	Guarded      bool   `json:"guarded"` // ... if there is one
	MaxTimestamp int64  `json:"max_timestamp"`
}

// segment is one file. A cut makes a new one, so that its fields only grow.
type segment struct {
	summary
	indexed bool // marks are there; false after a clean open until somebody reads
	marks   []mark
	file    *handle // nil: not open
}

// mark is a line of the sparse index: a batch, where its entry begins, and the largest timestamp from there to the next mark.
type mark struct {
	offset       int64
	pos          int64
	maxTimestamp int64
}

func newSegment(index uint64, base int64) *segment {
	return &segment{summary: summary{Index: index, Base: base, End: base, MaxTimestamp: math.MinInt64}, indexed: true}
}

func (s *segment) nextIndex() uint64 { return s.Index + s.Entries }

// chain is what the entry behind the last one must be.
func (s *segment) chain() chain {
	return chain{index: s.nextIndex(), offset: s.End, epoch: s.Epoch, guarded: s.Guarded}
}

func (s *segment) addGuard(epoch int32) {
	s.Bytes += rawwal.EntryBytes(guardBytes)
	s.Entries++
	s.Epoch, s.Guarded = epoch, true
}

func (s *segment) addBatch(h record.Header) {
	if n := len(s.marks); n > 0 && s.Bytes-s.marks[n-1].pos < markEvery {
		s.marks[n-1].maxTimestamp = max(s.marks[n-1].maxTimestamp, h.MaxTimestamp)
	} else {
		s.marks = append(s.marks, mark{offset: h.BaseOffset, pos: s.Bytes, maxTimestamp: h.MaxTimestamp})
	}
	s.Bytes += rawwal.EntryBytes(int(h.Length))
	s.Entries++
	s.End = h.NextOffset()
	s.MaxTimestamp = max(s.MaxTimestamp, h.MaxTimestamp)
}

// markAt finds the last mark at or below offset, as an index into marks; there must be one.
func (s *segment) markAt(offset int64) int {
	return sort.Search(len(s.marks), func(i int) bool { return s.marks[i].offset > offset }) - 1
}

// walk reads entries from the start of a segment file up to limit and gives the segment that they make. At the first bad one it stops:
// the segment then ends before it, and the error is errBad. Other errors come from the file. verify also checks the batches' checksums.
func walk(file io.ReaderAt, index uint64, base, limit int64, verify bool) (*segment, error) {
	s := newSegment(index, base)
	c := cursor{window: window.Window{File: file, Limit: limit}}
	if verify {
		c.window.Widen()
	}
	for {
		e, err := c.next()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err == nil && verify && !fault.On(fault.TornTailAccepted) {
			err = c.verify(e)
		}
		if err != nil {
			return s, err
		}
		chain := s.chain()
		if e.isGuard {
			if err := chain.guard(e.guard); err != nil {
				return s, err
			}
			s.addGuard(e.guard.epoch)
			continue
		}
		if err := chain.batch(e.header); err != nil {
			return s, err
		}
		s.addBatch(e.header)
	}
}

// handle is a read-only file that is closed when nobody uses it any more: readers may still send from a file that has been cut or removed.
type handle struct {
	file *os.File
	refs atomic.Int32
}

func openHandle(path string) (*handle, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	h := &handle{file: f}
	h.refs.Store(1)
	return h, nil
}

// retain is called while a reference is known to exist.
func (h *handle) retain() *handle {
	h.refs.Add(1)
	return h
}

func (h *handle) release() {
	if h.refs.Add(-1) == 0 {
		_ = h.file.Close() // read-only: nothing can be lost
	}
}
