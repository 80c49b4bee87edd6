package nemesis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"ackproof/systems"
)

// starved is too little processor: the node runs AmountMS of each 100 ms and stands still for the rest. Its effect: it is seen to stand still, and answers
// come late. A process that is started anew is starved as well.
type starved struct {
	wound
	slowest []time.Duration // answer while it lasted
	missing []int           // answers that did not come at all
	quick   []time.Duration // quickest answer before, 0 if there was none
	stood   []int           // times that it was seen standing still
}

const (
	starvePeriod = 100 * time.Millisecond
	maxStarveMS  = int64(50)
	// starvedAnswer is how late an answer must be, at least once.
	starvedAnswer = starvePeriod / 3
)

func (s *starved) prepare(ctx context.Context) {
	s.slowest, s.quick = make([]time.Duration, len(s.nodes)), make([]time.Duration, len(s.nodes))
	s.missing, s.stood = make([]int, len(s.nodes)), make([]int, len(s.nodes))
	if s.prober == nil {
		return
	}
	s.each(func(i int, n systems.Node) error {
		for range 3 {
			began := time.Now()
			if c, err := ask(ctx, s.prober, directly(n), beforeWait); err == nil {
				if took := time.Since(began); s.quick[i] == 0 || took < s.quick[i] {
					s.quick[i] = took
				}
				c.Close()
			}
		}
		return nil
	})
}

func (s *starved) strike() error { return nil } // the first stop is that of during

func (s *starved) during(ctx context.Context) {
	s.each(func(i int, n systems.Node) error {
		var probing sync.WaitGroup
		if s.prober != nil {
			probing.Go(func() { s.probe(ctx, i, n) })
		}
		for run := ms(s.l.fault.AmountMS); ; {
			release, err := s.x.r.stops.hold(n)
			more := sleep(ctx, starvePeriod-run)
			if err == nil {
				if processState(n.PID()) == "T" {
					s.stood[i]++
				}
				release() // an error means that it is gone; what comes after it is starved in the next round
			}
			if !more || !sleep(ctx, run) {
				break
			}
		}
		probing.Wait()
		return nil
	})
}

func (s *starved) probe(ctx context.Context, i int, n systems.Node) {
	for ctx.Err() == nil {
		began := time.Now()
		c, err := ask(ctx, s.prober, directly(n), 10*starvePeriod)
		took := time.Since(began)
		switch {
		case err == nil:
			c.Close()
			s.slowest[i] = max(s.slowest[i], took)
		case ctx.Err() == nil && silentDial(err):
			s.missing[i]++
		}
		sleep(ctx, retryEach)
	}
}

func (s *starved) heal(context.Context) error { return nil } // during has let go

func (s *starved) after(context.Context) {}

// verdict: a node that was seen standing still and answered late was starved.
func (s *starved) verdict() (bool, string) {
	if s.prober == nil {
		return false, noProber
	}
	effective := false
	var parts []string
	for i, n := range s.nodes {
		late := s.stood[i] > 0 && s.quick[i] > 0 && s.quick[i] < starvedAnswer && (s.slowest[i] >= starvedAnswer || s.missing[i] > 0)
		effective = effective || late
		parts = append(parts, fmt.Sprintf("%s: ran %d of each %d ms, stood still %d times, slowest answer %d ms (before: %.1f ms), %d did not come within %v", n.Name(),
			s.l.fault.AmountMS, starvePeriod.Milliseconds(), s.stood[i], s.slowest[i].Milliseconds(), float64(s.quick[i].Microseconds())/1000, s.missing[i], 10*starvePeriod))
	}
	return effective, join("; ", parts...)
}

// noDescriptors leaves the node no further descriptor: no file can be opened, no connection made or accepted. Its effect: a connection that was open before
// is served, and a new one is not.
type noDescriptors struct {
	wound
	pids   []int
	was    []uint64
	conns  []net.Conn
	proven []bool
	proofs []string
	back   []string
}

func (d *noDescriptors) prepare(ctx context.Context) {
	d.pids, d.was, d.conns = make([]int, len(d.nodes)), make([]uint64, len(d.nodes)), make([]net.Conn, len(d.nodes))
	d.proven, d.proofs, d.back = make([]bool, len(d.nodes)), make([]string, len(d.nodes)), make([]string, len(d.nodes))
	if d.prober == nil {
		return
	}
	d.each(func(i int, n systems.Node) error {
		c, err := ask(ctx, d.prober, directly(n), beforeWait)
		if err != nil {
			d.proofs[i] = fmt.Sprintf("%s did not answer before: %v", n.Name(), err)
		}
		d.conns[i] = c
		return nil
	})
}

func (d *noDescriptors) strike() error {
	return d.each(func(i int, n systems.Node) error {
		d.pids[i] = d.x.r.Backend.Machine(n).Process
		if d.pids[i] == 0 {
			d.proofs[i] = n.Name() + " was down"
			return nil
		}
		was, _, err := tightenDescriptors(d.pids[i])
		if err != nil {
			d.pids[i] = 0
			return fmt.Errorf("take the descriptors of %s: %w", n.Name(), err)
		}
		d.was[i] = was
		return nil
	})
}

