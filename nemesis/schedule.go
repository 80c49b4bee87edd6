// Package nemesis hurts a system on purpose and proves that it did: schedules of faults, targets by role, the network of proxies between
// all parties, and the probes before, during and after each fault. It knows systems only through package systems and nothing of workloads or checkers.
// Start reading at Schedule, then Runner.
package nemesis

import (
	"slices"

	"ackproof/nemesis/lossy"
	"ackproof/nemesis/seccomp"
)

// Schedule is the only source of faults in a run: a value that is printed, saved, replayed and shrunk. JSON, version 1.
type Schedule struct {
	Version int     `json:"version"`
	Seed    int64   `json:"seed"` // what it was generated from; also decides what a selector leaves open
	Faults  []Fault `json:"faults"`
}

// Fault is one fault of a schedule.
type Fault struct {
	Kind  Kind    `json:"kind"`
	Start Trigger `json:"start"`
	ForMS int64   `json:"for_ms"` // from taking effect to healing it
	// UntilFault: healed as soon as that fault (index in the schedule) has taken effect, and after ForMS at the latest.
	UntilFault *int `json:"until_fault,omitempty"`
	// StaggerMS is the pause between healing one target and the next, in the order of the targets; 0 heals all at once.
	StaggerMS int64  `json:"stagger_ms,omitempty"`
	Target    Target `json:"target"`
	// AmountMS is how much: of a disk-slow per flush, of a clock-skew or clock-strobe, of a clock-drift per second, of a packet-delay; that of a clock may be negative.
	// Of a cpu-starve, it is how long the node runs in each 100 ms.
	AmountMS int64 `json:"amount_ms,omitempty"`
	// Percent of the packets, of a kind that says so; BytesPerSecond of a link-rate; Shuffle of a link-clog: what waited goes on in any order.
	Percent        int   `json:"percent,omitempty"`
	BytesPerSecond int64 `json:"bytes_per_second,omitempty"`
	Shuffle        bool  `json:"shuffle,omitempty"`
	Cut            Cut   `json:"cut,omitzero"` // of a partition, and of what treats packets
	// Loss is what a power-loss takes; "": each target draws it from the seed. The simulator always draws.
	Loss lossy.Loss `json:"loss,omitempty"`
	// Whole, of a disk-wipe: not the logs alone are gone, but the disk, and in its place comes one that has been formatted for the node (systems.Formatter) and is empty but for
	// that. Of real systems only; the simulator takes the logs.
	Whole bool `json:"whole,omitempty"`
	// Call and Nth, from 1, of a crash-at-call or error-at-call; Error of the latter: EIO, if it is empty, ENOSPC, EDQUOT or EINTR.
	Call  seccomp.Call `json:"call,omitempty"`
	Nth   int          `json:"nth,omitempty"`
	Error string       `json:"error,omitempty"`
	// Preset names the sequence that this fault is a part of, for people.
	Preset string `json:"preset,omitempty"`
}

// Kind is the kind of a fault.
type Kind string

// The kinds.
const (
	Kill      Kind = "kill"      // SIGKILL; healed by a restart with the same address and data
	Pause     Kind = "pause"     // SIGSTOP; healed by SIGCONT
	Partition Kind = "partition" // links of the mesh hold their bytes

	// These need a hold on the machine.
	PowerLoss Kind = "power-loss" // the node dies, and what was not flushed may be gone; healed by a restart
	DiskWipe  Kind = "disk-wipe"  // the node dies and its logs are gone; healed by a restart without them
	DiskError Kind = "disk-error" // the next write or flush fails with an I/O error
	// FlushError fails the next flush with an I/O error. What it should have kept is not kept, and no later flush says so: that is what Linux does.
	FlushError Kind = "flush-error"
	DiskFull   Kind = "disk-full"  // writes fail for want of space
	DiskSlow   Kind = "disk-slow"  // every flush takes AmountMS longer
	ClockSkew  Kind = "clock-skew" // the node's clock jumps by AmountMS, and back

	// Of real systems only.

	BitFlip  Kind = "bit-flip" // the node dies, and a bit of its log of the partition has turned over when it is back
	Truncate Kind = "truncate" // the node dies, and a file of its log of the partition has lost its end when it is back, flushed or not
	// FlushLie makes flushes of the node's log of the partition say that all is well although nothing lasts, until a later one that is honest. Nobody sees that before the node loses its power.
	FlushLie Kind = "flush-lie"
	// CrashAtCall kills the node at its Nth system call of the class Call on its data from now on, before the call is carried out. ErrorAtCall gives the call an error
	// instead. Both are healed by a restart.
	CrashAtCall Kind = "crash-at-call"
	ErrorAtCall Kind = "error-at-call"
	CPUStarve   Kind = "cpu-starve"   // the node runs AmountMS of each 100 ms
	Descriptors Kind = "descriptors"  // the node can open no file and no connection more; healed by the old limit
	Memory      Kind = "memory"       // the node gets no memory beyond what it has; healed by a restart
	ClockDrift  Kind = "clock-drift"  // the node's clock gains AmountMS per second, and jumps back
	ClockStrobe Kind = "clock-strobe" // the node's clock jumps by AmountMS and back, over and over
	// MachineDeath is a kill of which the others hear nothing: all links are cut first, and stay cut until the node runs again.
	MachineDeath Kind = "machine-death"

	// Of networks that carry packets (Shaper). Cut says on which links, and in which direction.

	PacketDelay     Kind = "packet-delay"     // every packet is late by AmountMS, and by up to half of that more
	PacketLoss      Kind = "packet-loss"      // Percent of the packets are lost
	PacketDuplicate Kind = "packet-duplicate" // Percent of the packets come twice
	PacketReorder   Kind = "packet-reorder"   // Percent of the packets are held back for up to 20 ms, while others overtake them
	PacketCorrupt   Kind = "packet-corrupt"   // a bit flips in Percent of the packets; checksums make a loss of it
	LinkRate        Kind = "link-rate"        // BytesPerSecond go over each link at most
	LinkClog        Kind = "link-clog"        // packets wait, none is lost; at the heal they go on at once, in order or (Shuffle) not
)

