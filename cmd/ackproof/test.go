package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ackproof/broker/fault"
	"ackproof/harness"
	"ackproof/model"
	"ackproof/nemesis"
	"ackproof/report"
)

// testFlags are the flags of `ackproof test` as they were given.
type testFlags struct {
	options  harness.Options
	system   systemFlags
	acks     string
	flush    string
	time     time.Duration
	nemesis  string
	backend  string
	claims   string
	schedule string
	replay   string
	store    string
	json     bool
	quiet    bool
}

func newTestCommand() *cobra.Command {
	var f testFlags
	cmd := f.command()
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		test, err := f.test(cmd)
		if err != nil {
			return err
		}
		if done, err := f.stand(&test); done {
			return err
		}
		return runTest(cmd.Context(), test, f, os.Stdout, os.Stderr)
	}
	return cmd
}

// command has the flags and does nothing.
func (f *testFlags) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test",
		Short: "one test of one system, decided and reported",
		Long: `Drives a system with work while faults hit it, records what every client saw, and decides
which of the promises of its configuration held, which broke (with the smallest proof), and
which were not put to the test.

Exit codes: 0 every claim asked for held; 1 at least one violated; 2 none violated, at least
one undecided or not tested; 3 the infrastructure could not run; 254 wrong usage; 255 ackproof
itself is at fault.`,
		Example: `  ackproof test
  ackproof test --acks 1 --nemesis partition --time 10s
  ackproof test --replay store/latest`,
		Args: cobra.NoArgs,
	}
	o, flags := &f.options, cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.System, "system", "reference", "system under test: "+strings.Join(harness.Systems, ", "))
	flags.StringVar(&o.Workload, "workload", "log", "what clients do")
	flags.IntVar(&o.Nodes, "nodes", 3, "number of nodes")
	flags.IntVar(&o.Partitions, "partitions", 6, "number of partitions of the topic")
	flags.IntVar(&o.Replication, "replication", 3, "copies of each partition")
	flags.IntVar(&o.MinISR, "min-insync", 2, "copies that must be in sync for a write with --acks all (min.insync.replicas)")
	flags.StringVar(&f.acks, "acks", "all", "who must have a record before it is acknowledged: 0, 1 or all")
	flags.BoolVar(&o.Idempotent, "idempotent", true, "idempotent producers; needs --acks all, and is off by default without it")
	flags.BoolVar(&o.Unclean, "unclean-election", false, "let replicas lead that are not in sync")
	flags.StringVar(&f.flush, "flush", "interval", "when a broker flushes to disk: interval, or batch = before the ack")
	flags.DurationVar(&f.time, "time", 30*time.Second, "length of the load, a Go duration")
	flags.IntVar(&o.Rate, "rate", 0, "records per second of all producers; 0 = as many as the system takes")
	flags.IntVar(&o.Clients, "clients", 8, "clients, each with network links of its own")
	flags.StringVar(&f.nemesis, "nemesis", "kill,pause,partition", "kinds of faults, separated by commas, or none")
	flags.StringVar(&f.backend, "backend", "auto", "what the run stands on: proxies (plain processes), sandbox (namespaces of its own, without root), or\nauto: the first of them that has all faults that are wanted")
	flags.BoolVar(&o.Require, "require", false, "do not begin when a fault that is wanted cannot be injected here (exit 3)")
	flags.StringVar(&o.Commit, "commit", "", "when the members of --workload group commit: after they have processed, or before (default after)")
	flags.IntVar(&o.Members, "members", 0, "members of each group of --workload group (default 3)")
	flags.BoolVar(&o.Storm, "storm", false, "--workload group goes through a storm of rebalances: members live for moments and are slow")
	flags.Int64Var(&o.Seed, "seed", 0, "what workload and faults are drawn from (default random, printed first)")
	flags.StringVar(&f.schedule, "schedule", "", "file with the faults (JSON), instead of drawing them from the seed")
	flags.StringVar(&f.replay, "replay", "", "run directory whose test is to be repeated; no flag of the test itself may be given with it")
	flags.StringVar(&f.store, "store", "store", "directory for run directories")
	flags.StringVar(&o.Plant, "plant", "", "plant a bug in the reference broker, by id or name; needs a binary built with -tags failpoints")
	flags.BoolVar(&o.KeepGoing, "keep-going", false, "go on with the load when a violation is certain")
	flags.StringVar(&f.claims, "claims", "", "claims to decide, separated by commas; all adds the opt-in ones (default: every claim of the contract)")
	f.system.add(flags)
	flags.BoolVar(&f.json, "json", false, "results as JSON on stdout, all else on stderr")
	flags.BoolVar(&f.quiet, "quiet", false, "no progress on stderr")
	return cmd
}

