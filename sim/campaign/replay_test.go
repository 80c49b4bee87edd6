package campaign

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ackproof/broker/fault"
	"ackproof/model"
)

// entries are the cases of the corpus, by file name.
func entries(t *testing.T) map[string]Entry {
	t.Helper()
	files, err := os.ReadDir("testdata/corpus")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Entry{}
	for _, f := range files {
		e, err := LoadEntry(filepath.Join("testdata/corpus", f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[f.Name()] = e
	}
	if len(out) == 0 {
		t.Fatal("the corpus is empty")
	}
	return out
}

// Every case of the corpus holds without its bug.
func TestTheCorpusHoldsWithoutItsBugs(t *testing.T) {
	for name, e := range entries(t) {
		e.Case.Plant = ""
		if s := Execute(e.Case); s.Failed != "" || s.Verdict == model.Violated {
			t.Errorf("%s without its bug: %s %v %v %s, expected that it holds", name, s.Verdict, s.Anomalies, s.Broken, s.Failed)
		}
	}
}

// A case of the corpus is small, and named after the bug that it shows.
func TestTheCorpusIsSmall(t *testing.T) {
	for name, e := range entries(t) {
		if e.Case.Plant != "" && name != e.Case.Plant+".json" {
			t.Errorf("%s is a case of %s", name, e.Case.Plant)
		}
		if _, ok := fault.Find(e.Case.Plant); e.Case.Plant != "" && !ok {
			t.Errorf("%s: no bug %s in the catalogue", name, e.Case.Plant)
		}
		if n := len(e.Case.Schedule.Faults); n > 4 {
			t.Errorf("%s has %d faults, expected at most 4", name, n)
		}
		if len(e.Anomalies) == 0 && !e.Broken || len(e.Story) < 2 || !strings.Contains(e.Story[0], "1.") {
			t.Errorf("%s tells of no violation: %v", name, e.Story)
		}
	}
}

// seedsOfEntry are tried one after the other. The first is the entry's own: with it the case was violated when it was saved, and is as long as nobody changes the order of
// events. A change of the simulator moves them; then another seed will do, because the faults are what matters.
func seedsOfEntry(e Entry) []int64 {
	out := []int64{e.Case.Seed}
	for i := range int64(30) {
		out = append(out, e.Case.Seed+(i+1)*1_000_003)
	}
	return out
}

// Every case of the corpus shows what it is said to show, with its bug.
func TestTheCorpusShowsItsBugs(t *testing.T) {
	if !fault.Built {
		t.Skip("needs -tags failpoints")
	}
	for name, e := range entries(t) {
		found := false
		for i, seed := range seedsOfEntry(e) {
			c := e.Case
			c.Seed = seed
			s := Execute(c)
			if s.Failed != "" {
				t.Errorf("%s, seed %d: %s", name, seed, s.Failed)
				break
			}
			found = s.Verdict == model.Violated && (len(s.Broken) > 0 && e.Broken || slices.ContainsFunc(s.Anomalies, func(a model.Anomaly) bool { return slices.Contains(e.Anomalies, a) }))
			if found {
				if i > 0 {
					t.Logf("%s: its own seed no longer shows it, seed %d does: the order of events has changed since it was saved", name, seed)
				}
				break
			}
		}
		if !found {
			t.Errorf("%s does not show any of %v (invariant %t) with any of %d seeds", name, e.Anomalies, e.Broken, len(seedsOfEntry(e)))
		}
	}
}
