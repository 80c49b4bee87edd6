package linearizability

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"

	"ackproof/histories"
	"ackproof/model"
)

// steps begins an operation on objects; the returned function completes it, as asked or with other steps.
func (s *script) steps(asked ...histories.Step) func(t histories.Type, seen ...histories.Step) {
	end := s.begin(histories.Event{Kind: histories.Object, Steps: asked})
	return func(t histories.Type, seen ...histories.Step) {
		if t == histories.OK && seen == nil {
			seen = asked
		}
		end(histories.Event{Type: t, Steps: seen})
	}
}

func commitOf(key string, offset, meta, generation int64) histories.Step {
	s := histories.Step{Do: histories.Commit, Key: key, Offset: offset, Number: generation}
	if meta > 0 {
		s.Value = histories.IntDatum(meta)
	}
	return s
}

func committedAs(key string, offset, meta int64) histories.Step {
	s := histories.Step{Do: histories.Committed, Key: key, Offset: offset}
	if meta > 0 {
		s.Value = histories.IntDatum(meta)
	}
	return s
}

func (s *script) commit(key string, offset, meta, generation int64) {
	s.steps(commitOf(key, offset, meta, generation))(histories.OK)
}

func (s *script) committed(key string, offset, meta int64) {
	s.steps(histories.Step{Do: histories.Committed, Key: key})(histories.OK, committedAs(key, offset, meta))
}

// swap lets two neighbours change places in time.
func swap(events []histories.Event, i int) {
	if i+1 >= len(events) || events[i+1].Process == events[i].Process || !events[i].Kind.IsOperation() || !events[i+1].Kind.IsOperation() {
		return
	}
	a, b := events[i], events[i+1]
	a.Seq, b.Seq, a.Time, b.Time = b.Seq, a.Seq, b.Time, a.Time
	for _, ev := range []*histories.Event{&a, &b} {
		if ev.Type == histories.Invoke {
			for j := i + 2; j < len(events); j++ {
				if events[j].Type != histories.Invoke && events[j].Op == ev.Op && events[j].Process == ev.Process {
					events[j].Op = ev.Seq
				}
			}
			ev.Op = ev.Seq
		}
	}
	events[i], events[i+1] = b, a
}

// flight is an operation on an object in a simulated run: it is applied at one moment between its invocation and its completion.
type flight struct {
	asked   histories.Step
	done    func(histories.Type, ...histories.Step)
	applied bool
	outcome histories.Type
	seen    []histories.Step
}

// fly runs budget operations under a random schedule: some refused, some of unknown outcome, some whose client dies.
func fly(r *rand.Rand, s *script, budget, crowd int, next func() histories.Step, apply func(f *flight)) {
	var open []*flight
	for budget > 0 || len(open) > 0 {
		if budget > 0 && (len(open) == 0 || len(open) < crowd && r.IntN(3) == 0) {
			budget--
			f := &flight{asked: next()}
			f.done = s.steps(f.asked)
			open = append(open, f)
			continue
		}
		i := r.IntN(len(open))
		f := open[i]
		if !f.applied {
			f.applied = true
			switch r.IntN(8) {
			case 0:
				f.outcome = histories.Fail
			case 1: // unknown, and it did not happen
				f.outcome = histories.Info
			case 2: // unknown, and it did
				apply(f)
				f.outcome = histories.Info
			default:
				apply(f)
				f.outcome = histories.OK
			}
			continue
		}
		open = slices.Delete(open, i, i+1)
		switch {
		case r.IntN(12) == 0: // the client died
		case f.outcome == histories.OK:
			f.done(f.outcome, f.seen...)
		default:
			f.done(f.outcome)
		}
	}
}

