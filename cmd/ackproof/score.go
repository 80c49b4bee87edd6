package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
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
	"ackproof/model"
	"ackproof/report"
	"ackproof/sim"
	"ackproof/sim/campaign"
)

// scoreFlags are the flags of `ackproof score` as they were given.
type scoreFlags struct {
	plants    string
	campaigns int
	most      int
	from      int64
	shrink    int
	corpus    string
	jobs      int
	sim       bool
	real      bool
	json      bool
	markdown  bool
	quiet     bool
}

func newScoreCommand() *cobra.Command {
	var f scoreFlags
	cmd := &cobra.Command{
		Use:   "score",
		Short: "how many planted bugs are found, and how soon; and that nothing is found where there is none",
		Long: `Plants the catalogue's bugs in the reference broker, one at a time, and looks for each in several
campaigns of fresh seeds. Prints, per bug, whether it was found, after how many seeds, how much
virtual and processor time (medians), which anomaly was reported, and how short its schedule
becomes. The controls are the same cases without the bug.

Needs a program that can carry planted bugs:
  go build -tags failpoints -o ackproof ./cmd/ackproof

Exit codes: 0 every bug was found and no control was violated; 1 a bug was not found, or a control
was violated; 2 a control was undecided; 3 the infrastructure could not run; 254 wrong usage, or
a program without planted bugs.`,
		Example: `  ackproof score
  ackproof score --plants B01,B06 --campaigns 3
  ackproof score --markdown > docs/score.md`,
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.sim, "sim", true, "in the simulator")
	flags.BoolVar(&f.real, "real", false, "with real processes instead, by ackproof test; --campaigns and --most are 3 by default then, and nothing is shrunk")
	flags.StringVar(&f.plants, "plants", "", "bugs to look for, by id or name, separated by commas (default: all that the world can show)")
	flags.IntVar(&f.campaigns, "campaigns", 10, "campaigns for each bug")
	flags.IntVar(&f.most, "most", 150, "seeds after which a campaign gives up")
	flags.Int64Var(&f.from, "from", 0, "the first seed (default random, printed first)")
	flags.IntVar(&f.shrink, "shrink", 1, "findings of each bug that are made small, each in at most 100 executions")
	flags.StringVar(&f.corpus, "corpus", "", "folder in which the smallest schedule of each bug is saved")
	flags.IntVar(&f.jobs, "jobs", runtime.GOMAXPROCS(0), "worker processes")
	flags.BoolVar(&f.json, "json", false, "the score as JSON on stdout, all else on stderr")
	flags.BoolVar(&f.markdown, "markdown", false, "the score as Markdown on stdout")
	flags.BoolVar(&f.quiet, "quiet", false, "no progress on stderr")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return f.run(cmd, os.Stdout, os.Stderr) }
	return cmd
}

