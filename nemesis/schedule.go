// Package nemesis hurts a system on purpose and proves that it did: schedules of faults, targets by role, the network of proxies between
// all parties, and the probes before, during and after each fault. It knows systems only through package systems and nothing of workloads or checkers.
// Start reading at Schedule, then Runner.
package nemesis

// Schedule is the only source of faults in a run: a value that is printed, saved, replayed and shrunk. JSON, version 1.
type Schedule struct {
	Version int     `json:"version"`
	Seed    int64   `json:"seed"` // what it was generated from; also decides what a selector leaves open
	Faults  []Fault `json:"faults"`
}

// Fault is one fault of a schedule.
type Fault struct {
	Kind   Kind    `json:"kind"`
	Start  Trigger `json:"start"`
	ForMS  int64   `json:"for_ms"` // from taking effect to healing it
	Target Target  `json:"target"`
	Cut    Cut     `json:"cut,omitempty"` // of a partition
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
)

// Trigger says when a fault starts: the time must have passed and the state, if any, must have been reached.
type Trigger struct {
	// AfterMS since the start of the load, or, with Fault set, since that fault (index in the schedule) took effect (Healed: was healed).
	AfterMS int64 `json:"after_ms"`
	Fault   *int  `json:"fault,omitempty"`
	Healed  bool  `json:"healed,omitempty"`
	// AckedMore, if > 0: Partition has acknowledged that many more records since the time condition was met.
	AckedMore int64 `json:"acked_more,omitempty"`
	// LeaderMoved: the leader of Partition is another one than when the time condition was met.
	LeaderMoved bool  `json:"leader_moved,omitempty"`
	Partition   int32 `json:"partition,omitempty"`
	// GiveUpMS bounds the wait for the state; afterwards the fault starts anyway and its result says so. 0 = 5000.
	GiveUpMS int64 `json:"give_up_ms,omitempty"`
}

// Role selects nodes at the moment when the fault starts.
type Role string

// The roles. Those of a partition use Target.Partition.
const (
	RoleLeader     Role = "leader"      // of the partition
	RoleFollower   Role = "follower"    // one follower of the partition, drawn from the seed
	RoleFollowers  Role = "followers"   // all of them
	RoleController Role = "controller"  // of the cluster
	RoleLastInISR  Role = "last-in-isr" // whoever entered the in-sync set last (as watched during the run)
	RoleInSync     Role = "in-sync"     // the whole in-sync set
	RoleMinority   Role = "minority"    // any minority of the nodes, drawn from the seed
	RoleAll        Role = "all"
	RoleSame       Role = "same" // the nodes of the fault that Start.Fault names
	RoleNode       Role = "node" // Target.Node
)

// Target selects the nodes of a fault.
type Target struct {
	Role      Role  `json:"role"`
	Partition int32 `json:"partition"`
	Node      int   `json:"node,omitempty"`
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
	FollowerWeb Shape = "follower-web"  // the followers of the partition cannot reach each other; the leader reaches all
	ClientLink  Shape = "client-link"   // some clients from the targets, nodes among themselves untouched
)

// Cut is the form of a partition fault.
type Cut struct {
	Shape Shape `json:"shape,omitempty"`
	// Clients: the clients cut off too (client-link: which ones; otherwise clients that stay on the targets' side are never cut). Empty with client-link: every second one.
	Clients []int `json:"clients,omitempty"`
}
