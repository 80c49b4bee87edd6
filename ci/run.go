package ci

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"ackproof/model"
)

// Observer is told how a gate goes on.
type Observer interface {
	Phase(name string, lasts time.Duration)
	Tick(elapsed time.Duration, text string)
	Note(text string)
}

// Runner carries a gate out.
type Runner struct {
	Gate      *Gate
	Binary    string // the program that has the command test
	Artefacts string // folder for everything that stays
	KeepGoing bool   // go on with the other tests after a violation
	Observer  Observer
}

// Names in the artefact folder.
const (
	runsDir   = "runs"   // a store of run directories
	outputDir = "output" // what each run said
)

// Run carries all tests out, in order, and judges them. An error means that the gate could not be carried out at all; whatever became of single tests is in the
// outcome. When ctx ends, the run that goes on is ended and no other is begun.
func (r Runner) Run(ctx context.Context) (*Outcome, error) {
	for _, dir := range []string{r.Artefacts, filepath.Join(r.Artefacts, outputDir)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("make the artefact folder: %w", err)
		}
	}
	began := time.Now()
	out := &Outcome{Version: OutcomeVersion, File: r.Gate.Path, Started: began.UTC(), Status: Passed, Tests: []TestOutcome{}, Quarantine: []QuarantineOutcome{}}
	var stop string // why no further run is begun
	for i, t := range r.Gate.Tests {
		now := time.Now()
		s := &series{r: r, t: t, end: now.Add(share(began.Add(r.Gate.Budget).Sub(now), r.Gate.Tests[i:])), stop: stop}
		if t.Budget > 0 {
			s.end = earlier(s.end, now.Add(t.Budget))
		}
		result := s.run(ctx)
		out.Tests = append(out.Tests, result)
		out.Status = worse(out.Status, result.Status)
		if stop = s.stop; stop == "" && result.Status == Failed && !r.KeepGoing {
			stop = "the gate had stopped at test " + t.Name
		}
	}
	out.quarantine(r.Gate, began)
	out.Exit = out.Status.exit()
	out.Seconds = time.Since(began).Seconds()
	return out, nil
}

// share is how much of the time that is left the first of the tests may take: in proportion to what each is going to need, so that one that hangs leaves room for the others.
func share(left time.Duration, tests []Test) time.Duration {
	var first, all float64
	for i, t := range tests {
		need := float64(len(t.Seeds)) * (t.Load + usualBeside).Seconds()
		if all += need; i == 0 {
			first = need
		}
	}
	return time.Duration(float64(left) * first / all)
}

