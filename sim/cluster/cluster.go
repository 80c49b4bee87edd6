// Package cluster is the reference broker in a simulated world: the pure core (partition replicas and control plane) as it is, with a shell of its own around
// it that carries out effects on simulated disks and a simulated network, one event at a time. What it does alike with the real shell comes from
// broker/core/host; what differs is what a shell is for: sockets, goroutines, files. The package knows no client, no workload and no checker.
//
// Start reading at Cluster, then node.go for the life of a node, serve.go for what it answers, replica.go for how effects are carried out.
package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"ackproof/broker/core/controller"
	"ackproof/broker/core/group"
	"ackproof/broker/core/partition"
	"ackproof/broker/storage"
	"ackproof/nemesis"
	"ackproof/sim/world"
	"ackproof/systems"
)

// Config is a cluster. Times are virtual.
type Config struct {
	Nodes       int
	Topic       string // the topic that roles and invariants are about
	Partitions  int
	Replication int
	MinISR      int
	Unclean     bool
	FlushEach   bool // flush before a batch counts
	Timers      Timers
	Groups      Groups
	// Flush is how long a flush takes.
	FlushLeast, FlushMost time.Duration
	// Disk makes the disk of a node.
	Disk func(node int) Disk
}

// Timers are a broker's time-outs, by Kafka's names where Kafka has them.
type Timers struct {
	Session    time.Duration // broker.session.timeout.ms
	Heartbeat  time.Duration // broker.heartbeat.interval.ms
	Lag        time.Duration // replica.lag.time.max.ms
	FetchWait  time.Duration // replica.fetch.wait.max.ms
	RaftTick   time.Duration
	Election   time.Duration // controller.quorum.election.timeout.ms
	Rebalance  time.Duration // leader.imbalance.check.interval.seconds; 0: never
	Checkpoint time.Duration // replica.high.watermark.checkpoint.interval.ms
}

// Disk is what a node keeps when its process dies. One process at a time uses it.
type Disk interface {
	// Open opens the log in a folder; a new folder is made.
	Open(folder string) (storage.Log, error)
	// Folders lists what is there, in order.
	Folders() []string
	// Remove deletes a folder with what is in it.
	Remove(folder string)
	// Crash takes the open logs away from a process that died. What the process wrote stays.
	Crash()
	// Fail makes operations that change something fail; the zero value ends it. Failures counts them.
	Fail(how Failing)
	Failures() int
	// PowerLoss is a Crash that also takes what was not flushed, in whole or in part.
	PowerLoss(*rand.Rand)
}

// clusterID is the id of every simulated cluster.
const clusterID = "simulated"

// Cluster is a set of nodes and the network between them.
type Cluster struct {
	cfg   Config
	w     *world.World
	net   *world.Net
	rand  *rand.Rand
	nodes []*Node
	// Only, if set, is the id of the one topic of the name that Stepped and Proposed are about.
	Only [16]byte
	// Stepped, if set, is told of each step of each replica of the topic, after its effects were sorted and before any is carried out.
	Stepped func(node int32, index int32, before, after partition.Status)
	// Proposed, if set, is told whom a leader of the topic wants in the in-sync set, before the controller is asked.
	Proposed func(leader *Copy, members []int32)
	// Elected, if set, is told whom raft has elected to lead the control plane, once for each term.
	Elected func(node int32, term uint64)
	// Ended, if set, is told of a node that ends by itself.
	Ended func(node int, why error)
}

// New makes a cluster of nodes that are down.
func New(w *world.World, net *world.Net, cfg Config) *Cluster {
	c := &Cluster{cfg: cfg, w: w, net: net, rand: w.Rand(2)}
	for i := range cfg.Nodes {
		c.nodes = append(c.nodes, newNode(c, int32(i+1)))
	}
	return c
}

// Nodes are the nodes in the order of their ids, which begin at 1.
func (c *Cluster) Nodes() []*Node { return c.nodes }

// Node gives the node with that id, nil if there is none.
func (c *Cluster) Node(id int) *Node {
	if id < 1 || id > len(c.nodes) {
		return nil
	}
	return c.nodes[id-1]
}

// Roles is the newest view of any node that runs.
func (c *Cluster) Roles() (systems.Roles, error) {
	var newest *broker
	controllerID := 0
	for _, n := range c.nodes {
		b := n.broker
		if b == nil || n.process.Paused() {
			continue
		}
		if newest == nil || b.view.Index > newest.view.Index {
			newest = b
		}
		if b.control.core.IsLeader() {
			controllerID = int(n.id)
		}
	}
	if newest == nil {
		return systems.Roles{}, fmt.Errorf("no node runs")
	}
	if controllerID == 0 && newest.control.lead > 0 {
		controllerID = int(newest.control.lead)
	}
	roles := systems.Roles{Controller: controllerID}
	of := func(topic string) (out []systems.PartitionRoles) {
		if t := newest.view.Topics[topic]; t != nil {
			for _, p := range t.Partitions {
				out = append(out, c.rolesOf(newest.view, p))
			}
		}
		return out
	}
	roles.Partitions, roles.Coordinators = of(c.cfg.Topic), of(group.Topic)
	return roles, nil
}

func (c *Cluster) rolesOf(im *controller.Image, p *controller.Partition) systems.PartitionRoles {
	r := systems.PartitionRoles{LeaderEpoch: p.LeaderEpoch, Replicas: ints(p.Replicas), ISR: ints(p.ISR)}
	if p.Leader >= 0 {
		r.Leader = int(p.Leader)
	}
	for _, id := range p.Replicas {
		// A broker that was started anew is not back before the control plane knows it: the view may be one of before.
		if b, n := im.Brokers[id], c.Node(int(id)); b == nil || b.Fenced || n.broker == nil || n.broker.applied < 0 {
			r.Offline = append(r.Offline, int(id))
		}
	}
	return r
}

func ints(ids []int32) []int {
	out := make([]int, len(ids))
	for i, id := range ids {
		out[i] = int(id)
	}
	return out
}

func (c *Cluster) voters() []int32 {
	ids := make([]int32, len(c.nodes))
	for i, n := range c.nodes {
		ids[i] = n.id
	}
	slices.Sort(ids)
	return ids
}

// between draws a duration from [least, most].
func (c *Cluster) between(least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(c.rand.Int64N(int64(most-least)+1))
}

func party(id int32) nemesis.Party { return nemesis.NodeParty(int(id)) }
