package sim

import (
	"slices"
	"strings"
	"testing"

	"ackproof/model"
	"ackproof/nemesis"
)

// The disk of the last one in sync is lost. Nobody who has every record is left, so nobody leads, until an unclean election is asked for by hand: the run can be read and decided, and
// what was lost is permitted.
func TestRescue(t *testing.T) {
	c := short(8)
	c.Nodes, c.Partitions, c.Replication, c.MinISR, c.Acks, c.Unclean = 3, 1, 2, 1, -1, false
	first := 0
	c.Schedule = nemesis.Schedule{Version: nemesis.ScheduleVersion, Seed: c.Seed, Faults: []nemesis.Fault{
		{Kind: nemesis.Kill, Start: nemesis.Trigger{AfterMS: 1000}, ForMS: 20_000, Target: nemesis.Target{Role: nemesis.RoleFollower}},
		{Kind: nemesis.DiskWipe, Start: nemesis.Trigger{Fault: &first, AfterMS: 4 * c.Timers.Session}, ForMS: 100, Target: nemesis.Target{Role: nemesis.RoleLeader}},
	}}
	r := mustRun(t, c, Options{})
	if v := r.Verdict(); v != model.Held || len(r.Anomalies()) > 0 || len(r.Broken) > 0 {
		t.Errorf("the run is %s: %v %v", v, r.Anomalies(), r.Broken)
	}
	permitted := map[model.Anomaly]int64{}
	for _, claim := range r.Answer.Claims {
		for _, p := range claim.Permitted {
			permitted[p.Kind] += p.Count
		}
	}
	if permitted[model.UnavailableAfterHeal] == 0 || permitted[model.LostAcked] == 0 {
		t.Errorf("permitted are %v, expected unavailability and what the last one had alone", permitted)
	}
	if !slices.ContainsFunc(r.Facts.Notes, func(n string) bool { return strings.Contains(n, "nobody led p0") }) {
		t.Errorf("the notes do not tell of the election: %q", r.Facts.Notes)
	}
	if !r.Facts.DrainComplete {
		t.Errorf("the drain is not complete: %s", r.Facts.DrainReason)
	}
}
