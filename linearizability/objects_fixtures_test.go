package linearizability

import (
	"path/filepath"
	"strings"
	"testing"

	"ackproof/histories"
	"ackproof/model"
)

// TestObjectsFixtures checks the files of testdata/objects, whose README says the same.
func TestObjectsFixtures(t *testing.T) {
	fixtures := []struct {
		file, model string
		verdict     model.Verdict
		anomaly     model.Anomaly
	}{
		{"register-stale-read.edn", "register", model.Violated, model.Nonlinearizable},
		{"register-unknown-write-seen.edn", "register", model.Held, ""},
		{"cas-register-two-winners.log", "cas-register", model.Violated, model.Nonlinearizable},
		{"cas-register-unknown-outcomes.edn", "cas-register", model.Held, ""},
		{"multi-register-torn.edn", "multi-register", model.Violated, model.Nonlinearizable},
		{"mutex-two-holders.edn", "mutex", model.Violated, model.Nonlinearizable},
		{"kv-lost-append.edn", "kv", model.Violated, model.Nonlinearizable},
		{"set-lost.edn", "set", model.Violated, model.LostAcked},
		{"set-without-final-read.edn", "set", model.Undecided, ""},
		{"queue-lost.edn", "total-queue", model.Violated, model.LostAcked},
		{"queue-without-drain.edn", "total-queue", model.Undecided, ""},
		{"stream-old-token.jsonl", "stream", model.Violated, model.Nonlinearizable},
	}
	files, err := filepath.Glob("testdata/objects/*")
	if err != nil || len(files) != len(fixtures)+1 {
		t.Errorf("%d files and %d fixtures beside the README (%v)", len(files), len(fixtures), err)
	}
	for _, c := range fixtures {
		in, err := histories.OpenAny(filepath.Join("testdata", "objects", c.file), "")
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		events, err := in.ReadAll()
		in.Close()
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		a, err := CheckObjects(histories.Events(events), "auto", ObjectOptions{})
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		guess, _ := GuessObjects(histories.Events(events))
		found := bad(a)
		if guess != c.model || a.Verdict() != c.verdict || c.anomaly != "" && found[c.anomaly] != 1 || c.anomaly == "" && len(found) > 0 {
			t.Errorf("%s: a %s is %s with %v, want a %s, %s with %q", c.file, guess, a.Verdict(), found, c.model, c.verdict, c.anomaly)
		}
		if strings.HasSuffix(c.file, ".log") && strings.Contains(objectProofs(a), "0s") {
			t.Errorf("%s has no times, but its proof has:\n%s", c.file, objectProofs(a))
		}
	}
}
