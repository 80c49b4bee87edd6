package wire

import (
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"

	"ackproof/broker/storage"
)

// pieceBytes bounds what one deadline covers, so that a slow reader is cut for silence and not for the size of an answer.
const pieceBytes = 1 << 20

// outgoing is a frame on its way out: encoded bytes in scratch, and runs of record chunks that go in between.
type outgoing struct {
	scratch []byte
	cuts    []cut
	records int // bytes of all runs
	gone    int // bytes that sendNow has sent
}

// cut is a place in scratch where chunks go.
type cut struct {
	at     int
	chunks []storage.Chunk
}

// reset forgets the frame. A rare large one shall not stay for the life of the connection.
func (o *outgoing) reset() {
	if cap(o.scratch) > 1<<20 {
		*o = outgoing{}
		return
	}
	clear(o.cuts) // they hold records
	o.scratch, o.cuts, o.records, o.gone = o.scratch[:0], o.cuts[:0], 0, 0
}

func (o *outgoing) cut(at int, chunks []storage.Chunk) {
	o.cuts = append(o.cuts, cut{at, chunks})
	for _, c := range chunks {
		o.records += chunkLen(c)
	}
}

// finish takes the encoded bytes and fills in the length prefix.
func (o *outgoing) finish(b []byte) {
	kbin.AppendInt32(b[0:0], int32(len(b)-4+o.records))
	o.scratch = b
}

func chunkLen(c storage.Chunk) int {
	if c.File != nil {
		return c.Length
	}
	return len(c.Memory)
}

// sendNow sends the frame if it lies in memory, is not larger than most, and the socket takes it at once. If not, writeTo sends the rest of it.
func (o *outgoing) sendNow(conn net.Conn, most int) (all bool) {
	size := len(o.scratch) + o.records
	if size > most {
		return false
	}
	parts := make([][]byte, 0, 8)
	from := 0
	for _, c := range o.cuts {
		parts, from = append(parts, o.scratch[from:c.at]), c.at
		for _, chunk := range c.chunks {
			if chunk.File != nil {
				return false
			}
			parts = append(parts, chunk.Memory)
		}
	}
	o.gone = writeNow(conn, append(parts, o.scratch[from:]))
	return o.gone == size
}

// writeTo sends the frame, but for what has been sent: memory by writev, files by sendfile where the system has it. Each piece has patience to go out.
func (o *outgoing) writeTo(conn net.Conn, patience time.Duration) error {
	w := &pieces{conn: conn, patience: patience, skip: o.gone}
	defer conn.SetWriteDeadline(time.Time{}) // writeNow has none
	from := 0
	for _, c := range o.cuts {
		if err := w.memory(o.scratch[from:c.at]); err != nil {
			return err
		}
		from = c.at
		for _, chunk := range c.chunks {
			var err error
			if chunk.File != nil {
				err = w.file(chunk)
			} else {
				err = w.memory(chunk.Memory)
			}
			if err != nil {
				return err
			}
		}
	}
	if err := w.memory(o.scratch[from:]); err != nil {
		return err
	}
	return w.flush()
}

// pieces collects memory for one writev and sends it before a file chunk, or when enough has come together.
type pieces struct {
	conn     net.Conn
	patience time.Duration
	skip     int // bytes of memory that have been sent
	vec      net.Buffers
	bytes    int
}

func (w *pieces) memory(b []byte) error {
	done := min(w.skip, len(b))
	b, w.skip = b[done:], w.skip-done
	for len(b) > 0 {
		n := min(len(b), pieceBytes-w.bytes)
		w.vec, w.bytes, b = append(w.vec, b[:n]), w.bytes+n, b[n:]
		if w.bytes == pieceBytes {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *pieces) flush() error {
	if w.bytes == 0 {
		return nil
	}
	if err := w.deadline(); err != nil {
		return err
	}
	vec := w.vec
	_, err := vec.WriteTo(w.conn)
	w.vec, w.bytes = w.vec[:0], 0
	return err
}

func (w *pieces) file(c storage.Chunk) error {
	if err := w.flush(); err != nil {
		return err
	}
	for at, end := c.Offset, c.Offset+int64(c.Length); at < end; {
		n := min(end-at, pieceBytes)
		if err := w.deadline(); err != nil {
			return err
		}
		if err := sendChunk(w.conn, c.File, at, int(n)); err != nil {
			return err
		}
		at += n
	}
	return nil
}

func (w *pieces) deadline() error { return w.conn.SetWriteDeadline(time.Now().Add(w.patience)) }

// sendChunk sends n bytes of a file, without passing them through this process if both ends allow it.
func sendChunk(conn net.Conn, file io.ReaderAt, at int64, n int) error {
	tcp, isTCP := conn.(*net.TCPConn)
	if f, isFile := file.(*os.File); isTCP && isFile {
		if done, err := sendfile(tcp, f, at, n); done || err != nil {
			return err
		}
	}
	if got, err := io.Copy(conn, io.NewSectionReader(file, at, int64(n))); err != nil {
		return err
	} else if got != int64(n) {
		return fmt.Errorf("log file has %d bytes at %d, expected %d: %w", got, at, n, io.ErrUnexpectedEOF)
	}
	return nil
}
