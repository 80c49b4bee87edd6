package ci

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jstemmer/go-junit-report/v2/junit"
	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"ackproof/model"
)

// checkForms reads back what the gate has saved, by the rules of each form.
func checkForms(t *testing.T, artefacts string) {
	t.Helper()
	var out Outcome
	readJUnit(t, read(t, artefacts, junitFile))
	readSARIF(t, read(t, artefacts, sarifFile))
	if err := json.Unmarshal(read(t, artefacts, jsonFile), &out); err != nil || out.Version != OutcomeVersion {
		t.Errorf("gate.json: version %d (%v)", out.Version, err)
	}
	summary := read(t, artefacts, summaryFile)
	if len(summary) > MaxSummary || !utf8.Valid(summary) {
		t.Errorf("summary of %d bytes, valid UTF-8: %t", len(summary), utf8.Valid(summary))
	}
	for _, name := range []string{junitFile, sarifFile, jsonFile, summaryFile} {
		if text := string(read(t, artefacts, name)); strings.ContainsAny(text, "\x1b\x00") {
			t.Errorf("%s has control characters", name)
		}
	}
	for _, evil := range []string{"<script", "**@someone", "|`"} {
		if strings.Contains(string(summary), evil) {
			t.Errorf("the summary has %q unescaped", evil)
		}
	}
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// readJUnit checks what schemas demand of JUnit and a reader cannot see: counts that are right, names that are unique, types on failures and errors.
func readJUnit(t *testing.T, raw []byte) junit.Testsuites {
	t.Helper()
	var all junit.Testsuites
	if err := xml.Unmarshal(raw, &all); err != nil {
		t.Fatalf("junit.xml: %v\n%s", err, raw)
	}
	names := map[string]bool{}
	for i, s := range all.Suites {
		if s.ID != i || s.Name == "" || s.Hostname == "" || s.Package == "" || s.Timestamp == "" || s.Properties == nil || s.SystemOut == nil || s.SystemErr == nil {
			t.Errorf("suite %d lacks something: %+v", i, s)
		}
		failures, errs, skipped := 0, 0, 0
		for _, c := range s.Testcases {
			if key := c.Classname + "/" + c.Name; names[key] {
				t.Errorf("two cases are called %s", key)
			} else {
				names[key] = true
			}
			ends := 0
			if c.Failure != nil {
				failures++
				ends++
				if c.Failure.Type == "" || c.Failure.Message == "" {
					t.Errorf("a failure without a type or a message: %+v", c)
				}
			}
			if c.Error != nil {
				errs++
				ends++
				if c.Error.Type == "" || c.Error.Message == "" {
					t.Errorf("an error without a type or a message: %+v", c)
				}
			}
			if c.Skipped != nil {
				skipped++
				ends++
			}
			if ends > 1 || c.Time == "" || c.SystemOut != nil {
				t.Errorf("case %+v", c)
			}
		}
		if s.Tests != len(s.Testcases) || s.Failures != failures || s.Errors != errs || s.Skipped != skipped {
			t.Errorf("suite %s counts %d, %d, %d, %d; it has %d, %d, %d, %d", s.Name, s.Tests, s.Failures, s.Errors, s.Skipped, len(s.Testcases), failures, errs, skipped)
		}
	}
	return all
}

// readSARIF checks what GitHub demands beyond the schema.
func readSARIF(t *testing.T, raw []byte) *sarif.Run {
	t.Helper()
	r, err := sarif.FromBytes(raw)
	if err != nil {
		t.Fatalf("results.sarif: %v\n%s", err, raw)
	}
	run := r.Runs[0]
	for _, rule := range run.Tool.Driver.Rules {
		if rule.ShortDescription == nil || rule.FullDescription == nil || rule.Help == nil {
			t.Errorf("a rule lacks something: %+v", rule)
		}
	}
	for _, res := range run.Results {
		if len(res.PartialFingerprints) != 1 || len(res.Locations) != 1 || *res.RuleID != *run.Tool.Driver.Rules[res.RuleIndex].ID {
			t.Errorf("result %+v", res)
		}
	}
	return run
}

// followsSchema checks SARIF against its schema.
func followsSchema(t *testing.T, raw []byte) {
	t.Helper()
	r, err := sarif.FromBytes(raw)
	if err == nil {
		err = r.Validate()
	}
	if err != nil {
		t.Errorf("results.sarif: %v", err)
	}
}

// Every form names the claim, the proof, and the command that repeats the run; and shows what came from a broken broker as text.
func TestEveryFormNamesClaimProofAndReplay(t *testing.T) {
	out, artefacts := carryOut(t, oneTest, "violated")
	if err := out.Save(artefacts, Outputs{}, "1"); err != nil {
		t.Fatal(err)
	}
	checkForms(t, artefacts)
	followsSchema(t, read(t, artefacts, sarifFile))
	dir := out.Tests[0].Runs[0].Dir
	plain := func(s string) string { return strings.NewReplacer("&#95;", "_", "&#58;", ":").Replace(s) }
	forms := map[string]string{
		"terminal":    strings.Join(strings.Fields(Text(out, artefacts)), " "),
		"annotations": Annotations(out)[0],
		"summary":     plain(string(read(t, artefacts, summaryFile))),
		"JSON":        string(read(t, artefacts, jsonFile)),
		"JUnit":       readJUnit(t, read(t, artefacts, junitFile)).Suites[0].Testcases[1].Failure.Data,
		"SARIF":       *readSARIF(t, read(t, artefacts, sarifFile)).Results[0].Message.Text,
	}
	for name, text := range forms {
		for _, want := range []string{"no-loss", "lost-acked", "Record 7 was acknowledged and is gone", filepath.Join(dir, "certificates", "no-loss-1.json"), "ackproof test --replay " + dir} {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q:\n%s", name, want, text)
			}
		}
		if strings.Contains(text, "\x1b") || !utf8.ValidString(text) {
			t.Errorf("%s is no clean text: %q", name, text)
		}
	}
	if lines := strings.Split(forms["annotations"], "\n"); len(lines) != 1 || !strings.HasPrefix(lines[0], "::error file=") || !strings.Contains(lines[0], "%250A::error::") {
		t.Errorf("annotation: %q", lines)
	}
	for line := range strings.Lines(Text(out, artefacts)) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 && !strings.Contains(line, artefacts) {
			t.Errorf("a line of %d characters: %s", n, line)
		}
	}
}

