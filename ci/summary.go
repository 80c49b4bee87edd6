package ci

import (
	"fmt"
	"strings"

	"ackproof/model"
	"ackproof/report"
)

// MaxSummary is how large GitHub lets the summary of one step be, in bytes.
const MaxSummary = 1 << 20

// Summary is the outcome in Markdown, at most limit bytes long: the answer, each violation with its proof, what was not shown, what the runs covered. What has no room is
// counted. Every value from outside is shown as text.
func Summary(o *Outcome, limit int) []byte {
	m := &markdown{limit: limit - 200} // room for the last line
	m.add(fmt.Sprintf("## ackproof: %s\n\n%s, exit code %d: %s. %s, %.0f s.\n", strings.ToUpper(string(o.Status)), code(o.File), o.Exit, report.Meaning(o.Exit), stamp(o.Started), o.Seconds))
	m.add("\n| test | result | runs | confidence |\n| --- | --- | --- | --- |\n")
	for _, t := range o.Tests {
		result := string(t.Status)
		if t.Expect == ExpectViolated {
			result += " (a violation was expected)"
		}
		m.add(fmt.Sprintf("| %s | %s | %d of %d | %s |\n", code(t.Name), result, t.Tested, len(t.Runs), text(confidence(t))))
	}
	for _, t := range o.Tests {
		for _, c := range t.Claims {
			if c.Status == Failed && t.Expect != ExpectViolated {
				for _, v := range c.Violations {
					m.add(v.markdown(t.Name, c.ID))
				}
			}
		}
	}
	m.section("What else failed", func(line func(string)) {
		for _, t := range o.Tests {
			if t.Status.severity() > 0 && t.Status != NotRun && !t.told() {
				line(fmt.Sprintf("%s: %s: %s", code(t.Name), t.Status, text(t.Reason)))
			}
		}
		for _, q := range o.Quarantine {
			if q.Expired {
				line("expired quarantine: " + text(q.entry()))
			}
		}
	})
	m.section("In quarantine", func(line func(string)) {
		for _, q := range o.Quarantine {
			if !q.Expired {
				line(q.state() + ": " + text(q.entry()))
			}
		}
	})
	m.section("Not shown", func(line func(string)) {
		for _, t := range o.Tests {
			for _, c := range t.Claims {
				if (c.Status == Unproven || c.Status == Skipped) && t.Expect != ExpectViolated {
					line(fmt.Sprintf("%s in %s is %s: %s", code(string(c.ID)), code(t.Name), c.Verdict, text(c.Reason)))
				}
			}
			for _, r := range t.Runs {
				if r.results == nil && r.Status != Skipped {
					line(fmt.Sprintf("%s, seed %d: %s", code(t.Name), r.Seed, text(r.Reason)))
				}
			}
		}
	})
	m.section("Losses that the contract permits", func(line func(string)) {
		for _, t := range o.Tests {
			for _, c := range t.Claims {
				for _, p := range c.Permitted {
					line(fmt.Sprintf("%s: %s × %d, because of %s (under %s)", code(t.Name), code(string(p.Kind)), p.Count, text(p.Because), code(string(c.ID))))
				}
			}
		}
	})
	for _, t := range o.Tests {
		m.add(t.claimsTable())
	}
	for _, t := range o.Tests {
		m.add(t.coverageTable())
	}
	return m.bytes()
}

// markdown is a text that does not grow beyond a limit.
type markdown struct {
	out   strings.Builder
	limit int // bytes
	left  int // blocks that had no room
}

func (m *markdown) add(block string) {
	if m.out.Len()+len(block) > m.limit {
		m.left++
		return
	}
	m.out.WriteString(block)
}

// section is a list with a heading, or nothing if it has no lines.
func (m *markdown) section(title string, lines func(line func(string))) {
	first := true
	lines(func(text string) {
		if first {
			text = "\n### " + title + "\n\n- " + text + "\n"
		} else {
			text = "- " + text + "\n"
		}
		first = false
		m.add(text)
	})
}

func (m *markdown) bytes() []byte {
	if m.left > 0 {
		fmt.Fprintf(&m.out, "\n%d more entries have no room here; gate.json in the artefacts has them all.\n", m.left)
	}
	return []byte(m.out.String())
}

// text shows a value in Markdown as it is, on one line.
func text(s string) string {
	return markup.Replace(strings.Join(strings.Fields(report.Visible(s)), " "))
}

// code shows a value in Markdown as code.
func code(s string) string { return "<code>" + text(s) + "</code>" }

// markup writes as entities what HTML or Markdown would read as its own: elements, emphasis, code, links, tables, mentions of people and issues.
var markup = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", `\`, "&#92;", "`", "&#96;", "*", "&#42;", "_", "&#95;", "[", "&#91;", "]", "&#93;",
	"|", "&#124;", "#", "&#35;", "~", "&#126;", "@", "&#64;", "://", "&#58;//", "www.", "www&#46;", "!", "&#33;", "$", "&#36;")

// markdown is a violation as a section of its own.
func (v Violation) markdown(test string, claim model.Claim) string {
	var out strings.Builder
	fmt.Fprintf(&out, "\n### ❌ %s is violated in %s\n\n%s: %s × %d, seed %d.\n", code(string(claim)), code(test), text(report.Plain(claim)), code(string(v.Anomaly)), v.Count, v.Seed)
	if v.Proof != "" {
		fmt.Fprintf(&out, "\n> %s\n", text(v.Proof))
	}
	out.WriteString("\n")
	if v.Certificate != "" {
		fmt.Fprintf(&out, "- proof: %s\n", code(v.Certificate))
	}
	if v.Replay != "" {
		fmt.Fprintf(&out, "- repeat with: %s\n", code(v.Replay))
	}
	if v.Quarantine != "" {
		fmt.Fprintf(&out, "- in quarantine: %s\n", text(v.Quarantine))
	}
	return out.String()
}

// claimsTable lists the claims of a test with their evidence.
func (t TestOutcome) claimsTable() string {
	if len(t.Claims) == 0 {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, "\n<details><summary>Claims of %s</summary>\n\n| claim | verdict | runs that tested it | evidence |\n| --- | --- | --- | --- |\n", code(t.Name))
	for _, c := range t.Claims {
		fmt.Fprintf(&out, "| %s %s | %s | %d | %s |\n", code(string(c.ID)), text(report.Plain(c.ID)), c.Verdict, c.Tested, text(report.Evidence(c.Evidence)))
	}
	out.WriteString("\n</details>\n")
	return out.String()
}

// coverageTable lists the faults by whom they hit and when.
func (t TestOutcome) coverageTable() string {
	if len(t.Coverage) == 0 {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, "\n<details><summary>Faults that hit %s</summary>\n\n| fault | on | in calm | while recovering | during another | no effect |\n| --- | --- | --- | --- | --- | --- |\n", code(t.Name))
	for _, c := range t.Coverage {
		fmt.Fprintf(&out, "| %s | %s | %d | %d | %d | %d |\n", text(c.Kind), text(c.Role), c.Effective[Calm], c.Effective[Recovering], c.Effective[Overlap], c.without())
	}
	out.WriteString("\nRecovering: another fault had ended less than two seconds before.\n\n</details>\n")
	return out.String()
}

// without is how many faults had no effect.
func (c Cover) without() int {
	n := c.Planned
	for _, hit := range c.Effective {
		n -= hit
	}
	return n
}
