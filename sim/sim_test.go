package sim

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"ackproof/model"
	"ackproof/nemesis"
)

func mustRun(t *testing.T, c Case, o Options) *Result {
	t.Helper()
	if o.Floors == nil {
		f := model.HistoryFloors()
		o.Floors = &f
	}
	r, err := Run(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// short is a small case: what most tests need.
func short(seed int64) Case {
	c := Default(seed)
	c.LoadMS = 8_000
	return c.WithSchedule(nil)
}

func TestACorrectBrokerHoldsUnderEverySchedule(t *testing.T) {
	for seed := int64(1); seed <= 8; seed++ {
		r := mustRun(t, short(seed), Options{})
		if v := r.Verdict(); v != model.Held {
			t.Errorf("seed %d: %s: %v %v %v", seed, v, r.Anomalies(), r.Broken, r.Facts)
		}
		effective := 0
		for _, f := range r.Faults {
			if f.Effective {
				effective++
			}
		}
		if effective < 3 || r.Facts.LeaderChanges == 0 || r.Answer.Records.Acked < 500 || !r.Facts.DrainComplete {
			t.Errorf("seed %d proves little: %d effective faults, %d leader changes, %d records acknowledged, drain %q", seed, effective, r.Facts.LeaderChanges, r.Answer.Records.Acked, r.Facts.DrainReason)
		}
	}
}

func inHex(n uint64) string { return fmt.Sprintf("%016x", n) }

// fingerprint is what must be the same whenever a case is run again.
func fingerprint(t *testing.T, seed int64) string {
	var trace bytes.Buffer
	r := mustRun(t, short(seed), Options{Trace: &trace})
	return strings.Join([]string{inHex(r.Hash), r.HistoryHash(), inHex(uint64(trace.Len()))}, " ")
}

// A seed replays bit for bit: in this process and in others, with other numbers of threads and another garbage collector.
func TestASeedReplaysBitForBit(t *testing.T) {
	const key = "ACKPROOF_SIM_FINGERPRINT"
	if os.Getenv(key) != "" {
		t.Log("fingerprint " + fingerprint(t, 4))
		return
	}
	want := fingerprint(t, 4)
	if fingerprint(t, 5) == want {
		t.Error("two seeds have the same fingerprint")
	}
	if got := fingerprint(t, 4); got != want {
		t.Errorf("second run: %s, expected %s", got, want)
	}
	for _, env := range [][]string{{"GOMAXPROCS=1", "GOGC=20"}, {"GOMAXPROCS=4", "GOGC=off"}} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestASeedReplaysBitForBit$", "-test.v")
		cmd.Env = append(append(os.Environ(), env...), key+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "fingerprint "+want) {
			t.Errorf("%v: %v, expected the fingerprint %s:\n%s", env, err, want, out)
		}
	}
}

func TestWithoutFaultsNothingIsProven(t *testing.T) {
	c := Default(1)
	c.LoadMS = 2_000
	c.Schedule = nemesis.Schedule{Version: nemesis.ScheduleVersion, Seed: 1, Faults: []nemesis.Fault{}}
	floors := model.TestFloors()
	r := mustRun(t, c, Options{Floors: &floors})
	if v := r.Verdict(); v != model.NotTested {
		t.Errorf("a run without faults: %s, expected %s", v, model.NotTested)
	}
}

func TestSenselessCasesAreRefused(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(*Case)
	}{
		{"nodes", func(c *Case) { c.Nodes = 0 }},
		{"replication", func(c *Case) { c.Replication = 4 }},
		{"min_insync", func(c *Case) { c.MinISR = 4 }},
		{"idempotent", func(c *Case) { c.Acks = 1 }},
		{"store", func(c *Case) { c.Store = "paper" }},
		{"timers", func(c *Case) { c.Timers.Election = 1 }},
		{"schedule", func(c *Case) { c.Schedule.Version = 9 }},
		{"no such bug", func(c *Case) { c.Plant = "B999" }},
	} {
		one := short(1)
		c.change(&one)
		if _, err := Run(one, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, expected an error with %q", err, c.want)
		}
	}
}