func TestSARIFFingerprintsAreClaimAndAnomaly(t *testing.T) {
	fingerprints := func(script string) string {
		out, _ := carryOut(t, oneTest, script)
		raw, err := SARIF(out, "1")
		if err != nil {
			t.Fatal(err)
		}
		followsSchema(t, raw)
		var all []string
		for _, r := range readSARIF(t, raw).Results {
			all = append(all, fmt.Sprint(r.PartialFingerprints, " ", r.Level))
		}
		return strings.Join(all, ", ")
	}
	for script, want := range map[string]string{
		"violated":      "map[ackproof/v1:no-loss/lost-acked] error",
		"held violated": "map[ackproof/v1:no-loss/lost-acked] error",
		"undecided":     "map[ackproof/v1:no-loss/undecided] warning",
		"held":          "",
	} {
		if got := fingerprints(script); got != want {
			t.Errorf("%s: %q, expected %q", script, got, want)
		}
	}
}

// thousand is an outcome with a thousand violations of one claim each.
func thousand() *Outcome {
	o := &Outcome{Version: 1, File: "gate.yaml", Status: Failed, Exit: 1}
	for i := range 1000 {
		v := Violation{Anomaly: model.LostAcked, Count: 1, Seed: int64(i), Proof: strings.Repeat("a long proof <&|> ", 200), Certificate: "c.json", Replay: "ackproof test --replay x"}
		c := ClaimOutcome{ID: model.NoLoss, Status: Failed, Verdict: model.Violated, Tested: 1, Violated: 1, Violations: []Violation{v}}
		o.Tests = append(o.Tests, TestOutcome{Name: fmt.Sprint("t", i), Line: i + 1, Expect: ExpectHeld, Status: Failed, Reason: "no-loss is violated", Claims: []ClaimOutcome{c}, Tested: 1, Violated: 1})
	}
	return o
}

func TestLimitsHoldWithAThousandViolations(t *testing.T) {
	o := thousand()
	summary := Summary(o, MaxSummary)
	if len(summary) > MaxSummary || len(summary) < MaxSummary/2 || !strings.Contains(string(summary), "more entries have no room here") {
		t.Errorf("the summary has %d bytes, expected close to and at most %d, and a count of the rest", len(summary), MaxSummary)
	}
	if small := Summary(o, 5000); len(small) > 5000 || !strings.Contains(string(small), "FAILED") {
		t.Errorf("a summary of %d bytes within 5000", len(small))
	}
	lines := Annotations(o)
	if len(lines) != maxAnnotations || !strings.Contains(lines[9], "991 more") || !strings.Contains(lines[0], "line=1,") {
		t.Errorf("%d annotations, the last: %s", len(lines), lines[len(lines)-1])
	}
	raw, err := SARIF(o, "1")
	if err != nil || len(readSARIF(t, raw).Results) != 1000 {
		t.Errorf("SARIF: %v", err)
	}
	raw, err = JUnit(o)
	if err != nil || len(readJUnit(t, raw).Suites) != 1000 {
		t.Errorf("JUnit: %v", err)
	}
}

// The step may have written to its summary before; together they keep to the limit.
func TestTheSummaryOfAStepIsAddedTo(t *testing.T) {
	o := thousand()
	path := write(t, strings.Repeat("x", MaxSummary-10_000))
	if err := o.Save(t.TempDir(), Outputs{Summary: path}, "1"); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil || len(raw) > MaxSummary || !strings.HasPrefix(string(raw), "xxx") || !strings.Contains(string(raw), "## ackproof: FAILED") {
		t.Errorf("%d bytes (%v)", len(raw), err)
	}
}

// A form that cannot be made, or a file that cannot be written, must not take the answer with it.
func TestTheOutcomeOutlivesItsForms(t *testing.T) {
	if _, err := made(func() ([]byte, error) { panic("boom") }); err == nil || !strings.Contains(err.Error(), "a bug of ackproof: boom") {
		t.Errorf("error %v", err)
	}
	dir := t.TempDir()
	err := thousand().Save(dir, Outputs{JUnit: "/nonexistent/j.xml", SARIF: filepath.Join(dir, "s.sarif")}, "1")
	if err == nil || !strings.Contains(err.Error(), "/nonexistent/j.xml") {
		t.Errorf("error %v", err)
	}
	for _, name := range []string{"s.sarif", sarifFile, junitFile, jsonFile, summaryFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}
