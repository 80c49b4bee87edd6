package ci

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ackproof/model"
)

const oneTest = "version: 1\nbudget: 5m\ntests:\n  - name: a\n    seeds: [1, 2]\n"

// What becomes of a gate, by what its runs do.
func TestOutcomes(t *testing.T) {
	tomorrow, yesterday := time.Now().UTC().AddDate(0, 0, 1).Format(time.DateOnly), time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly)
	quarantine := func(claim, anomaly, until string) string {
		return "quarantine:\n  - {test: a, claim: " + claim + ", " + anomaly + "issue: https://example.org/7, owner: ann, expires: " + until + "}\n"
	}
	for _, c := range []struct {
		name, gate, script string
		status             Status
		exit               int
		runs               int    // carried out
		reason             string // in that of the first test
	}{
		{"all held", oneTest, "held held", Passed, 0, 2, ""},
		{"a violation ends the test", oneTest, "violated held", Failed, 1, 1, "no-loss is violated"},
		{"a later violation counts", oneTest, "held violated", Failed, 1, 2, "no-loss is violated"},
		{"a violation is not tried again", oneTest, "violated held held", Failed, 1, 1, "no-loss is violated"},
		{"undecided", oneTest, "held undecided", Unproven, 2, 2, "no-loss is undecided"},
		{"undecided, allowed", oneTest + "    undecided: skip\n", "held undecided", Passed, 0, 2, ""},
		{"not tested in one run", oneTest, "held half-tested", Passed, 0, 2, ""},
		{"not tested in any run", oneTest, "half-tested", Unproven, 2, 2, "no-loss is not-tested"},
		{"not tested, allowed", oneTest + "    not-tested: skip\n", "half-tested", Passed, 0, 2, ""},
		{"nothing tested at all, though allowed", oneTest + "    not-tested: skip\n", "not-tested", Unproven, 2, 2, "no claim at all"},
		{"could not run, once", oneTest, "no-port held held", Passed, 0, 2, ""},
		{"could not run, twice", oneTest, "no-port no-port held", CouldNotRun, 3, 2, "seed 1: start the system: no port"},
		{"could not run, and no retry", oneTest + "    retries: 0\n", "no-port held", CouldNotRun, 3, 2, "no port"},
		{"a crash", oneTest, "panic held", Crashed, 255, 2, "this is a bug of ackproof: boom"},
		{"a crash is not tried again", oneTest, "panic", Crashed, 255, 2, "seed 1: exit code 255"},
		{"shot from outside", oneTest, "shot held", Crashed, 255, 2, "signal: killed"},
		{"a violation outranks a crash", oneTest, "panic violated", Failed, 1, 2, "no-loss is violated"},
		{"no results", oneTest, "mute held", Crashed, 255, 2, "there are no results"},
		{"results that contradict the exit code", oneTest, "liar held", Crashed, 255, 2, "exit code 1, seed 1, expected version 1, exit code 0"},
		{"a violation without results stands", oneTest, "violated-and-mute held", Failed, 1, 1, "seed 1: exit code 1, but there are no results"},
		{"a violation that is expected", oneTest + "    expect: violated\n", "violated held", Passed, 0, 1, ""},
		{"at the second try", oneTest + "    expect: violated\n", "held violated", Passed, 0, 2, ""},
		{"expected and not found", oneTest + "    expect: violated\n", "held held", Failed, 1, 2, "none of 2 runs found one"},
		{"expected, and undecided", oneTest + "    expect: violated\n", "undecided held", Failed, 1, 2, "none of 2 runs found one"},
		{"expected, and could not run", oneTest + "    expect: violated\n    retries: 0\n", "held no-port", CouldNotRun, 3, 2, "no port"},
		{"in quarantine", oneTest + quarantine("no-loss", "", tomorrow), "violated held", Passed, 0, 2, ""},
		{"in quarantine, by anomaly", oneTest + quarantine("no-loss", "anomaly: lost-acked, ", tomorrow), "violated held", Passed, 0, 2, ""},
		{"another anomaly in quarantine", oneTest + quarantine("no-loss", "anomaly: phantom, ", tomorrow), "violated held", Failed, 1, 1, "no-loss is violated"},
		{"another claim in quarantine", oneTest + quarantine("order", "", tomorrow), "violated held", Failed, 1, 1, "no-loss is violated"},
		{"the quarantine's last day is over", oneTest + quarantine("no-loss", "", yesterday), "violated held", Failed, 1, 1, "no-loss is violated"},
		{"an expired quarantine fails by itself", oneTest + quarantine("no-loss", "", yesterday), "held held", Failed, 1, 2, ""},
		{"permitted loss as expected", oneTest + "    acks: 1\n    permitted: {lost-acked: 12}\n", "loses held", Passed, 0, 2, ""},
		{"more permitted loss than expected", oneTest + "    acks: 1\n    permitted: {lost-acked: 11}\n", "loses held", Failed, 1, 2, "seed 1: permitted loss that is not as expected: lost-acked × 12, expected at most 11"},
		{"less permitted loss than expected", oneTest + "    acks: 1\n    permitted: {lost-acked: {min: 1}}\n", "loses held", Failed, 1, 2, "seed 2: permitted loss that is not as expected: lost-acked × 0, expected at least 1"},
		{"permitted loss where none is expected", oneTest + "    permitted: {}\n", "loses held", Failed, 1, 2, "lost-acked × 12, expected none"},
		{"permitted loss of which the file says nothing", oneTest, "loses held", Passed, 0, 2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, artefacts := carryOut(t, c.gate, c.script)
			first := out.Tests[0]
			runs := 0
			for _, r := range first.Runs {
				if r.Tries > 0 {
					runs++
				}
			}
			if out.Status != c.status || out.Exit != c.exit || runs != c.runs || !strings.Contains(first.Reason, c.reason) || c.reason == "" && first.Reason != "" {
				t.Errorf("%s, exit %d, %d runs, %q; expected %s, exit %d, %d runs, %q", out.Status, out.Exit, runs, first.Reason, c.status, c.exit, c.runs, c.reason)
			}
			if err := out.Save(artefacts, Outputs{}, "1"); err != nil {
				t.Error(err)
			}
			checkForms(t, artefacts)
		})
	}
}

