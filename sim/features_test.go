package sim

import (
	"bytes"
	"testing"

	"ackproof/histories"
	"ackproof/model"
)

// The clients that not every load has do what they are for: several writes of one producer under way at once, and deletions that are acknowledged.
func TestPipelinedWritersAndDeleters(t *testing.T) {
	c := short(3)
	c.InFlight, c.Deletes = true, true
	r := mustRun(t, c, Options{})
	if v := r.Verdict(); v != model.Held {
		t.Errorf("%s: %v %v", v, r.Anomalies(), r.Broken)
	}
	in, err := histories.NewReader(bytes.NewReader(r.History))
	if err != nil {
		t.Fatal(err)
	}
	open, most, deleted := map[int32]int{}, 0, 0
	pipelined := map[uint64]bool{}
	for ev, err := range in.All() {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case ev.Type == histories.Invoke && ev.Pipelined:
			pipelined[ev.Op] = true
			open[ev.Process]++
			most = max(most, open[ev.Process])
		case pipelined[ev.Op] && ev.Type != histories.Invoke:
			open[ev.Process]--
		case ev.Kind == histories.StartOffset && ev.Type == histories.OK && ev.Note == "delete-records" && ev.Offset > 0:
			deleted++
		}
	}
	if most < 2 || most > 5 || deleted < 3 {
		t.Errorf("%d writes of one producer under way at most, %d deletions acknowledged; expected 2 to 5, and at least 3", most, deleted)
	}
}
