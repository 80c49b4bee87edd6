package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fate is what became of a mutant.
type fate string

const (
	killed   fate = "killed"   // a test failed, or did not end
	survived fate = "SURVIVED" // all tests passed
	invalid  fate = "INVALID"  // the list is stale, the edit does not compile, or the tests could not be run
)

// result is one trial.
type result struct {
	fate fate
	by   string // the test that killed it
	err  error  // why it is invalid
	took time.Duration
}

func (r result) because() string {
	switch r.fate {
	case killed:
		return ": " + r.by
	case invalid:
		return ": " + r.err.Error()
	}
	return ""
}

// laboratory builds the tests of packages with their mutants woven in, and runs them.
type laboratory struct {
	root     string // of the module
	module   string
	scratch  string
	limit    time.Duration
	binaries map[string]string // folder → its tests
	bad      map[int]error     // mutants that cannot live
}

// prepare builds the tests of a folder with the mutants of others and its own, and makes sure that they pass as long as none is alive: otherwise they would kill everything.
func (l *laboratory) prepare(ctx context.Context, folder string, edits []numbered) error {
	binary := filepath.Join(l.scratch, strings.ReplaceAll(folder, "/", "-")+".test")
	for {
		edits = slices.DeleteFunc(edits, func(e numbered) bool { return l.bad[e.n] != nil })
		overlay, err := l.overlay(edits)
		if err != nil {
			return err
		}
		out, err := l.build(ctx, folder, binary, overlay)
		if err == nil {
			break
		}
		culprits := complaint.FindAllSubmatch(out, -1)
		if len(culprits) == 0 || ctx.Err() != nil {
			return fmt.Errorf("build the tests of %s: %w\n%s", folder, err, bytes.TrimSpace(out))
		}
		for _, c := range culprits {
			n, err := strconv.Atoi(string(c[1]))
			if err != nil {
				return err
			}
			l.bad[n] = fmt.Errorf("it does not compile: %s", c[2])
		}
	}
	l.binaries[folder] = binary
	killer, err := l.start(ctx, folder, 0)
	if err == nil && killer != "" {
		err = fmt.Errorf("the tests of %s fail without any edit (%s), so they prove nothing", folder, killer)
	}
	return err
}

// complaint is the compiler's about a mutant: weave has named the lines after it.
var complaint = regexp.MustCompile(`(?m)mutant(\d+)\.go:[\d:]+ (.*)$`)

// overlay weaves the mutants into copies of their files, and writes down which file each copy stands for. One that is stale is bad and left out.
func (l *laboratory) overlay(edits []numbered) (string, error) {
	byFile := make(map[string][]numbered)
	for _, e := range edits {
		byFile[e.File] = append(byFile[e.File], e)
	}
	replace := make(map[string]string)
	put := func(file, text string) error {
		copied := filepath.Join(l.scratch, strings.ReplaceAll(file, "/", "-"))
		replace[filepath.Join(l.root, file)] = copied
		return os.WriteFile(copied, []byte(text), 0o600)
	}
	for file, edits := range byFile {
		text, err := os.ReadFile(filepath.Join(l.root, file))
		if err != nil {
			return "", err
		}
		edits = slices.DeleteFunc(edits, func(e numbered) bool {
			_, _, err := weave(string(text), []numbered{e})
			if err != nil {
				l.bad[e.n] = err
			}
			return err != nil
		})
		woven, choice, err := weave(string(text), edits)
		if err != nil {
			return "", err
		}
		if err := errors.Join(put(file, woven), put(filepath.Join(filepath.Dir(file), "mutant__chosen.go"), choice)); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(l.scratch, "overlay.json")
	return name, os.WriteFile(name, text, 0o600)
}

func (l *laboratory) build(ctx context.Context, folder, binary, overlay string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-gcflags="+l.module+"/...=-e", "-o", binary, "-overlay", overlay, l.module+"/"+folder)
	cmd.Dir = l.root
	return cmd.CombinedOutput()
}

// try runs the tests of a checker with one mutant alive: in each of its packages those that kill most, then all.
func (l *laboratory) try(ctx context.Context, c Checker, e numbered) (r result) {
	begin := time.Now()
	defer func() { r.took = time.Since(begin) }()
	if err := l.bad[e.n]; err != nil {
		return result{fate: invalid, err: err}
	}
	runs := [][]string{nil}
	if c.First != "" {
		runs = [][]string{{"-test.run", c.First}, nil}
	}
	for _, folder := range c.Packages {
		for _, args := range runs {
			switch killer, err := l.start(ctx, folder, e.n, args...); {
			case err != nil:
				return result{fate: invalid, err: err}
			case killer != "":
				return result{fate: killed, by: killer}
			}
		}
	}
	return result{fate: survived}
}

// start runs the tests of a folder where `go test` would. It answers which failed first, "" if none did.
func (l *laboratory) start(ctx context.Context, folder string, n int, args ...string) (killer string, err error) {
	bounded, cancel := context.WithTimeout(ctx, l.limit)
	defer cancel()
	tests := exec.CommandContext(bounded, l.binaries[folder], append(args, "-test.failfast", "-test.paniconexit0")...)
	tests.Dir = filepath.Join(l.root, folder)
	tests.Env = append(os.Environ(), fmt.Sprintf("%s=%d", chooser, n), "RAPID_NOFAILFILE=1") // the tree stays as it is, also when a property fails
	tests.WaitDelay = 5 * time.Second
	out, err := tests.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case bounded.Err() != nil:
		return fmt.Sprintf("no end within %v", l.limit), ctx.Err()
	case errors.As(err, &exit):
		return failed(out), nil
	}
	return "", fmt.Errorf("run the tests of %s: %w", folder, err)
}

var failure = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// failed names the first test that failed in the output of a test binary.
func failed(out []byte) string {
	if found := failure.FindSubmatch(out); found != nil {
		return string(found[1])
	}
	return "a panic"
}
