package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ackproof/histories"
	"ackproof/model"
)

// TestHistories: every history is legal, has its anomaly if one was planted, and is the same each time.
func TestHistories(t *testing.T) {
	for _, c := range []struct {
		write, check string
		planted      bool
		anomaly      model.Anomaly
	}{
		{"log", "log", false, ""}, {"log", "log", true, model.LostAcked}, {"log-known", "log", false, ""},
		{"transactions", "transactions-strict-serializable", false, ""}, {"transactions", "transactions-strict-serializable", true, model.G2Item},
		{"groups", "groups", false, ""}, {"queue", "queue", false, ""}, {"fifo", "fifo", false, ""},
	} {
		t.Run(fmt.Sprintf("%s/%t", c.write, c.planted), func(t *testing.T) {
			dir := t.TempDir()
			var paths [2]string
			for i := range paths {
				paths[i] = filepath.Join(dir, fmt.Sprint(i))
				if err := writeJob(&measured{}, []string{c.write, "3000", fmt.Sprint(c.planted), string(histories.Native), paths[i]}); err != nil {
					t.Fatal(err)
				}
			}
			a, err := os.ReadFile(paths[0])
			if err != nil {
				t.Fatal(err)
			}
			if b, err := os.ReadFile(paths[1]); err != nil || string(a) != string(b) {
				t.Errorf("the history differs from time to time (%v)", err)
			}
			var m measured
			if err := checkJob(&m, []string{c.check, paths[0]}); err != nil {
				t.Fatal(err)
			}
			want := model.Held
			if c.planted {
				want = model.Violated
			}
			if m.Verdict != string(want) || !strings.Contains(strings.Join(m.Anomalies, " "), string(c.anomaly)) {
				t.Errorf("%s with %v (%s), want %s with %q", m.Verdict, m.Anomalies, m.Note, want, c.anomaly)
			}
		})
	}
}

// TestPorcupine: it agrees where it can.
func TestPorcupine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := writeJob(&measured{}, []string{"log", "300", "false", string(histories.Native), path}); err != nil {
		t.Fatal(err)
	}
	var m measured
	if err := porcupineJob(&m, []string{path}); err != nil || m.Verdict != "Ok" || m.Operations < 300 {
		t.Errorf("%+v, %v, want Ok of 300 operations", m, err)
	}
}

// TestChild: a process of its own prints its figures.
func TestChild(t *testing.T) {
	cmd := exec.Command(os.Args[0], childCommand, "record", "1600")
	cmd.Env = append(os.Environ(), "CHECKERS_CHILD=1")
	cmd.Stderr = io.Discard
	out, err := cmd.Output()
	var m measured
	if err != nil || json.Unmarshal(out, &m) != nil || m.Events != 1600 || m.PeakMB <= 0 || m.CPU <= 0 {
		t.Errorf("%s (%v), want the figures of 1600 events", out, err)
	}
}

func TestMain(m *testing.M) {
	if os.Getenv("CHECKERS_CHILD") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}
