package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ackproof/histories"
	"ackproof/linearizability"
	"ackproof/model"
	"ackproof/report"
)

// checkFlags are the flags of `ackproof check` as they were given.
type checkFlags struct {
	format       string
	model        string
	contract     string
	claims       string
	certificates string
	isolation    string
	interleaved  bool
	dedupWindow  time.Duration
	drift        float64
	drained      bool
	json         bool
	given        []string // those of onlyFor that were given
}

// onlyFor says which models a flag is for.
var onlyFor = map[string][]string{
	"contract":     {"log", "groups"},
	"isolation":    {"list-append"},
	"interleaved":  {"list-append"},
	"dedup-window": {"fifo"},
	"drift":        {"queue", "fifo"},
	"drained":      {"log", "groups"},
}

func newCheckCommand() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "decide a recorded history",
		Long: `Reads a history, decides claim by claim what it shows, and proves what broke by a few operations.

A history.bin inside a run directory is judged by the contract of that run and by what the
harness knew, with the same verdicts. Any other log is judged as one of a strong configuration
(acks=all, idempotence, clean elections), unless --contract says otherwise; there what is
missing at the log's end is judged only if the history marks where its drain begins, or with
--drained.

Models, with the claims that each decides (in brackets: only if asked for, by name or all):
  log             the claims of its contract [read-after-ack]. Levels: L0 one log is
                  offset-agreement, no-phantom and no-loss; L1 adds real-time-order, L2
                  session-reads, L3 read-after-ack, with which reads are linearizable too
  list-append     serializability, of logs atomicity too; --isolation says how much of it
  groups, commits group-delivery, commit-safety
  queue           lease, no-phantom [no-loss, no-duplicate]; --drift
  fifo            fifo, no-phantom, no-duplicate, dedup-window with --dedup-window [no-loss]
  set             no-loss, no-phantom, no-dirty-read [read-after-ack, no-duplicate]
  total-queue     no-loss, no-phantom [no-duplicate]
  register, cas-register, multi-register, mutex, kv, stream: linearizable

A claim that cannot be decided is undecided; the reason names the operations that leave it open
and what would settle it.

Exit codes: 0 every claim asked for held; 1 at least one violated; 2 none violated, at least
one undecided or not tested, as in an empty history; 254 wrong usage or a malformed history;
255 ackproof itself is at fault.`,
		Example: `  ackproof check store/latest/history.bin
  ackproof check --model log --claims all jepsen/history.edn
  ackproof check --isolation snapshot-isolation list-append.edn
  ackproof check --model fifo --dedup-window 5m orders.jsonl`,
		Args: cobra.ExactArgs(1),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.format, "format", "auto", "format of FILE: auto (by its content), or one of: "+strings.Join(formats(), ", "))
	flags.StringVar(&f.model, "model", "auto", "what the history is of: auto (by its operations), or one of: "+strings.Join(modelNames(), ", "))
	flags.StringVar(&f.contract, "contract", "", "file with the contract of a log (JSON, as in run.json); of a group only whether its log is dense counts")
	flags.StringVar(&f.claims, "claims", "", "claims to decide, separated by commas; all adds the opt-in ones, and that a log has no gaps (default: every claim of the contract)")
	flags.BoolVar(&f.drained, "drained", false, "take what was read after the last acknowledgement for the log as it stays (default: only if the history marks where its drain begins)")
	flags.StringVar(&f.isolation, "isolation", linearizability.StrictSerializable.String(), "level of transactions: strict-serializable, serializable, snapshot-isolation or read-committed")
	flags.BoolVar(&f.interleaved, "interleaved", false, "transactions on logs may write between each other's records, as in Kafka: only what was read counts (default: their order counts too)")
	flags.DurationVar(&f.dedupWindow, "dedup-window", 0, "fifo: how long a deduplication id is remembered, such as 5m (default: not promised)")
	flags.Float64Var(&f.drift, "drift", 0, "queue, fifo: by which part a lease or window may last shorter than promised, from 0 to below 1 (0.01: one per cent)")
	flags.StringVar(&f.certificates, "certificates", "", "directory to write the certificates to (default: they are not written)")
	flags.BoolVar(&f.json, "json", false, "results as JSON on stdout, all else on stderr")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("claims") && len(list(f.claims)) == 0 {
			return usagef("--claims is empty, expected all or a list of claims")
		}
		if f.drift < 0 || f.drift >= 1 {
			return usagef("--drift is %v, expected from 0 to below 1", f.drift)
		}
		if f.dedupWindow < 0 {
			return usagef("--dedup-window is %v, expected a duration from 0 on", f.dedupWindow)
		}
		for name := range onlyFor {
			f.given = append(f.given, name)
		}
		f.given = slices.DeleteFunc(f.given, func(name string) bool { return !cmd.Flags().Changed(name) })
		return runCheck(args[0], f, os.Stdout, os.Stderr)
	}
	return cmd
}

