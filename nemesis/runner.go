package nemesis

import (
	"context"
	"math/rand/v2"
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
	System  systems.System
	Backend Backend
	// Acked tells how many records of the partition have been acknowledged so far. Without it AckedMore is never reached.
	Acked func(partition int32) int64
	// Event, if set, is told each step of each fault as it happens, one at a time, for the journal. It must not block for long: faults wait for it.
	Event func(FaultStep)
	// Moment, if set, gives the number of the last event of the journal, for ExposedUntil.
	Moment func() uint64

	events  sync.Mutex
	changes atomic.Int64
	once    sync.Once
	stops   stops
	clocks  *clocks
	harm    exposing
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

// LeaderChanges counts how often a partition got another leader during the runs that have returned, as seen by watching the roles.
func (r *Runner) LeaderChanges() int { return int(r.changes.Load()) }

// Exposed tells whether the faults so far took from some partition every copy that an acknowledgement may have rested on; see Exposure.
func (r *Runner) Exposed() bool { return r.harm.exposed() }

// ExposedUntil is the Moment at which every copy was whole again after that, as Exposure.Until has it.
func (r *Runner) ExposedUntil() uint64 { return r.harm.until() }

// Disturbed tells whether the end of the node's process is to be put down to a fault of its disk.
func (r *Runner) Disturbed(node int) bool { return r.harm.disturbed(node) }

// Run carries out the schedule, beginning now, and returns when every fault is healed and judged; the results are in the order of the
// schedule. When ctx ends, faults that last are healed at once and those that have not begun never do. All waits are bounded.
func (r *Runner) Run(ctx context.Context, s Schedule) []model.FaultResult {
	r.once.Do(func() {
		r.clocks = newClocks(r.Backend.Machine, &r.stops)
		c := r.System.Contract()
		r.harm.begin(Exposure{Flushed: c.FlushEach, One: c.MinISR == 1, Moment: r.Moment}, r.System.Timers().Session+rolesTimeout)
	})
	w := newWatcher(r.System, r.harm.look)
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	var watch sync.WaitGroup
	watch.Go(func() { w.run(watching) })
	x := &execution{r: r, s: s, load: ctx, watcher: w, began: time.Now(), hurt: map[int]int{}}
	for i := range s.Faults {
		x.lives = append(x.lives, &life{index: i, fault: s.Faults[i], partition: -1, effect: make(chan struct{}), healed: make(chan struct{}),
			pick: rand.New(rand.NewPCG(uint64(s.Seed), uint64(i)))})
	}
	var all sync.WaitGroup
	for _, l := range x.lives {
		all.Go(func() { x.live(l) })
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
