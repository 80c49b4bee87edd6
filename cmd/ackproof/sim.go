package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ackproof/broker/fault"
	"ackproof/harness"
	"ackproof/model"
	"ackproof/nemesis"
	"ackproof/report"
	"ackproof/sim"
	"ackproof/sim/campaign"
)

// simFlags are the flags of `ackproof sim` as they were given.
type simFlags struct {
	seeds    int
	seed     int64
	from     int64
	time     time.Duration
	workload string
	commit   string
	members  int
	storm    bool
	nemesis  string
	plant    string
	schedule string
	casePath string
	shrink   bool
	store    string
	trace    bool
	jobs     int
	json     bool
	quiet    bool
}

func newSimCommand() *cobra.Command {
	var f simFlags
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "the same core, workload and checks in a deterministic world, under virtual time",
		Long: `Runs the reference broker's core, the raw client, the workload, schedules of faults and the
checkers in one process under a seeded order of events. Each seed draws a configuration, a load
and a schedule of its own; the same seed gives the same run, bit for bit. Campaigns use one
process per core.

Exit codes: 0 every seed held; 1 at least one violated; 2 none violated, at least one undecided,
or no fault had an effect; 254 wrong usage; 255 ackproof itself is at fault.`,
		Example: `  ackproof sim --seeds 1000
  ackproof sim --seed 42 --trace
  ackproof sim --schedule store/latest/run.json`,
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&f.seeds, "seeds", 100, "how many seeds to run")
	flags.Int64Var(&f.from, "from", 0, "the first seed (default random, printed first)")
	flags.Int64Var(&f.seed, "seed", 0, "run this one seed")
	flags.DurationVar(&f.time, "time", 0, "virtual length of the load, a Go duration (default: drawn from the seed, 6s to 18s)")
	flags.StringVar(&f.workload, "workload", "log", "what clients do: "+strings.Join(harness.Workloads, ", "))
	flags.StringVar(&f.commit, "commit", "", "workload group: members commit before or after they process (default: drawn from the seed)")
	flags.IntVar(&f.members, "members", 0, "workload group: members of each group (default: drawn from the seed)")
	flags.BoolVar(&f.storm, "storm", false, "workload group: a storm of rebalances, members live for moments and are slow")
	flags.StringVar(&f.nemesis, "nemesis", "", "kinds of faults, separated by commas, or none (default: drawn from the seed)")
	flags.StringVar(&f.plant, "plant", "", "plant a bug in the reference broker, by id or name; needs a binary built with -tags failpoints")
	flags.StringVar(&f.schedule, "schedule", "", "file with the faults (JSON), instead of drawing them from the seed; the run.json of a test brings its configuration along")
	flags.StringVar(&f.casePath, "case", "", "file with a whole case (JSON), as --shrink writes it: configuration, load and faults")
	flags.BoolVar(&f.shrink, "shrink", false, "make the first violated case small, save it and tell it as a story")
	flags.StringVar(&f.store, "store", "store", "directory in which shrunk cases are saved, in a folder sim")
	flags.BoolVar(&f.trace, "trace", false, "print the canonical event log of the one run on stderr")
	flags.IntVar(&f.jobs, "jobs", runtime.GOMAXPROCS(0), "worker processes")
	flags.BoolVar(&f.json, "json", false, "the report as JSON on stdout, all else on stderr")
	flags.BoolVar(&f.quiet, "quiet", false, "no progress on stderr")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return f.run(cmd, os.Stdout, os.Stderr) }
	return cmd
}

// newSimWorkerCommand is one worker of a campaign; nobody calls it by hand.
func newSimWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use: "sim-worker", Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return campaign.Serve(os.Stdin, os.Stdout) },
	}
}

// workers is a pool of this program's own processes.
func workers(jobs int) (campaign.Pool, error) {
	exe, err := os.Executable()
	if err != nil {
		return campaign.Pool{}, exitError{model.ExitInfrastructure, "find the running program: " + err.Error()}
	}
	return campaign.Pool{Command: []string{exe, "sim-worker"}, Size: jobs}, nil
}

