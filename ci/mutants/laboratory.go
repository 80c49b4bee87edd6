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

// laboratory builds and runs the tests of edited packages.
type laboratory struct {
	root    string // of the module
	module  string
	scratch string
	limit   time.Duration
	passed  map[string]bool // packages whose tests pass without any edit
}

// sound makes sure that the tests of a package pass as it is: otherwise they would kill everything.
func (l *laboratory) sound(ctx context.Context, folder string) error {
	if l.passed[folder] {
		return nil
	}
	killer, err := l.test(ctx, folder, "", "")
	switch {
	case err != nil:
		return err
	case killer != "":
		return fmt.Errorf("the tests of %s fail without any edit (%s), so they prove nothing", folder, killer)
	}
	if l.passed == nil {
		l.passed = make(map[string]bool)
	}
	l.passed[folder] = true
	return nil
}

// try makes one edit and runs the tests.
func (l *laboratory) try(ctx context.Context, c Checker, m Mutant) (r result) {
	begin := time.Now()
	defer func() { r.took = time.Since(begin) }()
	overlay, err := l.edit(m)
	if err != nil {
		return result{fate: invalid, err: err}
	}
	for _, folder := range c.Packages {
		killer, err := l.test(ctx, folder, overlay, c.First)
		switch {
		case err != nil:
			return result{fate: invalid, err: err}
		case killer != "":
			return result{fate: killed, by: killer}
		}
	}
	return result{fate: survived}
}

// edit writes the edited file and the overlay that puts it in the place of the real one.
func (l *laboratory) edit(m Mutant) (overlay string, err error) {
	file := filepath.Join(l.root, m.File)
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	edited, err := m.apply(string(text))
	if err != nil {
		return "", err
	}
	copied := filepath.Join(l.scratch, "edited.go")
	if err := os.WriteFile(copied, []byte(edited), 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {file: copied}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(l.scratch, "overlay.json")
	return overlay, os.WriteFile(overlay, replace, 0o600)
}

// test builds the tests of a folder and runs them, those that match first before all. It answers which test failed, "" if none did. Building apart from running
// tells an edit that does not compile from one that a test notices.
func (l *laboratory) test(ctx context.Context, folder, overlay, first string) (killer string, err error) {
	binary := filepath.Join(l.scratch, "tests")
	args := []string{"test", "-c", "-vet=off", "-o", binary}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	build := exec.CommandContext(ctx, "go", append(args, l.module+"/"+folder)...)
	build.Dir = l.root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the tests of %s: %w\n%s", folder, err, bytes.TrimSpace(out))
	}
	if first != "" {
		if killer, err := l.start(ctx, folder, binary, "-test.run", first); killer != "" || err != nil {
			return killer, err
		}
	}
	return l.start(ctx, folder, binary)
}

// start runs a test binary where `go test` would.
func (l *laboratory) start(ctx context.Context, folder, binary string, args ...string) (killer string, err error) {
	bounded, cancel := context.WithTimeout(ctx, l.limit)
	defer cancel()
	tests := exec.CommandContext(bounded, binary, append(args, "-test.failfast", "-test.paniconexit0")...)
	tests.Dir = filepath.Join(l.root, folder)
	tests.Env = append(os.Environ(), "RAPID_NOFAILFILE=1") // the tree stays as it is, also when a property fails
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
