package disk_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ackproof/broker/record"
	"ackproof/broker/storage"
	"ackproof/broker/storage/files"
	"ackproof/broker/storage/segment"
	"ackproof/broker/storage/storagetest"
	"ackproof/sim/disk"
)

// The campaign: a short run on a log of package segment is stopped at each change of its disk in turn, by a kill, a power loss or a failure of the disk. Each
// time the log is recovered and compared with a model.

const logDir = "/data/topic-0"

// campaignEnv asks for a long campaign: so many random runs beside the written one.
const campaignEnv = "ACKPROOF_CRASH_RUNS"

// model is what a log must hold: everything below durable for certain, and of what follows any beginning.
type model struct {
	start, durable int64
	batches        []record.Batch
	checkpoint     storage.Checkpoint
}

func (m model) end() int64 {
	if n := len(m.batches); n > 0 {
		return m.batches[n-1].NextOffset()
	}
	return m.start
}

// step is one call on the log. While it is under way the log is as before or as after. A cut is one or the other; anything else may also stop half-way.
type step struct {
	name string
	cut  bool
	do   func(*player) error
	next func(model, storage.Bounds) model // bounds: of the log after the step
}

// player is a run under way.
type player struct {
	disk *disk.Disk
	log  storage.Log
}

func (p *player) open() error {
	l, err := segment.Open(logDir, segment.Options{FS: p.disk.Mount(), SegmentBytes: 700, IndexBytes: 200})
	if err != nil {
		return err
	}
	p.log = l
	return nil
}

func same(m model, _ storage.Bounds) model { return m }

func open() step {
	return step{name: "open", do: (*player).open, next: func(m model, _ storage.Bounds) model { m.durable = m.end(); return m }}
}

func closed(clean bool) step {
	return step{name: fmt.Sprintf("close, clean %t", clean), do: func(p *player) error { return p.log.Close(clean) }, next: func(m model, _ storage.Bounds) model {
		if clean {
			m.durable = m.end()
		}
		return m
	}}
}

func appended(n, each int, epoch int32, bytes int) step {
	batches := func(end int64) []record.Batch { return storagetest.Batches(end, n, each, epoch, bytes) }
	return step{
		name: fmt.Sprintf("append %d batches of epoch %d", n, epoch),
		do:   func(p *player) error { return p.log.Append(batches(p.log.Bounds().End), false) },
		next: func(m model, _ storage.Bounds) model {
			m.batches = slices.Concat(m.batches, batches(m.end()))
			return m
		},
	}
}

func flushed() step {
	return step{name: "flush", do: func(p *player) error { return p.log.Flush() }, next: func(m model, _ storage.Bounds) model { m.durable = m.end(); return m }}
}

// checkpoint makes one that tells which step it is of.
func checkpoint(id int, start, hw int64) storage.Checkpoint {
	return storage.Checkpoint{LogStart: start, HighWatermark: hw, Producers: []byte(strconv.Itoa(id)), ProducersAt: start}
}

func saved(id int) step {
	cp := func(b storage.Bounds) storage.Checkpoint { return checkpoint(id, b.Start, (b.Start+b.End)/2) }
	return step{
		name: "save",
		do:   func(p *player) error { return p.log.Save(cp(p.log.Bounds())) },
		next: func(m model, b storage.Bounds) model { m.checkpoint = cp(b); return m },
	}
}

// truncated cuts the last `back` offsets off.
func truncated(id int, back int64) step {
	to := func(b storage.Bounds) int64 { return max(b.Start, b.End-back) }
	cp := func(b storage.Bounds) storage.Checkpoint { return checkpoint(id, b.Start, b.Start) }
	return step{
		name: fmt.Sprintf("truncate %d offsets", back),
		cut:  true,
		do: func(p *player) error {
			b := p.log.Bounds()
			return p.log.Truncate(to(b), cp(b))
		},
		next: func(m model, b storage.Bounds) model {
			m.batches = slices.DeleteFunc(slices.Clone(m.batches), func(x record.Batch) bool { return x.NextOffset() > max(m.start, m.end()-back) })
			m.checkpoint, m.durable = cp(b), m.end()
			return m
		},
	}
}

func trimmed(id int, keep int64) step {
	cp := func(b storage.Bounds) storage.Checkpoint {
		at := max(b.Start, b.End-keep)
		return checkpoint(id, at, at)
	}
	var given storage.Checkpoint
	return step{
		name: fmt.Sprintf("trim to the last %d offsets", keep),
		cut:  true,
		do: func(p *player) error {
			given = cp(p.log.Bounds())
			return p.log.Trim(given)
		},
		next: func(m model, b storage.Bounds) model {
			m.batches = slices.DeleteFunc(slices.Clone(m.batches), func(x record.Batch) bool { return x.BaseOffset < b.Start })
			m.start, m.checkpoint = b.Start, given
			if b.Durable > m.durable {
				m.durable = b.Durable
			}
			return m
		},
	}
}

