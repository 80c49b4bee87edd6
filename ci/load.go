package ci

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"ackproof/model"
)

// Version is the version of the gate file.
const Version = "1"

// Bounds of a gate file.
const (
	maxFile  = 1 << 20 // bytes
	maxTests = 200
	maxSeeds = 1000 // of one test
)

// Flags is what the gate has to know of `ackproof test`.
type Flags struct {
	Names []string // flags that a test may set
	// Check tells what these arguments mean, or what is wrong with them; the text of the error names the flag that is to blame, if there is one.
	Check func(args []string) (Meaning, error)
}

// Meaning is what the arguments of a test mean, as far as the gate has to know.
type Meaning struct {
	Load    time.Duration   // how long one run loads the system
	Permits []model.Anomaly // what the contract permits
}

// FileError says what is wrong with a gate file, and where.
type FileError struct {
	Path string
	Line int // 0: the file as a whole
	Text string
}

func (e FileError) Error() string {
	if e.Line == 0 {
		return e.Path + ": " + e.Text
	}
	return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Text)
}

// Load reads a gate file. Errors are FileError, for the first thing that makes no sense. Fresh seeds are drawn here.
func Load(path string, flags Flags) (*Gate, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, FileError{Path: path, Text: fmt.Sprintf("read the gate file: %v", errors.Unwrap(err))}
	}
	if len(raw) > maxFile {
		return nil, FileError{Path: path, Text: fmt.Sprintf("%d bytes, expected a gate file of at most %d", len(raw), maxFile)}
	}
	d := yaml.NewDecoder(bytes.NewReader(raw))
	var doc yaml.Node
	if err := d.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, FileError{Path: path, Text: "empty, expected a gate: version, budget, tests"}
		}
		return nil, syntax(path, err)
	}
	r := &reader{path: path, flags: flags, gate: &Gate{Path: path}}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, FileError{Path: path, Text: "a second document, expected one gate"}
	}
	if err := r.top(doc.Content[0]); err != nil {
		return nil, err
	}
	return r.gate, nil
}

// syntax makes "yaml: line 3: did not find …" an error of that line.
func syntax(path string, err error) error {
	e := FileError{Path: path, Text: "not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	var rest string
	if n, _ := fmt.Sscanf(err.Error(), "yaml: line %d: ", &e.Line); n == 1 {
		_, rest, _ = strings.Cut(err.Error(), fmt.Sprintf("line %d: ", e.Line))
		e.Text = "not YAML: " + rest
	}
	return e
}

// reader makes a Gate of a YAML document.
type reader struct {
	path     string
	flags    Flags
	gate     *Gate
	defaults *yaml.Node // nil if there are none
}

func (r *reader) wrong(n *yaml.Node, format string, args ...any) error {
	return FileError{Path: r.path, Line: n.Line, Text: fmt.Sprintf(format, args...)}
}

// keys are what a mapping may hold. Each function gets the value.
type keys map[string]func(*yaml.Node) error

// mapping hands each value to its key's function. other, if not nil, is asked about keys that are not listed; it tells whether it knows the key.
func (r *reader) mapping(n *yaml.Node, what string, known keys, other func(key string, value *yaml.Node) (bool, error)) error {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		return r.wrong(n, "%s is %s, expected a mapping of keys and values", what, kind(n))
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolve(n.Content[i+1])
		if line, again := seen[key.Value]; again {
			return r.wrong(key, "%s has the key %q twice, first in line %d", what, key.Value, line)
		}
		seen[key.Value] = key.Line
		set, ok := known[key.Value]
		var err error
		switch {
		case ok:
			err = set(value)
		case other != nil:
			ok, err = other(key.Value, value)
		}
		if err != nil {
			return err
		}
		if !ok {
			return r.wrong(key, "%s has the unknown key %q, expected one of: %s", what, key.Value, r.names(known, other != nil))
		}
	}
	return nil
}

func (r *reader) names(known keys, flags bool) string {
	var names []string
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	if flags {
		names = append(names, r.flags.Names...)
	}
	return strings.Join(names, ", ")
}

