package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ackproof/model"
)

func TestARunOfGroupsIsDecidedAndItsHistoryGivesTheSameVerdicts(t *testing.T) {
	store, schedule := t.TempDir(), filepath.Join(t.TempDir(), "kill.json")
	if err := os.WriteFile(schedule, []byte(`{"version":1,"seed":5,"faults":[{"kind":"kill","start":{"after_ms":900},"for_ms":200,"target":{"role":"node","node":1,"partition":0}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := outcome(t, command(t, "test", "--workload", "group", "--commit", "before", "--time", "4s", "--seed", "5", "--rate", "2000", "--partitions", "2", "--clients", "3",
		"--schedule", schedule, "--claims", "no-loss,commit-safety,group-delivery", "--store", store, "--json"))
	if code != 0 && code != 2 { // 2: on a slow machine a group is not shared anew often enough in so short a time
		t.Fatalf("exit %d, expected 0 or 2\n%s", code, stderr)
	}
	var run, checked model.Results
	if err := json.Unmarshal([]byte(stdout), &run); err != nil {
		t.Fatal(err)
	}
	if len(run.Claims) != 3 || run.Workload != "group" {
		t.Fatalf("results: %s", stdout)
	}
	for _, c := range run.Claims {
		if c.Verdict == model.Violated || c.Verdict == model.Undecided {
			t.Errorf("claim %s is %s (%s)", c.ID, c.Verdict, c.Reason)
		}
	}
	if e := run.Claims[2].Evidence; e["assignments"] < 6 || e["delivered"] < 1000 || e["commits"] < 3 {
		t.Errorf("evidence of group-delivery: %v, expected three groups at work", e)
	}
	again, stdout, stderr := outcome(t, command(t, "check", filepath.Join(store, "latest", "history.bin"), "--json"))
	if err := json.Unmarshal([]byte(stdout), &checked); err != nil || again != code {
		t.Fatalf("check: exit %d, expected %d (%v)\n%s", again, code, err, stderr)
	}
	if d := cmp.Diff(run.Claims, checked.Claims); d != "" {
		t.Errorf("check judges otherwise than the run (run −, check +):\n%s", d)
	}
}
