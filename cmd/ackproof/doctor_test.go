package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"ackproof/nemesis"
)

func TestDoctorKnowsEveryFaultInBothWorlds(t *testing.T) {
	var text, raw bytes.Buffer
	if err := diagnose().print(&text, false); err != nil {
		t.Fatal(err)
	}
	if err := diagnose().print(&raw, true); err != nil {
		t.Fatal(err)
	}
	var d diagnosis
	if err := json.Unmarshal(raw.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	real := map[nemesis.Kind]bool{}
	for _, a := range d.Faults {
		if a.World == "real" {
			real[a.Fault] = a.Available
		}
		if a.Reason == "" || !strings.Contains(text.String(), a.Reason) {
			t.Errorf("%s in %s has the reason %q, which the table does not show", a.Fault, a.World, a.Reason)
		}
	}
	for _, k := range nemesis.AllKinds() {
		available, known := real[k]
		if want := len(nemesis.ProcessKinds()) > 0 && k == nemesis.Kill; !known || want && !available {
			t.Errorf("%s: known %t, available %t", k, known, available)
		}
	}
	if len(d.NotInSim) == 0 {
		t.Error("nothing is said of what the simulator does not cover")
	}
}