// randomCommits runs a register, and damages what was recorded, or not. With repeats some commits have no metadata of their own.
func randomCommits(r *rand.Rand, repeats bool) []histories.Event {
	var (
		s    script
		at   = histories.Step{Offset: -1}
		meta int64
		all  = []histories.Step{at}
	)
	fly(r, &s, 4+r.IntN(8), 4, func() histories.Step {
		if r.IntN(2) == 0 {
			return histories.Step{Do: histories.Committed, Key: "g/0"}
		}
		meta++
		c := commitOf("g/0", int64(r.IntN(4)), meta, 0)
		if repeats {
			c.Value = histories.Datum{}
		}
		all = append(all, c)
		return c
	}, func(f *flight) {
		if f.asked.Do == histories.Commit {
			at = f.asked
			return
		}
		seen := at
		seen.Do, seen.Key = histories.Committed, "g/0"
		f.seen = []histories.Step{seen}
	})
	for range r.IntN(5) {
		i := r.IntN(len(s.events))
		for range 6 { // a read, more likely than not
			if s.events[i].Type == histories.OK && s.events[i].Steps[0].Do == histories.Committed {
				break
			}
			i = r.IntN(len(s.events))
		}
		if ev := &s.events[i]; ev.Type == histories.OK && ev.Steps[0].Do == histories.Committed && r.IntN(2) == 0 {
			seen := all[r.IntN(len(all))]
			if r.IntN(20) == 0 {
				seen = commitOf("g/0", 1, 99, 0)
			}
			seen.Do, seen.Key = histories.Committed, "g/0"
			ev.Steps = []histories.Step{seen}
			continue
		}
		swap(s.events, i)
	}
	return s.events
}

type registerOp struct {
	read, unknown bool
	value         string
}

var registers = func() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{"nothing"} },
		Step: func(state, input, _ any) (next []any) {
			in := input.(registerOp)
			if in.read {
				if in.value == state {
					return []any{state}
				}
				return nil
			}
			if in.unknown {
				next = append(next, state)
			}
			return append(next, in.value)
		},
		Equal: func(a, b any) bool { return a == b },
	}
	return m.ToModel()
}()

// joinedSteps gives the steps of a history of single-step operations with their outcomes.
func joinedSteps(events []histories.Event) (all []*stepped) {
	open := make(map[uint64]*stepped)
	for _, ev := range events {
		switch {
		case ev.Kind != histories.Object:
		case ev.Type == histories.Invoke:
			s := &stepped{Step: ev.Steps[0], inv: ev.Seq, invTime: ev.Time, endTime: -1, process: ev.Process}
			open[ev.Op] = s
			all = append(all, s)
		default:
			s := open[ev.Op]
			s.end, s.endTime, s.outcome = ev.Seq, ev.Time, ev.Type
			if ev.Type == histories.OK && len(ev.Steps) > 0 {
				s.Step = ev.Steps[0]
			}
		}
	}
	return all
}

func registerAgrees(events []histories.Event) bool {
	var ops []porcupine.Operation
	for _, s := range joinedSteps(events) {
		in := registerOp{read: s.Do == histories.Committed, value: datum(s.Value), unknown: s.outcome != histories.OK}
		if s.Value.Form == histories.Nil && s.Offset >= 0 {
			in.value = fmt.Sprint(s.Offset)
		}
		if s.outcome == histories.Fail || in.read && in.unknown {
			continue
		}
		ret := int64(s.end)
		if in.unknown {
			ret = int64(len(events) + 10)
		}
		ops = append(ops, porcupine.Operation{Input: in, Call: int64(s.inv), Return: ret})
	}
	return porcupine.CheckOperations(registers, ops)
}

// along runs a monitor over a history.
func along(t testing.TB, m Monitor, events []histories.Event) *Answer {
	t.Helper()
	var first *model.Certificate
	for i := range events {
		c, err := m.Step(&events[i])
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = c
		}
	}
	a := m.Finish(model.Facts{})
	if first != nil && a.Verdict() != model.Violated {
		t.Fatalf("the monitor gave the certificate %+v and the verdict %s", first, a.Verdict())
	}
	return a
}

