package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"ackproof/broker/node"
	"ackproof/model"
)

func newBrokerCommand() *cobra.Command {
	var (
		local       int
		config, dir string
		sets        []string
	)
	cmd := &cobra.Command{
		Use:   "broker",
		Short: "run reference broker nodes for any Kafka client",
		Long: `Runs the reference broker until it is interrupted (Ctrl-C, SIGTERM): with --local a whole
cluster on loopback, one process per node, whose bootstrap list is printed on stdout when it is
ready; otherwise one node in this process.

Properties have Kafka's names and defaults. Exit codes: 0 stopped cleanly; 3 it could not run
(a port in use, a folder that cannot be written, a node that ended); 254 wrong usage or
configuration.`,
		Example: `  ackproof broker --local 3
  ackproof broker --config node.properties --set log.flush.interval.messages=1`,
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&local, "local", 0, "number of nodes of a cluster on loopback, 1 to 99, on free ports")
	flags.StringVar(&config, "config", "", "properties file of one node")
	flags.StringArrayVar(&sets, "set", nil, "key=value, a property for every node; may be repeated; wins over the file")
	flags.StringVar(&dir, "dir", "", "with --local: folder for data and logs, kept at the end (default: a temporary one, removed at the end)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		changed := cmd.Flags().Changed
		switch {
		case changed("local") && changed("config"):
			return usagef("--local and --config exclude each other")
		case changed("local") && (local < 1 || local > 99):
			return usagef("--local is %d, expected 1 to 99 nodes", local)
		case changed("dir") && !changed("local"):
			return usagef("--dir goes with --local; one node has the property log.dirs")
		case !changed("local") && !changed("config") && len(sets) == 0:
			return usagef("expected --local N, --config FILE, or the properties of one node with --set (see: ackproof help broker)")
		}
		if changed("local") {
			return runLocal(cmd, local, dir, sets)
		}
		if _, err := node.LoadConfig(config, sets); err != nil {
			return usagef("%v", err)
		}
		return infrastructure(node.Main(cmd.Context(), config, sets, os.Stdin, os.Stderr))
	}
	return cmd
}

func runLocal(cmd *cobra.Command, nodes int, dir string, sets []string) error {
	// What RunLocal gives each node by itself is filled in, so that the rest can be judged before anything starts.
	if _, err := node.LoadConfig("", append([]string{"node.id=1", "log.dirs=."}, sets...)); err != nil {
		return usagef("%v", err)
	}
	self, err := os.Executable()
	if err != nil {
		return infrastructure(err)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return infrastructure(node.RunLocal(ctx, nodes, dir, sets, self, os.Stdout, os.Stderr))
}

// infrastructure is the error of something that the machine could not do; nil stays nil.
func infrastructure(err error) error {
	if err == nil {
		return nil
	}
	return exitError{code: model.ExitInfrastructure, message: err.Error()}
}
