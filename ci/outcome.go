package ci

import (
	"time"

	"ackproof/model"
)

// OutcomeVersion is the version of gate.json.
const OutcomeVersion = 1

// Outcome is what a gate found; gate.json is the same. Fields are never renamed or removed within a version.
type Outcome struct {
	Version    int                 `json:"version"`
	File       string              `json:"file"`
	Started    time.Time           `json:"started"`
	Seconds    float64             `json:"seconds"`
	Status     Status              `json:"status"` // the worst of the tests and of the quarantine
	Exit       int                 `json:"exit"`
	Tests      []TestOutcome       `json:"tests"`
	Quarantine []QuarantineOutcome `json:"quarantine"`
}

// Status is what became of a test, or of one of its claims.
type Status string

// The statuses.
const (
	Passed      Status = "passed"        // as expected
	Failed      Status = "failed"        // violated, or something else than the file expects
	Crashed     Status = "crashed"       // ackproof itself is at fault
	CouldNotRun Status = "could-not-run" // the infrastructure failed
	Unproven    Status = "unproven"      // undecided or not tested, and the file says that this fails the gate
	NotRun      Status = "not-run"       // the gate had stopped before
	Skipped     Status = "skipped"       // undecided or not tested, and the file says that this may be
	Quarantined Status = "quarantined"   // violated, and known
)

// exit is the exit code that a status asks for.
func (s Status) exit() int {
	switch s {
	case Passed, Skipped, Quarantined:
		return model.ExitHeld
	case Failed:
		return model.ExitViolated
	case Unproven, NotRun:
		return model.ExitUndecided
	case CouldNotRun:
		return model.ExitInfrastructure
	}
	return model.ExitCrash
}

// severity orders statuses as the exit codes do.
func (s Status) severity() int { return severity(s.exit()) }

// severity orders exit codes: 1 outranks 255 > 3 > 2 > 0.
func severity(exit int) int {
	switch exit {
	case model.ExitHeld:
		return 0
	case model.ExitUndecided:
		return 1
	case model.ExitInfrastructure:
		return 2
	case model.ExitViolated:
		return 4
	}
	return 3
}

// WorseExit is the exit code that outranks the other.
func WorseExit(a, b int) int {
	if severity(b) > severity(a) {
		return b
	}
	return a
}

func worse(a, b Status) Status {
	if b.severity() > a.severity() {
		return b
	}
	return a
}

// TestOutcome is what became of one test.
type TestOutcome struct {
	Name   string         `json:"name"`
	Line   int            `json:"line"` // in the gate file
	Expect Expectation    `json:"expect"`
	Status Status         `json:"status"`
	Reason string         `json:"reason"` // why it did not pass
	Claims []ClaimOutcome `json:"claims"`
	Runs   []RunOutcome   `json:"runs"`
	// Tested is how many runs came to a result, Violated in how many of them a claim was violated, and Bound the 95 % bound on the probability that a
	// run violates any claim, 0 if one did or none ran.
	Tested   int     `json:"tested"`
	Violated int     `json:"violated"`
	Bound    float64 `json:"bound"`
	Coverage []Cover `json:"coverage"`
}

// ClaimOutcome is the answer of all runs of a test to one claim.
type ClaimOutcome struct {
	ID      model.Claim   `json:"id"`
	Status  Status        `json:"status"`
	Verdict model.Verdict `json:"verdict"` // held if one run put it to the test and no run says otherwise
	Reason  string        `json:"reason"`  // of undecided and not-tested
	// Tested is how many runs put it to the test, Violated in how many of them it was violated, Bound as in TestOutcome.
	Tested     int                   `json:"tested"`
	Violated   int                   `json:"violated"`
	Bound      float64               `json:"bound"`
	Evidence   map[string]int64      `json:"evidence"` // of all runs together: counts added up, times (…_ms) the longest
	Violations []Violation           `json:"violations"`
	Permitted  []model.PermittedLoss `json:"permitted"` // of all runs together
}

// Violation is one kind of anomaly that broke a claim in one run.
type Violation struct {
	Anomaly     model.Anomaly `json:"anomaly"`
	Count       int64         `json:"count"`
	Seed        int64         `json:"seed"`
	Proof       string        `json:"proof"`       // the sentence of the certificate, "" if there is none
	Certificate string        `json:"certificate"` // path
	Replay      string        `json:"replay"`      // the command that repeats the run
	Quarantine  string        `json:"quarantine"`  // the issue by which it is known, "" if it is not
}

// RunOutcome is one run of a test.
type RunOutcome struct {
	Seed    int64   `json:"seed"`
	Fresh   bool    `json:"fresh"`
	Status  Status  `json:"status"` // passed: it came to a result, whatever that is
	Tries   int     `json:"tries"`  // 0: it was not carried out
	Exit    int     `json:"exit"`   // of the last try
	Reason  string  `json:"reason"` // why there is no result
	Seconds float64 `json:"seconds"`
	Dir     string  `json:"dir"`    // the run directory, "" if there is none
	Output  string  `json:"output"` // file with what the run said
	Replay  string  `json:"replay"`

	results *model.Results // nil if it came to none
}

// QuarantineOutcome is one entry of the quarantine and what became of it.
type QuarantineOutcome struct {
	Line    int           `json:"line"`
	Test    string        `json:"test"`
	Claim   model.Claim   `json:"claim"`
	Anomaly model.Anomaly `json:"anomaly"`
	Issue   string        `json:"issue"`
	Owner   string        `json:"owner"`
	LastDay string        `json:"last_day"`
	Expired bool          `json:"expired"`
	Met     bool          `json:"met"` // the violation was seen
}
