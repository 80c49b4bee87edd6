package nemesis

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// Party is one end of a connection: a node of the system or a client of the test.
type Party struct {
	Client bool
	ID     int
}

// NodeParty is the node with that id.
func NodeParty(id int) Party { return Party{ID: id} }

// ClientParty is the client with that number.
func ClientParty(id int) Party { return Party{Client: true, ID: id} }

// String gives "n1" or "c1".
func (p Party) String() string {
	if p.Client {
		return fmt.Sprintf("c%d", p.ID)
	}
	return fmt.Sprintf("n%d", p.ID)
}

// Lane is one direction of all connections that Dialer opens to Acceptor. Bytes from X to Y travel on two lanes: forward on what X
// dialled, back on what Y dialled. A cut is a set of lanes.
type Lane struct {
	Dialer, Acceptor Party
	Back             bool // from the acceptor to the dialer
	// Plane narrows the lane down to the connections of one plane; "": all of them. A lane and those of its planes are held each on its own.
	Plane Plane
}

// Plane is what connections are for, by the listener that they were opened to.
type Plane string

// The planes, by the number that a system gives when it asks its host for the listener's address.
const (
	PlaneData    Plane = "data"    // listener 0: clients, and the replication between nodes
	PlaneControl Plane = "control" // listener 1: the controllers of a system that gives them a listener of their own
)

// Planes is a network that tells planes apart. Not every network does.
type Planes interface {
	// Linked tells whether the dialer has a link to the acceptor's listener of that plane, and DialPlane dials it as Network.Dial does.
	Linked(dialer, acceptor Party, plane Plane) bool
	DialPlane(ctx context.Context, dialer, acceptor Party, plane Plane) (net.Conn, error)
}

// From is the sender of the lane's bytes.
func (l Lane) From() Party {
	if l.Back {
		return l.Acceptor
	}
	return l.Dialer
}

// To is the receiver of the lane's bytes.
func (l Lane) To() Party {
	if l.Back {
		return l.Dialer
	}
	return l.Acceptor
}

// reverse is the lane of the same connections in the other direction.
func (l Lane) reverse() Lane {
	l.Back = !l.Back
	return l
}

// Flow is the two lanes on which bytes travel from one party to another.
func Flow(from, to Party) []Lane {
	return []Lane{{Dialer: from, Acceptor: to}, {Dialer: to, Acceptor: from, Back: true}}
}

// Mesh is the network between all parties of a run: one stream proxy on loopback per ordered pair of nodes and per client and node.
// It implements systems.Network. Lanes can be held: the bytes wait, in order and complete, and flow on at the release; nothing is ever
// discarded from a connection that goes on, because no network does that to a stream.
//
// What differs from a network of machines: a dial through a held link is accepted by the proxy and then hangs (a machine's dial would
// hang already); the end of a connection (its FIN or RST) waits behind the bytes of a held lane, as it would; a dial of a node that is
// down is accepted and reset at once (a machine's would be refused).
type Mesh struct {
	mu     sync.Mutex
	lanes  map[Lane]*lane
	doors  map[link]*proxy
	links  Links
	closed bool
}

// NewMesh returns a mesh without links; they come into being when the system and the clients ask for addresses.
func NewMesh() *Mesh {
	return &Mesh{lanes: map[Lane]*lane{}, doors: map[link]*proxy{}}
}

// NodeLink implements systems.Network.
func (m *Mesh) NodeLink(from, to int, target string) (string, error) {
	return m.link(NodeParty(from), NodeParty(to), target)
}

// ClientLink implements systems.Network. Any number of clients may ask; a client's number is what Cut.Clients calls it.
func (m *Mesh) ClientLink(client, to int, target string) (string, error) {
	return m.link(ClientParty(client), NodeParty(to), target)
}

// ClientDialer implements systems.Network: which client dials is known by the address that it dials.
func (m *Mesh) ClientDialer(int) net.Dialer { return net.Dialer{} }

func (m *Mesh) link(dialer, acceptor Party, target string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return "", fmt.Errorf("link %v to %v: the mesh is closed", dialer, acceptor)
	}
	d := link{dialer, acceptor, target}
	if p := m.doors[d]; p != nil {
		return p.addr(), nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("link %v to %v: listen on loopback: %w", dialer, acceptor, err)
	}
	p := newProxy(l, target, m.lane(Lane{Dialer: dialer, Acceptor: acceptor}), m.lane(Lane{Dialer: dialer, Acceptor: acceptor, Back: true}))
	m.doors[d] = p
	m.links.Add(dialer, acceptor, target, p.addr())
	return p.addr(), nil
}

// lane finds or makes the lane; m.mu is held.
func (m *Mesh) lane(k Lane) *lane {
	l := m.lanes[k]
	if l == nil {
		l = newLane()
		m.lanes[k] = l
	}
	return l
}

// Hold stops the bytes on the lanes. Holds add up: a lane flows again when every Hold has had its Release. A lane without a link yet is
// held from its birth.
func (m *Mesh) Hold(lanes ...Lane) { m.each(lanes, (*lane).hold) }

// Release lets the bytes flow again. With more releases than holds the surplus is ignored.
func (m *Mesh) Release(lanes ...Lane) { m.each(lanes, (*lane).release) }

// ReleaseAll ends every hold of every lane.
func (m *Mesh) ReleaseAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.lanes {
		l.free()
	}
}

func (m *Mesh) each(lanes []Lane, do func(*lane)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range lanes {
		do(m.lane(k))
	}
}

// Reset closes, with RST to both ends, every connection that is open between the two parties, whoever dialled it.
func (m *Mesh) Reset(a, b Party) {
	m.mu.Lock()
	var hit []*proxy
	for d, p := range m.doors {
		if d.dialer == a && d.acceptor == b || d.dialer == b && d.acceptor == a {
			hit = append(hit, p)
		}
	}
	m.mu.Unlock()
	for _, p := range hit {
		p.reset()
	}
}

// Count is what a lane has carried since the mesh began, in bytes.
type Count struct {
	Passed int64 // written to the receiver
	Held   int64 // arrived at the proxy while the lane was held, and waited there
}

// Count of a lane.
func (m *Mesh) Count(k Lane) Count {
	m.mu.Lock()
	l := m.lanes[k]
	m.mu.Unlock()
	if l == nil {
		return Count{}
	}
	return Count{Passed: l.passed.Load(), Held: l.waited.Load()}
}

// Held tells whether the lane is held now.
func (m *Mesh) Held(k Lane) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.lanes[k]
	return l != nil && l.holds.Load() > 0
}

// Clients implements Network.
func (m *Mesh) Clients() []int { return m.links.Clients() }

// Dialers implements Network.
func (m *Mesh) Dialers(acceptor Party) []Party { return m.links.Dialers(acceptor) }

// Dial connects as the dialer to the acceptor, over the link that they have.
func (m *Mesh) Dial(ctx context.Context, dialer, acceptor Party) (net.Conn, error) {
	at := m.links.Address(dialer, acceptor)
	if at == "" {
		return nil, fmt.Errorf("dial %v as %v: they have no link", acceptor, dialer)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", at)
}

// Close ends all links and connections and returns when nothing of the mesh runs any more. It may be called twice.
func (m *Mesh) Close() error {
	m.mu.Lock()
	m.closed = true
	doors := m.doors
	m.doors = map[link]*proxy{}
	m.mu.Unlock()
	for _, p := range doors {
		p.stop()
	}
	m.ReleaseAll()
	for _, p := range doors {
		p.running.Wait()
	}
	return nil
}
