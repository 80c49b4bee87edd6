package ci

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"ackproof/model"
	"ackproof/report"
)

// JUnit is the outcome as JUnit XML, in the form of Ant's schema, which is the strictest in use. One suite per test and one case per claim, whatever the seeds of the day, so that a server can follow a case over time; one more
// case says whether every run came to its end, and one suite holds the quarantine. A violation is a failure, a crash and what could not run are errors.
func JUnit(o *Outcome) ([]byte, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	var all junit.Testsuites
	add := func(name string, seconds float64, cases []junit.Testcase, properties [][2]string, said string) {
		s := junit.Testsuite{Name: name, ID: len(all.Suites), Package: "ackproof", Hostname: host, Time: secs(seconds), Timestamp: o.Started.Format("2006-01-02T15:04:05")}
		for _, p := range properties {
			s.AddProperty(p[0], report.Visible(p[1]))
		}
		for _, c := range cases {
			c.Classname = "ackproof." + name
			s.AddTestcase(c)
		}
		s.SystemOut, s.SystemErr = &junit.Output{Data: report.Visible(said)}, &junit.Output{}
		all.Suites = append(all.Suites, s) // the totals stay with the suites: the strict schema allows none above them
	}
	for _, t := range o.Tests {
		cases, seconds := t.cases()
		add(t.Name, seconds, cases, t.properties(), t.evidence())
	}
	if len(o.Quarantine) > 0 {
		var cases []junit.Testcase
		for _, q := range o.Quarantine {
			c := junit.Testcase{Name: strings.TrimSuffix(fmt.Sprintf("%s %s %s", q.Test, q.Claim, q.Anomaly), " "), Time: secs(0)}
			if q.Expired {
				c.Failure = &junit.Result{Type: "expired", Message: "the quarantine has expired", Data: q.entry()}
			}
			cases = append(cases, c)
		}
		add("quarantine", 0, cases, [][2]string{{"file", o.File}}, "")
	}
	var out bytes.Buffer
	out.WriteString(xml.Header)
	if err := all.WriteXML(&out); err != nil {
		return nil, fmt.Errorf("write JUnit: %w", err)
	}
	return out.Bytes(), nil
}

func secs(s float64) string { return fmt.Sprintf("%.3f", s) }

func (t TestOutcome) properties() [][2]string {
	var seeds, dirs []string
	var operations model.Operations
	faults, effective := 0, 0
	for _, r := range t.Runs {
		if r.Tries > 0 {
			seeds = append(seeds, fmt.Sprint(r.Seed))
		}
		if r.Dir != "" {
			dirs = append(dirs, r.Dir)
		}
		if r.results != nil {
			operations.OK += r.results.Operations.OK
			operations.Fail += r.results.Operations.Fail
			operations.Info += r.results.Operations.Info
		}
	}
	for _, c := range t.Coverage {
		faults += c.Planned
		for _, n := range c.Effective {
			effective += n
		}
	}
	return [][2]string{
		{"seeds", strings.Join(seeds, " ")},
		{"operations", fmt.Sprintf("%d ok, %d failed, %d unknown", operations.OK, operations.Fail, operations.Info)},
		{"faults", fmt.Sprintf("%d of %d had an effect", effective, faults)},
		{"confidence", confidence(t)},
		{"runs", strings.Join(dirs, " ")},
	}
}

// evidence is what the claims rest on; the strict schema has no place for it in their cases.
func (t TestOutcome) evidence() string {
	var out strings.Builder
	for _, c := range t.Claims {
		fmt.Fprintf(&out, "%s %s: %s: %s\n", c.ID, c.Verdict, report.Plain(c.ID), report.Evidence(c.Evidence))
		if t.Expect == ExpectViolated {
			for _, v := range c.Violations {
				fmt.Fprintf(&out, "as expected: %s\n", v.text(t.Name, c.ID))
			}
		}
	}
	return out.String()
}

// cases are those of one test.
func (t TestOutcome) cases() (cases []junit.Testcase, seconds float64) {
	for _, r := range t.Runs {
		seconds += r.Seconds
	}
	first := junit.Testcase{Name: "runs", Time: secs(seconds)}
	var errors []string
	skipped, unproven, failed := "", "", ""
	for _, r := range t.Runs {
		if r.Status == Passed || r.Status == Skipped {
			continue
		}
		text := report.Visible(fmt.Sprintf("seed %d: %s: %s", r.Seed, r.Status, r.Reason))
		switch r.Status {
		case NotRun:
			skipped = text
		case Unproven:
			unproven = text
		default:
			failed = text
		}
		errors = append(errors, strings.TrimSpace(text+"\n"+report.Visible(r.Output)))
	}
	switch {
	case failed != "":
		first.Error = &junit.Result{Type: string(t.Status), Message: failed, Data: strings.Join(errors, "\n")}
	case unproven != "":
		first.Failure = &junit.Result{Type: string(Unproven), Message: unproven, Data: strings.Join(errors, "\n")}
	case skipped != "":
		first.Skipped = &junit.Result{Message: skipped}
	}
	cases = append(cases, first)
	if t.Expect == ExpectViolated {
		return append(cases, t.expected()), seconds
	}
	told := t.Status.severity() == 0 || t.Status == NotRun || first.Error != nil || first.Failure != nil
	for _, c := range t.Claims {
		one := c.testcase(t.Name)
		told = told || one.Failure != nil || one.Error != nil
		cases = append(cases, one)
	}
	if !told { // what no claim says, such as permitted losses beyond what is expected
		cases = append(cases, junit.Testcase{Name: "expectations", Time: secs(0), Failure: &junit.Result{Type: string(t.Status), Message: report.Visible(t.Reason)}})
	}
	return cases, seconds
}

// expected is the case of a test that expects a violation.
func (t TestOutcome) expected() junit.Testcase {
	c := junit.Testcase{Name: "a violation is found", Time: secs(0)}
	switch t.Status {
	case Passed:
	case Failed:
		c.Failure = &junit.Result{Type: "blind", Message: report.Visible(t.Reason), Data: report.Visible(t.Reason)}
	default:
		c.Skipped = &junit.Result{Message: report.Visible(t.Reason)}
	}
	return c
}

// testcase is one claim.
func (c ClaimOutcome) testcase(test string) junit.Testcase {
	out := junit.Testcase{Name: string(c.ID), Time: secs(0)}
	reason := report.Visible(fmt.Sprintf("%s: %s", c.Verdict, c.Reason))
	switch c.Status {
	case Passed:
	case Failed, Quarantined:
		var lines []string
		for _, v := range c.Violations {
			lines = append(lines, v.text(test, c.ID))
		}
		r := &junit.Result{Type: "violated", Message: fmt.Sprintf("%s is violated", c.ID), Data: strings.Join(lines, "\n\n")}
		if len(c.Violations) > 0 {
			r.Type, r.Message = string(c.Violations[0].Anomaly), report.Visible(c.Violations[0].title(c.ID)+". "+c.Violations[0].Proof)
		}
		if c.Status == Failed {
			out.Failure = r
		} else {
			out.Skipped = &junit.Result{Message: "in quarantine: " + r.Message}
		}
	case Unproven:
		out.Failure = &junit.Result{Type: string(c.Verdict), Message: reason}
	case Skipped:
		out.Skipped = &junit.Result{Message: reason}
	default:
		out.Error = &junit.Result{Type: string(c.Status), Message: reason}
	}
	return out
}

// stamp is a time for people.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
