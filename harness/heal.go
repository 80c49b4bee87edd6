package harness

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"ackproof/model"
	"ackproof/workloads/kafka"
	"ackproof/workloads/log"
)

// healPatience bounds the undoing of faults itself: restarts, releases, and an answer over every link.
const healPatience = 15 * time.Second

// heal undoes every fault, verifies that, and demands that the system works again within the contract's bound.
func (r *run) heal(ctx context.Context) error {
	begin := time.Now()
	r.Observer.Phase("heal", 0)
	r.mark("heal")
	var unmet []string
	healing, cancel := context.WithTimeout(ctx, healPatience)
	defer cancel()
	if err := r.runner.Heal(healing); err != nil {
		unmet = append(unmet, r.unknownEnds(err)...)
	}
	bound := time.Duration(r.contract.LivenessBoundMS) * time.Millisecond
	took, missing, err := r.recovery(ctx, bound)
	if err != nil {
		return err
	}
	unmet = append(unmet, missing...)
	if len(unmet) > 0 {
		r.note("after healing: " + strings.Join(unmet, "; "))
	}
	r.facts.Liveness = model.Recovery{Checked: ctx.Err() == nil, BoundMS: bound.Milliseconds(), TookMS: took.Milliseconds(), Unmet: unmet}
	r.seconds.Heal = time.Since(begin).Seconds()
	return nil
}

// unknownEnds gives the lines of an error of the healing that tell more than the watch over the nodes already knows.
func (r *run) unknownEnds(err error) []string {
	var out []string
	for line := range strings.Lines(err.Error()) {
		known := slices.ContainsFunc(r.endings(), func(ended string) bool {
			name, _, _ := strings.Cut(ended, " ")
			return strings.Contains(line, name+" had ended by itself")
		})
		if !known {
			out = append(out, strings.TrimRight(line, "\n"))
		}
	}
	return out
}

// recovery waits until everything works: the brokers agree on leaders, the in-sync sets are full, each partition accepts a write and gives
// it back. It returns how long that took and, when the bound has passed, what still does not work.
func (r *run) recovery(ctx context.Context, bound time.Duration) (took time.Duration, unmet []string, err error) {
	begin := time.Now()
	links, _, err := r.links(0)
	if err != nil {
		return 0, nil, infra("open the links of the harness", err)
	}
	if unmet = r.await(ctx, links, bound, fullViews); len(unmet) > 0 {
		return time.Since(begin), unmet, nil
	}
	problems := make([]string, r.Options.Partitions)
	r.everyPartition(ctx, links, func(p int32, v *log.Visitor) {
		problems[p] = writeAndRead(ctx, p, v, begin.Add(bound))
	})
	for _, p := range problems {
		if p != "" {
			unmet = append(unmet, p)
		}
	}
	return time.Since(begin), unmet, nil
}

// writeAndRead demands an accepted write and its reading until the end; "" if both were seen.
func writeAndRead(ctx context.Context, p int32, v *log.Visitor, end time.Time) string {
	position, written := int64(-1), false
	for {
		if !written {
			if wrote, err := v.Write(); err == nil && wrote.Outcome == kafka.Applied {
				written, position = true, wrote.Offset
			}
		}
		if written {
			if position < 0 { // acknowledged without a position
				position = max(0, v.End().Offset-1)
			}
			if got := v.ReadAt(position); got.Code == 0 && got.Next > position {
				return ""
			}
		}
		if time.Now().After(end) || ctx.Err() != nil {
			if !written {
				return fmt.Sprintf("p%d accepts no write", p)
			}
			return fmt.Sprintf("p%d does not give back what it acknowledged at offset %d", p, position)
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// everyPartition visits all partitions at once.
func (r *run) everyPartition(ctx context.Context, links map[int32]string, do func(int32, *log.Visitor)) {
	var all sync.WaitGroup
	for p := range int32(r.Options.Partitions) {
		all.Go(func() {
			r.guard(fmt.Sprintf("the visitor to p%d", p), func() {
				v := r.visit(ctx, p, links)
				defer v.Close()
				do(p, v)
			})
		})
	}
	all.Wait()
}

// await asks all nodes for their views until missing finds nothing to complain of, or the bound has passed; it returns the last complaints.
func (r *run) await(ctx context.Context, links map[int32]string, bound time.Duration, missing func(r *run, views []nodeView) []string) []string {
	end := time.Now().Add(bound)
	visitors := map[int32]*log.Visitor{}
	for node := range links {
		visitors[node] = r.visit(ctx, 0, links)
		defer visitors[node].Close()
	}
	for {
		complaints := missing(r, views(visitors))
		if len(complaints) == 0 || time.Now().After(end) || ctx.Err() != nil {
			return complaints
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// nodeView is what one node says of the topic.
type nodeView struct {
	node int32
	view kafka.View
	err  error
}

// views asks every node at once.
func views(visitors map[int32]*log.Visitor) []nodeView {
	out := make([]nodeView, 0, len(visitors))
	for _, node := range slices.Sorted(maps.Keys(visitors)) {
		out = append(out, nodeView{node: node})
	}
	var all sync.WaitGroup
	for i := range out {
		all.Go(func() { out[i].view, out[i].err = visitors[out[i].node].View(out[i].node) })
	}
	all.Wait()
	return out
}

// fullViews complains of nodes that do not answer or disagree, of partitions without a leader and of in-sync sets that are not full.
func fullViews(r *run, views []nodeView) []string {
	var out []string
	for _, v := range views {
		if v.err != nil {
			out = append(out, fmt.Sprintf("n%d gives no view: %v", v.node, v.err))
		}
	}
	for p := range int32(r.Options.Partitions) {
		var first *nodeView
		for i := range views {
			v := &views[i]
			if v.err != nil {
				continue
			}
			said, ok := v.view.Partitions[p]
			if first == nil {
				first = v
			}
			before := first.view.Partitions[p]
			var complaint string
			switch {
			case !ok:
				complaint = fmt.Sprintf("n%d does not know p%d", v.node, p)
			case said.Node <= 0:
				complaint = fmt.Sprintf("p%d has no leader", p)
			case said.Leader != before.Leader:
				complaint = fmt.Sprintf("n%d says that n%d leads p%d in epoch %d, n%d says n%d in epoch %d",
					first.node, before.Node, p, before.Epoch, v.node, said.Node, said.Epoch)
			case len(said.ISR) < r.Options.Replication:
				complaint = fmt.Sprintf("p%d has the in-sync set %v, expected %d members", p, said.ISR, r.Options.Replication)
			}
			if complaint != "" {
				out = append(out, complaint)
				break
			}
		}
	}
	return out
}

// pause waits, or returns early when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
