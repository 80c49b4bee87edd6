package disk_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ackproof/broker/storage"
	"ackproof/broker/storage/files"
	"ackproof/broker/storage/sample"
	"ackproof/broker/storage/segment"
	"ackproof/broker/storage/storagetest"
	"ackproof/sim/disk"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// put makes a file of some content, flushed or not.
func put(t testing.TB, fsys files.FS, name, content string, flush bool) files.Writer {
	t.Helper()
	w, err := fsys.Create(name)
	must(t, err)
	must(t, w.Append([]byte(content)))
	if flush {
		must(t, w.Flush())
	}
	return w
}

// contents are the files of a disk as the next process sees them.
func contents(t testing.TB, d *disk.Disk) map[string]string {
	t.Helper()
	fsys := d.Mount()
	out := map[string]string{}
	for _, name := range d.Files() {
		raw, err := files.ReadAll(fsys, name)
		must(t, err)
		out[name] = string(raw)
	}
	return out
}

func wantFiles(t testing.TB, what string, d *disk.Disk, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, contents(t, d)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestFlushedStays is the promise on which every verdict about a lost record rests: what was flushed, content and name, survives whatever is chosen; what was not
// is gone when everything is lost, and there when nothing is.
func TestFlushedStays(t *testing.T) {
	d := disk.New()
	fsys := d.Mount()
	must(t, fsys.MakeDir("/a"))
	must(t, fsys.FlushDir("/"))
	put(t, fsys, "/a/kept", "kept", true)
	put(t, fsys, "/a/old", "one", true)
	must(t, fsys.FlushDir("/a"))
	put(t, fsys, "/a/empty", "lost", false)
	must(t, fsys.FlushDir("/a"))
	put(t, fsys, "/a/nameless", "flushed, but not its name", true)
	w, err := fsys.Edit("/a/kept")
	must(t, err)
	must(t, w.Append([]byte(", more")))
	must(t, fsys.Rename("/a/old", "/a/new"))
	must(t, fsys.MakeDir("/b"))
	put(t, fsys, "/b/file", "x", true)
	must(t, fsys.FlushDir("/b"))

	now := map[string]string{"/a/kept": "kept, more", "/a/empty": "lost", "/a/nameless": "flushed, but not its name", "/a/new": "one", "/b/file": "x"}
	killed := d.Clone()
	killed.Kill()
	wantFiles(t, "kill", killed, now)
	all := d.Clone()
	all.PowerLoss(disk.LoseAll)
	wantFiles(t, "lose all", all, map[string]string{"/a/kept": "kept", "/a/empty": "", "/a/old": "one"})
	nothing := d.Clone()
	nothing.PowerLoss(disk.LoseNothing)
	wantFiles(t, "lose nothing", nothing, now)
	names := d.Clone()
	names.PowerLoss(disk.LoseNames)
	wantFiles(t, "lose names", names, map[string]string{"/a/kept": "kept, more", "/a/empty": "lost", "/a/old": "one"})
	content := d.Clone()
	content.PowerLoss(disk.LoseContent)
	now["/a/kept"], now["/a/empty"] = "kept\x00\x00\x00\x00\x00\x00", "\x00\x00\x00\x00"
	if diff := cmp.Diff("kept", contents(t, content)["/a/kept"][:4]); diff != "" {
		t.Error(diff)
	}
	for e := new(disk.Enumeration); e.Next(); {
		any := d.Clone()
		any.PowerLoss(e.Choose)
		got := contents(t, any)
		if !strings.HasPrefix(got["/a/kept"], "kept") {
			t.Fatalf("a flushed file is %q", got["/a/kept"])
		}
		if old, renamed := got["/a/old"], got["/a/new"]; old+renamed != "one" {
			t.Fatalf("of a file that was renamed there is %q and %q", old, renamed)
		}
	}
}

// TestSectors: unflushed sectors survive in any combination, each as it was at some time, and the size apart from them.
func TestSectors(t *testing.T) {
	d := disk.New()
	fsys := d.Mount()
	w := put(t, fsys, "/f", strings.Repeat("0", disk.SectorBytes), true)
	must(t, fsys.FlushDir("/"))
	_, err := w.WriteAt([]byte("1"), 0)
	must(t, err)
	_, err = w.WriteAt([]byte("2"), 0)
	must(t, err)
	must(t, w.Append(bytes.Repeat([]byte("b"), 2*disk.SectorBytes)))
	seen := map[string]int{}
	states := 0
	for e := new(disk.Enumeration); e.Next(); states++ {
		c := d.Clone()
		c.PowerLoss(e.Choose)
		raw := contents(t, c)["/f"]
		short := ""
		for at := 0; at < len(raw); at += disk.SectorBytes {
			short += strings.ReplaceAll(raw[at:at+1], "\x00", "z")
		}
		seen[short]++
	}
	// Two sizes, three versions of the first sector, two of each of the others.
	if states != 2*3*2*2 {
		t.Errorf("%d states, expected %d", states, 2*3*2*2)
	}
	var got []string
	for s := range seen {
		got = append(got, s)
	}
	slices.Sort(got)
	want := []string{"0", "0bb", "0bz", "0zb", "0zz", "1", "1bb", "1bz", "1zb", "1zz", "2", "2bb", "2bz", "2zb", "2zz"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
}

// TestCuts: a cut that was lost brings back what it cut, and then nothing that was written behind it is there; a cut that happened shows nothing of it.
func TestCuts(t *testing.T) {
	d := disk.New()
	fsys := d.Mount()
	w := put(t, fsys, "/f", "0123456789", true)
	must(t, fsys.FlushDir("/"))
	must(t, w.Truncate(4))
	must(t, w.Append([]byte("ab")))
	seen := map[string]bool{}
	for e := new(disk.Enumeration); e.Next(); {
		c := d.Clone()
		c.PowerLoss(e.Choose)
		seen[contents(t, c)["/f"]] = true
	}
	want := map[string]bool{"0123456789": true, "0123": true, "0123ab": true, "0123\x00\x00": true}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
}

// TestFaults: errors are those that a store can recognise, a failing write may leave a part, and a flush that drops what it should write reports that once.
func TestFaults(t *testing.T) {
	d := disk.New()
	var fault disk.Fault
	var seen []disk.Op
	d.Fault = func(op disk.Op) disk.Fault {
		seen = append(seen, op)
		f := fault
		fault = disk.Fault{}
		return f
	}
	fsys := d.Mount()
	w := put(t, fsys, "/f", "ab", true)
	must(t, fsys.FlushDir("/"))
	fault = disk.Fault{Err: files.ErrNoSpace, Keep: 1}
	if err := w.Append([]byte("cd")); !errors.Is(err, files.ErrNoSpace) {
		t.Errorf("append: %v", err)
	}
	wantFiles(t, "part of a write", d.Clone(), map[string]string{"/f": "abc"})
	fault = disk.Fault{Err: files.ErrIO, Drop: true}
	if err := w.Flush(); !errors.Is(err, files.ErrIO) {
		t.Errorf("flush: %v", err)
	}
	must(t, w.Flush()) // as if all were well
	wantFiles(t, "after a failed flush, in memory", d.Clone(), map[string]string{"/f": "abc"})
	after := d.Clone()
	after.PowerLoss(disk.LoseNothing)
	wantFiles(t, "after a failed flush and a power loss", after, map[string]string{"/f": "ab"})
	if last := seen[len(seen)-1]; last.Kind != disk.Flush || last.Path != "/f" || last.Number != d.Changes()-1 {
		t.Errorf("the last operation was %+v, of %d", last, d.Changes())
	}
	must(t, d.Flip("/f", 1, 0))
	wantFiles(t, "flip", d.Clone(), map[string]string{"/f": "acc"})
	if err := d.Flip("/f", 3, 0); err == nil {
		t.Error("a bit behind the end was flipped")
	}
	d.Wipe()
	wantFiles(t, "wipe", d, map[string]string{})
}

// TestProcesses: a process that ended has no effect any more, its locks are free, and a stop comes where it was asked for.
func TestProcesses(t *testing.T) {
	d := disk.New()
	first := d.Mount()
	must(t, first.MakeDir("/a"))
	if _, err := first.Lock("/a"); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Lock("/a"); !errors.Is(err, files.ErrLocked) {
		t.Errorf("second lock: %v", err)
	}
	w := put(t, first, "/a/f", "x", false)
	second := d.Mount()
	if err := errors.Join(w.Append([]byte("y")), first.Remove("/a/f")); !errors.Is(err, disk.ErrStopped) {
		t.Errorf("a dead process: %v", err)
	}
	l, err := second.Lock("/a")
	must(t, err)
	must(t, l.Close())
	wantFiles(t, "after a dead process", d.Clone(), map[string]string{"/a/f": "x"})

	d.StopAt(d.Changes()+1, func(c disk.Choice) int { return 1 })
	w, err = second.Edit("/a/f")
	must(t, err)
	must(t, w.Append([]byte("12")))
	if err := w.Append([]byte("3456")); !errors.Is(err, disk.ErrStopped) || !d.Stopped() {
		t.Errorf("stopped write: %v, stopped %t", err, d.Stopped())
	}
	wantFiles(t, "a write that was stopped half-way", d, map[string]string{"/a/f": "x1234"})
}

func TestTook(t *testing.T) {
	d := disk.New()
	d.Speed = disk.Speed{Op: time.Microsecond, Flush: time.Millisecond, PerMByte: 1 << 20}
	w := put(t, d.Mount(), "/f", strings.Repeat("x", 1000), true)
	if got, want := d.Took(), 3*time.Microsecond+time.Millisecond+1000; got != want {
		t.Errorf("create, write 1000 bytes, flush took %v, expected %v", got, want)
	}
	must(t, w.Flush())
	if got, want := d.Took(), time.Microsecond+time.Millisecond; got != want {
		t.Errorf("a flush took %v, expected %v", got, want)
	}
}

// TestLikeTheOperatingSystem: any sequence of calls gives the same results and the same files on a simulated disk as on the system's.
func TestLikeTheOperatingSystem(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := storagetest.TempDir(t)
		d := disk.New()
		sim := d.Mount()
		must(t, files.MakeDirs(sim, dir))
		both := []files.FS{files.OS{}, sim}
		name := func(more ...string) string {
			return filepath.Join(dir, rapid.SampledFrom(append(more, "a", "b", "s/a", "s/b", "t/a")).Draw(rt, "name"))
		}
		// same makes a call on both and compares what errors say of themselves.
		same := func(call string, do func(files.FS) (string, error)) {
			var results [2]string
			for i, fsys := range both {
				out, err := do(fsys)
				kind := fmt.Sprint(err != nil)
				for _, known := range []error{fs.ErrNotExist, fs.ErrExist, files.ErrLocked} {
					if errors.Is(err, known) {
						kind = known.Error()
					}
				}
				results[i] = out + " " + kind
			}
			if results[0] != results[1] {
				rt.Fatalf("%s: the system says %q, the simulated disk %q", call, results[0], results[1])
			}
		}
		write := func(open func(files.FS, string) (files.Writer, error)) func(*rapid.T) {
			return func(*rapid.T) {
				path, cut := name(), rapid.Int64Range(0, 700).Draw(rt, "cut")
				parts := [][]byte{bytes.Repeat([]byte("x"), rapid.IntRange(0, 600).Draw(rt, "bytes")), []byte("end")}
				same("write "+path, func(fsys files.FS) (string, error) {
					w, err := open(fsys, path)
					if err != nil {
						return "", err
					}
					err = errors.Join(w.Append(parts...), w.Truncate(cut), w.Append([]byte("tail")))
					_, atErr := w.WriteAt([]byte("YZ"), cut/2)
					return "", errors.Join(err, atErr, w.Flush(), w.Close())
				})
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"create": write(files.FS.Create),
			"edit":   write(files.FS.Edit),
			"rename": func(*rapid.T) {
				dir, from, to := filepath.Join(dir, rapid.SampledFrom([]string{"", "s"}).Draw(rt, "dir")), rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "from"), rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "to")
				same("rename", func(fsys files.FS) (string, error) {
					return "", fsys.Rename(filepath.Join(dir, from), filepath.Join(dir, to))
				})
			},
			"remove": func(*rapid.T) {
				p := name()
				same("remove "+p, func(f files.FS) (string, error) { return "", f.Remove(p) })
			},
			"make dir": func(*rapid.T) {
				same("make dir", func(f files.FS) (string, error) { return "", f.MakeDir(dir + "/s") })
			},
			"flush dir": func(*rapid.T) {
				same("flush dir", func(f files.FS) (string, error) { return "", f.FlushDir(dir + "/s") })
			},
			"": func(*rapid.T) {
				for _, at := range []string{dir, dir + "/s"} {
					same("list "+at, func(fsys files.FS) (string, error) {
						list, err := fsys.List(at)
						out := fmt.Sprint(list)
						for _, e := range list {
							if !e.Dir {
								raw, err := files.ReadAll(fsys, filepath.Join(at, e.Name))
								out += fmt.Sprintf(" %q %v", raw, err)
							}
						}
						return out, err
					})
				}
			},
		})
		if err := os.RemoveAll(dir); err != nil {
			rt.Fatal(err)
		}
	})
}

