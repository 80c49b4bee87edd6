package node

import (
	"context"
	"sync"
	"time"

	"ackproof/broker/core/group"
	"ackproof/broker/core/host"
	"ackproof/broker/core/partition"
)

// groups holds the coordinators of the partitions of the internal topic that this broker leads.
type groups struct {
	n     *Node
	again chan struct{} // holds one: leaderships may have changed
	wg    sync.WaitGroup

	mu      sync.Mutex
	led     map[int32]*coordinator // by partition
	changed news
}

// reloadPause is how long a coordinator that ended by itself stays away.
const reloadPause = 100 * time.Millisecond

// run keeps the coordinators in line with what the replicas lead, until ctx ends.
func (g *groups) run(ctx context.Context) {
	defer g.wg.Wait()
	var seen *view
	var topics *group.Topics
	for {
		fresh := g.n.viewNews.wait()
		v := g.n.view.Load()
		if v != seen {
			seen, topics = v, host.GroupTopics(v.Image)
			g.each(func(c *coordinator) { c.put(group.TopicsChanged{Topics: topics}) })
		}
		g.follow(ctx, v, topics)
		select {
		case <-fresh:
		case <-g.again:
		case <-ctx.Done():
			return
		}
	}
}

func (g *groups) each(do func(*coordinator)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.led {
		do(c)
	}
}

// follow ends the coordinators whose time is over and begins new ones.
func (g *groups) follow(ctx context.Context, v *view, topics *group.Topics) {
	leads := map[int32]*replica{}
	epochs := map[int32]int32{}
	if t := v.Topics[group.Topic]; t != nil {
		for i := range t.Partitions {
			r := g.n.replicas.get(partitionKey{t.ID, int32(i)})
			if r == nil {
				continue
			}
			if s := r.status(); s.Role == partition.Leader {
				leads[int32(i)], epochs[int32(i)] = r, s.LeaderEpoch
			}
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, c := range g.led {
		if leads[i] != c.replica || epochs[i] != c.epoch || c.isEnded() {
			c.cancel()
			delete(g.led, i)
		}
	}
	for i, r := range leads {
		if g.led[i] == nil {
			g.led[i] = g.begin(ctx, r, epochs[i], topics)
		}
	}
	g.changed.broadcast()
}

func (c *coordinator) isEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// begin starts a coordinator: it is there at once, to answer that it is loading (R41).
func (g *groups) begin(ctx context.Context, r *replica, epoch int32, topics *group.Topics) *coordinator {
	c := newCoordinator(g.n, r, epoch)
	ctx, c.cancel = context.WithCancel(ctx)
	c.put(group.TopicsChanged{Topics: topics})
	g.wg.Go(func() { c.run(ctx) })
	g.wg.Go(func() {
		began := time.Now()
		if err := c.load(ctx); err != nil {
			if ctx.Err() == nil && err != errNotLeading {
				g.n.log.Error("loading groups failed", "partition", r.String(), "error", err)
				close(c.torn)
			}
			return
		}
		g.n.log.Debug("groups loaded", "partition", r.String(), "epoch", epoch, "took", time.Since(began))
	})
	g.wg.Go(func() {
		select {
		case <-c.ended:
			if sleep(ctx, reloadPause) {
				poke(g.again)
			}
		case <-ctx.Done():
		}
	})
	return c
}

// of gives the coordinator of a group, nil if it is not here.
func (g *groups) of(id string) *coordinator {
	t := g.n.view.Load().Topics[group.Topic]
	if t == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.led[group.PartitionOf(id, len(t.Partitions))]
}

// soon is of, with a little patience: for news that other brokers have and this one has not, and for a coordinator that is about to be made. The error would be right too, but
// clients take long to ask again. The time counts from began, so that a request waits once and not for each of its groups.
func (g *groups) soon(ctx context.Context, id string, began time.Time) *coordinator {
	for {
		changed := g.changed.wait()
		if c := g.of(id); c != nil {
			return c
		}
		patience := hearTime
		if image := g.n.image.Load(); image != nil {
			if t := image.Topics[group.Topic]; t != nil {
				switch p := t.Partitions[group.PartitionOf(id, len(t.Partitions))]; p.Leader {
				case g.n.cfg.NodeID:
					patience = openTime
				default:
					patience = 0
				}
			}
		}
		left := time.Until(began.Add(patience))
		if left <= 0 {
			return nil
		}
		timer := time.NewTimer(left)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return nil
		}
	}
}