// list hands each element of a sequence on.
func (r *reader) list(n *yaml.Node, what string, each func(*yaml.Node) error) error {
	if n.Kind != yaml.SequenceNode {
		return r.wrong(n, "%s is %s, expected a list", what, kind(n))
	}
	for _, element := range n.Content {
		if err := each(resolve(element)); err != nil {
			return err
		}
	}
	return nil
}

// resolve follows an alias to what it stands for.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func kind(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "empty"
	}
	return fmt.Sprintf("%q", n.Value)
}

// text reads a scalar as it is written.
func (r *reader) text(n *yaml.Node, what, expected string) (string, error) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "" {
		return "", r.wrong(n, "%s is %s, expected %s", what, kind(n), expected)
	}
	return n.Value, nil
}

// number reads a whole number within bounds.
func (r *reader) number(n *yaml.Node, what string, from, to int64) (v int64, err error) {
	if n.Kind != yaml.ScalarNode || n.Decode(&v) != nil || n.Tag != "!!int" || v < from || v > to {
		return 0, r.wrong(n, "%s is %s, expected a whole number, %d to %d", what, kind(n), from, to)
	}
	return v, nil
}

// duration reads a Go duration.
func (r *reader) duration(n *yaml.Node, what string) (time.Duration, error) {
	v, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || v <= 0 {
		return 0, r.wrong(n, "%s is %s, expected a duration like 90s or 10m", what, kind(n))
	}
	return v, nil
}

// choice reads one of some words.
func choice[T ~string](r *reader, n *yaml.Node, what string, of ...T) (T, error) {
	if n.Kind != yaml.ScalarNode || !slices.Contains(of, T(n.Value)) {
		return "", r.wrong(n, "%s is %s, expected one of: %s", what, kind(n), words(of))
	}
	return T(n.Value), nil
}

func words[T ~string](of []T) string {
	all := make([]string, len(of))
	for i, w := range of {
		all[i] = string(w)
	}
	return strings.Join(all, ", ")
}

func (r *reader) top(n *yaml.Node) error {
	var version, budget, tests, quarantine *yaml.Node
	keep := func(at **yaml.Node) func(*yaml.Node) error {
		return func(v *yaml.Node) error { *at = v; return nil }
	}
	err := r.mapping(n, "the gate", keys{
		"version": keep(&version), "budget": keep(&budget), "defaults": keep(&r.defaults), "tests": keep(&tests), "quarantine": keep(&quarantine),
	}, nil)
	switch {
	case err != nil:
		return err
	case version == nil:
		return r.wrong(n, "no version, expected version: %s", Version)
	case version.Value != Version:
		return r.wrong(version, "version is %s, expected %s", kind(version), Version)
	case budget == nil:
		return r.wrong(n, "no budget, expected the time that all tests together may take, like budget: 10m")
	case tests == nil:
		return r.wrong(n, "no tests, expected a list")
	}
	if r.gate.Budget, err = r.duration(budget, "budget"); err != nil {
		return err
	}
	if err := r.list(tests, "tests", r.test); err != nil {
		return err
	}
	if len(r.gate.Tests) == 0 || len(r.gate.Tests) > maxTests {
		return r.wrong(tests, "%d tests, expected 1 to %d", len(r.gate.Tests), maxTests)
	}
	if err := r.fits(budget); err != nil {
		return err
	}
	if quarantine == nil {
		return nil
	}
	return r.list(quarantine, "quarantine", r.entry)
}

// fits refuses a budget in which the loads alone have no room.
func (r *reader) fits(budget *yaml.Node) error {
	var all time.Duration
	for _, t := range r.gate.Tests {
		all += t.loads()
	}
	if all >= r.gate.Budget {
		return r.wrong(budget, "the budget is %v, but the loads of all runs alone take %v; expected more, or fewer seeds", r.gate.Budget, all)
	}
	return nil
}

// loads is how long all runs of the test load the system.
func (t Test) loads() time.Duration { return time.Duration(len(t.Seeds)) * t.Load }

func drawSeed() int64 { return rand.Int64N(1_000_000_000) }
