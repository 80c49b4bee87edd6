package main

import (
	"os"
	"strings"
	"testing"
)

// What is written is read again: a run of some clients leaves the columns of the others as they are.
func TestPageKeepsOtherClients(t *testing.T) {
	text, err := os.ReadFile("../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), pageBegin+"\n")
	generated, _, found := strings.Cut(rest, pageEnd)
	if !found {
		t.Fatalf("no line %q", pageEnd)
	}
	p := readTables(generated)
	if p.about["kcat"] == nil || p.scenarios["kcat"]["produce"] == "" {
		t.Fatalf("kcat is not in the tables that were read: %v", p)
	}
	p.enter(result{client: clients[0], version: "v9", cells: map[string][2]cell{"produce": {{state: fail}, {state: pass}}}, served: map[int16]versions{0: {0, 13}}})
	again := readTables(p.String())
	if got := again.scenarios[clients[0].name]["produce"]; got != "FAIL / pass" {
		t.Errorf("the new cell is %q", got)
	}
	if got, want := again.scenarios["kcat"]["produce"], p.scenarios["kcat"]["produce"]; got != want || want == "" {
		t.Errorf("kcat's cell is %q, was %q", got, want)
	}
	if again.String() != p.String() {
		t.Error("reading and writing again changes the page")
	}
}
