//go:build failpoints

package crash

import (
	"testing"

	"ackproof/broker/fault"
)

// TestCampaignFindsPlants: each planted bug of the store is found by the campaign; without them the same campaign finds nothing (TestCampaign).
func TestCampaignFindsPlants(t *testing.T) {
	for _, bug := range []fault.Bug{fault.TornTailAccepted, fault.DamageIsCut, fault.MarkerTooEarly, fault.NamesNotFlushed, fault.CutInTwoSteps} {
		if err := fault.Plant(bug); err != nil {
			t.Fatal(err)
		}
		tally := Campaign(1, 0, true)
		fault.Uproot(bug)
		if len(tally.Findings) == 0 {
			t.Errorf("%s %s was not found: %v", bug.ID, bug.Name, tally)
			continue
		}
		t.Logf("%s %s, after %d crash states and %d flips: %s", bug.ID, bug.Name, tally.States, tally.Flips, tally.Findings[0])
	}
}
