package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ackproof/broker/fault"
	"ackproof/model"
)

func TestSenselessTestsAreRefusedBeforeAnythingStarts(t *testing.T) {
	schedule := filepath.Join(t.TempDir(), "s.json")
	if err := os.WriteFile(schedule, []byte(`{"version":1,"seed":1,"faults":[{"kind":"fire"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args     string
		expected string // in the one line on stderr
	}{
		{"--min-insync 4", "1 to the replication factor 3"},
		{"--min-insync 0", "1 to the replication factor 3"},
		{"--replication 4", "at most one copy per node"},
		{"--replication 1", "2 or more"},
		{"--nodes 0", "1 to"},
		{"--nodes two", "--nodes"},
		{"--partitions 0", "1 to"},
		{"--clients 0", "1 to"},
		{"--acks 2", "0, 1 or all"},
		{"--acks 1 --idempotent", "--acks all"},
		{"--flush never", "interval or batch"},
		{"--time 10", "--time"},
		{"--time 0s", "1s to"},
		{"--rate -1", "0 (as fast"},
		{"--nemesis fire", "kill, pause, partition"},
		{"--nemesis=", "none or a list"},
		{"--claims no-losses", "no-loss"},
		{"--claims=", "all or a list"},
		{"--system kafkaesque", "reference"},
		{"--workload queue", "log"},
		{"--workload group --commit never", "after or before"},
		{"--workload group --acks 1", "--acks all"},
		{"--commit before", "--workload group"},
		{"--plant B99", "B01 ack-before-isr"},
		{"--plant B01", "-tags failpoints"},
		{"--schedule /nonexistent", "/nonexistent"},
		{"--schedule " + schedule, "faults[0].kind"},
		{"--replay " + t.TempDir(), "directory of a run"},
		{"--replay x --nodes 5", "none of the test's own flags"},
		{"--system kafka --setting timers=slow", "fast, mid or default"},
		{"--system kafka --setting timers", "name=value"},
		{"--system kafka --setting colour=red", "one of: version"},
		{"--system kafka --kafka-version 0.8.0", "4.4.0"},
		{"--system kafka --path=", "--path is empty"},
		{"--system kafka --bootstrap nowhere", "host:port"},
		{"--system kafka --bootstrap 127.0.0.1:1 --nemesis kill", "partition or none"},
		{"--system kafka --bootstrap 127.0.0.1:1 --backend sandbox", "expected proxies"},
		{"--system kafka --bootstrap 127.0.0.1:1 --kafka-version 4.4.0", "expected it alone"},
		{"--setting timers=mid", "it has none"},
		{"--fast", "--fast"},
		{"extra", "extra"},
	} {
		if c.args == "--plant B01" && planted {
			continue
		}
		store := filepath.Join(t.TempDir(), "store")
		args := append([]string{"test"}, strings.Fields(c.args)...)
		if !strings.Contains(c.args, "--store") {
			args = append(args, "--store", store)
		}
		code, stdout, stderr := outcome(t, command(t, args...))
		if code != 254 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, c.expected) {
			t.Errorf("ackproof test %s: exit %d, stdout %q, stderr %q; want 254 and one line with %q", c.args, code, stdout, stderr, c.expected)
		}
		if _, err := os.Stat(store); err == nil {
			t.Errorf("ackproof test %s made a store", c.args)
		}
	}
}

// keys are the paths of all object keys in a JSON value; an array has those of all its elements.
func keys(prefix string, v any) []string {
	var out []string
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			out = append(out, prefix+k)
			out = append(out, keys(prefix+k+".", inner)...)
		}
	case []any:
		for _, element := range v {
			out = append(out, keys(prefix, element)...)
		}
	}
	return out
}

// stableKeys are the keys of results.json that scripts depend on, as far as a run without a violation has them.
var stableKeys = strings.Fields(`version seed system system.name system.version workload verdict exit operations operations.ok operations.fail operations.info
	records records.acked records.indeterminate records.read faults faults.kind faults.targets faults.role faults.from_ms faults.to_ms faults.effective faults.proof
	leader_changes unavailable_ms unavailable_ms.max unavailable_ms.p0 claims claims.id claims.verdict claims.reason claims.evidence claims.evidence.acked
	claims.evidence.read_back claims.anomalies claims.permitted second_opinion second_opinion.by second_opinion.windows second_opinion.operations
	second_opinion.agreed drain drain.partitions drain.replicas_read drain.complete seconds seconds.setup seconds.load seconds.heal seconds.drain seconds.check`)

func TestARunIsDecidedReportedAndKept(t *testing.T) {
	store := t.TempDir()
	schedule := filepath.Join(t.TempDir(), "kill.json")
	if err := os.WriteFile(schedule, []byte(`{"version":1,"seed":5,"faults":[{"kind":"kill","start":{"after_ms":300},"for_ms":200,"target":{"role":"node","node":1,"partition":0}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := outcome(t, command(t, "test", "--time", "3s", "--seed", "5", "--rate", "2000", "--partitions", "2", "--clients", "3",
		"--schedule", schedule, "--claims", "no-loss,no-duplicate,liveness", "--store", store, "--json"))
	if code != 0 && code != 2 { // 2: on a slow machine the killed node was back before anybody noticed, and no leader changed
		t.Fatalf("exit %d, expected 0 or 2\n%s", code, stderr)
	}
	if !strings.HasPrefix(stderr, "seed 5 ") {
		t.Errorf("stderr does not begin with the seed: %q", strings.SplitN(stderr, "\n", 2)[0])
	}
	var generic map[string]any
	if err := json.Unmarshal([]byte(stdout), &generic); err != nil {
		t.Fatalf("stdout is not one JSON object: %v\n%s", err, stdout)
	}
	have := keys("", generic)
	for _, k := range stableKeys {
		if !slices.Contains(have, k) {
			t.Errorf("results.json has no %q", k)
		}
	}
	var r model.Results
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	if r.Exit != code || r.Records.Acked < 1000 || len(r.Claims) != 3 || len(r.Faults) != 1 || !r.Drain.Complete || r.Drain.ReplicasRead != 6 || !r.SecondOpinion.Agreed {
		t.Errorf("results: %s", stdout)
	}
	for _, c := range r.Claims {
		if c.Verdict == model.Violated || c.Verdict == model.Undecided {
			t.Errorf("claim %s is %s (%s)", c.ID, c.Verdict, c.Reason)
		}
	}

	latest, err := filepath.EvalSymlinks(filepath.Join(store, "latest"))
	if err != nil {
		t.Fatal(err)
	}
	family, err := filepath.EvalSymlinks(filepath.Join(store, "reference-log", "latest"))
	if err != nil || family != latest {
		t.Errorf("the links differ: %s, %s (%v)", latest, family, err)
	}
	for _, name := range []string{"history.bin", "run.json", "results.json", "nodes/1/log", "nodes/2/log", "nodes/3/log"} {
		if _, err := os.Stat(filepath.Join(latest, name)); err != nil {
			t.Error(err)
		}
	}
	saved, err := os.ReadFile(filepath.Join(latest, "results.json"))
	if err != nil || !bytes.Equal(bytes.TrimSpace(saved), bytes.TrimSpace([]byte(stdout))) {
		t.Errorf("results.json and stdout differ (%v)", err)
	}
	if _, err := os.Stat(filepath.Join(latest, "nodes", "1", "data")); (err == nil) != (code != 0) {
		t.Errorf("data of the nodes kept: %t, expected only of a failed run (exit %d)", err == nil, code)
	}

	// The history alone, with what stands beside it, gives the same verdicts.
	again, stdout, stderr := outcome(t, command(t, "check", filepath.Join(latest, "history.bin"), "--json"))
	var checked model.Results
	if err := json.Unmarshal([]byte(stdout), &checked); err != nil || again != code {
		t.Fatalf("check: exit %d, expected %d (%v)\n%s", again, code, err, stderr)
	}
	if d := cmp.Diff(r.Claims, checked.Claims); d != "" {
		t.Errorf("check judges otherwise than the run (run −, check +):\n%s", d)
	}

	// The same again, from the directory.
	code, stdout, stderr = outcome(t, command(t, "test", "--replay", latest, "--store", store, "--quiet"))
	if code != 0 && code != 2 {
		t.Fatalf("replay: exit %d\n%s", code, stderr)
	}
	if !strings.HasPrefix(stdout, "seed 5 ") || !strings.Contains(stdout, "no-loss") || !strings.Contains(stdout, "kill n1") {
		t.Errorf("the replay reports something else:\n%s", stdout)
	}
	for line := range strings.Lines(stdout) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 && !strings.Contains(line, store) {
			t.Errorf("a line of %d characters, expected at most 80: %s", n, line)
		}
	}
}

// children of a process, by Linux's /proc, which lists them by the thread that made them.
func children(t *testing.T, pid int) []int {
	t.Helper()
	lists, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "children"))
	if err != nil || len(lists) == 0 {
		t.Skip("this system does not tell the children of a process")
	}
	var out []int
	for _, list := range lists {
		raw, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for _, f := range strings.Fields(string(raw)) {
			n, err := strconv.Atoi(f)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, n)
		}
	}
	return out
}

// running starts a test and returns when its load has begun, with the processes of the nodes.
func running(t *testing.T, args ...string) (cmd *exec.Cmd, nodes []int, said func() string) {
	t.Helper()
	store, output := t.TempDir(), filepath.Join(t.TempDir(), "output")
	file, err := os.Create(output)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() // the command has its own
	said = func() string {
		raw, err := os.ReadFile(output)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	cmd = command(t, append([]string{"test", "--store", store, "--partitions", "2", "--clients", "2", "--rate", "500", "--nemesis", "none"}, args...)...)
	cmd.Stdout, cmd.Stderr = file, file
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill() // only if the test failed before the command ended
			_ = cmd.Wait()
		}
	})
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if strings.Contains(said(), "\nload …") {
			return cmd, children(t, cmd.Process.Pid), said
		}
		if time.Now().After(deadline) {
			t.Fatalf("the load did not begin:\n%s", said())
		}
	}
}

