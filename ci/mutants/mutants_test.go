package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ackproof/ci/source"
)

// TestCatalogueFitsTheCode: every edit can be made where the list says, and no two are the same. Whether they compile and are noticed only the command tells.
func TestCatalogueFitsTheCode(t *testing.T) {
	root, _, err := source.Root()
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, c := range catalogue() {
		if c.Name == "" || len(c.Packages) == 0 || len(c.Mutants) == 0 {
			t.Errorf("checker %q with %d packages and %d mutants: expected a name and at least one of each", c.Name, len(c.Packages), len(c.Mutants))
		}
		if _, err := regexp.Compile(c.First); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		for _, p := range c.Packages {
			if tests, err := filepath.Glob(filepath.Join(root, p, "*_test.go")); err != nil || len(tests) == 0 {
				t.Errorf("%s: no tests in %s (%v)", c.Name, p, err)
			}
		}
		for _, m := range c.Mutants {
			text, err := os.ReadFile(filepath.Join(root, m.File))
			if err != nil {
				t.Errorf("%s: %v", m, err)
				continue
			}
			edited, err := m.apply(string(text))
			if err != nil {
				t.Error(err)
			}
			if seen[m.File+edited] {
				t.Errorf("%s: the same edit stands in the list twice", m)
			}
			seen[m.File+edited] = true
			if m.Means == "" || strings.HasSuffix(m.File, "_test.go") {
				t.Errorf("%s: expected a meaning, and a file that is no test", m)
			}
		}
	}
}

func TestApply(t *testing.T) {
	for _, c := range []struct {
		text, old, new, want string // want "": refused
	}{
		{"a < b", "<", "<=", "a <= b"},
		{"a < b < c", "<", "<=", ""},
		{"a > b", "<", "<=", ""},
		{"a < b", "<", "<", ""},
	} {
		got, err := Mutant{File: "f", Old: c.old, New: c.new}.apply(c.text)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q with %q for %q: %q and %v, want %q", c.text, c.new, c.old, got, err, c.want)
		}
	}
}

// TestScore: what is not killed is counted against the score and named, whatever the reason.
func TestScore(t *testing.T) {
	checkers := []Checker{{Name: "one", Mutants: []Mutant{{Means: "first"}, {Means: "second"}}}, {Name: "two", Mutants: []Mutant{{Means: "third"}}}}
	dead, alive, bad := result{fate: killed, by: "TestX"}, result{fate: survived}, result{fate: invalid, err: os.ErrNotExist}
	for _, c := range []struct {
		all  [][]result
		ok   bool
		want string
	}{
		{[][]result{{dead, dead}, {dead}}, true, `all +3 +3 +100 %`},
		{[][]result{{dead, alive}, {dead}}, false, `all +3 +2 +66 %(.|\n)*SURVIVED: one: .*second`},
		{[][]result{{dead, dead}, {bad}}, false, `two +1 +0 +0 %(.|\n)*INVALID: two: .*third.*not exist`},
	} {
		var out strings.Builder
		if ok := printScore(&out, checkers, c.all); ok != c.ok || !regexp.MustCompile(c.want).MatchString(out.String()) {
			t.Errorf("all killed: %v, want %v and %q in\n%s", ok, c.ok, c.want, out.String())
		}
		out.Reset()
		if ok := printMarkdown(&out, checkers, c.all); ok != c.ok || strings.Count(out.String(), "\n") != 2+3+3+3 {
			t.Errorf("all killed: %v, want %v and 11 lines in\n%s", ok, c.ok, out.String())
		}
	}
}

func TestFailed(t *testing.T) {
	out := []byte("=== RUN\n    --- FAIL: TestB/sub (0.1s)\n--- FAIL: TestB (0.1s)\nFAIL\n")
	if got := failed(out); got != "TestB" {
		t.Errorf("killed by %q, want TestB", got)
	}
	if got := failed([]byte("panic: oh\n")); got != "a panic" {
		t.Errorf("killed by %q, want a panic", got)
	}
}

func TestChosen(t *testing.T) {
	all := []Checker{{Name: "one", Mutants: []Mutant{{File: "a.go", Means: "x"}, {File: "b.go", Means: "y"}}}, {Name: "two", Mutants: []Mutant{{File: "c.go", Means: "z"}}}}
	for pattern, want := range map[string]int{"": 3, "^one$": 2, "b.go": 1, "z": 1, "none": 0} {
		got := 0
		for _, c := range chosen(all, regexp.MustCompile(pattern)) {
			got += len(c.Mutants)
		}
		if got != want {
			t.Errorf("%q chooses %d mutants, want %d", pattern, got, want)
		}
	}
}