// guarded lets several goroutines use a simulated disk, as the conformance suite does.
type guarded struct {
	mu sync.Mutex
	files.FS
}

func (g *guarded) Open(path string) (files.Reader, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r, err := g.FS.Open(path)
	return &guardedFile{g: g, Reader: r}, err
}

func (g *guarded) Create(path string) (files.Writer, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w, err := g.FS.Create(path)
	return &guardedFile{g: g, Writer: w}, err
}

func (g *guarded) Edit(path string) (files.Writer, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w, err := g.FS.Edit(path)
	return &guardedFile{g: g, Writer: w}, err
}

func (g *guarded) Rename(from, to string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.FS.Rename(from, to)
}

func (g *guarded) Remove(path string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.FS.Remove(path)
}

func (g *guarded) FlushDir(dir string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.FS.FlushDir(dir)
}

type guardedFile struct {
	g      *guarded
	Reader files.Reader
	Writer files.Writer
}

func (f *guardedFile) do(call func() error) error {
	f.g.mu.Lock()
	defer f.g.mu.Unlock()
	return call()
}

func (f *guardedFile) ReadAt(p []byte, at int64) (n int, err error) {
	err = f.do(func() error { n, err = f.Reader.ReadAt(p, at); return err })
	return n, err
}

func (f *guardedFile) WriteAt(p []byte, at int64) (n int, err error) {
	err = f.do(func() error { n, err = f.Writer.WriteAt(p, at); return err })
	return n, err
}

