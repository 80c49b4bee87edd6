package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ackproof/harness"
	"ackproof/harness/scenario"
	"ackproof/model"
	"ackproof/report"
	"ackproof/systems/kafka"
)

func newScenarioCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "scenario",
		Short: "cards: a question, a configuration, faults, what the contract allows",
		Long: `A scenario is a card: a question that people ask of a broker, the configuration and the faults
that put it to the test, what the contract allows, and the answer that is expected. The same card
runs on every system that it is for.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newScenarioListCommand(), newScenarioShowCommand(), newScenarioRunCommand())
	return cmd
}

// cardJSON is a card as JSON shows it.
type cardJSON struct {
	Name     string                     `json:"name"`
	Question string                     `json:"question"`
	Claim    model.Claim                `json:"claim"`
	Anomaly  model.Anomaly              `json:"anomaly"`
	Or       *scenario.Alternative      `json:"or,omitempty"`
	Allows   string                     `json:"allows"`
	Story    []string                   `json:"story"`
	Expected map[string]scenario.Answer `json:"expected"` // by system
}

func shown(c scenario.Card) cardJSON {
	out := cardJSON{Name: c.Name, Question: c.Question, Claim: c.Claim, Anomaly: c.Anomaly, Or: c.Or, Allows: c.Allows, Story: c.Story, Expected: map[string]scenario.Answer{}}
	for _, s := range c.On {
		out.Expected[s.System] = s.Expect
	}
	return out
}

func newScenarioListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "all cards, with the answer that each system is expected to give", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				all := []cardJSON{}
				for _, c := range scenario.Cards() {
					all = append(all, shown(c))
				}
				return writeJSON(os.Stdout, map[string]any{"scenarios": all})
			}
			t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "scenario\t"+strings.Join(harness.Systems, "\t")+"\tquestion")
			for _, c := range scenario.Cards() {
				fmt.Fprint(t, c.Name)
				for _, system := range harness.Systems {
					expect := "-"
					if s, err := c.Setup(system); err == nil {
						expect = string(s.Expect)
					}
					fmt.Fprint(t, "\t"+expect)
				}
				fmt.Fprintln(t, "\t"+c.Question)
			}
			return t.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "the cards as JSON")
	return cmd
}

func newScenarioShowCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show NAME", Short: "one card", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := scenario.Find(args[0])
			if err != nil {
				return usagef("%v", err)
			}
			if asJSON {
				return writeJSON(os.Stdout, shown(c))
			}
			return showCard(os.Stdout, c)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "the card as JSON")
	return cmd
}

func showCard(w io.Writer, c scenario.Card) error {
	var b strings.Builder
	asked := fmt.Sprintf("%s (%s)", c.Claim, c.Anomaly)
	if c.Or != nil {
		asked += fmt.Sprintf(", or else %s (%s)", c.Or.Claim, c.Or.Anomaly)
	}
	fmt.Fprintf(&b, "%s\n  %s\n\nasked of    %s\nallowed     %s\n", c.Name, c.Question, asked, c.Allows)
	for i, s := range c.Story {
		head := "done"
		if i > 0 {
			head = ""
		}
		fmt.Fprintf(&b, "%-11s %s\n", head, s)
	}
	for _, s := range c.On {
		t, err := c.Test(s.System, 0)
		if err != nil {
			return exitError{code: model.ExitCrash, message: err.Error()}
		}
		o := t.Options
		fmt.Fprintf(&b, "%-11s expected %s; %d nodes, %d copies, min.insync.replicas %d, acks %s, idempotence %t, unclean election %t, flush before the ack %t, %v of load",
			s.System, s.Expect, o.Nodes, o.Replication, o.MinISR, acksName(o.Acks), o.Idempotent, o.Unclean, o.FlushEach, time.Duration(o.Time))
		for _, name := range slices.Sorted(maps.Keys(o.Settings)) {
			fmt.Fprintf(&b, ", %s %s", name, o.Settings[name])
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func acksName(acks int) string {
	if acks == -1 {
		return "all"
	}
	return fmt.Sprint(acks)
}

// scenarioFlags are the flags of `ackproof scenario run`.
type scenarioFlags struct {
	stand   testFlags // only what stand reads
	system  systemFlags
	on      string
	seed    int64
	length  time.Duration
	tries   int
	store   string
	json    bool
	quiet   bool
	changed func(string) bool
}

func newScenarioRunCommand() *cobra.Command {
	var f scenarioFlags
	cmd := &cobra.Command{
		Use:   "run NAME",
		Short: "put the question to a system and answer it, with evidence",
		Long: `Runs the card on one system, or on several, one after the other. Every run is kept like one of
