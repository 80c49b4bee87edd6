package wal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ackproof/broker/record"
	"ackproof/broker/storage"
	"ackproof/broker/storage/internal/rawwal"
	"ackproof/broker/storage/storagetest"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustOpen(t testing.TB, dir string, opts Options) *Log {
	t.Helper()
	l, err := Open(dir, opts)
	must(t, err)
	t.Cleanup(func() { _ = l.Close(false) })
	return l
}

func wantContents(t testing.TB, l storage.Log, want []record.Batch) {
	t.Helper()
	got, err := storagetest.Contents(l)
	must(t, err)
	must(t, storagetest.Same(got, want))
}

// image is a folder's files, so that one log can be spoilt in many ways.
type image map[string][]byte

func take(t testing.TB, dir string) image {
	t.Helper()
	out := image{}
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err == nil {
			out[name], err = os.ReadFile(path)
		}
		return err
	}))
	return out
}

// put makes a new folder with these files.
func (m image) put(t testing.TB) (dir string) {
	t.Helper()
	dir = storagetest.TempDir(t)
	must(t, os.Mkdir(filepath.Join(dir, "log"), 0o750))
	for name, raw := range m {
		must(t, os.WriteFile(filepath.Join(dir, name), raw, 0o640))
	}
	return dir
}

// with gives the image with one file replaced; nil removes it.
func (m image) with(name string, raw []byte) image {
	out := image{}
	for n, r := range m {
		out[n] = r
	}
	if out[name] = raw; raw == nil {
		delete(out, name)
	}
	return out
}

func segmentFile(index uint64) string {
	return filepath.Join("log", filepath.Base(rawwal.Path("", index)))
}

// build makes a log of which the first `durable` batches lie below the recovery point, closed as by a crash of the process.
func build(t testing.TB, segmentBytes, durable int, batches []record.Batch) image {
	t.Helper()
	dir := storagetest.TempDir(t)
	l := mustOpen(t, dir, Options{SegmentBytes: segmentBytes})
	must(t, l.Append(batches[:durable], false))
	must(t, l.Flush())
	must(t, l.Save(storage.Checkpoint{}))
	must(t, l.Append(batches[durable:], false))
	must(t, l.Close(false))
	return take(t, dir)
}

// twoEpochs is a log with guards in the middle.
func twoEpochs() []record.Batch {
	return append(storagetest.Batches(0, 3, 2, 4, 20), storagetest.Batches(6, 3, 2, 5, 20)...)
}

// checkRepaired opens and expects these batches, then that the log goes on from there.
func checkRepaired(t *testing.T, what string, m image, segmentBytes int, want []record.Batch) {
	t.Helper()
	dir := m.put(t)
	l := openRepaired(t, what, dir, segmentBytes, want)
	more := storagetest.Batches(l.Bounds().End, 2, 1, 9, 30)
	must(t, l.Append(more, false))
	must(t, l.Close(false))
	must(t, openRepaired(t, what+", opened again", dir, segmentBytes, append(slices.Clone(want), more...)).Close(false))
}

