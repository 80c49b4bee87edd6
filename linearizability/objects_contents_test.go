package linearizability

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ackproof/histories"
	"ackproof/model"
)

// bad counts the anomalies of an answer by kind.
func bad(a *Answer) map[model.Anomaly]int64 {
	out, _ := a.anomalies()
	return out
}

// complete joins events: invocation and completion of each operation, in the order of invocation; a missing completion is an Invoke that ends never.
func complete(events []histories.Event) (invs, ends []histories.Event) {
	at := make(map[uint64]int)
	for _, ev := range events {
		if ev.Type == histories.Invoke {
			at[ev.Op] = len(invs)
			invs = append(invs, ev)
			ends = append(ends, histories.Event{Seq: math.MaxUint64, Type: histories.Invoke})
		} else {
			ends[at[ev.Op]] = ev
		}
	}
	return invs, ends
}

// randomSet runs a set that forgets and invents now and then.
func randomSet(r *rand.Rand) []histories.Event {
	var s script
	var content []int64
	type flying struct{ inv, end histories.Event }
	var open []*flying
	serial, budget := int64(0), 4+r.IntN(12)
	for budget > 0 || len(open) > 0 {
		if budget > 0 && (len(open) == 0 || r.IntN(3) == 0) {
			budget--
			serial++
			steps := one(histories.Read, "", histories.Datum{})
			if r.IntN(2) == 0 {
				steps = one(histories.Add, "", histories.IntDatum(r.Int64N(6)))
			}
			open = append(open, &flying{inv: s.event(histories.Event{Kind: histories.Object, Process: int32(serial), Steps: steps})})
			continue
		}
		i := r.IntN(len(open))
		f := open[i]
		if f.end.Kind == 0 {
			f.end = histories.Event{Type: histories.OK, Kind: histories.Object, Op: f.inv.Op, Process: f.inv.Process, Steps: slices.Clone(f.inv.Steps)}
			step := &f.end.Steps[0]
			happens := true
			switch r.IntN(8) {
			case 0:
				f.end.Type, f.end.Steps, happens = histories.Fail, nil, r.IntN(8) == 0
			case 1:
				f.end.Type, f.end.Steps, happens = histories.Info, nil, r.IntN(2) == 0
			}
			switch {
			case f.inv.Steps[0].Do == histories.Add:
				if happens && !slices.Contains(content, f.inv.Steps[0].Value.Int) {
					content = append(content, f.inv.Steps[0].Value.Int)
				}
			case f.end.Type == histories.OK:
				step.Value = histories.Datum{Form: histories.List, List: slices.Clone(content)}
				if r.IntN(12) == 0 {
					step.Value.List = append(step.Value.List, r.Int64N(7))
				}
				if n := len(step.Value.List); n > 0 && r.IntN(10) == 0 {
					step.Value.List = slices.Delete(step.Value.List, 0, 1)
				}
			}
			if len(content) > 0 && r.IntN(25) == 0 {
				content = content[1:]
			}
			continue
		}
		open = slices.Delete(open, i, i+1)
		if r.IntN(12) > 0 {
			s.event(f.end)
		}
	}
	return s.events
}

// flag is one element of a set by itself: out at first, in once it is added.
var flag = toy{do: func(state string, steps []histories.Step) (string, []histories.Step, bool) {
	out := slices.Clone(steps)
	if steps[0].Do == histories.Add {
		return "in", out, true
	}
	out[0].Value = histories.IntDatum(int64(len(state) / 2))
	return state, out, true
}}

// project leaves of a history what it says about one element: reads find 1 or 0.
func project(events []histories.Event, e int64) (element, flags []histories.Event) {
	gone := make(map[uint64]bool)
	for _, ev := range events {
		if ev.Type == histories.Invoke && ev.Steps[0].Do == histories.Add && ev.Steps[0].Value.Int != e {
			gone[ev.Op] = true
		}
		if gone[ev.Op] {
			continue
		}
		flag := ev
		if ev.Type == histories.OK && ev.Steps[0].Do == histories.Read {
			n := int64(0)
			list := slices.DeleteFunc(slices.Clone(ev.Steps[0].Value.List), func(v int64) bool { return v != e })
			if len(list) > 0 {
				n = 1
			}
			ev.Steps = one(histories.Read, "", histories.Datum{Form: histories.List, List: list})
			flag.Steps = one(histories.Read, "", histories.IntDatum(n))
		}
		element, flags = append(element, ev), append(flags, flag)
	}
	return element, flags
}

// forgotten says by definition whether some read lacks an element for good.
func forgotten(events []histories.Event, e int64) (gone, acked bool) {
	invs, ends := complete(events)
	has := func(i int) bool { return slices.Contains(ends[i].Steps[0].Value.List, e) }
	known := uint64(math.MaxUint64)
	for i, inv := range invs {
		if ends[i].Type != histories.OK {
			continue
		}
		if add := inv.Steps[0].Do == histories.Add; add && inv.Steps[0].Value.Int == e || !add && has(i) {
			known = min(known, ends[i].Seq)
			acked = acked || add
		}
	}
	for i, inv := range invs {
		if ends[i].Type != histories.OK || inv.Steps[0].Do != histories.Read || has(i) || inv.Seq <= known {
			continue
		}
		last := true
		for j, other := range invs {
			if ends[j].Type == histories.OK && other.Steps[0].Do == histories.Read && has(j) && ends[j].Seq >= inv.Seq {
				last = false
			}
		}
		gone = gone || last
	}
	return gone, acked
}