// test turns flags into a test.
func (f testFlags) test(cmd *cobra.Command) (harness.Test, error) {
	t := harness.Test{Store: f.store, Command: os.Args[1:]}
	if f.replay != "" {
		return f.repeat(cmd, t)
	}
	changed := cmd.Flags().Changed
	o := f.options
	o.Time = harness.Duration(f.time)
	if f.backend != autoBackend {
		o.Backend = f.backend
	}
	acks, err := parseAcks(f.acks)
	if err != nil {
		return t, err
	}
	o.Acks = acks
	if o.Settings, err = f.system.values(cmd.Flags(), o.System); err != nil {
		return t, err
	}
	if acks != -1 && !changed("idempotent") {
		o.Idempotent = false
	}
	switch f.flush {
	case "interval":
	case "batch":
		o.FlushEach = true
	default:
		return t, usagef("--flush is %q, expected interval or batch", f.flush)
	}
	if o.Settings["bootstrap"] != "" {
		if err := f.visiting(&o, changed("nemesis")); err != nil {
			return t, err
		}
	} else if f.nemesis != "none" {
		for _, k := range list(f.nemesis) {
			o.Nemesis = append(o.Nemesis, nemesis.Kind(k))
		}
		if len(o.Nemesis) == 0 {
			return t, usagef("--nemesis is empty, expected none or a list of kinds (ackproof doctor names them)")
		}
	}
	if changed("members") && o.Members < 1 {
		return t, usagef("--members is %d, expected at least 1", o.Members)
	}
	if o.Workload == harness.WorkloadGroup && !changed("commit") {
		o.Commit = model.CommitAfter
	}
	o.Claims = claims(f.claims)
	if o.Workload == harness.WorkloadGroup && slices.Contains(list(f.claims), "all") {
		o.Claims = append(o.Claims, model.CommitSafety, model.GroupDelivery)
	}
	if changed("claims") && len(o.Claims) == 0 {
		return t, usagef("--claims is empty, expected all or a list of claims")
	}
	if !changed("seed") {
		o.Seed = rand.Int64N(1_000_000_000)
	}
	if o.Plant != "" {
		id, err := plantFlag(o.Plant)
		if err != nil {
			return t, err
		}
		o.Plant = id
	}
	if f.schedule != "" {
		s, err := nemesis.Load(f.schedule)
		if err != nil {
			return t, usagef("--schedule: %v", err)
		}
		t.Schedule = &s
	}
	t.Options = o
	if err := o.Validate(); err != nil {
		return t, usagef("%v", err)
	}
	if t.Schedule != nil {
		if err := t.Schedule.Validate(o.Nodes, o.Partitions, o.Clients); err != nil {
			return t, usagef("--schedule %s: %v", f.schedule, err)
		}
	}
	return t, nil
}

// visiting limits a test of a cluster that ran before it to what is the test's own: the links of its clients.
func (f testFlags) visiting(o *harness.Options, chosen bool) error {
	if f.backend != autoBackend && f.backend != harness.BackendProxies {
		return usagef("--backend %s with --bootstrap, expected %s: the cluster is outside of any other", f.backend, harness.BackendProxies)
	}
	o.Backend = harness.BackendProxies
	if f.nemesis == "none" {
		return nil
	}
	o.Nemesis = []nemesis.Kind{nemesis.Partition}
	if chosen && !slices.Equal(list(f.nemesis), []string{string(nemesis.Partition)}) {
		return usagef("--nemesis is %q with --bootstrap, expected partition or none: nothing but the links of the clients is the test's to hurt", f.nemesis)
	}
	return nil
}

// besideReplay are the flags that make sense together with --replay.
var besideReplay = []string{"replay", "store", "json", "quiet", "keep-going", "require"}