// openRepaired opens and expects these batches.
func openRepaired(t *testing.T, what, dir string, segmentBytes int, want []record.Batch) *Log {
	t.Helper()
	l, err := Open(dir, Options{SegmentBytes: segmentBytes})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	got, err := storagetest.Contents(l)
	if err == nil {
		err = storagetest.Same(got, want)
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if b := l.Bounds(); b.Durable != b.End {
		t.Fatalf("%s: what a repair lets stand has been flushed, bounds %+v", what, b)
	}
	return l
}

// checkDamaged expects that the log does not open, and that its segment files are as they were.
func checkDamaged(t *testing.T, what string, m image, segmentBytes int) {
	t.Helper()
	dir := m.put(t)
	l, err := Open(dir, Options{SegmentBytes: segmentBytes})
	if err == nil {
		must(t, l.Close(false))
	}
	if !errors.Is(err, storage.ErrDamaged) {
		t.Fatalf("%s: %v, expected %v", what, err, storage.ErrDamaged)
	}
	after := take(t, dir)
	for name, raw := range m {
		if filepath.Dir(name) == "log" && !bytes.Equal(after[name], raw) {
			t.Fatalf("%s: %s was changed", what, name)
		}
	}
	for name := range after {
		if _, ok := m[name]; !ok && name != "lock" {
			t.Fatalf("%s: %s appeared", what, name)
		}
	}
}

// entriesOf gives where each batch of the only segment begins, and where the last one ends.
func entriesOf(t *testing.T, raw []byte) (starts []int) {
	t.Helper()
	c := cursor{file: bytes.NewReader(raw), limit: int64(len(raw))}
	for c.pos < c.limit {
		e, err := c.next()
		must(t, err)
		if !e.isGuard {
			starts = append(starts, int(e.pos))
		}
	}
	return append(starts, len(raw))
}

// TestTornTailAtEveryByte: what a crash left of the last batch is cut off, and nothing before it (S2).
func TestTornTailAtEveryByte(t *testing.T) {
	all := twoEpochs()
	m := build(t, 1<<20, 3, all)
	name := segmentFile(1)
	raw := m[name]
	starts := entriesOf(t, raw)
	for n := starts[len(all)-1]; n < len(raw); n++ {
		checkRepaired(t, fmt.Sprintf("cut at byte %d", n), m.with(name, raw[:n]), 1<<20, all[:len(all)-1])
	}
}

func TestGarbageBehindTheTail(t *testing.T) {
	all := twoEpochs()
	name := segmentFile(1)
	for _, segmentBytes := range []int{1 << 20, len(build(t, 1<<20, 3, all)[name])} { // the latter: all of it in the segment before the tail
		for _, garbage := range [][]byte{{0}, make([]byte, 4096), bytes.Repeat([]byte{0xff}, 100), storagetest.Batch(12, 1, 5, 10).Bytes()} {
			for _, durable := range []int{3, 6} {
				m := build(t, segmentBytes, durable, all)
				last := segmentFile(1)
				if _, rolled := m[segmentFile(9)]; rolled {
					last = segmentFile(9)
				}
				checkRepaired(t, fmt.Sprintf("%d bytes %x…", len(garbage), garbage[0]), m.with(last, append(slices.Clone(m[last]), garbage...)), segmentBytes, all)
			}
		}
	}
}

// TestBitFlipAnywhere: one wrong bit at any place of the file is found, be it in a length, a guard, an offset, an epoch or a body. At or above the
// recovery point the log ends before it; below, it is damage.
func TestBitFlipAnywhere(t *testing.T) {
	all := twoEpochs()
	const durable = 3
	m := build(t, 1<<20, durable, all)
	name := segmentFile(1)
	starts := entriesOf(t, m[name])
	for at := range m[name] {
		bit := byte(1) << (at % 8)
		raw := slices.Clone(m[name])
		raw[at] ^= bit
		what := fmt.Sprintf("byte %d, bit %02x", at, bit)
		intact := 0 // batches that lie wholly before it
		for intact < len(all) && batchEnd(starts, intact) <= at {
			intact++
		}
		if intact < durable {
			checkDamaged(t, what, m.with(name, raw), 1<<20)
		} else {
			must(t, openRepaired(t, what, m.with(name, raw).put(t), 1<<20, all[:intact]).Close(false))
		}
	}
}

// batchEnd is where batch i ends; a guard may follow before the next one starts.
func batchEnd(starts []int, i int) int {
	end := starts[i+1]
	if i == 2 { // the epoch changes here
		end -= int(rawwal.EntryBytes(guardBytes))
	}
	return end
}

func TestSegmentMissingOrShort(t *testing.T) {
	all := storagetest.Batches(0, 20, 2, 1, 100)
	const segmentBytes = 700
	for _, durable := range []int{0, 20} {
		m := build(t, segmentBytes, durable, all)
		dir := m.put(t)
		segments, err := rawwal.Segments(filepath.Join(dir, "log"))
		must(t, err)
		if len(segments) < 4 {
			t.Fatalf("%d segments, expected at least 4", len(segments))
		}
		l := mustOpen(t, dir, Options{SegmentBytes: segmentBytes})
		bases := make([]int, len(segments)) // batches before each segment
		for i, s := range l.segments {
			bases[i] = int(s.Base / 2)
		}
		must(t, l.Close(false))
		for i, s := range segments {
			if s.Bytes == 0 {
				continue
			}
			name := segmentFile(s.Index)
			raw := m[name]
			starts := entriesOf(t, raw)
			last := starts[len(starts)-2]
			for what, change := range map[string]struct {
				image image
				left  int
			}{
				"missing":              {m.with(name, nil), bases[i]},
				"empty":                {m.with(name, []byte{}), bases[i]},
				"without its last":     {m.with(name, raw[:last]), bases[i] + len(starts) - 2},
				"short by a byte":      {m.with(name, raw[:len(raw)-1]), bases[i] + len(starts) - 2},
				"with another's bytes": {m.with(name, m[segmentFile(segments[(i+1)%3].Index)]), bases[i]},
			} {
				what = fmt.Sprintf("segment %d %s, %d batches flushed", i, what, durable)
				if durable > 0 {
					checkDamaged(t, what, change.image, segmentBytes)
				} else {
					checkRepaired(t, what, change.image, segmentBytes, all[:change.left])
				}
			}
		}
	}
}

// TestCleanMarker: the marker vouches for the files only as long as they look like it.
func TestCleanMarker(t *testing.T) {
	all := storagetest.Batches(0, 20, 2, 1, 100)
	opts := Options{SegmentBytes: 700}
	dir := storagetest.TempDir(t)
	l := mustOpen(t, dir, opts)
	if _, err := os.Stat(filepath.Join(dir, markerFile)); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("marker while the log is open: %v", err)
	}
	must(t, l.Append(all, false))
	must(t, l.Close(true))
	m := take(t, dir)
	if m[markerFile] == nil {
		t.Fatal("no marker after a clean close")
	}
	first := segmentFile(1)
	flipped := slices.Clone(m[first])
	flipped[entriesOf(t, flipped)[1]+20] ^= 1 // inside a batch header, of the right length: only a walk finds it

	t.Run("skips the walk", func(t *testing.T) {
		l := mustOpen(t, m.with(first, flipped).put(t), opts)
		for _, s := range l.segments {
			if s.indexed && s.Entries > 0 {
				t.Fatal("a segment was walked")
			}
		}
	})
	t.Run("does not outlive the open", func(t *testing.T) {
		dir := m.put(t)
		must(t, mustOpen(t, dir, opts).Close(false))
		checkDamaged(t, "flip after an unclean end", take(t, dir).with(first, flipped), 700)
	})
	t.Run("of other sizes", func(t *testing.T) { checkDamaged(t, "short", m.with(first, m[first][:len(m[first])-3]), 700) })
	t.Run("damaged", func(t *testing.T) {
		bad := slices.Clone(m[markerFile])
		bad[len(bad)/2] ^= 1
		checkRepaired(t, "marker", m.with(markerFile, bad), 700, all)
		checkDamaged(t, "marker and segment", m.with(markerFile, bad).with(first, flipped), 700)
	})
	t.Run("of another run", func(t *testing.T) {
		l := mustOpen(t, dir, opts)
		must(t, l.Append(storagetest.Batches(40, 1, 1, 1, 1), false))
		must(t, l.Close(true))
		now := take(t, dir)
		checkRepaired(t, "marker", now.with(markerFile, m[markerFile]), 700, append(slices.Clone(all), storagetest.Batches(40, 1, 1, 1, 1)...))
	})
	t.Run("wrong offsets are found by the reader", func(t *testing.T) {
		bad := slices.Clone(m[first])
		bad[entriesOf(t, bad)[1]+9] ^= 1 // base offset
		l := mustOpen(t, m.with(first, bad).put(t), opts)
		if _, err := l.Read(2, 40, 1000); !errors.Is(err, storage.ErrDamaged) {
			t.Fatalf("read: %v, expected %v", err, storage.ErrDamaged)
		}
	})
}

