package partition

import (
	"slices"
	"testing"

	"ackproof/broker/storage"
)

// TestR12TheEpochListIsCutWithTheLog: what a cut saves speaks of no epoch that begins at or above it. (ci/mutants showed no other test to notice.)
func TestR12TheEpochListIsCutWithTheLog(t *testing.T) {
	r := &Replica{next: 10, end: 10, flushed: 10, hw: 3}
	r.epochs.assign(1, 0)
	r.epochs.assign(2, 5)
	r.epochs.assign(4, 8)
	r.truncate(5)
	if got, want := r.Checkpoint().Epochs, []storage.EpochStart{{Epoch: 1, Start: 0}}; !slices.Equal(got, want) {
		t.Errorf("epochs %v after a cut at 5, want %v", got, want)
	}
}
