package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"sync"

	"ackproof/nemesis"
	"ackproof/systems"
)

// Backend is the sandbox as the ground of a run. It implements nemesis.Backend.
type Backend struct {
	fabric *fabric
	net    *network

	mu     sync.Mutex
	places map[int]*place
	closed bool
}

var _ nemesis.Backend = (*Backend)(nil)

// New makes the back end. The process must have entered the sandbox.
func New() (*Backend, error) {
	if !Inside() {
		return nil, errors.New("make the sandbox: the process is outside, expected that it has entered")
	}
	home, err := newLink("ackproof", harnessAddr)
	if err != nil {
		return nil, fmt.Errorf("make the sandbox: the link of the harness: %w", err)
	}
	b := &Backend{fabric: newFabric(home), places: map[int]*place{}}
	b.net = &network{b: b}
	return b, nil
}

// Name implements nemesis.Backend.
func (*Backend) Name() string { return "sandbox" }

// Network implements nemesis.Backend.
func (b *Backend) Network() nemesis.Network { return b.net }

// Machine implements nemesis.Backend.
func (*Backend) Machine(n systems.Node) nemesis.Machine { return nemesis.Machine{Process: n.PID()} }

// Can implements nemesis.Backend.
func (*Backend) Can(k nemesis.Kind) (ok bool, how string) {
	if ok, how, known := nemesis.CanToProcess(k); known {
		return ok, how
	}
	switch k {
	case nemesis.Kill:
		return true, "SIGKILL of the node's process namespace, and a restart with the same address and data"
	case nemesis.Pause:
		return true, "SIGSTOP and SIGCONT"
	case nemesis.Partition:
		return true, "the packet switch drops what goes that way"
	case nemesis.MachineDeath:
		return true, "the packet switch drops all packets of the node, then SIGKILL"
	case nemesis.PacketDelay, nemesis.PacketLoss, nemesis.PacketDuplicate, nemesis.PacketReorder, nemesis.PacketCorrupt, nemesis.LinkRate, nemesis.LinkClog:
		return true, "the packet switch treats the packets of each link and direction"
	}
	return false, nemesis.Cannot(k)
}

// Address implements systems.Host: the node has an address, and each of its listeners a port.
func (b *Backend) Address(node, nth int) (string, error) {
	if node < 1 || node > maxNode || nth < 0 || nth >= portCount {
		return "", fmt.Errorf("find an address for listener %d of n%d: expected nodes from 1 to %d with up to %d listeners", nth, node, maxNode, portCount)
	}
	if _, err := b.place(node); err != nil {
		return "", err
	}
	return net.JoinHostPort(addrOf(nemesis.NodeParty(node)).String(), strconv.Itoa(firstPort+nth)), nil
}

// place finds or makes the namespace of the node.
func (b *Backend) place(node int) (*place, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, fmt.Errorf("make a place for n%d: the sandbox is closed", node)
	}
	p := b.places[node]
	if p == nil {
		var err error
		if p, err = newPlace(addrOf(nemesis.NodeParty(node))); err != nil {
			return nil, fmt.Errorf("make a place for n%d: %w", node, err)
		}
		b.places[node] = p
		b.fabric.plug(node, p.link)
	}
	return p, nil
}

// DataDir implements systems.Host.
func (b *Backend) DataDir(_ int, want string) (string, error) {
	if err := os.MkdirAll(want, 0o755); err != nil {
		return "", fmt.Errorf("make the data folder: %w", err)
	}
	return want, nil
}

// Start implements systems.Host.
func (b *Backend) Start(node int, cmd *exec.Cmd) error {
	p, err := b.place(node)
	if err != nil {
		return err
	}
	cmd.Env = withoutMarker(cmd.Env)
	return p.start(cmd)
}

// Close implements nemesis.Backend.
func (b *Backend) Close() error {
	b.fabric.close()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	var errs []error
	for _, p := range b.places {
		errs = append(errs, p.close())
	}
	clear(b.places)
	return errors.Join(errs...)
}

// network is the packet switch as the nemesis holds it. It implements nemesis.Network: everybody dials everybody by the address where the other really listens.
//
// What differs from the portable network: what is held is lost, as on a network of machines, and TCP sends it again; a dial through a held link hangs; and a node that
// is down refuses, since its machine lives.
type network struct {
	b     *Backend
	links nemesis.Links
}

// Transparent implements systems.Transparent.
func (n *network) Transparent() bool { return true }

// NodeLink implements systems.Network.
func (n *network) NodeLink(from, to int, target string) (string, error) {
	return n.link(nemesis.NodeParty(from), nemesis.NodeParty(to), target)
}

