package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ackproof/histories"
	"ackproof/model"
)

// putLost writes the directory of a run of one partition: a hundred records were acknowledged one by one, and the final read finds another one at offset 40.
func putLost(t *testing.T, dir string) (lost uint64) {
	t.Helper()
	put(t, dir, 7, storedOptions, time.Unix(1e9, 0), model.Violated)
	var history bytes.Buffer
	now := time.Duration(0)
	r := histories.NewRecorderClock(&history, histories.Header{Run: 7}, func() time.Duration { now += time.Millisecond; return now })
	write := func(producer int32, n, offset int64) uint64 {
		runs := []histories.Run{{Producer: producer, Sequence: n, Count: 1}}
		op := r.Invoke(histories.Event{Kind: histories.Append, Process: producer, Runs: runs})
		r.Complete(histories.Event{Type: histories.OK, Kind: histories.Append, Op: op, Process: producer, Offset: offset, Runs: runs})
		return op
	}
	r.Mark(histories.Event{Kind: histories.Phase, Note: "load"})
	r.Mark(histories.Event{Kind: histories.Fault, Note: "began: kill of <n1>\x1b took effect"})
	for n := range int64(100) {
		if op := write(1, n, n); n == 40 {
			lost = op
			write(2, 0, 40)
		}
	}
	r.Mark(histories.Event{Kind: histories.Fault, Note: "healed: kill of <n1> healed"})
	r.Mark(histories.Event{Kind: histories.Phase, Note: "drain"})
	found := []histories.Run{{Producer: 1, Count: 40}, {Offset: 40, Producer: 2, Count: 1}, {Offset: 41, Producer: 1, Sequence: 41, Count: 59}}
	for _, from := range []int64{0, 100} {
		op := r.Invoke(histories.Event{Kind: histories.Fetch, Process: 3, Session: 1, Offset: from})
		r.Complete(histories.Event{Type: histories.OK, Kind: histories.Fetch, Op: op, Process: 3, Session: 1, Offset: from, HighWatermark: 100, Runs: found})
		found = nil
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := json.Marshal(model.Certificate{Version: 1, Claim: model.NoLoss, Anomaly: model.LostAcked, Offset: 40, Operations: []model.ProofOp{{Role: "write", Op: lost}}})
	if err == nil {
		err = errors.Join(os.WriteFile(filepath.Join(dir, historyFile), history.Bytes(), 0o644), os.WriteFile(filepath.Join(dir, "certificates", "no-loss-1.json"), c, 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
	return lost
}

func TestPorcupineShowsTheWindowRoundAProof(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	putLost(t, dir)
	if _, err := WriteReport(dir); err != nil {
		t.Fatal(err)
	}
	run, err := LoadRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	p := run.Proofs[0]
	if p.Porcupine == "" {
		t.Fatalf("no view: %s", p.NoPorcupine)
	}
	picture, err := os.ReadFile(filepath.Join(dir, p.Porcupine))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"append of 1 at 40, which the log does not have", `\u003cn1\u003e\\x1b`} {
		if !bytes.Contains(picture, []byte(want)) {
			t.Errorf("the view lacks %q", want)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, reportFile))
	if err != nil || !strings.Contains(string(page), fmt.Sprintf(`href="%s"`, p.Porcupine)) {
		t.Errorf("%v, or the page does not link to the view", err)
	}
}

func TestPorcupineIsAskedForAWindow(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	putLost(t, dir)
	views, err := WritePorcupine(dir, 0, 40, 41)
	if err != nil || len(views) != 1 || views[0].Verdict != "Illegal" || views[0].Operations < 64 {
		t.Errorf("%+v %v, expected one window that is illegal", views, err)
	}
	if views, err = WritePorcupine(dir, 0, 0, math.MaxInt64); err != nil || len(views) < 2 {
		t.Errorf("%+v %v, expected all windows", views, err)
	}
	for _, v := range views {
		if _, err := os.Stat(filepath.Join(dir, v.Path)); err != nil {
			t.Error(err)
		}
	}
	var wrong UsageError
	for _, ask := range []struct {
		partition int32
		from      int64
	}{{9, 0}, {0, 5000}} {
		if _, err := WritePorcupine(dir, ask.partition, ask.from, ask.from+1); !errors.As(err, &wrong) {
			t.Errorf("p%d from %d: %v, expected a usage error", ask.partition, ask.from, err)
		}
	}
	// A certificate that is no matter of one partition has the reason instead of a view.
	raw := []byte(`{"version": 1, "claim": "liveness", "anomaly": "unavailable-after-heal", "partition": -1, "offset": -1, "operations": []}`)
	if err := os.WriteFile(filepath.Join(dir, "certificates", "no-loss-1.json"), raw, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteReport(dir); err != nil {
		t.Fatal(err)
	}
	run, err := LoadRun(dir)
	if err != nil || run.Proofs[0].Porcupine != "" || !strings.Contains(run.Proofs[0].NoPorcupine, "no matter of one partition") {
		t.Errorf("%v %+v", err, run.Proofs)
	}
}