func (f *guardedFile) Append(parts ...[]byte) error {
	return f.do(func() error { return f.Writer.Append(parts...) })
}
func (f *guardedFile) Truncate(size int64) error {
	return f.do(func() error { return f.Writer.Truncate(size) })
}
func (f *guardedFile) Flush() error { return f.do(func() error { return f.Writer.Flush() }) }
func (f *guardedFile) Close() error {
	if f.Reader != nil {
		return f.do(f.Reader.Close)
	}
	return f.do(f.Writer.Close)
}

// TestConformance: the store behaves on the simulated disk as it does on the system's.
func TestConformance(t *testing.T) {
	storagetest.Run(t, func(testing.TB) storagetest.Store {
		fsys := &guarded{FS: disk.New().Mount()}
		return func() (storage.Log, error) {
			l, err := segment.Open("/log", segment.Options{FS: fsys, SegmentBytes: 1024})
			if err != nil {
				return nil, err
			}
			return l, nil
		}
	})
}

// TestSameChoicesSameDisk: a crash is a function of the choices.
func TestSameChoicesSameDisk(t *testing.T) {
	state := func() map[string]string {
		d := disk.New()
		l, err := segment.Open("/log", segment.Options{FS: d.Mount(), SegmentBytes: 700})
		must(t, err)
		for range 20 {
			must(t, l.Append(sample.Batches(l.Bounds().End, 2, 1, 1, 200), false))
		}
		d.PowerLoss(disk.Random(rand.New(rand.NewPCG(3, 4))))
		return contents(t, d)
	}
	if diff := cmp.Diff(state(), state()); diff != "" {
		t.Errorf("the same choices gave another disk:\n%s", diff)
	}
}
