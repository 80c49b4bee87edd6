package ci

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// blocks are the code blocks of the documentation that are of one language.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "docs", "ci.md"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(string(raw), -1) {
		out = append(out, m[1])
	}
	return out
}

// What the documentation shows can be pasted: YAML parses, and the gate files are gates.
func TestTheDocumentationIsRight(t *testing.T) {
	all := blocks(t, "yaml")
	if len(all) != 4 {
		t.Fatalf("%d blocks of YAML, expected a gate, a quarantine and two workflows", len(all))
	}
	load(t, all[0]+all[1])
	jobs := []string{"jobs", "durability"}
	for i, text := range all[2:] {
		var doc map[string]any
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil || doc[jobs[i]] == nil {
			t.Errorf("a workflow without %s (%v):\n%s", jobs[i], err, text)
		}
	}
	for _, text := range append(all[2:], blocks(t, "groovy")...) {
		if !strings.Contains(text, "ackproof\" gate") && !strings.Contains(text, "./ackproof gate") {
			t.Errorf("a workflow that does not call the gate:\n%s", text)
		}
	}
}
