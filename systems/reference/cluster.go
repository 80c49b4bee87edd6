// Package reference runs the reference broker as a system under test: one process per node on loopback, started from an executable that
// has the command `broker --config FILE`. It talks Kafka's protocol to the nodes and knows nothing of how the broker works inside, nor of
// faults, workloads or checkers. Start reading at Cluster.
package reference

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"ackproof/model"
	"ackproof/systems"
	"ackproof/systems/kafkaproto"
	"ackproof/systems/process"
)

// The nodes' own time-outs. They are far below Kafka's defaults, so that a run of seconds sees many failovers, and far enough above what a
// busy machine of two cores needs, so that nothing fails over without a fault. The lag limit is below the control plane's election time-out:
// a leader that hears nobody still knows its controller when its followers leave the in-sync set, as with Kafka's separate controllers.
const (
	sessionTimeout  = 1500 * time.Millisecond
	heartbeatEach   = 200 * time.Millisecond
	lagTime         = 700 * time.Millisecond
	fetchWait       = 200 * time.Millisecond
	raftTick        = 50 * time.Millisecond
	electionTimeout = 1200 * time.Millisecond
	rebalanceEach   = 2 * time.Second // leadership returns to the preferred replicas: leaders stay spread over the nodes
	fetchRound      = 50 * time.Millisecond
	groupSession    = 2 * time.Second
	groupHeartbeat  = 250 * time.Millisecond
	groupDelay      = 200 * time.Millisecond // the first round of a group waits so long for more members
	groupPartitions = 6                      // of __consumer_offsets: few, so that every failover hits some group
	// livenessBound is what the contract allows from the heal to full service: elections, registrations and catching up after the longest fault.
	livenessBound = 20 * time.Second
	readyTimeout  = 30 * time.Second
	viewTimeout   = 300 * time.Millisecond // for one node to tell its view
	createTimeout = time.Second            // for one attempt to make the topic
)

// Cluster is a cluster of reference broker processes. It implements systems.System and systems.Prober.
type Cluster struct {
	o     systems.Options
	nodes []*process.Node
	asked kafkaproto.Cluster
}

var (
	_ systems.System     = (*Cluster)(nil)
	_ systems.Prober     = (*Cluster)(nil)
	_ systems.Timekeeper = (*Cluster)(nil)
)

// New prepares a cluster; nothing runs yet. executable is a program with the command `broker`, "" for the running one. An error says which option
// makes no sense, or that no ports are free.
func New(o systems.Options, executable string) (*Cluster, error) {
	if o.Network == nil {
		o.Network = systems.Direct{}
	}
	switch {
	case o.Dir == "":
		return nil, errors.New("reference: Dir is empty, expected the folder of the run")
	case o.Nodes < 1:
		return nil, fmt.Errorf("reference: %d nodes, expected at least 1", o.Nodes)
	case o.Topic == "":
		return nil, errors.New("reference: Topic is empty, expected a name")
	case o.Partitions < 1:
		return nil, fmt.Errorf("reference: %d partitions, expected at least 1", o.Partitions)
	case o.Replication < 1 || o.Replication > o.Nodes:
		return nil, fmt.Errorf("reference: replication %d, expected 1 to the number of nodes, %d", o.Replication, o.Nodes)
	case o.MinISR < 1 || o.MinISR > o.Replication:
		return nil, fmt.Errorf("reference: min.insync.replicas %d, expected 1 to the replication factor, %d", o.MinISR, o.Replication)
	case o.Acks < -1 || o.Acks > 1:
		return nil, fmt.Errorf("reference: acks %d, expected 0, 1 or -1", o.Acks)
	}
	if executable == "" {
		var err error
		if executable, err = thisExecutable(); err != nil {
			return nil, err
		}
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("reference: folder %q: %w", o.Dir, err)
	}
	o.Dir = dir
	if o.Host == nil {
		o.Host = process.NewLoopback()
	}
	c := &Cluster{o: o}
	for id := 1; id <= o.Nodes; id++ {
		n, err := c.makeNode(id, filepath.Join(dir, "nodes", fmt.Sprint(id)), executable)
		if err != nil {
			return nil, fmt.Errorf("reference: %w", err)
		}
		c.nodes = append(c.nodes, n)
	}
	c.asked.Nodes, c.asked.Topic, c.asked.Partitions, c.asked.Replication = c.Nodes(), o.Topic, o.Partitions, o.Replication
	c.asked.OwnIndex, c.asked.Patience, c.asked.Attempt = true, viewTimeout, createTimeout
	return c, nil
}

