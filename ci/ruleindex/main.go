// Command ruleindex writes the table of rules into docs/architecture.md: rule id → code that keeps it, test that checks it, planted bug that breaks it. It is made
// from the ids in the broker's comments, so it is as true as they are; a test fails when it is stale or when a rule has no code or no test. Run it with
// `go generate ./ci/...`.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ackproof/ci/source"
)

//go:generate go run .

const (
	document = "docs/architecture.md"
	begin    = "<!-- rules: begin (written by ci/ruleindex) -->\n"
	end      = "<!-- rules: end -->\n"
)

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, "ruleindex:", err)
		os.Exit(1)
	}
}

func write() error {
	root, _, err := source.Root()
	if err != nil {
		return err
	}
	index, err := Scan(root)
	if err != nil {
		return err
	}
	file := filepath.Join(root, document)
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text, err := Insert(string(old), index.Table())
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// Insert replaces what stands between the marks of a document.
func Insert(text, table string) (string, error) {
	before, rest, ok := strings.Cut(text, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", fmt.Errorf("%s: expected the lines %q and %q", document, begin, end)
	}
	return before + begin + table + end + after, nil
}
