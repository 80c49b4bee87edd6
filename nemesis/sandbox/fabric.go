package sandbox

import (
	"io"
	"net/netip"
	"sync"
	"sync/atomic"

	"ackproof/nemesis"
)

// fabric is the packet switch between all parties. It carries every packet that comes from the link of one to the link of the other, or does not: that is where
// the faults of the network act. A packet belongs to a lane by the port that it comes from or goes to: whoever owns the listening one was dialled.
//
// Once Hold has returned, no packet passes that lane any more, also none that was on its way: packets are carried under the read lock, and the lanes are changed
// under the write lock.
type fabric struct {
	mu     sync.RWMutex
	lanes  map[nemesis.Lane]*lane
	nodes  map[int]*port
	home   *port // of the clients and of the harness
	closed bool

	conns   conns
	queue   queue
	running sync.WaitGroup
}

// port is where a link ends at the switch.
type port struct {
	link io.ReadWriteCloser // one packet per Read and Write
	node int                // 0: home
}

// lane is what the switch knows of one lane. holds is guarded by the fabric's mu.
type lane struct {
	holds   int
	passed  atomic.Int64 // bytes
	held    atomic.Int64
	packets atomic.Int64 // that passed

	shapings []*shaping // guarded by the fabric's mu
}

func newFabric(home io.ReadWriteCloser) *fabric {
	f := &fabric{lanes: map[nemesis.Lane]*lane{}, nodes: map[int]*port{}, home: &port{link: home}}
	f.conns.open = map[connection]*track{}
	f.queue.latest = map[path]uint64{}
	f.queue.wake, f.queue.ended = make(chan struct{}, 1), make(chan struct{})
	f.running.Go(f.carryLate)
	f.running.Go(func() { f.carryFrom(f.home) })
	return f
}

// plug connects the link of a node. The fabric closes it.
func (f *fabric) plug(node int, link io.ReadWriteCloser) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		link.Close()
		return
	}
	p := &port{link: link, node: node}
	f.nodes[node] = p
	f.running.Go(func() { f.carryFrom(p) })
}

// close ends all links and returns when nothing is carried any more.
func (f *fabric) close() {
	f.mu.Lock()
	ports := []*port{f.home}
	for _, p := range f.nodes {
		ports = append(ports, p)
	}
	if f.closed {
		ports = nil
	} else {
		close(f.queue.ended)
	}
	f.closed = true
	f.mu.Unlock()
	var all sync.WaitGroup
	for _, p := range ports {
		all.Go(func() { p.link.Close() }) // the kernel takes a while over each
	}
	all.Wait()
	f.running.Wait()
}

// carryFrom carries what comes from one link, until it is closed.
func (f *fabric) carryFrom(p *port) {
	buf := make([]byte, 1<<16)
	for {
		n, err := p.link.Read(buf)
		if err != nil {
			return
		}
		if q := packet(buf[:n]); q.whole() { // anything else is nobody's: a kernel looks for IPv6 neighbours when a link comes up
			f.carry(p, q)
		}
	}
}

// carry brings one packet where it wants to go, if nothing forbids it.
func (f *fabric) carry(from *port, p packet) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	source, destination := p.source(), p.destination()
	if !f.lives(source, from) {
		return // nobody may speak for others: a fault acts on whom it names
	}
	a, known := partyAt(source)
	b, alsoKnown := partyAt(destination)
	if !known || !alsoKnown { // the harness is one of them, or nobody
		f.deliver(path{}, p)
		return
	}
	way := f.pathOf(p, a, b)
	if way.stops(p) {
		return
	}
	if t := p.tcp(); t != nil {
		if seq, dead := f.conns.see(source, destination, t); dead {
			from.link.Write(resetPacket(netip.AddrPortFrom(destination, t.to()), netip.AddrPortFrom(source, t.from()), seq))
			return
		}
	}
	if way.shaped() {
		f.treat(way, p)
	} else {
		f.deliver(way, p)
	}
}

// deliver hands a packet over, unless its way is cut now; f.mu is held.
func (f *fabric) deliver(way path, p packet) {
	if way.stops(p) {
		return
	}
	if to := f.portOf(p.destination()); to != nil {
		to.link.Write(p) // a link that takes no more loses the packet, as links do
		way.passed(p)
	}
}

// path is the lanes that a packet goes on: that of its connection, and that of the plane of it. nil stands for one that nobody has asked for, held or treated.
type path [2]*lane

// stops tells whether a lane is held, and counts what waits there in vain.
func (way path) stops(p packet) bool {
	stopped := false
	for _, l := range way {
		if l != nil && l.holds > 0 {
			l.held.Add(p.bytes())
			stopped = true
		}
	}
	return stopped
}

func (way path) passed(p packet) {
	for _, l := range way {
		if l != nil {
			l.passed.Add(p.bytes())
			l.packets.Add(1)
		}
	}
}

func (way path) shaped() bool {
	return way[0] != nil && len(way[0].shapings) > 0 || way[1] != nil && len(way[1].shapings) > 0
}

// pathOf is the way of a packet from a to b. What belongs to no connection with a listener (an ICMP message, say) goes on both lanes on which bytes travel from a
// to b.
func (f *fabric) pathOf(p packet, a, b nemesis.Party) path {
	t := p.tcp()
	var k nemesis.Lane
	var plane nemesis.Plane
	switch {
	case t != nil && isListener(t.to()):
		k, plane = nemesis.Lane{Dialer: a, Acceptor: b}, planeOf(t.to())
	case t != nil && isListener(t.from()):
		k, plane = nemesis.Lane{Dialer: b, Acceptor: a, Back: true}, planeOf(t.from())
	default:
		flow := nemesis.Flow(a, b)
		return path{f.lanes[flow[0]], f.lanes[flow[1]]}
	}
	way := path{f.lanes[k]}
	if k.Plane = plane; plane != "" {
		way[1] = f.lanes[k]
	}
	return way
}

// lives tells whether the address may send from the port.
func (f *fabric) lives(a netip.Addr, at *port) bool { return f.portOf(a) == at }

// portOf is where the address is reached, nil if nowhere.
func (f *fabric) portOf(a netip.Addr) *port {
	if a == harnessAddr {
		return f.home
	}
	p, known := partyAt(a)
	switch {
	case !known:
		return nil
	case p.Client:
		return f.home
	}
	return f.nodes[p.ID]
}

// lane finds or makes the lane; f.mu is held for writing.
func (f *fabric) lane(k nemesis.Lane) *lane {
	l := f.lanes[k]
	if l == nil {
		l = &lane{}
		f.lanes[k] = l
	}
	return l
}

func (f *fabric) each(lanes []nemesis.Lane, do func(*lane)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range lanes {
		do(f.lane(k))
	}
}

func (f *fabric) hold(lanes []nemesis.Lane) { f.each(lanes, func(l *lane) { l.holds++ }) }

func (f *fabric) release(lanes []nemesis.Lane) {
	f.each(lanes, func(l *lane) { l.holds = max(0, l.holds-1) })
}

func (f *fabric) releaseAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.lanes {
		l.holds = 0
	}
}

// look at a lane, if it has been used or held.
func (f *fabric) look(k nemesis.Lane) (count nemesis.Count, held bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	l := f.lanes[k]
	if l == nil {
		return count, false
	}
	return nemesis.Count{Passed: l.passed.Load(), Held: l.held.Load()}, l.holds > 0
}

// reset ends every connection that is open between the two, with an RST to both ends.
func (f *fabric) reset(a, b netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.conns.kill(a, b) {
		if to := f.portOf(p.destination()); to != nil {
			to.link.Write(p)
		}
	}
}