func TestEvidenceOfSeveralRuns(t *testing.T) {
	out, _ := carryOut(t, oneTest, "held half-tested")
	loss, order := out.Tests[0].Claims[0], out.Tests[0].Claims[1]
	if loss.Tested != 1 || order.Tested != 2 || order.Evidence["records"] != 2000 || order.Evidence["took_ms"] != 20 || order.Bound != Bound(2) || out.Tests[0].Bound != Bound(2) {
		t.Errorf("%+v\n%+v", loss, order)
	}
}

func TestOneCertificateStopsTheGateUnlessItIsToGoOn(t *testing.T) {
	const gate = "version: 1\nbudget: 5m\ntests:\n  - {name: a, seeds: [1, 2]}\n  - {name: b, seeds: [1]}\n"
	out, _ := carryOut(t, gate, "violated held")
	if b := out.Tests[1]; b.Status != NotRun || b.Runs[0].Tries != 0 || out.Exit != 1 {
		t.Errorf("b: %+v, exit %d", b, out.Exit)
	}
	t.Setenv(scriptVariable, "violated held held")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err = Runner{Gate: load(t, gate), Binary: self, Artefacts: t.TempDir(), KeepGoing: true, Observer: &silent{}}.Run(t.Context())
	if err != nil || out.Exit != 1 || out.Tests[0].Tested != 2 || out.Tests[1].Status != Passed {
		t.Errorf("%+v (%v)", out, err)
	}
}

// A run that hangs is ended when the time is over; the tests after it keep their room.
func TestBudgets(t *testing.T) {
	out, _ := carryOut(t, "version: 1\nbudget: 60s\ntests:\n  - {name: a, seeds: [1, 2], budget: 300ms}\n  - {name: b, seeds: [1]}\n", "hang held")
	a, b := out.Tests[0], out.Tests[1]
	if a.Status != Unproven || !strings.Contains(a.Runs[0].Reason, "its time was over") || a.Runs[1].Tries != 0 || !strings.Contains(a.Runs[1].Reason, "of the budget were left") {
		t.Errorf("a: %+v", a)
	}
	if b.Status != Passed || out.Exit != 2 {
		t.Errorf("b: %+v, exit %d", b, out.Exit)
	}
}

