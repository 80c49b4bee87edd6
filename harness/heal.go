package harness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"ackproof/model"
	"ackproof/systems"
	"ackproof/workloads/log"
)

// healPatience bounds the undoing of faults itself: restarts, releases, and an answer over every link; a system whose nodes may take longer to start has that time.
const healPatience = 15 * time.Second

// heal undoes every fault, verifies that, and demands that the system works again within the contract's bound.
func (r *run) heal(ctx context.Context) error {
	begin := time.Now()
	r.Observer.Phase("heal", 0)
	r.mark("heal")
	var unmet []string
	healing, cancel := context.WithTimeout(ctx, max(healPatience, r.timers.Start))
	defer cancel()
	err := r.runner.Heal(healing)
	switch {
	case err == nil:
	case !errors.Is(err, systems.ErrMachine):
		unmet = append(unmet, r.unknownEnds(err)...)
	case !r.certain.sure():
		return infra("heal", err) // a node that the machine cannot start again breaks no promise
	default: // the violation that is certain stands; nothing more is to be shown with a node missing
		r.died("the restart of a node", err)
		return nil
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
	if unmet = r.await(ctx, links, bound); len(unmet) > 0 {
		return time.Since(begin), unmet, nil
	}
	problems := make([]string, r.Options.Partitions)
	r.everyPartition(ctx, links, func(p int32, v *log.Visitor) {
		problems[p] = v.WriteAndRead(bound - time.Since(begin))
	})
	for _, p := range problems {
		if p != "" {
			unmet = append(unmet, p)
		}
	}
	unmet = append(unmet, r.groupsAnswer(ctx, links, bound-time.Since(begin))...)
	return time.Since(begin), unmet, nil
}

// everyPartition visits all partitions at once.
func (r *run) everyPartition(ctx context.Context, links map[int32]string, do func(int32, *log.Visitor)) {
	var all sync.WaitGroup
	for p := range int32(r.Options.Partitions) {
		all.Go(func() {
			r.guard(fmt.Sprintf("the visitor to p%d", p), func() {
				v := r.visit(ctx, 0, p, links)
				defer v.Close()
				do(p, v)
			})
		})
	}
	all.Wait()
}

// await asks all nodes for their views until there is nothing to complain of, or the bound has passed; it returns the last complaints.
func (r *run) await(ctx context.Context, links map[int32]string, bound time.Duration) []string {
	end := time.Now().Add(bound)
	visitors := map[int32]*log.Visitor{}
	for node := range links {
		visitors[node] = r.visit(ctx, 0, 0, links)
		defer visitors[node].Close()
	}
	for {
		complaints := log.Complaints(views(visitors), r.Options.Partitions, r.Options.Replication)
		if len(complaints) == 0 || time.Now().After(end) || ctx.Err() != nil {
			return complaints
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// views asks every node at once.
func views(visitors map[int32]*log.Visitor) []log.NodeView {
	out := make([]log.NodeView, 0, len(visitors))
	for _, node := range slices.Sorted(maps.Keys(visitors)) {
		out = append(out, log.NodeView{Node: node})
	}
	var all sync.WaitGroup
	for i := range out {
		all.Go(func() { out[i].View, out[i].Err = visitors[out[i].Node].View(out[i].Node) })
	}
	all.Wait()
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
