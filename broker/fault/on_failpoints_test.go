//go:build failpoints

package fault_test

import (
	"testing"

	"ackproof/broker/fault"
)

// Planting one bug switches on that one only. "Silently off" must not pass.
func TestTaggedBuildPlants(t *testing.T) {
	planted := map[fault.Bug]bool{}
	for _, b := range fault.All() {
		if fault.On(b) {
			t.Errorf("%v is on before it was planted", b)
		}
		if err := fault.Plant(b); err != nil {
			t.Error(err)
		}
		planted[b] = true
		for _, other := range fault.All() {
			if got := fault.On(other); got != planted[other] {
				t.Errorf("after planting %v: %v is on: %v, want %v", b.ID, other.ID, got, planted[other])
			}
		}
	}
}
