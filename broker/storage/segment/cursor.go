package segment

import (
	"fmt"
	"io"

	"ackproof/broker/record"
	"ackproof/broker/storage/internal/window"
)

// cursor walks the batches of a segment file from pos to the limit of its window.
type cursor struct {
	window window.Window
	pos    int64
	next   int64 // base offset of the batch at pos; −1 if that is not known
}

// header gives the header of the next batch and goes behind it; io.EOF at the limit, errBad if something else is there.
func (c *cursor) header() (record.Header, error) {
	if c.pos >= c.window.Limit {
		return record.Header{}, io.EOF
	}
	raw, err := c.window.Peek(c.pos, record.HeaderBytes)
	if err != nil {
		return record.Header{}, err
	}
	h, err := record.ParseHeader(raw)
	switch {
	case err != nil:
		return h, fmt.Errorf("%w: %w", errBad, err)
	case int64(h.Length) > c.window.Limit-c.pos:
		return h, fmt.Errorf("%w: %w: %d of %d bytes", errBad, record.ErrShort, c.window.Limit-c.pos, h.Length)
	case c.next >= 0 && h.BaseOffset != c.next:
		return h, fmt.Errorf("%w: base offset %d, expected %d", errBad, h.BaseOffset, c.next)
	}
	c.pos += int64(h.Length)
	c.next = h.NextOffset()
	return h, nil
}

// check reads the whole of the batch at pos, whose header is h, and checks it (S8).
func (c *cursor) check(pos int64, h record.Header) error {
	raw, err := c.window.Peek(pos, int(h.Length))
	if err != nil {
		return err
	}
	if _, _, err := record.Parse(raw); err != nil {
		return fmt.Errorf("%w: %w", errBad, err)
	}
	return nil
}
