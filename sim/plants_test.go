//go:build failpoints

package sim

import (
	"testing"

	"ackproof/model"
)

// The quick ones of the planted bugs, each within a few seeds; `ackproof score` looks for all of them.
func TestPlantsAreFound(t *testing.T) {
	for _, plant := range []string{"B01", "B09", "B19"} {
		found := false
		for seed := int64(1); seed <= 5 && !found; seed++ {
			c := Default(seed).WithSchedule(nil)
			c.Plant = plant
			r := mustRun(t, c, Options{})
			found = r.Verdict() == model.Violated && len(r.Anomalies()) > 0
		}
		if !found {
			t.Errorf("%s was not found in 5 seeds", plant)
		}
	}
}
