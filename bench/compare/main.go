// Command compare measures the reference broker against a Kafka cluster on the same machine and in the same run, and prints every figure as it comes and a table at the end.
//
// Both clusters have three nodes and are loaded by the same client code (package bench). The load parts go in rounds that alternate between the two, after a warm-up of both. Figures
// of a round are given as smallest, median and largest; ratios are those of the medians. Each part has a time limit: one that fails or takes longer is reported with its reason, and
// the rest goes on.
//
// The reference broker is started here. Kafka is a list of addresses of a cluster that runs, whose processes are found by the ports that they listen on; or, for the parts that start and
// kill nodes, a command that starts a new one (--kafka-up). Start reading at parts. Exit codes: 0 all parts were measured, whether goals were met or not; 1 some were not; 2 wrong usage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options is what the flags say.
type options struct {
	executable string        // of the reference broker, "" = build it
	up, down   string        // shell commands of the Kafka cluster
	kafka      []string      // addresses of a Kafka cluster that runs
	dir        string        // for the reference broker's data
	out        string        // file for the table
	only       []string      // parts
	rounds     int           // of the load parts
	warmup     int64         // records of 1 KiB that both clusters get first
	scale      float64       // of the number of measured records
	limit      time.Duration // of one part
	verbose    io.Writer
}

func main() {
	var o options
	var kafka, only string
	flag.StringVar(&o.executable, "ackproof", "", "`file` of the command ackproof, whose broker is measured (default: it is built)")
	flag.StringVar(&o.up, "kafka-up", "", "shell `command` that starts a new Kafka cluster of three nodes and prints its bootstrap addresses, separated by commas, as the last line of its output; "+
		"ACKPROOF_SESSION_MS is the broker session that it shall have, 9000 or 2000")
	flag.StringVar(&o.down, "kafka-down", "", "shell `command` that ends that cluster")
	flag.StringVar(&kafka, "kafka-bootstrap", "", "`addresses` of a Kafka cluster on this machine that runs already, instead of --kafka-up; parts that start or kill its nodes are left out")
	flag.StringVar(&o.dir, "dir", os.TempDir(), "`directory` for the data of the reference broker; the warm-up alone takes 9 GB there, and the same again where Kafka has its own")
	flag.StringVar(&o.out, "out", "", "`file` for the table too")
	flag.StringVar(&only, "only", "", "parts to run, separated by `commas`: "+strings.Join(partNames(), ", ")+" (default: all)")
	flag.IntVar(&o.rounds, "rounds", 4, "`number` of rounds of each load part")
	flag.Int64Var(&o.warmup, "warmup", 3_000_000, "`records` of 1 KiB that both clusters get before the load parts; a JVM needs about 3 million")
	flag.Float64Var(&o.scale, "scale", 1, "`factor` of the number of measured records: below 1 for a quick look")
	flag.DurationVar(&o.limit, "limit", 5*time.Minute, "`time` limit of each part and of each of its rounds")
	flag.Parse()
	o.kafka, o.only, o.verbose = listOf(kafka), listOf(only), os.Stderr
	if err := o.check(flag.NArg()); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		stop()
		os.Exit(1)
	}
}

func listOf(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
}

func (o options) check(arguments int) error {
	for _, name := range o.only {
		if !slices.Contains(partNames(), name) {
			return fmt.Errorf("--only %s: expected some of %v", name, partNames())
		}
	}
	switch {
	case arguments > 0:
		return errors.New("expected flags only")
	case (o.up == "") == (len(o.kafka) == 0):
		return errors.New("expected one of --kafka-up and --kafka-bootstrap")
	case (o.up == "") != (o.down == ""):
		return errors.New("--kafka-up and --kafka-down go together")
	case o.rounds < 1, o.warmup < 0, o.scale <= 0, o.limit <= 0:
		return errors.New("expected at least one round, no negative warm-up, and a scale and a limit above 0")
	}
	return nil
}

// part is one group of figures.
type part struct {
	name string
	run  func(context.Context, *comparison) error
}

// parts in the order in which they are measured: those that begin with new clusters first, so that the loaded ones need not be started for nothing.
var parts = []part{
	{"start", measureStart}, {"failover", measureFailover}, {"partitions", measurePartitions}, {"load", measureLoad}, {"hops", measureHops},
}

func partNames() []string {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

// comparison is one run of the program.
type comparison struct {
	options
	table table
	ours  *reference
	peer  maker
}

func run(ctx context.Context, o options) (err error) {
	dir, err := os.MkdirTemp(o.dir, "ackproof-compare-")
	if err != nil {
		return fmt.Errorf("make a directory for the data: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if o.executable == "" {
		o.executable = filepath.Join(dir, "ackproof")
		if err := build(ctx, o.executable); err != nil {
			return err
		}
	}
	if o.executable, err = filepath.Abs(o.executable); err != nil { // nodes run in folders of their own
		return err
	}
	c := &comparison{options: o, table: table{progress: os.Stdout}}
	c.ours = &reference{executable: o.executable, dir: dir}
	if c.peer = (&running{addresses: o.kafka}); o.up != "" {
		c.peer = &scripted{up: o.up, down: o.down, log: o.verbose}
	}
	fmt.Printf("%s, %d cores, %s/%s, load average %s\n", runtime.Version(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, loadAverage())
	var failed []error
	for _, p := range parts {
		if len(o.only) > 0 && !slices.Contains(o.only, p.name) {
			continue
		}
		fmt.Printf("\n%s, %s\n", p.name, time.Now().UTC().Format(time.TimeOnly))
		if err := p.run(ctx, c); err != nil {
			err = fmt.Errorf("%s: %w", p.name, err)
			fmt.Printf("  not measured: %v\n", err)
			failed = append(failed, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	text := c.table.markdown()
	fmt.Printf("\nload average %s\n\n%s", loadAverage(), text)
	if o.out != "" {
		failed = append(failed, os.WriteFile(o.out, []byte(text), 0o644))
	}
	return errors.Join(failed...)
}

// loadAverage is what else the machine had to do, "unknown" where the system does not tell.
func loadAverage() string {
	raw, err := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(raw)); err == nil && len(fields) >= 3 {
		return strings.Join(fields[:3], " ")
	}
	return "unknown"
}
