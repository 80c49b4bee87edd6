// Package kafka runs Apache Kafka, unmodified, as a system under test: one JVM per node, from a fetched or an own installation, or a cluster that runs already. It knows
// Kafka's configuration, its life cycle and what it promises, and nothing of faults, workloads or checkers. Start reading at Cluster, then Contract.
package kafka

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
	"ackproof/systems/kafka/install"
	"ackproof/systems/kafkaproto"
	"ackproof/systems/process"
)

const (
	heap = "-Xmx256m"
	// startBound is the longest that a node may take from its start until it answers: 2.5 s on an idle machine, ten times that on one with too much to do.
	startBound = 90 * time.Second
	// livenessBound is what the contract allows from the heal to full service. Elections take a session or two, and a busy machine many times that.
	livenessBound = 60 * time.Second
	viewTimeout   = 400 * time.Millisecond // for one node to tell its view
	createTimeout = 10 * time.Second       // for one attempt to make the topic
	fetchRound    = 100 * time.Millisecond
)

// Cluster is a cluster of Kafka's nodes. It implements systems.System and systems.Prober.
type Cluster struct {
	o       systems.Options
	set     Settings
	in      install.Installation
	keepELR bool
	id      string // of the cluster, once it is formatted
	nodes   []*node
	asked   kafkaproto.Cluster
}

var (
	_ systems.System   = (*Cluster)(nil)
	_ systems.Prober   = (*Cluster)(nil)
	_ systems.Linter   = (*Cluster)(nil)
	_ systems.Unlinked = (*Cluster)(nil)
	_ systems.Fragile  = (*Cluster)(nil)

	_ systems.Formatter = (*Cluster)(nil)
)

// node is one JVM.
type node struct {
	*process.Node
	role    role
	client  string // where it listens for clients and brokers, "" if it is a controller alone
	control string // where it listens as a controller, "" if it is none
	logs    string // its data folder
	dir     string
}

// Serves implements systems.Server.
func (n *node) Serves() bool { return n.role != controllerOnly }

// Open prepares a cluster, or joins one that runs if the settings name it.
func Open(o systems.Options) (systems.System, error) {
	set, err := read(o.Settings)
	if err != nil {
		return nil, err
	}
	if len(set.Bootstrap) > 0 {
		r, err := join(o, set)
		if err != nil {
			return nil, err
		}
		return r, nil
	}
	c, err := New(o)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// New prepares a cluster; nothing runs yet. An error says which option makes no sense, or what is not there.
func New(o systems.Options) (*Cluster, error) {
	if o.Note == nil {
		o.Note = func(string) {}
	}
	switch {
	case o.Dir == "":
		return nil, errors.New("kafka: Dir is empty, expected the folder of the run")
	case o.Nodes < 1:
		return nil, fmt.Errorf("kafka: %d nodes, expected at least 1", o.Nodes)
	case o.Topic == "":
		return nil, errors.New("kafka: Topic is empty, expected a name")
	case o.Partitions < 1:
		return nil, fmt.Errorf("kafka: %d partitions, expected at least 1", o.Partitions)
	case o.Replication < 1 || o.Replication > o.Nodes:
		return nil, fmt.Errorf("kafka: replication %d, expected 1 to the number of nodes, %d", o.Replication, o.Nodes)
	case o.MinISR < 1 || o.MinISR > o.Replication:
		return nil, fmt.Errorf("kafka: min.insync.replicas %d, expected 1 to the replication factor, %d", o.MinISR, o.Replication)
	case o.Acks < -1 || o.Acks > 1:
		return nil, fmt.Errorf("kafka: acks %d, expected 0, 1 or -1", o.Acks)
	case o.Plant != "":
		return nil, fmt.Errorf("kafka: bug %s is to be planted, expected none: only the reference broker has planted bugs", o.Plant)
	}
	c := &Cluster{o: o}
	var err error
	if c.set, err = read(o.Settings); err != nil {
		return nil, err
	}
	if c.in, err = c.set.installation(); err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	if c.keepELR, err = c.set.elr(c.in); err != nil {
		return nil, err
	}
	if c.o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, fmt.Errorf("kafka: folder %q: %w", o.Dir, err)
	}
	if c.o.Host == nil {
		c.o.Host = process.NewLoopback()
	}
	if err := c.makeNodes(); err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	if err := c.join(); err != nil {
		return nil, err
	}
	c.askAll()
	return c, nil
}

// Spare implements systems.Fragile. Whoever ends by itself is taken for broken by the harness, while Kafka does just that, as it says, when its only folder fails.
func (c *Cluster) Spare(kind string) string {
	switch kind {
	case "disk-error", "flush-error", "disk-full", "error-at-call":
		return "a node of Kafka whose only data folder fails ends by itself, and stays down until somebody starts it"
	}
	return ""
}

// Unlinked implements systems.Unlinked.
func (c *Cluster) Unlinked() bool {
	return c.o.Network == nil || !systems.IsTransparent(c.o.Network)
}

// join tells the network of the run who dials whom. Kafka's nodes know one address of each other, the real one, so on a network of proxies they are not.
func (c *Cluster) join() error {
	if c.Unlinked() {
		return nil
	}
	for _, from := range c.nodes {
		for _, to := range c.nodes {
			if from == to {
				continue
			}
			for _, target := range []string{to.control, to.client} {
				if target == "" || target == to.client && !from.Serves() { // controllers are asked, and do not ask brokers
					continue
				}
				if _, err := c.o.Network.NodeLink(from.ID(), to.ID(), target); err != nil {
					return fmt.Errorf("kafka: the link of %s to %s: %w", from.Name(), to.Name(), err)
				}
			}
		}
	}
	return nil
}

