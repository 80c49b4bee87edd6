package main

import (
	"bufio"
	"context"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ackproof/model"
)

func TestAWindowIsParsed(t *testing.T) {
	for text, want := range map[string][3]int64{"p3:100-140": {3, 100, 141}, "3:0-0": {3, 0, 1}, "p12": {12, 0, math.MaxInt64}} {
		p, from, to, err := parseWindow(text)
		if err != nil || [3]int64{int64(p), from, to} != want {
			t.Errorf("%s: %d %d %d %v, expected %v", text, p, from, to, err, want)
		}
	}
	for _, text := range []string{"", "p", "x3", "-1", "p3:", "p3:5", "p3:5-", "p3:-5", "p3:9-8", "p3:1-2-3", "p3:1-99999999999999999999", "4294967296"} {
		if _, _, _, err := parseWindow(text); err == nil {
			t.Errorf("%q is taken for a window", text)
		}
	}
}

func TestReportRefusesWhatIsNoRun(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"report"}, {"report", dir}, {"report", filepath.Join(dir, "nobody")}, {"report", file}, {"report", dir, dir}, {"report", dir, "--port", "80"}, {"report", "--serve", "--port", "-1"},
		{"report", "--serve", file}, {"report", "--serve", "--porcupine", "p1"}, {"report", dir, "--porcupine", "nonsense"}, {"report", dir, "--porcupine", "p1"},
	} {
		if code := run(args); code != model.ExitUsage {
			t.Errorf("%v: exit code %d, expected %d", args, code, model.ExitUsage)
		}
	}
}

// The browser of runs answers while it is asked for, and ends with its context.
func TestRunsAreServedUntilTheEnd(t *testing.T) {
	store := t.TempDir()
	if err := os.MkdirAll(filepath.Join(store, "reference-log", "half"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(store, "reference-log", "half", "run.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- serveReports(ctx, store, reportFlags{serve: true}, in) }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(line, "http://127.0.0.1:")
	port, _, _ := strings.Cut(rest, "/")
	answer, err := http.Get("http://localhost:" + port + "/")
	if err != nil {
		t.Fatalf("%v after %q", err, line)
	}
	body, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(body), "reference-log/half") || !strings.Contains(string(body), "run.json: byte") {
		t.Errorf("%v %s: %s", err, answer.Status, body)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if answer, err := http.Get("http://localhost:" + port + "/"); err == nil {
		answer.Body.Close()
		t.Error("it still answers")
	}
}
