package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"ackproof/bench"
	"ackproof/broker/node"
	"ackproof/report"
)

// The number of measured records, unless it is given: some seconds of load either way.
const (
	benchRecords     = 1_000_000
	benchSyncRecords = 20_000
)

func newBenchCommand() *cobra.Command {
	var (
		c                     bench.Config
		bootstrap, acks, size string
		asJSON, quiet         bool
	)
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "load a Kafka-protocol cluster and print throughput, latency and cost",
		Long: `Loads a cluster that speaks Kafka's protocol and prints MB/s, records/s and latency quantiles;
of server processes on this machine also CPU and memory. MB and GB are 10^6 and 10^9 bytes of
values. Latency is counted from handing a record to the client until its acknowledgement: without
--sync that includes the time that it waits in the client's buffers.

A server on a JVM needs about three million records of --warmup before it is at its best.

Exit codes: 0 measured; 3 not measured, because the cluster could not be reached, refused a
record or stood still for 30 s; 254 wrong usage.`,
		Example: `  ackproof bench
  ackproof bench --bootstrap 127.0.0.1:9092 --warmup 3000000 --consume --json
  ackproof bench --sync --clients 8`,
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&bootstrap, "bootstrap", "", "host:port[,host:port…] of the cluster (default: starts broker --local 3 and stops it at the end)")
	flags.Int64Var(&c.Records, "records", benchRecords, fmt.Sprintf("measured records of all clients; %d with --sync", benchSyncRecords))
	flags.Int64Var(&c.Warmup, "warmup", 0, "records that are sent before and not measured; at least one per client")
	flags.StringVar(&size, "size", "1024", "size of a value, in bytes or with a unit (64KiB)")
	flags.StringVar(&acks, "acks", "all", "who must have a record before it is acknowledged: 0, 1 or all (idempotent)")
	flags.IntVar(&c.Clients, "clients", 1, "number of producers")
	flags.BoolVar(&c.Sync, "sync", false, "one record in flight per client, without linger")
	flags.BoolVar(&c.Consume, "consume", false, "read the measured records back, measured too")
	flags.StringVar(&c.Topic, "topic", "", "topic, created if it is missing and kept (default: a new one, deleted at the end)")
	flags.IntVar(&c.Partitions, "partitions", 6, "partitions of a topic that is created")
	flags.IntVar(&c.Replication, "replication", 3, "copies of each partition of a topic that is created; from 3 on, all but one must be in sync for acks=all")
	flags.IntSliceVar(&c.Servers, "server-pids", nil, "process ids of the servers, to read their CPU time and memory; known of a cluster that was started here")
	flags.BoolVar(&asJSON, "json", false, "result as JSON on stdout, all else on stderr")
	flags.BoolVar(&quiet, "quiet", false, "no progress on stderr")
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		bytes, err := humanize.ParseBytes(size)
		if err != nil || bytes > bench.MaxSize {
			return usagef("--size is %q, expected 1 to %d bytes", size, bench.MaxSize)
		}
		c.Size = int(bytes)
		if c.Acks, err = parseAcks(acks); err != nil {
			return err
		}
		if c.Sync && !cmd.Flags().Changed("records") {
			c.Records = benchSyncRecords
		}
		ownCluster := !cmd.Flags().Changed("bootstrap")
		if ownCluster && len(c.Servers) > 0 {
			return usagef("--server-pids goes with --bootstrap; of a cluster that is started here they are known")
		}
		c.Bootstrap = list(bootstrap)
		checked := c
		if ownCluster {
			checked.Bootstrap = []string{"known when it is started"}
		}
		if err := checked.Validate(); err != nil {
			return usagef("%v", err)
		}

		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		var ready *float64
		if ownCluster {
			cluster, err := startLocal(ctx, 3)
			if err != nil {
				return infrastructure(fmt.Errorf("start the reference broker: %w", err))
			}
			defer func() { err = errors.Join(err, infrastructure(cluster.stop())) }()
			c.Bootstrap, c.Servers, ready = cluster.bootstrap, cluster.pids, &cluster.ready
		}
		progress := report.NewProgress(os.Stderr, quiet)
		result, err := bench.Run(ctx, c, benchProgress(progress))
		progress.Done()
		if err != nil {
			return infrastructure(err)
		}
		result.ReadySeconds = ready
		if asJSON {
			return infrastructure(json.NewEncoder(os.Stdout).Encode(result))
		}
		return infrastructure(result.WriteText(os.Stdout))
	}
	return cmd
}

// benchProgress tells the progress of the bench's phases.
func benchProgress(p *report.Progress) bench.Progress {
	var phase string
	var begin time.Time
	return func(name string, done, total int64) {
		if name != phase {
			phase, begin = name, time.Now()
			p.Phase(name, 0)
		}
		p.Tick(time.Since(begin), fmt.Sprintf("%s of %s records", humanize.Comma(done), humanize.Comma(total)))
	}
}

// localCluster is a cluster of the reference broker that runs for the length of a bench.
type localCluster struct {
	bootstrap []string
	pids      []int   // of the nodes; empty where /proc does not tell
	ready     float64 // seconds from the start of the processes
	cancel    context.CancelFunc
	ended     chan error
}

// startLocal is `ackproof broker --local N` as a part of this process.
func startLocal(ctx context.Context, nodes int) (*localCluster, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &localCluster{cancel: cancel, ended: make(chan error, 1)}
	reader, writer := io.Pipe()
	begin := time.Now()
	go func() {
		err := node.RunLocal(ctx, nodes, "", nil, self, writer, os.Stderr)
		writer.CloseWithError(io.EOF)
		c.ended <- err
	}()
	line, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		if ended := c.stop(); ended != nil {
			return nil, ended
		}
		return nil, context.Canceled
	}
	c.ready = time.Since(begin).Seconds()
	c.bootstrap = list(strings.TrimSpace(line))
	c.pids = bench.Children(os.Getpid())
	return c, nil
}

// stop ends the cluster and waits until its processes and its folder are gone.
func (c *localCluster) stop() error {
	c.cancel()
	return <-c.ended
}
