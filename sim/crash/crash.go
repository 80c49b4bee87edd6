// Package crash proves a store by crashing it: a short run of calls on a log of package segment is stopped at every single change of a simulated disk, by a kill,
// a loss of power or a failure of the disk; each time the log is recovered and compared with a model. What was flushed must be there, what was never
// written must not, a truncation and its checkpoint come together or not at all, and what recovery calls durable must survive the next loss of power.
//
// It looks at the store alone. That a broker counts on no more than the store promises is for the simulated cluster to find out. Start reading at Campaign.
package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"

	"ackproof/broker/storage/sample"
	"ackproof/sim/disk"
)

// Campaign crashes the written run, and so many random ones that follow from the seed.
func Campaign(seed uint64, random int, first bool) Tally {
	t := Tally{First: first}
	for n := range random + 1 {
		r := rand.New(rand.NewPCG(seed, uint64(n)))
		run := Written()
		if n > 0 {
			run = Random(r)
		}
		t.FlipBits(run, r, 50)
		t.FailEverywhere(run, r)
		t.CrashEverywhere(run, r, 4, n > 0)
		if t.done() {
			break
		}
	}
	return t
}

// Tally counts what a campaign did, and keeps what it found. The zero value is usable.
type Tally struct {
	// First ends everything at the first finding.
	First bool

	Runs    int // runs that were crashed
	Changes int // changes of the disk in them, at each of which they were stopped
	States  int // crash states that were recovered
	Second  int // and states after a second crash, in a recovery
	Faults  int // failures of the disk
	Flips   int // flipped bits
	// Findings are the differences from the model, each with where it was. None: the store is right as far as the campaign went.
	Findings []string
}

func (t *Tally) find(format string, args ...any) {
	t.Findings = append(t.Findings, fmt.Sprintf(format, args...))
}

// done tells whether nothing more is to be looked for.
func (t *Tally) done() bool { return t.First && len(t.Findings) > 0 }

// String says what was done.
func (t Tally) String() string {
	return fmt.Sprintf("%d runs, stopped at each of %d changes: %d crash states recovered, %d more after a second crash in recovery, %d failures of the disk, %d flipped bits", t.Runs, t.Changes, t.States, t.Second, t.Faults, t.Flips)
}

// loss is a way to lose power.
type loss struct {
	name   string
	choose disk.Choices // nil: no power loss, only a kill
	twice  bool         // the recovery is crashed too, when that is asked for
}

func losses(r *rand.Rand, random int) []loss {
	out := []loss{
		{"kill", nil, true}, {"lose all", disk.LoseAll, false}, {"lose nothing", disk.LoseNothing, false}, {"lose names", disk.LoseNames, false},
		{"lose content", disk.LoseContent, false}, {"tear the tail", disk.TearTail, false}, {"last first", disk.LastFirst, true},
	}
	for i := range random {
		out = append(out, loss{fmt.Sprintf("random %d", i), disk.Random(r), i == 0})
	}
	return out
}

func (l loss) hit(d *disk.Disk) {
	if l.choose == nil {
		d.Kill()
	} else {
		d.PowerLoss(l.choose)
	}
}

// stopEverywhere stops the run at each change in turn, and then calls visit with the disk as it was left and the model before and after the step that was cut off.
func (t *Tally) stopEverywhere(run Run, r *rand.Rand, visit func(change int, left *disk.Disk, before, next model, s *step)) {
	after, changes, err := run.whole()
	if err != nil {
		t.find("%v", err)
		return
	}
	t.Runs++
	t.Changes += changes
	for k := range changes + 1 {
		p := &player{disk: disk.New()}
		p.disk.StopAt(k, disk.Random(r))
		before, next, s, err := p.play(run, after)
		if k < changes && !errors.Is(err, disk.ErrStopped) {
			t.find("stopped at change %d: %v", k, err)
			continue
		}
		visit(k, p.disk, before, next, s)
	}
}

