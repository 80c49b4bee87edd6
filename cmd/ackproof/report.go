package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"ackproof/harness"
	"ackproof/histories"
	"ackproof/model"
)

func newReportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "report RUNDIR",
		Short: "write the page of a run",
		Long: `Writes report.html into the directory of a run, or writes it anew: one file that asks nobody for
anything and holds every operation of the run.

Exit codes: 0 written; 3 it could not be written; 254 RUNDIR is not the directory of a run that
came to its end, or something in it is damaged or newer than this ackproof.`,
		Example: `  ackproof report store/latest`,
		Args:    cobra.ExactArgs(1),
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error { return runReport(args[0], os.Stdout) }
	return cmd
}

func runReport(dir string, stdout io.Writer) error {
	path, err := harness.WriteReport(dir)
	if err != nil {
		return reportError(err)
	}
	fmt.Fprintln(stdout, path)
	return nil
}

// reportError tells what is wrong with a run directory from what is wrong with the disk.
func reportError(err error) error {
	var wrong harness.UsageError
	if errors.As(err, &wrong) || errors.Is(err, histories.ErrMalformed) {
		return usagef("%v", err)
	}
	return exitError{code: model.ExitInfrastructure, message: err.Error()}
}
