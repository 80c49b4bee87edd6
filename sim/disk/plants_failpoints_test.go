//go:build failpoints

package disk_test

import (
	"math/rand/v2"
	"testing"

	"ackproof/broker/fault"
)

// TestCampaignFindsPlants: each planted bug of the store is found by the campaign, and without it the same campaign finds nothing.
func TestCampaignFindsPlants(t *testing.T) {
	crash := func(all *tally) { all.crashEverywhere(writtenRun(), rand.New(rand.NewPCG(1, 0)), 1, false) }
	rot := func(all *tally) { all.rotEverywhere(writtenRun(), rand.New(rand.NewPCG(1, 0)), 20) }
	for _, tt := range []struct {
		bug      fault.Bug
		campaign func(*tally)
	}{
		{fault.TornTailAccepted, crash}, {fault.DamageIsCut, rot}, {fault.MarkerTooEarly, crash}, {fault.NamesNotFlushed, crash}, {fault.CutInTwoSteps, crash},
	} {
		if err := fault.Plant(tt.bug); err != nil {
			t.Fatal(err)
		}
		var all tally
		tt.campaign(&all)
		fault.Uproot(tt.bug)
		if len(all.findings) == 0 {
			t.Errorf("%s %s was not found: %v", tt.bug.ID, tt.bug.Name, all)
			continue
		}
		t.Logf("%s %s: %d findings in %d states and %d flips, the first: %s", tt.bug.ID, tt.bug.Name, len(all.findings), all.states, all.flips, all.findings[0])
	}
	var control tally
	crash(&control)
	rot(&control)
	control.report(t)
}
