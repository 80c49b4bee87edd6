// Package kafkaproto asks a cluster that speaks Kafka's protocol what it is and whether it is ready: views, roles, the test's topic. It goes past every proxy, to
// where nodes really listen, and knows nothing of which broker answers. Start reading at Cluster.
package kafkaproto

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/systems"
)

// Cluster is a cluster as it is asked. The fields are set before the first call and stay.
type Cluster struct {
	Nodes       []systems.Node // those that serve clients
	Topic       string
	Partitions  int
	Replication int
	// OwnIndex: DescribeQuorum tells how far the node that answers has read the metadata log. Kafka's nodes pass the question on, so their answers tell nothing
	// of themselves.
	OwnIndex bool
	// Patience is how long one node has to tell its view, and Attempt how long one attempt to make the topic may take: after each it is looked whether a node has ended.
	Patience, Attempt time.Duration

	mu    sync.Mutex
	lines map[int]*line
	topic [16]byte
}

const (
	// stragglers is how long the others have after the first node has answered: those that are paused or cut off never will.
	stragglers = 20 * time.Millisecond
	retryEach  = 25 * time.Millisecond
)

// line is a connection that is kept: a real broker pays dearly for each new one, and roles are asked for many times a second.
type line struct {
	mu   sync.Mutex // held by whoever waits for an answer
	conn net.Conn
	pid  int // of the life of the node that it leads to
}

// line is the connection with that number.
func (c *Cluster) line(node int) *line {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lines == nil {
		c.lines = map[int]*line{}
	}
	if c.lines[node] == nil {
		c.lines[node] = &line{}
	}
	return c.lines[node]
}

// Close closes the connections that are kept. The cluster may be asked again afterwards.
func (c *Cluster) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lines {
		l.mu.Lock()
		l.close()
		l.mu.Unlock()
	}
}

func (l *line) close() {
	if l.conn != nil {
		l.conn.Close()
		l.conn = nil
	}
}

var errBusy = errors.New("has not answered the last question yet")

// talk opens the connection if there is none and lets do use it, for no longer than the patience; after an error it is closed, since a late answer would meet the next
// request. Nobody waits in line: behind a node that is paused, questions would pile up.
func (l *line) talk(n systems.Node, patience time.Duration, do func(net.Conn) error) error {
	if !l.mu.TryLock() {
		return fmt.Errorf("%s: %w", n.Name(), errBusy)
	}
	defer l.mu.Unlock()
	if pid := n.PID(); pid != l.pid {
		l.close()
		l.pid = pid
	}
	end := time.Now().Add(patience)
	if l.conn == nil {
		conn, err := net.DialTimeout("tcp", n.Addr(), patience)
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name(), err)
		}
		l.conn = conn
	}
	l.conn.SetDeadline(end)
	if err := do(l.conn); err != nil {
		l.close()
		return fmt.Errorf("%s: %w", n.Name(), err)
	}
	return nil
}

// Setting is one property of a topic.
type Setting struct{ Name, Value string }

// CreateTopic makes the test's topic, as soon as the cluster takes requests. It gives up when a node has ended.
func (c *Cluster) CreateTopic(ctx context.Context, settings ...Setting) error {
	q := kmsg.NewPtrCreateTopicsRequest()
	q.Version, q.TimeoutMillis = 7, int32(c.Attempt.Milliseconds())
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = c.Topic, int32(c.Partitions), int16(c.Replication)
	for _, s := range settings {
		e := kmsg.NewCreateTopicsRequestTopicConfig()
		e.Name, e.Value = s.Name, kmsg.StringPtr(s.Value)
		t.Configs = append(t.Configs, e)
	}
	q.Topics = append(q.Topics, t)
	var last error
	for i := 0; ; i++ {
		n := c.Nodes[i%len(c.Nodes)]
		resp, err := Ask(n.Addr(), q, c.Attempt+c.Patience)
		if err == nil {
			r := resp.(*kmsg.CreateTopicsResponse)
			if len(r.Topics) == 1 {
				made := r.Topics[0]
				err = kerr.ErrorForCode(made.ErrorCode)
				if err == nil || errors.Is(err, kerr.TopicAlreadyExists) { // the answer to an earlier attempt was lost
					return nil
				}
				if made.ErrorMessage != nil {
					err = fmt.Errorf("%w: %s", err, *made.ErrorMessage)
				}
			}
		}
		last = fmt.Errorf("create topic %q at %s: %w", c.Topic, n.Name(), err)
		if !c.alive() || !sleep(ctx, retryEach) {
			return last
		}
	}
}

// AwaitReady returns when every node says that every partition is led and every in-sync set is full. It gives up when a node has ended.
func (c *Cluster) AwaitReady(ctx context.Context) error {
	for {
		views, err := c.all(ctx)
		if err == nil {
			if err = c.ready(views); err == nil {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.topic = views[0].topic.TopicID
				return nil
			}
		}
		if !c.alive() || !sleep(ctx, retryEach) {
			return fmt.Errorf("wait until the cluster is ready: %w", err)
		}
	}
}

// TopicID is the id of the test's topic, zero before the cluster was seen to be ready.
func (c *Cluster) TopicID() [16]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.topic
}

func (c *Cluster) ready(views []view) error {
	if len(views) < len(c.Nodes) {
		return fmt.Errorf("%d of %d nodes answer", len(views), len(c.Nodes))
	}
	for _, v := range views {
		if v.brokers < len(c.Nodes) {
			return fmt.Errorf("n%d sees %d of %d brokers", v.node, v.brokers, len(c.Nodes))
		}
		if len(v.topic.Partitions) != c.Partitions {
			return fmt.Errorf("n%d sees %d of %d partitions", v.node, len(v.topic.Partitions), c.Partitions)
		}
		for _, p := range v.topic.Partitions {
			if p.Leader < 0 || len(p.ISR) < c.Replication {
				return fmt.Errorf("n%d sees p%d with leader %d and in-sync set %v, expected %d in sync", v.node, p.Partition, p.Leader, p.ISR, c.Replication)
			}
		}
	}
	return nil
}

// alive: no node has ended.
func (c *Cluster) alive() bool {
	for _, n := range c.Nodes {
		if alive, _ := n.Alive(); !alive {
			return false
		}
	}
	return true
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
