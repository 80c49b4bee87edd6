package fault_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ackproof/broker/fault"
)

func TestFindByIDAndName(t *testing.T) {
	ids, names := map[string]bool{}, map[string]bool{}
	for _, b := range fault.All() {
		if ids[b.ID] || names[b.Name] {
			t.Errorf("%v stands twice in All", b)
		}
		ids[b.ID], names[b.Name] = true, true
		for _, key := range []string{b.ID, b.Name} {
			if got, ok := fault.Find(key); !ok || got != b {
				t.Errorf("Find(%q) = %v, %v; want %v", key, got, ok, b)
			}
		}
	}
	if got, ok := fault.Find("B99"); ok {
		t.Errorf("Find(\"B99\") = %v, want nothing", got)
	}
}

// A bug whose switch nobody asks for, or that no test plants, would be "not found by the harness" for the wrong reason.
func TestEveryBugIsAskedForAndTested(t *testing.T) {
	var product, tests strings.Builder
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(path, "../fault/") {
			return err
		}
		text, err := os.ReadFile(path)
		switch {
		case strings.HasSuffix(path, "_test.go"), strings.Contains(path, "/testdata/"):
			tests.Write(text)
		case strings.HasSuffix(path, ".go"):
			product.Write(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	names := variables(t)
	for _, bug := range fault.All() {
		name := names[bug]
		if !strings.Contains(product.String(), "fault.On(fault."+name+")") {
			t.Errorf("no code of the broker asks fault.On(fault.%s) (%v)", name, bug)
		}
		if !strings.Contains(tests.String(), "fault."+name) && !strings.Contains(tests.String(), bug.ID) {
			t.Errorf("no test of the broker names fault.%s or %s: each switch needs one that shows that it changes behaviour", name, bug.ID)
		}
	}
}

// The catalogue says of every bug what is to be expected, in words that others know.
func TestTheCatalogueIsComplete(t *testing.T) {
	last := ""
	for _, e := range fault.Catalogue() {
		if e.ID <= last {
			t.Errorf("%s stands behind %s, expected the order of the ids", e.ID, last)
		}
		last = e.ID
		if len(e.Breaks) == 0 || len(e.Anomalies) == 0 || e.World == 0 || e.World.String() == "nowhere" {
			t.Errorf("%s: rules %v, anomalies %v, world %v: something is missing", e.ID, e.Breaks, e.Anomalies, e.World)
		}
		for _, r := range e.Breaks {
			if !regexp.MustCompile(`^[RS][1-9]\d?$`).MatchString(r) {
				t.Errorf("%s breaks %q, expected a rule like R1", e.ID, r)
			}
		}
	}
}

// variables are the names of the variables that declare bugs.
func variables(t *testing.T) map[fault.Bug]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	names := map[fault.Bug]string{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			if c, ok := spec.Values[0].(*ast.CompositeLit); ok && len(c.Elts) == 2 {
				if typ, ok := c.Type.(*ast.Ident); ok && typ.Name == "Bug" {
					text := func(e ast.Expr) string { s, _ := strconv.Unquote(e.(*ast.BasicLit).Value); return s }
					names[fault.Bug{ID: text(c.Elts[0]), Name: text(c.Elts[1])}] = spec.Names[0].Name
				}
			}
			return true
		})
	}
	return names
}
