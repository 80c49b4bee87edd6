package lossy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFilesAreTakenInAndGivenBack(t *testing.T) {
	needed(t)
	f, dir := made(t, Options{})
	for name, text := range map[string]string{"meta": "id=1", "d/log": "abc"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, lost := scripted(t, f, dir, split("write d/log 3 def; read d/log; write new 0 n"), split("read meta; read d/log; list .; write later 0 l; mkdir e; link later e/same; symlink meta s; write empty 0 x; cut empty 0"))
	if !strings.HasPrefix(got, "meta=id=1\nd/log=abc\nd meta\n") {
		t.Errorf("%q is left; %v", got, lost)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"meta": "id=1", "d/log": "abc", "later": "l", "e/same": "l", "s": "id=1", "empty": ""} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want {
			t.Errorf("%s is given back as %q, %v; expected %q", name, b, err, want)
		}
	}
	if _, err := os.Stat(f.back); !os.IsNotExist(err) {
		t.Errorf("the backing folder is still there: %v", err)
	}
}

func TestAWipeLasts(t *testing.T) {
	needed(t)
	f, dir := made(t, Options{})
	ran(t, f, "script", dir, "write a 0 x", "flush a", "mkdir d", "write d/b 0 y")
	if err := f.Wipe(); err != nil {
		t.Fatal(err)
	}
	if lost, err := f.PowerLoss(LoseAll, nil); err != nil || !lost.Nothing() {
		t.Errorf("after a wipe something can be lost: %v, %v", lost, err)
	}
	if got := ran(t, f, "script", dir, "list .", "write c 0 z", "read c"); got != "wrote\nc=z" {
		t.Errorf("after a wipe: %q", got)
	}
	left, err := os.ReadDir(f.back)
	if err != nil || len(left) != 1 {
		t.Errorf("the backing folder holds %v, %v; expected one file", left, err)
	}
}

// The connection to the kernel must not get into the nodes: with it they would wait for ever for a harness that has died.
func TestProgramsHaveNoHoldOnTheConnection(t *testing.T) {
	needed(t)
	f, dir := made(t, Options{})
	if got := ran(t, f, "descriptors", dir); strings.Contains(got, "fuse") || got == "" {
		t.Errorf("the program has open: %s", got)
	}
}

func TestSenselessDisks(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, make := range map[string]func() (*FS, error){
		"512 or 4096":     func() (*FS, error) { return New(dir, filepath.Join(dir, "b"), Options{Sector: 100}) },
		"no such file":    func() (*FS, error) { return New(filepath.Join(dir, "x"), filepath.Join(dir, "b"), Options{}) },
		"expected a fold": func() (*FS, error) { return New(file, filepath.Join(dir, "b"), Options{}) },
		"file exists":     func() (*FS, error) { return New(dir, file, Options{}) },
	} {
		if _, err := make(); err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v, expected %q", err, want)
		}
	}
}
