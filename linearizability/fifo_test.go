package linearizability

import (
	"math/rand/v2"
	"slices"
	"testing"

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

func TestFIFOOracle(t *testing.T) {
	n := scaled(t, 4000)
	legal, bad, undecided, partial := 0, 0, 0, 0
	for i := range n {
		empties, numbers := i%2 == 1, i%4 >= 2
		events := randomFIFO(rand.New(rand.NewPCG(3, uint64(i))), empties, numbers)
		want := queueAgrees(events)
		o := MonitorOptions{Floors: model.Floors{}}
		a, err := CheckFIFO(histories.Events(events), o)
		if err != nil {
			t.Fatal(err)
		}
		got := a.Verdict()
		if want {
			legal++
		} else {
			bad++
		}
		switch {
		case got == model.Undecided && empties:
			undecided++
		case got == model.Held && !want && numbers:
			partial++ // some sends without a number
			if allNumbered(events) {
				t.Fatalf("history %d: the checker says %s, porcupine %v:\n%s", i, got, want, showSteps(events))
			}
		case (got == model.Held) != want:
			t.Fatalf("history %d: the checker says %s, porcupine %v:\n%s", i, got, want, showSteps(events))
		}
		checkProofs(t, a)
		online := along(t, NewFIFOMonitor(o), events)
		if online.Verdict() != got {
			t.Fatalf("history %d: online %s, offline %s:\n%s", i, online.Verdict(), got, showSteps(events))
		}
		checkProofs(t, online)
	}
	t.Logf("%d histories, %d legal, %d not; %d undecided for empties with lost Dequeues, %d not seen where some numbers are unknown", n, legal, bad, undecided, partial)
	if legal < n/5 || bad < n/5 || undecided > n/8 || partial > n/50 {
		t.Error("too few of one kind to prove anything")
	}
}

// allNumbered tells that every send has its number.
func allNumbered(events []histories.Event) bool {
	return !slices.ContainsFunc(joinedSteps(events), func(s *stepped) bool {
		return s.Do == histories.Enqueue && s.outcome != histories.OK && s.outcome != histories.Fail
	})
}

// TestDedupOracle: pairs of deliveries within the window, by all pairs; and both forms agree where copies may be swallowed.
func TestDedupOracle(t *testing.T) {
	n := scaled(t, 2000)
	const window = 12_000_000
	leaks, held, inverted := 0, 0, 0
	for i := range n {
		r := rand.New(rand.NewPCG(6, uint64(i)))
		events := randomFIFO(r, false, false)
		ids := make(map[uint64]int64)
		for j := range events { // ids; and some copies are swallowed
			ev := &events[j]
			if ev.Steps = slices.Clone(ev.Steps); len(ev.Steps) == 0 || ev.Steps[0].Do != histories.Enqueue {
				continue
			}
			if ev.Type == histories.Invoke {
				ids[ev.Op] = 1 + r.Int64N(2)
			}
			ev.Steps[0].Old = histories.IntDatum(ids[ev.Op])
		}
		all := joinedSteps(events)
		leak := false
		for _, a := range all {
			for _, b := range all {
				if a == b || a.Do != histories.Enqueue || b.Do != histories.Enqueue || a.Old.Int != b.Old.Int || a.outcome == histories.Fail || b.outcome == histories.Fail {
					continue
				}
				latest := func(s *stepped) (at int64) {
					for _, d := range all {
						if d.Do == histories.Dequeue && d.outcome == histories.OK && d.Value.Int == s.Value.Int && d.end > s.inv {
							at = int64(d.endTime)
							if s.outcome == histories.OK {
								at = min(at, int64(s.endTime))
							}
							return at
						}
					}
					return -1
				}
				if x, y := latest(a), latest(b); x >= 0 && y >= 0 && x-int64(b.invTime) <= window && y-int64(a.invTime) <= window {
					leak = true
				}
			}
		}
		o := MonitorOptions{Floors: model.Floors{}, Window: window}
		a, err := CheckFIFO(histories.Events(events), o)
		if err != nil {
			t.Fatal(err)
		}
		found, _ := a.anomalies()
		online := along(t, NewFIFOMonitor(o), events)
		if phantoms := found[model.Phantom]+found[model.Duplicate] > 0; !phantoms && (found[model.DedupLeak] > 0) != leak {
			t.Fatalf("history %d: %d leaks, want %v:\n%s", i, found[model.DedupLeak], leak, showSteps(events))
		}
		for j, c := range a.Claims {
			if online.Claims[j].Verdict != c.Verdict {
				t.Fatalf("history %d: %s is %s online, %s offline:\n%s", i, c.ID, online.Claims[j].Verdict, c.Verdict, showSteps(events))
			}
		}
		if leak {
			leaks++
		} else {
			held++
		}
		if found[model.FIFOInversion] > 0 {
			inverted++
		}
		checkProofs(t, a)
	}
	t.Logf("%d histories, %d with leaks, %d without, %d out of order", n, leaks, held, inverted)
	if leaks < n/20 || held < n/20 || inverted < n/100 {
		t.Error("too few of one kind to prove anything")
	}
}
