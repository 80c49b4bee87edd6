package nemesis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"

	"ackproof/systems"
)

// wound is what all injuries share.
type wound struct {
	x      *execution
	l      *life
	prober systems.Prober
	nodes  []systems.Node
}

// each does something to all targets at the same time and returns what went wrong.
func (w *wound) each(do func(i int, n systems.Node) error) error {
	errs := make([]error, len(w.nodes))
	var all sync.WaitGroup
	for i, n := range w.nodes {
		all.Go(func() { errs[i] = do(i, n) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// lanes are those round which the fault's cut is drawn.
func (w *wound) lanes(n Network) []Lane {
	return w.l.fault.Cut.Lanes(w.l.nodes, w.l.against, w.x.nodeIDs(), n.Clients(), w.l.pick)
}

// inTurn heals target after target with the fault's stagger between them, or all at once without one.
func (w *wound) inTurn(do func(i int, n systems.Node) error) error {
	if w.l.fault.StaggerMS == 0 {
		return w.each(do)
	}
	var errs []error
	for i, n := range w.nodes {
		if i > 0 {
			sleep(w.x.load, ms(w.l.fault.StaggerMS)) // no longer than the load lasts
		}
		errs = append(errs, do(i, n))
	}
	return errors.Join(errs...)
}

const noProber = "not provable: the system offers no probe (systems.Prober)"

// kill is SIGKILL, healed by a restart. Its effect: the process is gone and its address refuses; after the restart it answers.
type kill struct {
	wound
	pids   []int
	proofs []string
	gone   []bool
	back   []string
}

func (k *kill) prepare(context.Context) {
	k.pids, k.proofs = make([]int, len(k.nodes)), make([]string, len(k.nodes))
	k.gone, k.back = make([]bool, len(k.nodes)), make([]string, len(k.nodes))
}

func (k *kill) strike() error {
	return k.each(func(i int, n systems.Node) error {
		if k.pids[i] = n.PID(); k.pids[i] == 0 {
			k.proofs[i] = n.Name() + " was down already"
			return nil
		}
		if err := n.Kill(); err != nil {
			return fmt.Errorf("kill %s: %w", n.Name(), err)
		}
		return nil
	})
}

func (k *kill) during(context.Context) {
	k.each(func(i int, n systems.Node) error {
		if k.pids[i] == 0 {
			return nil
		}
		gone := errors.Is(syscall.Kill(k.pids[i], 0), syscall.ESRCH)
		c, err := net.DialTimeout("tcp", n.Addr(), silentWait)
		if err == nil {
			c.Close()
		}
		refused := errors.Is(err, syscall.ECONNREFUSED)
		k.gone[i] = gone && refused
		switch {
		case !gone:
			k.proofs[i] = fmt.Sprintf("%s: pid %d is still there", n.Name(), k.pids[i])
		case !refused:
			k.proofs[i] = fmt.Sprintf("%s: pid %d gone, but a dial of %s gave %v instead of a refusal", n.Name(), k.pids[i], n.Addr(), err)
		default:
			k.proofs[i] = fmt.Sprintf("%s: pid %d gone, %s refused", n.Name(), k.pids[i], n.Addr())
		}
		return nil
	})
}

func (k *kill) heal(ctx context.Context) error {
	return k.inTurn(func(_ int, n systems.Node) error {
		if n.PID() != 0 {
			return nil // another fault has restarted it
		}
		if err := n.Start(ctx); err != nil {
			return fmt.Errorf("restart %s: %w", n.Name(), err)
		}
		return nil
	})
}

func (k *kill) after(ctx context.Context) {
	if k.prober == nil {
		return
	}
	k.each(func(i int, n systems.Node) error {
		took, err := answers(ctx, k.prober, directly(n))
		switch {
		case err == nil:
			k.back[i] = fmt.Sprintf("pid %d answered %d ms after the restart", n.PID(), took.Milliseconds())
		case k.x.hurtByOthers(k.l, n.ID()):
			k.back[i] = "the restart could not be seen: another fault holds it"
		default:
			k.back[i] = "after the restart: " + err.Error()
		}
		return nil
	})
}

// verdict: a process that is seen gone has been killed, whatever its restart brings.
func (k *kill) verdict() (bool, string) {
	if k.prober == nil {
		return false, noProber
	}
	effective := false
	var parts []string
	for i := range k.nodes {
		effective = effective || k.gone[i]
		parts = append(parts, join(", ", k.proofs[i], k.back[i]))
	}
	return effective, join("; ", parts...)
}