// askAll says who is asked what the cluster is.
func (c *Cluster) askAll() {
	c.asked.Topic, c.asked.Partitions, c.asked.Replication = c.o.Topic, c.o.Partitions, c.o.Replication
	c.asked.Patience, c.asked.Attempt = viewTimeout, createTimeout
	for _, n := range c.nodes {
		if n.Serves() {
			c.asked.Nodes = append(c.asked.Nodes, n)
		}
	}
}

func (c *Cluster) makeNodes() error {
	for id := 1; id <= c.o.Nodes+c.set.Controllers; id++ {
		r := combined
		switch {
		case id > c.o.Nodes:
			r = controllerOnly
		case c.set.Controllers > 0:
			r = brokerOnly
		}
		n, err := c.makeNode(id, r, filepath.Join(c.o.Dir, "nodes", fmt.Sprint(id)))
		if err != nil {
			return err
		}
		c.nodes = append(c.nodes, n)
	}
	return nil
}

// propertiesFile is a node's configuration, in its folder.
const propertiesFile = "server.properties"

// Which of the addresses of a node is for what.
const (
	clientPort = iota
	controlPort
)

func (c *Cluster) makeNode(id int, r role, dir string) (*node, error) {
	n := &node{role: r, dir: dir}
	var err error
	if r != controllerOnly {
		if n.client, err = c.o.Host.Address(id, clientPort); err != nil {
			return nil, err
		}
	}
	if r != brokerOnly {
		if n.control, err = c.o.Host.Address(id, controlPort); err != nil {
			return nil, err
		}
	}
	if n.logs, err = c.o.Host.DataDir(id, filepath.Join(dir, "data")); err != nil {
		return nil, err
	}
	addr := n.client
	if addr == "" {
		addr = n.control // the controllers' listener answers the same greeting
	}
	n.Node, err = process.New(process.Spec{ID: id, Addr: addr, Dir: dir, Data: n.logs, Host: c.o.Host})
	return n, err
}

// Info implements systems.System.
func (c *Cluster) Info() model.SystemInfo {
	return model.SystemInfo{Name: "kafka", Version: c.in.Version}
}

// Start implements systems.System.
func (c *Cluster) Start(ctx context.Context) error {
	archive, err := c.archive(ctx)
	if err != nil {
		return err
	}
	if err := c.format(ctx); err != nil {
		return err
	}
	for _, n := range c.nodes {
		if err := c.prepare(n, archive); err != nil {
			return err
		}
	}
	return c.run(ctx)
}

// run starts the nodes, which are prepared, and makes the topic.
func (c *Cluster) run(ctx context.Context) error {
	for _, n := range c.nodes {
		if err := n.Start(ctx); err != nil {
			return err
		}
	}
	if err := c.asked.CreateTopic(ctx, c.topicSettings()...); err != nil {
		return process.Explain(err, c.nodes)
	}
	if err := c.asked.AwaitReady(ctx); err != nil {
		return process.Explain(err, c.nodes)
	}
	if err := c.assertTopic(); err != nil {
		return process.Explain(err, c.nodes)
	}
	if c.o.Idempotent {
		if err := c.awaitProducerIDs(ctx); err != nil {
			return process.Explain(err, c.nodes)
		}
	}
	return nil
}

// prepare writes what a node reads at its start.
func (c *Cluster) prepare(n *node, archive []string) error {
	name, content, property := c.logging()
	logging, err := n.Write(name, content)
	if err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	if _, err := n.Write(propertiesFile, strings.Join(c.properties(n), "\n")+"\n"); err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	argv := append(c.java(), archive...)
	n.Argv(append(argv, "-XX:ErrorFile="+filepath.Join(n.dir, "jvm-error.log"), "-XX:+ExitOnOutOfMemoryError", "-Djava.io.tmpdir="+n.dir,
		property+logging, "-cp", c.in.ClassPath(), "kafka.Kafka", filepath.Join(n.dir, propertiesFile))...)
	return nil
}

// java is the program and the flags that make a JVM start quickly.
func (c *Cluster) java() []string {
	return []string{c.in.Java, "-Xms64m", heap, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData"}
}

func (c *Cluster) topicSettings() []kafkaproto.Setting {
	out := []kafkaproto.Setting{{Name: "unclean.leader.election.enable", Value: fmt.Sprint(c.o.Unclean)}}
	if c.set.MinISRIn == inTopic {
		out = append(out, kafkaproto.Setting{Name: minISR, Value: fmt.Sprint(c.o.MinISR)})
	}
	if c.o.FlushEach {
		out = append(out, kafkaproto.Setting{Name: flushEach, Value: "1"})
	}
	return out
}

const (
	minISR    = "min.insync.replicas"
	flushEach = "flush.messages"
)

// Nodes implements systems.System: the brokers, then the controllers that are nothing else.
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
	t := c.set.Timers
	return systems.Timers{Session: t.session, Lag: t.lag, Fetch: fetchRound, Election: t.election, GroupSession: t.group, Start: startBound}
}

// TopicID implements systems.System.
func (c *Cluster) TopicID() [16]byte { return c.asked.TopicID() }

// Stop implements systems.System.
func (c *Cluster) Stop() error {
	c.asked.Close()
	return process.StopAll(c.nodes)
}

// LogGlob implements systems.Keeper.
func (c *Cluster) LogGlob(partition int32) string {
	return fmt.Sprintf("%s-%d/*", c.o.Topic, partition)
}

// Ping implements systems.Prober.
func (c *Cluster) Ping(conn net.Conn) error { return kafkaproto.Ping(conn) }