func (f scoreFlags) run(cmd *cobra.Command, stdout, stderr io.Writer) error {
	if !fault.Built {
		return usagef("score needs a program that can carry planted bugs, expected one built with: go build -tags failpoints -o ackproof ./cmd/ackproof")
	}
	for _, x := range []struct {
		name       string
		value, low int
	}{{"campaigns", f.campaigns, 1}, {"most", f.most, 1}, {"shrink", f.shrink, 0}, {"jobs", f.jobs, 1}} {
		if x.value < x.low {
			return usagef("--%s is %d, expected at least %d", x.name, x.value, x.low)
		}
	}
	if f.json && f.markdown {
		return usagef("--json with --markdown, expected one of them")
	}
	world, hunt := fault.Sim, f.simulated
	if f.real {
		if cmd.Flags().Changed("sim") && f.sim {
			return usagef("--real with --sim, expected one of them")
		}
		world, hunt = fault.Real, f.withProcesses
		if f.plants == "" {
			f.plants = realByDefault
		}
		for name, usual := range map[string]*int{"campaigns": &f.campaigns, "most": &f.most} {
			if !cmd.Flags().Changed(name) {
				*usual = 3
			}
		}
	}
	bugs, err := f.quarries(world)
	if err != nil {
		return err
	}
	if !cmd.Flags().Changed("from") {
		f.from = rand.Int64N(1_000_000_000)
	}
	ctx, stop := signal.NotifyContext(orBackground(cmd.Context()), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fmt.Fprintf(stderr, "first seed %d  (repeat with: --from %d)\n", f.from, f.from)
	s, err := hunt(ctx, bugs, stderr)
	switch {
	case ctx.Err() != nil:
		return exitError{model.ExitInfrastructure, "interrupted"}
	case err != nil:
		return exitError{model.ExitInfrastructure, err.Error()}
	}
	return f.print(s, stdout)
}

// quarries are the bugs to look for in a world.
func (f scoreFlags) quarries(world fault.World) ([]campaign.Quarry, error) {
	var all []campaign.Quarry
	for _, q := range fault.Catalogue() {
		if q.World&world != 0 {
			all = append(all, q)
		}
	}
	wanted := list(f.plants)
	if len(wanted) == 0 {
		return all, nil
	}
	var out []campaign.Quarry
	for _, name := range wanted {
		i := slices.IndexFunc(all, func(q campaign.Quarry) bool { return q.ID == name || q.Name == name })
		if i < 0 {
			var names []string
			for _, q := range all {
				names = append(names, q.ID)
			}
			return nil, usagef("--plants has %q, expected some of those that this world can show: %s", name, strings.Join(names, ", "))
		}
		out = append(out, all[i])
	}
	return out, nil
}

// simulated scores bugs in the simulator.
func (f scoreFlags) simulated(ctx context.Context, bugs []campaign.Quarry, stderr io.Writer) (campaign.Score, error) {
	var s campaign.Score
	pool, err := workers(f.jobs)
	if err != nil {
		return s, err
	}
	progress, began := report.NewProgress(stderr, f.quiet), time.Now()
	defer progress.Done()
	progress.Phase("hunt", 0)
	hunt := campaign.Hunt{From: f.from, Campaigns: f.campaigns, Most: f.most}
	trails, err := hunt.Run(ctx, pool, bugs, func(ran, open int) {
		progress.Tick(time.Since(began), fmt.Sprintf("%d cases, %d campaigns to go", ran, open))
	})
	if err != nil {
		return s, err
	}
	progress.Phase("controls", 0)
	controls, err := campaign.Controls(ctx, pool, trails, func(ran int) { progress.Tick(time.Since(began), fmt.Sprintf("%d cases", ran)) })
	if err != nil {
		return s, err
	}
	cpu := controls.CPUSecs
	for _, t := range trails {
		cpu += t.CPU
	}
	s.Made = campaign.Made{Command: strings.Join(append([]string{"ackproof"}, os.Args[1:]...), " "), Date: began.UTC().Format(time.DateOnly), CPUs: runtime.NumCPU(),
		Seconds: time.Since(began).Seconds(), Share: cpu / time.Since(began).Seconds() / float64(min(f.jobs, runtime.NumCPU()))}
	s.Controls, s.FalseAlarms, s.ControlsOpen = controls.Seeds, len(controls.Violated), len(controls.Failed)+controls.Verdicts[model.Undecided]+controls.Verdicts[model.NotTested]
	for _, x := range controls.Violated {
		fmt.Fprintf(stderr, "false alarm: seed %d without a bug: %v %v\n", x.Seed(), x.Anomalies, x.Broken)
	}
	for _, x := range slices.Concat(controls.Open, controls.Failed) {
		fmt.Fprintf(stderr, "control of seed %d: %s\n", x.Seed(), firstLine(strings.Join(append(x.Open, x.Failed), "; ")))
	}
	progress.Phase("shrink", 0)
	for i, q := range bugs {
		var findings []campaign.Finding
		own := trails[i*f.campaigns : (i+1)*f.campaigns]
		for _, t := range own {
			findings = append(findings, t.Finding())
			for _, x := range t.Failed {
				fmt.Fprintf(stderr, "%s, seed %d failed: %s\n", q.ID, x.Seed(), firstLine(x.Failed))
			}
		}
		p := campaign.NewPlantScore(q, "sim", findings)
		small, err := f.shrunk(ctx, pool, own)
		if err != nil {
			return s, err
		}
		p.TakeShrunk(small)
		s.Plants = append(s.Plants, p)
		progress.Tick(time.Since(began), fmt.Sprintf("%d of %d bugs", i+1, len(bugs)))
	}
	return s, nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// scoreShrinkAtMost bounds the executions of each shrinking.
const scoreShrinkAtMost = 100

// shrunk makes the first few findings of a bug small, and saves the smallest if asked to.
func (f scoreFlags) shrunk(ctx context.Context, pool campaign.Pool, trails []campaign.Trail) ([]campaign.Shrunk, error) {
	var out []campaign.Shrunk
	for _, t := range trails {
		if t.Found == nil || len(out) == f.shrink {
			continue
		}
		small, err := campaign.Shrink(ctx, pool, *t.Found, scoreShrinkAtMost)
		if err != nil {
			return nil, err
		}
		out = append(out, small)
	}
	if f.corpus == "" || len(out) == 0 {
		return out, nil
	}
	best := slices.MinFunc(out, func(a, b campaign.Shrunk) int { return a.Size() - b.Size() })
	floors := model.HistoryFloors()
	r, err := campaign.Run(best.Summary.Case, sim.Options{Floors: &floors})
	if err != nil {
		return nil, err
	}
	return out, campaign.NewEntry(r).Save(filepath.Join(f.corpus, best.Summary.Case.Plant+".json"))
}

func (f scoreFlags) print(s campaign.Score, stdout io.Writer) error {
	switch {
	case f.json:
		raw, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			return exitError{model.ExitCrash, "encode the score: " + err.Error()}
		}
		stdout.Write(append(raw, '\n'))
	case f.markdown:
		io.WriteString(stdout, s.Markdown())
	default:
		io.WriteString(stdout, s.Text())
	}
	switch {
	case s.FalseAlarms > 0 || len(s.Missing()) > 0:
		return exitError{code: model.ExitViolated}
	case s.ControlsOpen > 0:
		return exitError{code: model.ExitUndecided}
	}
	return nil
}
