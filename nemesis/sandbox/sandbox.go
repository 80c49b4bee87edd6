// Package sandbox is the back end that holds the machine under the nodes without root: the harness runs again inside user, mount, process and network namespaces
// of its own, every node has a network namespace with one link to a packet switch in the harness and a process namespace that dies as a whole, and nothing of all
// that outlives the harness, however it ends. It knows systems only as hosts of processes, and nothing of workloads or checkers. Start reading at Enter, then New.
//
// It is there on Linux only; elsewhere every call says so.
package sandbox

import (
	"net/netip"

	"ackproof/nemesis"
)

// The addresses. All of them live in namespaces of the sandbox, so that they collide with nobody's.
var (
	prefix      = netip.MustParsePrefix("10.77.0.0/16")   // of all parties
	harnessAddr = netip.MustParseAddr("10.77.1.1")        // of the harness itself, on whose packets no fault acts
	clientNet   = netip.MustParsePrefix("10.77.128.0/17") // of the clients
)

const (
	maxNode   = 254
	maxClient = 1<<15 - 3
	// The nodes' listeners. They lie below every range from which kernels take ports for outgoing connections, so that the switch can tell who dialled whom.
	firstPort = 9092
	portCount = 16
	// mtuBytes is the largest packet of a link, near the largest that IPv4 has: fewer packets to carry.
	mtuBytes = 65520
)

// addrOf is where the party lives.
func addrOf(p nemesis.Party) netip.Addr {
	if p.Client {
		n := p.ID + 1 // the first address of a network belongs to nobody
		return netip.AddrFrom4([4]byte{10, 77, 128 | byte(n>>8), byte(n)})
	}
	return netip.AddrFrom4([4]byte{10, 77, 0, byte(p.ID)})
}

// partyAt is who lives there; false for the harness and for nobody.
func partyAt(a netip.Addr) (nemesis.Party, bool) {
	b := a.As4()
	switch {
	case clientNet.Contains(a):
		n := int(b[2]&^128)<<8 | int(b[3])
		return nemesis.ClientParty(n - 1), n >= 1 && n <= maxClient+1
	case prefix.Contains(a) && b[2] == 0:
		return nemesis.NodeParty(int(b[3])), b[3] >= 1 && b[3] <= maxNode
	}
	return nemesis.Party{}, false
}

// planeOf is the plane of a listener's port, "" if it is of none.
func planeOf(port uint16) nemesis.Plane {
	switch port {
	case firstPort:
		return nemesis.PlaneData
	case firstPort + 1:
		return nemesis.PlaneControl
	}
	return ""
}

// isListener tells whether nodes listen on the port.
func isListener(port uint16) bool { return port >= firstPort && port < firstPort+portCount }
