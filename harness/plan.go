package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"ackproof/model"
	"ackproof/nemesis"
)

// PlanVersion is the version of run.json.
const PlanVersion = 1

// Plan is run.json: all that is needed to do the run again.
type Plan struct {
	Version     int              `json:"version"`
	Seed        int64            `json:"seed"`
	Run         string           `json:"run"` // id of the run, in the topic's name and in every value
	Started     time.Time        `json:"started"`
	Command     []string         `json:"command,omitempty"`
	Options     Options          `json:"options"`
	Contract    model.Contract   `json:"contract"`
	Schedule    nemesis.Schedule `json:"schedule"`
	Versions    Versions         `json:"versions"`
	Environment Environment      `json:"environment"`
}

// Versions say what was run.
type Versions struct {
	Ackproof string           `json:"ackproof"`
	System   model.SystemInfo `json:"system"`
}

// Environment says where.
type Environment struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPUs int    `json:"cpus"`
	Go   string `json:"go"`
}

// newRun draws the id of a run. A replay has an id of its own: what an earlier run left anywhere must not pass for this one's.
func newRun() uint64 { return rand.Uint64() | 1 }

func here() Environment {
	return Environment{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version()}
}

// Build names this build of ackproof: the revision that it was made from, "+" if the tree was changed, or "unknown".
func Build() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+"
		}
	}
	if len(revision) < 12 {
		return "unknown"
	}
	return revision[:12] + changed
}

// LoadPlan reads the run.json of a run directory.
func LoadPlan(dir string) (Plan, error) {
	path := filepath.Join(dir, planFile)
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return Plan{}, usage("%s: no %s in it, expected the directory of a run", dir, planFile)
	}
	if err != nil {
		return Plan{}, fmt.Errorf("read the plan of a run: %w", err)
	}
	var p Plan
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return Plan{}, usage("%s: byte %d: %v, expected a plan of version %d", path, d.InputOffset(), err, PlanVersion)
	}
	if p.Version != PlanVersion {
		return Plan{}, usage("%s is of version %d, expected %d", path, p.Version, PlanVersion)
	}
	return p, nil
}

// LoadFacts reads what the harness of a run knew beside its history. A run that did not come to its end has none: then no claim is held.
func LoadFacts(dir string) (f model.Facts, err error) {
	path := filepath.Join(dir, factsFile)
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return model.Facts{Broken: "the run did not come to its end, " + path + " is missing"}, nil
	}
	if err != nil {
		return f, fmt.Errorf("read the facts of a run: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return f, usage("%s: byte %d: %v, expected the facts of a run", path, d.InputOffset(), err)
	}
	return f, nil
}
