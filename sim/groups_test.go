package sim

import (
	"testing"

	"ackproof/model"
)

func TestGroupsHoldUnderEverySchedule(t *testing.T) {
	for seed := int64(1); seed <= 6; seed++ {
		r := mustRun(t, SwarmGroups(seed, nil, 6_000), Options{})
		t.Logf("seed %d: %s %d events, %v", seed, r.Verdict(), r.Events, r.Virtual)
		if v := r.Verdict(); v != model.Held {
			t.Errorf("seed %d: %s: %v %v", seed, v, r.Anomalies(), r.Broken)
			for _, c := range r.Answer.Claims {
				t.Log(c.ID, c.Verdict, c.Reason, c.Evidence)
				for _, a := range c.Anomalies {
					t.Log(a.Kind, a.Count, a.Proof.Sentence)
				}
			}
		}
	}
}
