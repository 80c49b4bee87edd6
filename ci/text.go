package ci

import (
	"fmt"
	"strings"

	"ackproof/report"
)

// Text is the outcome for a terminal or a log: a line per test, each violation with its proof, what failed besides, and where everything is.
func Text(o *Outcome, artefacts string) string {
	var out strings.Builder
	line := func(head, text string) { out.WriteString(report.Wrap(head, text)) }
	out.WriteString("\n")
	for _, t := range o.Tests {
		word := string(t.Status)
		if t.Status == Failed {
			word = "FAILED"
		}
		line(fmt.Sprintf("%-13s ", word), t.Name+": "+confidence(t))
		if t.Expect == ExpectViolated && t.Status == Passed {
			line("              ", "a violation was expected, and found")
		}
		for _, c := range t.Claims {
			if (c.Status != Failed && c.Status != Quarantined) || t.Expect == ExpectViolated {
				continue
			}
			for _, v := range c.Violations {
				for part := range strings.Lines(v.text(t.Name, c.ID)) {
					line("              ", part)
				}
			}
		}
		if t.Status.severity() > 0 && !t.told() {
			line("              ", t.Reason)
		}
		for _, c := range t.Claims {
			for _, p := range c.Permitted {
				line("              ", fmt.Sprintf("permitted: %s × %d, because of %s (under %s)", p.Kind, p.Count, p.Because, c.ID))
			}
		}
		if len(t.Coverage) > 0 {
			line("              ", "hit by "+covered(t.Coverage))
		}
	}
	for _, q := range o.Quarantine {
		head := "quarantine    "
		if q.Expired {
			head = "EXPIRED       "
		}
		line(head, q.state()+": "+q.entry())
	}
	out.WriteString("\n")
	line("artefacts     ", artefacts)
	line("exit          ", fmt.Sprintf("%d: %s", o.Exit, o.meaning()))
	return out.String()
}

// meaning of the exit code, for the last line.
func (o *Outcome) meaning() string {
	if o.Exit == Failed.exit() {
		return "a claim is violated, or something else than the gate file expects"
	}
	if o.Exit == Passed.exit() {
		return "everything as expected"
	}
	return report.Meaning(o.Exit)
}

// covered lists the faults that had an effect, by kind and role, with the number that hit a system in calm, while recovering, and during another fault.
func covered(all []Cover) string {
	var parts []string
	for _, c := range all {
		hits := c.Effective[Calm] + c.Effective[Recovering] + c.Effective[Overlap]
		if hits == 0 {
			continue
		}
		what := c.Kind
		if c.Role != "" {
			what += " " + c.Role
		}
		parts = append(parts, fmt.Sprintf("%s × %d", what, hits))
	}
	if len(parts) == 0 {
		return "no fault that had an effect"
	}
	sums := map[Moment]int{}
	for _, c := range all {
		for m, n := range c.Effective {
			sums[m] += n
		}
	}
	return fmt.Sprintf("%s; %d in calm, %d while recovering, %d during another fault", strings.Join(parts, ", "), sums[Calm], sums[Recovering], sums[Overlap])
}
