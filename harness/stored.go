package harness

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ackproof/histories"
	"ackproof/model"
	"ackproof/nemesis"
	"ackproof/report/page"
)

// ResultsVersion is the version of results.json.
const ResultsVersion = 1

// maxStored bounds the JSON files of a run that are read back, in bytes: what is larger is none of ours.
const maxStored = 64 << 20

// stored reads files of a run directory and never leaves it, whatever the paths in these files say.
type stored struct {
	dir  string
	root *os.Root
}

func openStored(dir string) (stored, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return stored{}, usage("%s: %v, expected the directory of a run", dir, err)
	}
	return stored{dir, root}, nil
}

// json reads one file into v.
func (s stored) json(name string, v any) error {
	f, err := s.root.Open(filepath.FromSlash(name))
	if errors.Is(err, fs.ErrNotExist) {
		return usage("%s: no %s in it: no run, or one that did not come to its end", s.dir, name)
	}
	if err != nil {
		return usage("%s: read %s: %v", s.dir, name, err)
	}
	defer f.Close()
	d := json.NewDecoder(io.LimitReader(f, maxStored))
	if err := d.Decode(v); err != nil {
		return usage("%s: %s: byte %d: %v, expected one JSON object", s.dir, name, d.InputOffset(), err)
	}
	return nil
}

// LoadResults reads the results.json of a run directory. Errors are UsageErrors that name the file.
func LoadResults(dir string) (model.Results, error) {
	s, err := openStored(dir)
	if err != nil {
		return model.Results{}, err
	}
	defer s.root.Close()
	return s.results()
}

func (s stored) results() (res model.Results, err error) {
	var head struct {
		Version int `json:"version"`
	}
	if err := s.json(resultsFile, &head); err != nil {
		return res, err
	}
	switch {
	case head.Version > ResultsVersion:
		return res, usage("%s: %s is of version %d, which a newer ackproof has written, expected version %d", s.dir, resultsFile, head.Version, ResultsVersion)
	case head.Version < 1:
		return res, usage("%s: %s is of version %d, expected %d", s.dir, resultsFile, head.Version, ResultsVersion)
	}
	return res, s.json(resultsFile, &res)
}

// recorded gives the plan and the facts of a run directory, and the path of its history, which is whole.
func recorded(dir string) (plan Plan, facts model.Facts, path string, err error) {
	if plan, err = LoadPlan(dir); err != nil {
		return plan, facts, "", err
	}
	if facts, err = LoadFacts(dir); err != nil {
		return plan, facts, "", err
	}
	path = filepath.Join(dir, historyFile)
	return plan, facts, path, whole(path, plan.Run)
}

// LoadRun reads all that a page tells about from a run directory. The events are read when they are asked for. Errors are UsageErrors that name the file.
func LoadRun(dir string) (*page.Run, error) {
	s, err := openStored(dir)
	if err != nil {
		return nil, err
	}
	defer s.root.Close()
	res, err := s.results()
	if err != nil {
		return nil, err
	}
	plan, facts, path, err := recorded(dir)
	if err != nil {
		return nil, err
	}
	run := &page.Run{
		Results: res, Facts: facts, Contract: plan.Contract, Dir: dir, Started: plan.Started, Replay: "ackproof test --replay " + dir, Planted: plan.Options.Plant,
		Environment: environment(plan), Events: eventsOf(path),
	}
	if len(plan.Command) > 0 {
		run.Command = "ackproof " + strings.Join(plan.Command, " ")
	}
	schedule, err := json.MarshalIndent(plan.Schedule, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the schedule of %s: %w", dir, err)
	}
	run.Schedule = string(schedule)
	for _, k := range nemesis.AllKinds() {
		if !slices.Contains(plan.Options.Nemesis, k) {
			run.FaultsNotAsked = append(run.FaultsNotAsked, string(k))
		}
	}
	if run.Proofs, err = s.proofs(res); err != nil {
		return nil, err
	}
	s.findViews(run.Proofs)
	run.Series = seriesOf(dir, plan, res)
	return run, nil
}

// whole tells whether a history can be read at all and belongs to the run.
func whole(path, run string) error {
	in, err := histories.Open(path)
	if err != nil {
		return usage("%v", err)
	}
	defer in.Close()
	if got := fmt.Sprintf("%016x", in.Header().Run); got != run {
		return usage("%s is of run %s, expected run %s as the %s beside it says", path, got, run, planFile)
	}
	return nil
}

// eventsOf reads a history each time it is called; one that is cut off is an error at its end.
func eventsOf(path string) func() iter.Seq2[histories.Event, error] {
	return func() iter.Seq2[histories.Event, error] {
		return func(yield func(histories.Event, error) bool) {
			in, err := histories.Open(path)
			if err != nil {
				yield(histories.Event{}, usage("%v", err))
				return
			}
			defer in.Close()
			for ev, err := range in.All() {
				if err != nil {
					err = usage("%s: %v", path, err)
				}
				if !yield(ev, err) || err != nil {
					return
				}
			}
			if at, cut := in.Truncated(); cut {
				yield(histories.Event{}, usage("%s is cut off inside the block at byte %d, expected the whole history of a run that came to its end", path, at))
			}
		}
	}
}

