// Command overhead measures what the sandbox costs the system that runs in it: the reference broker on plain loopback, behind the packet switch, on the file systems that can lose their power,
// and on both, each loaded by the same client code (package bench) in the same run. It prints medians and their ratios to plain loopback.
//
// Everything runs inside the sandbox, plain loopback too, so that nothing differs but what is measured. Each round starts the four clusters anew, one after the other. A client's records go through the switch
// like those between nodes. The time that a flush takes on the file systems is 0 and nothing reaches a medium, so that a flush there can be cheaper than on a real disk. It injects no fault.
//
// Start reading at grounds. Exit codes: 0 measured; 1 not; 2 wrong usage. Linux only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"ackproof/bench"
	"ackproof/nemesis"
	"ackproof/nemesis/lossy"
	"ackproof/nemesis/sandbox"
	"ackproof/systems"
	"ackproof/systems/reference"
)

// nodes of each cluster.
const nodes = 3

// options is what the flags say.
type options struct {
	executable string
	dir        string
	rounds     int
	records    int64 // of 1 KiB, of the throughput
	one        int64 // with one in flight, of the latency
	flush      bool
}

func main() {
	var o options
	flag.StringVar(&o.executable, "ackproof", "", "`file` of the command ackproof, whose broker is measured (default: it is built)")
	flag.StringVar(&o.dir, "dir", os.TempDir(), "`directory` for the data of the clusters")
	flag.IntVar(&o.rounds, "rounds", 5, "`number` of rounds")
	flag.Int64Var(&o.records, "records", 400_000, "`records` of 1 KiB for the throughput of each cluster and round")
	flag.Int64Var(&o.one, "one", 5_000, "`records` with one in flight for the latency of each cluster and round")
	flag.BoolVar(&o.flush, "flush", false, "the brokers flush each batch before they acknowledge it")
	flag.Parse()
	if flag.NArg() > 0 || o.rounds < 1 || o.records < 1 || o.one < 1 {
		fmt.Fprintln(os.Stderr, "overhead: expected flags only, and at least one round and one record of each kind")
		os.Exit(2)
	}
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "overhead:", err)
		os.Exit(1)
	}
}

// run measures, in the sandbox.
func run(o options) (err error) {
	inside, code, err := sandbox.Enter()
	if err != nil || !inside {
		if code != 0 {
			os.Exit(code)
		}
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp(o.dir, "ackproof-overhead-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if o.executable == "" {
		o.executable = filepath.Join(dir, "ackproof")
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", o.executable, "ackproof/cmd/ackproof").CombinedOutput(); err != nil {
			return fmt.Errorf("build ackproof: %w: %s", err, out)
		}
	}
	made, gone, err := places(o.rounds)
	if err != nil {
		return err
	}
	fmt.Printf("the sandbox's places of %d nodes, median of %d: made in %.1f ms, gone in %.1f ms\n\n", nodes, o.rounds, 1e3*median(made), 1e3*median(gone))
	all := grounds()
	for round := range o.rounds {
		for i := range all {
			g := &all[i]
			where := filepath.Join(dir, fmt.Sprintf("%d-%d", round, i))
			if err := g.measure(ctx, o, where); err != nil {
				return fmt.Errorf("%s, round %d: %w", g.name, round+1, err)
			}
			if err := os.RemoveAll(where); err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "round %d of %d, %s: %.1f MB/s, %.2f ms\n", round+1, o.rounds, g.name, g.throughput[round], g.middle[round])
		}
	}
	return print(os.Stdout, all)
}

// places makes and ends the sandbox's places, so many times; in seconds.
func places(times int) (made, gone []float64, err error) {
	for range times {
		begin := time.Now()
		b, err := sandbox.New()
		if err != nil {
			return nil, nil, err
		}
		for id := 1; id <= nodes; id++ {
			if _, err := b.Address(id, 0); err != nil {
				return nil, nil, errors.Join(err, b.Close())
			}
		}
		made = append(made, time.Since(begin).Seconds())
		begin = time.Now()
		if err := b.Close(); err != nil {
			return nil, nil, err
		}
		gone = append(gone, time.Since(begin).Seconds())
	}
	return made, gone, nil
}

// ground is where a cluster runs, and what was measured of it, by round.
type ground struct {
	name string
	make func() (nemesis.Backend, error) // nil: plain loopback
	// MB/s with full batches; ms with one record in flight: median and 99th percentile; seconds of the servers' processors for each GB.
	throughput, middle, late, cpu []float64
}

// grounds are all of them, the one to which the others are compared first.
func grounds() []ground {
	behind := func() (nemesis.Backend, error) { return sandbox.New() }
	return []ground{
		{name: "plain loopback"},
		{name: "packet switch", make: behind},
		{name: "file systems that can lose power", make: func() (nemesis.Backend, error) { return nemesis.WithDisks(nemesis.NewProxies(), lossy.Options{}), nil }},
		{name: "both", make: func() (nemesis.Backend, error) {
			b, err := behind()
			if err != nil {
				return nil, err
			}
			return nemesis.WithDisks(b, lossy.Options{}), nil
		}},
	}
}

// measure starts a cluster there, loads it and ends it.
func (g *ground) measure(ctx context.Context, o options, dir string) (err error) {
	so := systems.Options{Dir: dir, Nodes: nodes, Topic: "ackproof-overhead", Partitions: 1, Replication: nodes, MinISR: nodes - 1, Acks: -1, Idempotent: true, FlushEach: o.flush}
	if g.make != nil {
		b, err := g.make()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.Close()) }()
		so.Host = b // the proxies of its network are not used
	}
	cluster, err := reference.New(so, o.executable)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	if err := cluster.Start(ctx); err != nil {
		return err
	}
	c := bench.Config{Partitions: 6, Replication: nodes, Size: 1024, Acks: -1, Clients: 1, Records: o.records, Warmup: o.records / 4}
	for _, n := range cluster.Nodes() {
		c.Bootstrap, c.Servers = append(c.Bootstrap, n.Addr()), append(c.Servers, n.PID())
	}
	full, err := bench.Run(ctx, c, nil)
	if err != nil {
		return err
	}
	c.Sync, c.Records, c.Warmup = true, o.one, o.one/4
	single, err := bench.Run(ctx, c, nil)
	if err != nil {
		return err
	}
	g.throughput = append(g.throughput, full.Produce.MBPerSecond)
	g.middle, g.late = append(g.middle, single.Produce.Latency.P50), append(g.late, single.Produce.Latency.P99)
	g.cpu = append(g.cpu, *full.Produce.ServerCPUPerGB)
	return nil
}

// print the medians, and beside each its ratio to the first ground's.
func print(out io.Writer, all []ground) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "reference broker, %d nodes, acks=all, 1 KiB\tMB/s\tratio\tone in flight: p50 ms\tratio\tp99 ms\tratio\tserver CPU s/GB\tratio\n", nodes)
	for _, g := range all {
		fmt.Fprint(t, g.name)
		for _, pair := range [][2][]float64{{g.throughput, all[0].throughput}, {g.middle, all[0].middle}, {g.late, all[0].late}, {g.cpu, all[0].cpu}} {
			fmt.Fprintf(t, "\t%.2f\t%.2f", median(pair[0]), median(pair[0])/median(pair[1]))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