// checked is what a check found.
type checked struct {
	report.Checked
	answer       *linearizability.Answer
	disagreement error // of porcupine and the exact checkers, nil if they agree
}

func runCheck(path string, f checkFlags, stdout, stderr io.Writer) error {
	begin := time.Now()
	s, err := survey(path, f.format)
	if err != nil {
		return malformed(err)
	}
	m, err := chooseModel(s, f)
	if err != nil {
		return err
	}
	for _, name := range f.given {
		if !slices.Contains(onlyFor[name], m.name) {
			return usagef("--%s with the model %s, expected it with %s", name, m.name, strings.Join(onlyFor[name], " or "))
		}
	}
	c, err := m.check(s, f)
	if err != nil {
		return malformed(err)
	}
	c.Notes = append(c.Notes, s.notes()...)
	a := c.answer
	c.File = path
	c.Results = model.Results{
		Version: 1, Seed: s.header.Seed, System: c.Results.System, Workload: m.name, Verdict: a.Verdict(), Operations: a.Operations, Records: a.Records, Faults: []model.FaultResult{},
		LeaderChanges: c.Results.LeaderChanges, UnavailableMS: a.UnavailableMS, Claims: a.Claims, SecondOpinion: c.Results.SecondOpinion, Drain: a.Drain,
		Seconds: model.Seconds{Check: time.Since(begin).Seconds()},
	}
	c.Results.Exit = c.Results.Verdict.Exit()
	if c.disagreement != nil {
		c.Notes = append(c.Notes, "a bug of ackproof: "+c.disagreement.Error())
		if c.Results.Verdict != model.Violated {
			c.Results.Exit = model.ExitCrash
		}
	}
	if f.certificates != "" {
		if err := writeCertificates(f.certificates, path, s.header.Run, c.Results.Claims); err != nil {
			return exitError{code: model.ExitInfrastructure, message: err.Error()}
		}
	}
	text := report.Check(c.Checked)
	if f.json {
		out := json.NewEncoder(stdout)
		out.SetIndent("", "  ")
		if err := out.Encode(c.Results); err != nil {
			return exitError{code: model.ExitCrash, message: "encode the results: " + err.Error()}
		}
		io.WriteString(stderr, text)
	} else {
		io.WriteString(stdout, text)
	}
	if c.Results.Exit != model.ExitHeld {
		return exitError{code: c.Results.Exit}
	}
	return nil
}

// named puts the path before an error that does not name it.
func named(path string, err error) error {
	if strings.Contains(err.Error(), path) {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// malformed is the error of a history, or of what belongs to it, that cannot be judged.
func malformed(err error) error {
	var exit exitError
	if errors.As(err, &exit) {
		return err
	}
	return usagef("%v", err)
}

// writeCertificates gives every proof a file of its own and notes its path in the result.
func writeCertificates(dir, history string, run uint64, claims []model.ClaimResult) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write the certificates: %w", err)
	}
	from, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("write the certificates: %w", err)
	}
	to, err := filepath.Abs(history)
	if err == nil {
		to, err = filepath.Rel(from, to)
	}
	if err != nil {
		return fmt.Errorf("write the certificates: %w", err)
	}
	for _, c := range claims {
		n := 0
		for i := range c.Anomalies {
			a := &c.Anomalies[i]
			if a.Proof == nil {
				continue
			}
			n++
			a.Proof.Bind(filepath.ToSlash(to), run)
			raw, err := json.MarshalIndent(a.Proof, "", "  ")
			if err != nil {
				return fmt.Errorf("encode a certificate: %w", err)
			}
			a.Certificate = filepath.ToSlash(filepath.Join(dir, fmt.Sprintf("%s-%d.json", c.ID, n)))
			if err := os.WriteFile(a.Certificate, append(raw, '\n'), 0o644); err != nil {
				return fmt.Errorf("write the certificates: %w", err)
			}
		}
	}
	return nil
}

