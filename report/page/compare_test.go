package page

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ackproof/model"
)

func TestRunsAreCompared(t *testing.T) {
	claim := func(id model.Claim, v model.Verdict, anomalies ...model.AnomalyResult) model.ClaimResult {
		return model.ClaimResult{ID: id, Verdict: v, Anomalies: anomalies}
	}
	before := model.Results{Claims: []model.ClaimResult{
		claim("a", model.Held), claim("b", model.Violated, model.AnomalyResult{Kind: "old", Count: 2}, model.AnomalyResult{Kind: "both", Count: 3}), claim("gone", model.Held),
	}}
	now := model.Results{Claims: []model.ClaimResult{
		claim("a", model.Held), claim("b", model.Violated, model.AnomalyResult{Kind: "both", Count: 5}, model.AnomalyResult{Kind: "young", Count: 1}), claim("new", model.Undecided),
	}}
	c := Compare(before, now)
	if diff := cmp.Diff([]ClaimChange{{"a", model.Held, model.Held}, {"b", model.Violated, model.Violated}, {"new", "", model.Undecided}, {"gone", model.Held, ""}}, c.Claims); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]AnomalyChange{{"b", "both", 3, 5, StateStill}, {"b", "young", 0, 1, StateNew}, {"b", "old", 2, 0, StateUnseen}}, c.Anomalies); diff != "" {
		t.Error(diff)
	}
	if c.Same() != 2 {
		t.Errorf("%d claims are the same, expected 2", c.Same())
	}
}

// TestTheBoundIsThatOfTheLiterature: 0 of n runs exclude, at 95 %, what Hanley and Lippman-Hand call the rule of three in its exact form.
func TestTheBoundIsThatOfTheLiterature(t *testing.T) {
	for n, percent := range map[int]float64{20: 13.9, 59: 5, 299: 1, 2995: 0.1} {
		if got := 100 * bound(n); math.Abs(got-percent) > 0.06 {
			t.Errorf("%d runs: %.2f %%, expected %.1f %%", n, got, percent)
		}
	}
}
