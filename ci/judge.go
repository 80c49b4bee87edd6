package ci

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ackproof/model"
)

// judge compares what the runs of a test found with what was expected.
func judge(t Test, runs []RunOutcome, quarantine []Quarantine, now time.Time) TestOutcome {
	out := TestOutcome{Name: t.Name, Line: t.Line, Expect: t.Expect, Status: Passed, Runs: runs, Claims: []ClaimOutcome{}, Coverage: []Cover{}}
	var all []model.Results
	for _, r := range runs {
		if r.Exit == model.ExitViolated {
			out.Violated++
		}
		if r.results == nil {
			continue
		}
		all = append(all, *r.results)
		out.Tested++
		out.gather(r)
	}
	out.Coverage = append(out.Coverage, coverage(all)...)
	if t.Expect == ExpectViolated {
		out.judgeTries()
		return out
	}
	out.judgeRuns()
	for i := range out.Claims {
		c := &out.Claims[i]
		c.judge(t, quarantine, now)
		switch c.Status {
		case Failed:
			out.note(Failed, fmt.Sprintf("%s is violated", c.ID))
		case Unproven, Crashed:
			out.note(c.Status, fmt.Sprintf("%s is %s: %s", c.ID, c.Verdict, c.Reason))
		}
	}
	out.judgePermitted(t)
	shown := slices.ContainsFunc(out.Claims, func(c ClaimOutcome) bool { return c.Status == Passed || c.Verdict == model.Violated })
	if out.Tested > 0 && !shown {
		out.note(Unproven, "no claim at all was put to the test")
	}
	if out.Violated == 0 && out.Tested > 0 {
		out.Bound = Bound(out.Tested)
	}
	return out
}

// note keeps the worst status, with the first reason for it.
func (t *TestOutcome) note(s Status, reason string) {
	if s.severity() > t.Status.severity() {
		t.Status, t.Reason = s, reason
	}
}

// judgeRuns notes runs without a result. A run that was not carried out after a violation was found is nothing to note.
func (t *TestOutcome) judgeRuns() {
	for _, r := range t.Runs {
		if r.Status != Passed && r.Status != Skipped {
			t.note(r.Status, fmt.Sprintf("seed %d: %s", r.Seed, r.Reason))
		}
	}
}

// judgeTries is for a violation that is expected.
func (t *TestOutcome) judgeTries() {
	for i := range t.Claims {
		t.Claims[i].Status = Skipped
		if t.Claims[i].Verdict == model.Violated {
			t.Claims[i].Status = Passed
		}
	}
	if t.Violated > 0 {
		return
	}
	t.judgeRuns()
	if t.Status == Passed {
		t.note(Failed, fmt.Sprintf("a violation was expected, and none of %d runs found one", t.Tested))
	}
}

// gather adds the results of a run to the claims.
func (t *TestOutcome) gather(r RunOutcome) {
	for _, found := range r.results.Claims {
		i := slices.IndexFunc(t.Claims, func(c ClaimOutcome) bool { return c.ID == found.ID })
		if i < 0 {
			t.Claims = append(t.Claims, ClaimOutcome{ID: found.ID, Verdict: model.NotTested, Evidence: map[string]int64{}, Violations: []Violation{}, Permitted: []model.PermittedLoss{}})
			i = len(t.Claims) - 1
		}
		t.Claims[i].add(r, found)
	}
}

