// Command ackproof tests whether a broker keeps what it acknowledged. Every command lives in a file of its own; this one holds what they share:
// the root command and the exit codes.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"ackproof/model"
	"ackproof/nemesis/seccomp"
)

// exitError ends the program with a code. Message is one line for stderr, "" if everything has been said.
type exitError struct {
	code    int
	message string
}

func (e exitError) Error() string { return e.message }

// usagef is the error of wrong usage: one line that says what was expected.
func usagef(format string, args ...any) error {
	return exitError{code: model.ExitUsage, message: fmt.Sprintf(format, args...)}
}

// commands lists what ackproof can do.
func commands() []*cobra.Command {
	return []*cobra.Command{
		newTestCommand(),
		newCheckCommand(),
		newVerifyCommand(),
		newReportCommand(),
		newSimCommand(),
		newSimWorkerCommand(),
		newScoreCommand(),
		newGateCommand(),
		newBrokerCommand(),
		newBenchCommand(),
		newScenarioCommand(),
		newFetchCommand(),
		newConvertCommand(),
		newDoctorCommand(),
	}
}

func main() {
	seccomp.Shim()
	os.Exit(run(os.Args[1:]))
}

// run executes the command line and returns the exit code.
func run(args []string) (code int) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(os.Stderr, "ackproof crashed; this is a bug of ackproof: %v\n%s", p, debug.Stack())
			code = model.ExitCrash
		}
	}()
	root := &cobra.Command{
		Use:           "ackproof",
		Short:         "does this broker keep what it acknowledged?",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(commands()...)
	root.SetArgs(args)
	err := root.Execute()
	var exit exitError
	switch {
	case err == nil:
		return model.ExitHeld
	case errors.As(err, &exit):
		if exit.message != "" {
			fmt.Fprintln(os.Stderr, "ackproof: "+exit.message)
		}
		return exit.code
	default: // cobra's own errors: an unknown command or flag, or a value that does not parse
		fmt.Fprintln(os.Stderr, "ackproof: "+err.Error()+" (see: ackproof help)")
		return model.ExitUsage
	}
}
