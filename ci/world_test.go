package ci

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ackproof/model"
)

// A run in these tests is this test binary, executed again as a play: it behaves as `ackproof test` does to a caller, with a script instead of a system. The script is the
// environment variable named below: for each run, in order, a word says what becomes of it.
const scriptVariable = "ACKPROOF_CI_TEST_SCRIPT"

func TestMain(m *testing.M) {
	if script := os.Getenv(scriptVariable); script != "" {
		os.Exit(play(script))
	}
	os.Exit(m.Run())
}

// play is one run. The number of run directories and dead runs so far says which word is its own.
func play(script string) int {
	flags := map[string]string{}
	for _, arg := range os.Args[2:] {
		name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		flags[name] = value
	}
	store := flags["store"]
	must(os.MkdirAll(store, 0o755))
	played, err := os.ReadDir(store)
	must(err)
	n := 0
	for _, e := range played {
		if e.IsDir() {
			n++
		}
	}
	words := strings.Fields(script)
	word := words[min(n, len(words)-1)]
	dir := filepath.Join(store, "run"+strconv.Itoa(n))
	must(os.MkdirAll(dir, 0o755))
	must(os.RemoveAll(filepath.Join(store, "latest")))
	must(os.Symlink(filepath.Base(dir), filepath.Join(store, "latest")))
	seed, err := strconv.ParseInt(flags["seed"], 10, 64)
	must(err)
	fmt.Fprintln(os.Stderr, "load …")
	switch word {
	case "no-port":
		fmt.Fprintln(os.Stderr, "ackproof: the infrastructure could not run: start the system: no port\nrun directory: "+dir)
		return model.ExitInfrastructure
	case "panic":
		fmt.Fprintln(os.Stderr, "ackproof crashed; this is a bug of ackproof: boom\ngoroutine 1")
		return model.ExitCrash
	case "shot":
		p, err := os.FindProcess(os.Getpid())
		must(err)
		must(p.Kill())
		select {}
	case "hang":
		select {}
	case "mute":
		return model.ExitHeld
	case "violated-and-mute":
		return model.ExitViolated
	}
	if word == "violated-at-the-end" { // it was asked to end, and had found something
		word = "violated"
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		fmt.Fprintln(os.Stderr, "ready")
		<-asked
	}
	r := results(dir, word)
	r.Seed = seed
	raw, err := json.Marshal(r)
	must(err)
	must(os.WriteFile(filepath.Join(dir, "results.json"), raw, 0o644))
	if word == "liar" {
		return model.ExitHeld
	}
	return r.Exit
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// hostile is a value as a broken broker might give it back.
const hostile = "<script>alert(1)</script>\x1b[31m\xff|`**@someone**` %0A::error::"

// results of a run, by the word of the script; certificates go to dir.
func results(dir, word string) model.Results {
	r := model.Results{
		Version: 1, System: model.SystemInfo{Name: "reference"}, Workload: "log", Verdict: model.Held, Records: model.Records{Acked: 1000}, Operations: model.Operations{OK: 10, Fail: 2, Info: 1},
		Faults: []model.FaultResult{
			{Kind: "kill", Role: "leader of p1", FromMS: 1000, ToMS: 2000, Effective: true},
			{Kind: "pause", Role: "followers of p0", FromMS: 1500, ToMS: 2500, Effective: true},
			{Kind: "kill", Role: "leader of p2", FromMS: 3000, ToMS: 3500, Effective: true},
			{Kind: "partition", Role: "controller", FromMS: 9000, ToMS: 9500, Effective: true},
			{Kind: "partition", Role: "controller", FromMS: 20000, ToMS: 20500},
		},
		Claims: []model.ClaimResult{
			{ID: model.NoLoss, Verdict: model.Held, Evidence: map[string]int64{"acked": 1000, "read_back": 1000}},
			{ID: model.Order, Verdict: model.Held, Evidence: map[string]int64{"records": 1000, "took_ms": 20}},
		},
	}
	first := &r.Claims[0]
	switch word {
	case "violated", "liar":
		first.Verdict = model.Violated
		first.Anomalies = []model.AnomalyResult{{Kind: model.LostAcked, Count: 3, Certificate: "certificates/no-loss-1.json"}}
		raw, err := json.Marshal(model.Certificate{Sentence: "Record 7 was acknowledged and is gone: " + hostile})
		must(err)
		must(os.MkdirAll(filepath.Join(dir, "certificates"), 0o755))
		must(os.WriteFile(filepath.Join(dir, "certificates", "no-loss-1.json"), raw, 0o644))
	case "undecided":
		first.Verdict, first.Reason = model.Undecided, "the end was not reached: "+hostile
	case "not-tested":
		first.Verdict, first.Reason = model.NotTested, "no fault had an effect"
		r.Claims[1].Verdict, r.Claims[1].Reason = model.NotTested, "no fault had an effect"
	case "half-tested":
		first.Verdict, first.Reason = model.NotTested, "no fault had an effect"
	case "loses":
		first.Permitted = []model.PermittedLoss{{Kind: model.LostAcked, Count: 12, Because: "acks=1"}}
	}
	r.Verdict = model.WorstOf(r.Claims)
	r.Exit = r.Verdict.Exit()
	return r
}

// silent is an observer that keeps what it was told.
type silent struct{ notes []string }

func (s *silent) Phase(string, time.Duration) {}
func (s *silent) Tick(time.Duration, string)  {}
func (s *silent) Note(text string)            { s.notes = append(s.notes, text) }

// flags stand for those of `ackproof test`.
var flags = Flags{
	Names: []string{"system", "nodes", "acks", "time", "nemesis"},
	Check: func(args []string) (Meaning, error) {
		m := Meaning{Load: time.Millisecond}
		for _, arg := range args {
			name, value, _ := strings.Cut(arg, "=")
			switch {
			case name == "--nodes" && value == "0":
				return m, fmt.Errorf("--nodes is 0, expected 1 to 15")
			case name == "--claims" && strings.Contains(value, "no-losses"):
				return m, fmt.Errorf("--claims has %q, expected all or a list", value)
			case name == "--acks" && value == "1":
				m.Permits = []model.Anomaly{model.LostAcked}
			case name == "--time":
				var err error
				if m.Load, err = time.ParseDuration(value); err != nil {
					return m, err
				}
			}
		}
		return m, nil
	},
}

// write makes a gate file.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gate.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// load reads a gate file that makes sense.
func load(t *testing.T, text string) *Gate {
	t.Helper()
	g, err := Load(write(t, text), flags)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// carryOut runs a gate whose runs follow the script.
func carryOut(t *testing.T, gate, script string) (*Outcome, string) {
	t.Helper()
	t.Setenv(scriptVariable, script)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	artefacts := filepath.Join(t.TempDir(), "out")
	out, err := Runner{Gate: load(t, gate), Binary: self, Artefacts: artefacts, Observer: &silent{}}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return out, artefacts
}