// ClientLink implements systems.Network.
func (n *network) ClientLink(client, to int, target string) (string, error) {
	if client < 0 || client > maxClient {
		return "", fmt.Errorf("link c%d to n%d: expected clients from 0 to %d", client, to, maxClient)
	}
	return n.link(nemesis.ClientParty(client), nemesis.NodeParty(to), target)
}

func (n *network) link(dialer, acceptor nemesis.Party, target string) (string, error) {
	at, err := netip.ParseAddrPort(target)
	if err != nil || at.Addr() != addrOf(acceptor) || !isListener(at.Port()) {
		return "", fmt.Errorf("link %v to %v: the target is %s, expected an address that the sandbox gave to that node", dialer, acceptor, target)
	}
	n.links.Add(dialer, acceptor, target, target)
	var lanes []nemesis.Lane
	for _, plane := range []nemesis.Plane{"", planeOf(at.Port())} {
		lanes = append(lanes, nemesis.Lane{Dialer: dialer, Acceptor: acceptor, Plane: plane}, nemesis.Lane{Dialer: dialer, Acceptor: acceptor, Back: true, Plane: plane})
	}
	n.b.fabric.each(lanes, func(*lane) {}) // they count from now on
	return target, nil
}

// ClientDialer implements systems.Network: who dials is known by the address that it dials from.
func (n *network) ClientDialer(client int) net.Dialer {
	return net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(addrOf(nemesis.ClientParty(client)), 0))}
}

// Hold implements nemesis.Network.
func (n *network) Hold(lanes ...nemesis.Lane) { n.b.fabric.hold(lanes) }

// Release implements nemesis.Network.
func (n *network) Release(lanes ...nemesis.Lane) { n.b.fabric.release(lanes) }

// ReleaseAll implements nemesis.Network.
func (n *network) ReleaseAll() { n.b.fabric.releaseAll() }

// Reset implements nemesis.Network.
func (n *network) Reset(a, b nemesis.Party) { n.b.fabric.reset(addrOf(a), addrOf(b)) }

// Shape implements nemesis.Shaper.
func (n *network) Shape(t nemesis.Treatment, lanes ...nemesis.Lane) (end func() nemesis.Treated) {
	return n.b.fabric.shape(t, lanes)
}

// Count implements nemesis.Network. What is held counts again each time that TCP sends it again.
func (n *network) Count(l nemesis.Lane) nemesis.Count {
	c, _ := n.b.fabric.look(l)
	return c
}

// Held implements nemesis.Network.
func (n *network) Held(l nemesis.Lane) bool {
	_, held := n.b.fabric.look(l)
	return held
}

// Clients implements nemesis.Network.
func (n *network) Clients() []int { return n.links.Clients() }

// Dialers implements nemesis.Network.
func (n *network) Dialers(acceptor nemesis.Party) []nemesis.Party { return n.links.Dialers(acceptor) }

// Linked implements nemesis.Planes.
func (n *network) Linked(dialer, acceptor nemesis.Party, plane nemesis.Plane) bool {
	return n.links.AddressOf(dialer, acceptor, onPlane(plane)) != ""
}

// onPlane tells whether a target is a listener of the plane.
func onPlane(plane nemesis.Plane) func(target string) bool {
	return func(target string) bool {
		at, err := netip.ParseAddrPort(target)
		return err == nil && planeOf(at.Port()) == plane
	}
}

// DialPlane implements nemesis.Planes.
func (n *network) DialPlane(ctx context.Context, dialer, acceptor nemesis.Party, plane nemesis.Plane) (net.Conn, error) {
	return n.dial(ctx, dialer, acceptor, n.links.AddressOf(dialer, acceptor, onPlane(plane)))
}

// Dial implements nemesis.Network.
func (n *network) Dial(ctx context.Context, dialer, acceptor nemesis.Party) (net.Conn, error) {
	return n.dial(ctx, dialer, acceptor, n.links.Address(dialer, acceptor))
}

func (n *network) dial(ctx context.Context, dialer, acceptor nemesis.Party, at string) (c net.Conn, err error) {
	if at == "" {
		return nil, fmt.Errorf("dial %v as %v: they have no link", acceptor, dialer)
	}
	if dialer.Client {
		d := n.ClientDialer(dialer.ID)
		return d.DialContext(ctx, "tcp", at)
	}
	p, err := n.b.place(dialer.ID)
	if err != nil {
		return nil, err
	}
	err = onThread(func() error { // a socket stays in the namespace in which it was made
		if err := p.enter(); err != nil {
			return err
		}
		var d net.Dialer
		c, err = d.DialContext(ctx, "tcp", at)
		return err
	})
	return c, err
}

// Close implements nemesis.Network.
func (n *network) Close() error { n.b.fabric.close(); return nil }
