package sim

import (
	"testing"

	"ackproof/model"
)

// Without a loss of power nobody can tell the stores apart: a run on the broker's own store, with its recovery after every kill, is event for event the one on
// memory logs.
func TestStoresAreAlike(t *testing.T) {
	for seed := int64(1); seed <= 3; seed++ {
		c := short(seed)
		c.FlushEach = seed == 2
		want := mustRun(t, c, Options{})
		c.Store = "segment"
		got := mustRun(t, c, Options{})
		if got.Hash != want.Hash || got.HistoryHash() != want.HistoryHash() || got.Verdict() != model.Held {
			t.Errorf("seed %d: store segment gives %s and %s, store memory %s and %s", seed, inHex(got.Hash), got.Verdict(), inHex(want.Hash), want.Verdict())
		}
	}
}
