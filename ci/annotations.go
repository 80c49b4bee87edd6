package ci

import (
	"fmt"
	"strings"

	"ackproof/model"
	"ackproof/report"
)

// maxAnnotations is how many of each kind GitHub shows of one step.
const maxAnnotations = 10

// Annotations are GitHub's workflow commands, a line each, worst first: one error per violated claim, further errors for what else failed, warnings for what is in
// quarantine or was not shown. No more of a kind than are shown; the last one counts the rest.
func Annotations(o *Outcome) []string {
	var failures, others, warnings []string
	at := func(kind string, line int, title, text string) string {
		return fmt.Sprintf("::%s file=%s,line=%d,title=%s::%s", kind, property(o.File), line, property(title), data(text))
	}
	for _, t := range o.Tests {
		if t.Expect == ExpectHeld {
			for _, c := range t.Claims {
				f, w := c.annotation(t)
				if f != nil {
					failures = append(failures, at("error", t.Line, f[0], f[1]))
				}
				if w != nil {
					warnings = append(warnings, at("warning", t.Line, w[0], w[1]))
				}
			}
		}
		if t.Status.severity() > 0 && t.Status != NotRun && !t.told() {
			others = append(others, at("error", t.Line, fmt.Sprintf("%s: %s", t.Name, t.Status), t.Reason))
		}
	}
	for _, q := range o.Quarantine {
		if q.Expired {
			others = append(others, at("error", q.Line, "the quarantine has expired", q.entry()))
		}
	}
	return append(shown("error", append(failures, others...)), shown("warning", warnings)...)
}

// annotation is the error and the warning of a claim, each as title and text, nil if there is none.
func (c ClaimOutcome) annotation(t TestOutcome) (failure, warning *[2]string) {
	switch {
	case c.Verdict == model.Violated && len(c.Violations) > 0:
		told := &[2]string{c.Violations[0].title(c.ID), c.Violations[0].text(t.Name, c.ID)}
		if c.Status == Quarantined {
			return nil, told
		}
		return told, nil
	case c.Status == Failed:
		return &[2]string{fmt.Sprintf("%s is violated", c.ID), t.Reason}, nil
	case c.Status == Unproven:
		return nil, &[2]string{fmt.Sprintf("%s is %s", c.ID, c.Verdict), fmt.Sprintf("%s in test %s: %s", report.Plain(c.ID), t.Name, c.Reason)}
	}
	return nil, nil
}

func shown(kind string, lines []string) []string {
	if len(lines) <= maxAnnotations {
		return lines
	}
	more := fmt.Sprintf("::%s title=%s::%s", kind, property("more of them"), data(fmt.Sprintf("%d more; the summary and gate.json list them all", len(lines)-maxAnnotations+1)))
	return append(lines[:maxAnnotations-1:maxAnnotations-1], more)
}

// data escapes the text of a workflow command.
func data(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(report.Visible(s))
}

// property escapes the value of a property of a workflow command.
func property(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(data(s))
}
