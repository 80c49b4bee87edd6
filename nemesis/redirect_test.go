package nemesis

import (
	"encoding/binary"
	"io"
	"net"
	"testing"

	"ackproof/nemesis/seccomp"
	"ackproof/systems"
)

// dials asks the node to ping the address, and tells whether it could.
func dials(t *testing.T, n *child, to string) bool {
	t.Helper()
	conn, err := net.Dial("tcp", n.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	out := binary.BigEndian.AppendUint32(nil, uint32(4+len(to)))
	if _, err := conn.Write(append(append(out, "dial"...), to...)); err != nil {
		t.Fatal(err)
	}
	in := make([]byte, 8)
	if _, err := io.ReadFull(conn, in); err != nil {
		t.Fatal(err)
	}
	return string(in[4:]) == "good"
}

// Nodes that dial each other where they really listen are cut off from each other all the same.
func TestNodesThatDialRealAddressesAreCutOff(t *testing.T) {
	if ok, why := seccomp.Available(); !ok {
		t.Skip(why)
	}
	c := newCluster(t, 3, 1)
	proxies := NewProxies()
	b := WithRedirection(proxies)
	t.Cleanup(func() { b.Close() })
	if !systems.IsTransparent(b.Network()) {
		t.Error("the network is not transparent")
	}
	for _, from := range c.nodes {
		for _, to := range c.nodes {
			if from == to {
				continue
			}
			if at, err := b.Network().NodeLink(from.id, to.id, to.addr); err != nil || at != to.addr {
				t.Fatalf("link %s, %v, expected %s", at, err, to.addr)
			}
		}
		from.host = b
		from.Kill()
		if err := from.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	lane := Lane{Dialer: NodeParty(1), Acceptor: NodeParty(2)}
	one, two := c.nodes[0], c.nodes[1]
	if !dials(t, one, two.addr) || b.Network().Count(lane).Passed == 0 {
		t.Errorf("n1 reaches n2 with %+v bytes through the proxy", b.Network().Count(lane))
	}
	inTheCut := true
	r := &Runner{System: c, Backend: b, Event: func(s FaultStep) {
		if s.Step == Began {
			inTheCut = dials(t, one, two.addr) || dials(t, two, one.addr)
			if !dials(t, two, c.nodes[2].addr) {
				t.Error("n2 does not reach n3, which nobody cut it off from")
			}
		}
	}}
	result := r.Run(t.Context(), Schedule{Version: 1, Faults: []Fault{{Kind: Partition, ForMS: 1500, Target: Target{Role: RoleNode, Node: 1}, Cut: Cut{Shape: Isolate}}}})[0]
	if !result.Effective || inTheCut {
		t.Errorf("%+v; reached through the cut: %t", result, inTheCut)
	}
	if !dials(t, one, two.addr) {
		t.Error("n1 does not reach n2 after the heal")
	}
}

func TestOneSupervisorTrapsAndRedirects(t *testing.T) {
	b := WithCalls(WithRedirection(NewProxies()))
	defer b.Close()
	if len(b.traps) == 0 || b.doors == nil {
		t.Errorf("traps %v, doors %v, expected both", b.traps, b.doors)
	}
	if _, err := b.Network().NodeLink(1, 2, "192.0.2.1:9092"); err == nil {
		t.Error("an address that no proxy is at can be redirected")
	}
}
