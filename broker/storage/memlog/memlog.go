// Package memlog is the storage.Log in memory, for tests and simulation. A Disk outlives its handles: it can crash, losing what was not
// flushed, and a hook can make any write fail. It has no segments: Trim removes whole batches.
package memlog

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sort"
	"sync"

	"ackproof/broker/record"
	"ackproof/broker/storage"
)

// Op names a call that writes, for Disk.Fail.
type Op string

// The operations that can be made to fail. Saving a checkpoint is a part of Truncate, Trim and Reset, which fail as a whole.
const (
	Append   Op = "append"
	Flush    Op = "flush"
	Truncate Op = "truncate"
	Trim     Op = "trim"
	Reset    Op = "reset"
	Save     Op = "save"
)

// Disk holds one log between its handles.
type Disk struct {
	// Fail is asked before each operation; an error kills the handle, as a failed write does (S3). Nil: nothing fails. Set it while no call
	// is under way.
	Fail func(Op) error

	mu      sync.Mutex
	content content
	handle  *Log // that has the disk open; nil if none
}

// content is what a log consists of.
type content struct {
	bounds     storage.Bounds
	batches    []record.Batch // never changed in place, so that readers need no lock
	checkpoint storage.Checkpoint
}

// NewDisk makes an empty disk.
func NewDisk() *Disk { return &Disk{} }

// Open opens the log. storage.ErrLocked while another handle is open.
func (d *Disk) Open() (*Log, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.handle != nil {
		return nil, fmt.Errorf("open memory log: %w", storage.ErrLocked)
	}
	c := &d.content
	c.bounds.Durable = c.bounds.End
	if start := c.checkpoint.LogStart; start > c.bounds.End { // as after a loss of what a Trim had kept
		*c = content{bounds: storage.Bounds{Start: start, Durable: start, End: start}, checkpoint: c.checkpoint}
	}
	c.checkpoint = c.checkpoint.Within(c.bounds)
	d.handle = &Log{disk: d}
	return d.handle, nil
}

// Crash takes the disk from its handle, which is dead from then on. Of what was not flushed, the first `survive` batches are kept: the
// operating system may have written them by itself.
func (d *Disk) Crash(survive int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.handle != nil {
		d.handle.err = fmt.Errorf("%w: crashed", storage.ErrDead)
		d.handle = nil
	}
	c := &d.content
	flushed := c.find(c.bounds.Durable)
	c.batches = slices.Clone(c.batches[:min(len(c.batches), flushed+max(0, survive))])
	c.bounds.End = c.end()
}

// find gives the position of the batch that holds offset, or of the first above it.
func (c *content) find(offset int64) int {
	return sort.Search(len(c.batches), func(i int) bool { return c.batches[i].NextOffset() > offset })
}

func (c *content) end() int64 {
	if n := len(c.batches); n > 0 {
		return c.batches[n-1].NextOffset()
	}
	return c.bounds.Start
}

// Log implements storage.Log.
type Log struct {
	disk *Disk
	err  error // why nothing works any more
}

var _ storage.Log = (*Log)(nil)

// read calls f with the content, under the lock.
func (l *Log) read(f func(content) error) error {
	l.disk.mu.Lock()
	defer l.disk.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	return f(l.disk.content)
}

// write calls change with the content, under the lock, unless the disk is to fail at op.
func (l *Log) write(op Op, check func(content) error, change func(*content)) error {
	l.disk.mu.Lock()
	defer l.disk.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	if err := check(l.disk.content); err != nil {
		return err
	}
	if l.disk.Fail != nil {
		if err := l.disk.Fail(op); err != nil {
			l.err = fmt.Errorf("%w: %s: %w", storage.ErrDead, op, err)
			return l.err
		}
	}
	change(&l.disk.content)
	return nil
}

func always(content) error { return nil }

// Bounds implements storage.Log.
func (l *Log) Bounds() storage.Bounds {
	l.disk.mu.Lock()
	defer l.disk.mu.Unlock()
	return l.disk.content.bounds
}

// Checkpoint implements storage.Log.
func (l *Log) Checkpoint() storage.Checkpoint {
	l.disk.mu.Lock()
	defer l.disk.mu.Unlock()
	return l.disk.content.checkpoint
}

