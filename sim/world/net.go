package world

import (
	"errors"
	"math/rand/v2"
	"time"

	"ackproof/nemesis"
)

// Net is the network: connections between parties, over lanes that can be held. A connection keeps the order of what it carries; between connections
// there is no order. What is sent while its lane is held waits and flows on at the release, or is lost when the connection is reset: a network does not take
// bytes out of the middle of a stream.
type Net struct {
	w      *World
	rand   *rand.Rand
	delay  Delay
	hosts  map[nemesis.Party]*host
	lanes  map[nemesis.Lane]*lane
	number int // of the last connection
}

// Delay is how long a message takes.
type Delay struct {
	Least, Most time.Duration // evenly drawn
	// Link is the most that a lane takes longer than others, always: one is near, another far.
	Link time.Duration
	// Slow is the longest time of one message in SlowEvery, so that connections overtake each other now and then; 0: none.
	Slow      time.Duration
	SlowEvery int
}

// host is a party that can be dialled or dials.
type host struct {
	process *Process // the present life, nil while it is down
	accept  func(*Conn) func(message any)
	conns   []*Conn // open at this end, in the order of their making
}

// lane is one direction between a dialler and an acceptor.
type lane struct {
	holds  int // faults that hold it now
	queue  []held
	far    time.Duration
	caught int // messages that were ever caught
	passed int // messages that ever passed
}

type held struct {
	c       *Conn
	forward bool
	deliver func()
}

// NewNet makes the network of a world.
func NewNet(w *World, delay Delay) *Net {
	return &Net{w: w, rand: w.Rand(1), delay: delay, hosts: map[nemesis.Party]*host{}, lanes: map[nemesis.Lane]*lane{}}
}

func (n *Net) host(p nemesis.Party) *host {
	h := n.hosts[p]
	if h == nil {
		h = &host{}
		n.hosts[p] = h
	}
	return h
}

func (n *Net) lane(l nemesis.Lane) *lane {
	x := n.lanes[l]
	if x == nil {
		x = &lane{}
		if n.delay.Link > 0 {
			x.far = time.Duration(n.rand.Int64N(int64(n.delay.Link) + 1))
		}
		n.lanes[l] = x
	}
	return x
}

// Listen makes the party, as this process, answer: accept is called for each connection, and what it returns for each message of it.
func (n *Net) Listen(party nemesis.Party, p *Process, accept func(*Conn) func(message any)) {
	h := n.host(party)
	h.process, h.accept = p, accept
}

// Down tells that the party's process has died: its connections break, and dials are refused.
func (n *Net) Down(party nemesis.Party) {
	h := n.host(party)
	conns := h.conns
	h.process, h.accept, h.conns = nil, nil, nil
	for _, c := range conns {
		c.breakOff(c.dialer == party)
	}
}

// Hold holds a lane; holds add up.
func (n *Net) Hold(l nemesis.Lane) { n.lane(l).holds++ }

// Release takes one hold off a lane. When none is left, what waited flows on in its order.
func (n *Net) Release(l nemesis.Lane) {
	x := n.lane(l)
	if x.holds--; x.holds > 0 {
		return
	}
	queue := x.queue
	x.queue = nil
	for _, m := range queue {
		m.c.transmit(m.forward, m.deliver)
	}
}

// Reset breaks the connections that the lane belongs to, at both ends; what waits on them is lost.
func (n *Net) Reset(l nemesis.Lane) {
	for _, c := range append([]*Conn(nil), n.host(l.Dialer).conns...) {
		if c.acceptor == l.Acceptor {
			c.lost = true
			c.end(true, errReset)
			c.end(false, errReset)
		}
	}
}

// Caught is how many messages the lane has ever held, and how many it let pass.
func (n *Net) Caught(l nemesis.Lane) (caught, passed int) {
	x := n.lane(l)
	return x.caught, x.passed
}

// Errors of connections.
var (
	errRefused = errors.New("connection refused")
	errReset   = errors.New("connection reset by peer")
	errClosed  = errors.New("connection is closed")
	errTime    = errors.New("no answer in time")
)

// Conn is one connection.
type Conn struct {
	n                *Net
	number           int
	dialer, acceptor nemesis.Party
	lost             bool // reset: nothing of it arrives any more
	ends             [2]end
	lanes            [2]*lane // [0] from the dialler, [1] back
}

// end is one end of a connection: [0] the dialler's, [1] the acceptor's.
type end struct {
	process *Process
	open    bool
	last    time.Duration // the latest arrival promised at the other end
	message func(any)
	closed  func(error)
}

func side(dialer bool) int {
	if dialer {
		return 0
	}
	return 1
}

// Number tells connections apart.
func (c *Conn) Number() int { return c.number }

// Dialer is who opened it.
func (c *Conn) Dialer() nemesis.Party { return c.dialer }

// transmit lets something arrive at the other end after everything that was sent before it.
func (c *Conn) transmit(forward bool, deliver func()) {
	from, to := &c.ends[side(forward)], &c.ends[side(!forward)]
	l := c.lanes[side(forward)]
	if l.holds > 0 {
		l.caught++
		l.queue = append(l.queue, held{c, forward, deliver})
		return
	}
	l.passed++
	at := max(c.n.w.now+l.far+c.n.draw(), from.last)
	from.last = at
	if to.process == nil {
		return
	}
	c.n.w.After(at-c.n.w.now, to.process, func() {
		if !c.lost {
			deliver()
		}
	})
}

