package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// handlerFunc makes a Handler of a function.
type handlerFunc func(ctx context.Context, q Request) Pending

func (f handlerFunc) Handle(ctx context.Context, q Request) Pending { return f(ctx, q) }

// pendingFunc makes a Pending of a function.
type pendingFunc func(ctx context.Context) (any, error)

func (f pendingFunc) Wait(ctx context.Context) (any, error) { return f(ctx) }

// serve runs a server until the test ends, and checks that it stops.
func serve(t *testing.T, cfg ServerConfig) (*Server, string) {
	t.Helper()
	cfg.Table, cfg.Log = NewTable(APIs()), slog.New(slog.DiscardHandler)
	s := NewServer(cfg)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Serve: %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Error("Serve does not return after its context has ended")
		}
	})
	return s, l.Addr().String()
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}

// correlation reads one answer and gives its correlation id.
func correlation(t *testing.T, c net.Conn) int32 {
	t.Helper()
	var prefix [8]byte
	if _, err := io.ReadFull(c, prefix[:]); err != nil {
		t.Fatalf("read an answer: %v", err)
	}
	if _, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(prefix[:4]))-4); err != nil {
		t.Fatalf("read an answer: %v", err)
	}
	return int32(binary.BigEndian.Uint32(prefix[4:]))
}

func frame(correlation int32, q kmsg.Request) []byte { return AppendRequest(nil, correlation, "t", q) }

// closed checks that the server ends the connection.
func closed(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the server answered, expected it to close the connection")
	}
}

