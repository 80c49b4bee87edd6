package nemesis

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// copyBytes is the size of one copy: large enough that the proxy costs little, small enough that a held lane takes little out of the sender.
const copyBytes = 64 << 10

// dialTimeout bounds the proxy's own dial of a node on loopback.
const dialTimeout = 5 * time.Second

// lane is the gate and the counters of one direction of all connections of a link.
type lane struct {
	holds  atomic.Int32 // written under mu; read without it on the fast path
	passed atomic.Int64
	waited atomic.Int64

	mu   sync.Mutex
	flow sync.Cond // holds became 0
}

func newLane() *lane {
	l := &lane{}
	l.flow.L = &l.mu
	return l
}

func (l *lane) hold() {
	l.mu.Lock()
	l.holds.Add(1)
	l.mu.Unlock()
}

func (l *lane) release() {
	l.mu.Lock()
	if l.holds.Load() > 0 && l.holds.Add(-1) == 0 {
		l.flow.Broadcast()
	}
	l.mu.Unlock()
}

func (l *lane) free() {
	l.mu.Lock()
	l.holds.Store(0)
	l.flow.Broadcast()
	l.mu.Unlock()
}

// pass waits until the lane flows.
func (l *lane) pass() {
	if l.holds.Load() == 0 {
		return
	}
	l.mu.Lock()
	for l.holds.Load() > 0 {
		l.flow.Wait()
	}
	l.mu.Unlock()
}

// proxy is the door through which one party dials another.
type proxy struct {
	listener      net.Listener
	target        string
	forward, back *lane
	running       sync.WaitGroup

	mu      sync.Mutex
	pairs   map[*pair]struct{}
	stopped bool
}

// pair is one proxied connection: near to the dialer, far to the acceptor. far is nil until the dial through a held link may go on.
type pair struct {
	near, far *net.TCPConn
}

func newProxy(l net.Listener, target string, forward, back *lane) *proxy {
	p := &proxy{listener: l, target: target, forward: forward, back: back, pairs: map[*pair]struct{}{}}
	p.running.Go(p.serve)
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) serve() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(5 * time.Millisecond) // out of descriptors, or the dialer is gone: the next one may do better
			continue
		}
		q := &pair{near: c.(*net.TCPConn)}
		if !p.add(q) {
			reset(q.near)
			return
		}
		p.running.Go(func() { p.carry(q) })
	}
}

// carry is the life of one connection.
func (p *proxy) carry(q *pair) {
	defer p.drop(q)
	// A handshake needs both directions: the dial hangs while either is held.
	for p.forward.holds.Load() > 0 || p.back.holds.Load() > 0 {
		p.forward.pass()
		p.back.pass()
	}
	far, err := net.DialTimeout("tcp", p.target, dialTimeout)
	if err != nil {
		reset(q.near) // as near to "connection refused" as an accepted connection can come
		return
	}
	if !p.attach(q, far.(*net.TCPConn)) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { q.pump(q.far, q.near, p.forward, p.back) })
	both.Go(func() { q.pump(q.near, q.far, p.back, p.forward) })
	both.Wait()
}

// pump copies one direction. It always reads before it looks at the gate, so that bytes which arrive while the lane is held are counted;
// the end of the stream passes the gate like the bytes before it.
func (q *pair) pump(to, from *net.TCPConn, gate, reverse *lane) {
	buf := buffers.Get().(*[copyBytes]byte)
	defer buffers.Put(buf)
	for {
		n, err := from.Read(buf[:])
		if n > 0 {
			if gate.holds.Load() > 0 {
				gate.waited.Add(int64(n))
				gate.pass()
			}
			if _, werr := to.Write(buf[:n]); werr != nil {
				reverse.pass() // the receiver's RST travels on the other lane
				q.reset()
				return
			}
			gate.passed.Add(int64(n))
		}
		if err != nil {
			gate.pass()
			if errors.Is(err, io.EOF) {
				to.CloseWrite()
			} else {
				q.reset()
			}
			return
		}
	}
}

var buffers = sync.Pool{New: func() any { return new([copyBytes]byte) }}

func (p *proxy) add(q *pair) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return false
	}
	p.pairs[q] = struct{}{}
	return true
}

// attach gives the pair its far end, unless the proxy stopped meanwhile.
func (p *proxy) attach(q *pair, far *net.TCPConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		reset(far)
		return false
	}
	q.far = far
	return true
}

func (p *proxy) drop(q *pair) {
	p.mu.Lock()
	delete(p.pairs, q)
	p.mu.Unlock()
	q.near.Close()
	if q.far != nil {
		q.far.Close()
	}
}

// reset ends every open connection with RST to both ends.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for q := range p.pairs {
		q.reset()
	}
}

func (p *proxy) stop() {
	p.listener.Close()
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.reset()
}

// reset ends the connection with RST to both ends. Doing it again changes nothing.
func (q *pair) reset() {
	reset(q.near)
	if q.far != nil {
		reset(q.far)
	}
}

func reset(c *net.TCPConn) {
	c.SetLinger(0)
	c.Close()
}