// ProcessKinds are the kinds that take no more than processes and proxies.
func ProcessKinds() []Kind { return []Kind{Kill, Pause, Partition} }

// SimulatedKinds are the kinds that the simulator has a counterpart for.
func SimulatedKinds() []Kind {
	return []Kind{Kill, Pause, Partition, PowerLoss, DiskWipe, DiskError, FlushError, DiskFull, DiskSlow, ClockSkew}
}

// AllKinds are all kinds, those that the simulator has first.
func AllKinds() []Kind {
	return append(SimulatedKinds(), BitFlip, Truncate, FlushLie, ClockDrift, ClockStrobe, MachineDeath,
		CPUStarve, Descriptors, Memory, CrashAtCall, ErrorAtCall,
		PacketDelay, PacketLoss, PacketDuplicate, PacketReorder, PacketCorrupt, LinkRate, LinkClog)
}

// Down tells kinds whose targets are down until the heal.
func (k Kind) Down() bool {
	return k == Kill || k == PowerLoss || k == DiskWipe || k == BitFlip || k == Truncate || k == MachineDeath
}

// hurts tells kinds that the node itself suffers from.
func (k Kind) hurts() bool { return !k.onLinks() && !k.ofClock() }

// ofClock tells kinds that make a node's clock wrong; the node itself is not hurt.
func (k Kind) ofClock() bool { return k == ClockSkew || k == ClockDrift || k == ClockStrobe }

// Uses lists the kinds of a schedule's faults, each once.
func (s Schedule) Uses() []Kind {
	var out []Kind
	for _, k := range AllKinds() {
		if slices.ContainsFunc(s.Faults, func(f Fault) bool { return f.Kind == k }) {
			out = append(out, k)
		}
	}
	return out
}

// Trigger says when a fault starts: the time must have passed and the state, if any, must have been reached.
type Trigger struct {
	// AfterMS since the start of the load, or, with Fault set, since that fault (index in the schedule) took effect (Healed: was healed).
	AfterMS int64 `json:"after_ms"`
	Fault   *int  `json:"fault,omitempty"`
	Healed  bool  `json:"healed,omitempty"`
	// AckedMore, if > 0: Partition has acknowledged that many more records since the time condition was met.
	AckedMore int64 `json:"acked_more,omitempty"`
	// LeaderMoved: the leader of Partition is another one than when the fault named by Fault chose its targets (without Fault, or with Healed: than when the time
	// condition was met).
	LeaderMoved bool `json:"leader_moved,omitempty"`
	// ControllerMoved: the controller is known, and another one than when the fault named by Fault chose its targets (without Fault, or with Healed: than when the
	// time condition was met).
	ControllerMoved bool `json:"controller_moved,omitempty"`
	// ISRAtMost, if > 0: the in-sync set of Partition has that many members or fewer.
	ISRAtMost int `json:"isr_at_most,omitempty"`
	// ISRAtLeast, if > 0: the in-sync set of Partition has that many members or more.
	ISRAtLeast int `json:"isr_at_least,omitempty"`
	// Recovered: every partition is led and has a full in-sync set.
	Recovered bool `json:"recovered,omitempty"`
	// Partition that the state is about; AnyPartition: the one that the fault named by Fault was resolved to.
	Partition int32 `json:"partition,omitempty"`
	// GiveUpMS bounds the wait for the state; afterwards the fault starts anyway and its result says so. 0 = 5000.
	GiveUpMS int64 `json:"give_up_ms,omitempty"`
}

