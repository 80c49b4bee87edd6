package page

import (
	"fmt"
	"math"

	"ackproof/model"
)

// Comparison is two runs of one test, the earlier one first.
type Comparison struct {
	Claims    []ClaimChange
	Anomalies []AnomalyChange
	Numbers   []NumberChange
}

// ClaimChange is a claim in both runs; "" where a run did not ask for it.
type ClaimChange struct {
	ID          model.Claim
	Before, Now model.Verdict
}

// Changed tells whether the answer is another one.
func (c ClaimChange) Changed() bool { return c.Before != c.Now }

// Same counts the claims with the same answer.
func (c Comparison) Same() (n int) {
	for _, k := range c.Claims {
		if !k.Changed() {
			n++
		}
	}
	return n
}

// The states of an anomaly between two runs.
const (
	StateNew    = "new"
	StateStill  = "still there"
	StateUnseen = "not seen this time, which does not prove it fixed"
)

// AnomalyChange is one kind of anomaly under one claim.
type AnomalyChange struct {
	Claim       model.Claim
	Kind        model.Anomaly
	Before, Now int64
	State       string
}

// NumberChange is a figure of both runs.
type NumberChange struct{ Name, Before, Now string }

// Compare puts two results side by side.
func Compare(before, now model.Results) Comparison {
	var out Comparison
	old := map[model.Claim]model.ClaimResult{}
	for _, c := range before.Claims {
		old[c.ID] = c
	}
	seen := map[model.Claim]bool{}
	for _, c := range now.Claims {
		seen[c.ID] = true
		out.Claims = append(out.Claims, ClaimChange{c.ID, old[c.ID].Verdict, c.Verdict})
		out.anomalies(c.ID, old[c.ID].Anomalies, c.Anomalies)
	}
	for _, c := range before.Claims {
		if !seen[c.ID] {
			out.Claims = append(out.Claims, ClaimChange{c.ID, c.Verdict, ""})
			out.anomalies(c.ID, c.Anomalies, nil)
		}
	}
	add := func(name, b, n string) { out.Numbers = append(out.Numbers, NumberChange{name, b, n}) }
	count := func(name string, b, n int64) { add(name, number(b), number(n)) }
	count("operations that went through", before.Operations.OK, now.Operations.OK)
	count("operations of unknown outcome", before.Operations.Info, now.Operations.Info)
	count("acknowledged records", before.Records.Acked, now.Records.Acked)
	count("faults with an effect", effective(before), effective(now))
	count("leader changes", int64(before.LeaderChanges), int64(now.LeaderChanges))
	add("longest time without an acknowledged record", span(ms(before.UnavailableMS["max"])), span(ms(now.UnavailableMS["max"])))
	add("load", fmt.Sprintf("%.1f s", before.Seconds.Load), fmt.Sprintf("%.1f s", now.Seconds.Load))
	return out
}

func (c *Comparison) anomalies(id model.Claim, before, now []model.AnomalyResult) {
	counts := map[model.Anomaly]int64{}
	for _, a := range before {
		counts[a.Kind] += a.Count
	}
	for _, a := range now {
		state := StateNew
		if counts[a.Kind] > 0 {
			state = StateStill
		}
		c.Anomalies = append(c.Anomalies, AnomalyChange{id, a.Kind, counts[a.Kind], a.Count, state})
		delete(counts, a.Kind)
	}
	for _, a := range before {
		if n := counts[a.Kind]; n > 0 {
			c.Anomalies = append(c.Anomalies, AnomalyChange{id, a.Kind, n, 0, StateUnseen})
			delete(counts, a.Kind)
		}
	}
}

func effective(r model.Results) (n int64) {
	for _, f := range r.Faults {
		if f.Effective {
			n++
		}
	}
	return n
}

// bound is the probability per run that 0 violations in n runs exclude at 95 %: 1 − 0.05^(1/n).
func bound(n int) float64 { return 1 - math.Pow(0.05, 1/float64(n)) }