// CrashEverywhere stops the run at each change in turn, and loses power in so many random ways beside the written ones. second also crashes each recovery.
func (t *Tally) CrashEverywhere(run Run, r *rand.Rand, random int, second bool) {
	t.stopEverywhere(run, r, func(k int, left *disk.Disk, before, next model, s *step) {
		for _, l := range losses(r, random) {
			if t.done() {
				return
			}
			d := left.Clone()
			l.hit(d)
			where := fmt.Sprintf("change %d, in %s, %s", k, nameOf(s), l.name)
			t.States++
			t.verify(d, before, next, s, l.choose == nil, where)
			if second && l.twice {
				t.secondCrash(d, before, next, s, r, where)
			}
		}
	})
}

// Exhaust stops the run at each change in turn and goes through every state that a loss of power can leave then, one after the other; where there are more than
// most, only through so many, and cut is counted up.
func (t *Tally) Exhaust(run Run, r *rand.Rand, most int) (cut int) {
	t.stopEverywhere(run, r, func(k int, left *disk.Disk, before, next model, s *step) {
		n := 0
		for e := new(disk.Enumeration); e.Next() && !t.done(); n++ {
			if n == most {
				cut++
				return
			}
			d := left.Clone()
			d.PowerLoss(e.Choose)
			t.States++
			t.verify(d, before, next, s, false, fmt.Sprintf("change %d, in %s, state %d", k, nameOf(s), n))
		}
	})
	return cut
}

func nameOf(s *step) string {
	if s == nil {
		return "the end"
	}
	return s.name
}

// verify recovers, compares, and sees that what recovery calls durable is, and that the log goes on.
func (t *Tally) verify(from *disk.Disk, before, next model, s *step, memoryKept bool, where string) {
	d := from.Clone()
	first, log, err := look(d)
	if err == nil {
		err = first.allowed(before, next, s, memoryKept)
	}
	if err != nil {
		t.find("%s: %v", where, err)
		return
	}
	again := d.Clone()
	again.PowerLoss(disk.LoseAll)
	if got, _, err := look(again); err != nil || !reflect.DeepEqual(got, first) {
		t.find("%s: after recovery %+v; after another power loss %+v, %v", where, first.bounds, got.bounds, err)
		return
	}
	more := sample.Batches(first.bounds.End, 3, 2, 90, 150)
	if err := errors.Join(log.Append(more, false), log.Flush()); err != nil {
		t.find("%s: append after recovery: %v", where, err)
		return
	}
	d.PowerLoss(disk.LoseAll)
	got, _, err := look(d)
	if err == nil {
		err = sample.Same(got.batches, slices.Concat(first.batches, more))
	}
	if err != nil {
		t.find("%s: what was appended after recovery and flushed: %v", where, err)
	}
}

// secondCrash stops the recovery at each of its changes.
func (t *Tally) secondCrash(from *disk.Disk, before, next model, s *step, r *rand.Rand, where string) {
	whole := from.Clone()
	if _, _, err := look(whole); err != nil {
		return // verify said so
	}
	for k := from.Changes(); k < whole.Changes(); k++ {
		for _, l := range []loss{{name: "lose all", choose: disk.LoseAll}, {name: "last first", choose: disk.LastFirst}, {name: "random", choose: disk.Random(r)}} {
			d := from.Clone()
			p := &player{disk: d}
			d.StopAt(k, disk.Random(r))
			if err := p.open(); !errors.Is(err, disk.ErrStopped) {
				t.find("%s: recovery stopped at change %d: %v", where, k, err)
				continue
			}
			l.hit(d)
			t.Second++
			got, _, err := look(d)
			if err == nil {
				err = got.allowed(before, next, s, false)
			}
			if err != nil {
				t.find("%s, then in recovery at change %d, %s: %v", where, k, l.name, err)
			}
		}
	}
}
