package nemesis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ackproof/nemesis/vdso"
	"ackproof/systems"
)

// clocks holds the clocks of all nodes for all faults: what several faults want of one clock adds up, and a process that is started anew gets the clock that its
// node has.
type clocks struct {
	machine func(systems.Node) Machine
	stops   *stops

	mu     sync.Mutex
	wanted map[int]map[int]wanted // by node and fault
	held   map[int]heldClock      // by node
}

// wanted is how one fault wants a clock, since when: a drift goes on through restarts.
type wanted struct {
	vdso.Setting
	since time.Time
}

type heldClock struct {
	pid   int
	clock *vdso.Clock
}

func newClocks(machine func(systems.Node) Machine, s *stops) *clocks {
	return &clocks{machine: machine, stops: s, wanted: map[int]map[int]wanted{}, held: map[int]heldClock{}}
}

// want says how the fault wants the node's clock, from now on.
func (c *clocks) want(n systems.Node, fault int, s vdso.Setting) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wanted[n.ID()] == nil {
		c.wanted[n.ID()] = map[int]wanted{}
	}
	c.wanted[n.ID()][fault] = wanted{s, time.Now()}
	return c.apply(n, true)
}

// drop says that the fault wants nothing of the node's clock any more.
func (c *clocks) drop(n systems.Node, fault int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.wanted[n.ID()], fault)
	return c.apply(n, true)
}

// follow gives a process that was started anew the clock that is wanted.
func (c *clocks) follow(n systems.Node) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.apply(n, false)
}

// setting reads back from the node's process how wrong its clock is.
func (c *clocks) setting(n systems.Node) (pid int, s vdso.Setting, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, ok := c.held[n.ID()]
	if !ok {
		return 0, s, fmt.Errorf("the clock of %s is not held", n.Name())
	}
	s, err = h.clock.Setting()
	return h.pid, s, err
}

// apply brings the node's clock to what is wanted of it; c.mu is held. A process that ends meanwhile is no error: its successor is followed. anew
// sets a clock that is held already, since what is wanted has changed.
func (c *clocks) apply(n systems.Node, anew bool) error {
	pid := c.machine(n).Process
	h, ok := c.held[n.ID()]
	if ok && h.pid != pid {
		h.clock.Close()
		delete(c.held, n.ID())
		ok = false
	}
	if pid == 0 || !ok && len(c.wanted[n.ID()]) == 0 {
		return nil
	}
	err := c.bring(n, pid, anew)
	if err != nil && (gone(err) || c.machine(n).Process != pid) {
		return nil
	}
	return err
}

func (c *clocks) bring(n systems.Node, pid int, anew bool) error {
	h, ok := c.held[n.ID()]
	if !ok {
		h.pid, anew = pid, true
		err := c.stops.whileStill(n, func() (err error) { h.clock, err = vdso.Attach(pid); return err })
		if err != nil {
			return err
		}
		c.held[n.ID()] = h
	}
	if len(c.wanted[n.ID()]) == 0 {
		delete(c.held, n.ID())
		if err := c.stops.whileStill(n, h.clock.Detach); err != nil {
			h.clock.Close()
			return err
		}
		return nil
	}
	if !anew {
		return nil
	}
	var sum vdso.Setting
	for _, w := range c.wanted[n.ID()] {
		gained := time.Duration(float64(time.Since(w.since)) * float64(w.DriftPPM) / 1e6)
		sum = sum.Plus(w.Setting).Plus(vdso.Setting{Offset: gained})
	}
	return h.clock.Set(sum)
}

const (
	// followEach is how often it is looked whether a node has been started anew: for so long its new process has the true time.
	followEach = 5 * time.Millisecond
	strobeEach = 50 * time.Millisecond
	// tellTolerance is what a node's word may be off the truth beside the time that its answer took: it tells whole milliseconds.
	tellTolerance = 2 * time.Millisecond
)

// wrongClock is a wrong clock: skewed, drifting or strobing. Its effect: the node says a time that is wrong by so much. A system that cannot be asked for the time
// (systems.Timekeeper) is judged by what its process's memory holds.
type wrongClock struct {
	wound
	began time.Time
	base  []told
	saw   []string
	seen  []bool
	back  []string
}

// told is by how much a node's clock differs from the harness's, as the node says.
type told struct {
	known     bool
	off, give time.Duration // the truth lies within off ± give
	at        time.Time
}

func (w *wrongClock) prepare(ctx context.Context) {
	w.base, w.saw, w.seen, w.back = make([]told, len(w.nodes)), make([]string, len(w.nodes)), make([]bool, len(w.nodes)), make([]string, len(w.nodes))
	w.each(func(i int, n systems.Node) error { w.base[i], _ = w.tell(ctx, n, beforeWait); return nil })
}

// tell asks the node for the time.
func (w *wrongClock) tell(ctx context.Context, n systems.Node, wait time.Duration) (told, error) {
	keeper, ok := w.x.r.System.(systems.Timekeeper)
	if !ok {
		return told{}, errors.New("it cannot be asked for the time")
	}
	asking, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	c, err := directly(n)(asking)
	if err != nil {
		return told{}, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(wait))
	defer context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })()
	before := time.Now()
	t, err := keeper.Time(c, n)
	if err != nil {
		return told{}, err
	}
	took := time.Since(before)
	at := before.Add(took / 2)
	return told{known: true, off: t.Sub(at.Round(0)), give: took/2 + tellTolerance, at: at}, nil
}

