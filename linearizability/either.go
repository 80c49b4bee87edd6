package linearizability

import (
	"slices"

	"ackproof/model"
)

// Either is one claim as two checkers see it: what either finds counts, and anomalies of one kind as those of the one that found more.
func Either(a, b model.ClaimResult) model.ClaimResult {
	worst := model.WorstOf([]model.ClaimResult{a, b})
	if a.Verdict == model.NotTested || b.Verdict == worst && b.Verdict != model.NotTested && a.Verdict != worst {
		a.Verdict, a.Reason = b.Verdict, b.Reason
	}
	for what, n := range b.Evidence {
		a.Evidence[what] = max(a.Evidence[what], n)
	}
	for _, x := range b.Anomalies {
		i := slices.IndexFunc(a.Anomalies, func(y model.AnomalyResult) bool { return y.Kind == x.Kind })
		switch {
		case i < 0:
			a.Anomalies = append(a.Anomalies, x)
		case x.Count > a.Anomalies[i].Count:
			a.Anomalies[i] = x
		}
	}
	return a
}