func (f simFlags) run(cmd *cobra.Command, stdout, stderr io.Writer) (err error) {
	changed := cmd.Flags().Changed
	draw, err := f.drawing(changed)
	if err != nil {
		return err
	}
	if changed("seed") || f.casePath != "" || f.trace {
		return f.single(orBackground(cmd.Context()), draw(f.seed), stdout, stderr)
	}
	if !changed("from") {
		f.from = rand.Int64N(1_000_000_000)
	}
	if f.seeds < 1 || f.jobs < 1 {
		return usagef("--seeds is %d and --jobs %d, expected at least 1 each", f.seeds, f.jobs)
	}
	pool, err := workers(f.jobs)
	if err != nil {
		return err
	}
	again := fmt.Sprintf("ackproof sim --from %d --seeds %d%s", f.from, f.seeds, f.flags())
	fmt.Fprintf(stderr, "seeds %d to %d  (repeat with: %s)\n", f.from, f.from+int64(f.seeds)-1, again)
	ctx, stop := signal.NotifyContext(orBackground(cmd.Context()), os.Interrupt, syscall.SIGTERM)
	defer stop()
	progress := report.NewProgress(stderr, f.quiet)
	progress.Phase("sim", 0)
	r, began := campaign.NewReport(), time.Now()
	err = pool.Each(ctx, seeds(f.from, f.seeds, draw), func(s campaign.Summary) bool {
		r.Add(s)
		if s.Verdict == model.Violated || s.Failed != "" {
			progress.Note(fmt.Sprintf("seed %d: %s", s.Seed(), campaign.Line(s)))
		}
		progress.Tick(time.Since(began), fmt.Sprintf("%d of %d seeds, %d violated", r.Seeds, f.seeds, len(r.Violated)))
		return true
	})
	progress.Done()
	switch {
	case ctx.Err() != nil:
		return exitError{model.ExitInfrastructure, "interrupted"}
	case err != nil:
		return exitError{model.ExitInfrastructure, err.Error()}
	}
	r.Close(time.Since(began))
	if f.shrink && len(r.Violated) > 0 {
		defer func() { // after the report
			if e := f.shrunk(ctx, pool, r.Violated[0], stderr); e != nil {
				err = e
			}
		}()
	}
	return f.print(r, stdout, stderr)
}

// shrinkAtMost bounds the executions of one shrinking.
const shrinkAtMost = 200

// shrunk makes a violated case small, saves it and tells its story.
func (f simFlags) shrunk(ctx context.Context, pool campaign.Pool, s campaign.Summary, out io.Writer) error {
	small, err := campaign.Shrink(ctx, pool, s, shrinkAtMost)
	if err != nil {
		return exitError{model.ExitInfrastructure, err.Error()}
	}
	floors := model.HistoryFloors()
	r, err := campaign.Run(small.Summary.Case, sim.Options{Floors: &floors})
	if err != nil {
		return exitError{model.ExitCrash, err.Error()}
	}
	name := fmt.Sprintf("%d.json", s.Seed())
	if s.Case.Plant != "" {
		name = s.Case.Plant + "-" + name
	}
	path := filepath.Join(f.store, "sim", name)
	if err := campaign.NewEntry(r).Save(path); err != nil {
		return exitError{model.ExitInfrastructure, err.Error()}
	}
	fmt.Fprintf(out, "\nseed %d, shrunk from %d faults to %d in %d executions, saved as %s\n%s           repeat with: ackproof sim --case %s\n",
		s.Seed(), small.From, len(small.Summary.Case.Schedule.Faults), small.Executions, path, campaign.Story(r), path)
	return nil
}

func (f simFlags) print(r *campaign.Report, stdout, stderr io.Writer) error {
	text := r.Text(func(s campaign.Summary) string {
		return fmt.Sprintf("repeat with: ackproof sim --seed %d%s", s.Seed(), f.flags())
	})
	if f.json {
		raw, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return exitError{model.ExitCrash, "encode the report: " + err.Error()}
		}
		stdout.Write(append(raw, '\n'))
		if !f.quiet {
			io.WriteString(stderr, text)
		}
	} else {
		io.WriteString(stdout, text)
	}
	if r.Exit != model.ExitHeld {
		return exitError{code: r.Exit}
	}
	return nil
}