// amount by which the clock should be wrong at that moment, while it is.
func (w *wrongClock) amount(at time.Time) time.Duration {
	a := ms(w.l.fault.AmountMS)
	if w.l.fault.Kind == ClockDrift {
		return time.Duration(float64(at.Sub(w.began)) * float64(a) / float64(time.Second))
	}
	return a
}

func (w *wrongClock) setting() vdso.Setting {
	a := ms(w.l.fault.AmountMS)
	if w.l.fault.Kind == ClockDrift {
		return vdso.Setting{DriftPPM: a.Microseconds()} // per second
	}
	return vdso.Setting{Offset: a}
}

func (w *wrongClock) strike() error {
	w.began = time.Now()
	return w.each(func(_ int, n systems.Node) error {
		if err := w.x.r.clocks.want(n, w.l.index, w.setting()); err != nil {
			return fmt.Errorf("the clock of %s: %w", n.Name(), err)
		}
		return nil
	})
}

func (w *wrongClock) during(ctx context.Context) {
	w.each(func(i int, n systems.Node) error {
		if w.l.fault.Kind == ClockStrobe {
			w.strobe(ctx, i, n)
			return nil
		}
		var looking sync.WaitGroup
		looking.Go(func() {
			if w.l.fault.Kind == ClockDrift { // it takes its time to show
				<-ctx.Done()
			}
			w.look(context.WithoutCancel(ctx), i, n)
		})
		w.watch(ctx, n)
		looking.Wait()
		return nil
	})
}

// watch follows the node over its restarts.
func (w *wrongClock) watch(ctx context.Context, n systems.Node) {
	for sleep(ctx, followEach) {
		w.x.r.clocks.follow(n) // an error shows in what is read back
	}
}

// look at the clock of the i-th node while it should be wrong.
func (w *wrongClock) look(ctx context.Context, i int, n systems.Node) {
	pid := n.PID()
	now, err := w.tell(ctx, n, silentWait)
	if err == nil && w.base[i].known {
		off, give, want := now.off-w.base[i].off, now.give+w.base[i].give, w.amount(now.at)
		w.seen[i] = (off-want).Abs() <= give && want.Abs() > give
		w.saw[i] = fmt.Sprintf("%s: pid %d tells a time that is %+d ms off, expected %+d", n.Name(), pid, off.Milliseconds(), want.Milliseconds())
		if want.Abs() <= give {
			w.saw[i] += fmt.Sprintf(", which is too little to be seen in an answer that took %v", give)
		}
		return
	}
	if err == nil {
		err = errors.New("it did not tell the time before")
	}
	pid, have, readErr := w.x.r.clocks.setting(n)
	if readErr != nil {
		w.saw[i] = fmt.Sprintf("%s: %v", n.Name(), readErr)
		return
	}
	w.seen[i] = have != vdso.Setting{}
	w.saw[i] = fmt.Sprintf("%s: pid %d has a clock that is off by %v and gains %d ppm, as its memory says (%v)", n.Name(), pid, have.Offset, have.DriftPPM, err)
}

// strobe turns the clock of the i-th node wrong and right by turns, beginning with right, and looks at it each time that it is wrong, until it has been seen.
func (w *wrongClock) strobe(ctx context.Context, i int, n systems.Node) {
	turns := 0
	for {
		if turns++; !w.seen[i] {
			w.look(context.WithoutCancel(ctx), i, n)
		}
		if !sleep(ctx, strobeEach) || w.x.r.clocks.want(n, w.l.index, vdso.Setting{}) != nil || !sleep(ctx, strobeEach) ||
			w.x.r.clocks.want(n, w.l.index, w.setting()) != nil {
			break
		}
	}
	w.saw[i] += fmt.Sprintf(", %d times", turns)
}

func (w *wrongClock) heal(context.Context) error {
	return w.inTurn(func(_ int, n systems.Node) error {
		if err := w.x.r.clocks.drop(n, w.l.index); err != nil {
			return fmt.Errorf("the clock of %s: %w", n.Name(), err)
		}
		return nil
	})
}

func (w *wrongClock) after(ctx context.Context) {
	w.each(func(i int, n systems.Node) error {
		switch now, err := w.tell(ctx, n, beforeWait); {
		case err == nil:
			w.back[i] = fmt.Sprintf("afterwards %+d ms", now.off.Milliseconds())
		case w.x.hurtByOthers(w.l, n.ID()):
			w.back[i] = "its time afterwards could not be seen: another fault holds it"
		}
		return nil
	})
}

// verdict: a clock that was seen wrong was wrong, whatever it is now.
func (w *wrongClock) verdict() (bool, string) {
	effective := false
	var parts []string
	for i := range w.nodes {
		effective = effective || w.seen[i]
		parts = append(parts, join(", ", w.saw[i], w.back[i]))
	}
	return effective, join("; ", parts...)
}
