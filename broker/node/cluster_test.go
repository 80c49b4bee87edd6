package node

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/wire"
)

// TestMain lets the test binary be the broker processes of RunLocal.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "broker" && os.Args[2] == "--config" {
		if err := Main(context.Background(), os.Args[3], nil, os.Stdin, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		return
	}
	os.Exit(m.Run())
}

// patience bounds every wait of a test. Nothing takes nearly as long; it is there so that a hang becomes a message.
const patience = 90 * time.Second

// testCluster is a cluster in this process: real sockets on loopback, real folders.
type testCluster struct {
	t     *testing.T
	sets  []string
	dirs  []string
	addrs []string
	nodes []*testNode // nil while stopped
}

type testNode struct {
	*Node
	stop context.CancelFunc
	done chan struct{}
	err  error // of Run, once done is closed
}

// newCluster starts n nodes and waits until all of them are let in. sets are properties for all.
func newCluster(t *testing.T, n int, sets ...string) *testCluster {
	t.Helper()
	c := &testCluster{t: t, nodes: make([]*testNode, n)}
	c.sets = append([]string{
		"replica.lag.time.max.ms=1500", "broker.session.timeout.ms=1500", "broker.heartbeat.interval.ms=100", "replica.fetch.wait.max.ms=200",
		"controller.quorum.election.timeout.ms=300", "ackproof.raft.tick.ms=30", "ackproof.controlled.shutdown.max.ms=2000",
		fmt.Sprintf("default.replication.factor=%d", min(n, 3)), fmt.Sprintf("min.insync.replicas=%d", min(n, 2)), "num.partitions=3",
		"leader.imbalance.check.interval.seconds=0",
	}, sets...)
	listeners := make([]net.Listener, n)
	for i := range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners[i] = l
		c.addrs, c.dirs = append(c.addrs, l.Addr().String()), append(c.dirs, t.TempDir())
	}
	t.Cleanup(func() {
		for i := range c.nodes {
			c.kill(i) // quick; whoever cares for a clean stop stops by itself
		}
	})
	for i, l := range listeners {
		f, err := l.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		fd, err := syscall.Dup(int(f.Fd())) // the node closes what it is given
		if err != nil {
			t.Fatal(err)
		}
		c.start(i, uintptr(fd))
		f.Close()
		l.Close()
	}
	c.awaitBrokers(n)
	return c
}

// start runs node i (from 0; its id is i+1), on an inherited socket or, with fd 0, on its old port.
func (c *testCluster) start(i int, fd uintptr) {
	c.t.Helper()
	var voters []string
	for j, at := range c.addrs {
		voters = append(voters, fmt.Sprintf("%d@%s", j+1, at))
	}
	cfg, err := LoadConfig("", append([]string{
		fmt.Sprintf("node.id=%d", i+1), "listeners=" + c.addrs[i], "controller.quorum.voters=" + strings.Join(voters, ","),
		"log.dirs=" + c.dirs[i], fmt.Sprintf("ackproof.listener.fd=%d", fd),
	}, c.sets...))
	if err != nil {
		c.t.Fatal(err)
	}
	cfg.poisonFrames = true
	var out io.Writer = io.Discard
	if testing.Verbose() {
		out = c.t.Output()
	}
	n, err := Open(cfg, slog.New(slog.NewTextHandler(out, nil)))
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	one := &testNode{Node: n, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(one.done)
		one.err = n.Run(ctx)
	}()
	c.nodes[i] = one
}

// halt stops node i cleanly.
func (c *testCluster) halt(i int) {
	c.t.Helper()
	n := c.nodes[i]
	n.stop()
	c.gone(n)
	if n.err != nil {
		c.t.Errorf("node %d: %v", i+1, n.err)
	}
	c.nodes[i] = nil
}

// kill ends node i as a failure does: no controlled shutdown, no marker.
func (c *testCluster) kill(i int) {
	if n := c.nodes[i]; n != nil {
		n.listener.Close()
		c.gone(n)
		n.stop()
		c.nodes[i] = nil
	}
}

func (c *testCluster) gone(n *testNode) {
	select {
	case <-n.done:
	case <-time.After(patience):
		c.t.Errorf("node %d does not stop", n.cfg.NodeID)
	}
}