func reset(id int, start int64) step {
	cp := checkpoint(id, start, start)
	return step{
		name: fmt.Sprintf("reset to %d", start),
		cut:  true,
		do:   func(p *player) error { return p.log.Reset(start, cp) },
		next: func(model, storage.Bounds) model { return model{start: start, durable: start, checkpoint: cp} },
	}
}

// writtenRun has one of everything, in the neighbourhoods that matter.
func writtenRun() []step {
	return []step{
		open(), appended(2, 2, 1, 60), flushed(), appended(5, 2, 1, 80), saved(1), appended(2, 1, 2, 50), flushed(), appended(3, 2, 3, 120),
		truncated(2, 5), appended(2, 2, 4, 90), flushed(), truncated(3, 1000), appended(8, 2, 5, 100), saved(4), flushed(), appended(1, 1, 5, 900),
		trimmed(5, 9), appended(2, 3, 6, 40), closed(true), open(), appended(3, 1, 6, 70), closed(false), open(), truncated(6, 3), appended(2, 2, 7, 60),
		trimmed(7, 0), appended(4, 2, 7, 100), flushed(), reset(8, 500), appended(4, 2, 8, 100), flushed(), appended(2, 2, 9, 30), closed(true),
	}
}

// randomRun draws a run.
func randomRun(r *rand.Rand) []step {
	steps := []step{open()}
	epoch := int32(1)
	isOpen := true
	for id := range 6 + r.IntN(14) {
		if !isOpen {
			steps, isOpen = append(steps, open()), true
			continue
		}
		switch r.IntN(10) {
		case 0, 1, 2, 3:
			epoch += int32(r.IntN(2))
			steps = append(steps, appended(1+r.IntN(6), 1+r.IntN(3), epoch, []int{10, 100, 250, 900}[r.IntN(4)]))
		case 4, 5:
			steps = append(steps, flushed())
		case 6:
			steps = append(steps, saved(id))
		case 7:
			steps = append(steps, truncated(id, int64(r.IntN(12))))
		case 8:
			if r.IntN(3) == 0 {
				steps = append(steps, reset(id, int64(r.IntN(100))))
			} else {
				steps = append(steps, trimmed(id, int64(r.IntN(12))))
			}
		case 9:
			steps, isOpen = append(steps, closed(r.IntN(2) == 0)), false
		}
	}
	return steps
}

// play runs the steps until one fails. It gives the model before and after the step that failed; both are the last one if none did.
func (p *player) play(steps []step, after []storage.Bounds) (before, next model, failed *step, err error) {
	for i := range steps {
		s := &steps[i]
		err := s.do(p)
		if err == nil && after != nil && !strings.HasPrefix(s.name, "close") && p.log.Bounds() != after[i] {
			return before, next, s, fmt.Errorf("bounds %+v after %s, expected %+v", p.log.Bounds(), s.name, after[i])
		}
		b := storage.Bounds{}
		if p.log != nil {
			b = p.log.Bounds()
		}
		if err != nil && after != nil {
			b = after[i]
		}
		next = s.next(before, b)
		if err != nil {
			return before, next, s, err
		}
		before = next
	}
	return before, before, nil, nil
}

// found is what a recovered log holds.
type found struct {
	bounds     storage.Bounds
	batches    []record.Batch
	checkpoint storage.Checkpoint
}

// look opens the log on the disk and reads it.
func look(d *disk.Disk) (found, storage.Log, error) {
	p := &player{disk: d}
	if err := p.open(); err != nil {
		return found{}, nil, fmt.Errorf("recovery failed: %w", err)
	}
	f := found{bounds: p.log.Bounds(), checkpoint: p.log.Checkpoint()}
	var err error
	if f.batches, err = storagetest.Contents(p.log); err != nil {
		return f, nil, fmt.Errorf("read after recovery: %w", err)
	}
	return f, p.log, nil
}

// is tells why the log is not what the model allows: at least everything below floor, nothing that was not written, and the checkpoint cp.
func (f found) is(m model, floor int64, cp storage.Checkpoint) error {
	bounds := f.bounds
	if bounds.Durable != bounds.End {
		return fmt.Errorf("bounds %+v: a recovered log is durable", bounds)
	}
	if cp.LogStart > bounds.End || bounds.Start == cp.LogStart && bounds.End == cp.LogStart && floor <= cp.LogStart {
		// Deletion went further than what is left: the log begins anew there.
		if bounds.Start != cp.LogStart || len(f.batches) != 0 {
			return fmt.Errorf("bounds %+v, expected an empty log at %d", bounds, cp.LogStart)
		}
	} else {
		if bounds.Start != m.start || bounds.End < floor {
			return fmt.Errorf("bounds %+v, expected [%d, ≥ %d)", bounds, m.start, floor)
		}
		if len(f.batches) > len(m.batches) {
			return fmt.Errorf("%d batches, only %d were written", len(f.batches), len(m.batches))
		}
		if err := storagetest.Same(f.batches, m.batches[:len(f.batches)]); err != nil {
			return fmt.Errorf("not what was written: %w", err)
		}
	}
	if want := cp.Within(bounds); !reflect.DeepEqual(f.checkpoint, want) {
		return fmt.Errorf("checkpoint %+v, expected %+v", f.checkpoint, want)
	}
	return nil
}

