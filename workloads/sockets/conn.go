package sockets

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxFrameBytes bounds a response, so that a broken length cannot exhaust the memory.
const maxFrameBytes = 128 << 20

var formatter = kmsg.NewRequestFormatter(kmsg.FormatterClientID("ackproof"))

// conn is one TCP connection that speaks Kafka's framing.
type conn struct {
	nc      net.Conn
	addr    string
	next    int32
	out     []byte
	release func() bool
}

// Close closes the connection.
func (c *conn) Close() {
	c.release()
	c.nc.Close()
}

// RoundTrip sends one request and reads its response.
func (c *conn) RoundTrip(req kmsg.Request, timeout time.Duration) (kmsg.Response, error) {
	what := func(err error) error {
		return fmt.Errorf("%s v%d to %s: %w", kmsg.NameForKey(req.Key()), req.GetVersion(), c.addr, err)
	}
	if err := c.nc.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, what(err)
	}
	c.next++
	c.out = formatter.AppendRequest(c.out[:0], req, c.next)
	// A failed write may have sent a part that the kernel still delivers: never ErrNotSent.
	if _, err := c.nc.Write(c.out); err != nil {
		return nil, what(err)
	}
	if p, ok := req.(*kmsg.ProduceRequest); ok && p.Acks == 0 {
		return nil, nil
	}
	var head [8]byte
	if _, err := io.ReadFull(c.nc, head[:]); err != nil {
		return nil, what(err)
	}
	size, id := int32(binary.BigEndian.Uint32(head[:4])), int32(binary.BigEndian.Uint32(head[4:]))
	if size < 4 || size > maxFrameBytes {
		return nil, what(fmt.Errorf("frame of %d bytes, expected 4 to %d", size, maxFrameBytes))
	}
	if id != c.next {
		return nil, what(fmt.Errorf("answer to request %d, expected %d", id, c.next))
	}
	body := make([]byte, size-4)
	if _, err := io.ReadFull(c.nc, body); err != nil {
		return nil, what(err)
	}
	resp := req.ResponseKind()
	r := kbin.Reader{Src: body}
	if resp.IsFlexible() && resp.Key() != int16(kmsg.ApiVersions) {
		kmsg.SkipTags(&r)
	}
	if err := resp.ReadFrom(r.Src); err != nil {
		return nil, what(err)
	}
	return resp, nil
}
