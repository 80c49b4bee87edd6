package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ackproof/ci"
	"ackproof/harness"
	"ackproof/model"
	"ackproof/report"
)

// gateFlags are the flags of `ackproof gate`.
type gateFlags struct {
	outputs   ci.Outputs
	artefacts string
	keepGoing bool
	json      bool
	quiet     bool
}

func newGateCommand() *cobra.Command {
	var f gateFlags
	cmd := &cobra.Command{
		Use:   "gate [FILE]",
		Short: "a CI gate: a list of tests with budgets and expectations",
		Long: `Runs the tests of FILE (default ackproof-gate.yaml) in order, each run in a process of its own,
within the budget that the file sets, and compares what they find with what the file expects.
It stops at the first violation; only what could not run is tried again. docs/ci.md explains
the file, and how to use the command in a pipeline.

Exit codes: 0 everything as expected; 1 a claim is violated, or something else than the file
expects (an expired quarantine, a planted bug that was not found, more permitted loss); 2 a
claim is undecided or not tested; 3 a test could not run; 254 wrong usage or a senseless file;
255 a run crashed. 1 outranks 255, that 3, that 2.`,
		Example: `  ackproof gate
  ackproof gate nightly.yaml --junit junit.xml --sarif results.sarif`,
		Args: cobra.MaximumNArgs(1),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.outputs.JUnit, "junit", "", "file for JUnit XML")
	flags.StringVar(&f.outputs.SARIF, "sarif", "", "file for SARIF 2.1.0")
	flags.StringVar(&f.outputs.Summary, "summary", os.Getenv("GITHUB_STEP_SUMMARY"), "file to add a Markdown summary to (default $GITHUB_STEP_SUMMARY)")
	flags.StringVar(&f.artefacts, "artefacts", "ackproof-gate", "folder for everything that stays: all outputs, what each run said, and the run directories")
	flags.BoolVar(&f.keepGoing, "keep-going", false, "go on after a violation, with that load and with the other tests")
	flags.BoolVar(&f.json, "json", false, "outcome as JSON on stdout, all else on stderr")
	flags.BoolVar(&f.quiet, "quiet", false, "no progress on stderr")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		path := "ackproof-gate.yaml"
		if len(args) > 0 {
			path = args[0]
		}
		return runGate(cmd.Context(), path, f, os.Stdout, os.Stderr)
	}
	return cmd
}

func runGate(ctx context.Context, path string, f gateFlags, stdout, stderr io.Writer) error {
	gate, err := ci.Load(path, ci.Flags{Names: gatedFlags(), Check: checkGated})
	if err != nil {
		return usagef("%v", err)
	}
	self, err := os.Executable()
	if err != nil {
		return exitError{code: model.ExitInfrastructure, message: "find the own program, to run each test in a process of its own: " + err.Error()}
	}
	ctx, stop := signal.NotifyContext(orBackground(ctx), os.Interrupt, syscall.SIGTERM)
	defer stop()
	progress := report.NewProgress(stderr, f.quiet)
	progress.Note(gate.String())
	out, err := ci.Runner{Gate: gate, Binary: self, Artefacts: f.artefacts, KeepGoing: f.keepGoing, Observer: progress}.Run(ctx)
	progress.Done()
	if err != nil {
		return exitError{code: model.ExitInfrastructure, message: err.Error()}
	}
	text := ci.Text(out, f.artefacts)
	if f.json {
		raw, err := out.JSON()
		if err != nil {
			return exitError{code: model.ExitCrash, message: "encode the outcome: " + err.Error()}
		}
		stdout.Write(raw)
		if !f.quiet {
			io.WriteString(stderr, text)
		}
	} else {
		io.WriteString(stdout, text)
	}
	if os.Getenv("GITHUB_ACTIONS") == "true" {
		for _, a := range ci.Annotations(out) {
			fmt.Fprintln(stderr, a)
		}
	}
	code, message := out.Exit, ""
	if err := out.Save(f.artefacts, f.outputs, harness.Build()); err != nil {
		message = "write the outcome: " + err.Error()
		wrong := model.ExitInfrastructure
		if errors.Is(err, ci.ErrBug) {
			wrong = model.ExitCrash
		}
		code = ci.WorseExit(code, wrong)
	}
	if code != model.ExitHeld {
		return exitError{code: code, message: message}
	}
	return nil
}

// notGated are the flags of `ackproof test` that the gate sets itself, or has keys for.
var notGated = []string{"seed", "claims", "replay", "store", "json", "quiet", "keep-going", "help"}

// gatedFlags are the flags of `ackproof test` that a gate file may set.
func gatedFlags() []string {
	var names []string
	new(testFlags).command().Flags().VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(notGated, f.Name) {
			names = append(names, f.Name)
		}
	})
	return names
}

// checkGated reads the arguments of a gated test as `ackproof test` will.
func checkGated(args []string) (ci.Meaning, error) {
	var f testFlags
	cmd := f.command()
	if err := cmd.ParseFlags(args); err != nil {
		return ci.Meaning{}, err
	}
	test, err := f.test(cmd)
	if err != nil {
		var exit exitError
		if errors.As(err, &exit) {
			err = errors.New(exit.message)
		}
		return ci.Meaning{}, err
	}
	m := ci.Meaning{Load: time.Duration(test.Options.Time)}
	for _, p := range test.Options.Contract().Promises {
		for a := range p.Permits {
			if !slices.Contains(m.Permits, a) {
				m.Permits = append(m.Permits, a)
			}
		}
	}
	slices.Sort(m.Permits)
	return m, nil
}