// quarantine tells what became of each entry; an expired one fails the gate.
func (o *Outcome) quarantine(g *Gate, now time.Time) {
	for _, q := range g.Quarantine {
		e := QuarantineOutcome{Line: q.Line, Test: q.Test, Claim: q.Claim, Anomaly: q.Anomaly, Issue: q.Issue, Owner: q.Owner, LastDay: q.LastDay(), Expired: q.Expired(now)}
		for _, t := range o.Tests {
			for _, c := range t.Claims {
				for _, v := range c.Violations {
					e.Met = e.Met || q.excuses(t.Name, c.ID, v.Anomaly)
				}
			}
		}
		if e.Expired {
			o.Status = worse(o.Status, Failed)
		}
		o.Quarantine = append(o.Quarantine, e)
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// series is the runs of one test.
type series struct {
	r      Runner
	t      Test
	end    time.Time     // of the time that the test has
	beside time.Duration // the longest that a run took beside its load
	stop   string        // why no further run is begun, "" if one may be
	runs   []RunOutcome
}

// run carries out one run for each seed, until something stops it, and judges.
func (s *series) run(ctx context.Context) TestOutcome {
	done := false // there is nothing left to find
	for i, seed := range s.t.Seeds {
		run := RunOutcome{Seed: seed.Value, Fresh: seed.Fresh, Status: Skipped}
		switch left := time.Until(s.end); {
		case done:
			run.Reason = "not needed: the answer is there"
		case s.stop != "":
			run.Status, run.Reason = NotRun, s.stop
		case ctx.Err() != nil:
			s.stop = "the gate was interrupted"
			run.Status, run.Reason = CouldNotRun, s.stop
		case left < s.t.Load+s.beside:
			run.Status, run.Reason = Unproven, fmt.Sprintf("not carried out: %v of the budget were left, and a run takes about %v", left.Round(time.Second), (s.t.Load+s.beside).Round(time.Second))
		default:
			s.r.Observer.Note(fmt.Sprintf("%s: seed %d (run %d of %d)", s.t.Name, seed.Value, i+1, len(s.t.Seeds)))
			s.r.Observer.Phase("run", s.t.Load+max(s.beside, usualBeside))
			run = s.tries(ctx, run)
			s.r.Observer.Note("  " + headline(run))
		}
		s.runs = append(s.runs, run)
		// One certificate is enough; no further run can take it back.
		if run.Exit == model.ExitViolated && !done {
			done = s.t.Expect == ExpectViolated || s.judge().Status == Failed && !s.r.KeepGoing
		}
	}
	return s.judge()
}

// usualBeside is about how long a run takes beside its load.
const usualBeside = 8 * time.Second

func (s *series) judge() TestOutcome { return judge(s.t, s.runs, s.r.Gate.Quarantine, time.Now()) }

// tries carries a run out, and again if it could not run.
func (s *series) tries(ctx context.Context, run RunOutcome) RunOutcome {
	begin := time.Now()
	for {
		run.Tries++
		last := s.once(ctx, run)
		last.Seconds = time.Since(begin).Seconds()
		if last.Status != CouldNotRun || run.Tries > s.t.Retries || ctx.Err() != nil || time.Until(s.end) < s.t.Load+s.beside {
			return last
		}
		s.r.Observer.Note(fmt.Sprintf("  could not run: %s; once more", last.Reason))
	}
}

// once carries a run out in a process of its own.
func (s *series) once(ctx context.Context, run RunOutcome) RunOutcome {
	begin := time.Now()
	store := filepath.Join(s.r.Artefacts, runsDir)
	run.Output = filepath.Join(s.r.Artefacts, outputDir, fmt.Sprintf("%s-%d.%d.txt", s.t.Name, run.Seed, run.Tries))
	output, err := os.Create(run.Output)
	if err != nil {
		run.Status, run.Reason = CouldNotRun, "keep what the run says: "+err.Error()
		return run
	}
	defer output.Close()
	before := latest(store)
	watch := &lastLine{to: output}
	p := process{binary: s.r.Binary, args: s.args(run.Seed, store), stdout: watch, stderr: watch, limit: time.Until(s.end)}
	stop := s.ticks(begin, watch)
	code, err := p.run(ctx)
	stop()
	if dir := latest(store); dir != before {
		run.Dir, run.Replay = dir, "ackproof test --replay "+dir
	}
	run.Exit = code
	if took := time.Since(begin); code == model.ExitHeld && took > s.t.Load {
		s.beside = max(s.beside, took-s.t.Load)
	}
	return s.result(run, err, watch)
}

// args is the command line of a run.
func (s *series) args(seed int64, store string) []string {
	args := append([]string{"test"}, s.t.Args...)
	if len(s.t.Claims) > 0 {
		args = append(args, "--claims="+strings.ReplaceAll(words(s.t.Claims), ", ", ","))
	}
	if s.r.KeepGoing {
		args = append(args, "--keep-going")
	}
	return append(args, "--seed="+strconv.FormatInt(seed, 10), "--store="+store)
}

// ticks shows what the run says last, until the returned function is called.
func (s *series) ticks(begin time.Time, watch *lastLine) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(250 * time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-quit:
				return
			case <-t.C:
				s.r.Observer.Tick(time.Since(begin), watch.line())
			}
		}
	}()
	return func() { close(quit); <-done }
}

