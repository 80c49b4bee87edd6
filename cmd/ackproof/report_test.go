package main

import (
	"math"
	"os"
	"path/filepath"
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
