package ci

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// Save writes the outcome in every form into the artefact folder and to the outputs. It writes what it can, and tells all that went wrong.
func (o *Outcome) Save(artefacts string, outputs Outputs, version string) error {
	var errs []error
	write := func(raw []byte, err error, paths ...string) {
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
	raw, err := o.JSON()
	write(raw, err, filepath.Join(artefacts, jsonFile))
	raw, err = JUnit(o)
	write(raw, err, filepath.Join(artefacts, junitFile), outputs.JUnit)
	raw, err = SARIF(o, version)
	write(raw, err, filepath.Join(artefacts, sarifFile), outputs.SARIF)
	write(Summary(o, MaxSummary), nil, filepath.Join(artefacts, summaryFile))
	if outputs.Summary != "" {
		errs = append(errs, addSummary(o, outputs.Summary))
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
