// Package systems says what the harness needs of a system under test: start, stop, addresses, roles, timers and contract. Each system
// lives in a folder of its own. It knows nothing of faults, workloads or checkers. Start reading at System.
package systems

import (
	"context"
	"errors"
	"io"
	"net"
	"os/exec"
	"time"

	"ackproof/model"
)

// Options is what a test asks of a system.
type Options struct {
	Dir         string // where nodes keep data and logs; made by the system, owned by the run
	Nodes       int    // node ids are 1…Nodes
	Topic       string
	Partitions  int
	Replication int
	MinISR      int
	Acks        int // 0, 1, −1
	Idempotent  bool
	Unclean     bool
	FlushEach   bool              // flush before the ack
	Plant       string            // planted bug id, "" for none
	Settings    map[string]string // what only this system knows, by name; nil for none
	Note        func(string)      // told what people should know while the system is prepared; nil: nobody is
	Network     Network           // nil: Direct
	Host        Host              // nil: the system's own choice, loopback
}

// Host is where nodes live: it gives them addresses and folders, and makes their processes. The nemesis gives one that holds the machine under the nodes.
type Host interface {
	// Address is where the node may listen, host and port; nth tells apart several of one node, from 0. The answer is the same every time.
	Address(node, nth int) (string, error)
	// DataDir is where the node may keep its data; want is where the run would have it. The folder exists. What is in it when the node starts for the first time
	// counts as flushed.
	DataDir(node int, want string) (string, error)
	// Start starts the command as a process of the node. It is called on a thread that belongs to this process until its end, and may change the command.
	Start(node int, cmd *exec.Cmd) error
}

// Network tells under which address one party reaches a node. The nemesis gives one that leads through its proxies; Direct leads nowhere else.
type Network interface {
	// NodeLink is the address that node `from` must dial to reach node `to`, which really listens on target.
	NodeLink(from, to int, target string) (string, error)
	// ClientLink is the address that client `client` must dial to reach node `to`, which really listens on target.
	ClientLink(client, to int, target string) (string, error)
	// ClientDialer dials as that client; its time-out is the caller's to set.
	ClientDialer(client int) net.Dialer
}

// Transparent is what a network offers that knows whether everybody dials everybody at the address where the other really listens. Nodes that cannot be told other
// addresses are on such a network, and past any other one.
type Transparent interface{ Transparent() bool }

// IsTransparent tells whether the network says so of itself.
func IsTransparent(n Network) bool {
	t, ok := n.(Transparent)
	return ok && t.Transparent()
}

// Fragile is what a system offers that a kind of fault would break in a way that says nothing of its promises.
type Fragile interface {
	// Spare says why faults of the kind are not to be injected, "" if they may be.
	Spare(kind string) (why string)
}

// Unlinked is what a system offers whose nodes may be past the network of the run.
type Unlinked interface {
	// Unlinked: the nodes reach each other past the network, so that only the links of clients can be cut.
	Unlinked() bool
}

// IsUnlinked tells whether the system says so of itself.
func IsUnlinked(s System) bool {
	u, ok := s.(Unlinked)
	return ok && u.Unlinked()
}

// Direct is the network without proxies.
type Direct struct{}

// NodeLink returns the target.
func (Direct) NodeLink(_, _ int, target string) (string, error) { return target, nil }

// ClientLink returns the target.
func (Direct) ClientLink(_, _ int, target string) (string, error) { return target, nil }

// ClientDialer returns a plain dialer.
func (Direct) ClientDialer(int) net.Dialer { return net.Dialer{} }

// ErrMachine marks errors of Node.Start that say nothing of the system: the process could not be made, since the program, memory or descriptors were missing. They are no
// evidence against a promise.
var ErrMachine = errors.New("the machine could not make the process")

// System is one cluster under test, for one run.
type System interface {
	Info() model.SystemInfo
	// Start brings the cluster up from nothing and returns when the protocol says that it is ready: every partition of the topic is led and every in-sync set is full.
	// An error holds the last lines of the log of the node that failed.
	Start(ctx context.Context) error
	// Nodes in the order of their ids.
	Nodes() []Node
	// Roles asks every node that answers and gives the newest view (largest leader epoch per partition). It goes past the proxies.
	Roles(ctx context.Context) (Roles, error)
	// Timers are the system's own time-outs, by which gaps between faults are scaled.
	Timers() Timers
	// Contract is what this configuration promises.
	Contract() model.Contract
	// TopicID is the id of the test's topic, zero if the system has none.
	TopicID() [16]byte
	// Stop kills whatever still runs and releases everything. It may be called twice, and after a failed Start.
	Stop() error
}