var setClaims = []model.Claim{model.NoLoss, model.NoPhantom, model.NoDirtyRead, model.ReadAfterAck, model.NoDuplicate}

// setDuel: an element is at fault iff its own history has no legal order, and is lost iff the definition says so; the anomalies of a set are those of its elements.
var setDuel = duel{name: "set", n: 3000, kinds: map[model.Anomaly]int{model.LostAcked: 300, model.DirtyRead: 300, model.Phantom: 300, model.FutureRead: 300, model.StaleRead: 300, model.Duplicate: 300},
	fight: func(t testing.TB, r *rand.Rand, s *score) error {
		events := randomSet(r)
		ask := func(events []histories.Event) *Answer {
			a, err := CheckObjects(histories.Events(events), "set", ObjectOptions{Claims: setClaims})
			if err != nil {
				t.Fatalf("%v\n%s", err, showObjects(events))
			}
			return a
		}
		whole, sum, legal := bad(ask(events)), make(map[model.Anomaly]int64), true
		for e := range int64(7) {
			element, flags := project(events, e)
			if len(element) == 0 {
				continue
			}
			a := ask(element)
			found := bad(a)
			for k, c := range found {
				sum[k] += c
				s.kinds[k] += c
			}
			delete(found, model.Duplicate)
			want := flag.explains(attempts(flags, nil))
			if (len(found) == 0) != want {
				return fmt.Errorf("element %d: found %v, the oracle says %v:\n%s%s", e, found, want, showObjects(element), objectProofs(a))
			}
			legal = legal && want
			gone, acked := forgotten(element, e)
			lost, dirty := found[model.LostAcked] > 0, found[model.DirtyRead] > 0
			if found[model.Phantom] == 0 && (lost != (gone && acked) || dirty != (gone && !acked)) {
				return fmt.Errorf("element %d: found %v, by definition gone %v, acknowledged %v:\n%s%s", e, found, gone, acked, showObjects(element), objectProofs(a))
			}
			if a.claim(model.NoLoss).Verdict == model.Undecided {
				s.notes["elements whose loss is undecided"]++
			}
		}
		s.asked("", legal, false)
		for _, k := range []model.Anomaly{model.LostAcked, model.DirtyRead, model.Phantom, model.FutureRead, model.StaleRead, model.Duplicate} {
			if whole[k] != sum[k] {
				return fmt.Errorf("%d × %s, its elements have %d:\n%s", whole[k], k, sum[k], showObjects(events))
			}
		}
		return nil
	}}

func TestSetOracle(t *testing.T) { setDuel.test(t) }
func FuzzSet(f *testing.F)       { setDuel.fuzz(f) }

// randomQueue runs a bag that loses, repeats and invents now and then; mostly it is drained at the end.
func randomQueue(r *rand.Rand) []histories.Event {
	var s script
	var content []int64
	serial := int32(0)
	var late []histories.Event // completions that come later
	do := func(do histories.Do, v histories.Datum) {
		serial++
		inv := s.event(histories.Event{Kind: histories.Object, Process: serial, Steps: one(do, "", v)})
		end := histories.Event{Type: histories.OK, Kind: histories.Object, Op: inv.Op, Process: serial, Steps: slices.Clone(inv.Steps)}
		luck := r.IntN(14)
		switch do {
		case histories.Enqueue:
			if luck > 1 || luck == 1 && r.IntN(2) == 0 {
				content = append(content, v.Int)
			}
		case histories.Dequeue:
			if k := len(content); k > 0 && luck != 0 && r.IntN(8) > 0 {
				j := r.IntN(k)
				end.Steps[0].Value = histories.IntDatum(content[j])
				if r.IntN(20) > 0 {
					content = slices.Delete(content, j, j+1)
				}
			}
		case histories.Drain:
			end.Steps[0].Value = histories.Datum{Form: histories.List, List: content}
			content = nil
		}
		if luck == 0 {
			end.Type, end.Steps = histories.Fail, nil
		} else if luck == 1 {
			end.Type, end.Steps = histories.Info, nil
		} else if r.IntN(20) == 0 && end.Steps[0].Do == histories.Dequeue {
			end.Steps[0].Value = histories.IntDatum(r.Int64N(12))
		}
		if len(content) > 0 && r.IntN(20) == 0 {
			content = content[1:]
		}
		switch r.IntN(5) {
		case 0:
			late = append(late, end)
		case 1:
			if r.IntN(4) > 0 {
				s.event(end)
			}
		default:
			s.event(end)
		}
		for len(late) > 0 && r.IntN(2) == 0 {
			s.event(late[0])
			late = late[1:]
		}
	}
	for range 3 + r.IntN(12) {
		if r.IntN(2) == 0 {
			do(histories.Enqueue, histories.IntDatum(r.Int64N(10)))
		} else {
			do(histories.Dequeue, histories.Datum{})
		}
	}
	for _, ev := range late {
		s.event(ev)
	}
	late = nil
	switch r.IntN(4) {
	case 0:
		for range 1 + len(content) {
			do(histories.Dequeue, histories.Datum{})
		}
	case 1, 2:
		do(histories.Drain, histories.Datum{})
	}
	return s.events
}

