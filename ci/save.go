package ci

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
)

// Files in the artefact folder, beside the runs.
const (
	jsonFile    = "gate.json"
	junitFile   = "junit.xml"
	sarifFile   = "results.sarif"
	summaryFile = "summary.md"
)

// Outputs say where else the outcome goes; "" is nowhere.
type Outputs struct {
	JUnit, SARIF string // files to write
	Summary      string // file to add the summary to, as GitHub gives one to each step
}

// JSON is gate.json.
func (o *Outcome) JSON() ([]byte, error) {
	raw, err := json.MarshalIndent(o, "", "  ")
	return append(raw, '\n'), err
}

// ErrBug: a form of the outcome could not be made, which is a bug of ackproof. It must not take the answer with it.
var ErrBug = errors.New("a bug of ackproof")

// made calls a maker of one form and turns a panic into an error.
func made(maker func() ([]byte, error)) (raw []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v\n%s", ErrBug, p, debug.Stack())
		}
	}()
	return maker()
}

// Save writes the outcome in every form into the artefact folder and to the outputs. It writes what it can, and tells all that went wrong.
func (o *Outcome) Save(artefacts string, outputs Outputs, version string) error {
	var errs []error
	write := func(maker func() ([]byte, error), paths ...string) {
		raw, err := made(maker)
		if err != nil {
			errs = append(errs, err)
			return
		}
		for _, path := range paths {
			if path != "" {
				errs = append(errs, os.WriteFile(path, raw, 0o644))
			}
		}
	}
	write(o.JSON, filepath.Join(artefacts, jsonFile))
	write(func() ([]byte, error) { return JUnit(o) }, filepath.Join(artefacts, junitFile), outputs.JUnit)
	write(func() ([]byte, error) { return SARIF(o, version) }, filepath.Join(artefacts, sarifFile), outputs.SARIF)
	write(func() ([]byte, error) { return Summary(o, MaxSummary), nil }, filepath.Join(artefacts, summaryFile))
	if outputs.Summary != "" {
		_, err := made(func() ([]byte, error) { return nil, addSummary(o, outputs.Summary) })
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// addSummary appends to what the step has written there before; together they keep to the limit.
func addSummary(o *Outcome, path string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("write the summary: %w", err)
	}
	info, err := f.Stat()
	if err == nil {
		_, err = f.Write(Summary(o, MaxSummary-int(min(info.Size(), MaxSummary))))
	}
	return errors.Join(err, f.Close())
}
