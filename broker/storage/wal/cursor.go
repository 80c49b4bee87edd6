package wal

import (
	"encoding/binary"
	"fmt"
	"io"

	"ackproof/broker/record"
	"ackproof/broker/storage/internal/rawwal"
	"ackproof/broker/storage/internal/window"
)

// prefixBytes of an entry tell what it is: the length, then a guard or the header of a batch.
const prefixBytes = binary.MaxVarintLen64 + record.HeaderBytes

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

// cursor walks the entries of a segment file from pos to the limit of its window.
type cursor struct {
	window window.Window
	pos    int64
}

// next gives the next entry; io.EOF at the limit, errBad if there is something else than an entry.
func (c *cursor) next() (entry, error) {
	if c.pos >= c.window.Limit {
		return entry{}, io.EOF
	}
	raw, err := c.window.Peek(c.pos, prefixBytes)
	if err != nil {
		return entry{}, err
	}
	head, size, err := rawwal.Entry(raw, c.window.Limit-c.pos)
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
	raw, err := c.window.Peek(e.data(), e.size)
	if err != nil {
		return err
	}
	if _, _, err := record.Parse(raw); err != nil {
		return fmt.Errorf("%w: %w", errBad, err)
	}
	return nil
}
