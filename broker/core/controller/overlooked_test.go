package controller

import (
	"testing"
	"time"
)

// TestR20PausedLeaderFencesNobodyMeanwhile: not even for the moment until the next heartbeats come, which would let everybody in again. (ci/mutants showed no
// other test to notice.)
func TestR20PausedLeaderFencesNobodyMeanwhile(t *testing.T) {
	w, l := leading(t, 3, 7, nil)
	before := make(map[int32]*Broker)
	for id, b := range w.nodes[l.id].image.Brokers {
		before[id] = b
	}
	w.now = w.now.Add(time.Hour)
	for range 20 {
		w.run(1)
		for id, b := range w.nodes[l.id].image.Brokers {
			if b != before[id] {
				t.Fatalf("broker %d is now %+v, was %+v", id, b, before[id])
			}
		}
	}
}