func TestAnInterruptedRunLeavesNothingBehind(t *testing.T) {
	cmd, nodes, said := running(t, "--time", "60s")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the code tells
	if code := cmd.ProcessState.ExitCode(); code != 3 || !strings.Contains(said(), "interrupted") {
		t.Errorf("exit %d, expected 3 and the word interrupted\n%s", code, said())
	}
	gone(t, nodes)
}

func TestANodeThatEndsByItselfIsAViolationOfLiveness(t *testing.T) {
	cmd, nodes, said := running(t, "--time", "60s", "--claims", "liveness")
	if len(nodes) != 3 {
		t.Fatalf("child processes %v, expected three nodes", nodes)
	}
	if err := syscall.Kill(nodes[1], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(said(), "ended by itself") {
		t.Errorf("exit %d, expected 1 and a node that ended by itself\n%s", code, said())
	}
	gone(t, nodes)
}

func TestASystemThatDoesNotStartIsAFailureOfTheInfrastructure(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	if err := os.WriteFile(store, []byte("in the way"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := outcome(t, command(t, "test", "--store", store, "--time", "1s"))
	if code != 3 || !strings.Contains(stderr, "run directory") {
		t.Errorf("exit %d, expected 3 and what could not be made\n%s", code, stderr)
	}
}

// The program of the nodes vanishes while the test runs: the killed node cannot be started again. That breaks no promise of the broker.
func TestANodeThatTheMachineCannotStartAgainIsNoViolation(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	own, schedule := filepath.Join(dir, "ackproof"), filepath.Join(dir, "kill.json")
	if err := os.WriteFile(own, program, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(schedule, []byte(`{"version":1,"seed":5,"faults":[{"kind":"kill","start":{"after_ms":3000},"for_ms":200,"target":{"role":"node","node":1,"partition":0}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := command(t, "test", "--store", filepath.Join(dir, "store"), "--partitions", "1", "--clients", "2", "--rate", "500", "--time", "5s", "--schedule", schedule)
	cmd.Path, cmd.Args[0] = own, own
	var said, summary bytes.Buffer
	cmd.Stdout = &summary
	progress, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(progress)
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if lines.Text() == "load …" {
			if err := os.Remove(own); err != nil {
				t.Error(err)
			}
		}
	}
	_ = cmd.Wait() // the code tells
	if code := cmd.ProcessState.ExitCode(); code != 3 || !strings.Contains(said.String(), "the machine could not make the process") {
		t.Errorf("exit %d, expected 3 and why\n%s%s", code, said.String(), summary.String())
	}
}

// planted: this binary can carry planted bugs, hence the flag that plants them is right.
const planted = fault.Built
