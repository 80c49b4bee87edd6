package sim

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"ackproof/histories"
	"ackproof/model"
	"ackproof/nemesis"
	"ackproof/workloads/group"
)

func TestGroupsHoldUnderEverySchedule(t *testing.T) {
	effective, rebalances := 0, int64(0)
	for seed := int64(1); seed <= 8; seed++ {
		r := mustRun(t, SwarmGroups(seed, nil, 6_000, false), Options{})
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
	r := mustRun(t, SwarmGroups(seed, nil, 6_000, false).WithGroups(DefaultGroups()), Options{})
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

// A static member that is back within its session has its partitions again, and nobody else notices: the generation stays (KIP-345).
func TestStaticMembersComeBackToTheirPartitions(t *testing.T) {
	for _, protocol := range []group.Protocol{group.Eager, group.Consumer} {
		back := 0
		for seed := int64(1); seed <= 3; seed++ {
			g := DefaultGroups()
			g.Static, g.Protocols = 3, []group.Protocol{protocol}
			c := Default(seed).WithGroups(g)
			c.LoadMS, c.Schedule = 10_000, nemesis.Schedule{Version: nemesis.ScheduleVersion, Seed: seed, Faults: []nemesis.Fault{}}
			r := mustRun(t, c, Options{})
			if v := r.Verdict(); v != model.Held {
				t.Errorf("%s, seed %d: %s: %v", protocol, seed, v, r.Anomalies())
			}
			in, err := histories.NewReader(bytes.NewReader(r.History))
			if err != nil {
				t.Fatal(err)
			}
			type tenure struct {
				key        string
				generation int64
			}
			had := map[tenure]int32{}
			for ev, err := range in.All() {
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range ev.Steps {
					if at := (tenure{s.Key, s.Number}); s.Do == histories.Assigned && s.Offset >= 0 && ev.Type == histories.OK {
						if old := had[at]; old != 0 && old != ev.Process {
							back++
						}
						had[at] = ev.Process
					}
				}
			}
		}
		if back == 0 {
			t.Errorf("%s: no partition went from a static member to its successor without a rebalance", protocol)
		}
	}
}

// Fifty members that live for moments only, in each protocol: everything holds, and no group goes without progress for longer than the contract allows.
func TestAStormOfRebalancesLetsGroupsGoOn(t *testing.T) {
	for _, protocol := range group.Protocols() {
		g := DefaultGroups()
		g.Members, g.Static, g.Storm, g.SessionMS, g.Protocols = 50, 5, true, 1000, []group.Protocol{protocol}
		c := Default(1).WithGroups(g)
		c.LoadMS, c.Partitions, c.Schedule = 12_000, 4, nemesis.Schedule{Version: nemesis.ScheduleVersion, Seed: 1, Faults: []nemesis.Fault{}}
		r := mustRun(t, c, Options{})
		if v := r.Verdict(); v != model.Held {
			t.Errorf("%s: %s: %v %v", protocol, v, r.Anomalies(), r.Facts)
		}
		evidence := r.Answer.Claims[len(r.Answer.Claims)-1].Evidence
		t.Logf("%s: %d events, %v", protocol, r.Events, evidence)
		if evidence["rebalances"] < 10 || evidence["stalled_ms"] == 0 {
			t.Errorf("%s: %v is no storm", protocol, evidence)
		}
	}
}

func TestSenselessCasesOfGroupsAreRefused(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(*Case)
	}{
		{"members", func(c *Case) { c.Groups.Members = 0 }},
		{"static", func(c *Case) { c.Groups.Static = 4 }},
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
