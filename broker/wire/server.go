package wire

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// pipelineDepth is how many requests of one connection may be under way. The reader stops at that, so a client cannot queue without bound.
const pipelineDepth = 16

// Handler carries out requests.
type Handler interface {
	// Handle makes the request take effect. It is called in the order in which the requests of a connection came, by one goroutine per connection
	// (R7); what must be waited for belongs into the Pending, unless later requests of the connection should wait too. ctx ends with the connection.
	Handle(ctx context.Context, q Request) Pending
}

// Pending is the answer to a request, known now or later.
type Pending interface {
	// Wait blocks until the answer is known or ctx ends; then it gives up and frees what it holds. It is called exactly once, when all answers before it have been sent; by another
	// goroutine than Handle, unless it is a Prompt. The answer is a kmsg.Response, a *FetchResponse, or nil if there is none to send. An
	// error closes the connection.
	Wait(ctx context.Context) (any, error)
}

// Prompt is a Pending that tells when its answer is known, so that nobody has to be woken to wait for it.
type Prompt interface {
	Pending
	// Then has ready called once the answer is known: by whoever makes it known, or before Then returns if it is. ready sends the answer, if that can be done without blocking. Wait is called after
	// it, or when ctx has ended, and does not block. Then is called once.
	Then(ready func())
}

// Ready is a Pending whose answer is known.
func Ready(answer any) Pending { return ready{answer: answer} }

// Fail is a Pending that closes the connection.
func Fail(err error) Pending { return ready{err: err} }

type ready struct {
	answer any
	err    error
}

func (r ready) Wait(context.Context) (any, error) { return r.answer, r.err }

func (r ready) Then(ready func()) { ready() }

// ServerConfig is what a Server needs. The zero values of the limits mean no limit, but MaxFrameBytes: DefaultMaxFrameBytes.
type ServerConfig struct {
	Handler        Handler
	Table          *Table
	Frames         *FramePool // memory of Produce requests; nil: the garbage collector's
	Log            *slog.Logger
	MaxFrameBytes  int           // socket.request.max.bytes
	Idle           time.Duration // connections.max.idle.ms: silence of a client that waits for nothing
	WriteTimeout   time.Duration // how long a client may take no byte of an answer
	MaxConnections int           // max.connections
}

// Counters of a Server since its start.
type Counters struct {
	Connections, Refused           int64 // accepted; closed at once because of MaxConnections
	Requests                       int64
	UnknownAPI, Version, Malformed int64 // connections closed for what came in
}

// Server accepts connections and answers their requests.
type Server struct {
	cfg      ServerConfig
	open     atomic.Int64
	counters struct{ connections, refused, requests, unknownAPI, version, malformed atomic.Int64 }
}

// NewServer makes a server; Serve starts it.
func NewServer(cfg ServerConfig) *Server {
	if cfg.MaxFrameBytes <= 0 {
		cfg.MaxFrameBytes = DefaultMaxFrameBytes
	}
	if cfg.WriteTimeout <= 0 {
		cfg.WriteTimeout = 30 * time.Second
	}
	return &Server{cfg: cfg}
}

// Counters tells what happened since the start.
func (s *Server) Counters() Counters {
	c := &s.counters
	return Counters{
		Connections: c.connections.Load(), Refused: c.refused.Load(), Requests: c.requests.Load(),
		UnknownAPI: c.unknownAPI.Load(), Version: c.version.Load(), Malformed: c.malformed.Load(),
	}
}

// Serve accepts connections until ctx ends, then closes them all and returns when every goroutine is gone. The listener is closed on return. The
// error is nil unless accepting failed for good.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	defer l.Close()
	defer cancel()
	for pause := 5 * time.Millisecond; ; {
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				conn.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // out of descriptors, or a peer that was gone before it was accepted
			s.cfg.Log.Warn("accept failed", "address", l.Addr(), "error", err, "again_in", pause)
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			pause = min(2*pause, time.Second)
			continue
		}
		pause = 5 * time.Millisecond
		if limit := int64(s.cfg.MaxConnections); limit > 0 && s.open.Load() >= limit {
			s.counters.refused.Add(1)
			s.cfg.Log.Warn("connection refused: max.connections reached", "limit", limit, "peer", conn.RemoteAddr())
			conn.Close()
			continue
		}
		s.open.Add(1)
		s.counters.connections.Add(1)
		all.Add(1)
		go func() {
			defer all.Done()
			defer s.open.Add(-1)
			s.serveConn(ctx, conn)
		}()
	}
}

