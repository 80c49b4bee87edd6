package campaign

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ackproof/model"
	"ackproof/nemesis"
	"ackproof/sim"
)

// life makes this test's own program a worker.
const life = "ACKPROOF_TEST_SIM_WORKER"

func TestMain(m *testing.M) {
	switch os.Getenv(life) {
	case "serve":
		if err := Serve(os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	case "die":
		os.Stderr.WriteString("the sky fell\n")
		os.Exit(3)
	}
	os.Exit(m.Run())
}

// own is a pool of this program's own processes.
func own(t *testing.T, as string, size int) Pool {
	t.Setenv(life, as)
	return Pool{Command: []string{os.Args[0]}, Size: size}
}

func small(seed int64) sim.Case {
	c := sim.Default(seed)
	c.LoadMS = 3_000
	return c.WithSchedule([]nemesis.Kind{nemesis.Kill})
}

func run(t *testing.T, p Pool, cases ...sim.Case) []Summary {
	t.Helper()
	var out []Summary
	err := p.Each(context.Background(), slices.Values(cases), func(s Summary) bool { out = append(out, s); return true })
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(out, func(a, b Summary) int { return int(a.Seed() - b.Seed()) })
	return out
}

func TestWorkersFindWhatThisProcessFinds(t *testing.T) {
	cases := []sim.Case{small(1), small(2), small(3)}
	here := run(t, Pool{}, cases...)
	there := run(t, own(t, "serve", 2), cases...)
	if len(here) != 3 || len(there) != 3 {
		t.Fatalf("%d and %d summaries, expected 3 each", len(here), len(there))
	}
	for i := range here {
		if here[i].Hash != there[i].Hash || here[i].History != there[i].History || here[i].Verdict != there[i].Verdict || here[i].Verdict != model.Held {
			t.Errorf("seed %d: here %s %s, in a worker %s %s", here[i].Seed(), here[i].Verdict, here[i].Hash, there[i].Verdict, there[i].Hash)
		}
	}
}

func TestADeadWorkerIsNoPass(t *testing.T) {
	r := NewReport()
	for _, s := range run(t, own(t, "die", 1), small(1), small(2)) {
		if !strings.Contains(s.Failed, "the sky fell") {
			t.Errorf("seed %d: failed is %q, expected what the worker said", s.Seed(), s.Failed)
		}
		r.Add(s)
	}
	if r.Close(1); r.Exit != model.ExitCrash {
		t.Errorf("exit %d, expected %d", r.Exit, model.ExitCrash)
	}
	if err := (Pool{Command: []string{filepath.Join(t.TempDir(), "none")}}).Each(context.Background(), slices.Values([]sim.Case{small(1)}), func(Summary) bool { return true }); err == nil {
		t.Error("a worker that cannot be started is no error")
	}
}

func TestTheReportIsAsBadAsItsWorstSeed(t *testing.T) {
	held := Summary{Verdict: model.Held, Effective: map[string]int{"kill": 1}}
	for _, c := range []struct {
		name string
		add  []Summary
		want int
	}{
		{"nothing", nil, model.ExitUndecided},
		{"held", []Summary{held}, model.ExitHeld},
		{"held without any effective fault", []Summary{{Verdict: model.Held}}, model.ExitUndecided},
		{"one undecided", []Summary{held, {Verdict: model.Undecided}}, model.ExitUndecided},
		{"one failed", []Summary{held, {Failed: "x"}}, model.ExitCrash},
		{"one violated", []Summary{held, {Failed: "x"}, {Verdict: model.Violated}, {Verdict: model.Undecided}}, model.ExitViolated},
	} {
		r := NewReport()
		for _, s := range c.add {
			r.Add(s)
		}
		if r.Close(1); r.Exit != c.want {
			t.Errorf("%s: exit %d, expected %d", c.name, r.Exit, c.want)
		}
	}
}

func TestAnEntryIsReadBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b.json")
	e := Entry{Story: []string{"1. n1 < n2"}, Anomalies: []model.Anomaly{model.LostAcked}, Case: small(7)}
	if err := e.Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := LoadEntry(path)
	if err != nil || !bytes.Equal(encode(got.Case), encode(e.Case)) || !slices.Equal(got.Anomalies, e.Anomalies) {
		t.Errorf("%v, %+v, expected %+v", err, got, e)
	}
	if err := os.WriteFile(path, encode(e.Case), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := LoadEntry(path); err != nil || got.Case.Seed != 7 {
		t.Errorf("a bare case: %v, seed %d, expected 7", err, got.Case.Seed)
	}
	for _, c := range []struct{ text, want string }{
		{`{"nodes": 3, "knots": 4}`, "knots"}, {`{"case": 7}`, "expected a simulated case"}, {`[`, "byte"}, {`{"nodes": 99}`, "nodes is 99"}, {``, "byte 0"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadEntry(path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected an error with %q", c.text, err, c.want)
		}
	}
}

func TestTimesBecomeRound(t *testing.T) {
	for from, want := range map[int64]int64{0: 0, 4: 4, 12: 10, 50: 50, 99: 100, 123: 120, 999: 1000, 1234: 1200, 98765: 99000} {
		v := from
		round(&v)
		if v != want {
			t.Errorf("%d becomes %d, expected %d", from, v, want)
		}
	}
}

// A storm of rebalances puts groups to the test without any fault of a schedule.
func TestAStormCountsAsAFault(t *testing.T) {
	g := sim.DefaultGroups()
	g.Members, g.Storm, g.SessionMS = 12, true, 800
	c := sim.Default(1).WithGroups(g)
	c.LoadMS, c.Schedule.Faults = 8_000, []nemesis.Fault{}
	c.Schedule.Version = nemesis.ScheduleVersion
	r := NewReport()
	r.Add(Execute(c))
	r.Close(0)
	if r.Verdict != model.Held || r.Effective[model.RebalanceStorm] != 1 {
		t.Errorf("%s with %v, expected that the storm is enough", r.Verdict, r.Effective)
	}
}