// allowed tells why a log is neither as before a step nor as after it nor, if the step is no cut, in between. With the content of memory kept, nothing that was
// written before the step is lost.
func (f found) allowed(before, next model, s *step, memoryKept bool) error {
	floor, nextFloor := before.durable, before.durable
	if memoryKept {
		floor, nextFloor = before.end(), before.end()
	}
	if s == nil || s.cut {
		nextFloor = next.durable
	}
	first := f.is(before, floor, before.checkpoint)
	if first == nil {
		return nil
	}
	if s != nil && !s.cut && f.is(next, floor, before.checkpoint) == nil {
		return nil
	}
	if err := f.is(next, nextFloor, next.checkpoint); err != nil {
		return fmt.Errorf("neither as before (%w) nor as after (%w)", first, err)
	}
	return nil
}

// tally counts what a campaign did.
type tally struct {
	runs, changes, states, second, faults, flips int
	findings                                     []string
}

func (t *tally) find(format string, args ...any) {
	t.findings = append(t.findings, fmt.Sprintf(format, args...))
}

func (t tally) String() string {
	return fmt.Sprintf("%d runs, stopped at each of %d changes: %d crash states recovered, %d more after a second crash in recovery, %d failures of the disk, %d flipped bits", t.runs, t.changes, t.states, t.second, t.faults, t.flips)
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

// crashEverywhere stops the run at each change in turn, and loses power in so many random ways beside the written ones. second also crashes each recovery.
func (t *tally) crashEverywhere(steps []step, r *rand.Rand, random int, second bool) {
	whole := &player{disk: disk.New()}
	var after []storage.Bounds
	for i := range steps {
		if _, _, s, err := whole.play(steps[i:i+1], nil); err != nil {
			t.find("%s: %v", s.name, err)
			return
		}
		after = append(after, whole.log.Bounds())
	}
	changes := whole.disk.Changes()
	t.runs++
	t.changes += changes
	for k := range changes + 1 {
		p := &player{disk: disk.New()}
		p.disk.StopAt(k, disk.Random(r))
		before, next, s, err := p.play(steps, after)
		if k < changes && !errors.Is(err, disk.ErrStopped) {
			t.find("stopped at change %d: %v", k, err)
			continue
		}
		for _, l := range losses(r, random) {
			d := p.disk.Clone()
			l.hit(d)
			where := fmt.Sprintf("change %d, in %s, %s", k, nameOf(s), l.name)
			t.states++
			t.verify(d, before, next, s, l.choose == nil, where)
			if second && l.twice {
				t.secondCrash(d, before, next, s, r, where)
			}
		}
	}
}

func nameOf(s *step) string {
	if s == nil {
		return "the end"
	}
	return s.name
}

// verify recovers, compares, and sees that what recovery calls durable is, and that the log goes on.
func (t *tally) verify(from *disk.Disk, before, next model, s *step, memoryKept bool, where string) {
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
	more := storagetest.Batches(first.bounds.End, 3, 2, 90, 150)
	if err := errors.Join(log.Append(more, false), log.Flush()); err != nil {
		t.find("%s: append after recovery: %v", where, err)
		return
	}
	d.PowerLoss(disk.LoseAll)
	got, _, err := look(d)
	if err == nil {
		err = storagetest.Same(got.batches, slices.Concat(first.batches, more))
	}
	if err != nil {
		t.find("%s: what was appended after recovery and flushed: %v", where, err)
	}
}

// secondCrash stops the recovery at each of its changes.
func (t *tally) secondCrash(from *disk.Disk, before, next model, s *step, r *rand.Rand, where string) {
	whole := from.Clone()
	if _, _, err := look(whole); err != nil {
		return // verify said so
	}
	for k := from.Changes(); k < whole.Changes(); k++ {
		for _, l := range []loss{{name: "lose all", choose: disk.LoseAll}, {name: "random", choose: disk.Random(r)}} {
			d := from.Clone()
			p := &player{disk: d}
			d.StopAt(k, disk.Random(r))
			if err := p.open(); !errors.Is(err, disk.ErrStopped) {
				t.find("%s: recovery stopped at change %d: %v", where, k, err)
				continue
			}
			l.hit(d)
			t.second++
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

// failEverywhere lets each change fail in turn. The handle must be dead; what recovery finds then is durable.
func (t *tally) failEverywhere(steps []step, r *rand.Rand) {
	whole := &player{disk: disk.New()}
	var after []storage.Bounds
	for i := range steps {
		if _, _, s, err := whole.play(steps[i:i+1], nil); err != nil {
			t.find("%s: %v", s.name, err)
			return
		}
		after = append(after, whole.log.Bounds())
	}
	for k := range whole.disk.Changes() {
		for _, fault := range []disk.Fault{{Err: files.ErrIO}, {Err: files.ErrNoSpace, Keep: 1 + r.IntN(300)}, {Err: files.ErrIO, Drop: true}} {
			p := &player{disk: disk.New()}
			p.disk.Fault = func(op disk.Op) disk.Fault {
				if op.Number == k && op.Kind != disk.Read {
					return fault
				}
				return disk.Fault{}
			}
			before, next, s, err := p.play(steps, after)
			where := fmt.Sprintf("change %d fails with %+v, in %s", k, fault, nameOf(s))
			t.faults++
			if err == nil || !errors.Is(err, fault.Err) {
				t.find("%s: the log says %v", where, err)
				continue
			}
			if p.log != nil && s.name != "open" && !strings.HasPrefix(s.name, "close") {
				if err := p.log.Append(nil, false); !errors.Is(err, storage.ErrDead) {
					t.find("%s: the handle is not dead: %v", where, err)
				}
				_ = p.log.Close(false)
			}
			t.verify(p.disk, before, next, s, !fault.Drop, where)
		}
	}
}

// rotEverywhere plays the run, opens the log once more, which puts the recovery point at its end, and flips single bits: each must be found, and said.
func (t *tally) rotEverywhere(steps []step, r *rand.Rand, bits int) {
	p := &player{disk: disk.New()}
	if _, _, s, err := p.play(steps, nil); err != nil {
		t.find("%s: %v", s.name, err)
		return
	}
	if err := p.open(); err != nil {
		t.find("open: %v", err)
		return
	}
	p.disk.Kill()
	var logs []string
	for _, file := range p.disk.Files() {
		if strings.HasSuffix(file, ".log") {
			logs = append(logs, file)
		}
	}
	for range bits {
		d := p.disk.Clone()
		file := logs[r.IntN(len(logs))]
		raw, err := files.ReadAll(d.Mount(), file)
		at, bit := r.Int64N(max(int64(len(raw)), 1)), uint(r.IntN(8))
		if err == nil {
			err = d.Flip(file, at, bit)
		}
		if err != nil {
			t.find("flip: %v", err)
			return
		}
		t.flips++
		if got, _, err := look(d); !errors.Is(err, storage.ErrDamaged) {
			t.find("bit %d of byte %d of %s flipped: %+v, %v", bit, at, file, got.bounds, err)
		}
	}
}

// runs is how many random runs to make: none in a normal test.
func runs(t *testing.T) int {
	text := os.Getenv(campaignEnv)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s = %q, expected a number of runs", campaignEnv, text)
	}
	return n
}

func (t *tally) report(test *testing.T) {
	test.Helper()
	test.Log(t)
	for i, f := range t.findings {
		if i == 20 {
			test.Errorf("… and %d more", len(t.findings)-i)
			break
		}
		test.Error(f)
	}
}

// TestCrashAtEveryChange is the campaign. With ACKPROOF_CRASH_RUNS=n it also crashes n random runs, in more ways.
func TestCrashAtEveryChange(t *testing.T) {
	var all tally
	all.crashEverywhere(writtenRun(), rand.New(rand.NewPCG(1, 0)), 3, false)
	for seed := range runs(t) {
		r := rand.New(rand.NewPCG(2, uint64(seed)))
		all.crashEverywhere(randomRun(r), r, 10, true)
	}
	all.report(t)
}

// TestSecondCrash also crashes the recoveries of a shorter run.
func TestSecondCrash(t *testing.T) {
	var all tally
	all.crashEverywhere(writtenRun()[:11], rand.New(rand.NewPCG(3, 0)), 1, true)
	all.report(t)
}

func TestFailureAtEveryChange(t *testing.T) {
	var all tally
	all.failEverywhere(writtenRun(), rand.New(rand.NewPCG(4, 0)))
	for seed := range runs(t) {
		r := rand.New(rand.NewPCG(5, uint64(seed)))
		all.failEverywhere(randomRun(r), r)
	}
	all.report(t)
}

func TestFlippedBits(t *testing.T) {
	var all tally
	all.rotEverywhere(writtenRun(), rand.New(rand.NewPCG(6, 0)), 100)
	all.report(t)
}
