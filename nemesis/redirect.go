package nemesis

import (
	"fmt"
	"net/netip"
	"sync"
)

// WithRedirection leads what nodes connect to through the proxies of the back end's network, without telling the nodes: they go on dialling the addresses where the others
// really listen. It is for systems whose nodes tell each other one address for everybody, on a back end whose network is made of addresses of its own on loopback, such as Proxies.
func WithRedirection(within Backend) *Calls {
	c := supervised(within)
	c.doors = &doors{Network: c.Backend.Network(), ports: map[door]uint16{}}
	return c
}

// Network implements Backend.
func (c *Calls) Network() Network {
	if c.doors != nil {
		return c.doors
	}
	return c.Backend.Network()
}

// doors is the network of a back end whose nodes are redirected.
type doors struct {
	Network

	mu    sync.Mutex
	ports map[door]uint16 // of the proxy
}

// door is what one node dials.
type door struct {
	from int
	to   netip.AddrPort
}

// Transparent implements systems.Transparent.
func (*doors) Transparent() bool { return true }

// NodeLink implements systems.Network. The answer is the target: the node dials it and is led through the proxy.
func (d *doors) NodeLink(from, to int, target string) (string, error) {
	at, err := d.Network.NodeLink(from, to, target)
	if err != nil {
		return "", err
	}
	proxy, err := netip.ParseAddrPort(at)
	if err != nil {
		return "", fmt.Errorf("redirect n%d to n%d: the proxy is at %q, expected an address and a port: %w", from, to, at, err)
	}
	real, err := netip.ParseAddrPort(target)
	if err != nil || real.Addr() != proxy.Addr() {
		return "", fmt.Errorf("redirect n%d to n%d: the node listens at %q and its proxy at %q, expected the same address with two ports", from, to, target, at)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ports[door{from, real}] = proxy.Port()
	return target, nil
}

// of is the port to which the node's connect goes, 0 for the one that it dials.
func (d *doors) of(node int, to netip.AddrPort) uint16 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ports[door{node, to}]
}
