//go:build !failpoints

package fault_test

import (
	"testing"

	"ackproof/broker/fault"
)

func TestNormalBuildCannotPlant(t *testing.T) {
	for _, b := range fault.All() {
		if err := fault.Plant(b); err == nil {
			t.Errorf("%v was planted in a normal build", b)
		}
		if fault.On(b) {
			t.Errorf("%v is on in a normal build", b)
		}
	}
}
