package harness

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"ackproof/model"
	"ackproof/nemesis"
	"ackproof/systems"
)

// sound are options that make sense.
func sound() Options {
	return Options{
		System: "reference", Workload: "log", Nodes: 3, Partitions: 2, Replication: 3, MinISR: 2, Acks: -1, Idempotent: true,
		Time: Duration(30 * time.Second), Clients: 8, Nemesis: nemesis.ProcessKinds(), Seed: 7,
	}
}

func TestTheExitCodeOfAViolationOutranksADisagreementWhichOutranksTheRest(t *testing.T) {
	for _, c := range []struct {
		verdict model.Verdict
		agreed  bool
		want    int
	}{
		{model.Held, true, 0}, {model.Violated, true, 1}, {model.Undecided, true, 2}, {model.NotTested, true, 2},
		{model.Held, false, 255}, {model.Violated, false, 1}, {model.Undecided, false, 255}, {model.NotTested, false, 255},
	} {
		if got := exit(c.verdict, c.agreed); got != c.want {
			t.Errorf("verdict %s, checkers agree %t: exit %d, expected %d", c.verdict, c.agreed, got, c.want)
		}
	}
}

func TestAPlanIsReadBackAsItWasSaved(t *testing.T) {
	store := t.TempDir()
	dir, err := newRunDir(store, sound(), time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	one := 0
	plan := Plan{
		Version: PlanVersion, Seed: 7, Run: "00000000000000ff", Started: time.Unix(1, 0).UTC(), Options: sound(), Contract: sound().Contract(),
		Schedule: nemesis.Schedule{Version: 1, Seed: 7, Faults: []nemesis.Fault{
			{Kind: nemesis.Partition, ForMS: 5, Target: nemesis.Target{Role: nemesis.RoleLeader}, Cut: nemesis.Cut{Shape: nemesis.Isolate, Clients: []int{1}}},
			{Kind: nemesis.Kill, Start: nemesis.Trigger{Fault: &one, AckedMore: 3}, Target: nemesis.Target{Role: nemesis.RoleSame}},
		}},
		Environment: here(),
	}
	if err := dir.writeJSON(planFile, plan); err != nil {
		t.Fatal(err)
	}
	got, err := LoadPlan(filepath.Join(store, "latest"))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, plan) {
		t.Fatalf("read %+v, expected %+v", got, plan)
	}
}

func TestADamagedPlanIsWrongUsage(t *testing.T) {
	for name, content := range map[string]string{
		"empty": "", "no JSON": "{", "unknown field": `{"version":1,"colour":"red"}`, "another version": `{"version":2}`, "wrong type": `{"version":1,"seed":"x"}`,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, planFile), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		var wrong UsageError
		if _, err := LoadPlan(dir); !errors.As(err, &wrong) || !strings.Contains(err.Error(), planFile) {
			t.Errorf("%s: error %v, expected one of usage that names the file", name, err)
		}
	}
}

func TestTwoRunsOfOneSecondGetDifferentDirectories(t *testing.T) {
	store := t.TempDir()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	first, err1 := newRunDir(store, sound(), now)
	second, err2 := newRunDir(store, sound(), now)
	if err1 != nil || err2 != nil || first.path == second.path {
		t.Fatalf("%s and %s (%v, %v)", first.path, second.path, err1, err2)
	}
	if want := filepath.Join(store, "reference-log", "20260102T030405Z-7"); first.path != want {
		t.Errorf("directory %s, expected %s", first.path, want)
	}
	for _, link := range []string{filepath.Join(store, "latest"), filepath.Join(store, "reference-log", "latest")} {
		if to, err := filepath.EvalSymlinks(link); err != nil || filepath.Base(to) != filepath.Base(second.path) {
			t.Errorf("%s leads to %s (%v), expected the newest run", link, to, err)
		}
	}
}

// brokenSystem cannot be started.
type brokenSystem struct {
	systems.System
	stopped int
}

func (s *brokenSystem) Info() model.SystemInfo   { return model.SystemInfo{Name: "broken"} }
func (s *brokenSystem) Timers() systems.Timers   { return systems.Timers{} }
func (s *brokenSystem) Contract() model.Contract { return sound().Contract() }
func (s *brokenSystem) Start(context.Context) error {
	return errors.New("n2 ended: no space left; its log ends with: disk full")
}
func (s *brokenSystem) Stop() error { s.stopped++; return nil }

// silence is an Observer.
type silence struct{ notes []string }

func (*silence) Planned(int64, string, model.Contract, int) {}
func (*silence) Phase(string, time.Duration)                {}
func (*silence) Tick(time.Duration, string)                 {}
func (s *silence) Note(text string)                         { s.notes = append(s.notes, text) }

func TestASystemThatDoesNotStartIsNoVerdict(t *testing.T) {
	s := &brokenSystem{}
	out, err := Test{
		Options: sound(), Store: t.TempDir(), Observer: &silence{}, Open: func(systems.Options) (systems.System, error) { return s, nil },
	}.Run(t.Context())
	var infra *InfraError
	if out != nil || !errors.As(err, &infra) || !strings.Contains(err.Error(), "disk full") || infra.Dir == "" {
		t.Fatalf("outcome %v, error %v, expected an InfraError with the end of the node's log and the run directory", out, err)
	}
	if s.stopped == 0 {
		t.Error("what was started was not stopped")
	}
	if _, err := os.Stat(filepath.Join(infra.Dir, planFile)); err != nil {
		t.Errorf("the plan is not kept: %v", err)
	}
}

func TestAScheduleThatDoesNotFitIsWrongUsage(t *testing.T) {
	_, err := Test{
		Options: sound(), Store: t.TempDir(), Observer: &silence{}, Open: func(systems.Options) (systems.System, error) { return &brokenSystem{}, nil },
		Schedule: &nemesis.Schedule{Version: 1, Faults: []nemesis.Fault{{Kind: nemesis.Kill, Target: nemesis.Target{Role: nemesis.RoleNode, Node: 9}}}},
	}.Run(t.Context())
	var wrong UsageError
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "faults[0].target.node") {
		t.Fatalf("error %v, expected one of usage that names the field", err)
	}
}

func TestADeathInTheHarnessIsNoted(t *testing.T) {
	r := &run{Test: Test{Observer: &silence{}}}
	r.guard("the writer", func() { panic("index out of range") })
	r.guard("the reader", func() {})
	if len(r.broken) != 1 || !strings.Contains(r.broken[0], "the writer died: index out of range") {
		t.Fatalf("broken: %q", r.broken)
	}
}

func TestWhatTheHealingKnowsOfEndsIsNotToldTwice(t *testing.T) {
	r := &run{ended: []string{"n2 had ended by itself and did not come back: signal: killed"}}
	err := errors.Join(errors.New("heal: n2 had ended by itself: signal: killed"), errors.New("heal: n3 had ended by itself: exit status 2"))
	if got := r.unknownEnds(err); len(got) != 1 || !strings.Contains(got[0], "n3") {
		t.Fatalf("%q, expected the end of n3 alone", got)
	}
}

func TestDurationsAreReadAsTheyAreWritten(t *testing.T) {
	raw, err := json.Marshal(Duration(90 * time.Second))
	if err != nil || string(raw) != `"1m30s"` {
		t.Fatalf("%s, %v", raw, err)
	}
	var d Duration
	for _, bad := range []string{"30", `"thirty"`, "{}"} {
		if err := json.Unmarshal([]byte(bad), &d); err == nil {
			t.Errorf("%s was taken for %v", bad, time.Duration(d))
		}
	}
}