// await waits until ok is true. It polls: what it looks at is on the other side of a socket or in other goroutines.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// awaitBrokers waits until every running node tells of n brokers.
func (c *testCluster) awaitBrokers(n int) {
	c.t.Helper()
	for i, node := range c.nodes {
		if node == nil {
			continue
		}
		await(c.t, fmt.Sprintf("node %d knows %d brokers", i+1, n), func() bool {
			live, err := liveBrokers(context.Background(), c.addrs[i])
			return err == nil && live == n
		})
	}
}

// awaitISR waits until every partition of the topic has n replicas in sync and a leader, in the view of every running node.
func (c *testCluster) awaitISR(topic string, n int) {
	c.t.Helper()
	for _, node := range c.nodes {
		if node == nil {
			continue
		}
		await(c.t, fmt.Sprintf("%d in sync for %s, seen by node %d", n, topic, node.cfg.NodeID), func() bool {
			t := node.view.Load().Topics[topic]
			if t == nil {
				return false
			}
			for _, p := range t.Partitions {
				if p.Leader < 0 || len(p.ISR) != n {
					return false
				}
			}
			return true
		})
	}
}

// client makes a franz-go client of the cluster that ends with the test.
func (c *testCluster) client(opts ...kgo.Opt) *kgo.Client {
	c.t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(c.addrs...), kgo.MetadataMinAge(20 * time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	}, opts...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(cl.Close)
	return cl
}

func (c *testCluster) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	c.t.Cleanup(cancel)
	return ctx
}

// create makes a topic and waits until all copies are in sync.
func (c *testCluster) create(topic string, partitions int32, rf int16) {
	c.t.Helper()
	if _, err := kadm.NewClient(c.client()).CreateTopic(c.ctx(), partitions, rf, nil, topic); err != nil {
		c.t.Fatal(err)
	}
	c.awaitISR(topic, int(rf))
}

// produce sends n records to a partition, one after the other, with values "<prefix>-<i>".
func (c *testCluster) produce(cl *kgo.Client, topic string, partition int32, prefix string, n int) {
	c.t.Helper()
	var records []*kgo.Record
	for i := range n {
		records = append(records, &kgo.Record{Topic: topic, Partition: partition, Value: fmt.Appendf(nil, "%s-%d", prefix, i)})
	}
	if err := cl.ProduceSync(c.ctx(), records...).FirstErr(); err != nil {
		c.t.Fatal(err)
	}
}

// consume reads n values of a partition from its start.
func (c *testCluster) consume(topic string, partition int32, n int) []string {
	c.t.Helper()
	cl := c.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().AtStart()}}))
	var got []string
	for ctx := c.ctx(); len(got) < n; {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			c.t.Fatalf("after %d of %d records: %v", len(got), n, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset != int64(len(got)) {
				c.t.Fatalf("record %d has offset %d", len(got), r.Offset)
			}
			got = append(got, string(r.Value))
		})
	}
	return got
}

// sameLogs waits until all running copies of a partition have the same end and high watermark, and checks that their bytes are equal.
func (c *testCluster) sameLogs(topic string, partition int32) {
	c.t.Helper()
	logs := func() (ends map[int64]bool, contents map[string]bool) {
		ends, contents = map[int64]bool{}, map[string]bool{}
		for _, node := range c.nodes {
			if node == nil {
				continue
			}
			t := node.view.Load().Topics[topic]
			if t == nil {
				return nil, nil
			}
			r := node.replicas.get(partitionKey{t.ID, partition})
			if r == nil {
				return nil, nil
			}
			s := r.status()
			if s.HighWatermark != s.LogEnd {
				return nil, nil
			}
			records, err := r.read(s.LogStart, s.LogEnd, 1<<30)
			if err != nil {
				return nil, nil
			}
			raw, err := records.Bytes()
			records.Release()
			if err != nil {
				return nil, nil
			}
			ends[s.LogEnd] = true
			contents[string(raw)] = true
		}
		return ends, contents
	}
	await(c.t, fmt.Sprintf("equal copies of %s-%d", topic, partition), func() bool {
		ends, contents := logs()
		return len(ends) == 1 && len(contents) == 1
	})
}

// ask sends one request to node i and returns the answer.
func (c *testCluster) ask(i int, q kmsg.Request) kmsg.Response {
	c.t.Helper()
	cl, err := wire.Dial(c.ctx(), c.addrs[i], "test", 64<<20)
	if err != nil {
		c.t.Fatal(err)
	}
	defer cl.Close()
	resp, err := cl.Do(c.ctx(), q)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp
}

func (c *testCluster) exists(i int, name string) bool {
	_, err := os.Stat(filepath.Join(c.dirs[i], name))
	return err == nil
}
