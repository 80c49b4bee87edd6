package lossy

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
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
	ran(t, f, "script", dir, "write a 0 x", "flush a", "mkdir log-1", "write log-1/b 0 y", "write log-1/c 0 y", "mkdir log-2", "write log-2/b 0 y")
	if n, err := f.Wipe("log-1/*", "a"); n != 3 || err != nil {
		t.Errorf("%d files wiped, %v; expected 3", n, err)
	}
	if lost, err := f.PowerLoss(LoseNames, rand.New(rand.NewPCG(1, 1))); err != nil || lost.Names > 0 {
		t.Errorf("after a wipe names can be lost: %v, %v", lost, err)
	}
	if got := ran(t, f, "script", dir, "list .", "write c 0 z", "read c", "read log-2/b"); got != "log-2\nwrote\nc=z\nlog-2/b=y" {
		t.Errorf("after a wipe: %q", got)
	}
	left, err := os.ReadDir(f.back)
	if err != nil || len(left) != 2 {
		t.Errorf("the backing folder holds %v, %v; expected two files", left, err)
	}
}

func TestANewDiskHoldsWhatLiesInItsFolder(t *testing.T) {
	needed(t)
	f, dir := made(t, Options{})
	ran(t, f, "script", dir, "write a 0 x", "flush a", "mkdir log-1", "write log-1/b 0 y")
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Fatalf("outside of the mount lies %v, %v; expected nothing", left, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "fresh"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "fresh", "meta"), []byte("id=2"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Replace(); err != nil {
		t.Fatal(err)
	}
	if lost, err := f.PowerLoss(LoseAll, rand.New(rand.NewPCG(1, 1))); err != nil || lost.Names > 0 || lost.Files > 0 {
		t.Errorf("a new disk has lost %v, %v; expected that what was on it counts as flushed", lost, err)
	}
	if got := ran(t, f, "script", dir, "list .", "read fresh/meta", "write a 0 z", "read a"); got != "fresh\nfresh/meta=id=2\nwrote\na=z" {
		t.Errorf("on the new disk: %q", got)
	}
	left, err := os.ReadDir(f.back)
	if err != nil || len(left) != 2 {
		t.Errorf("the backing folder holds %v, %v; expected two files", left, err)
	}
}

func TestDamageOnTheMedium(t *testing.T) {
	needed(t)
	f, dir := made(t, Options{})
	pick := rand.New(rand.NewPCG(1, 1))
	ran(t, f, "script", dir, "mkdir log-1", "fill log-1/a 0 100 A", "flush log-1/a", "write b 0 B")
	if what, err := f.Flip("log-1/*", pick); err != nil || !strings.Contains(what, "log-1/a") {
		t.Errorf("flipped %q, %v", what, err)
	}
	if got := ran(t, f, "script", dir, "read log-1/a", "read b"); got == "log-1/a=100×A\nb=B" || !strings.HasSuffix(got, "\nb=B") || strings.Count(got, "×A") == 0 {
		t.Errorf("after a flip: %q", got)
	}
	if what, err := f.Cut("log-1/a", pick); err != nil || !strings.Contains(what, "of 100 bytes of log-1/a") {
		t.Errorf("cut %q, %v", what, err)
	}
	if got := ran(t, f, "script", dir, "size log-1/a"); atoi(got) >= 100 {
		t.Errorf("after a cut: %s bytes", got)
	}
	if _, err := f.Flip("nothing/*", pick); err == nil {
		t.Error("a bit of nothing was flipped")
	}
	if _, err := f.Cut("nothing/*", pick); err == nil {
		t.Error("nothing was cut")
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

// However the harness ends, the mount ends with it, and so do the programs on it.
func TestNothingOutlivesTheHarness(t *testing.T) {
	needed(t)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "seen"), 0o755); err != nil {
		t.Fatal(err)
	}
	harness := run(t, nil, "host", dir)
	line := harness.line()
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatalf("the harness says %q", line)
	}
	if syscall.Kill(pid, 0) != nil || mounts(t, dir) {
		t.Errorf("program %d runs: %v; its mount is seen outside: %t", pid, syscall.Kill(pid, 0) == nil, mounts(t, dir))
	}
	harness.kill()
	for end := time.Now().Add(10 * time.Second); syscall.Kill(pid, 0) == nil; time.Sleep(time.Millisecond) {
		if text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); strings.Contains(string(text), ") Z ") {
			break // ended, and waited for by nobody
		}
		if time.Now().After(end) {
			t.Fatalf("program %d outlives its harness", pid)
		}
	}
	if mounts(t, dir) {
		t.Error("the mount is still there")
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