func (c *ClaimOutcome) add(r RunOutcome, found model.ClaimResult) {
	switch found.Verdict {
	case model.Held:
		c.Tested++
	case model.Violated:
		c.Tested++
		c.Violated++
	}
	switch {
	case c.Verdict == model.NotTested && found.Verdict == model.Held: // one run has shown it
		c.Verdict = model.Held
	case c.Verdict == model.Held && found.Verdict == model.NotTested:
	default:
		c.Verdict = model.Worst(c.Verdict, found.Verdict)
	}
	if found.Verdict == c.Verdict && found.Reason != "" {
		c.Reason = found.Reason
	} else if c.Verdict == model.Held || c.Verdict == model.Violated {
		c.Reason = ""
	}
	for name, n := range found.Evidence {
		if strings.HasSuffix(name, "_ms") { // a time, of which the longest counts
			c.Evidence[name] = max(c.Evidence[name], n)
		} else {
			c.Evidence[name] += n
		}
	}
	for _, p := range found.Permitted {
		i := slices.IndexFunc(c.Permitted, func(o model.PermittedLoss) bool { return o.Kind == p.Kind && o.Because == p.Because })
		if i < 0 {
			c.Permitted = append(c.Permitted, p)
		} else {
			c.Permitted[i].Count += p.Count
		}
	}
	if found.Verdict != model.Violated {
		return
	}
	for _, a := range found.Anomalies {
		v := Violation{Anomaly: a.Kind, Count: a.Count, Seed: r.Seed, Replay: r.Replay}
		if a.Certificate != "" && r.Dir != "" {
			v.Certificate = filepath.Join(r.Dir, filepath.FromSlash(a.Certificate))
			v.Proof = sentence(v.Certificate)
		}
		c.Violations = append(c.Violations, v)
	}
}

// sentence reads what a certificate says, "" if it cannot be read: the violation stands without it.
func sentence(path string) string {
	raw, err := os.ReadFile(path)
	var c model.Certificate
	if err != nil || json.Unmarshal(raw, &c) != nil {
		return ""
	}
	return c.Sentence
}

// judge gives the claim its status.
func (c *ClaimOutcome) judge(t Test, quarantine []Quarantine, now time.Time) {
	switch c.Verdict {
	case model.Held:
		c.Status, c.Bound = Passed, Bound(c.Tested)
	case model.Violated:
		c.Status = Failed
		known := len(c.Violations) > 0
		for i := range c.Violations {
			v := &c.Violations[i]
			for _, q := range quarantine {
				if q.excuses(t.Name, c.ID, v.Anomaly) && !q.Expired(now) {
					v.Quarantine = q.Issue
				}
			}
			known = known && v.Quarantine != ""
		}
		if known {
			c.Status = Quarantined
		}
	case model.Undecided, model.NotTested:
		c.Status = Unproven
		if c.Verdict == model.Undecided && t.Undecided == Skip || c.Verdict == model.NotTested && t.NotTested == Skip {
			c.Status = Skipped
		}
	default:
		c.Status = Crashed // a verdict that nobody knows
	}
}

// judgePermitted compares the permitted losses of each run with what is expected.
func (t *TestOutcome) judgePermitted(want Test) {
	if want.Permitted == nil {
		return
	}
	for _, r := range t.Runs {
		if r.results == nil {
			continue
		}
		counts := map[model.Anomaly]int64{}
		for a := range want.Permitted {
			counts[a] = 0
		}
		for _, c := range r.results.Claims {
			for _, p := range c.Permitted {
				counts[p.Kind] += p.Count
			}
		}
		var wrong []string
		for a, n := range counts {
			if between := want.Permitted[a]; n < between.Min || n > between.Max {
				wrong = append(wrong, fmt.Sprintf("%s × %d, expected %s", a, n, between))
			}
		}
		if len(wrong) > 0 {
			slices.Sort(wrong)
			t.note(Failed, fmt.Sprintf("seed %d: permitted loss that is not as expected: %s", r.Seed, strings.Join(wrong, "; ")))
		}
	}
}

func (r Range) String() string {
	switch {
	case r.Max == 0:
		return "none"
	case r.Max == unbounded:
		return fmt.Sprintf("at least %d", r.Min)
	case r.Min == 0:
		return fmt.Sprintf("at most %d", r.Max)
	}
	return fmt.Sprintf("%d to %d", r.Min, r.Max)
}
