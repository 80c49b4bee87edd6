package ci

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"ackproof/model"
	"ackproof/report"
)

// title is a violation in a few words.
func (v Violation) title(claim model.Claim) string {
	return fmt.Sprintf("%s is violated: %s × %d", claim, v.Anomaly, v.Count)
}

// text is a violation with all that one needs to look into it, a line each.
func (v Violation) text(test string, claim model.Claim) string {
	lines := []string{
		fmt.Sprintf("%s (%s) is violated in test %s, seed %d: %s × %d", claim, report.Plain(claim), test, v.Seed, v.Anomaly, v.Count),
	}
	if v.Proof != "" {
		lines = append(lines, "Proof: "+v.Proof)
	}
	if v.Certificate != "" {
		lines = append(lines, "Certificate: "+v.Certificate)
	}
	if v.Replay != "" {
		lines = append(lines, "Repeat with: "+v.Replay)
	}
	if v.Quarantine != "" {
		lines = append(lines, "In quarantine: "+v.Quarantine)
	}
	return report.Visible(strings.Join(lines, "\n"))
}

// confidence says what the runs of a test show about the next one.
func confidence(t TestOutcome) string {
	switch {
	case t.Tested == 0:
		return "no run came to a result"
	case t.Violated > 0:
		return fmt.Sprintf("violated in %d of %d runs", t.Violated, t.Tested)
	}
	return fmt.Sprintf("violated in 0 of %d runs: under %s per run at 95 %%, under this workload and fault mix", t.Tested, percent(t.Bound))
}

// count is "1 run", "2 runs".
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// percent rounds up: a bound must not become smaller by being printed.
func percent(p float64) string { return fmt.Sprintf("%.1f %%", math.Ceil(p*1000-1e-9)/10) }

// entry is an entry of the quarantine in words.
func (q QuarantineOutcome) entry() string {
	what := string(q.Claim)
	if q.Anomaly != "" {
		what += " (" + string(q.Anomaly) + ")"
	}
	return report.Visible(fmt.Sprintf("%s in %s, %s, owner %s, until %s", what, q.Test, q.Issue, q.Owner, q.LastDay))
}

// state is what became of the entry.
func (q QuarantineOutcome) state() string {
	switch {
	case q.Expired:
		return "expired"
	case q.Met:
		return "seen again"
	}
	return "not seen in this run"
}

// told: the violations of its claims say why the test failed.
func (t TestOutcome) told() bool {
	return t.Status == Failed && t.Expect == ExpectHeld && slices.ContainsFunc(t.Claims, func(c ClaimOutcome) bool { return c.Status == Failed && len(c.Violations) > 0 })
}
