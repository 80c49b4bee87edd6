package kafkaproto

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
)

// view is what one node says.
type view struct {
	node       int
	index      int64 // how far it has read the metadata log, 0 if it does not tell
	controller int   // 0: it does not know
	epoch      int32 // of the controller
	brokers    int   // that it lists
	topic      kmsg.MetadataResponseTopic
	groups     kmsg.MetadataResponseTopic // the internal one; without partitions until there are groups
}

// groupsTopic holds the state of consumer groups.
const groupsTopic = "__consumer_offsets"

// Roles gives the newest view of all nodes that answer, see merge. It waits for stragglers only shortly once there is an answer.
func (c *Cluster) Roles(ctx context.Context) (systems.Roles, error) {
	views, err := c.views(ctx, stragglers)
	if err != nil {
		return systems.Roles{}, err
	}
	return merge(views, c.Partitions), nil
}

// all gives the views of all nodes that answer within the patience.
func (c *Cluster) all(ctx context.Context) ([]view, error) { return c.views(ctx, c.Patience) }

// views asks all nodes at once. Once there is an answer the others have as long as late says.
func (c *Cluster) views(ctx context.Context, late time.Duration) ([]view, error) {
	type answer struct {
		v   view
		err error
	}
	answers := make(chan answer, len(c.Nodes))
	asked := 0
	var errs []error
	for _, n := range c.Nodes {
		if alive, _ := n.Alive(); !alive {
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
	var end <-chan time.Time
	for range asked {
		select {
		case a := <-answers:
			if a.err != nil {
				errs = append(errs, a.err)
				continue
			}
			out = append(out, a.v)
			if end == nil {
				end = time.After(late)
			}
		case <-end:
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

// viewOf asks one node: first how far it has read, then what it sees, so that the index is never ahead of the view. Where the first question is passed on to the
// controller it may find nobody; then the view has none.
func (c *Cluster) viewOf(n systems.Node) (view, error) {
	v := view{node: n.ID()}
	l := c.line(n.ID())
	if c.OwnIndex {
		err := l.talk(n, c.Patience, func(conn net.Conn) error {
			if err := v.quorum(conn); err != nil {
				return err
			}
			return v.metadata(conn, c.Topic)
		})
		return v, err
	}
	if err := l.talk(n, c.Patience, func(conn net.Conn) error { return v.metadata(conn, c.Topic) }); err != nil {
		return v, err
	}
	// On a connection of its own: the answer may take longer than anybody waits, and must not hold up the next view.
	if err := c.line(-n.ID()).talk(n, c.Patience, v.quorum); err != nil {
		v.controller, v.epoch = 0, 0
	}
	v.index = 0
	return v, nil
}

func (v *view) quorum(conn net.Conn) error {
	resp, err := RoundTrip(conn, quorumRequest())
	if err != nil {
		return err
	}
	for _, t := range resp.(*kmsg.DescribeQuorumResponse).Topics {
		for _, p := range t.Partitions {
			v.index, v.controller, v.epoch = p.HighWatermark, max(0, int(p.LeaderID)), p.LeaderEpoch
		}
	}
	return nil
}

func (v *view) metadata(conn net.Conn, topic string) error {
	resp, err := RoundTrip(conn, metadataRequest(topic))
	if err != nil {
		return err
	}
	r := resp.(*kmsg.MetadataResponse)
	for _, t := range r.Topics {
		switch err := kerr.ErrorForCode(t.ErrorCode); {
		case t.Topic == nil:
		case *t.Topic == groupsTopic && err == nil:
			v.groups = t
		case *t.Topic == topic && err != nil:
			return fmt.Errorf("ask for the metadata of %q: %w", topic, err)
		case *t.Topic == topic:
			v.topic, v.brokers = t, len(r.Brokers)
		}
	}
	if v.topic.Topic == nil {
		return fmt.Errorf("the answer to Metadata has %d topics, and none is %q", len(r.Topics), topic)
	}
	return nil
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

func metadataRequest(topic string) kmsg.Request {
	q := kmsg.NewPtrMetadataRequest()
	q.Version = 12
	for _, name := range []string{topic, groupsTopic} {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = &name
		q.Topics = append(q.Topics, t)
	}
	return q
}

// merge gives what the views say together. The controller is the one of the newest epoch, and among equal ones whom most nodes name, because one that is cut off may go on
// naming itself.
func merge(views []view, partitions int) systems.Roles {
	slices.SortFunc(views, func(a, b view) int {
		if a.index != b.index {
			return int(min(1, max(-1, b.index-a.index)))
		}
		return a.node - b.node
	})
	internal := 0
	votes := map[int]int{}
	for _, v := range views {
		internal = max(internal, len(v.groups.Partitions))
		if v.controller != 0 {
			votes[v.controller]++
		}
	}
	r := systems.Roles{
		Partitions:   newest(views, func(v view) kmsg.MetadataResponseTopic { return v.topic }, partitions),
		Coordinators: newest(views, func(v view) kmsg.MetadataResponseTopic { return v.groups }, internal),
	}
	epoch := int32(-1)
	for _, v := range views {
		if v.controller != 0 && (v.epoch > epoch || v.epoch == epoch && votes[v.controller] > votes[r.Controller]) {
			r.Controller, epoch = v.controller, v.epoch
		}
	}
	return r
}

// newest takes for each partition of a topic the largest leader epoch, and among equal ones the view that has read furthest, then the leader's own: an in-sync set may change
// within an epoch, and it is the leader who proposes it.
func newest(views []view, of func(view) kmsg.MetadataResponseTopic, partitions int) []systems.PartitionRoles {
	if partitions == 0 {
		return nil
	}
	out := make([]systems.PartitionRoles, partitions)
	type rank struct {
		epoch int32
		index int64
		own   bool
	}
	best := make([]rank, partitions)
	for i := range best {
		best[i].epoch = -1
	}
	for _, v := range views {
		for _, p := range of(v).Partitions {
			if p.Partition < 0 || int(p.Partition) >= partitions {
				continue
			}
			this, have := rank{p.LeaderEpoch, v.index, int(p.Leader) == v.node}, best[p.Partition]
			if this.epoch < have.epoch || this.epoch == have.epoch && (this.index < have.index || this.index == have.index && (have.own || !this.own)) {
				continue
			}
			best[p.Partition] = this
			out[p.Partition] = systems.PartitionRoles{Leader: max(0, int(p.Leader)), LeaderEpoch: p.LeaderEpoch,
				Replicas: ints(p.Replicas), ISR: ints(p.ISR), Offline: ints(p.OfflineReplicas)}
		}
	}
	return out
}

func ints(ids []int32) []int {
	out := make([]int, len(ids))
	for i, id := range ids {
		out[i] = int(id)
	}
	return out
}
