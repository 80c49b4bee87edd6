package nemesis

import (
	"context"
	"fmt"
	"time"

	"ackproof/systems"
)

// pause is SIGSTOP, healed by SIGCONT. Its effect: the process is in state T and does not answer; afterwards it does.
type pause struct {
	wound
	pids    []int
	release []func() error
	stopped []bool
	proofs  []string
	back    []string
}

func (p *pause) prepare(context.Context) {
	p.pids, p.stopped, p.release = make([]int, len(p.nodes)), make([]bool, len(p.nodes)), make([]func() error, len(p.nodes))
	p.proofs, p.back = make([]string, len(p.nodes)), make([]string, len(p.nodes))
}

func (p *pause) strike() error {
	return p.each(func(i int, n systems.Node) error {
		if p.pids[i] = n.PID(); p.pids[i] == 0 {
			p.proofs[i] = n.Name() + " was down"
			return nil
		}
		release, err := p.x.r.stops.hold(n)
		if err != nil {
			return fmt.Errorf("pause %s: %w", n.Name(), err)
		}
		p.release[i] = release
		// The signal stops the threads one by one. The fault has taken effect when all stand still.
		for end := time.Now().Add(silentWait); processState(p.pids[i]) != "T" && time.Now().Before(end); {
			time.Sleep(200 * time.Microsecond)
		}
		return nil
	})
}

func (p *pause) during(ctx context.Context) {
	p.each(func(i int, n systems.Node) error {
		if p.pids[i] == 0 || p.prober == nil {
			return nil
		}
		state, began := processState(p.pids[i]), time.Now()
		c, err := ask(ctx, p.prober, directly(n), silentWait)
		if err == nil {
			c.Close()
		}
		again := processState(p.pids[i]) // still stopped when the probe gave up, so that its silence was the pause's
		p.stopped[i] = state == "T" && again == "T" && silent(err)
		switch {
		case err == nil:
			p.proofs[i] = fmt.Sprintf("%s: pid %d answered while paused", n.Name(), p.pids[i])
		case p.stopped[i]:
			p.proofs[i] = fmt.Sprintf("%s: pid %d in state T, no answer for %d ms", n.Name(), p.pids[i], time.Since(began).Milliseconds())
		default:
			p.proofs[i] = fmt.Sprintf("%s: pid %d in state %q, then %q, expected T; the probe gave %v", n.Name(), p.pids[i], state, again, err)
		}
		return nil
	})
}

func (p *pause) heal(context.Context) error {
	return p.inTurn(func(i int, n systems.Node) error {
		if p.release[i] == nil {
			return nil // it was down
		}
		if err := p.release[i](); err != nil {
			return fmt.Errorf("resume %s: %w", n.Name(), err)
		}
		return nil
	})
}

func (p *pause) after(ctx context.Context) {
	if p.prober == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, afterWait)
	defer cancel()
	p.each(func(i int, n systems.Node) error {
		if p.pids[i] == 0 {
			return nil
		}
		took, err := answers(ctx, p.prober, directly(n))
		switch {
		case err == nil:
			p.back[i] = fmt.Sprintf("answered %d ms after it went on", took.Milliseconds())
		case p.x.hurtByOthers(p.l, n.ID()):
			p.back[i] = "its going on could not be seen: another fault holds it"
		default:
			p.back[i] = "after it went on: " + err.Error()
		}
		return nil
	})
}

// verdict: a process that was seen stopped and silent has been paused.
func (p *pause) verdict() (bool, string) {
	if p.prober == nil {
		return false, noProber
	}
	effective := false
	var parts []string
	for i := range p.nodes {
		effective = effective || p.stopped[i]
		parts = append(parts, join(", ", p.proofs[i], p.back[i]))
	}
	return effective, join("; ", parts...)
}
