package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ackproof/sim/campaign"
)

func TestSimWrongUsage(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "case.json")
	if err := os.WriteFile(bad, []byte(`{"nodes": 3, "knots": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--seeds", "0"}, "--seeds is 0"},
		{[]string{"--time", "1ms"}, "--time is 1ms"},
		{[]string{"--nemesis", "locusts"}, "kind"},
		{[]string{"--case", bad}, "knots"},
		{[]string{"--case", bad, "--seed", "1"}, "--seed with --case"},
		{[]string{"--case", filepath.Join(dir, "none")}, "none"},
		{[]string{"--schedule", bad}, "schedule"},
		{[]string{"--plant", "B999"}, "expected one of"},
		{[]string{"extra"}, "unknown command"},
	} {
		code, stdout, stderr := outcome(t, command(t, append([]string{"sim"}, c.args...)...))
		if code != 254 || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("sim %v: exit %d, stdout %q, stderr %q, expected 254 and %q", c.args, code, stdout, stderr, c.want)
		}
	}
}

func TestSimCampaignAndOneOfItsSeeds(t *testing.T) {
	code, stdout, stderr := outcome(t, command(t, "sim", "--from", "7", "--seeds", "4", "--time", "3s", "--jobs", "2", "--json"))
	var r campaign.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 0 || r.Seeds != 4 || r.Verdicts["held"] != 4 || r.Events == 0 || r.Acked == 0 {
		t.Fatalf("exit %d, %v, %+v\n%s", code, err, r, stderr)
	}
	if !strings.Contains(strings.SplitN(stderr, "\n", 2)[0], "ackproof sim --from 7 --seeds 4 --time 3s") {
		t.Errorf("the first line of stderr does not say how to repeat: %s", stderr)
	}
	one := func() campaign.Summary {
		code, stdout, stderr := outcome(t, command(t, "sim", "--seed", "9", "--time", "3s", "--json"))
		var s campaign.Summary
		if err := json.Unmarshal([]byte(stdout), &s); err != nil || code != 0 {
			t.Fatalf("exit %d, %v\n%s", code, err, stderr)
		}
		return s
	}
	if a, b := one(), one(); a.Hash == "" || a.Hash != b.Hash || a.History != b.History {
		t.Errorf("one seed gave %s %s and %s %s", a.Hash, a.History, b.Hash, b.History)
	}
}

func TestSimWithoutFaultsProvesNothing(t *testing.T) {
	code, stdout, stderr := outcome(t, command(t, "sim", "--from", "1", "--seeds", "1", "--time", "1s", "--nemesis", "none"))
	if code != 2 || !strings.Contains(stdout, "NOT-TESTED") {
		t.Errorf("exit %d, expected 2\n%s\n%s", code, stdout, stderr)
	}
}
