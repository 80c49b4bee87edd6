package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ackproof/histories"
	"ackproof/model"
)

// put writes the directory of a small run: one record was acknowledged and is gone.
func put(t *testing.T, dir string, run uint64, o Options, started time.Time, v model.Verdict) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, certificates), 0o755); err != nil {
		t.Fatal(err)
	}
	file := func(name string, v any) {
		raw, err := json.Marshal(v)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), raw, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var history bytes.Buffer
	now := time.Duration(0)
	r := histories.NewRecorderClock(&history, histories.Header{Run: run}, func() time.Duration { now += time.Millisecond; return now })
	r.Mark(histories.Event{Kind: histories.Phase, Note: "load"})
	runs := []histories.Run{{Producer: 1, Count: 1}}
	op := r.Invoke(histories.Event{Kind: histories.Append, Process: 1, Runs: runs})
	r.Complete(histories.Event{Type: histories.OK, Kind: histories.Append, Op: op, Process: 1, Runs: runs, Node: 1})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, historyFile), history.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	file(planFile, Plan{Version: PlanVersion, Seed: o.Seed, Run: fmt.Sprintf("%016x", run), Started: started, Options: o, Contract: o.Contract()})
	file(factsFile, model.Facts{Notes: []string{"n1 ended by itself"}})
	res := model.Results{Version: ResultsVersion, Seed: o.Seed, Verdict: v, Exit: v.Exit(), Claims: []model.ClaimResult{{ID: model.NoLoss, Verdict: v}}}
	if v == model.Violated {
		res.Claims[0].Anomalies = []model.AnomalyResult{{Kind: model.LostAcked, Count: 1, Certificate: "certificates/no-loss-1.json"}}
		file("certificates/no-loss-1.json", model.Certificate{Version: 1, Claim: model.NoLoss, Anomaly: model.LostAcked, Sentence: "It is gone.", Operations: []model.ProofOp{{Op: op}}})
	}
	file(resultsFile, res)
}

var storedOptions = Options{System: "reference", Workload: "log", Nodes: 3, Partitions: 1, Replication: 3, MinISR: 2, Acks: -1, Time: Duration(time.Second), Clients: 1}

func TestThePageOfAStoredRunIsWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	put(t, dir, 7, storedOptions, time.Unix(1e9, 0), model.Violated)
	path, err := WriteReport(dir)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"VIOLATED", "It is gone.", "n1 ended by itself", "kinds of faults that this run was not asked for: kill, pause, partition"} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.part")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Each damage of a run directory has an error that names the file, and the store still lists the runs beside it.