// serveConn runs one connection: this goroutine reads and handles, answers are sent in order by whoever makes them known.
func (s *Server) serveConn(ctx context.Context, conn net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	log := s.cfg.Log.With("peer", conn.RemoteAddr().String())
	a := newAnswers(ctx, func() { cancel(); conn.Close() }, conn, s.cfg.WriteTimeout, log)
	stop := context.AfterFunc(ctx, func() { conn.Close(); a.stop() })
	defer stop()
	err := s.read(ctx, conn, a, log)
	s.note(log, err) // before anybody can see the connection end
	if ctx.Err() == nil && s.refused(err) {
		a.finish() // after a request that was refused the answers before it are still sent; whoever is gone reads none
	}
	cancel()
	conn.Close()
	a.close()
}

// refused tells whether the connection ends because of a request that is not served.
func (s *Server) refused(err error) bool {
	return errors.Is(err, ErrUnknownAPI) || errors.Is(err, ErrVersion) || errors.Is(err, ErrMalformed) || errors.Is(err, ErrFrameSize)
}

// note logs and counts why a connection ended. An unsupported version is the first thing to look at when a client hangs.
func (s *Server) note(log *slog.Logger, err error) {
	switch {
	case errors.Is(err, ErrUnknownAPI):
		s.counters.unknownAPI.Add(1)
	case errors.Is(err, ErrVersion):
		s.counters.version.Add(1)
	case errors.Is(err, ErrMalformed), errors.Is(err, ErrFrameSize):
		s.counters.malformed.Add(1)
	default:
		log.Debug("connection ended", "error", err)
		return
	}
	log.Warn("connection closed: request not understood", "error", err)
}

// read reads and handles requests until the connection ends.
func (s *Server) read(ctx context.Context, conn net.Conn, a *answers, log *slog.Logger) error {
	frames := NewFrameReader(conn, s.cfg.MaxFrameBytes, s.cfg.Idle)
	var kinds requestKinds
	if log.Enabled(ctx, slog.LevelDebug) {
		kinds = requestKinds{}
	}
	host, _, _ := net.SplitHostPort(conn.RemoteAddr().String()) // "" for a connection without one
	for {
		err := frames.Await()
		if err != nil && timedOut(err) && a.waited() {
			continue // silent, but because it waits for us
		}
		if err != nil {
			return err
		}
		// The frame gets memory of its own, because records alias it and the log may keep them.
		frame, memory, err := frames.nextHeld(s.cfg.Frames)
		if err != nil {
			return err
		}
		q, err := s.cfg.Table.Parse(frame)
		if err != nil {
			return err // the memory is left to the garbage collector
		}
		q.Frame = memory
		q.Host = "/" + host
		kinds.note(log, q)
		s.counters.requests.Add(1)
		u := &underWay{correlation: q.Correlation, key: q.API.Key}
		if q.API.Key == ApiVersionsKey {
			u.pending = Ready(s.cfg.Table.ApiVersions(q))
		} else {
			u.pending = s.cfg.Handler.Handle(ctx, q)
		}
		memory.Release()
		a.add(u)
	}
}

// set lays out the frame of an answer.
func (o *outgoing) set(correlation int32, answer any) {
	switch a := answer.(type) {
	case *FetchResponse:
		a.appendFrame(o, correlation)
	case kmsg.Response:
		if a.Key() != 0 { // Produce has no array that may be null, and is the one answer whose cost shows
			fillNil(reflect.ValueOf(a))
		}
		o.scratch = AppendResponse(o.scratch[:0], correlation, a)
	}
}

// requestKinds are the APIs and versions that came on one connection. It is nil, and notes nothing, unless debugging is on.
type requestKinds map[requestKind]struct{}

type requestKind struct{ key, version int16 }

// note logs the first request of each API and version: what a client has agreed on with this broker.
func (k requestKinds) note(log *slog.Logger, q Request) {
	kind := requestKind{q.API.Key, q.Version}
	if _, again := k[kind]; again || k == nil {
		return
	}
	k[kind] = struct{}{}
	log.Debug("first request of its kind", "api_key", q.API.Key, "api", q.API.Name, "version", q.Version, "too_new", q.TooNew, "client_id", q.ClientID)
}