func (n *Net) draw() time.Duration {
	d := n.delay.Least
	if n.delay.Most > n.delay.Least {
		d += time.Duration(n.rand.Int64N(int64(n.delay.Most - n.delay.Least)))
	}
	if n.delay.SlowEvery > 0 && n.rand.IntN(n.delay.SlowEvery) == 0 {
		d += time.Duration(n.rand.Int64N(int64(n.delay.Slow) + 1))
	}
	return d
}

// send a message from one end. It is lost without a word if the connection is at an end.
func (c *Conn) send(dialer bool, message any) {
	if !c.ends[side(dialer)].open {
		return
	}
	c.transmit(dialer, func() {
		if to := &c.ends[side(!dialer)]; to.open && to.message != nil {
			to.message(message)
		}
	})
}

// Reply sends a message from the acceptor's end.
func (c *Conn) Reply(message any) { c.send(false, message) }

// Answerable tells whether the acceptor's end is open.
func (c *Conn) Answerable() bool { return c.ends[1].open }

// Refuse closes the acceptor's end, as a broker does with a client that it cannot answer.
func (c *Conn) Refuse() { c.close(false) }

// close ends one end and tells the other.
func (c *Conn) close(dialer bool) {
	if e := &c.ends[side(dialer)]; e.open {
		c.end(dialer, errClosed)
		c.transmit(dialer, func() { c.end(!dialer, errReset) })
	}
}

// breakOff is close by death: nobody is left to be told at this end.
func (c *Conn) breakOff(dialer bool) {
	if e := &c.ends[side(dialer)]; e.open {
		e.open, e.closed, e.message = false, nil, nil
		c.transmit(dialer, func() { c.end(!dialer, errReset) })
	}
}

// end marks one end as closed.
func (c *Conn) end(dialer bool, why error) {
	e := &c.ends[side(dialer)]
	if !e.open {
		return
	}
	e.open = false
	party := c.acceptor
	if dialer {
		party = c.dialer
	}
	h := c.n.host(party)
	for i, x := range h.conns {
		if x == c {
			h.conns = append(h.conns[:i], h.conns[i+1:]...)
			break
		}
	}
	if f := e.closed; f != nil {
		e.closed = nil
		f(why)
	}
}

// Link is the dialler's end of a connection, for a task: one request at a time with Send and Await, or several with Post and Next.
type Link struct {
	c       *Conn
	news    *Signal
	answers []any // that came and were not taken
	failed  error
}

// Dial connects to a party. news, which may be shared, is broadcast when an answer has come or the connection is at an end. The error tells that nothing
// was sent.
func (n *Net) Dial(t *Task, from, to nemesis.Party, limit time.Duration, news *Signal) (*Link, error) {
	n.number++
	c := &Conn{n: n, number: n.number, dialer: from, acceptor: to}
	for i := range c.lanes {
		c.lanes[i] = n.lane(nemesis.Lane{Dialer: from, Acceptor: to, Back: i == 1})
	}
	l := &Link{c: c, news: news}
	target := n.host(to)
	c.ends[0] = end{process: t.p, open: true, message: func(m any) { l.answers = append(l.answers, m); l.news.Broadcast() }, closed: func(err error) { l.failed = err; l.news.Broadcast() }}
	if target.process == nil {
		// The machine is there, the port is not.
		t.Sleep(2 * n.draw())
		return nil, errRefused
	}
	n.host(from).conns = append(n.host(from).conns, c)
	c.ends[1].process = target.process
	established := false
	c.transmit(true, func() {
		c.ends[1].open = true
		target.conns = append(target.conns, c)
		c.ends[1].message = target.accept(c)
		c.transmit(false, func() { established = true; news.Broadcast() })
	})
	deadline := n.w.now + limit
	for !established && l.failed == nil && n.w.now < deadline {
		t.Wait(news, deadline-n.w.now)
	}
	if !established {
		l.Close()
		if l.failed != nil && l.failed != errClosed { //nolint:errorlint // the very value
			return nil, l.failed
		}
		return nil, errTime
	}
	return l, nil
}

// Send sends a request; Answer tells what came.
func (l *Link) Send(message any) {
	l.answers = l.answers[:0]
	l.c.send(true, message)
}

// Post sends a request behind others that are not answered yet.
func (l *Link) Post(message any) { l.c.send(true, message) }

// Next waits for the next answer, and takes it.
func (l *Link) Next(t *Task, limit time.Duration) (any, error) {
	m, err := l.Await(t, limit)
	if m != nil {
		l.answers = l.answers[1:]
	}
	return m, err
}

// Answer is what has come since the last Send: an answer, an error, or neither yet.
func (l *Link) Answer() (any, error) {
	if len(l.answers) > 0 {
		return l.answers[0], nil
	}
	return nil, l.failed
}

// Await waits for the answer to what was sent, until limit has passed.
func (l *Link) Await(t *Task, limit time.Duration) (any, error) {
	for deadline := l.c.n.w.now + limit; ; {
		if m, err := l.Answer(); m != nil || err != nil {
			return m, err
		}
		left := deadline - l.c.n.w.now
		if left <= 0 {
			return nil, errTime
		}
		t.Wait(l.news, left)
	}
}

// Open tells whether it can still be used.
func (l *Link) Open() bool { return l.failed == nil }

// Number tells connections apart.
func (l *Link) Number() int { return l.c.number }

// Close ends the connection.
func (l *Link) Close() {
	l.c.close(true)
}