// flags are the flags that a repetition needs beside its seeds.
func (f simFlags) flags() string {
	var b strings.Builder
	if f.time > 0 {
		fmt.Fprintf(&b, " --time %v", f.time)
	}
	if f.workload != "log" {
		fmt.Fprintf(&b, " --workload %s", f.workload)
	}
	if f.members > 0 {
		fmt.Fprintf(&b, " --members %d", f.members)
	}
	if f.storm {
		b.WriteString(" --storm")
	}
	for _, x := range []struct{ name, value string }{{"commit", f.commit}, {"nemesis", f.nemesis}, {"plant", f.plant}, {"schedule", f.schedule}} {
		if x.value != "" {
			fmt.Fprintf(&b, " --%s %s", x.name, x.value)
		}
	}
	return b.String()
}

// drawing gives the function from seeds to cases that the flags ask for.
func (f *simFlags) drawing(changed func(string) bool) (func(int64) sim.Case, error) {
	if f.plant != "" {
		id, err := plantFlag(f.plant)
		if err != nil {
			return nil, err
		}
		f.plant = id
	}
	if f.time != 0 && (f.time < 100*time.Millisecond || f.time > 24*time.Hour) {
		return nil, usagef("--time is %v, expected 100ms to 24h", f.time)
	}
	if f.casePath != "" {
		for _, other := range []string{"seed", "seeds", "from", "time", "workload", "commit", "members", "storm", "nemesis", "schedule"} {
			if changed(other) {
				return nil, usagef("--%s with --case, expected one or the other: a case says everything", other)
			}
		}
		e, err := campaign.LoadEntry(f.casePath)
		if err != nil {
			return nil, usagef("--case: %v", err)
		}
		c := e.Case
		if changed("plant") {
			c.Plant = f.plant
		}
		if c.Plant != "" && !fault.Built {
			return nil, usagef("--case %s has %s planted, expected a binary built with -tags failpoints (or --plant \"\")", f.casePath, c.Plant)
		}
		return func(int64) sim.Case { return c }, nil
	}
	if err := f.checkWorkload(); err != nil {
		return nil, err
	}
	var kinds []nemesis.Kind
	if f.nemesis != "none" {
		for _, k := range list(f.nemesis) {
			if !slices.Contains(nemesis.AllKinds(), nemesis.Kind(k)) {
				return nil, usagef("--nemesis has the kind %q, expected none or a list of: %s", k, strings.Trim(fmt.Sprint(nemesis.AllKinds()), "[]"))
			}
			kinds = append(kinds, nemesis.Kind(k))
		}
	}
	var given *nemesis.Schedule
	if filepath.Base(f.schedule) == runFile {
		return f.carriedOver()
	}
	if f.schedule != "" {
		s, err := nemesis.Load(f.schedule)
		if err != nil {
			return nil, usagef("--schedule: %v", err)
		}
		given = &s
	}
	draw := func(seed int64) sim.Case {
		c := f.swarm(seed, kinds)
		c.Plant = f.plant
		switch {
		case f.nemesis == "none":
			c.Schedule.Faults = []nemesis.Fault{}
		case given != nil:
			c.Schedule = *given
		}
		return c
	}
	if err := draw(1).Validate(); err != nil {
		return nil, usagef("%v", err)
	}
	return draw, nil
}

func (f *simFlags) checkWorkload() error {
	switch {
	case !slices.Contains(harness.Workloads, f.workload):
		return usagef("--workload is %q, expected one of: %s", f.workload, strings.Join(harness.Workloads, ", "))
	case (f.commit != "" || f.members != 0 || f.storm) && f.workload != harness.WorkloadGroup:
		return usagef("--commit, --members or --storm with --workload %s, expected them with --workload %s only", f.workload, harness.WorkloadGroup)
	case f.members < 0:
		return usagef("--members is %d, expected at least 1", f.members)
	case f.commit != "" && f.commit != model.CommitAfter && f.commit != model.CommitBefore:
		return usagef("--commit is %q, expected %s or %s", f.commit, model.CommitAfter, model.CommitBefore)
	}
	return nil
}

