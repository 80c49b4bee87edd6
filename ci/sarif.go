package ci

import (
	"bytes"
	"fmt"
	"path/filepath"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"ackproof/model"
	"ackproof/report"
)

// maxSARIF is how many results GitHub shows of one upload.
const maxSARIF = 5000

// SARIF is the outcome as SARIF 2.1.0: a rule is a claim, a result a kind of anomaly that broke it in a test, its place the test in the gate file. The fingerprint is
// claim and anomaly, so that a server takes the same violation with another seed for the same. Quarantined violations are suppressed, answers that are neither held nor
// violated are warnings. Worst first.
func SARIF(o *Outcome, version string) ([]byte, error) {
	driver := sarif.NewToolComponent().WithName("ackproof")
	if version != "unknown" {
		driver.WithVersion(version)
	}
	run := sarif.NewRun().WithTool(sarif.NewTool().WithDriver(driver))
	file := filepath.ToSlash(o.File)
	add := func(claim model.Claim, line int, level, fingerprint, text string) *sarif.Result {
		if run.GetRuleIndex(string(claim)) < 0 {
			say := sarif.NewMultiformatMessageString // GitHub refuses rules without all three
			run.AddRule(string(claim)).WithShortDescription(say().WithText(report.Plain(claim))).
				WithFullDescription(say().WithText("Promised by the configuration under test: " + report.Plain(claim) + ".")).
				WithHelp(say().WithText("Repeat the run with the command in the message, judge the certificate by itself with `ackproof verify`, and look at the run directory."))
		}
		at := sarif.NewPhysicalLocation().WithArtifactLocation(sarif.NewSimpleArtifactLocation(file)).WithRegion(sarif.NewSimpleRegion(line, line))
		r := run.CreateResultForRule(string(claim)).WithLevel(level).WithMessage(sarif.NewTextMessage(text))
		r.AddLocation(sarif.NewLocationWithPhysicalLocation(at)).WithPartialFingerprints(map[string]string{"ackproof/v1": fingerprint})
		return r
	}
	for _, pass := range []Status{Failed, Quarantined, Unproven} {
		for _, t := range o.Tests {
			for _, c := range t.Claims {
				if c.Status != pass || t.Expect == ExpectViolated || len(run.Results) >= maxSARIF {
					continue
				}
				seen := map[model.Anomaly]bool{}
				for _, v := range c.Violations {
					if seen[v.Anomaly] {
						continue
					}
					seen[v.Anomaly] = true
					r := add(c.ID, t.Line, "error", fmt.Sprintf("%s/%s", c.ID, v.Anomaly), v.text(t.Name, c.ID))
					if v.Quarantine != "" {
						r.AddSuppression(sarif.NewSuppression().WithKind("external").WithStatus("accepted").WithJustification(report.Visible(v.Quarantine)))
					}
				}
				if pass == Unproven {
					text := fmt.Sprintf("%s (%s) is %s in test %s: %s", c.ID, report.Plain(c.ID), c.Verdict, t.Name, c.Reason)
					add(c.ID, t.Line, "warning", fmt.Sprintf("%s/%s", c.ID, c.Verdict), report.Visible(text))
				}
			}
		}
	}
	all := sarif.NewReport().AddRun(run)
	var out bytes.Buffer
	if err := all.PrettyWrite(&out); err != nil {
		return nil, fmt.Errorf("write SARIF: %w", err)
	}
	return out.Bytes(), nil
}
