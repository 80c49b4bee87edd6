package fault_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
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
	for i, bug := range fault.All() {
		if !strings.Contains(product.String(), "fault.On(fault."+names[i]+")") {
			t.Errorf("no code of the broker asks fault.On(fault.%s)", names[i])
		}
		if !strings.Contains(tests.String(), "fault."+names[i]) && !strings.Contains(tests.String(), bug.ID) {
			t.Errorf("no test of the broker names fault.%s or %s: each switch needs one that shows that it changes behaviour", names[i], bug.ID)
		}
	}
}

// variables are the names of the bugs' variables in fault.go, which stand in the order of All.
func variables(t *testing.T) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "fault.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if c, ok := spec.Values[0].(*ast.CompositeLit); ok {
				if typ, ok := c.Type.(*ast.Ident); ok && typ.Name == "Bug" {
					names = append(names, spec.Names[0].Name)
				}
			}
		}
		return true
	})
	if len(names) != len(fault.All()) {
		t.Fatalf("fault.go declares %d bugs %v, All lists %d", len(names), names, len(fault.All()))
	}
	return names
}
