// Package window reads a file in pieces of growing size, for who walks through it from one record to the next. It knows nothing of what the file holds. Start
// reading at Window.
package window

import (
	"fmt"
	"io"
)

const (
	least = 4 << 10
	// Most is how many bytes a stretch grows to, unless a single record needs more.
	Most = 256 << 10
)

// Window is a stretch of a file in memory. It grows while what is asked for is small, so that neither many small records nor a few large ones cost more than
// they must.
type Window struct {
	File  io.ReaderAt
	Limit int64 // of the file: nothing behind it is read

	step int // bytes of the next stretch, 0 = least
	have []byte
	at   int64 // position of have
}

// Widen makes the stretches as long as they get from the first on, as for who goes through the whole file.
func (w *Window) Widen() { w.step = Most }

// Peek gives n bytes from pos, or fewer at the limit. They stay valid until the next call.
func (w *Window) Peek(pos int64, n int) ([]byte, error) {
	n = int(min(int64(n), w.Limit-pos))
	end := w.at + int64(len(w.have))
	if pos < w.at || pos+int64(n) > end {
		switch {
		case w.step == 0 || pos > end: // the first stretch, or a record that was longer than it
			w.step = least
		case w.step < Most:
			w.step *= 2
		}
		size := int(min(int64(max(n, w.step)), w.Limit-pos))
		if cap(w.have) < size {
			w.have = make([]byte, size)
		}
		w.have, w.at = w.have[:size], pos
		if _, err := w.File.ReadAt(w.have, pos); err != nil {
			w.have = w.have[:0]
			return nil, fmt.Errorf("read %d bytes at %d: %w", size, pos, err)
		}
	}
	return w.have[pos-w.at:][:n], nil
}
