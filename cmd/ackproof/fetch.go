package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"ackproof/model"
	"ackproof/systems/kafka/install"
)

// fetched is what fetch tells. JSON.
type fetched struct {
	System  string `json:"system"`
	Version string `json:"version"`
	Folder  string `json:"folder"`
	Files   int    `json:"files"`
	Fresh   bool   `json:"fresh"` // false: it was there already, and whole
}

func newFetchCommand() *cobra.Command {
	var (
		o      install.FetchOptions
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "fetch SYSTEM",
		Short: "bring a real system into the cache",
		Long: `Brings the programs of a real system into the cache, by Maven, and verifies each file against a
checksum that is part of this program. What is there already stays, unless it is damaged.
Systems: kafka.

Exit codes: 0 it is there; 3 it could not be fetched; 254 wrong usage.`,
		Example: `  ackproof fetch kafka
  ackproof fetch kafka --version 3.9.1`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] != "kafka" {
				return usagef("fetch %s, expected a system that can be fetched: kafka", args[0])
			}
			if !slices.Contains(install.Versions(), o.Version) {
				return usagef("--version is %q, expected one of: %s", o.Version, strings.Join(install.Versions(), ", "))
			}
			ctx, stop := signal.NotifyContext(orBackground(cmd.Context()), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return runFetch(ctx, o, asJSON, os.Stdout, os.Stderr)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.Version, "version", install.DefaultVersion, "version: "+strings.Join(install.Versions(), ", "))
	flags.StringVar(&o.Cache, "cache", "", "folder of the cache (default: ackproof in the user's cache folder, on Linux ~/.cache/ackproof)")
	flags.StringVar(&o.Repository, "repository", "", "address of a Maven repository, in the place of Maven Central (default: as Maven's own settings say)")
	flags.BoolVar(&asJSON, "json", false, "what was fetched as JSON on stdout")
	return cmd
}

func runFetch(ctx context.Context, o install.FetchOptions, asJSON bool, stdout, stderr io.Writer) error {
	if _, err := install.Find(o.Cache, o.Version); errors.Is(err, install.ErrMissing) {
		fmt.Fprintf(stderr, "fetching Kafka %s …\n", o.Version)
	}
	in, fresh, err := install.Fetch(ctx, o)
	if err != nil {
		return infrastructure(err)
	}
	result := fetched{System: "kafka", Version: in.Version, Folder: in.Lasting, Files: len(in.Jars), Fresh: fresh}
	if asJSON {
		raw, err := json.MarshalIndent(result, "", "  ")
		if err != nil {
			return exitError{code: model.ExitCrash, message: "encode what was fetched: " + err.Error()}
		}
		_, err = fmt.Fprintf(stdout, "%s\n", raw)
		return err
	}
	how := "was there already"
	if fresh {
		how = "is there now"
	}
	_, err = fmt.Fprintf(stdout, "Kafka %s %s: %d files in %s\n", in.Version, how, len(in.Jars), in.Lasting)
	return err
}
