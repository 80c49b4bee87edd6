package linearizability

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"

	"ackproof/histories"
)

// TestPorcupineWindows: porcupine's two forms of a window have one answer, which is that of the checkers; and it can be drawn and encoded.
func TestPorcupineWindows(t *testing.T) {
	legal, illegal := 0, 0
	try := func(w PorcupineWindow) bool {
		t.Helper()
		ok := porcupine.CheckOperations(w.Model, w.Operations)
		if events := porcupine.CheckEvents(w.Model, w.Events()); events != ok {
			t.Fatalf("%s: porcupine says %v of the operations, %v of the events", w.Name, ok, events)
		}
		lane := make(map[int]int64)
		for _, op := range w.Operations {
			if last, busy := lane[op.ClientId]; busy && last >= op.Call {
				t.Fatalf("%s: operations of lane %d overlap", w.Name, op.ClientId)
			}
			lane[op.ClientId] = op.Return
		}
		raw, err := json.Marshal(w)
		var back struct{ Operations []any }
		if err != nil || json.Unmarshal(raw, &back) != nil || len(back.Operations) != len(w.Operations) {
			t.Fatalf("%s: %v\n%s", w.Name, err, raw)
		}
		if ok {
			legal++
		} else {
			illegal++
		}
		return ok
	}
	for i := range scaled(t, 200) {
		r := rand.New(rand.NewPCG(31, uint64(i)))
		for j := range toys {
			y := &toys[j]
			events := y.random(r)
			windows, err := PorcupineObjects(histories.Events(events), y.name)
			if err != nil {
				t.Fatal(err)
			}
			all := true
			for _, w := range windows {
				all = try(w) && all
			}
			if want := y.explains(attempts(events, nil)); all != want {
				t.Fatalf("%s %d: porcupine says %v of its windows, the oracle %v:\n%s", y.name, i, all, want, showObjects(events))
			}
		}
	}
	if legal == 0 || illegal == 0 {
		t.Errorf("%d legal windows and %d others prove nothing", legal, illegal)
	}
	before := legal + illegal
	for _, p := range planted {
		s := &script{}
		p.write(s)
		a := decide(t, s, strong(), whole(), p.claims...)
		if _, err := PorcupineLog(a, 99, 0, math.MaxInt64); err == nil {
			t.Fatal("a partition that is not there")
		}
		windows, err := PorcupineLog(a, 0, 0, math.MaxInt64)
		if err != nil {
			t.Fatal(err)
		}
		// Verdicts are compared by SecondOpinion, which sees the same windows.
		for _, w := range windows {
			try(w)
			if !slices.IsSortedFunc(w.Operations, func(a, b porcupine.Operation) int { return int(min(1, max(-1, a.Call-b.Call))) }) {
				t.Fatalf("%s: %s is not in the order of calls", p.name, w.Name)
			}
		}
	}
	if legal+illegal == before {
		t.Error("no log has a window")
	}
	if _, err := PorcupineObjects(histories.Events(nil), "set"); err == nil {
		t.Error("a set has a model of porcupine")
	}
}
