package cluster

import (
	"errors"
	"fmt"
	"time"

	"ackproof/broker/core/controller"
	"ackproof/broker/core/partition"
	"ackproof/broker/record"
	"ackproof/sim/world"
)

// Node is one machine: what it keeps, and the broker that runs on it, if one does.
type Node struct {
	c       *Cluster
	id      int32
	disk    Disk
	folders map[string]*folder // what stands beside the logs; looked up only
	made    map[key]bool       // which were made, ever; no log is lost that was not there
	raft    controller.Stored
	lives   int
	skew    time.Duration // of its clock
	drift   float64       // seconds that its clock gains per second
	slow    time.Duration // that its disk takes longer

	process *world.Process // the present life, or the last one
	broker  *broker        // nil while it is down
}

// folder is what stands in a partition's folder beside the log.
type folder struct {
	topic   [16]byte
	rebuild bool // the copy was lost and is not complete again
}

func newNode(c *Cluster, id int32) *Node {
	return &Node{c: c, id: id, disk: c.cfg.Disk(int(id)), folders: map[string]*folder{}, made: map[key]bool{}}
}

// ID is the node's id.
func (n *Node) ID() int { return int(n.id) }

// Name is "n1".
func (n *Node) Name() string { return fmt.Sprintf("n%d", n.id) }

// Up tells whether its process runs; it may be paused.
func (n *Node) Up() bool { return n.broker != nil }

// Paused tells whether its process stands still.
func (n *Node) Paused() bool { return n.broker != nil && n.process.Paused() }

// Start runs a broker on it. A broker that runs already goes on.
func (n *Node) Start() error {
	if n.broker != nil {
		return nil
	}
	n.lives++
	n.process = n.c.w.NewProcess(int(n.id))
	n.c.w.Note("start", int64(n.id), int64(n.lives))
	b, err := newBroker(n)
	if err != nil {
		n.process.Kill()
		return fmt.Errorf("start %s: %w", n.Name(), err)
	}
	n.broker = b
	n.c.net.Listen(party(n.id), n.process, b.accept)
	b.run()
	return nil
}

// Kill ends its process at once. What the process wrote stays with the operating system.
func (n *Node) Kill() {
	if n.die("kill") {
		n.disk.Crash()
	}
}

// PowerLoss ends its process and takes from its disk what was not flushed.
func (n *Node) PowerLoss() {
	n.die("power loss")
	n.disk.PowerLoss(n.c.rand)
}

// Wipe ends its process and takes its partitions' logs. What the control plane must not forget stays: a voter without memory is not a fault that raft takes.
func (n *Node) Wipe() {
	n.Kill()
	for _, name := range n.disk.Folders() {
		n.disk.Remove(name)
	}
	n.disk.Crash() // the removal was the operating system's, not a process's
	clear(n.folders)
}

// FailDisk makes writes or flushes of its logs fail, until it is called with the zero value.
func (n *Node) FailDisk(how Failing) { n.disk.Fail(how) }

// DiskFailures is how many operations have failed so.
func (n *Node) DiskFailures() int { return n.disk.Failures() }

func (n *Node) die(how string) bool {
	if n.broker == nil {
		return false
	}
	n.c.w.Note(how, int64(n.id))
	n.broker = nil
	n.process.Kill()
	n.c.net.Down(party(n.id))
	return true
}

// Pause makes its process stand still.
func (n *Node) Pause() {
	if n.broker != nil {
		n.c.w.Note("pause", int64(n.id))
		n.process.Pause()
	}
}

// Resume lets its process go on.
func (n *Node) Resume() {
	if n.broker != nil {
		n.c.w.Note("resume", int64(n.id))
		n.process.Resume()
	}
}

// SetClock sets how far the node's clock is from the world's, beside its drift.
func (n *Node) SetClock(skew time.Duration) { n.skew = skew }

// SetDrift sets how much faster than the world's the node's clock goes: 0.01 is a hundredth.
func (n *Node) SetDrift(drift float64) { n.drift = drift }

// SlowDisk makes every flush of the node take longer by that much.
func (n *Node) SlowDisk(by time.Duration) { n.slow = by }

// epoch is where the clocks begin.
var epoch = time.Unix(1_800_000_000, 0).UTC()

// clock is the node's own clock.
func (n *Node) clock() time.Time {
	now := n.c.w.Now()
	return epoch.Add(now + n.skew + time.Duration(n.drift*float64(now)))
}

// scaled is how long a timer of the node takes in the world's time.
func (n *Node) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) / (1 + n.drift))
}

func (n *Node) flushTime() time.Duration {
	return n.c.between(n.c.cfg.FlushLeast, n.c.cfg.FlushMost) + n.slow
}

// Copy is a replica of the topic as it stands, for looking into from outside.
type Copy struct{ r *replica }

// Node is the node that has it.
func (c *Copy) Node() int32 { return c.r.b.n.id }

// Index is the number of its partition.
func (c *Copy) Index() int32 { return c.r.key.index }

// Status is what it says of itself.
func (c *Copy) Status() partition.Status { return c.r.core.Status() }

// Batch gives the header of the stored batch that holds the offset; false if there is none, or it cannot be read.
func (c *Copy) Batch(offset int64) (found record.Header, ok bool) {
	err := c.r.log.Headers(offset, func(h record.Header) error {
		found, ok = h, h.BaseOffset <= offset && offset < h.NextOffset()
		return errEnough
	})
	return found, ok && errors.Is(err, errEnough)
}

var errEnough = errors.New("enough was read")

// Peer is the copy of the same partition on another node; nil unless that node runs and this one knows its present life.
func (c *Copy) Peer(node int32) *Copy {
	n := c.r.b.n.c.Node(int(node))
	if n == nil || n.broker == nil || !n.broker.ownImage(c.r.b.view) {
		return nil
	}
	if r := n.broker.find(c.r.key); r != nil && !r.failed {
		return &Copy{r}
	}
	return nil
}

func ids(members []partition.Member) []int32 {
	out := make([]int32, len(members))
	for i, m := range members {
		out[i] = m.Broker
	}
	return out
}