// number gives each commit a generation.
func number(r *rand.Rand, events []histories.Event) {
	of := make(map[uint64]int64)
	for i := range events {
		ev := &events[i]
		if len(ev.Steps) == 0 || ev.Steps[0].Do != histories.Commit {
			continue
		}
		if ev.Type == histories.Invoke {
			of[ev.Op] = 1 + (int64(i)+r.Int64N(16))/8 // they rise, more or less
		}
		ev.Steps = slices.Clone(ev.Steps)
		ev.Steps[0].Number = of[ev.Op]
	}
}

// fenced tells that a commit of an older generation was accepted after one of a newer.
func fenced(events []histories.Event) bool {
	all := slices.DeleteFunc(joinedSteps(events), func(s *stepped) bool { return s.Do != histories.Commit || s.outcome != histories.OK || s.Number == 0 })
	return slices.ContainsFunc(all, func(old *stepped) bool {
		return slices.ContainsFunc(all, func(newer *stepped) bool { return newer.end < old.inv && newer.Number > old.Number })
	})
}

// commitDuel has porcupine decide the register, and the definition which generations are fenced.
var commitDuel = duel{name: "committed offsets", n: 4000, bad: 40, open: 5, fight: func(t testing.TB, r *rand.Rand, s *score) error {
	name, repeats := "unique", r.IntN(4) == 0
	if repeats {
		name = "repeated"
	}
	events := randomCommits(r, repeats)
	if r.IntN(2) == 0 {
		number(r, events)
	}
	zombies := fenced(events)
	want := registerAgrees(events) && !zombies
	o := MonitorOptions{Floors: model.Floors{}}
	a, err := CheckCommits(histories.Events(events), o)
	if err != nil {
		t.Fatal(err)
	}
	checkProofs(t, a)
	online := along(t, NewCommitMonitor(o), events)
	checkProofs(t, online)
	got := a.Verdict()
	s.asked(name, want, got == model.Undecided)
	for _, a := range []*Answer{a, online} {
		found, _ := a.anomalies()
		if (found[model.ZombieCommit] > 0) != zombies {
			return fmt.Errorf("%d zombies found, the definition says %v:\n%s", found[model.ZombieCommit], zombies, showSteps(events))
		}
		if v := a.Verdict(); (v == model.Held) != want && !(repeats && v == model.Undecided) {
			return fmt.Errorf("the checker says %s, porcupine %v:\n%s", v, want, showSteps(events))
		}
	}
	if w := online.Verdict(); w != got && !(repeats && w == model.Undecided) {
		return fmt.Errorf("online %s, offline %s:\n%s", w, got, showSteps(events))
	}
	return nil
}}

func TestCommitsOracle(t *testing.T) { commitDuel.test(t) }
func FuzzCommits(f *testing.F)       { commitDuel.fuzz(f) }

// checkProofs demands of each certificate one to four operations and a sentence. Seven show that one message overtook another by way of the numbers of further ones.
func checkProofs(t testing.TB, a *Answer) {
	t.Helper()
	for _, c := range a.Claims {
		for _, x := range c.Anomalies {
			if x.Proof == nil || len(x.Proof.Operations) < 1 || len(x.Proof.Operations) > 4 && !(x.Kind == model.FIFOInversion && len(x.Proof.Operations) <= 7) || !strings.HasSuffix(x.Proof.Sentence, ".") {
				t.Fatalf("%s has the proof %+v, want one to four operations and a sentence", x.Kind, x.Proof)
			}
		}
	}
}

func showSteps(events []histories.Event) string {
	var out strings.Builder
	for _, ev := range events {
		fmt.Fprintf(&out, "%d op %d process %d %s %s", ev.Seq, ev.Op, ev.Process, ev.Type, ev.Note)
		for _, s := range ev.Steps {
			fmt.Fprintf(&out, " %s %s", s.Do, (&stepped{Step: s}).what())
		}
		out.WriteByte('\n')
	}
	return out.String()
}
