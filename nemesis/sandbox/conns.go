package sandbox

import (
	"net/netip"
	"sync"
)

// conns are the connections that the switch has seen begin and not end. It follows them in order to end them: an RST is believed only with the very sequence
// number that the receiver expects next (RFC 5961), and that is what the receiver itself acknowledged last.
type conns struct {
	mu   sync.Mutex
	open map[connection]*track
}

// connection is named by its ends.
type connection struct{ dialer, acceptor netip.AddrPort }

// track is what is known of one. Index 0 is the dialer, 1 the acceptor.
type track struct {
	acked [2]uint32 // what the end expects next, as far as it has said
	spoke [2]bool   // it has acknowledged something
	ended [2]bool   // it has sent its FIN
	dead  bool      // ended by the nemesis: whatever either end still sends is answered with an RST
}

// see notes a segment. dead says that the connection is not there any more, and seq with which sequence number the sender has to be told.
func (c *conns) see(source, destination netip.Addr, t segment) (seq uint32, dead bool) {
	from, to := netip.AddrPortFrom(source, t.from()), netip.AddrPortFrom(destination, t.to())
	key, end := connection{from, to}, 0
	if isListener(t.from()) && !isListener(t.to()) {
		key, end = connection{to, from}, 1
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.has(flagSYN) && !t.has(flagACK) {
		c.open[key] = &track{}
		return 0, false
	}
	k := c.open[key]
	if k == nil {
		return 0, false
	}
	if t.has(flagACK) {
		k.acked[end], k.spoke[end] = t.ack(), true
	}
	switch {
	case k.dead:
		return t.ack(), t.has(flagACK) && !t.has(flagRST)
	case t.has(flagRST):
		delete(c.open, key)
	case t.has(flagFIN):
		if k.ended[end] = true; k.ended[1-end] {
			delete(c.open, key)
		}
	}
	return 0, false
}

// kill ends every connection between the two and gives the packets that tell it to their ends. An end that has not acknowledged everything that it received yet
// does not believe its packet but asks back, and see has the answer.
func (c *conns) kill(a, b netip.Addr) (tell []packet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, k := range c.open {
		d, e := key.dialer.Addr(), key.acceptor.Addr()
		if d != a && d != b || e != a && e != b || !k.spoke[0] && !k.spoke[1] {
			continue
		}
		k.dead = true
		if k.spoke[0] {
			tell = append(tell, resetPacket(key.acceptor, key.dialer, k.acked[0]))
		}
		if k.spoke[1] {
			tell = append(tell, resetPacket(key.dialer, key.acceptor, k.acked[1]))
		}
	}
	return tell
}
