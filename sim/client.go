package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/nemesis"
	"ackproof/sim/world"
	"ackproof/workloads"
)

// env is the world of one client of a workload: a coroutine of its own process. It implements workloads.Env.
type env struct {
	r     *run
	t     *world.Task
	party nemesis.Party
	rand  *rand.Rand
	stop  *stop
	news  world.Signal
}

func (e *env) Now() time.Duration { return e.t.Now() }
func (e *env) Rand() *rand.Rand   { return e.rand }
func (e *env) Stopped() bool      { return e.stop.asked }

// Sleep returns after d, or sooner when the run asks its clients to stop.
func (e *env) Sleep(d time.Duration) {
	if e.Stopped() {
		e.t.Sleep(time.Millisecond) // a loop that waits for something must not stand still in time
		return
	}
	e.t.Wait(&e.stop.signal, d)
}

// stop asks clients to come to an end.
type stop struct {
	asked  bool
	signal world.Signal
}

func (s *stop) ask() {
	s.asked = true
	s.signal.Broadcast()
}

// Dial connects to a broker: addr is a node's name.
func (e *env) Dial(addr string, timeout time.Duration) (workloads.Conn, error) {
	var id int
	if _, err := fmt.Sscanf(addr, "n%d", &id); err != nil {
		return nil, fmt.Errorf("dial %s: %w: not a node of this world", addr, workloads.ErrNotSent)
	}
	link, err := e.r.net.Dial(e.t, e.party, nemesis.NodeParty(id), timeout, &e.news)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w: %w", addr, workloads.ErrNotSent, err)
	}
	return &conn{e: e, link: link, addr: addr}, nil
}

// conn is one connection to a broker. Requests and responses travel as kmsg's structs: neither side changes what it was given.
type conn struct {
	e    *env
	link *world.Link
	addr string
}

func (c *conn) RoundTrip(req kmsg.Request, timeout time.Duration) (kmsg.Response, error) {
	c.link.Send(req)
	if p, ok := req.(*kmsg.ProduceRequest); ok && p.Acks == 0 {
		return nil, nil
	}
	m, err := c.link.Next(c.e.t, timeout)
	if err != nil {
		return nil, fmt.Errorf("%s v%d to %s: %w", kmsg.NameForKey(req.Key()), req.GetVersion(), c.addr, err)
	}
	return m.(kmsg.Response), nil
}

// Send and Receive implement workloads.Pipeline.
func (c *conn) Send(req kmsg.Request) error {
	c.link.Post(req)
	return nil
}

func (c *conn) Receive(timeout time.Duration) (kmsg.Response, error) {
	m, err := c.link.Next(c.e.t, timeout)
	if err != nil {
		return nil, fmt.Errorf("an answer from %s: %w", c.addr, err)
	}
	return m.(kmsg.Response), nil
}

func (c *conn) Close() { c.link.Close() }
