package wal

import (
	"encoding/binary"
	"fmt"
	"io"

	"ackproof/broker/record"
	"ackproof/broker/storage/internal/rawwal"
)

const (
	minWindow = 4 << 10
	maxWindow = 256 << 10
	// prefixBytes of an entry tell what it is: the length, then a guard or the header of a batch.
	prefixBytes = binary.MaxVarintLen64 + record.HeaderBytes
)

// entry is one entry of a segment file, without the body of its batch.
type entry struct {
	pos     int64 // of the length prefix
	head    int   // bytes of the length prefix
	size    int   // bytes of the data
	isGuard bool
	guard   guard         // if isGuard
	header  record.Header // if not
}

// data is the position of the batch itself, and end that of the next entry.
func (e entry) data() int64 { return e.pos + int64(e.head) }
func (e entry) end() int64  { return e.data() + int64(e.size) }

// cursor walks the entries of a segment file from pos to limit. It reads through a window that grows while batches are small, so that neither
// many small batches nor a few large ones cost more than they must.
type cursor struct {
	file   io.ReaderAt
	pos    int64
	limit  int64
	step   int // bytes of the next window, 0 = minWindow
	window []byte
	at     int64 // position of the window
}

// next gives the next entry; io.EOF at the limit, errBad if there is something else than an entry.
func (c *cursor) next() (entry, error) {
	if c.pos >= c.limit {
		return entry{}, io.EOF
	}
	raw, err := c.peek(c.pos, prefixBytes)
	if err != nil {
		return entry{}, err
	}
	head, size, err := rawwal.Entry(raw, c.limit-c.pos)
	if err != nil {
		return entry{}, fmt.Errorf("%w: %w", errBad, err)
	}
	e := entry{pos: c.pos, head: head, size: size}
	raw = raw[head:]
	if size == guardBytes {
		e.isGuard = true
		if e.guard, err = decodeGuard(raw); err != nil {
			return entry{}, err
		}
	} else {
		if e.header, err = record.ParseHeader(raw[:min(len(raw), size)]); err != nil {
			return entry{}, fmt.Errorf("%w: %w", errBad, err)
		}
		if int(e.header.Length) != size {
			return entry{}, fmt.Errorf("%w: batch of %d bytes in an entry of %d", errBad, e.header.Length, size)
		}
	}
	c.pos = e.end()
	return e, nil
}

// verify checks the whole of an entry that next gave (S8).
func (c *cursor) verify(e entry) error {
	if e.isGuard {
		return nil // decodeGuard did
	}
	raw, err := c.peek(e.data(), e.size)
	if err != nil {
		return err
	}
	if _, _, err := record.Parse(raw); err != nil {
		return fmt.Errorf("%w: %w", errBad, err)
	}
	return nil
}

// peek gives n bytes from pos, or fewer at the limit. They stay valid until the next call.
func (c *cursor) peek(pos int64, n int) ([]byte, error) {
	n = int(min(int64(n), c.limit-pos))
	have := c.at + int64(len(c.window))
	if pos < c.at || pos+int64(n) > have {
		switch {
		case c.step == 0 || pos > have: // the first window, or a batch that was longer than it
			c.step = minWindow
		case c.step < maxWindow:
			c.step *= 2
		}
		size := int(min(int64(max(n, c.step)), c.limit-pos))
		if cap(c.window) < size {
			c.window = make([]byte, size)
		}
		c.window, c.at = c.window[:size], pos
		if _, err := c.file.ReadAt(c.window, pos); err != nil {
			c.window = c.window[:0]
			return nil, fmt.Errorf("read %d bytes at %d: %w", size, pos, err)
		}
	}
	return c.window[pos-c.at:][:n], nil
}
