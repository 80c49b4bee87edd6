package nemesis

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"ackproof/systems"
)

// Heal undoes everything that any fault may have left: it resumes and restarts all nodes, releases all lanes, and returns when every node
// answers directly and through every link. An error names what does not. A node that had ended by itself is restarted too, and its end is
// part of the error, because no fault asked for it.
func (r *Runner) Heal(ctx context.Context) error {
	network := r.Backend.Network()
	network.ReleaseAll()
	ping := prober(r.System)
	if ping == nil {
		return errors.New("heal: the system offers no probe (systems.Prober)")
	}
	nodes := r.System.Nodes()
	errs := make([]error, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() { errs[i] = r.healNode(ctx, ping, n) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (r *Runner) healNode(ctx context.Context, ping systems.Prober, n systems.Node) error {
	var ended error
	if n.PID() != 0 {
		n.Resume() // a node that is not paused does not mind; one that is gone is started below
	}
	if alive, reason := n.Alive(); !alive {
		if reason != nil {
			ended = fmt.Errorf("heal: %s had ended by itself: %w", n.Name(), reason)
		}
		if err := n.Start(ctx); err != nil {
			return errors.Join(ended, fmt.Errorf("heal: restart %s: %w", n.Name(), err))
		}
	}
	if _, err := answers(ctx, ping, directly(n)); err != nil {
		return errors.Join(ended, fmt.Errorf("heal: %s does not answer at %s: %w", n.Name(), n.Addr(), err))
	}
	network := r.Backend.Network()
	for _, d := range network.Dialers(NodeParty(n.ID())) {
		if _, err := answers(ctx, ping, over(network, d, NodeParty(n.ID()))); err != nil {
			return errors.Join(ended, fmt.Errorf("heal: %s does not answer over the link from %v: %w", n.Name(), d, err))
		}
	}
	return ended
}