// Without a budget of its own a test has its share of the whole, so that one that hangs leaves room for the next.
func TestShares(t *testing.T) {
	out, _ := carryOut(t, "version: 1\nbudget: 6s\ntests:\n  - {name: a, seeds: [1]}\n  - {name: b, seeds: [1], time: 1s}\n", "hang held")
	if a, b := out.Tests[0], out.Tests[1]; !strings.Contains(a.Reason, "its time was over") || b.Status != Passed {
		t.Errorf("a: %+v\nb: %+v", a, b)
	}
	tests := []Test{{Seeds: make([]Seed, 2), Load: 12 * time.Second}, {Seeds: make([]Seed, 1), Load: 32 * time.Second}}
	if got := share(100*time.Second, tests); got != 50*time.Second {
		t.Errorf("%v of 100 s for two runs of 20 s before one of 40 s, expected half", got)
	}
	if got := share(100*time.Second, tests[1:]); got != 100*time.Second {
		t.Errorf("%v of 100 s for the last test, expected all", got)
	}
}

func TestAViolationFoundWhenTheTimeIsOverCounts(t *testing.T) {
	out, _ := carryOut(t, "version: 1\nbudget: 60s\ntests:\n  - {name: a, seeds: [1], budget: 3s}\n", "violated-at-the-end")
	if out.Exit != 1 || out.Tests[0].Claims[0].Status != Failed {
		t.Errorf("%+v", out)
	}
}

func TestAProgramThatIsNotThere(t *testing.T) {
	out, err := Runner{Gate: load(t, oneTest), Binary: filepath.Join(t.TempDir(), "none"), Artefacts: t.TempDir(), Observer: &silent{}}.Run(t.Context())
	if err != nil || out.Exit != model.ExitInfrastructure || !strings.Contains(out.Tests[0].Reason, "start ") {
		t.Errorf("%+v (%v)", out, err)
	}
}

func TestNoPlaceForArtefacts(t *testing.T) {
	_, err := Runner{Gate: load(t, oneTest), Artefacts: write(t, "in the way"), Observer: &silent{}}.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "artefact folder") {
		t.Errorf("error %v", err)
	}
}

func TestExitCodesOutrankOneAnother(t *testing.T) {
	order := []int{0, 2, 3, 255, 1}
	for i, low := range order {
		for _, high := range order[i:] {
			if WorseExit(low, high) != high || WorseExit(high, low) != high {
				t.Errorf("%d against %d: %d and %d, expected %d", low, high, WorseExit(low, high), WorseExit(high, low), high)
			}
		}
	}
}

// The figures that everybody quotes, and the law by which they are made: (1 − p)^n = 0.05.
func TestBound(t *testing.T) {
	for n, want := range map[int]string{0: "100.0 %", 1: "95.0 %", 20: "14.0 %", 59: "5.0 %", 299: "1.0 %", 2995: "0.1 %"} {
		if n > 0 && math.Abs(math.Pow(1-Bound(n), float64(n))-0.05) > 1e-9 {
			t.Errorf("n = %d: (1 − %v)^n is not 0.05", n, Bound(n))
		}
		if got := percent(Bound(n)); got != want {
			t.Errorf("n = %d: %s, expected %s", n, got, want)
		}
	}
}

func TestCoverage(t *testing.T) {
	r := results("", "held")
	got := coverage([]model.Results{r, r})
	want := map[string]Cover{
		"kill leader":          {Planned: 4, Effective: map[Moment]int{Calm: 2, Recovering: 2}},
		"pause followers":      {Planned: 2, Effective: map[Moment]int{Overlap: 2}},
		"partition controller": {Planned: 4, Effective: map[Moment]int{Calm: 2}},
	}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for _, c := range got {
		w := want[c.Kind+" "+c.Role]
		for _, m := range Moments() {
			if c.Planned != w.Planned || c.Effective[m] != w.Effective[m] {
				t.Errorf("%+v, expected %+v", c, w)
			}
		}
	}
}