// historyModel is one kind of history and its checker.
type historyModel struct {
	name  string
	check func(s *surveyed, f checkFlags) (*checked, error)
}

// historyModels are all kinds, as --model names them.
func historyModels() []historyModel {
	all := []historyModel{{"log", checkLog}, {"list-append", checkTransactions}, {"groups", checkGroups}, {"commits", checkCommits}, {"queue", checkQueue("queue", linearizability.CheckWorkQueue)}, {"fifo", checkQueue("fifo", linearizability.CheckFIFO)}}
	for _, name := range linearizability.ObjectModels() {
		all = append(all, historyModel{name, checkObjects(name)})
	}
	return all
}

func join(claims []model.Claim) string {
	names := make([]string, len(claims))
	for i, c := range claims {
		names[i] = string(c)
	}
	return strings.Join(names, ", ")
}

func modelNames() []string {
	var names []string
	for _, m := range historyModels() {
		names = append(names, m.name)
	}
	return names
}

// chooseModel takes the one that was named, or guesses by what the history does.
func chooseModel(s *surveyed, f checkFlags) (historyModel, error) {
	name, objects := f.model, s.kinds[histories.Object] > 0
	if name == "auto" {
		name = "log"
		if objects {
			var err error
			if name, err = guess(s, f); err != nil {
				return historyModel{}, err
			}
		}
	}
	leases := s.does[histories.Receive] || s.does[histories.Ack] || s.does[histories.Nack] || s.does[histories.Extend]
	if name == "queue" && objects && !leases {
		name = "total-queue" // a queue without leases
	}
	all := historyModels()
	i := slices.IndexFunc(all, func(m historyModel) bool { return m.name == name })
	switch {
	case name == "fifo" && s.does[histories.Drain]:
		return historyModel{}, usagef("--model fifo, but %s has drains, which say nothing of an order; expected --model queue", s.path)
	case i < 0:
		return historyModel{}, usagef("--model is %q, expected auto or one of: %s", name, strings.Join(modelNames(), ", "))
	case objects && name == "log" && !s.grouped():
		return historyModel{}, usagef("--model log, but %s has operations on objects", s.path)
	case !objects && name != "log" && s.operations > 0:
		return historyModel{}, usagef("--model %s, but %s has operations on a log", name, s.path)
	case (name == "groups" || name == "commits") && objects && !s.grouped():
		return historyModel{}, usagef("--model %s, but %s has operations on other objects than groups", name, s.path)
	}
	return all[i], nil
}

// guess names the model of a history of objects.
func guess(s *surveyed, f checkFlags) (string, error) {
	switch {
	case s.only(histories.Read, histories.AppendTo) && s.numbers:
		return "list-append", nil
	case s.does[histories.Receive] || s.does[histories.Ack]:
		return "queue", nil
	case s.grouped() && s.only(histories.Commit, histories.Committed):
		return "commits", nil
	case s.grouped():
		return "groups", nil
	}
	in, err := open(s.path, f.format)
	if err != nil {
		return "", malformed(err)
	}
	defer in.Close()
	name, err := linearizability.GuessObjects(in.All())
	switch {
	case err != nil:
		return "", malformed(named(s.path, err))
	case name == "":
		return "", usagef("%s: no model allows all that its operations do, expected --model and one of: %s", s.path, strings.Join(modelNames(), ", "))
	}
	return name, nil
}
