package wire

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Client is one connection to a broker for one request at a time. It is not safe for concurrent use. After any error it must be closed.
type Client struct {
	conn        net.Conn
	frames      *FrameReader
	id          string
	correlation int32
	out         []byte
}

// Dial connects to a broker. maxFrame bounds the answers.
func Dial(ctx context.Context, address, clientID string, maxFrame int) (*Client, error) {
	d := net.Dialer{Control: giveUpSilence}
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &Client{conn: conn, frames: NewFrameReader(conn, maxFrame, 0), id: clientID}, nil
}

// Close ends the connection; a call that is under way in another goroutine fails.
func (c *Client) Close() error { return c.conn.Close() }

// Do sends a request, at the version set in it, and returns its answer. It gives up when ctx ends.
func (c *Client) Do(ctx context.Context, q kmsg.Request) (kmsg.Response, error) {
	resp, _, err := c.DoInto(ctx, q, nil)
	return resp, err
}

// DoInto is Do with a buffer for the answer, which is returned, perhaps larger, for the next call: the answer's byte fields alias it.
func (c *Client) DoInto(ctx context.Context, q kmsg.Request, buf []byte) (kmsg.Response, []byte, error) {
	defer c.limit(ctx)()
	return c.exchange(ctx, q, buf)
}

// Until makes reads and writes fail from that time on, also those under way.
func (c *Client) Until(t time.Time) { c.conn.SetDeadline(t) }

// Exchange is DoInto within the time that Until has set. Whoever asks all the time is spared a context for each question.
func (c *Client) Exchange(q kmsg.Request, buf []byte) (kmsg.Response, []byte, error) {
	return c.exchange(context.Background(), q, buf)
}

func (c *Client) exchange(ctx context.Context, q kmsg.Request, buf []byte) (kmsg.Response, []byte, error) {
	if err := c.write(ctx, q); err != nil {
		return nil, buf, err
	}
	frame, err := c.frames.Next(buf)
	if err != nil {
		return nil, buf, c.wrap(ctx, "read the answer to", q, err)
	}
	if cap(frame) > cap(buf) {
		buf = frame[:0]
	}
	resp, err := ParseResponse(frame, c.correlation, q)
	return resp, buf, err
}

// Send sends a request that has no answer.
func (c *Client) Send(ctx context.Context, q kmsg.Request) error {
	defer c.limit(ctx)()
	return c.write(ctx, q)
}

func (c *Client) write(ctx context.Context, q kmsg.Request) error {
	c.correlation++
	c.out = AppendRequest(c.out[:0], c.correlation, c.id, q)
	if _, err := c.conn.Write(c.out); err != nil {
		return c.wrap(ctx, "send", q, err)
	}
	return nil
}

// limit makes reads and writes fail when ctx ends; the returned function lifts that.
func (c *Client) limit(ctx context.Context) func() {
	deadline, _ := ctx.Deadline() // the zero time is no deadline
	c.conn.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { c.conn.SetDeadline(time.Unix(1, 0)) })
	return func() { stop() }
}

func (c *Client) wrap(ctx context.Context, what string, q kmsg.Request, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	} else if timedOut(err) {
		err = context.DeadlineExceeded // the connection's deadline is the context's, and may come first
	}
	return fmt.Errorf("%s api key %d, %s: %w", what, q.Key(), c.conn.RemoteAddr(), err)
}

// ParseResponse reads the answer to q from a frame without length prefix. Errors name what does not fit.
func ParseResponse(frame []byte, correlation int32, q kmsg.Request) (kmsg.Response, error) {
	resp := q.ResponseKind()
	r := kbin.Reader{Src: frame}
	if got := r.Int32(); r.Ok() && got != correlation {
		return nil, fmt.Errorf("answer to api key %d has correlation id %d, expected %d", q.Key(), got, correlation)
	}
	if resp.IsFlexible() && q.Key() != ApiVersionsKey {
		kmsg.SkipTags(&r)
	}
	if err := r.Complete(); err != nil {
		return nil, fmt.Errorf("header of the answer to api key %d: %w", q.Key(), err)
	}
	if err := resp.ReadFrom(r.Src); err != nil {
		return nil, fmt.Errorf("body of the answer to api key %d, %d bytes: %w", q.Key(), len(r.Src), err)
	}
	return resp, nil
}
