package nemesis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ackproof/model"
	"ackproof/systems"
)

// Runner carries out a schedule against a running system and proves what each fault did. Set the fields before the first call and leave them.
type Runner struct {
	// System must implement systems.Prober: a fault that cannot be probed is never called effective.
	System systems.System
	Mesh   *Mesh
	// Acked tells how many records of the partition have been acknowledged so far. Without it AckedMore is never reached.
	Acked func(partition int32) int64
	// Event, if set, is told each step of each fault as it happens, one at a time, for the journal. It must not block for long: faults wait for it.
	Event func(FaultStep)

	events  sync.Mutex
	changes atomic.Int64
}

// Step is a point in the life of a fault.
type Step string

// The steps. A fault that never took effect has only Judged.
const (
	Began  Step = "began"  // it has just taken effect
	Healed Step = "healed" // it has just been healed
	Judged Step = "judged" // the probes have decided; Result is final
)

// FaultStep is one step of one fault.
type FaultStep struct {
	Fault     int // index in the schedule
	Step      Step
	At        time.Duration // since the load began
	Kind      Kind
	Preset    string
	Nodes     []int
	Partition int32  // that the targets were chosen by, −1 if by none
	Note      string // one line for people
	Result    model.FaultResult
}

// LeaderChanges counts how often a partition got another leader while schedules ran, as seen by watching the roles.
func (r *Runner) LeaderChanges() int { return int(r.changes.Load()) }

// Run carries out the schedule, beginning now, and returns when every fault is healed and judged; the results are in the order of the
// schedule. When ctx ends, faults that last are healed at once and those that have not begun never do. All waits are bounded.
func (r *Runner) Run(ctx context.Context, s Schedule) []model.FaultResult {
	w := newWatcher(r.System)
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	var watch sync.WaitGroup
	watch.Go(func() { w.run(watching) })
	x := &execution{r: r, s: s, watcher: w, began: time.Now(), hurt: map[int]int{}}
	for i := range s.Faults {
		x.lives = append(x.lives, &life{index: i, fault: s.Faults[i], partition: -1, effect: make(chan struct{}), healed: make(chan struct{}),
			pick: rand.New(rand.NewPCG(uint64(s.Seed), uint64(i)))})
	}
	var all sync.WaitGroup
	for _, l := range x.lives {
		all.Go(func() { x.live(ctx, l) })
	}
	all.Wait()
	stop()
	watch.Wait()
	r.changes.Add(int64(w.leaderChanges()))
	out := make([]model.FaultResult, len(x.lives))
	for i, l := range x.lives {
		out[i] = l.result
	}
	return out
}

// execution is one Run.
type execution struct {
	r       *Runner
	s       Schedule
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
	partition int32
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
	healPatience  = 15 * time.Second        // for a restarted node to answer
)

func (x *execution) live(ctx context.Context, l *life) {
	f := l.fault
	effect, healed := sync.OnceFunc(func() { close(l.effect) }), sync.OnceFunc(func() { close(l.healed) })
	defer healed()
	defer effect()
	l.result = model.FaultResult{Kind: string(f.Kind), Role: string(f.Target.Role), Targets: []string{}}
	fail := func(reason string) {
		l.result.FromMS, l.result.Proof = x.ms(), reason
		l.result.ToMS = l.result.FromMS
		x.tell(l, Judged, reason)
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
	if f.Kind != Partition {
		x.mark(l.nodes, +1)
		defer x.mark(l.nodes, -1)
	}
	strikeErr := harm.strike()
	start := time.Now()
	l.result.FromMS = x.ms()
	l.took = true
	x.tell(l, Began, fmt.Sprintf("%s of %s (%s) took effect", f.Kind, strings.Join(l.result.Targets, ", "), l.result.Role))
	effect()

	lasting, stop := context.WithCancel(ctx)
	var probes sync.WaitGroup
	probes.Go(func() { harm.during(lasting) })
	x.last(ctx, l, start.Add(time.Duration(f.ForMS)*time.Millisecond))
	stop()
	probes.Wait()

	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), healPatience)
	defer cancel()
	healErr := harm.heal(ending)
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
func (x *execution) last(ctx context.Context, l *life, end time.Time) {
	t := time.NewTimer(time.Until(end))
	defer t.Stop()
	var until chan struct{}
	if j := l.fault.UntilFault; j != nil && *j >= 0 && *j < len(x.lives) {
		until = x.lives[*j].effect
	}
	select {
	case <-t.C:
	case <-until:
	case <-ctx.Done():
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
	switch l.fault.Kind {
	case Kill:
		return &kill{wound: base}
	case Pause:
		return &pause{wound: base}
	}
	return newPartition(base)
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
	if l.fault.Kind != Partition && slices.Contains(l.nodes, node) {
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

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// join the parts that are not empty.
func join(sep string, parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, sep)
}
