package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ackproof/ci"
)

// gateFile writes a gate file and gives its path and a place for artefacts.
func gateFile(t *testing.T, text string) (path, artefacts string) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, "gate.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, filepath.Join(dir, "artefacts")
}

const (
	gateHead  = "version: 1\nbudget: 2m\ntests:\n"
	shortTest = "  - {name: short, seeds: [5], time: 1s, rate: 500, partitions: 1, clients: 2, nemesis: none, not-tested: skip, undecided: skip}\n"
)

func TestSenselessGatesAreRefusedBeforeAnythingStarts(t *testing.T) {
	for _, c := range []struct{ text, expected string }{
		{gateHead + "  - {name: a, nodes: 0}\n", ":4: test \"a\": --nodes is 0, expected 1 to 15"},
		{gateHead + "  - {name: a, nodes: two}\n", ":4: test \"a\": invalid argument \"two\""},
		{gateHead + "  - {name: a, system: kafkaesque}\n", "--system is \"kafkaesque\""},
		{gateHead + "  - {name: a, claims: [no-losses]}\n", "--claims has \"no-losses\""},
		{gateHead + "  - {name: a, schedule: /nonexistent.json}\n", "/nonexistent.json"},
		{gateHead + "  - {name: a, plant: B99}\n", "B01 ack-before-isr"},
		{gateHead + "  - {name: a, store: elsewhere}\n", "unknown key \"store\""},
		{gateHead + "  - {name: a, replay: store/latest}\n", "unknown key \"replay\""},
		{gateHead + "  - {name: a, permitted: {lost-acked: 1}}\n", "permits: nothing"},
		{gateHead + "  - {name: a, acks: 1, permitted: {phantom: 1}}\n", "permits: duplicate, inconsistent-offset, lost-acked, reordered"},
		{gateHead + "  - {name: a, time: 3m}\n", "the loads of all runs alone take 3m0s"},
	} {
		path, artefacts := gateFile(t, c.text)
		code, stdout, stderr := outcome(t, command(t, "gate", path, "--artefacts", artefacts))
		if code != 254 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, path) || !strings.Contains(stderr, c.expected) {
			t.Errorf("%s: exit %d, stdout %q, stderr %q; want 254 and one line with %q", c.text, code, stdout, stderr, c.expected)
		}
		if _, err := os.Stat(artefacts); err == nil {
			t.Errorf("%s: there are artefacts", c.text)
		}
	}
	for _, args := range [][]string{{"gate", "/nonexistent.yaml"}, {"gate", "a", "b"}, {"gate", "--fast"}} {
		if code, stdout, stderr := outcome(t, command(t, args...)); code != 254 || stdout != "" {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
}

// A whole gate with whole runs: processes that start processes.
func TestAGateRunsTests(t *testing.T) {
	path, artefacts := gateFile(t, gateHead+shortTest)
	dir := filepath.Dir(path)
	step := filepath.Join(dir, "step.md")
	cmd := command(t, "gate", path, "--artefacts", artefacts, "--json", "--junit", filepath.Join(dir, "j.xml"), "--sarif", filepath.Join(dir, "s.sarif"))
	cmd.Env = append(cmd.Env, "GITHUB_STEP_SUMMARY="+step, "GITHUB_ACTIONS=true")
	code, stdout, stderr := outcome(t, cmd)
	// Without a fault hardly any claim is put to the test; one that asks for no fault may be. Both answers are right, and neither is a violation.
	if code != 0 && code != 2 {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	var out ci.Outcome
	if err := json.Unmarshal([]byte(stdout), &out); err != nil || out.Exit != code || out.Tests[0].Tested != 1 || len(out.Tests[0].Claims) < 10 {
		t.Fatalf("outcome (%v): %s", err, stdout)
	}
	run := out.Tests[0].Runs[0]
	if run.Seed != 5 || run.Fresh || run.Tries != 1 || run.Replay != "ackproof test --replay "+run.Dir {
		t.Errorf("run: %+v", run)
	}
	for _, file := range []string{step, filepath.Join(dir, "j.xml"), filepath.Join(dir, "s.sarif"), filepath.Join(artefacts, "gate.json"), filepath.Join(artefacts, "junit.xml"),
		filepath.Join(artefacts, "results.sarif"), filepath.Join(artefacts, "summary.md"), filepath.Join(run.Dir, "results.json"), run.Output} {
		if info, err := os.Stat(file); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
	saved, err := os.ReadFile(filepath.Join(artefacts, "gate.json"))
	if err != nil || string(saved) != stdout {
		t.Errorf("gate.json and stdout differ (%v)", err)
	}
}

func TestAGateThatCannotRun(t *testing.T) {
	path, artefacts := gateFile(t, gateHead+shortTest)
	if err := os.MkdirAll(artefacts, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(artefacts, "runs"), []byte("in the way"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := outcome(t, command(t, "gate", path, "--artefacts", artefacts))
	if flat := strings.Join(strings.Fields(stdout), " "); code != 3 || !strings.Contains(flat, "make the run directory") || !strings.Contains(strings.Join(strings.Fields(stderr), " "), "once more") {
		t.Errorf("exit %d, expected 3, after a second try\n%s%s", code, stdout, stderr)
	}
}

func TestAnExpiredQuarantineFails(t *testing.T) {
	path, artefacts := gateFile(t, gateHead+shortTest+"quarantine:\n  - {test: short, claim: no-loss, issue: https://example.org/7, owner: ann, expires: 2020-01-31}\n")
	code, stdout, stderr := outcome(t, command(t, "gate", path, "--artefacts", artefacts, "--quiet"))
	if flat := strings.Join(strings.Fields(stdout), " "); code != 1 || !strings.Contains(flat, "EXPIRED") || !strings.Contains(flat, "owner ann, until 2020-01-31") || stderr != "" {
		t.Errorf("exit %d, expected 1\n%s%s", code, stdout, stderr)
	}
}

func TestAnInterruptedGateLeavesNothingBehind(t *testing.T) {
	path, artefacts := gateFile(t, gateHead+"  - {name: long, time: 60s, nemesis: none, seeds: [1]}\n")
	cmd := command(t, "gate", path, "--artefacts", artefacts)
	var answer bytes.Buffer
	cmd.Stdout = &answer
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill() // only if the test failed before the command ended
			_ = cmd.Wait()
		}
	})
	said := filepath.Join(artefacts, "output", "long-1.1.txt")
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if raw, _ := os.ReadFile(said); strings.Contains(string(raw), "\nload …") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the load did not begin")
		}
	}
	runs := children(t, cmd.Process.Pid)
	if len(runs) != 1 {
		t.Fatalf("processes %v, expected one run", runs)
	}
	nodes := children(t, runs[0])
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the code tells
	if code := cmd.ProcessState.ExitCode(); code != 3 || !strings.Contains(answer.String(), "the gate was interrupted") {
		t.Errorf("exit %d, expected 3 and that the gate was interrupted\n%s", code, answer.String())
	}
	gone(t, append(runs, nodes...))
}
