package harness

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// startWatch looks for nodes that end by themselves, from now until endWatch. The first ends the load: no fault asked for it and nothing
// will bring the node back, so one claim is already broken.
func (r *run) startWatch(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.guard("the watch over the nodes", func() { r.watch(ctx) })
	}()
	r.endWatch = func() { stop(); <-done }
}

func (r *run) watch(ctx context.Context) {
	down := map[int]bool{} // ended by itself and not yet back
	t := time.NewTicker(200 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		for _, n := range r.system.Nodes() {
			alive, reason := n.Alive()
			switch {
			case alive || reason == nil: // up, or down by a fault
				down[n.ID()] = false
				continue
			case down[n.ID()]:
				continue
			}
			down[n.ID()] = true
			if r.runner.Disturbed(n.ID()) {
				r.note(fmt.Sprintf("%s ended of a fault of its disk %.1f s into the run (%v); %s", n.Name(), r.now().Seconds(), reason, tail(n)))
				continue
			}
			r.mu.Lock()
			r.ended = append(r.ended, fmt.Sprintf("%s had ended by itself and did not come back: %v", n.Name(), reason))
			r.mu.Unlock()
			r.note(fmt.Sprintf("%s ended by itself %.1f s into the run (%v); %s", n.Name(), r.now().Seconds(), reason, tail(n)))
			r.reach()
		}
	}
}

// endings are the nodes that ended by themselves so far.
func (r *run) endings() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ended)
}