// result turns an exit code and a run directory into an outcome.
func (s *series) result(run RunOutcome, err error, watch *lastLine) RunOutcome {
	switch {
	case errors.Is(err, errOutOfTime):
		run.Status, run.Reason = Unproven, "ended by the gate: its time was over before it had come to its end"
		return run
	case run.Exit == model.ExitInfrastructure:
		run.Status, run.Reason = CouldNotRun, watch.complaint()
		switch {
		case errors.Is(err, context.Canceled):
			run.Reason = "the gate was interrupted"
		case err != nil:
			run.Reason = err.Error()
		}
		return run
	case run.Exit != model.ExitHeld && run.Exit != model.ExitViolated && run.Exit != model.ExitUndecided:
		run.Status, run.Reason = Crashed, fmt.Sprintf("exit code %d: %s", run.Exit, watch.complaint())
		if err != nil {
			run.Reason = err.Error()
		}
		return run
	}
	results, err := readResults(run)
	if err != nil {
		run.Status, run.Reason = Crashed, err.Error()
		if run.Exit == model.ExitViolated { // the violation stands
			run.Status = Failed
		}
		return run
	}
	run.Status, run.results = Passed, results
	return run
}

// readResults reads what the run found and makes sure that it is that run's.
func readResults(run RunOutcome) (*model.Results, error) {
	if run.Dir == "" {
		return nil, fmt.Errorf("exit code %d, but there is no run directory", run.Exit)
	}
	path := filepath.Join(run.Dir, "results.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("exit code %d, but there are no results: %w", run.Exit, err)
	}
	var r model.Results
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if r.Version != 1 || r.Exit != run.Exit || r.Seed != run.Seed {
		return nil, fmt.Errorf("%s is of version %d, exit code %d, seed %d, expected version 1, exit code %d, seed %d", path, r.Version, r.Exit, r.Seed, run.Exit, run.Seed)
	}
	return &r, nil
}

// latest is the newest run directory of a store, "" if there is none.
func latest(store string) string {
	to, err := os.Readlink(filepath.Join(store, "latest"))
	if err != nil {
		return ""
	}
	return filepath.Join(store, to)
}

// lastLine passes on what is written and remembers the last whole line. It is safe for concurrent use.
type lastLine struct {
	mu   sync.Mutex
	to   io.Writer
	rest []byte // of a line that is not whole yet
	last string
	own  string // the last line in which ackproof speaks of itself
}

// longestLine bounds what is remembered of a line, in bytes.
const longestLine = 500

func (l *lastLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(p) {
		l.rest = append(l.rest, line[:min(len(line), longestLine)]...)
		if line[len(line)-1] == '\n' {
			if text := strings.TrimSpace(string(l.rest)); text != "" {
				l.last = text[:min(len(text), longestLine)]
				if strings.HasPrefix(text, "ackproof") {
					l.own = l.last
				}
			}
			l.rest = l.rest[:0]
		}
		l.rest = l.rest[:min(len(l.rest), longestLine)]
	}
	return l.to.Write(p)
}

func (l *lastLine) line() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// complaint is why ackproof gave up, as far as it said so.
func (l *lastLine) complaint() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.TrimPrefix(cmp.Or(l.own, l.last, "it said nothing"), "ackproof: ")
	return strings.TrimPrefix(text, "the infrastructure could not run: ") // the status says that
}

// headline is what became of a run, in a line.
func headline(run RunOutcome) string {
	if run.results == nil {
		return fmt.Sprintf("%s after %.0f s: %s", run.Status, run.Seconds, run.Reason)
	}
	r := run.results
	effective := 0
	for _, f := range r.Faults {
		if f.Effective {
			effective++
		}
	}
	return fmt.Sprintf("%s after %.0f s: %d claims, %d records acknowledged, %d of %d faults had an effect", r.Verdict, run.Seconds, len(r.Claims), r.Records.Acked, effective, len(r.Faults))
}
