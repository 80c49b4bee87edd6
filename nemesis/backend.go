package nemesis

import (
	"context"
	"net"

	"ackproof/nemesis/lossy"
	"ackproof/nemesis/seccomp"
	"ackproof/nemesis/vdso"
	"ackproof/systems"
	"ackproof/systems/process"
)

// Backend is the ground that a run stands on: where nodes live, the network between all parties, and what the nemesis holds of the machines under the nodes.
type Backend interface {
	systems.Host
	// Name for people and for the plan of a run.
	Name() string
	// Network between all parties; the same one every time.
	Network() Network
	// Machine under the node. What it has may differ from one life of the node's process to the next.
	Machine(node systems.Node) Machine
	// Can tells whether faults of the kind can be injected, and how, or why not.
	Can(Kind) (ok bool, how string)
	// Close ends everything that the back end has made. The nodes must be gone. It may be called twice.
	Close() error
}

// Network is the network between all parties of a run, as the nemesis holds it.
type Network interface {
	systems.Network
	// Hold stops the bytes on the lanes. Holds add up: a lane flows again when every Hold has had its Release.
	Hold(lanes ...Lane)
	// Release lets the bytes flow again. With more releases than holds the surplus is ignored.
	Release(lanes ...Lane)
	// ReleaseAll ends every hold of every lane.
	ReleaseAll()
	// Reset ends every connection that is open between the two parties, whoever dialled it.
	Reset(a, b Party)
	// Count of a lane, since the network began.
	Count(Lane) Count
	// Held tells whether the lane is held now.
	Held(Lane) bool
	// Clients are the numbers of all clients that asked for a link, in rising order.
	Clients() []int
	// Dialers are all parties that have a link to the acceptor: nodes first, each in rising order.
	Dialers(acceptor Party) []Party
	// Dial connects as the dialer to the acceptor, over the same way as their own connections. It fails if they have no link.
	Dial(ctx context.Context, dialer, acceptor Party) (net.Conn, error)
	// Close ends all links and connections. It may be called twice.
	Close() error
}

// Machine is what the nemesis holds of the machine under one node. A part that it does not hold is nil. The parts of a disk come into being with the node's
// data folder (systems.Host.DataDir), which a back end lays on a file system of its own; those of a process, with each of its starts (systems.Host.Start).
type Machine struct {
	// Process is the number, in the harness's own counting, of the process that the node is: its clock and its limits can be had by it. 0: it is down.
	Process int
	// Calls of that process.
	Calls *seccomp.Supervisor
	// Disk under the node's data folder.
	Disk Disk
}

// CanToProcess is Backend.Can for the kinds that take no more than Machine.Process, on any back end. known: the kind is one of them.
func CanToProcess(k Kind) (ok bool, how string, known bool) {
	switch k {
	case CPUStarve:
		return true, "SIGSTOP and SIGCONT by turns, 100 ms long together", true
	case Descriptors, Memory:
		ok, how = limitsAvailable()
	case ClockSkew, ClockDrift, ClockStrobe:
		ok, how = vdso.Available()
	default:
		return false, "", false
	}
	return ok, how, true
}

// Proxies is the portable back end: processes on loopback, stream proxies between them, signals.
type Proxies struct {
	*process.Loopback
	mesh *Mesh
}

// NewProxies makes the portable back end.
func NewProxies() *Proxies { return &Proxies{Loopback: process.NewLoopback(), mesh: NewMesh()} }

// Name implements Backend.
func (*Proxies) Name() string { return "proxies" }

// Network implements Backend.
func (p *Proxies) Network() Network { return p.mesh }

// Machine implements Backend.
func (*Proxies) Machine(n systems.Node) Machine { return Machine{Process: n.PID()} }

// Can implements Backend.
func (*Proxies) Can(k Kind) (ok bool, how string) {
	if ok, how, known := CanToProcess(k); known {
		return ok, how
	}
	switch k {
	case Kill:
		return true, "SIGKILL, and a restart with the same address and data"
	case Pause:
		return true, "SIGSTOP and SIGCONT"
	case Partition:
		return true, "stream proxies on loopback between all parties"
	case MachineDeath:
		return true, "the proxies hold all links of the node, then SIGKILL"
	}
	return false, Cannot(k)
}

// Cannot is why a back end that has no hold of its own on the kind cannot inject it.
func Cannot(k Kind) string {
	ok, why := true, ""
	switch {
	case k.ofDisk():
		ok, why = lossy.Available()
	case k.ofCall():
		ok, why = seccomp.Available()
	case k.OnPackets():
		return "its network carries streams, not packets"
	}
	if ok {
		return "takes a hold on the machine that this back end has not"
	}
	return why
}

// Close implements Backend.
func (p *Proxies) Close() error { return p.mesh.Close() }
