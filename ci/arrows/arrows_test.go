package arrows

import (
	"slices"
	"strings"
	"testing"

	"ackproof/ci/source"
)

func listed(t *testing.T, args ...string) (module string, packages []source.Package) {
	t.Helper()
	root, module, err := source.Root()
	if err != nil {
		t.Fatal(err)
	}
	packages, err = source.List(root, args...)
	if err != nil {
		t.Fatal(err)
	}
	return module, packages
}

func TestImportsKeepTheTable(t *testing.T) {
	for _, tags := range []string{"", "failpoints"} {
		for _, finding := range Check(listed(t, "-tags="+tags, "./...")) {
			t.Errorf("-tags=%q: %s", tags, finding)
		}
	}
}

func TestForbiddenImportsAreFound(t *testing.T) {
	for _, c := range []struct {
		from, to string
		allowed  bool
	}{
		{"broker/node", "harness", false},
		{"broker/core/partition", "broker/node", false},
		{"broker/core/partition", "broker/storage", true},
		{"broker/record", "broker/storage", false},
		{"broker/fault", "broker/core/partition", false},
		{"harness", "broker/node", false},
		{"systems/reference", "broker/node", false},
		{"nemesis", "linearizability", false},
		{"linearizability", "harness", false},
		{"model", "histories", false},
		{"histories", "model", false},
		{"bench", "broker/wire", false},
		{"report", "harness", false},
		{"sim", "broker/core/partition", true},
		{"cmd/ackproof", "broker/node", true},
		{"cmd/ackproof", "ci/arrows", true},
		{"newcomer", "model", false},
		{"brokers", "broker", false},
	} {
		findings := Check("m", []source.Package{{ImportPath: "m/" + c.from, Imports: []string{"fmt", "m/" + c.to}}})
		if got := len(findings) == 0; got != c.allowed {
			t.Errorf("%s imports %s: found %v, allowed: %v", c.from, c.to, findings, c.allowed)
		}
	}
	// Tests put the parts of their own side together, and do not cross over.
	if f := Check("m", []source.Package{{ImportPath: "m/broker/wire", XTestImports: []string{"m/broker/node"}}}); len(f) != 0 {
		t.Errorf("a test inside of the broker: %v", f)
	}
	if f := Check("m", []source.Package{{ImportPath: "m/systems", XTestImports: []string{"m/nemesis"}}}); len(f) != 0 {
		t.Errorf("a test outside of the broker: %v", f)
	}
	if f := Check("m", []source.Package{{ImportPath: "m/harness", TestImports: []string{"m/broker/node"}}}); len(f) != 1 {
		t.Errorf("a test of the harness that imports the broker: %v", f)
	}
}

// A normal binary must not be able to carry a planted bug, a tagged one must; "silently off" would make every planted bug look unfound.
func TestOnlyTheTaggedBinaryHasFailpoints(t *testing.T) {
	for tags, want := range map[string]bool{"": false, "failpoints": true} {
		_, packages := listed(t, "-deps", "-tags="+tags, "./cmd/ackproof")
		got := slices.ContainsFunc(packages, func(p source.Package) bool { return strings.HasPrefix(p.ImportPath, "github.com/pingcap/failpoint") })
		if got != want {
			t.Errorf("-tags=%q: failpoint is part of the binary: %v, want %v", tags, got, want)
		}
		if !slices.ContainsFunc(packages, func(p source.Package) bool { return strings.HasSuffix(p.ImportPath, "/broker/core/partition") }) {
			t.Errorf("-tags=%q: the binary does not contain the broker, so this test says nothing", tags)
		}
	}
}
