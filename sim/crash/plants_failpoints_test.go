//go:build failpoints

package crash

import (
	"math/rand/v2"
	"testing"

	"ackproof/broker/fault"
)

// TestCampaignFindsPlants: each planted bug of the store is found by the part of the campaign that it is for; without them the same parts find nothing
// (TestCampaign).
func TestCampaignFindsPlants(t *testing.T) {
	crash := func(all *Tally) { all.CrashEverywhere(Written(), rand.New(rand.NewPCG(1, 0)), 2, false) }
	flip := func(all *Tally) { all.FlipBits(Written(), rand.New(rand.NewPCG(1, 0)), 50) }
	for _, tt := range []struct {
		bug  fault.Bug
		part func(*Tally)
	}{
		{fault.TornTailAccepted, crash}, {fault.DamageIsCut, flip}, {fault.MarkerTooEarly, crash}, {fault.NamesNotFlushed, crash}, {fault.CutInTwoSteps, crash},
	} {
		if err := fault.Plant(tt.bug); err != nil {
			t.Fatal(err)
		}
		all := Tally{First: true}
		tt.part(&all)
		fault.Uproot(tt.bug)
		if len(all.Findings) == 0 {
			t.Errorf("%s %s was not found: %v", tt.bug.ID, tt.bug.Name, all)
			continue
		}
		t.Logf("%s %s, after %d crash states and %d flips: %s", tt.bug.ID, tt.bug.Name, all.States, all.Flips, all.Findings[0])
	}
}
