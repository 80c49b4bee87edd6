package linearizability

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"ackproof/histories"
	"ackproof/model"
)

// randomFIFO runs a FIFO queue, and damages what was recorded, or not. With empties a Dequeue may find nothing; with numbers the queue numbers what
// it takes in.
func randomFIFO(r *rand.Rand, empties, numbers bool) []histories.Event {
	var (
		s     script
		queue []int64
		sent  int64
		count int64
	)
	fly(r, &s, 4+r.IntN(7), 4, func() histories.Step {
		if r.IntN(2) == 0 {
			return histories.Step{Do: histories.Dequeue}
		}
		sent++
		return histories.Step{Do: histories.Enqueue, Value: histories.IntDatum(sent)}
	}, func(f *flight) {
		seen := f.asked
		switch {
		case f.asked.Do == histories.Enqueue:
			queue = append(queue, f.asked.Value.Int)
			if numbers {
				count += 1 + r.Int64N(2)
				seen.Number = count
			}
		case len(queue) > 0:
			seen.Value = histories.IntDatum(queue[0])
			queue = queue[1:]
		}
		f.seen = []histories.Step{seen}
	})
	if !empties { // what was empty was refused
		for i := range s.events {
			if ev := &s.events[i]; ev.Type == histories.OK && ev.Steps[0].Do == histories.Dequeue && ev.Steps[0].Value.Form == histories.Nil {
				ev.Type, ev.Steps = histories.Fail, nil
			}
		}
	}
	for range r.IntN(5) {
		i := r.IntN(len(s.events))
		for range 6 { // a delivery, more likely than not
			if s.events[i].Type == histories.OK && s.events[i].Steps[0].Do == histories.Dequeue {
				break
			}
			i = r.IntN(len(s.events))
		}
		ev := &s.events[i]
		switch {
		case ev.Type != histories.OK || r.IntN(3) == 0:
			swap(s.events, i)
		case ev.Steps[0].Do == histories.Enqueue:
			if ev.Steps[0].Number > 1 {
				ev.Steps = slices.Clone(ev.Steps)
				ev.Steps[0].Number--
			}
		default:
			ev.Steps = slices.Clone(ev.Steps)
			ev.Steps[0].Value = histories.IntDatum(1 + r.Int64N(sent+1))
			if empties && r.IntN(3) == 0 {
				ev.Steps[0].Value = histories.Datum{}
			}
		}
	}
	return s.events
}

type queueOp struct {
	send, unknown bool
	value         byte // 0: it was empty
	number        byte
}

var fifos = func() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{"\x00"} }, // the last number given, and the values in the queue
		Step: func(state, input, _ any) (next []any) {
			in, q := input.(queueOp), state.(string)
			if in.unknown {
				next = append(next, q)
			}
			switch {
			case in.send && (in.number == 0 || in.number > q[0]):
				if in.number > 0 {
					q = string([]byte{in.number}) + q[1:]
				}
				next = append(next, q+string([]byte{in.value}))
			case in.send:
			case in.unknown && len(q) > 1, in.value != 0 && len(q) > 1 && q[1] == in.value:
				next = append(next, q[:1]+q[2:])
			case in.value == 0 && len(q) == 1:
				next = append(next, q)
			}
			return next
		},
		Equal: func(a, b any) bool { return a == b },
	}
	return m.ToModel()
}()

func queueAgrees(events []histories.Event) bool {
	var ops []porcupine.Operation
	for _, s := range joinedSteps(events) {
		in := queueOp{send: s.Do == histories.Enqueue, value: byte(s.Value.Int), unknown: s.outcome != histories.OK, number: byte(s.Number)}
		if s.outcome == histories.Fail {
			continue
		}
		ret := int64(s.end)
		if in.unknown {
			ret = int64(len(events) + 10)
		}
		ops = append(ops, porcupine.Operation{Input: in, Call: int64(s.inv), Return: ret})
	}
	return porcupine.CheckOperations(fifos, ops)
}

// fifoDuel has porcupine decide the queue.
var fifoDuel = duel{name: "FIFO queue", n: 4000, bad: 40, open: 40, fight: func(t testing.TB, r *rand.Rand, s *score) error {
	empties, numbers := r.IntN(2) == 0, r.IntN(2) == 0
	events := randomFIFO(r, empties, numbers)
	name := "without numbers"
	if numbers {
		if r.IntN(3) == 0 { // some answers had none
			for i := range events {
				if ev := &events[i]; ev.Type == histories.OK && ev.Steps[0].Do == histories.Enqueue && r.IntN(2) == 0 {
					ev.Steps = slices.Clone(ev.Steps)
					ev.Steps[0].Number = 0
				}
			}
		}
		if name = "with numbers"; !allNumbered(events) {
			name = "with some numbers"
		}
	}
	want := queueAgrees(events)
	o := MonitorOptions{Floors: model.Floors{}}
	a, err := CheckFIFO(histories.Events(events), o)
	if err != nil {
		t.Fatal(err)
	}
	checkProofs(t, a)
	online := along(t, NewFIFOMonitor(o), events)
	checkProofs(t, online)
	got := a.Verdict()
	s.asked(name, want, got == model.Undecided)
	if (got == model.Held) != want && !(got == model.Undecided && empties) {
		return fmt.Errorf("the checker says %s, porcupine %v:\n%s", got, want, showSteps(events))
	}
	if online.Verdict() != got {
		return fmt.Errorf("online %s, offline %s:\n%s", online.Verdict(), got, showSteps(events))
	}
	return nil
}}

