package harness

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ackproof/model"
	"ackproof/nemesis"
	"ackproof/systems"
)

// Observer is told how a run goes on. Methods may be called from several goroutines.
type Observer interface {
	// Planned comes first, before anything is started.
	Planned(seed int64, replay string, contract model.Contract, faults int)
	Phase(name string, lasts time.Duration) // lasts 0: unknown
	Tick(elapsed time.Duration, text string)
	Note(text string)
}

// Test is one test of one system.
type Test struct {
	Options  Options
	Schedule *nemesis.Schedule                     // nil: drawn from the seed
	Draw     func(systems.Timers) nemesis.Schedule // in its place, makes one that fits the time-outs of the system; nil: drawn from the seed
	Store    string                                // where run directories are made
	Command  []string                              // for run.json
	// Open makes the system; nothing of it runs before Start.
	Open func(systems.Options) (systems.System, error)
	// Ground makes the back end that the run stands on; nil: the portable one, nemesis.Proxies.
	Ground   func() (nemesis.Backend, error)
	Notes    []string // for the report: what whoever made the test has to say of it
	Observer Observer
}

// Outcome is what a run found.
type Outcome struct {
	Results model.Results
	Opinion string   // how far the second opinion reached, in words
	Notes   []string // remarkable things of which no claim speaks
	Dir     string   // the run directory
	Replay  string   // the command that repeats the run
}

// InfraError says that the machinery failed, not the promise: a node did not start, a port or the disk was missing.
type InfraError struct {
	What string
	Err  error
	Dir  string // the run directory, "" if there is none yet
}

func (e *InfraError) Error() string { return e.What + ": " + e.Err.Error() }
func (e *InfraError) Unwrap() error { return e.Err }

func infra(what string, err error) error { return &InfraError{What: what, Err: err} }

// Run carries the test out. Errors are UsageError (nothing was started) or InfraError; a verdict is never an error. When ctx ends, faults
// are healed, everything is stopped and the run is an InfraError; its directory keeps the history so far. Nothing that the run started
// survives it.
func (t Test) Run(ctx context.Context) (out *Outcome, err error) {
	if err := t.Options.Validate(); err != nil {
		return nil, err
	}
	r := &run{Test: t, began: time.Now(), id: newRun()}
	defer func() {
		closing := r.release()
		switch {
		case closing == nil || err != nil:
		case out.Results.Exit == model.ExitViolated: // a violation outranks it
			out.Notes = append(out.Notes, "stop the system: "+closing.Error())
		default:
			out, err = nil, infra("stop the system", closing)
		}
		var e *InfraError
		if errors.As(err, &e) && r.dir.path != "" {
			e.Dir = r.dir.path
		}
	}()
	for _, phase := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"plan", r.plan},
		{"set up", r.setUp},
		{"probe", r.probe},
		{"load", r.load},
		{"heal", r.heal},
		{"drain", r.drain},
		{"check", r.check},
	} {
		err := phase.do(ctx)
		if ctx.Err() != nil { // then everything fails, and this is why
			return nil, infra(phase.name, errors.New("interrupted"))
		}
		if err != nil {
			return nil, err
		}
	}
	return r.outcome(), nil
}

// outcome is told when everything is saved.
func (r *run) outcome() *Outcome {
	return &Outcome{Results: r.results, Opinion: r.opinion, Notes: r.allNotes(), Dir: r.dir.path, Replay: r.replay()}
}

func (r *run) replay() string { return "ackproof test --replay " + r.dir.path }

// tail indents the last lines of a node's log for a message.
func tail(n systems.Node) string {
	lines := strings.TrimRight(n.LogTail(15), "\n")
	if lines == "" {
		return "its log is empty"
	}
	return fmt.Sprintf("the end of its log:\n  | %s", strings.ReplaceAll(lines, "\n", "\n  | "))
}