// TestAnswersInOrder: requests take effect at once, their answers keep the order of the requests (R7).
func TestAnswersInOrder(t *testing.T) {
	var mu sync.Mutex
	var effects []int32
	release := make(chan struct{})
	_, at := serve(t, ServerConfig{Handler: handlerFunc(func(_ context.Context, q Request) Pending {
		mu.Lock()
		effects = append(effects, q.Correlation)
		all := len(effects) == 5
		mu.Unlock()
		if all {
			close(release) // the first answers wait for the last request: so they are pipelined
		}
		return pendingFunc(func(ctx context.Context) (any, error) {
			<-release
			return q.Body.ResponseKind(), nil
		})
	})})
	c := dial(t, at)
	var all []byte
	for i := range int32(5) {
		all = append(all, frame(i, kmsg.NewPtrMetadataRequest())...)
	}
	if _, err := c.Write(all); err != nil {
		t.Fatal(err)
	}
	for i := range int32(5) {
		if got := correlation(t, c); got != i {
			t.Fatalf("answer %d has correlation id %d", i, got)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for i, got := range effects {
		if got != int32(i) {
			t.Errorf("effects in order %v", effects)
			break
		}
	}
}

// TestRefusals: what is not served ends the connection, is counted, and leaves the others alone.
func TestRefusals(t *testing.T) {
	s, at := serve(t, ServerConfig{MaxFrameBytes: 1 << 16, Handler: handlerFunc(func(_ context.Context, q Request) Pending {
		return Ready(q.Body.ResponseKind())
	})})
	for name, raw := range map[string][]byte{
		"unknown api":      {0, 0, 0, 10, 3, 231, 0, 0, 0, 0, 0, 1, 0xff, 0xff},
		"unserved version": {0, 0, 0, 10, 0, 0, 0, 1, 0, 0, 0, 1, 0xff, 0xff},
		"negative size":    {0xff, 0xff, 0xff, 0xff},
		"huge size":        {0x7f, 0xff, 0xff, 0xff, 0, 0},
		"size below 4":     {0, 0, 0, 3, 1, 2, 3},
		"no body":          {0, 0, 0, 10, 0, 3, 0, 1, 0, 0, 0, 1, 0xff, 0xff},
		"HTTP":             []byte("GET / HTTP/1.1\r\n\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, at)
			// The requests before it are still answered.
			if _, err := c.Write(append(frame(1, kmsg.NewPtrMetadataRequest()), raw...)); err != nil {
				t.Fatal(err)
			}
			if got := correlation(t, c); got != 1 {
				t.Errorf("correlation id %d, want 1", got)
			}
			closed(t, c)
		})
	}
	if got := s.Counters(); got.UnknownAPI != 1 || got.Version != 1 || got.Malformed != 5 {
		t.Errorf("counted %+v, want 1 unknown API, 1 version, 5 malformed", got)
	}
	c := dial(t, at)
	c.Write(frame(9, kmsg.NewPtrMetadataRequest()))
	if got := correlation(t, c); got != 9 {
		t.Errorf("correlation id %d, want 9", got)
	}
}

// TestTornFrames: frames that come byte by byte are whole all the same, and what never comes ends the connection after the idle time.
func TestTornFrames(t *testing.T) {
	_, at := serve(t, ServerConfig{Idle: 300 * time.Millisecond, Handler: handlerFunc(func(_ context.Context, q Request) Pending {
		return Ready(q.Body.ResponseKind())
	})})
	c := dial(t, at)
	for _, b := range frame(3, kmsg.NewPtrMetadataRequest()) {
		if _, err := c.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	if got := correlation(t, c); got != 3 {
		t.Errorf("correlation id %d, want 3", got)
	}
	if _, err := c.Write([]byte{0, 0, 1}); err != nil {
		t.Fatal(err)
	}
	closed(t, c)
}

// TestSilence: a connection on which nothing comes any more is closed, though nobody has ended it.
func TestSilence(t *testing.T) {
	_, at := serve(t, ServerConfig{Idle: 100 * time.Millisecond, Handler: handlerFunc(func(_ context.Context, q Request) Pending {
		return Ready(q.Body.ResponseKind())
	})})
	c := dial(t, at)
	c.Write(frame(3, kmsg.NewPtrMetadataRequest()))
	correlation(t, c)
	closed(t, c)
}

// TestIdleIsNotWaiting: a client that waits for an answer is not idle.
func TestIdleIsNotWaiting(t *testing.T) {
	const idle = 100 * time.Millisecond
	_, at := serve(t, ServerConfig{Idle: idle, Handler: handlerFunc(func(_ context.Context, q Request) Pending {
		return pendingFunc(func(ctx context.Context) (any, error) {
			select {
			case <-time.After(4 * idle): // the wait is what is tested
				return q.Body.ResponseKind(), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
	})})
	c := dial(t, at)
	c.Write(frame(3, kmsg.NewPtrMetadataRequest()))
	if got := correlation(t, c); got != 3 {
		t.Errorf("correlation id %d, want 3", got)
	}
}

// TestSlowReader: a client that takes no byte of an answer is cut off, and its requests are given up.
func TestSlowReader(t *testing.T) {
	big := kmsg.NewPtrMetadataResponse()
	for range 4000 {
		topic := kmsg.NewMetadataResponseTopic()
		topic.Topic = kmsg.StringPtr(string(make([]byte, 4000)))
		big.Topics = append(big.Topics, topic)
	}
	gaveUp := make(chan struct{})
	_, at := serve(t, ServerConfig{WriteTimeout: 200 * time.Millisecond, Handler: handlerFunc(func(_ context.Context, q Request) Pending {
		if q.Correlation == 1 {
			return Ready(big)
		}
		return pendingFunc(func(ctx context.Context) (any, error) {
			<-ctx.Done()
			close(gaveUp)
			return nil, ctx.Err()
		})
	})})
	c := dial(t, at)
	c.Write(append(frame(1, kmsg.NewPtrMetadataRequest()), frame(2, kmsg.NewPtrMetadataRequest())...))
	select {
	case <-gaveUp:
	case <-time.After(10 * time.Second):
		t.Error("the request behind an answer that nobody reads is still waiting")
	}
}

// TestGone: when the client goes, or ends its half of the connection, what waits for it is given up.
func TestGone(t *testing.T) {
	t.Run("closed", func(t *testing.T) { gone(t, net.Conn.Close) })
	t.Run("half closed", func(t *testing.T) { gone(t, func(c net.Conn) error { return c.(*net.TCPConn).CloseWrite() }) })
}

func gone(t *testing.T, end func(net.Conn) error) {
	waiting, gaveUp := make(chan struct{}), make(chan error, 1)
	_, at := serve(t, ServerConfig{Handler: handlerFunc(func(context.Context, Request) Pending {
		return pendingFunc(func(ctx context.Context) (any, error) {
			close(waiting)
			<-ctx.Done()
			gaveUp <- ctx.Err()
			return nil, ctx.Err()
		})
	})})
	c := dial(t, at)
	c.Write(frame(1, kmsg.NewPtrMetadataRequest()))
	<-waiting
	if err := end(c); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-gaveUp:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("still waiting for a client that is gone")
	}
}

func TestMaxConnections(t *testing.T) {
	s, at := serve(t, ServerConfig{MaxConnections: 1, Handler: handlerFunc(func(_ context.Context, q Request) Pending {
		return Ready(q.Body.ResponseKind())
	})})
	first := dial(t, at)
	first.Write(frame(1, kmsg.NewPtrMetadataRequest()))
	correlation(t, first)
	closed(t, dial(t, at))
	if got := s.Counters().Refused; got != 1 {
		t.Errorf("%d refused, want 1", got)
	}
}

// TestFrameReaderTrust: a length prefix alone gets no memory, and a frame that comes is whole however it grew.
func TestFrameReaderTrust(t *testing.T) {
	here, there := tcpPair(t)
	defer there.Close()
	const size = 5 << 20
	go func() {
		defer here.Close()
		raw := binary.BigEndian.AppendUint32(nil, size)
		for i := range size {
			raw = append(raw, byte(i*7))
		}
		here.Write(raw)
		here.Write(binary.BigEndian.AppendUint32(nil, 90<<20)) // and then nothing
	}()
	r := NewFrameReader(there, DefaultMaxFrameBytes, 0)
	got, err := r.Next(nil)
	if err != nil || len(got) != size {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	for i, b := range got {
		if b != byte(i*7) {
			t.Fatalf("byte %d is %d, want %d", i, b, byte(i*7))
		}
	}
	if _, err := r.Next(nil); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v, want an unexpected end", err)
	}
	if r.trust > 8<<20 {
		t.Errorf("a frame that never came is trusted with %d bytes", r.trust)
	}
}

func TestClientTimesOut(t *testing.T) {
	_, at := serve(t, ServerConfig{Handler: handlerFunc(func(context.Context, Request) Pending {
		return pendingFunc(func(ctx context.Context) (any, error) { <-ctx.Done(); return nil, ctx.Err() })
	})})
	c, err := Dial(t.Context(), at, "t", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Do(ctx, kmsg.NewPtrMetadataRequest()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want the end of the context", err)
	}
}
