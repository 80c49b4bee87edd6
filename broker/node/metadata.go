package node

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/group"
	"ackproof/broker/core/host"
)

// autoCreateWait bounds how long a Metadata request waits for a topic that it makes.
const autoCreateWait = 5 * time.Second

// handleMetadata answers from this node's image, once it has this node's own registration: before that the image may be of another age.
func (n *Node) handleMetadata(ctx context.Context, q *kmsg.MetadataRequest) (kmsg.Response, error) {
	v, err := n.awaitReady(ctx)
	if err != nil {
		return nil, err
	}
	if missing := n.missingTopics(v, q); len(missing) > 0 {
		v = n.createMissing(ctx, missing)
	}
	resp := q.ResponseKind().(*kmsg.MetadataResponse)
	resp.Default()
	resp.ClusterID = &n.cfg.Cluster
	resp.ControllerID = n.controllerFor(v)
	for _, b := range v.live() {
		o := kmsg.NewMetadataResponseBroker()
		o.NodeID, o.Host, o.Port, o.Rack = b.ID, b.Host, b.Port, rack(b)
		resp.Brokers = append(resp.Brokers, o)
	}
	all := q.Topics == nil || (q.Version == 0 && len(q.Topics) == 0) // v0 has no null
	if all {
		for _, name := range v.names() {
			resp.Topics = append(resp.Topics, host.DescribeTopic(v.Image, v.Topics[name]))
		}
		return resp, nil
	}
	named := make(map[string]bool, len(q.Topics))
	for _, t := range q.Topics {
		if t.Topic != nil {
			if named[*t.Topic] {
				continue // once is enough, as in Kafka
			}
			named[*t.Topic] = true
		}
		resp.Topics = append(resp.Topics, n.metadataOf(v, q, &t))
	}
	return resp, nil
}

// metadataOf describes one topic that was asked for.
func (n *Node) metadataOf(v *view, q *kmsg.MetadataRequest, asked *kmsg.MetadataRequestTopic) kmsg.MetadataResponseTopic {
	ref := topicRef{id: asked.TopicID, byID: true}
	if asked.Topic != nil {
		ref = topicRef{name: *asked.Topic}
	}
	t, code := v.find(ref)
	if t != nil {
		return host.DescribeTopic(v.Image, t)
	}
	out := kmsg.NewMetadataResponseTopic()
	out.Topic, out.TopicID, out.ErrorCode = asked.Topic, asked.TopicID, code.Code
	if asked.Topic != nil && !validTopic(*asked.Topic) {
		out.ErrorCode = kerr.InvalidTopicException.Code
	}
	if asked.Topic == nil && q.Version < 12 {
		empty := ""
		out.Topic = &empty
	}
	return out
}

// controllerFor names the broker to which clients send requests for the controller: the one that leads the control plane if it is unfenced, else any
// that lives, since each passes them on.
func (n *Node) controllerFor(v *view) int32 {
	if b := v.Brokers[n.control.leader()]; b != nil && !b.Fenced {
		return b.ID
	}
	if live := v.live(); len(live) > 0 {
		return live[0].ID
	}
	return -1
}

// missingTopics lists the topics that this request shall create.
func (n *Node) missingTopics(v *view, q *kmsg.MetadataRequest) []string {
	if !n.cfg.AutoCreate || (q.Version >= 4 && !q.AllowAutoTopicCreation) {
		return nil
	}
	var out []string
	for _, t := range q.Topics {
		if t.Topic != nil && v.Topics[*t.Topic] == nil && validTopic(*t.Topic) {
			out = append(out, *t.Topic)
		}
	}
	return out
}

// createMissing creates topics and gives the view that has them, or the newest one if that takes too long: the client then learns that they are
// unknown, and asks again.
func (n *Node) createMissing(ctx context.Context, names []string) *view {
	ctx, cancel := context.WithTimeout(ctx, autoCreateWait)
	defer cancel()
	q := kmsg.NewPtrCreateTopicsRequest()
	q.Version, q.TimeoutMillis = 7, int32(autoCreateWait/time.Millisecond)
	for _, name := range names {
		q.Topics = append(q.Topics, n.layoutOf(name))
	}
	resp, err := n.askController(ctx, q)
	if err != nil {
		n.log.Warn("could not create topics that a client asked for", "topics", names, "error", err)
		return n.view.Load()
	}
	var made []string
	for _, t := range resp.(*kmsg.CreateTopicsResponse).Topics {
		if t.ErrorCode == 0 || t.ErrorCode == kerr.TopicAlreadyExists.Code {
			made = append(made, t.Topic)
		} else {
			n.log.Warn("could not create a topic that a client asked for", "topic", t.Topic, "error", kerr.ErrorForCode(t.ErrorCode))
		}
	}
	v, _ := n.awaitView(ctx, func(v *view) bool {
		return !slices.ContainsFunc(made, func(name string) bool { return v.Topics[name] == nil })
	})
	return v
}

// layoutOf says how a topic is made that nobody described: by the defaults, or as groups need it.
func (n *Node) layoutOf(name string) kmsg.CreateTopicsRequestTopic {
	if name == group.Topic {
		return host.GroupTopicLayout(n.cfg.OffsetsPartitions, min(n.cfg.OffsetsReplication, int16(len(n.cfg.Voters))))
	}
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, -1, -1
	return t
}

// validTopic: Kafka's rule for topic names.
func validTopic(name string) bool {
	if name == "" || name == "." || name == ".." || len(name) > 249 {
		return false
	}
	for _, c := range []byte(name) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}