func (d *noDescriptors) during(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	d.each(func(i int, n systems.Node) error {
		if d.pids[i] == 0 || d.conns[i] == nil {
			return nil
		}
		old := pingOn(ctx, d.prober, d.conns[i], silentWait)
		c, fresh := ask(ctx, d.prober, directly(n), silentWait)
		if c != nil {
			c.Close()
		}
		same := d.x.r.Backend.Machine(n).Process == d.pids[i]
		d.proven[i] = same && old == nil && fresh != nil
		switch {
		case d.proven[i]:
			d.proofs[i] = fmt.Sprintf("%s: pid %d served an open connection and no new one", n.Name(), d.pids[i])
		case !same:
			d.proofs[i] = fmt.Sprintf("%s: pid %d is gone", n.Name(), d.pids[i])
		case old != nil:
			d.proofs[i] = fmt.Sprintf("%s: pid %d did not serve an open connection either: %v", n.Name(), d.pids[i], old)
		default:
			d.proofs[i] = fmt.Sprintf("%s: pid %d served a new connection", n.Name(), d.pids[i])
		}
		return nil
	})
}

func (d *noDescriptors) heal(context.Context) error {
	return d.inTurn(func(i int, n systems.Node) error {
		if d.conns[i] != nil {
			d.conns[i].Close()
		}
		if d.pids[i] == 0 || d.x.r.Backend.Machine(n).Process != d.pids[i] {
			return nil // a process that was started anew has its own limit
		}
		if err := widenDescriptors(d.pids[i], d.was[i]); err != nil && !gone(err) {
			return fmt.Errorf("give %s its descriptors back: %w", n.Name(), err)
		}
		return nil
	})
}

func (d *noDescriptors) after(ctx context.Context) {
	if d.prober == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, afterWait)
	defer cancel()
	d.each(func(i int, n systems.Node) error {
		if d.pids[i] == 0 {
			return nil
		}
		switch took, err := answers(ctx, d.prober, directly(n)); {
		case err == nil:
			d.back[i] = fmt.Sprintf("a new one again %d ms after", took.Milliseconds())
		case d.x.hurtByOthers(d.l, n.ID()):
			d.back[i] = "what came after could not be seen: another fault holds it"
		default:
			d.back[i] = "afterwards: " + err.Error()
		}
		return nil
	})
}

// verdict: a node that served open connections and no new ones was out of descriptors.
func (d *noDescriptors) verdict() (bool, string) {
	if d.prober == nil {
		return false, noProber
	}
	effective := false
	var parts []string
	for i := range d.nodes {
		effective = effective || d.proven[i]
		parts = append(parts, join(", ", d.proofs[i], d.back[i]))
	}
	return effective, join("; ", parts...)
}

// noMemory leaves the node the memory that it has. A process that is refused more ends, or goes on in a way that nobody knows: it is ended at the heal in any
// case, and started anew. Its effect: the process ended by itself.
type noMemory struct {
	kill
}

func (m *noMemory) strike() error {
	return m.each(func(i int, n systems.Node) error {
		pid := m.x.r.Backend.Machine(n).Process
		mortal, ok := n.(systems.Mortal)
		switch {
		case pid == 0:
			m.proofs[i] = n.Name() + " was down already"
			return nil
		case !ok:
			return fmt.Errorf("take the memory of %s: its end could not be told from one that nobody asked for (systems.Mortal)", n.Name())
		}
		mortal.Expect()
		m.pids[i] = pid
		if _, _, err := tightenMemory(pid); err != nil {
			return fmt.Errorf("take the memory of %s: %w", n.Name(), err)
		}
		return nil
	})
}

func (m *noMemory) during(ctx context.Context) {
	m.each(func(i int, n systems.Node) error {
		if m.pids[i] == 0 {
			return nil
		}
		for {
			if m.x.r.Backend.Machine(n).Process != m.pids[i] {
				m.gone[i] = true
				m.proofs[i] = fmt.Sprintf("%s: pid %d ended for want of memory (%s)", n.Name(), m.pids[i], lastFatal(n))
				return nil
			}
			if !sleep(ctx, followEach) {
				m.proofs[i] = fmt.Sprintf("%s: pid %d asked for no more memory than it had, or bore the refusal", n.Name(), m.pids[i])
				return nil
			}
		}
	})
}

// lastFatal is the last line of the node's log in which a Go or Java program says that there was no memory.
func lastFatal(n systems.Node) string {
	log, err := n.Log()
	if err != nil {
		return err.Error()
	}
	defer log.Close()
	last := "its log does not say so"
	for lines := bufio.NewScanner(log); lines.Scan(); {
		if low := strings.ToLower(lines.Text()); strings.Contains(low, "out of memory") || strings.Contains(low, "cannot allocate memory") || strings.Contains(low, "outofmemory") {
			last = strings.TrimSpace(lines.Text())
		}
	}
	return last
}

func (m *noMemory) heal(ctx context.Context) error {
	err := m.inTurn(func(i int, n systems.Node) error {
		if m.pids[i] != 0 && m.x.r.Backend.Machine(n).Process == m.pids[i] {
			return n.Kill()
		}
		return nil
	})
	return errors.Join(err, m.kill.heal(ctx))
}
