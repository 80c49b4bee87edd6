package node

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"ackproof/broker/core/controller"
)

// view is an image of the metadata with what the requests look up in it. Immutable.
type view struct {
	*controller.Image
	byID map[[16]byte]*controller.Topic
}

func newView(image *controller.Image) *view {
	v := &view{Image: image, byID: make(map[[16]byte]*controller.Topic, len(image.Topics))}
	for _, t := range image.Topics {
		v.byID[t.ID] = t
	}
	return v
}

// names gives the topics' names in order.
func (v *view) names() []string {
	out := make([]string, 0, len(v.Topics))
	for name := range v.Topics {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// live gives the unfenced brokers, by id.
func (v *view) live() []*controller.Broker { return v.brokers(false) }

func (v *view) brokers(fenced bool) []*controller.Broker {
	var out []*controller.Broker
	for _, b := range v.Brokers {
		if fenced || !b.Fenced {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b *controller.Broker) int { return int(a.ID) - int(b.ID) })
	return out
}

func rack(b *controller.Broker) *string {
	if b.Rack == "" {
		return nil
	}
	return &b.Rack
}

// topicRef is how a request names a topic: by name, or by id in newer versions (R24).
type topicRef struct {
	name string
	id   [16]byte
	byID bool
}

// find looks a topic up.
func (v *view) find(ref topicRef) (*controller.Topic, *kerr.Error) {
	if ref.byID {
		if t := v.byID[ref.id]; t != nil {
			return t, nil
		}
		return nil, kerr.UnknownTopicID
	}
	if t := v.Topics[ref.name]; t != nil {
		return t, nil
	}
	return nil, kerr.UnknownTopicOrPartition
}

// partitionKey names a partition for its whole life: a topic that is created again has another id (R24).
type partitionKey struct {
	topic     [16]byte
	partition int32
}

// leaderHint is a leader that an error answer may name (KIP-951).
type leaderHint struct{ leader, epoch int32 }

var noHint = leaderHint{-1, -1}

// find gives this broker's replica of a partition, or an error and, where it helps, who leads.
func (n *Node) find(v *view, ref topicRef, index int32) (*replica, leaderHint, *kerr.Error) {
	t, err := v.find(ref)
	if epoch := n.appliedEpoch.Load(); err != nil && (epoch < 0 || v.Index < uint64(epoch)) {
		return nil, noHint, kerr.NotLeaderForPartition // it has just started and knows nothing yet; clients take a topic that is unknown for one that is gone
	}
	if err != nil {
		return nil, noHint, err
	}
	if index < 0 || int(index) >= len(t.Partitions) {
		return nil, noHint, kerr.UnknownTopicOrPartition
	}
	if r := n.replicas.get(partitionKey{t.ID, index}); r != nil {
		return r, noHint, nil
	}
	p := t.Partitions[index]
	return nil, leaderHint{p.Leader, p.LeaderEpoch}, kerr.NotLeaderForPartition
}

const (
	hearTime = 50 * time.Millisecond // for metadata that other brokers have and this one has not
	openTime = time.Second           // for logs that are being opened
)

// findSoon is find for a Produce: a topic that its client knows already and this broker does not, or whose log is being opened, is waited for a
// moment. The error would be right too, but clients take seconds to look again. The time counts from began, so that a request waits once and not for
// each of its partitions.
func (n *Node) findSoon(ctx context.Context, v *view, ref topicRef, index int32, began time.Time) (*replica, leaderHint, *kerr.Error) {
	r, hint, code := n.find(v, ref, index)
	if code == nil || hint.leader >= 0 && hint.leader != n.cfg.NodeID {
		return r, hint, code
	}
	wait := func(limit time.Duration) {
		ctx, cancel := context.WithDeadline(ctx, began.Add(limit))
		defer cancel()
		n.awaitView(ctx, func(v *view) bool {
			r, hint, code = n.find(v, ref, index)
			return code == nil
		})
	}
	if wait(hearTime); code == nil {
		return r, hint, code
	}
	if image := n.image.Load(); image.Topics[ref.name] != nil || ref.byID && image.TopicByID(ref.id) != nil {
		wait(openTime)
	}
	return r, hint, code
}

// hints collects the brokers whose addresses go with leader hints.
type hints struct {
	view *view
	ids  []int32
}

func (h *hints) add(leader int32) {
	if leader >= 0 && !slices.Contains(h.ids, leader) {
		h.ids = append(h.ids, leader)
	}
}

func (h *hints) brokers() []*controller.Broker {
	var out []*controller.Broker
	for _, id := range h.ids {
		if b := h.view.Brokers[id]; b != nil && !b.Fenced {
			out = append(out, b)
		}
	}
	return out
}

// replicaMap holds this broker's replicas.
type replicaMap struct {
	mu  sync.RWMutex
	all map[partitionKey]*replica
}

func (m *replicaMap) get(key partitionKey) *replica {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.all[key]
}

func (m *replicaMap) put(r *replica) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[partitionKey]*replica{}
	}
	m.all[r.key] = r
}

func (m *replicaMap) remove(key partitionKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, key)
}

// list gives all replicas, in no particular order.
func (m *replicaMap) list() []*replica {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := make([]*replica, 0, len(m.all))
	for _, r := range m.all {
		out = append(out, r)
	}
	return out
}