ackproof test, and can be repeated by it.

Exit codes: those of ackproof test, the worst of all runs. What the contract permits is no
violation: such a run ends with 0, and its answer is "permitted".`,
		Example: `  ackproof scenario run acks-1-isolation
  ackproof scenario run last-replica-power-loss-elr --system reference,kafka
  ackproof scenario run clean --system kafka --kafka-version 3.9.1 --time 1m`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.changed = cmd.Flags().Changed
			var err error
			settings, err := f.system.values(cmd.Flags(), "kafka") // the only one that has any
			if err != nil {
				return err
			}
			return f.run(orBackground(cmd.Context()), args[0], settings, os.Stdout, os.Stderr)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.on, "system", "reference", "systems, separated by commas: "+strings.Join(harness.Systems, ", "))
	flags.Int64Var(&f.seed, "seed", 0, "what the workload and open choices are drawn from (default random)")
	flags.DurationVar(&f.length, "time", 0, "length of the load, a Go duration (default: the card's own)")
	flags.IntVar(&f.tries, "tries", 1, "runs on each system until the answer is the expected one")
	flags.StringVar(&f.store, "store", "store", "directory for run directories")
	flags.StringVar(&f.stand.backend, "backend", autoBackend, "what the run stands on: proxies, sandbox or auto")
	f.system.add(flags)
	flags.BoolVar(&f.json, "json", false, "findings as JSON on stdout, all else on stderr")
	flags.BoolVar(&f.quiet, "quiet", false, "no progress on stderr")
	return cmd
}

// tests are the first tests of the card on all systems that are wanted.
func (f scenarioFlags) tests(c scenario.Card, settings map[string]string) ([]harness.Test, error) {
	if f.tries < 1 {
		return nil, usagef("--tries is %d, expected 1 or more", f.tries)
	}
	var out []harness.Test
	for _, system := range list(f.on) {
		t, err := c.Test(system, f.seed)
		if err != nil {
			return nil, usagef("--system: %v", err)
		}
		if system != "reference" && len(settings) > 0 {
			if t.Options.Settings == nil {
				t.Options.Settings = map[string]string{}
			}
			maps.Copy(t.Options.Settings, settings)
			if err := kafka.CheckSettings(t.Options.Settings); err != nil {
				return nil, usagef("%v", err)
			}
		}
		if f.changed("time") {
			t.Options.Time = harness.Duration(f.length)
		}
		if f.stand.backend != autoBackend {
			t.Options.Backend = f.stand.backend
		}
		t.Store, t.Command = f.store, os.Args[1:]
		if err := t.Options.Validate(); err != nil {
			return nil, usagef("%v", err)
		}
		out = append(out, t)
	}
	if len(out) == 0 {
		return nil, usagef("--system is empty, expected some of: %s", strings.Join(c.Systems(), ", "))
	}
	if len(settings) > 0 && !slices.ContainsFunc(out, func(t harness.Test) bool { return t.Options.System != "reference" }) {
		return nil, usagef("settings of a system with --system %s, expected a system that has some", f.on)
	}
	// All stand on the same ground: entering the sandbox begins this command anew.
	for _, t := range out {
		if f.stand.backend == autoBackend && simplest(t.Options.System, t.Options.Nemesis) == harness.BackendSandbox {
			for i := range out {
				out[i].Options.Backend = harness.BackendSandbox
			}
		}
	}
	return out, nil
}

func (f scenarioFlags) run(ctx context.Context, name string, settings map[string]string, stdout, stderr io.Writer) error {
	card, err := scenario.Find(name)
	if err != nil {
		return usagef("%v", err)
	}
	if !f.changed("seed") {
		f.seed = rand.Int64N(1_000_000_000)
	}
	tests, err := f.tests(card, settings)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	var findings []scenario.Finding
	for _, t := range tests {
		if done, err := f.stand.stand(&t); done {
			return err
		}
		found, err := f.answer(ctx, card, t, stderr)
		findings = append(findings, found...)
		if err != nil {
			return errors.Join(f.tell(stdout, card, findings), err)
		}
	}
	if err := f.tell(stdout, card, findings); err != nil {
		return err
	}
	code := model.ExitHeld
	for _, r := range findings {
		code = worse(code, r.Exit)
	}
	if code != model.ExitHeld {
		return exitError{code: code}
	}
	return nil
}

// worse is the exit code that outranks the other: 1 > 255 > 3 > 2 > 0.
func worse(a, b int) int {
	rank := []int{model.ExitHeld, model.ExitUndecided, model.ExitInfrastructure, model.ExitCrash, model.ExitViolated}
	if slices.Index(rank, b) > slices.Index(rank, a) {
		return b
	}
	return a
}

// answer runs the card on one system until the answer is the expected one, as often as it may.
func (f scenarioFlags) answer(ctx context.Context, card scenario.Card, first harness.Test, stderr io.Writer) ([]scenario.Finding, error) {
	on, err := card.Setup(first.Options.System)
	if err != nil {
		return nil, usagef("%v", err)
	}
	var findings []scenario.Finding
	for try := range f.tries {
		t := first
		if try > 0 { // a try of its own needs a seed of its own
			again, err := card.Test(first.Options.System, first.Options.Seed+int64(try))
			if err != nil {
				return findings, usagef("%v", err)
			}
			t.Draw, t.Options.Seed = again.Draw, again.Options.Seed
		}
		progress := report.NewProgress(stderr, f.quiet)
		t.Observer, t.Open = progress, openSystem(t.Options.System)
		out, err := t.Run(ctx)
		progress.Done()
		if err != nil {
			return findings, testFailed(err)
		}
		found := card.Judge(on.Expect, out)
		findings = append(findings, found)
		if found.AsExpected {
			break
		}
	}
	return findings, nil
}

// tell prints the findings.
func (f scenarioFlags) tell(w io.Writer, card scenario.Card, findings []scenario.Finding) error {
	if f.json {
		if findings == nil {
			findings = []scenario.Finding{}
		}
		return writeJSON(w, map[string]any{"scenario": shown(card), "findings": findings})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n  %s\n", card.Name, card.Question)
	for _, r := range findings {
		as := "as expected"
		if !r.AsExpected {
			as = "expected: " + string(r.Expected)
		}
		fmt.Fprintf(&b, "\n%s %s: %s (%s)\n", r.System.Name, r.System.Version, strings.ToUpper(string(r.Found)), as)
		fmt.Fprintf(&b, "  %d acknowledged, %d times %s", r.Acked, r.Count, r.Anomaly)
		if r.Because != "" {
			fmt.Fprintf(&b, " (%s)", r.Because)
		}
		fmt.Fprintf(&b, "; %d of %d faults had an effect; all claims together: %s, exit %d\n", r.Faults, r.Planned, r.Verdict, r.Exit)
		if len(r.Violated) > 0 {
			fmt.Fprintf(&b, "  violated: %v\n", r.Violated)
		}
		fmt.Fprintf(&b, "  evidence: %s\n", r.Run)
	}
	fmt.Fprintf(&b, "\nallowed: %s\n", card.Allows)
	_, err := io.WriteString(w, b.String())
	return err
}

func writeJSON(w io.Writer, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return exitError{code: model.ExitCrash, message: "encode: " + err.Error()}
	}
	_, err = fmt.Fprintf(w, "%s\n", raw)
	return err
}
