package main

import (
	"encoding/json"
	"strings"
	"testing"

	"ackproof/harness"
	"ackproof/nemesis"
)

// asked runs doctor as a user does, and gives its table too.
func asked(t *testing.T) (d diagnosis, table string) {
	t.Helper()
	code, raw, stderr := outcome(t, command(t, "doctor", "--json"))
	if code != 0 || stderr != "" {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	if err := json.Unmarshal([]byte(raw), &d); err != nil {
		t.Fatal(err)
	}
	_, table, _ = outcome(t, command(t, "doctor"))
	return d, table
}

func TestDoctorKnowsEveryFaultOnEveryBackEndAndInTheSimulator(t *testing.T) {
	d, table := asked(t)
	answers := map[string]map[nemesis.Kind]ability{}
	for _, a := range d.Faults {
		where := a.World + a.Backend
		if answers[where] == nil {
			answers[where] = map[nemesis.Kind]ability{}
		}
		answers[where][a.Fault] = a
		if a.Reason == "" || !strings.Contains(table, a.Reason) {
			t.Errorf("%s on %s has the reason %q, which the table does not show", a.Fault, where, a.Reason)
		}
	}
	for _, where := range []string{"real" + harness.BackendProxies, "real" + harness.BackendSandbox, "sim"} {
		for _, k := range nemesis.AllKinds() {
			if _, known := answers[where][k]; !known {
				t.Errorf("nothing is said of %s on %s", k, where)
			}
		}
	}
	for _, k := range nemesis.ProcessKinds() {
		if !answers["real"+harness.BackendProxies][k].Available {
			t.Errorf("%s is said not to be available on proxies: %s", k, answers["real"+harness.BackendProxies][k].Reason)
		}
	}
	if answers["sim"][nemesis.PacketLoss].Available || !answers["sim"][nemesis.PowerLoss].Available {
		t.Error("the simulator is said to have packets, or no power to lose")
	}
	if len(d.NotInSim) == 0 {
		t.Error("nothing is said of what the simulator does not cover")
	}
}
