package sim

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"ackproof/model"
	"ackproof/nemesis"
)

func TestGroupsHoldUnderEverySchedule(t *testing.T) {
	effective, rebalances := 0, int64(0)
	for seed := int64(1); seed <= 8; seed++ {
		r := mustRun(t, SwarmGroups(seed, nil, 6_000), Options{})
		if v := r.Verdict(); v != model.Held || !r.Facts.GroupsDrained {
			t.Errorf("seed %d: %s: %v %v %v", seed, v, r.Anomalies(), r.Broken, r.Facts)
		}
		for _, f := range r.Faults {
			if f.Effective {
				effective++
			}
		}
		for _, c := range r.Answer.Claims {
			rebalances += c.Evidence["rebalances"]
		}
	}
	if effective < 16 || rebalances < 30 {
		t.Errorf("%d faults had an effect, and groups were shared anew %d times: that proves little", effective, rebalances)
	}
}

// fingerprintOfGroups is fingerprint for a case of groups.
func fingerprintOfGroups(t *testing.T, seed int64) string {
	r := mustRun(t, SwarmGroups(seed, nil, 6_000).WithGroups(DefaultGroups()), Options{})
	return inHex(r.Hash) + " " + r.HistoryHash()
}

func TestASeedOfGroupsReplaysBitForBit(t *testing.T) {
	const key = "ACKPROOF_SIM_FINGERPRINT"
	if os.Getenv(key) != "" {
		t.Log("fingerprint " + fingerprintOfGroups(t, 4))
		return
	}
	want := fingerprintOfGroups(t, 4)
	if got := fingerprintOfGroups(t, 4); got != want {
		t.Errorf("second run: %s, expected %s", got, want)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestASeedOfGroupsReplaysBitForBit$", "-test.v")
	cmd.Env = append(os.Environ(), key+"=1", "GOMAXPROCS=1", "GOGC=20")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "fingerprint "+want) {
		t.Errorf("another process: %v, expected the fingerprint %s:\n%s", err, want, out)
	}
}

func TestSenselessCasesOfGroupsAreRefused(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(*Case)
	}{
		{"members", func(c *Case) { c.Groups.Members = 0 }},
		{"session_ms", func(c *Case) { c.Groups.SessionMS = 1 }},
		{"partitions", func(c *Case) { c.Groups.Partitions = 0 }},
		{"compact_bytes", func(c *Case) { c.Groups.CompactBytes = -1 }},
		{"protocols", func(c *Case) { c.Groups.Protocols = nil }},
		{"protocols", func(c *Case) { c.Groups.Protocols = append(c.Groups.Protocols, c.Groups.Protocols[0]) }},
		{"acks −1", func(c *Case) { c.Acks, c.Idempotent = 1, false }},
		{"acks −1", func(c *Case) { c.Unclean = true }},
		{"acknowledged commits", func(c *Case) {
			c.FlushEach = false
			c.Schedule.Faults = []nemesis.Fault{{Kind: nemesis.PowerLoss, ForMS: 100, Target: nemesis.Target{Role: nemesis.RoleLeader}}}
		}},
	} {
		one := short(1).WithGroups(DefaultGroups())
		c.change(&one)
		if _, err := Run(one, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, expected an error with %q", err, c.want)
		}
	}
}
