package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"ackproof/model"
)

// TestConvert: native and JSON lines turn into each other and back byte for byte, and a malformed history leaves OUT as it was.
func TestConvert(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	read := func(name string) []byte {
		t.Helper()
		b, err := os.ReadFile(path(name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	steps := []struct {
		in, out string
		flags   []string
		code    int
	}{
		{"../../histories/testdata/kafka.edn", path("a.bin"), nil, model.ExitHeld},
		{path("a.bin"), path("a.jsonl"), nil, model.ExitHeld},
		{path("a.jsonl"), path("b.bin"), nil, model.ExitHeld},
		{path("b.bin"), path("b"), []string{"--to", "jsonl"}, model.ExitHeld},
		{path("b"), path("b.edn"), nil, model.ExitHeld},
		{"../../histories/testdata/kafka.edn", path("txn.jsonl"), []string{"--from", "edn-txn"}, model.ExitHeld},
		{"../../histories/testdata/register.edn", path("register.json"), []string{"--to", "porcupine"}, model.ExitHeld},
		{"testdata/legal.edn", path("log.json"), []string{"--to", "porcupine"}, model.ExitHeld},
		{"testdata/early-redelivery.jsonl", path("none.json"), []string{"--to", "porcupine"}, model.ExitUsage},
		{"testdata/torn.edn", path("none.json"), []string{"--to", "porcupine"}, model.ExitUsage},
		{path("a.bin"), path("no suffix"), nil, model.ExitUsage},
		{path("a.bin"), path("a.json"), nil, model.ExitUsage},
		{path("a.bin"), path("c.bin"), []string{"--from", "text"}, model.ExitUsage},
		{path("missing"), path("c.bin"), nil, model.ExitUsage},
		{path("damaged.bin"), path("a.bin"), nil, model.ExitUsage},
		{path("a.bin"), path("nowhere/c.bin"), nil, model.ExitInfrastructure},
	}
	for _, s := range steps {
		if s.in == path("damaged.bin") {
			b := read("a.bin")
			b[len(b)/2] ^= 1
			if err := os.WriteFile(s.in, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if code := run(append([]string{"convert", s.in, s.out}, s.flags...)); code != s.code {
			t.Fatalf("convert %s %s %v: exit %d, want %d", s.in, s.out, s.flags, code, s.code)
		}
	}
	if !bytes.Equal(read("a.bin"), read("b.bin")) || !bytes.Equal(read("a.jsonl"), read("b")) {
		t.Fatal("native and JSON lines are not lossless")
	}
	for _, name := range []string{"register.json", "log.json"} {
		var export struct {
			Model   string
			Windows []struct{ Operations []struct{ Text string } }
		}
		if err := json.Unmarshal(read(name), &export); err != nil || len(export.Windows) == 0 || len(export.Windows[0].Operations) == 0 || export.Windows[0].Operations[0].Text == "" {
			t.Fatalf("%s: %v\n%s", name, err, read(name))
		}
	}
	if left, err := filepath.Glob(path(".*")); err != nil || len(left) > 0 {
		t.Fatalf("left behind: %v, %v", left, err)
	}
}
