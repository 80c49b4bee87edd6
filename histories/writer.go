package histories

import (
	"fmt"
	"io"
)

// Writer writes events as they are given, in the native format. Use a Recorder to stamp events of a running test; a Writer is for
// conversion. It is not safe for concurrent use.
type Writer struct {
	w   io.Writer
	enc encoder
	buf []byte // head and payload of the open block
	err error
}

// NewWriter writes magic and header at once. An error of the write shows in Err and in every later call.
func NewWriter(w io.Writer, h Header) *Writer {
	out := &Writer{w: w, enc: encoder{names: make(map[string]uint64, len(h.Names))}, buf: make([]byte, blockHead, flushBytes+flushBytes/4)}
	for i, n := range h.Names {
		if _, twice := out.enc.names[n]; twice {
			out.err = fmt.Errorf("history header: name %q stands twice in the dictionary, expected distinct names", n)
			return out
		}
		out.enc.names[n] = uint64(i)
	}
	block := appendHeader(append([]byte(fileMagic), make([]byte, blockHead)...), h)
	sealBlock(block[len(fileMagic):], headerBlock, block[len(fileMagic)+blockHead:])
	out.write(block)
	return out
}

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		w.err = fmt.Errorf("write %d bytes of history: %w", len(b), err)
	}
}

// Write adds one event. It writes a block when about 64 KiB are full.
func (w *Writer) Write(ev *Event) error {
	if w.err != nil {
		return w.err
	}
	w.buf = w.enc.appendEvent(w.buf, ev)
	if len(w.buf) >= flushBytes {
		return w.Flush()
	}
	return nil
}

// Flush ends the open block and hands it to the writer below, so that a crash cannot take it.
func (w *Writer) Flush() error {
	if w.err == nil && len(w.buf) > blockHead {
		if payload := len(w.buf) - blockHead; payload > maxBlock {
			w.err = fmt.Errorf("history block of %d bytes, expected at most %d: one event holds too many runs", payload, maxBlock)
			return w.err
		}
		sealBlock(w.buf, eventBlock, w.buf[blockHead:])
		w.write(w.buf)
		w.buf = w.buf[:blockHead]
		w.enc.delta = delta{}
	}
	return w.err
}

// Err is the first error, if any. After it nothing is written, so that what is in the file is a whole beginning of the history.
func (w *Writer) Err() error { return w.err }
