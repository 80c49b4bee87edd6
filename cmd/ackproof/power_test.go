package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ackproof/model"
	"ackproof/nemesis"
	"ackproof/nemesis/lossy"
)

// powerLossesEnv is how many losses of power TestPowerLosses makes; it takes two seconds for each, so it is not done unless somebody asks for it.
const powerLossesEnv = "ACKPROOF_POWER_LOSSES"

// believable, in ms, is how long after a restart the roles may still tell of the time before it: a session of the reference broker, and some more.
const believable = 2500

// With a flush before the ack nothing is lost by any loss of power at any moment. Without one something may be, and only if every copy has lost its power.
func TestPowerLosses(t *testing.T) {
	total, err := strconv.Atoi(os.Getenv(powerLossesEnv))
	if err != nil {
		t.Skip("takes minutes; " + powerLossesEnv + "=200 makes 200 losses of power")
	}
	if ok, why := lossy.Available(); !ok {
		t.Skip("no file system that loses power here: " + why)
	}
	for _, c := range []struct {
		name, flush string
		roles       []nemesis.Role
		permitted   bool
	}{
		{"flush before the ack", "batch", []nemesis.Role{nemesis.RoleAll, nemesis.RoleLeader, nemesis.RoleFollower, nemesis.RoleMinority, nemesis.RoleInSync}, false},
		{"default flush and one node at a time", "interval", []nemesis.Role{nemesis.RoleLeader, nemesis.RoleFollower, nemesis.RoleController}, false},
		{"default flush and all nodes", "interval", []nemesis.Role{nemesis.RoleAll}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			done, unflushed, permitted := 0, 0, int64(0)
			for seed := int64(1); done < total; seed++ {
				r := powerRun(t, seed, min(total-done, 30), c.flush, c.roles)
				effective := 0
				for _, f := range r.Faults {
					if f.Effective {
						effective++
					}
				}
				if effective == 0 {
					t.Fatalf("seed %d: no loss of power took effect: %+v", seed, r.Faults)
				}
				done += effective
				unflushed += effective - count(r.Faults, "nothing was unflushed")
				for _, claim := range r.Claims {
					if claim.Verdict == model.Violated {
						t.Errorf("seed %d: %s is violated", seed, claim.ID)
					}
					for _, p := range claim.Permitted {
						permitted += int64(p.Count)
					}
				}
			}
			t.Logf("%d losses of power, %d of them with something unflushed on each node that was struck; %d anomalies permitted", done, unflushed, permitted)
			if permitted > 0 && !c.permitted {
				t.Errorf("%d anomalies were permitted, expected that there are none", permitted)
			}
		})
	}
}

func count(faults []model.FaultResult, proof string) (n int) {
	for _, f := range faults {
		if f.Effective && strings.Contains(f.Proof, proof) {
			n++
		}
	}
	return n
}

// powerRun is one test with losses of power only, one after the other.
func powerRun(t *testing.T, seed int64, losses int, flush string, roles []nemesis.Role) (r model.Results) {
	t.Helper()
	dir, pick := t.TempDir(), rand.New(rand.NewPCG(uint64(seed), 1))
	s := nemesis.Schedule{Version: nemesis.ScheduleVersion, Seed: seed}
	for i := range losses {
		f := nemesis.Fault{Kind: nemesis.PowerLoss, ForMS: 1 + pick.Int64N(300), Start: nemesis.Trigger{AfterMS: 1200},
			Target: nemesis.Target{Role: roles[pick.IntN(len(roles))], Partition: nemesis.AnyPartition}}
		if i > 0 {
			before := i - 1
			f.Start = nemesis.Trigger{Fault: &before, Healed: true, AfterMS: 200 + pick.Int64N(900)}
			if !slices.Contains(roles, nemesis.RoleAll) {
				// One at a time: only when the session that the node had before is over do the roles say that it has been away, and what it has.
				f.Start.AfterMS, f.Start.Recovered, f.Start.GiveUpMS = believable+pick.Int64N(900), true, 60_000
			}
		}
		s.Faults = append(s.Faults, f)
	}
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "schedule.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	_, stdout, stderr := outcome(t, command(t, "test", "--json", "--quiet", "--flush", flush, "--schedule", file, "--seed", strconv.FormatInt(seed, 10), "--time", fmt.Sprintf("%ds", 4+4*losses), "--store", dir))
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	return r
}
