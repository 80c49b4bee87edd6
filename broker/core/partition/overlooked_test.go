package partition

import (
	"math"
	"slices"
	"testing"
	"time"

	"ackproof/broker/storage"
)

// The cases here are those that ci/mutants showed no other test to notice.

// TestR12TheEpochListIsCutWithTheLog: what a cut saves speaks of no epoch that begins at or above it.
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

// TestR15CaughtUpAtTheFetchBefore: who has by now fetched all that there was at its last fetch was caught up then; who has not, was not.
func TestR15CaughtUpAtTheFetchBefore(t *testing.T) {
	now := time.Unix(1000, 0)
	long, last := now.Add(-5*time.Second), now.Add(-time.Second)
	for offset, want := range map[int64]time.Time{5: long, 6: last, 10: now} {
		p := &progress{brokerEpoch: 7, end: 4, start: 0, caughtUp: long, lastFetch: last, endThen: 6}
		r := &Replica{cfg: Config{Self: 1}, role: Leader, end: 10, next: 10, flushed: 10, now: now,
			state: State{Leader: 1, Replicas: []int32{1, 2}, ISR: []int32{1, 2}, MinISR: 1, BrokerEpochs: map[int32]int64{1: 3, 2: 7}},
			lead:  leadership{progress: map[int32]*progress{2: p}}}
		r.followerFetched(Fetch{Replica: 2, ReplicaEpoch: 7, Offset: offset})
		if !p.caughtUp.Equal(want) {
			t.Errorf("a fetch at %d, when the log ended at 10 and at 6 the time before: caught up at %v, want %v", offset, p.caughtUp, want)
		}
	}
}

// TestR26OldSetsAreIgnored: within one leader epoch the partition epoch tells what is news.
func TestR26OldSetsAreIgnored(t *testing.T) {
	for epoch, want := range map[int32]int{8: 2, 10: 3} {
		r := &Replica{cfg: Config{Self: 1}, role: Follower, state: State{Leader: 2, LeaderEpoch: 3, PartitionEpoch: 9, Replicas: []int32{1, 2, 3}, ISR: []int32{1, 2}}}
		r.assign(State{Leader: 2, LeaderEpoch: 3, PartitionEpoch: epoch, Replicas: []int32{1, 2, 3}, ISR: []int32{1, 2, 3}})
		if got := len(r.state.ISR); got != want {
			t.Errorf("news of partition epoch %d at 9: %d in sync, want %d", epoch, got, want)
		}
	}
}

// TestR28SequencesWrap: after 2³¹−1 comes 0.
func TestR28SequencesWrap(t *testing.T) {
	for s, want := range map[int32]int32{0: 1, math.MaxInt32 - 1: math.MaxInt32, math.MaxInt32: 0} {
		if got := nextSequence(s); got != want {
			t.Errorf("%d follows %d, want %d", got, s, want)
		}
	}
}
