package wire

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

const (
	readAheadBytes = 16 << 10
	// firstTrustBytes is how much memory the length prefix of a stranger's frame may claim before the bytes have come.
	firstTrustBytes = 1 << 20
)

// FrameReader reads length-prefixed frames from a connection.
type FrameReader struct {
	in    *bufio.Reader
	limit int
	// trust is the memory that a frame gets at once: 1 MiB, or as much as the largest whole frame so far. A larger frame grows as its bytes arrive,
	// so that garbage cannot make the reader allocate what it never sends.
	trust int
}

// NewFrameReader reads frames of up to limit bytes. Each read of the socket may take up to idle (0 = for ever).
func NewFrameReader(conn net.Conn, limit int, idle time.Duration) *FrameReader {
	return &FrameReader{in: bufio.NewReaderSize(&patient{conn, idle}, readAheadBytes), limit: limit, trust: min(firstTrustBytes, limit)}
}

// Await blocks until the length prefix of the next frame is there. A time-out (os.ErrDeadlineExceeded) loses nothing: Await may be called again.
func (f *FrameReader) Await() error {
	_, err := f.in.Peek(4)
	return err
}

// Next reads one frame without its length prefix, into buf if that is large enough, else into new memory. Errors: ErrFrameSize, io.EOF
// between two frames, io.ErrUnexpectedEOF inside of one, or what the connection says.
func (f *FrameReader) Next(buf []byte) ([]byte, error) {
	prefix, err := f.in.Peek(4)
	if err != nil {
		if err == io.EOF && len(prefix) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	size := int(int32(binary.BigEndian.Uint32(prefix)))
	if size < 4 || size > f.limit {
		return nil, fmt.Errorf("%w: %d bytes, expected 4 to %d", ErrFrameSize, size, f.limit)
	}
	if _, err := f.in.Discard(4); err != nil {
		return nil, err
	}
	frame := buf[:0]
	if cap(frame) < size {
		frame = make([]byte, 0, min(size, f.trust))
	}
	for {
		from := len(frame)
		frame = frame[:min(size, cap(frame))]
		if _, err := io.ReadFull(f.in, frame[from:]); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		if len(frame) == size {
			break
		}
		grown := make([]byte, len(frame), min(size, 2*cap(frame)))
		copy(grown, frame)
		frame = grown
	}
	f.trust = max(f.trust, size)
	return frame, nil
}

// nextHeld is Next with memory of the pool, for a Produce request that is large enough and not larger than is trusted; held is nil for all others.
func (f *FrameReader) nextHeld(pool *FramePool) (frame []byte, held *Frame, err error) {
	if pool != nil {
		// Any shorter frame is no Produce request worth counting, so nobody is waited for in vain.
		if head, err := f.in.Peek(4); err == nil {
			size := int(int32(binary.BigEndian.Uint32(head)))
			if size >= pooledFrom && size <= min(f.trust, f.limit) {
				if head, err = f.in.Peek(6); err == nil && binary.BigEndian.Uint16(head[4:]) == produceKey {
					held = pool.get(size)
					frame, err = f.Next(held.buf[:0])
					if err != nil {
						held.Release()
						held = nil
					}
					return frame, held, err
				}
			}
		}
	}
	frame, err = f.Next(nil)
	return frame, nil, err
}

// patient gives every single read its own deadline, so that a slow peer is cut for silence and not for the size of its frame.
type patient struct {
	net.Conn
	idle time.Duration
}

func (p *patient) Read(b []byte) (int, error) {
	if p.idle > 0 {
		if err := p.Conn.SetReadDeadline(time.Now().Add(p.idle)); err != nil {
			return 0, err
		}
	}
	return p.Conn.Read(b)
}

// timedOut tells a deadline from other errors.
func timedOut(err error) bool { return os.IsTimeout(err) }