// queueByDefinition counts pairs and triples the slow way.
func queueByDefinition(events []histories.Event) (want map[model.Anomaly]int64, undecided bool) {
	invs, ends := complete(events)
	want = make(map[model.Anomaly]int64)
	emptied := -1 // the last operation that shows that the queue was empty
	for i, inv := range invs {
		if ends[i].Type != histories.OK {
			continue
		}
		switch inv.Steps[0].Do {
		case histories.Drain:
			emptied = i
		case histories.Dequeue:
			final := ends[i].Steps[0].Value.Form == histories.Nil
			for j := range invs {
				if invs[j].Steps[0].Do == histories.Enqueue && ends[j].Type != histories.Invoke && ends[j].Seq > inv.Seq {
					final = false
				}
			}
			if final {
				emptied = i
			}
		}
	}
	missing := 0
	for v := range int64(12) {
		var tried, acks, got int
		first, firstGot, lastAck := uint64(math.MaxUint64), uint64(math.MaxUint64), uint64(0)
		for i, inv := range invs {
			switch inv.Steps[0].Do {
			case histories.Enqueue:
				if inv.Steps[0].Value.Int != v || ends[i].Type == histories.Fail {
					continue
				}
				tried++
				first = min(first, inv.Seq)
				if ends[i].Type == histories.OK {
					acks++
					lastAck = max(lastAck, ends[i].Seq)
				}
			default:
				if ends[i].Type != histories.OK {
					continue
				}
				d := ends[i].Steps[0].Value
				if d.Form == histories.Int && d.Int == v {
					got++
					firstGot = min(firstGot, ends[i].Seq)
				}
				for _, e := range d.List {
					if e == v {
						got++
						firstGot = min(firstGot, ends[i].Seq)
					}
				}
			}
		}
		switch {
		case tried == 0 && got > 0:
			want[model.Phantom]++
			continue
		case firstGot < first:
			want[model.FutureRead]++
		}
		if got > tried {
			want[model.Duplicate]++
		}
		if acks > got {
			if emptied < 0 || invs[emptied].Seq < lastAck {
				undecided = true
			} else {
				missing += acks - got
			}
		}
	}
	takers := 0
	for i, inv := range invs {
		if do := inv.Steps[0].Do; emptied >= 0 && do != histories.Enqueue && ends[i].Type != histories.OK && ends[i].Type != histories.Fail && inv.Seq <= ends[emptied].Seq {
			if takers++; do == histories.Drain {
				takers = math.MaxInt32
			}
		}
	}
	if missing > takers {
		want[model.LostAcked] = int64(missing - takers)
	} else if missing > 0 {
		undecided = true
	}
	return want, undecided && want[model.LostAcked] == 0
}

// totalQueueDuel compares the counts of total queues with the definitions.
var totalQueueDuel = duel{name: "total queue", n: 4000, open: 2, kinds: map[model.Anomaly]int{model.LostAcked: 300, model.Phantom: 300, model.FutureRead: 300, model.Duplicate: 300},
	fight: func(t testing.TB, r *rand.Rand, s *score) error {
		events := randomQueue(r)
		a, err := CheckObjects(histories.Events(events), "total-queue", ObjectOptions{Claims: []model.Claim{model.NoLoss, model.NoPhantom, model.NoDuplicate}})
		if err != nil {
			t.Fatalf("%v\n%s", err, showObjects(events))
		}
		want, undecided := queueByDefinition(events)
		got := bad(a)
		s.asked("", len(want) == 0, undecided)
		for _, k := range []model.Anomaly{model.LostAcked, model.Phantom, model.FutureRead, model.Duplicate} {
			// A value that went in more than once is one finding, whatever is missing of it.
			if got[k] != want[k] && !(k == model.LostAcked && got[k] > 0 && got[k] <= want[k]) {
				return fmt.Errorf("%d × %s, by definition %d:\n%s%s", got[k], k, want[k], showObjects(events), objectProofs(a))
			}
			s.kinds[k] += got[k]
		}
		if got := a.claim(model.NoLoss).Verdict == model.Undecided; got != undecided {
			return fmt.Errorf("undecided %v (%s), by definition %v:\n%s", got, a.claim(model.NoLoss).Reason, undecided, showObjects(events))
		}
		return nil
	}}

func TestQueueOracle(t *testing.T) { totalQueueDuel.test(t) }
func FuzzTotalQueue(f *testing.F)  { totalQueueDuel.fuzz(f) }