func TestFIFOOracle(t *testing.T) { fifoDuel.test(t) }
func FuzzFIFO(f *testing.F)       { fifoDuel.fuzz(f) }

// allNumbered tells that every send has its number.
func allNumbered(events []histories.Event) bool {
	return !slices.ContainsFunc(joinedSteps(events), func(s *stepped) bool {
		return s.Do == histories.Enqueue && s.Number == 0 && s.outcome != histories.Fail
	})
}

// dedupDuel compares with the definition, by all pairs of sends, what is handed out twice within the window; and both forms where copies may be swallowed.
var dedupDuel = duel{name: "deduplication window", n: 2000, kinds: map[model.Anomaly]int{model.FIFOInversion: 100}, fight: func(t testing.TB, r *rand.Rand, s *score) error {
	const window = 12_000_000
	events := randomFIFO(r, false, false)
	for i := range events[1:] { // some events come at one time
		events[i+1].Time = events[i].Time + time.Duration(min(1, r.IntN(4)))*time.Millisecond
	}
	ids := make(map[uint64]int64)
	for j := range events {
		ev := &events[j]
		if ev.Steps = slices.Clone(ev.Steps); len(ev.Steps) == 0 || ev.Steps[0].Do != histories.Enqueue {
			continue
		}
		if ev.Type == histories.Invoke {
			ids[ev.Op] = 1 + r.Int64N(2)
		}
		ev.Steps[0].Old = histories.IntDatum(ids[ev.Op])
	}
	leak := leaks(events, window)
	o := MonitorOptions{Floors: model.Floors{}, Window: window}
	a, err := CheckFIFO(histories.Events(events), o)
	if err != nil {
		t.Fatal(err)
	}
	checkProofs(t, a)
	found, _ := a.anomalies()
	s.kinds[model.FIFOInversion] += found[model.FIFOInversion]
	s.asked("", !leak, false)
	online := along(t, NewFIFOMonitor(o), events)
	if phantoms := found[model.Phantom]+found[model.Duplicate] > 0; !phantoms && (found[model.DedupLeak] > 0) != leak {
		return fmt.Errorf("%d leaks, want %v:\n%s", found[model.DedupLeak], leak, showSteps(events))
	}
	for j, c := range a.Claims {
		if online.Claims[j].Verdict != c.Verdict {
			return fmt.Errorf("%s is %s online, %s offline:\n%s", c.ID, online.Claims[j].Verdict, c.Verdict, showSteps(events))
		}
	}
	return nil
}}

func TestDedupOracle(t *testing.T) { dedupDuel.test(t) }
func FuzzDedup(f *testing.F)       { dedupDuel.fuzz(f) }

// leaks says by definition whether two messages of one id were handed out that came in within the window of each other for certain.
func leaks(events []histories.Event, window int64) bool {
	all := joinedSteps(events)
	latest := func(s *stepped) int64 { // when it had come in at the latest; −1: it was never handed out
		for _, d := range all {
			if d.Do != histories.Dequeue || d.outcome != histories.OK || d.Value.Int != s.Value.Int || d.end <= s.inv {
				continue
			}
			if s.outcome == histories.OK {
				return int64(min(d.endTime, s.endTime))
			}
			return int64(d.endTime)
		}
		return -1
	}
	for _, a := range all {
		for _, b := range all {
			if a == b || a.Do != histories.Enqueue || b.Do != histories.Enqueue || a.Old.Int != b.Old.Int || a.outcome == histories.Fail || b.outcome == histories.Fail {
				continue
			}
			if x, y := latest(a), latest(b); x >= 0 && y >= 0 && x-int64(b.invTime) <= window && y-int64(a.invTime) <= window {
				return true
			}
		}
	}
	return false
}

// TestFIFOOvertakenByWayOfAnother: a message without a number was sent when the one with number 3 was in the queue, so it comes after number 2, which it overtakes.
func TestFIFOOvertakenByWayOfAnother(t *testing.T) {
	s := &script{}
	enqueue := func(v, number int64) histories.Step {
		return histories.Step{Do: histories.Enqueue, Value: histories.IntDatum(v), Number: number}
	}
	dequeue := func(v int64) histories.Step {
		return histories.Step{Do: histories.Dequeue, Value: histories.IntDatum(v)}
	}
	take := histories.Step{Do: histories.Dequeue}
	second := s.steps(enqueue(2, 0))
	s.steps(enqueue(1, 0))(histories.OK, enqueue(1, 1))
	s.steps(enqueue(3, 0))(histories.OK, enqueue(3, 3))
	s.steps(enqueue(4, 0))(histories.Info)
	slow := s.steps(take)
	s.took(dequeue(1))
	s.took(dequeue(4))
	second(histories.OK, enqueue(2, 2))
	s.took(dequeue(2))
	slow(histories.OK, dequeue(3))
	o := MonitorOptions{Floors: model.Floors{}}
	a, err := CheckFIFO(histories.Events(s.events), o)
	if err != nil {
		t.Fatal(err)
	}
	for form, a := range map[string]*Answer{"offline": a, "online": along(t, NewFIFOMonitor(o), s.events)} {
		if found, _ := a.anomalies(); found[model.FIFOInversion] != 1 || len(found) != 1 {
			t.Errorf("%s: %v, want one inversion\n%s", form, found, proofs(a))
		}
	}
}