// propertiesFile is a node's configuration, in its folder.
const propertiesFile = "node.properties"

func (c *Cluster) makeNode(id int, dir, executable string) (*process.Node, error) {
	addr, err := c.o.Host.Address(id, 0)
	if err != nil {
		return nil, err
	}
	data, err := c.o.Host.DataDir(id, filepath.Join(dir, "data"))
	if err != nil {
		return nil, err
	}
	return process.New(process.Spec{ID: id, Addr: addr, Dir: dir, Data: data, Host: c.o.Host,
		Argv: []string{executable, "broker", "--config", filepath.Join(dir, propertiesFile)}})
}

// Info implements systems.System. The version is the harness's own: both come from one build.
func (c *Cluster) Info() model.SystemInfo {
	return model.SystemInfo{Name: "reference", Version: buildVersion()}
}

// Start implements systems.System.
func (c *Cluster) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for _, n := range c.nodes {
		lines, err := c.properties(n)
		if err != nil {
			return err
		}
		if _, err := n.Write(propertiesFile, strings.Join(lines, "\n")+"\n"); err != nil {
			return fmt.Errorf("reference: %w", err)
		}
	}
	for _, n := range c.nodes {
		if err := n.Start(ctx); err != nil {
			return err
		}
	}
	err := c.asked.CreateTopic(ctx,
		kafkaproto.Setting{Name: "min.insync.replicas", Value: fmt.Sprint(c.o.MinISR)},
		kafkaproto.Setting{Name: "unclean.leader.election.enable", Value: fmt.Sprint(c.o.Unclean)})
	if err != nil {
		return process.Explain(err, c.nodes)
	}
	if err := c.asked.AwaitReady(ctx); err != nil {
		return process.Explain(err, c.nodes)
	}
	return nil
}

// Nodes implements systems.System.
func (c *Cluster) Nodes() []systems.Node {
	out := make([]systems.Node, len(c.nodes))
	for i, n := range c.nodes {
		out[i] = n
	}
	return out
}

// Roles implements systems.System.
func (c *Cluster) Roles(ctx context.Context) (systems.Roles, error) { return c.asked.Roles(ctx) }

// Timers implements systems.System.
func (c *Cluster) Timers() systems.Timers {
	return systems.Timers{Session: sessionTimeout, Lag: lagTime, Fetch: fetchRound, Election: electionTimeout, GroupSession: groupSession}
}

// Contract implements systems.System.
func (c *Cluster) Contract() model.Contract {
	return model.LogContract(model.Contract{
		System: "reference", Workload: "log", Partitions: c.o.Partitions, Replication: c.o.Replication, MinISR: c.o.MinISR, Acks: c.o.Acks,
		Idempotent: c.o.Idempotent, Unclean: c.o.Unclean, FlushEach: c.o.FlushEach, Dense: true, LivenessBoundMS: livenessBound.Milliseconds(),
	})
}

// TopicID implements systems.System.
func (c *Cluster) TopicID() [16]byte { return c.asked.TopicID() }

// Stop implements systems.System.
func (c *Cluster) Stop() error {
	c.asked.Close()
	return process.StopAll(c.nodes)
}

// Ping implements systems.Prober with ApiVersions, which a node answers from the moment when it listens.
func (c *Cluster) Ping(conn net.Conn) error { return kafkaproto.Ping(conn) }

// LogGlob implements systems.Keeper.
func (c *Cluster) LogGlob(partition int32) string {
	return fmt.Sprintf("%s-%d/*", c.o.Topic, partition)
}

// Time implements systems.Timekeeper with DescribeQuorum.
func (c *Cluster) Time(conn net.Conn, n systems.Node) (time.Time, error) {
	return kafkaproto.Time(conn, n.ID())
}
