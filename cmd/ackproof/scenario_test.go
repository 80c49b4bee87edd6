package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"ackproof/harness/scenario"
)

func TestScenariosAreListedAndShown(t *testing.T) {
	code, stdout, stderr := outcome(t, command(t, "scenario", "list", "--json"))
	var listed struct {
		Scenarios []cardJSON `json:"scenarios"`
	}
	if err := json.Unmarshal([]byte(stdout), &listed); code != 0 || err != nil || len(listed.Scenarios) != len(scenario.Cards()) {
		t.Fatalf("exit %d, %d scenarios, %v; stderr %q", code, len(listed.Scenarios), err, stderr)
	}
	if _, text, _ := outcome(t, command(t, "scenario", "list")); strings.Count(text, "\n") != len(listed.Scenarios)+1 {
		t.Errorf("the list is\n%s\nwant a head and a line for each scenario", text)
	}
	for _, c := range listed.Scenarios {
		code, stdout, _ := outcome(t, command(t, "scenario", "show", c.Name))
		if code != 0 || !strings.Contains(stdout, c.Question) || !strings.Contains(stdout, c.Allows) {
			t.Errorf("scenario show %s: exit %d,\n%s", c.Name, code, stdout)
		}
	}
}

func TestAScenarioIsAnsweredWithEvidence(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a cluster for some seconds")
	}
	store := filepath.Join(t.TempDir(), "store")
	code, stdout, stderr := outcome(t, command(t, "scenario", "run", "acks-1-isolation", "--backend", "proxies", "--tries", "3", "--store", store, "--quiet", "--json"))
	var told struct {
		Findings []scenario.Finding `json:"findings"`
	}
	if err := json.Unmarshal([]byte(stdout), &told); code != 0 || err != nil || len(told.Findings) == 0 {
		t.Fatalf("exit %d, %v: %s%s", code, err, stdout, stderr)
	}
	last := told.Findings[len(told.Findings)-1]
	if last.Found != scenario.Permitted || !last.AsExpected || last.Count == 0 || last.Because != "acks=1" || last.Faults != 1 || last.Exit != 0 {
		t.Errorf("finding %+v, want a loss that is permitted", last)
	}
	// The run is one like any other: its history gives the same answer again.
	if code, _, stderr := outcome(t, command(t, "check", filepath.Join(last.Run, "history.bin"))); code != 0 {
		t.Errorf("ackproof check %s: exit %d: %s", last.Run, code, stderr)
	}
}
