// Package ci is the gate of a pipeline: a file lists tests with seeds, budgets and expectations; the gate runs them in order, judges what they found against what was
// expected, and tells it to people and machines (terminal, JUnit, SARIF, Markdown, annotations, JSON).
//
// Every run is a process of its own, `ackproof test` executed again: a crash, a deadlock or a lack of memory in one run ends that process, is told as what it
// is, and leaves the gate and the other runs alone. What a run found is read from its directory, as anybody would. The package therefore knows results and
// certificates, and nothing of systems, workloads or checkers. Start reading at Gate and Runner.
package ci

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"ackproof/model"
	"ackproof/report"
)

// Gate is a gate file that makes sense. See docs/ci.md for the file.
type Gate struct {
	Path       string
	Budget     time.Duration // for all tests together
	Tests      []Test
	Quarantine []Quarantine
}

// String says what the gate will do, in a few lines: the seeds first, since they repeat it.
func (g *Gate) String() string {
	var out strings.Builder
	runs := 0
	for _, t := range g.Tests {
		runs += len(t.Seeds)
	}
	fmt.Fprintf(&out, "gate %s: %s, up to %s, budget %v\n", g.Path, count(len(g.Tests), "test"), count(runs, "run"), g.Budget)
	for _, t := range g.Tests {
		seeds := make([]string, len(t.Seeds))
		for i, s := range t.Seeds {
			seeds[i] = strconv.FormatInt(s.Value, 10)
			if s.Fresh {
				seeds[i] += " (fresh)"
			}
		}
		out.WriteString(report.Wrap("  ", fmt.Sprintf("%s: seeds %s; expected: %s", t.Name, strings.Join(seeds, ", "), t.Expect)))
	}
	return out.String()
}

// Test is one test of a gate: the same flags with several seeds.
type Test struct {
	Name string // unique in the gate; letters, digits, ".", "_" and "-"
	Line int    // where the file defines it
	// Args are flags of `ackproof test`, as "--name=value", without seed, claims and store.
	Args []string
	// Load is how long one run loads the system; a run takes longer than that.
	Load   time.Duration
	Seeds  []Seed        // at least one, in the order of the runs
	Budget time.Duration // for all its runs; 0: whatever the gate has left
	// Claims are those that must hold; none: every claim of the contract.
	Claims []model.Claim
	Expect Expectation
	// Undecided and NotTested say whether such an answer fails the gate.
	Undecided, NotTested Policy
	// Permitted are the losses that the contract permits and that are expected, per run; nil: whatever the contract permits.
	Permitted map[model.Anomaly]Range
	Retries   int // of a run that could not run
}

// Seed is what one run draws from.
type Seed struct {
	Value int64
	Fresh bool // drawn for this gate run, not from the file
}

// Expectation is what a test is expected to find.
type Expectation string

// The expectations.
const (
	ExpectHeld Expectation = "held"
	// ExpectViolated is for a planted bug: the seeds are tries, and one of them has to find it.
	ExpectViolated Expectation = "violated"
)

// Policy says what an answer that is neither held nor violated does to the gate.
type Policy string

// The policies.
const (
	Fail Policy = "fail"
	Skip Policy = "skip"
)

// Range is how many are expected, both ends included.
type Range struct{ Min, Max int64 }

// unbounded is a Max that nothing exceeds.
const unbounded = 1 << 62

// Quarantine keeps a known violation from failing the gate, for a while.
type Quarantine struct {
	Line    int
	Test    string
	Claim   model.Claim
	Anomaly model.Anomaly // "": every anomaly of the claim
	Issue   string        // URL
	Owner   string
	Expires time.Time // the first moment at which it excuses nothing any more
}

// Expired tells whether the entry has lost its force.
func (q Quarantine) Expired(now time.Time) bool { return !now.Before(q.Expires) }

// LastDay is the last day on which it counts.
func (q Quarantine) LastDay() string { return q.Expires.AddDate(0, 0, -1).Format(time.DateOnly) }

func (q Quarantine) excuses(test string, claim model.Claim, anomaly model.Anomaly) bool {
	return q.Test == test && q.Claim == claim && (q.Anomaly == "" || q.Anomaly == anomaly)
}