// swarm draws the case of a seed for the workload.
func (f *simFlags) swarm(seed int64, kinds []nemesis.Kind) sim.Case {
	if f.workload != harness.WorkloadGroup {
		return sim.Swarm(seed, kinds, f.time.Milliseconds())
	}
	c := sim.SwarmGroups(seed, kinds, f.time.Milliseconds(), f.storm)
	if f.commit != "" {
		c.Groups.Before = f.commit == model.CommitBefore
	}
	if f.members > 0 {
		c.Groups.Members, c.Groups.Static = f.members, min(c.Groups.Static, f.members)
	}
	return c
}

// runFile is the name of the plan in a run directory.
const runFile = "run.json"

// carriedOver draws cases with the configuration, the load and the schedule of a test of real processes. What comes from the seed is the order of events alone. The
// load is gentler, as sim.Default has it: the simulator has no need to wait for chance.
func (f *simFlags) carriedOver() (func(int64) sim.Case, error) {
	plan, err := harness.LoadPlan(filepath.Dir(f.schedule))
	if err != nil {
		return nil, usagef("--schedule: %v", err)
	}
	o := plan.Options
	if f.plant == "" {
		f.plant = o.Plant
	}
	if f.plant != "" && !fault.Built {
		return nil, usagef("--schedule %s: the run had %s planted, expected a binary built with -tags failpoints", f.schedule, f.plant)
	}
	draw := func(seed int64) sim.Case {
		c := sim.Default(seed)
		c.Nodes, c.Partitions, c.Replication, c.MinISR, c.Clients = o.Nodes, o.Partitions, o.Replication, o.MinISR, o.Clients
		c.Acks, c.Idempotent, c.Unclean, c.FlushEach = o.Acks, o.Idempotent, o.Unclean, o.FlushEach
		c.LoadMS, c.Schedule, c.Plant = time.Duration(o.Time).Milliseconds(), plan.Schedule, f.plant
		if f.time > 0 {
			c.LoadMS = f.time.Milliseconds()
		}
		if o.Workload == harness.WorkloadGroup {
			g := sim.DefaultGroups()
			g.Before, g.Storm, g.Members = o.Commit == model.CommitBefore, o.Storm, cmp.Or(o.Members, g.Members)
			c = c.WithGroups(g)
		}
		return c
	}
	if err := draw(1).Validate(); err != nil {
		return nil, usagef("--schedule %s: %v", f.schedule, err)
	}
	return draw, nil
}

func seeds(from int64, n int, draw func(int64) sim.Case) iter.Seq[sim.Case] {
	return func(yield func(sim.Case) bool) {
		for i := range n {
			if !yield(draw(from + int64(i))) {
				return
			}
		}
	}
}

// single runs one case in this process and tells everything about it.
func (f simFlags) single(ctx context.Context, c sim.Case, stdout, stderr io.Writer) error {
	floors := model.HistoryFloors()
	o := sim.Options{Floors: &floors}
	if f.trace {
		o.Trace = stderr
	}
	began := time.Now()
	r, err := campaign.Run(c, o)
	if err != nil {
		return exitError{model.ExitCrash, err.Error()}
	}
	if f.json {
		raw, err := json.MarshalIndent(campaign.Summarize(r), "", "  ")
		if err != nil {
			return exitError{model.ExitCrash, "encode the summary: " + err.Error()}
		}
		stdout.Write(append(raw, '\n'))
	} else {
		io.WriteString(stdout, campaign.Describe(r, time.Since(began)))
	}
	if f.shrink && r.Verdict() == model.Violated {
		pool, err := workers(f.jobs)
		if err != nil {
			return err
		}
		if err := f.shrunk(ctx, pool, campaign.Summarize(r), stderr); err != nil {
			return err
		}
	}
	if v := r.Verdict(); v != model.Held {
		return exitError{code: v.Exit()}
	}
	return nil
}
