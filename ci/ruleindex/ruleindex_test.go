package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ackproof/ci/source"
)

func TestDocumentIsFresh(t *testing.T) {
	root, _, err := source.Root()
	if err != nil {
		t.Fatal(err)
	}
	index, err := Scan(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range index.Missing() {
		t.Error(m)
	}
	text, err := os.ReadFile(filepath.Join(root, document))
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := Insert(string(text), index.Table())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(fresh, string(text)); d != "" {
		t.Errorf("%s is stale, run go generate ./ci/... (-fresh +found):\n%s", document, d)
	}
}

func TestIDs(t *testing.T) {
	for text, want := range map[string][]string{
		"see R1, R4 and S3":        {"R1", "R4", "S3"},
		"R8-R10, R12–R13":          {"R10", "R12", "R13", "R8", "R9"},
		"RF 3, SR1, R1a, R0, R123": {},
	} {
		if d := cmp.Diff(want, append([]string{}, ids(text)...)); d != "" {
			t.Errorf("%q (-want +got):\n%s", text, d)
		}
	}
}

func TestCitationsAreFoundWhereTheyStand(t *testing.T) {
	const code = `// Package p keeps R1.
package p

// T keeps R2.
type T struct {
	f int // R3
}

const (
	a = 1 // R4
)

// m keeps R5.
func (t *T) m() {
	_ = t // R6
	_ = "R7"
}

func TestR8S9Something() {}
`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", code, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	x := Index{Code: map[string][]Place{}, Tests: map[string][]Place{}}
	x.file("p.go", file)
	want := map[string][]Place{"R1": {{"p.go", ""}}, "R2": {{"p.go", "T"}}, "R3": {{"p.go", "T"}}, "R4": {{"p.go", "a"}}, "R5": {{"p.go", "T.m"}}, "R6": {{"p.go", "T.m"}}}
	if d := cmp.Diff(want, x.Code); d != "" {
		t.Errorf("code (-want +got):\n%s", d)
	}
	x.file("p_test.go", file)
	x.script("testdata/a.txt", "# R10: why\nR11\n")
	want["R7"], want["R8"], want["S9"], want["R10"] = []Place{{"", "T.m"}}, []Place{{"", "TestR8S9Something"}}, []Place{{"", "TestR8S9Something"}}, []Place{{"", ""}}
	for id := range want {
		if len(x.Tests[id]) != 1 || x.Tests[id][0].Decl != want[id][0].Decl {
			t.Errorf("tests of %s: %v, want %v", id, x.Tests[id], want[id])
		}
	}
	if len(x.Tests["R11"]) != 0 {
		t.Errorf("R11 stands in no comment, but is cited by %v", x.Tests["R11"])
	}
	if got := len(x.Missing()); got == 0 {
		t.Error("nothing is missing from an index of one small file")
	}
}