// proofs reads the certificates in the order of the results.
func (s stored) proofs(res model.Results) (proofs []page.Proof, err error) {
	for _, c := range res.Claims {
		for _, a := range c.Anomalies {
			if a.Certificate == "" {
				continue
			}
			p := page.Proof{Path: a.Certificate}
			if err := s.json(a.Certificate, &p.Certificate); err != nil {
				return nil, err
			}
			proofs = append(proofs, p)
		}
	}
	return proofs, nil
}

func environment(p Plan) []page.Pair {
	o, c := p.Options, p.Contract
	acks := fmt.Sprint(c.Acks)
	if c.Acks == -1 {
		acks = "all"
	}
	is := func(on bool) string {
		if on {
			return "on"
		}
		return "off"
	}
	flush := "at intervals"
	if c.FlushEach {
		flush = "before each ack"
	}
	return []page.Pair{
		{Name: "Configuration", Value: fmt.Sprintf("%d nodes, %d partitions × %d copies, min.insync.replicas=%d, acks=%s, idempotence %s, unclean election %s, flush %s; %d clients, load %v",
			o.Nodes, c.Partitions, c.Replication, c.MinISR, acks, is(c.Idempotent), is(c.Unclean), flush, o.Clients, time.Duration(o.Time))},
		{Name: "Versions", Value: fmt.Sprintf("%s %s, ackproof %s", p.Versions.System.Name, p.Versions.System.Version, p.Versions.Ackproof)},
		{Name: "Machine", Value: fmt.Sprintf("%s/%s, %d CPUs, %s", p.Environment.OS, p.Environment.Arch, p.Environment.CPUs, p.Environment.Go)},
	}
}

// maxSeries bounds the runs that are looked at for those of the same test.
const maxSeries = 500

// seriesOf finds the runs of the same test in the folder of the run that began before it. Runs that cannot be read count for nothing here.
func seriesOf(dir string, plan Plan, res model.Results) page.Series {
	series := page.Series{}
	count := func(r model.Results) {
		switch r.Verdict {
		case model.Held:
			series.Runs++
		case model.Violated:
			series.Runs++
			series.Violated++
		}
	}
	count(res)
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return series
	}
	family := filepath.Dir(real)
	entries, err := os.ReadDir(family)
	if err != nil {
		return series
	}
	type earlier struct {
		plan Plan
		res  model.Results
		name string
	}
	var found []earlier
	slices.Reverse(entries) // their names begin with the time: the newest first
	for _, e := range entries[:min(len(entries), maxSeries)] {
		other := filepath.Join(family, e.Name())
		if !e.IsDir() || other == real {
			continue
		}
		p, err := LoadPlan(other)
		if err != nil || !p.Started.Before(plan.Started) || !sameTest(p, plan) {
			continue
		}
		r, err := LoadResults(other)
		if err != nil {
			continue
		}
		found = append(found, earlier{p, r, e.Name()})
		count(r)
	}
	if len(found) == 0 {
		return series
	}
	last := slices.MaxFunc(found, func(a, b earlier) int {
		return cmp.Or(a.plan.Started.Compare(b.plan.Started), cmp.Compare(a.name, b.name))
	})
	series.Previous = &page.Earlier{Name: last.name, Results: last.res, Differs: differences(last.plan, plan)}
	return series
}

// sameTest tells whether two plans ask for the same but for the seed and what is under test: its build and the bug planted in it.
func sameTest(a, b Plan) bool {
	same := func(o Options) string {
		o.Seed, o.Plant, o.KeepGoing = 0, "", false
		raw, err := json.Marshal(o)
		if err != nil { // options always encode
			panic(err)
		}
		return string(raw)
	}
	return same(a.Options) == same(b.Options)
}

func differences(before, now Plan) (out []string) {
	differ := func(what, b, n string) {
		if b != n {
			out = append(out, fmt.Sprintf("%s %s, was %s", what, orNone(n), orNone(b)))
		}
	}
	differ("seed", fmt.Sprint(before.Seed), fmt.Sprint(now.Seed))
	differ("planted bug", before.Options.Plant, now.Options.Plant)
	differ("version of the system", before.Versions.System.Version, now.Versions.System.Version)
	differ("ackproof", before.Versions.Ackproof, now.Versions.Ackproof)
	return out
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// WriteReport writes the report.html of a run directory in one piece, with porcupine's views of what it proves beside it, and returns its path. Errors about what is in
// the directory are UsageErrors.
func WriteReport(dir string) (string, error) {
	run, err := LoadRun(dir)
	if err != nil {
		return "", err
	}
	if len(run.Proofs) > 0 {
		if err := writeViews(dir, run.Proofs); err != nil {
			return "", err
		}
		if run, err = LoadRun(dir); err != nil {
			return "", err
		}
	}
	path := filepath.Join(dir, reportFile)
	return path, writeWhole(path, func(w io.Writer) error { return page.Write(w, run) })
}

// writeWhole writes a file that is there whole or not at all.
func writeWhole(path string, write func(io.Writer) error) (err error) {
	f, err := os.Create(path + ".part")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(path+".part"))
		}
	}()
	if err := errors.Join(write(f), f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}
