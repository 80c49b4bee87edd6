package lossy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// What was flushed survives, and what was not vanishes: for both models, all ways to lose power, and all ways to flush.
func TestTwentyLinesThatFlush(t *testing.T) {
	needed(t)
	for _, model := range []Model{Ext4, Posix} {
		for _, loss := range Losses() {
			for i, how := range []string{"fsync", "fdatasync", "dsync"} {
				if how != "fsync" && loss != LoseAll {
					continue
				}
				t.Run(fmt.Sprint(model, "/", loss, "/", how), func(t *testing.T) {
					f, dir := made(t, Options{Model: model, Sector: []int{512, 4096, 512}[i]})
					p := run(t, f, "append", dir, how)
					acked, line := -1, ""
					for line = p.line(); strings.HasPrefix(line, "acked"); line = p.line() {
						acked = atoi(strings.TrimPrefix(line, "acked "))
					}
					if line != "done" {
						t.Fatalf("the program says %q", line)
					}
					p.kill()
					lost, err := f.PowerLoss(loss, rand.New(rand.NewPCG(3, 1)))
					if err != nil {
						t.Fatal(err)
					}
					var whole, rest int
					fmt.Sscan(ran(t, f, "read", dir), &whole, &rest)
					switch {
					case whole < acked+1:
						t.Errorf("%d whole records are left, %d were acknowledged; %v", whole, acked+1, lost)
					case how == "dsync" && whole != records:
						t.Errorf("%d whole records are left, each was flushed", whole)
					case how == "dsync":
					case loss == LoseAll && (whole != acked+1 || rest != 0):
						t.Errorf("%d whole records and %d bytes are left, %d were flushed", whole, rest, acked+1)
					case (loss == KeepAll || loss == LoseNames) && (whole != records || rest != 0):
						t.Errorf("%d whole records and %d bytes are left of %d", whole, rest, records)
					case loss == TornTail && (whole != records-1 || rest >= len(record(records-1))):
						t.Errorf("%d whole records and %d bytes are left of %d, where the last one should be torn", whole, rest, records)
					case loss == SomeLoss && whole == records:
						t.Errorf("nothing is lost; %v", lost)
					}
					if (loss != KeepAll && loss != LoseNames && how != "dsync") == lost.Nothing() {
						t.Errorf("the loss says: %v", lost)
					}
				})
			}
		}
	}
}

// scripted runs a script, takes the power, and gives what a second script says then.
func scripted(t *testing.T, f *FS, dir string, before, after []string) (string, Lost) {
	t.Helper()
	p := run(t, f, append([]string{"script", dir}, append(before, "wait")...)...)
	for line := p.line(); line != "waiting"; line = p.line() {
		if line == "" {
			t.Fatal("the script ended early")
		}
	}
	p.kill()
	lost, err := f.PowerLoss(LoseAll, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ran(t, f, append([]string{"script", dir}, after...)...), lost
}

func TestWhatLasts(t *testing.T) {
	needed(t)
	for _, c := range []struct {
		name   string
		before string
		after  string
		ext4   string
		posix  string // "": the same
	}{
		{"a file that was flushed, in a folder that was not", "write a 0 x; flush a", "list .", "a", "\n"},
		{"a folder that was flushed, and a file that was not", "write a 0 x; flushdir .", "read a", "a=", ""},
		{"both", "write a 0 x; flush a; flushdir .", "read a", "a=x", ""},
		{"neither", "write a 0 x", "list .", "\n", ""},
		{"overwritten in place", "fill a 0 2000 x; flush a; flushdir .; fill a 700 600 y", "read a", "a=2000×x", ""},
		{"overwritten and flushed", "fill a 0 2000 x; flush a; flushdir .; fill a 700 600 y; flush a", "read a", "a=700×x600×y700×x", ""},
		{"cut", "fill a 0 2000 x; flush a; flushdir .; cut a 100", "read a", "a=2000×x", ""},
		{"cut and grown", "fill a 0 2000 x; flush a; flushdir .; cut a 100; fill a 300 10 y", "read a", "a=2000×x", ""},
		{"cut, grown and flushed", "fill a 0 2000 x; flush a; flushdir .; cut a 100; fill a 300 10 y; flush a", "read a", "a=100×x200×010×y", ""},
		{"removed", "write a 0 x; flush a; flushdir .; remove a", "read a", "a=x", ""},
		{"removed, and the folder flushed", "write a 0 x; flush a; flushdir .; remove a; flushdir .", "list .", "\n", ""},
		{"moved over another, which flushes what is moved", "write a 0 old; flush a; flushdir .; write b 0 new; move b a; flushdir .; list .", "read a", "a=new", "a="},
		{"moved over another, nothing flushed", "write a 0 old; flush a; flushdir .; write b 0 new; move b a", "read a; list .", "a=old\na", ""},
		{"moved over another, a third file flushed", "write a 0 old; flush a; flushdir .; write b 0 new; flush b; move b a; write c 0 c; flush c", "read a", "a=new", "a=old"},
		{"a folder that was not flushed", "mkdir d; flushdir .; write d/a 0 x; flush d/a; mkdir d/e; write d/e/b 0 x; flush d/e/b", "list d", "a e", "\n"},
		{"moved to another folder", "mkdir d; mkdir e; flushdir .; write d/a 0 x; flush d/a; flushdir d; move d/a e/a; flushdir e", "list d; list e", "\na", ""},
		{"moved to another folder, not flushed", "mkdir d; mkdir e; flushdir .; write d/a 0 x; flush d/a; flushdir d; move d/a e/a", "list d; list e", "a\n", ""},
		{"two names", "write a 0 x; flush a; link a b; flushdir .; remove a", "read a; read b", "a=x\nb=x", ""},
		{"a symbolic link", "write a 0 x; flush a; symlink a b; flushdir .", "read b", "b=x", ""},
		{"a mapping", "map a 8192 x 4096", "read a", "a=4096×x4096×0", "ENOENT"},
		{"a copy within", "fill a 0 9000 x; flush a; flushdir .; copy a b; flush b; flushdir .", "read b", "b=9000×x", ""},
		{"numbers are not mixed up", "write a 0 a; flush a; remove a; flushdir .; write b 0 b; flush b; flushdir .; write c 0 c", "list .; read b", "b\nb=b", ""},
	} {
		for model, want := range map[Model]string{Ext4: c.ext4, Posix: c.posix} {
			if want == "" {
				want = c.ext4
			}
			t.Run(fmt.Sprint(c.name, "/", model), func(t *testing.T) {
				f, dir := made(t, Options{Model: model})
				got, lost := scripted(t, f, dir, split(c.before), split(c.after))
				if got != strings.Trim(want, "\n") && got != strings.TrimSpace(want) {
					t.Errorf("%q is left, expected %q; %v", got, want, lost)
				}
			})
		}
	}
}

func split(s string) []string { return strings.Split(s, "; ") }

// The kernel's cache does not outlive the power, nor does it get lost with a process.
func TestAKillLosesNothing(t *testing.T) {
	needed(t)
	f, dir := made(t, Options{})
	p := run(t, f, "script", dir, "fill a 0 100000 x", "map b 8192 y 0", "mkdir d", "write d/c 0 z", "wait")
	for line := p.line(); line != "waiting"; line = p.line() {
		if line == "" {
			t.Fatal("the script ended early")
		}
	}
	p.kill()
	if got, want := ran(t, f, "script", dir, "read a", "read b", "read d/c"), "a=100000×x\nb=8192×y\nd/c=z"; got != want {
		t.Errorf("%q is left, expected %q", got, want)
	}
}
