package nemesis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"ackproof/model"
	"ackproof/systems"
)

// execution is one Run.
type execution struct {
	r       *Runner
	s       Schedule
	load    context.Context // ends with the load
	watcher *watcher
	began   time.Time
	lives   []*life

	mu   sync.Mutex
	hurt map[int]int // how many kills and pauses hold each node now
}

// life is one fault while it runs. The fields below effect belong to the fault's goroutine until effect is closed, and are constant afterwards.
type life struct {
	index  int
	fault  Fault
	pick   *rand.Rand
	result model.FaultResult // final when Run returns

	effect    chan struct{} // closed when it took effect, or never will
	healed    chan struct{} // closed when it is healed, or there is nothing to heal
	took      bool
	nodes     []int
	against   []int // the other side of a cut, if it is narrowed down
	partition int32
	seen      systems.Roles // the view by which the targets were chosen
}

// injury is the work of one kind of fault. The order of calls is prepare, strike, during, heal, after; during runs while the fault lasts and
// must return soon after ctx ends.
type injury interface {
	prepare(ctx context.Context)    // probes before
	strike() error                  // take effect
	during(ctx context.Context)     // probes while it lasts
	heal(ctx context.Context) error // undo; returns when undone, verified or not
	after(ctx context.Context)      // probes after
	verdict() (effective bool, proof string)
}

const (
	rolesPatience = 1500 * time.Millisecond // for a role to have a holder when a fault starts
	asidePatience = 4 * time.Second         // for a partition of the preferred kind, as Target.Aside says
	healPatience  = 15 * time.Second        // for a restarted node to answer, unless the system's nodes take longer to start
)

// live is the whole life of one fault.
func (x *execution) live(l *life) {
	ctx, f := x.load, l.fault
	effect, healed := sync.OnceFunc(func() { close(l.effect) }), sync.OnceFunc(func() { close(l.healed) })
	defer healed()
	defer effect()
	l.result = model.FaultResult{Kind: string(f.Kind), Role: string(f.Target.Role), Targets: []string{}}
	fail := func(reason string) {
		l.result.FromMS, l.result.Proof = x.ms(), reason
		l.result.ToMS = l.result.FromMS
		x.tell(l, Judged, reason)
	}

	if ok, why := x.r.Backend.Can(f.Kind); !ok {
		fail(fmt.Sprintf("not started: %s: %s", f.Kind, why))
		return
	}
	since, remark, err := x.await(ctx, l)
	if err == nil {
		err = x.choose(ctx, l, since)
	}
	if err != nil {
		fail("not started: " + err.Error())
		return
	}
	harm := x.injury(l)
	harm.prepare(ctx)
	if ctx.Err() != nil {
		fail("not started: the load ended first")
		return
	}
	if f.Kind.hurts() {
		x.mark(l.nodes, +1)
		defer x.mark(l.nodes, -1)
	}
	x.r.harm.strike(f.Kind, l.nodes)
	strikeErr := harm.strike()
	start := time.Now()
	l.result.FromMS = x.ms()
	l.took = true
	x.tell(l, Began, fmt.Sprintf("%s of %s (%s) took effect", f.Kind, strings.Join(l.result.Targets, ", "), l.result.Role))
	effect()

	lasting, stop := context.WithCancel(ctx)
	var probes sync.WaitGroup
	probes.Go(func() { harm.during(lasting) })
	x.last(l, start.Add(ms(f.ForMS)))
	stop()
	probes.Wait()

	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(healPatience, x.r.System.Timers().Start)+ms(f.StaggerMS)*time.Duration(len(l.nodes)))
	defer cancel()
	healErr := harm.heal(ending)
	x.r.harm.healed(f.Kind, l.nodes)
	l.result.ToMS = x.ms()
	x.tell(l, Healed, fmt.Sprintf("%s of %s healed", f.Kind, strings.Join(l.result.Targets, ", ")))
	healed()
	harm.after(ending)

	effective, proof := harm.verdict()
	l.result.Effective = effective && strikeErr == nil
	l.result.Proof = join("; ", remark, text(strikeErr), proof, text(healErr))
	x.tell(l, Judged, l.result.Proof)
}

// last waits for the moment to heal.
func (x *execution) last(l *life, end time.Time) {
	t := time.NewTimer(time.Until(end))
	defer t.Stop()
	var until chan struct{}
	if j := l.fault.UntilFault; j != nil && *j >= 0 && *j < len(x.lives) {
		until = x.lives[*j].effect
	}
	select {
	case <-t.C:
	case <-until:
	case <-x.load.Done():
	}
}

func (x *execution) injury(l *life) injury {
	base := wound{x: x, l: l, prober: prober(x.r.System)}
	for _, n := range x.r.System.Nodes() {
		for _, id := range l.nodes {
			if n.ID() == id {
				base.nodes = append(base.nodes, n)
			}
		}
	}
	return newInjury(base)
}

func prober(s systems.System) systems.Prober {
	p, _ := s.(systems.Prober)
	return p
}

func (x *execution) ms() int64 { return time.Since(x.began).Milliseconds() }

func (x *execution) mark(nodes []int, by int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, n := range nodes {
		x.hurt[n] += by
	}
}

// hurtNow tells whether a kill or a pause holds the node.
func (x *execution) hurtNow(node int) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.hurt[node] > 0
}

// hurtByOthers is hurtNow without what the fault itself does.
func (x *execution) hurtByOthers(l *life, node int) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	own := 0
	if l.fault.Kind.hurts() && slices.Contains(l.nodes, node) {
		own = 1
	}
	return x.hurt[node] > own
}

func (x *execution) tell(l *life, step Step, note string) {
	if x.r.Event == nil {
		return
	}
	x.r.events.Lock()
	defer x.r.events.Unlock()
	x.r.Event(FaultStep{Fault: l.index, Step: step, At: time.Since(x.began), Kind: l.fault.Kind, Preset: l.fault.Preset, Nodes: l.nodes,
		Partition: l.partition, Note: note, Result: l.result})
}
