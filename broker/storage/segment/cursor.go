package segment

import (
	"fmt"
	"io"

	"ackproof/broker/record"
)

const (
	minWindow = 4 << 10
	maxWindow = 256 << 10
)

// cursor walks the batches of a segment file from pos to limit. It reads through a window that grows while batches are small, so that neither
// many small batches nor a few large ones cost more than they must.
type cursor struct {
	file   io.ReaderAt
	pos    int64
	limit  int64
	next   int64 // base offset of the batch at pos; −1 if that is not known
	step   int   // bytes of the next window, 0 = minWindow
	window []byte
	at     int64 // position of the window
}

// header gives the header of the next batch and goes behind it; io.EOF at the limit, errBad if something else is there.
func (c *cursor) header() (record.Header, error) {
	if c.pos >= c.limit {
		return record.Header{}, io.EOF
	}
	raw, err := c.peek(c.pos, record.HeaderBytes)
	if err != nil {
		return record.Header{}, err
	}
	h, err := record.ParseHeader(raw)
	switch {
	case err != nil:
		return h, fmt.Errorf("%w: %w", errBad, err)
	case int64(h.Length) > c.limit-c.pos:
		return h, fmt.Errorf("%w: %w: %d of %d bytes", errBad, record.ErrShort, c.limit-c.pos, h.Length)
	case c.next >= 0 && h.BaseOffset != c.next:
		return h, fmt.Errorf("%w: base offset %d, expected %d", errBad, h.BaseOffset, c.next)
	}
	c.pos += int64(h.Length)
	c.next = h.NextOffset()
	return h, nil
}

// check reads the whole of the batch at pos, whose header is h, and checks it (S8).
func (c *cursor) check(pos int64, h record.Header) error {
	raw, err := c.peek(pos, int(h.Length))
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
