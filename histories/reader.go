package histories

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"os"
)

// Reader reads the native format as a stream. A last block that is cut off is left out, and Truncated says so; anything else that the
// format does not allow is a FormatError.
type Reader struct {
	r         *bufio.Reader
	close     func() error
	header    Header
	dec       decoder
	payload   bytes.Buffer
	at        int64 // where the block in dec begins
	next      int64 // where the block after it begins
	truncated bool
	done      error
}

// NewReader reads the header.
func NewReader(r io.Reader) (*Reader, error) {
	in := &Reader{r: bufio.NewReaderSize(r, 256<<10), close: func() error { return nil }}
	magic := make([]byte, len(fileMagic))
	if n, err := io.ReadFull(in.r, magic); string(magic[:n]) != fileMagic {
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return nil, fmt.Errorf("read history: %w", err)
		}
		return nil, &FormatError{0, fmt.Sprintf("begins with %q, expected %q", magic[:n], fileMagic)}
	}
	in.next = int64(len(fileMagic))
	switch err := in.block(headerBlock); {
	case err == io.EOF:
		return nil, &FormatError{in.next, "the file ends inside its header"}
	case err != nil:
		return nil, err
	}
	h, version, err := readHeader(in.dec.b)
	if err != nil {
		return nil, &FormatError{in.at, err.Error()}
	}
	in.header, in.dec.names, in.dec.version, in.dec.b = h, append([]string(nil), h.Names...), version, nil
	return in, nil
}

// Open reads the header of the file at path. The caller closes the Reader.
func Open(path string) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open history: %w", err)
	}
	r, err := NewReader(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r.close = f.Close
	return r, nil
}

// block reads the next block into the decoder: io.EOF at the end, also at one that cuts a block off.
func (r *Reader) block(kind byte) error {
	var head [blockHead]byte
	r.at = r.next
	switch _, err := io.ReadFull(r.r, head[:]); {
	case err == io.EOF:
		return io.EOF
	case err == io.ErrUnexpectedEOF:
		r.truncated = true
		return io.EOF
	case err != nil:
		return fmt.Errorf("read history at byte %d: %w", r.at, err)
	}
	le := binary.LittleEndian
	length := le.Uint32(head[4:])
	switch {
	case le.Uint32(head[12:]) != crc32.Checksum(head[:12], castagnoli):
		return &FormatError{r.at, "the head of the block is damaged: its checksum does not fit"}
	case head[0] != kind || head[1]|head[2]|head[3] != 0:
		return &FormatError{r.at, fmt.Sprintf("block of kind %q, expected %q", head[0], kind)}
	case length > maxBlock:
		return &FormatError{r.at, fmt.Sprintf("block of %d bytes, expected at most %d", length, maxBlock)}
	}
	r.payload.Reset()
	switch _, err := io.CopyN(&r.payload, r.r, int64(length)); {
	case err == io.EOF:
		r.truncated = true
		return io.EOF
	case err != nil:
		return fmt.Errorf("read history at byte %d: %w", r.at, err)
	}
	b := r.payload.Bytes()
	if le.Uint32(head[8:]) != crc32.Checksum(b, castagnoli) {
		return &FormatError{r.at, fmt.Sprintf("the block of %d bytes is damaged: its checksum does not fit", length)}
	}
	r.next = r.at + blockHead + int64(length)
	r.dec.cursor, r.dec.delta = cursor{b: b}, delta{}
	return nil
}

// Header is what stood before the first event.
func (r *Reader) Header() Header { return r.header }

// Next reads the next event into ev and uses the memory of ev.Runs and ev.Steps again. The end is io.EOF; every error stays.
func (r *Reader) Next(ev *Event) error {
	for r.done == nil && r.dec.at == len(r.dec.b) {
		r.done = r.block(eventBlock)
	}
	if r.done != nil {
		return r.done
	}
	if at := r.dec.at; !r.dec.event(ev) {
		r.done = &FormatError{r.at, fmt.Sprintf("the event at byte %d of the block has a number out of range or ends too early", at)}
	}
	return r.done
}

// Truncated tells, after the end, whether the file was cut off inside its last block, and at which byte that block begins.
func (r *Reader) Truncated() (at int64, truncated bool) { return r.at, r.truncated }

// All gives every event that is left; the Runs and Steps of one are valid until the next is asked for. An error is the last thing given.
func (r *Reader) All() iter.Seq2[Event, error] { return all(r) }

// Close closes the file of Open.
func (r *Reader) Close() error { return r.close() }

// ReadAll reads what is left of the history into memory.
func (r *Reader) ReadAll() ([]Event, error) { return readAll(r) }

// endsBlock tells whether a block that a Writer would not have ended yet ends after the last event. The last block always may.
func (r *Reader) endsBlock() bool {
	if r.dec.at < len(r.dec.b) || len(r.dec.b)+blockHead >= flushBytes {
		return false
	}
	_, err := r.r.Peek(1)
	return err == nil
}

// Events gives the events of a slice the way a Reader does.
func Events(events []Event) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for i := range events {
			if !yield(events[i], nil) {
				return
			}
		}
	}
}