// Node is one process of the system.
type Node interface {
	ID() int
	Name() string // "n1"
	Addr() string // where it really listens for clients, past the proxies
	PID() int     // 0 while it is down
	Data() string // its data folder, "" if it keeps none that the harness can reach
	// Kill ends the process at once (SIGKILL) and returns when it is gone.
	Kill() error
	// Start runs it again with the same address and data; it returns when the process runs, not when it is ready. Where the machine is to blame, the error is ErrMachine.
	Start(ctx context.Context) error
	// Pause and Resume stop and continue the process (SIGSTOP, SIGCONT).
	Pause() error
	Resume() error
	// Alive tells whether the process runs; a node that ended by itself gives the reason.
	Alive() (bool, error)
	// LogTail gives the last n lines of its log.
	LogTail(n int) string
	// Log opens the whole log.
	Log() (io.ReadCloser, error)
}

// Timers are time-outs of a system.
type Timers struct {
	Session time.Duration // a silent node is taken for dead
	Lag     time.Duration // a lagging replica leaves the in-sync set
	Fetch   time.Duration // one round of replication, roughly, when idle
	// Election is how long voters of the control plane do without their leader before they elect another one; a voter waits up to twice as long.
	Election time.Duration
	// GroupSession: a silent member of a consumer group is taken for dead. It is what members of KIP-848 are given, and classic ones may ask for.
	GroupSession time.Duration
	// Start is the longest that a node may take from its start until it answers, on a machine with too much to do; it bounds waits and is no expectation.
	Start time.Duration
}

// Linter is what a system offers that knows of mistakes that people make with its configuration.
type Linter interface {
	// Lint gives one sentence for each thing that may not be as it was meant. It is asked before anything runs.
	Lint() []string
}

// Server is what a node offers that may serve nobody, such as a controller that is nothing else.
type Server interface {
	// Serves tells whether clients of the workload may talk to the node.
	Serves() bool
}

// Serves tells whether clients of the workload may talk to the node: to any that does not say otherwise.
func Serves(n Node) bool {
	s, ok := n.(Server)
	return !ok || s.Serves()
}

// Roles is who does what at one moment.
type Roles struct {
	Controller int // node id, 0 unknown
	Partitions []PartitionRoles
	// Coordinators are the partitions of the internal topic that holds consumer groups: whoever leads one coordinates the groups in it. Empty where there are no groups yet.
	Coordinators []PartitionRoles
}

// PartitionRoles is one partition's leader and replicas; 0 stands for no leader.
type PartitionRoles struct {
	Leader      int
	LeaderEpoch int32
	Replicas    []int
	ISR         []int
	Offline     []int
}

// Mortal is a node whose process a fault can make end by itself.
type Mortal interface {
	// Expect says that the node's present process may end at any moment because a fault makes it: then Alive gives no reason for its end.
	Expect()
}

// Timekeeper is what a system offers so that faults of the clock can prove their effect.
type Timekeeper interface {
	// Time asks the node at the other end of conn what time it takes it to be. It needs no role; the caller sets the deadline of conn.
	Time(conn net.Conn, n Node) (time.Time, error)
}

// Keeper is what a system offers that says where its nodes keep records, so that faults of a disk can be aimed at them.
type Keeper interface {
	// LogGlob is a pattern of the files of a partition of the test's topic in a node's data folder: of the last parts of their paths, as many as it has itself, each as in
	// path.Match.
	LogGlob(partition int32) string
}

// Formatter is what a system offers whose nodes do not start on an empty disk before somebody has prepared it.
type Formatter interface {
	// Format puts into the node's data folder, which is empty, what a new disk of the node holds before its first start, as whoever replaces a broken one does. The node is down. An error
	// says why the node must not go on with a new disk, and then nothing is there.
	Format(n Node) error
}

// Prober is what a system offers so that faults can prove their effect: the cheapest exchange of its protocol.
type Prober interface {
	// Ping sends one harmless request over conn and reads the whole answer. It needs no role, no session and no state of the
	// node; the caller sets the deadline of conn.
	Ping(conn net.Conn) error
}
