//go:build failpoints

package sim

import "testing"

// An invariant that does not hold ends the run at once; whoever is blind to it goes on to the end, along the same way.
func TestAnInvariantEndsTheRun(t *testing.T) {
	for seed := int64(1000); seed < 1060; seed++ {
		c := Swarm(seed, nil, 0)
		c.Plant = "B36"
		first := mustRun(t, c, Options{})
		if len(first.Broken) == 0 {
			continue
		}
		whole := mustRun(t, c, Options{Blind: true})
		if first.Events >= whole.Events || first.Virtual >= whole.Virtual || first.SightedMS == 0 {
			t.Errorf("seed %d: %d events in %v, %d ms of load; blind %d events in %v, expected more of them", seed, first.Events, first.Virtual, first.SightedMS, whole.Events, whole.Virtual)
		}
		if first.Facts.DrainComplete || !whole.Facts.DrainComplete || whole.Broken[0] != first.Broken[0] {
			t.Errorf("seed %d: drained %t, blind %t; first broken %q, blind %q", seed, first.Facts.DrainComplete, whole.Facts.DrainComplete, first.Broken[0], whole.Broken[0])
		}
		return
	}
	t.Fatal("no seed breaks an invariant")
}