// AnyPartition leaves the choice to the moment when the fault starts. A fault that starts while another one may last (Start.Fault without
// Healed) takes that one's partition, so that a sequence stays with one partition; otherwise it is drawn from the seed, by preference
// one whose leader is not the controller, so that cutting off the leader leaves the control plane whole.
const AnyPartition int32 = -1

// Role selects nodes at the moment when the fault starts.
type Role string

// The roles. Those of a partition use Target.Partition.
const (
	RoleLeader     Role = "leader"      // of the partition
	RoleFollower   Role = "follower"    // one follower of the partition, drawn from the seed
	RoleFollowers  Role = "followers"   // all of them
	RoleSpare      Role = "spare"       // the in-sync follower that is last in the replica order: any other would be elected before it
	RoleHeir       Role = "heir"        // the in-sync follower that is first in the replica order: it would be elected next
	RoleController Role = "controller"  // of the cluster
	RoleLastInISR  Role = "last-in-isr" // whoever entered the in-sync set last (as watched during the run)
	RoleInSync     Role = "in-sync"     // the whole in-sync set
	RoleMinority   Role = "minority"    // any minority of the nodes, drawn from the seed
	RoleAll        Role = "all"
	RoleOthers     Role = "others" // all nodes but the controller
	RoleUnhurt     Role = "unhurt" // all nodes that no kill and no pause holds
	RoleSame       Role = "same"   // the nodes of the fault that Start.Fault names
	RoleNode       Role = "node"   // Target.Node, or Target.Nodes

	// Of consumer groups: Target.Partition is then one of the internal topic that holds them.

	RoleCoordinator          Role = "coordinator"           // of the groups in the partition: its leader
	RoleCoordinatorFollowers Role = "coordinator-followers" // all other replicas of the partition
)

// Target selects the nodes of a fault.
type Target struct {
	Role      Role  `json:"role"`
	Partition int32 `json:"partition"` // AnyPartition: chosen when the fault starts
	// Aside, with AnyPartition: waits up to 4 s for a partition of the preferred kind, if there is none at first.
	Aside bool `json:"aside,omitempty"`
	Node  int  `json:"node,omitempty"`
	// Nodes are several nodes by number, in the place of Node: what shrinking makes of roles whose meaning depended on faults that are gone.
	Nodes []int `json:"nodes,omitempty"`
}

// Shape is the shape of a network partition, drawn round the target nodes.
type Shape string

// The shapes.
const (
	Isolate     Shape = "isolate"       // the targets from all other nodes, both ways
	OneWayOut   Shape = "one-way-out"   // nothing that the targets send reaches the other nodes
	OneWayIn    Shape = "one-way-in"    // nothing that the others send reaches the targets
	Ring        Shape = "majority-ring" // every node sees a majority, no two the same one (≥ 4 nodes: else isolate one pair)
	Bridge      Shape = "bridge"        // two halves that only the target sees both
	DialIn      Shape = "dial-in"       // connections that others opened to the targets hang, both ways; those that the targets opened work
	FollowerWeb Shape = "follower-web"  // the targets (role followers) cannot reach each other; the leader reaches all
	ClientLink  Shape = "client-link"   // some clients from the targets, nodes among themselves untouched
)

// Cut is the form of a partition fault.
type Cut struct {
	Shape Shape `json:"shape,omitempty"`
	// Clients that are cut off from the targets, in the same directions as the nodes; the others stay on the targets' side and reach them. Clients are numbered
	// as in systems.Network. Empty: with client-link every second client, with other shapes none.
	Clients []int `json:"clients,omitempty"`
	// Against narrows the other side of an isolate, a one-way-out, a one-way-in or a dial-in down to the nodes of a role, as they are when the fault starts: those
	// of the target's partition, or the controller. Empty: all other nodes.
	Against Role `json:"against,omitempty"`
	// Plane narrows the cut down to the connections of one plane, on networks that tell planes apart (Planes). Empty: all connections.
	Plane Plane `json:"plane,omitempty"`
	// Answers, of a client-link: only what the targets send is cut. Requests arrive and take effect, and nobody hears of it.
	Answers bool `json:"answers,omitempty"`
	// Reset: at the heal, the connections between the parties that were cut off from each other are reset instead of going on with what was held, as
	// long partitions of real networks end.
	Reset bool `json:"reset,omitempty"`
}