func TestDamageIsNamedAndHidesNobody(t *testing.T) {
	overwrite := func(name, text string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(name string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	replace := func(name, old, by string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, name)
			raw, err := os.ReadFile(path)
			if err != nil || !bytes.Contains(raw, []byte(old)) {
				t.Fatalf("%v, or %s has no %s", err, name, old)
			}
			if err := os.WriteFile(path, bytes.Replace(raw, []byte(old), []byte(by), 1), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	store := t.TempDir()
	family := filepath.Join(store, "reference-log")
	put(t, filepath.Join(family, "good"), 1, storedOptions, time.Unix(1e9, 0), model.Held)
	if err := os.MkdirAll(filepath.Join(family, "foreign", "things"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("good", filepath.Join(family, latest)); err != nil {
		t.Fatal(err)
	}
	damages := []struct {
		name   string
		harm   func(t *testing.T, dir string)
		want   string
		listed bool // the list says so too; it does not read histories
	}{
		{"no-results", remove(resultsFile), "no results.json in it", true},
		{"cut-results", overwrite(resultsFile, `{"version": 1, "se`), "results.json: byte", true},
		{"empty-results", overwrite(resultsFile, ""), "results.json: byte 0", true},
		{"not-json", overwrite(resultsFile, "<html>"), "results.json: byte", true},
		{"newer", replace(resultsFile, `"version":1`, `"version":2`), "results.json is of version 2, which a newer ackproof has written", true},
		{"other-json", overwrite(resultsFile, `{"name": "something else"}`), "is of version 0", true},
		{"no-plan", remove(planFile), "no run.json in it", true},
		{"newer-plan", replace(planFile, `"version":1`, `"version":3`), "version 3", true},
		{"no-history", remove(historyFile), "history.bin", false},
		{"foreign-history", overwrite(historyFile, "hello"), "expected", false},
		{"cut-history", func(t *testing.T, dir string) {
			path := filepath.Join(dir, historyFile)
			info, err := os.Stat(path)
			if err == nil {
				err = os.Truncate(path, info.Size()-3)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, "is cut off", false},
		{"history-of-another-run", replace(planFile, `"run":"`, `"run":"f`), "expected run f", false},
		{"no-certificate", remove("certificates/no-loss-1.json"), "certificates/no-loss-1.json", false},
		{"certificate-outside", replace(resultsFile, "certificates/no-loss-1.json", "../good/results.json"), "escapes", false},
	}
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			dir := filepath.Join(family, d.name)
			put(t, dir, 2, storedOptions, time.Unix(2e9, 0), model.Violated)
			d.harm(t, dir)
			_, err := WriteReport(dir)
			var wrong UsageError
			if !errors.As(err, &wrong) || !strings.Contains(err.Error(), d.want) || !strings.Contains(err.Error(), d.name) {
				t.Errorf("%v, expected a usage error with %q that names the run", err, d.want)
			}
			if _, err := os.Stat(filepath.Join(dir, reportFile)); err == nil {
				t.Error("a page was written all the same")
			}
		})
	}
	s, err := OpenStore(store)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := s.Runs()
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(damages)+1 {
		t.Errorf("%d runs listed, expected %d", len(entries), len(damages)+1)
	}
	for _, e := range entries {
		switch e.Name {
		case "reference-log/good":
			if e.Damage != "" || e.Results.Verdict != model.Held {
				t.Errorf("the good run: %+v", e)
			}
		default:
			for _, d := range damages {
				if e.Name == "reference-log/"+d.name && (e.Damage != "") != d.listed {
					t.Errorf("%s: %q", e.Name, e.Damage)
				}
			}
		}
	}
	if f, err := s.Open("reference-log/good", "results.json"); err != nil {
		t.Errorf("a file of a run cannot be opened: %v", err)
	} else {
		f.Close()
	}
	for _, name := range []string{"../x", "/etc", "reference-log/nobody", ""} {
		if f, err := s.Open(name, "results.json"); err == nil {
			f.Close()
			t.Errorf("%q was opened", name)
		}
	}
	if f, err := s.Open("reference-log/good", "../newer/results.json"); err == nil {
		f.Close()
		t.Error("a file outside the run was opened")
	}
}

// A run that is written anew while it is listed shows its new results.
func TestTheListSeesChanges(t *testing.T) {
	store := t.TempDir()
	dir := filepath.Join(store, "reference-log", "a")
	put(t, dir, 1, storedOptions, time.Unix(1e9, 0), model.Held)
	s, err := OpenStore(store)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []model.Verdict{model.Held, model.Violated, model.Undecided} {
		put(t, dir, 1, storedOptions, time.Unix(1e9, 0), v)
		entries, err := s.Runs()
		if err != nil || len(entries) != 1 || entries[0].Results.Verdict != v {
			t.Errorf("%v %+v, expected %s", err, entries, v)
		}
	}
}

func TestEarlierRunsOfTheSameTestAreFound(t *testing.T) {
	family := filepath.Join(t.TempDir(), "reference-log")
	at := func(n int) time.Time { return time.Unix(1e9+int64(n), 0) }
	o := storedOptions
	put(t, filepath.Join(family, "1"), 1, o, at(1), model.Violated)
	o.Seed, o.Plant = 2, "B06"
	put(t, filepath.Join(family, "2"), 2, o, at(2), model.Held)
	other := o
	other.Acks = 1
	put(t, filepath.Join(family, "3-other-test"), 3, other, at(3), model.Violated)
	o.Seed, o.Plant = 4, ""
	put(t, filepath.Join(family, "4"), 4, o, at(4), model.Held)
	put(t, filepath.Join(family, "5-later"), 5, o, at(5), model.Violated)
	put(t, filepath.Join(family, "0-undecided"), 6, o, at(0), model.Undecided)
	run, err := LoadRun(filepath.Join(family, "4"))
	if err != nil {
		t.Fatal(err)
	}
	if s := run.Series; s.Runs != 3 || s.Violated != 1 || s.Previous == nil || s.Previous.Name != "2" {
		t.Errorf("%+v", s)
	}
	if d := fmt.Sprint(run.Series.Previous.Differs); d != "[seed 4, was 2 planted bug none, was B06]" {
		t.Errorf("%s", d)
	}
}