func TestStateDamaged(t *testing.T) {
	m := build(t, 1<<20, 3, twoEpochs())
	for at := range m[stateFile] {
		bad := slices.Clone(m[stateFile])
		bad[at] ^= 0x08
		checkDamaged(t, fmt.Sprintf("byte %d of state", at), m.with(stateFile, bad), 1<<20)
	}
	checkDamaged(t, "no state", m.with(stateFile, nil), 1<<20)
}

// TestLeftovers: files that the library, or we, were writing when the end came.
func TestLeftovers(t *testing.T) {
	all := storagetest.Batches(0, 20, 2, 1, 100)
	m := build(t, 700, 0, all)
	first, half := segmentFile(1), m[segmentFile(1)][:50]
	checkRepaired(t, "TEMP files", m.with(first+".START.TEMP", half).with(first+".TEMP", half).with("state.TEMP", half).with("clean.TEMP", half), 700, all)
	checkRepaired(t, "a folder and a stranger's file", m.with("log/README", half), 700, all)
	// A complete START of the first segment replaces it by the same.
	checkRepaired(t, "START", m.with(first+".START", m[first]).with(first, nil), 700, all)
	// A complete END of the first segment: the truncation behind it is finished.
	starts := entriesOf(t, m[first])
	checkRepaired(t, "END", m.with(first+".END", m[first][:starts[2]]), 700, all[:2])
	checkDamaged(t, "START and END", m.with(first+".START", m[first]).with(first+".END", half), 700)
}
