package main

import (
	"go/parser"
	"go/token"
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
				continue
			}
			if _, _, err := weave(string(text), []numbered{{1, m}}); err != nil {
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

// TestWeave: the function asks which one is meant, and its copies carry the edits.
func TestWeave(t *testing.T) {
	text := "package p\n\nfunc (s *S) f(a, b int, _ string, more ...int) (n int, err error) {\n\treturn a + b, nil\n}\n\nfunc g[T any](v T) {\n\tuse(v)\n}\n"
	woven, choice, err := weave(text, []numbered{{7, Mutant{Old: "a + b", New: "a - b"}}, {8, Mutant{Old: "{\n\treturn a", New: "{\n\treturn b"}}, {9, Mutant{Old: "\tuse(v)\n"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"func (s *S) f__real(a, b int, _ string, more ...int) (n int, err error) {\n\treturn a + b, nil\n}",
		"func (r__ *S) f(p0__ int, p1__ int, p2__ string, p3__ ...int) (n int, err error) {",
		"\tcase 7:\n\t\treturn r__.f__7(p0__, p1__, p2__, p3__...)\n",
		"\tdefault:\n\t\treturn r__.f__real(p0__, p1__, p2__, p3__...)\n",
		"\n//line mutant7.go:1\nfunc (s *S) f__7(a, b int, _ string, more ...int) (n int, err error) {\n\treturn a - b, nil\n}",
		"f__8(a, b int, _ string, more ...int) (n int, err error) {\n\treturn b + b, nil\n}",
		"func g[T any](p0__ T) {\n",
		"\t\tg__9[T](p0__); return\n",
		"\n//line mutant9.go:1\nfunc g__9[T any](v T) {\n}",
	} {
		if !strings.Contains(woven, part) {
			t.Errorf("expected in the woven file\n%s\nfound\n%s", part, woven)
		}
	}
	for _, text := range []string{woven, choice} {
		if _, err := parser.ParseFile(token.NewFileSet(), "", text, 0); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
	}
	for what, m := range map[string]Mutant{
		"in no function":        {Old: "package p", New: "package q"},
		"head of a function":    {Old: "a, b int", New: "b, a int"},
		"stands there 0 times":  {Old: "absent"},
		"it changes nothing":    {Old: "a + b", New: "a + b"},
		"the old text stands t": {Old: "int", New: "x"},
	} {
		if _, _, err := weave(text, []numbered{{1, m}}); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want an error with %q", err, what)
		}
	}
}