// repeat makes the test of an earlier run.
func (f testFlags) repeat(cmd *cobra.Command, t harness.Test) (harness.Test, error) {
	var wrong string
	cmd.Flags().Visit(func(g *pflag.Flag) {
		if !slices.Contains(besideReplay, g.Name) {
			wrong = g.Name
		}
	})
	if wrong != "" {
		return t, usagef("--%s with --replay, expected none of the test's own flags: the run directory says them all", wrong)
	}
	plan, err := harness.LoadPlan(f.replay)
	if err != nil {
		return t, usagef("--replay: %v", err)
	}
	t.Options, t.Schedule = plan.Options, &plan.Schedule
	t.Options.KeepGoing = t.Options.KeepGoing || f.options.KeepGoing
	t.Options.Require = t.Options.Require || f.options.Require
	if t.Options.Backend == "" {
		t.Options.Backend = harness.BackendProxies
	}
	if plan.Options.Plant != "" && !fault.Built {
		return t, usagef("--replay: the run had %s planted, expected a binary built with -tags failpoints", plan.Options.Plant)
	}
	if b := harness.Build(); b != plan.Versions.Ackproof && !f.quiet {
		fmt.Fprintf(os.Stderr, "ackproof: the run was made by build %s, this is %s: what is repeated may differ\n", plan.Versions.Ackproof, b)
	}
	if err := t.Options.Validate(); err != nil {
		return t, usagef("--replay: %v", err)
	}
	return t, nil
}

// runTest carries the test out, prints what it found and gives the exit code as an error.
func runTest(ctx context.Context, t harness.Test, f testFlags, stdout, stderr io.Writer) error {
	ctx, stop := signal.NotifyContext(orBackground(ctx), os.Interrupt, syscall.SIGTERM)
	defer stop()
	progress := report.NewProgress(stderr, f.quiet)
	t.Observer = progress
	t.Open = openSystem(t.Options.System)
	out, err := t.Run(ctx)
	progress.Done()
	if err != nil {
		return testFailed(err)
	}
	page := filepath.Join(out.Dir, "report.html")
	if _, err := os.Stat(page); err != nil {
		page = ""
	}
	summary := report.Summary(report.Run{Results: out.Results, Opinion: out.Opinion, Notes: out.Notes, Dir: out.Dir, Report: page, Replay: out.Replay})
	if f.json {
		raw, err := out.JSON()
		if err != nil {
			return exitError{code: model.ExitCrash, message: "encode the results: " + err.Error()}
		}
		stdout.Write(raw)
		if !f.quiet {
			io.WriteString(stderr, summary)
		}
	} else {
		io.WriteString(stdout, summary)
	}
	if out.Results.Exit != model.ExitHeld {
		return exitError{code: out.Results.Exit}
	}
	return nil
}

// testFailed is the error of the program for an error of a test's run.
func testFailed(err error) error {
	var wrong harness.UsageError
	var infra *harness.InfraError
	switch {
	case errors.As(err, &wrong):
		return usagef("%v", err)
	case errors.As(err, &infra):
		message := "the infrastructure could not run: " + infra.Error()
		if infra.Dir != "" {
			message += "\nrun directory: " + infra.Dir
		}
		return exitError{code: model.ExitInfrastructure, message: message}
	}
	return exitError{code: model.ExitCrash, message: err.Error()}
}

func orBackground(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}

// claims reads the flag --claims; "all" is every claim of a log, the opt-in one too.
func claims(flag string) []model.Claim {
	var out []model.Claim
	for _, c := range list(flag) {
		if c == "all" {
			for _, p := range model.LogContract(model.Contract{}).Promises {
				out = append(out, p.Claim)
			}
			out = append(out, model.ReadAfterAck)
			continue
		}
		out = append(out, model.Claim(c))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// list splits "a, b" and leaves out what is empty.
func list(flag string) []string {
	var out []string
	for item := range strings.SplitSeq(flag, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}

// plantFlag reads the flag --plant and gives the bug's id.
func plantFlag(idOrName string) (id string, err error) {
	bug, ok := fault.Find(idOrName)
	if !ok {
		return "", usagef("--plant is %q, expected one of: %s", idOrName, plants())
	}
	if !fault.Built {
		return "", usagef("--plant %s needs a binary with planted bugs, expected one built with -tags failpoints", idOrName)
	}
	return bug.ID, nil
}

func plants() string {
	var names []string
	for _, b := range fault.All() {
		names = append(names, b.ID+" "+b.Name)
	}
	return strings.Join(names, ", ")
}