// Append implements storage.Log.
func (l *Log) Append(batches []record.Batch, keep bool) error {
	check := func(c content) error {
		next := c.bounds.End
		for _, b := range batches {
			if b.BaseOffset != next || len(b.Bytes()) == 0 {
				return fmt.Errorf("append: %w: base offset %d, expected %d", storage.ErrOutOfOrder, b.BaseOffset, next)
			}
			next = b.NextOffset()
		}
		return nil
	}
	return l.write(Append, check, func(c *content) {
		for _, b := range batches {
			if keep {
				b.Retain() // for good
			} else {
				b = b.Clone()
			}
			c.batches = append(c.batches, b)
			c.bounds.End = b.NextOffset()
		}
	})
}

// Flush implements storage.Log.
func (l *Log) Flush() error {
	return l.write(Flush, always, func(c *content) { c.bounds.Durable = c.bounds.End })
}

// Read implements storage.Log.
func (l *Log) Read(from, to int64, limit int) (storage.Records, error) {
	var chunks []storage.Chunk
	err := l.read(func(c content) error {
		if err := c.inRange(from); err != nil {
			return err
		}
		bytes := 0
		for _, b := range c.batches[c.find(from):] {
			n := len(b.Bytes())
			if from >= to || b.NextOffset() > to || (bytes > 0 && bytes+n > limit) {
				break
			}
			chunks = append(chunks, storage.Chunk{Memory: b.Bytes(), Length: n})
			bytes += n
		}
		return nil
	})
	return storage.NewRecords(chunks, nil), err
}

func (c content) inRange(offset int64) error {
	if offset < c.bounds.Start || offset > c.bounds.End {
		return fmt.Errorf("offset %d: %w: the log has [%d, %d)", offset, storage.ErrOutOfRange, c.bounds.Start, c.bounds.End)
	}
	return nil
}

// Headers implements storage.Log.
func (l *Log) Headers(from int64, visit func(record.Header) error) error {
	var batches []record.Batch
	err := l.read(func(c content) error {
		if err := c.inRange(from); err != nil {
			return err
		}
		batches = c.batches[c.find(from):]
		return nil
	})
	for _, b := range batches {
		if err := visit(b.Header); err != nil {
			return err
		}
	}
	return err
}

// OffsetAt implements storage.Log.
func (l *Log) OffsetAt(ts int64) (h record.Header, ok bool, err error) {
	err = l.read(func(c content) error {
		for _, b := range c.batches[c.find(c.checkpoint.LogStart):] {
			if b.MaxTimestamp >= ts {
				h, ok = b.Header, true
				break
			}
		}
		return nil
	})
	return h, ok, err
}

// Truncate implements storage.Log.
func (l *Log) Truncate(to int64, cp storage.Checkpoint) error {
	check := func(c content) error {
		if to < c.bounds.Start {
			return fmt.Errorf("truncate to %d: %w: the log starts at %d", to, storage.ErrOutOfRange, c.bounds.Start)
		}
		return nil
	}
	return l.write(Truncate, check, func(c *content) {
		if to < c.bounds.End {
			c.batches = slices.Clone(c.batches[:c.find(to)])
			c.bounds.End = c.end()
			c.bounds.Durable = c.bounds.End
		}
		c.checkpoint = cp
	})
}

// Trim implements storage.Log.
func (l *Log) Trim(cp storage.Checkpoint) error {
	check := func(c content) error { return c.inRange(cp.LogStart) }
	return l.write(Trim, check, func(c *content) {
		if gone := c.find(cp.LogStart); gone > 0 {
			c.bounds.Start = c.batches[gone-1].NextOffset()
			c.batches = slices.Clone(c.batches[gone:])
			c.bounds.Durable = c.bounds.End // a trim flushes, or a crash could leave less than the log start
		}
		c.checkpoint = cp
	})
}

// Reset implements storage.Log.
func (l *Log) Reset(start int64, cp storage.Checkpoint) error {
	check := func(content) error {
		if start < 0 {
			return fmt.Errorf("reset to %d: %w: an offset is not negative", start, storage.ErrOutOfRange)
		}
		return nil
	}
	return l.write(Reset, check, func(c *content) {
		*c = content{bounds: storage.Bounds{Start: start, Durable: start, End: start}, checkpoint: cp}
	})
}

// Save implements storage.Log.
func (l *Log) Save(cp storage.Checkpoint) error {
	return l.write(Save, always, func(c *content) { c.checkpoint = cp })
}

// Close implements storage.Log.
func (l *Log) Close(clean bool) error {
	var err error
	if clean {
		err = l.Flush()
	}
	l.disk.mu.Lock()
	defer l.disk.mu.Unlock()
	if l.disk.handle == l {
		l.disk.handle = nil
	}
	if errors.Is(l.err, fs.ErrClosed) {
		return l.err
	}
	l.err = fmt.Errorf("log is closed: %w", fs.ErrClosed)
	return err
}
