package reference

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/systems"
	"ackproof/systems/process"
)

const (
	viewTimeout = 300 * time.Millisecond // for one node to tell its view
	// stragglers is how long the others have after the first node has answered: those that are paused or cut off never will.
	stragglers = 20 * time.Millisecond
	retryEach  = 25 * time.Millisecond
	// createTimeout is for one attempt: after each it is looked whether a node has ended.
	createTimeout = time.Second
)

// view is what one node says.
type view struct {
	node       int
	index      int64 // how far it has read the metadata log
	controller int
	topic      kmsg.MetadataResponseTopic
}

// Roles implements systems.System.
func (c *Cluster) Roles(ctx context.Context) (systems.Roles, error) {
	views, err := c.views(ctx)
	if err != nil {
		return systems.Roles{}, err
	}
	return merge(views, c.o.Partitions), nil
}

// views asks all nodes at once, past the proxies. It waits for stragglers only shortly once there is an answer.
func (c *Cluster) views(ctx context.Context) ([]view, error) {
	type answer struct {
		v   view
		err error
	}
	answers := make(chan answer, len(c.nodes))
	asked := 0
	var errs []error
	for _, n := range c.nodes {
		if n.PID() == 0 {
			errs = append(errs, fmt.Errorf("%s is down", n.Name()))
			continue
		}
		asked++
		go func() {
			v, err := c.viewOf(n)
			answers <- answer{v, err}
		}()
	}
	var out []view
	var late <-chan time.Time
	for range asked {
		select {
		case a := <-answers:
			if a.err != nil {
				errs = append(errs, a.err)
				continue
			}
			out = append(out, a.v)
			if late == nil {
				late = time.After(stragglers)
			}
		case <-late:
			return out, nil
		case <-ctx.Done():
			if len(out) > 0 {
				return out, nil
			}
			return nil, fmt.Errorf("ask for roles: %w", context.Cause(ctx))
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("ask for roles: no node answers: %w", errors.Join(errs...))
	}
	return out, nil
}

// viewOf asks one node: first how far it has read, then what it sees, so that the index is never ahead of the view.
func (c *Cluster) viewOf(n *process.Node) (view, error) {
	conn, err := net.DialTimeout("tcp", n.Addr(), viewTimeout)
	if err != nil {
		return view{}, fmt.Errorf("%s: %w", n.Name(), err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(viewTimeout))
	v := view{node: n.ID()}
	resp, err := roundTrip(conn, quorumRequest())
	if err != nil {
		return view{}, fmt.Errorf("%s: %w", n.Name(), err)
	}
	for _, t := range resp.(*kmsg.DescribeQuorumResponse).Topics {
		for _, p := range t.Partitions {
			v.index, v.controller = p.HighWatermark, max(0, int(p.LeaderID))
		}
	}
	if resp, err = roundTrip(conn, c.metadataRequest()); err != nil {
		return view{}, fmt.Errorf("%s: %w", n.Name(), err)
	}
	topics := resp.(*kmsg.MetadataResponse).Topics
	if len(topics) != 1 {
		return view{}, fmt.Errorf("%s: Metadata answers with %d topics, expected %q alone", n.Name(), len(topics), c.o.Topic)
	}
	if err := kerr.ErrorForCode(topics[0].ErrorCode); err != nil {
		return view{}, fmt.Errorf("%s: Metadata of %q: %w", n.Name(), c.o.Topic, err)
	}
	v.topic = topics[0]
	return v, nil
}

func quorumRequest() kmsg.Request {
	q := kmsg.NewPtrDescribeQuorumRequest()
	q.Version = 1
	t := kmsg.NewDescribeQuorumRequestTopic()
	t.Topic = "__cluster_metadata"
	t.Partitions = append(t.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
	q.Topics = append(q.Topics, t)
	return q
}

func (c *Cluster) metadataRequest() kmsg.Request {
	q := kmsg.NewPtrMetadataRequest()
	q.Version = 12
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = &c.o.Topic
	q.Topics = append(q.Topics, t)
	return q
}

// merge takes for each partition the largest leader epoch, and among equal ones the view that has read furthest: an in-sync set may change
// within an epoch. The controller is whom most nodes name, because one that is cut off may go on naming itself.
func merge(views []view, partitions int) systems.Roles {
	slices.SortFunc(views, func(a, b view) int {
		if a.index != b.index {
			return int(min(1, max(-1, b.index-a.index)))
		}
		return a.node - b.node
	})
	r := systems.Roles{Partitions: make([]systems.PartitionRoles, partitions)}
	best := make([]int32, partitions)
	votes := map[int]int{}
	for i := range best {
		best[i] = -1
	}
	for _, v := range views {
		if v.controller != 0 {
			votes[v.controller]++
		}
		for _, p := range v.topic.Partitions {
			if p.Partition < 0 || int(p.Partition) >= partitions || p.LeaderEpoch <= best[p.Partition] {
				continue
			}
			best[p.Partition] = p.LeaderEpoch
			r.Partitions[p.Partition] = systems.PartitionRoles{Leader: max(0, int(p.Leader)), LeaderEpoch: p.LeaderEpoch,
				Replicas: ints(p.Replicas), ISR: ints(p.ISR), Offline: ints(p.OfflineReplicas)}
		}
	}
	for _, v := range views {
		if v.controller != 0 && (r.Controller == 0 || votes[v.controller] > votes[r.Controller]) {
			r.Controller = v.controller
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

// createTopic makes the test's topic, as soon as the cluster takes requests.
func (c *Cluster) createTopic(ctx context.Context) error {
	q := kmsg.NewPtrCreateTopicsRequest()
	q.Version, q.TimeoutMillis = 7, int32(createTimeout.Milliseconds())
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = c.o.Topic, int32(c.o.Partitions), int16(c.o.Replication)
	for _, kv := range [][2]string{
		{"min.insync.replicas", fmt.Sprint(c.o.MinISR)},
		{"unclean.leader.election.enable", fmt.Sprint(c.o.Unclean)},
	} {
		e := kmsg.NewCreateTopicsRequestTopicConfig()
		e.Name, e.Value = kv[0], kmsg.StringPtr(kv[1])
		t.Configs = append(t.Configs, e)
	}
	q.Topics = append(q.Topics, t)
	var last error
	for i := 0; ; i++ {
		n := c.nodes[i%len(c.nodes)]
		resp, err := ask(n.Addr(), q, createTimeout+viewTimeout)
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
		last = fmt.Errorf("create topic %q at %s: %w", c.o.Topic, n.Name(), err)
		if !c.alive() || !sleep(ctx, retryEach) {
			return last
		}
	}
}

// awaitReady returns when every node says that every partition is led and every in-sync set is full.
func (c *Cluster) awaitReady(ctx context.Context) error {
	for {
		views, err := c.views(ctx)
		if err == nil {
			if err = c.ready(views); err == nil {
				c.mu.Lock()
				c.topicID = views[0].topic.TopicID
				c.mu.Unlock()
				return nil
			}
		}
		if !c.alive() || !sleep(ctx, retryEach) {
			return fmt.Errorf("wait until the cluster is ready: %w", err)
		}
	}
}

func (c *Cluster) ready(views []view) error {
	if len(views) < len(c.nodes) {
		return fmt.Errorf("%d of %d nodes answer", len(views), len(c.nodes))
	}
	for _, v := range views {
		if len(v.topic.Partitions) != c.o.Partitions {
			return fmt.Errorf("n%d sees %d of %d partitions", v.node, len(v.topic.Partitions), c.o.Partitions)
		}
		for _, p := range v.topic.Partitions {
			if p.Leader < 0 || len(p.ISR) < c.o.Replication {
				return fmt.Errorf("n%d sees p%d with leader %d and in-sync set %v, expected %d in sync", v.node, p.Partition, p.Leader, p.ISR, c.o.Replication)
			}
		}
	}
	return nil
}

// alive: no node has ended.
func (c *Cluster) alive() bool {
	for _, n := range c.nodes {
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
