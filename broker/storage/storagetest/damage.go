package storagetest

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
	"ackproof/broker/storage/sample"
)

// Files says what a store's files look like, for RunDamage.
type Files struct {
	Open func(dir string, segmentBytes int) (storage.Log, error)
	// Segments gives the names of the segment files, in order; the last one may be empty.
	Segments func(Image) []string
	// Batches gives where each batch of a segment file begins and ends.
	Batches func(raw []byte) []Place
	// State and Marker are the names of the files of these two.
	State, Marker string
}

// Place is a batch in a file.
type Place struct{ Begin, End int }

// Image is a folder's files by name, so that one log can be spoilt in many ways.
type Image map[string][]byte

// Take reads a folder.
func Take(t testing.TB, dir string) Image {
	t.Helper()
	out := Image{}
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

// Put makes a new folder with these files.
func (m Image) Put(t testing.TB) (dir string) {
	t.Helper()
	dir = TempDir(t)
	for name, raw := range m {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o750))
		must(t, os.WriteFile(filepath.Join(dir, name), raw, 0o640))
	}
	return dir
}

// With gives the image with one file replaced; nil removes it.
func (m Image) With(name string, raw []byte) Image {
	out := Image{}
	for n, r := range m {
		out[n] = r
	}
	if out[name] = raw; raw == nil {
		delete(out, name)
	}
	return out
}

// RunDamage runs the tests of what a crash or bit rot makes of a log's files: torn tails are repaired, good data is never cut (S2), damage below the recovery
// point is said and not touched (R23).
func RunDamage(t *testing.T, f Files) {
	t.Run("torn tail", f.testTornTail)
	t.Run("garbage behind the tail", f.testGarbage)
	t.Run("bit flips", f.testBitFlips)
	t.Run("segment missing or short", f.testSegments)
	t.Run("clean-shutdown marker", f.testMarker)
	t.Run("state", f.testState)
}

// Build makes a log of which the first `durable` batches lie below the recovery point, closed as by a crash of the process.
func (f Files) Build(t testing.TB, segmentBytes, durable int, batches []record.Batch) Image {
	t.Helper()
	dir := TempDir(t)
	l, err := f.Open(dir, segmentBytes)
	must(t, err)
	must(t, l.Append(batches[:durable], false))
	must(t, l.Flush())
	must(t, l.Save(storage.Checkpoint{}))
	must(t, l.Append(batches[durable:], false))
	must(t, l.Close(false))
	return Take(t, dir)
}

// TwoEpochs is a log in which the leader changes.
func TwoEpochs() []record.Batch {
	return append(sample.Batches(0, 3, 2, 4, 20), sample.Batches(6, 3, 2, 5, 20)...)
}

// CheckRepaired opens and expects these batches, then that the log goes on from there.
func (f Files) CheckRepaired(t testing.TB, what string, m Image, segmentBytes int, want []record.Batch) {
	t.Helper()
	dir := m.Put(t)
	l := f.openRepaired(t, what, dir, segmentBytes, want)
	more := sample.Batches(l.Bounds().End, 2, 1, 9, 30)
	must(t, l.Append(more, false))
	must(t, l.Close(false))
	must(t, f.openRepaired(t, what+", opened again", dir, segmentBytes, append(slices.Clone(want), more...)).Close(false))
}

// openRepaired opens and expects these batches.
func (f Files) openRepaired(t testing.TB, what, dir string, segmentBytes int, want []record.Batch) storage.Log {
	t.Helper()
	l, err := f.Open(dir, segmentBytes)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	got, err := sample.Contents(l)
	if err == nil {
		err = sample.Same(got, want)
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if b := l.Bounds(); b.Durable != b.End {
		t.Fatalf("%s: what a repair lets stand has been flushed, bounds %+v", what, b)
	}
	return l
}

// CheckDamaged expects that the log does not open, and that its segment files are as they were.
func (f Files) CheckDamaged(t testing.TB, what string, m Image, segmentBytes int) {
	t.Helper()
	dir := m.Put(t)
	l, err := f.Open(dir, segmentBytes)
	if err == nil {
		must(t, l.Close(false))
	}
	if !errors.Is(err, storage.ErrDamaged) {
		t.Fatalf("%s: %v, expected %v", what, err, storage.ErrDamaged)
	}
	after := Take(t, dir)
	for _, name := range f.Segments(m) {
		if !bytes.Equal(after[name], m[name]) {
			t.Fatalf("%s: %s was changed", what, name)
		}
	}
	for name := range after {
		if _, ok := m[name]; !ok && name != "lock" {
			t.Fatalf("%s: %s appeared", what, name)
		}
	}
}

// testTornTail: what a crash left of the last batch is cut off, and nothing before it (S2).
func (f Files) testTornTail(t *testing.T) {
	all := TwoEpochs()
	m := f.Build(t, 1<<20, 3, all)
	name := f.Segments(m)[0]
	raw := m[name]
	places := f.Batches(raw)
	for n := places[len(all)-1].Begin; n < len(raw); n++ {
		f.CheckRepaired(t, fmt.Sprintf("cut at byte %d", n), m.With(name, raw[:n]), 1<<20, all[:len(all)-1])
		// The whole length, but the last bytes never reached the disk.
		zeros := append(slices.Clone(raw[:n]), make([]byte, len(raw)-n)...)
		if !bytes.Equal(zeros, raw) {
			f.CheckRepaired(t, fmt.Sprintf("zeros from byte %d", n), m.With(name, zeros), 1<<20, all[:len(all)-1])
		}
	}
}

func (f Files) testGarbage(t *testing.T) {
	all := TwoEpochs()
	one := f.Build(t, 1<<20, 3, all)
	whole := len(one[f.Segments(one)[0]])
	for _, segmentBytes := range []int{1 << 20, whole} { // the latter: all of it in the segment before the tail, or just so in one
		for _, garbage := range [][]byte{{0}, make([]byte, 4096), bytes.Repeat([]byte{0xff}, 100), sample.Batch(13, 1, 5, 10).Bytes()} {
			for _, durable := range []int{3, 6} {
				m := f.Build(t, segmentBytes, durable, all)
				names := f.Segments(m)
				last := names[len(names)-1]
				f.CheckRepaired(t, fmt.Sprintf("%d bytes %x…", len(garbage), garbage[0]), m.With(last, append(slices.Clone(m[last]), garbage...)), segmentBytes, all)
			}
		}
	}
}

// testBitFlips: one wrong bit at any place of the file is found, be it in a length, an offset, an epoch or a body. At or above the recovery point the log ends
// before it; below, it is damage.
func (f Files) testBitFlips(t *testing.T) {
	all := TwoEpochs()
	const durable = 3
	m := f.Build(t, 1<<20, durable, all)
	name := f.Segments(m)[0]
	places := f.Batches(m[name])
	for at := range m[name] {
		bit := byte(1) << (at % 8)
		raw := slices.Clone(m[name])
		raw[at] ^= bit
		what := fmt.Sprintf("byte %d, bit %02x", at, bit)
		intact := 0 // batches that lie wholly before it
		for intact < len(all) && places[intact].End <= at {
			intact++
		}
		if intact < durable {
			f.CheckDamaged(t, what, m.With(name, raw), 1<<20)
		} else {
			must(t, f.openRepaired(t, what, m.With(name, raw).Put(t), 1<<20, all[:intact]).Close(false))
		}
	}
}

func (f Files) testSegments(t *testing.T) {
	all := sample.Batches(0, 20, 2, 1, 100)
	const segmentBytes = 700
	for _, durable := range []int{0, 20} {
		m := f.Build(t, segmentBytes, durable, all)
		names := f.Segments(m)
		if len(names) < 4 {
			t.Fatalf("%d segments, expected at least 4", len(names))
		}
		before := 0 // batches before the segment
		for i, name := range names {
			raw := m[name]
			if len(raw) == 0 {
				continue
			}
			places := f.Batches(raw)
			last := before + len(places) - 1
			for what, change := range map[string]struct {
				image Image
				left  int
			}{
				"missing":              {m.With(name, nil), before},
				"empty":                {m.With(name, []byte{}), before},
				"without its last":     {m.With(name, raw[:places[len(places)-1].Begin]), last},
				"short by a byte":      {m.With(name, raw[:len(raw)-1]), last},
				"with another's bytes": {m.With(name, m[names[(i+1)%3]]), before},
			} {
				what = fmt.Sprintf("segment %d %s, %d batches flushed", i, what, durable)
				if durable > 0 {
					f.CheckDamaged(t, what, change.image, segmentBytes)
				} else {
					f.CheckRepaired(t, what, change.image, segmentBytes, all[:change.left])
				}
			}
			before += len(places)
		}
	}
}

// testMarker: the marker vouches for the files only as long as they look like it.
func (f Files) testMarker(t *testing.T) {
	const segmentBytes = 700
	all := sample.Batches(0, 20, 2, 1, 100)
	dir := TempDir(t)
	reopen := func(dir string) storage.Log {
		return open(t, func() (storage.Log, error) { return f.Open(dir, segmentBytes) })
	}
	l := reopen(dir)
	if _, err := os.Stat(filepath.Join(dir, f.Marker)); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("marker while the log is open: %v", err)
	}
	must(t, l.Append(all, false))
	must(t, l.Close(true))
	m := Take(t, dir)
	if m[f.Marker] == nil {
		t.Fatal("no marker after a clean close")
	}
	first := f.Segments(m)[0]
	second := f.Batches(m[first])[1]
	flipped := slices.Clone(m[first])
	flipped[second.End-1] ^= 1 // in the body of a batch: only a check of its checksum finds it

	t.Run("skips the walk", func(t *testing.T) { must(t, reopen(m.With(first, flipped).Put(t)).Close(false)) })
	t.Run("does not outlive the open", func(t *testing.T) {
		dir := m.Put(t)
		must(t, reopen(dir).Close(false))
		f.CheckDamaged(t, "flip after an unclean end", Take(t, dir).With(first, flipped), segmentBytes)
	})
	t.Run("of other sizes", func(t *testing.T) {
		f.CheckDamaged(t, "short", m.With(first, m[first][:len(m[first])-3]), segmentBytes)
	})
	t.Run("damaged", func(t *testing.T) {
		bad := slices.Clone(m[f.Marker])
		bad[len(bad)/2] ^= 1
		f.CheckRepaired(t, "marker", m.With(f.Marker, bad), segmentBytes, all)
		f.CheckDamaged(t, "marker and segment", m.With(f.Marker, bad).With(first, flipped), segmentBytes)
	})
	t.Run("of another run", func(t *testing.T) {
		l := reopen(dir)
		more := sample.Batches(40, 1, 1, 1, 1)
		must(t, l.Append(more, false))
		must(t, l.Close(true))
		f.CheckRepaired(t, "marker", Take(t, dir).With(f.Marker, m[f.Marker]), segmentBytes, append(slices.Clone(all), more...))
	})
	t.Run("wrong offsets are found by the reader", func(t *testing.T) {
		bad := slices.Clone(m[first])
		bad[second.End-len(all[1].Bytes())+7] ^= 1 // base offset
		l := reopen(m.With(first, bad).Put(t))
		_, err := l.Read(2, 40, 1000)
		wantError(t, "read", err, storage.ErrDamaged)
	})
}

func (f Files) testState(t *testing.T) {
	m := f.Build(t, 1<<20, 3, TwoEpochs())
	for at := range m[f.State] {
		bad := slices.Clone(m[f.State])
		bad[at] ^= 0x08
		f.CheckDamaged(t, fmt.Sprintf("byte %d of state", at), m.With(f.State, bad), 1<<20)
	}
	f.CheckDamaged(t, "no state", m.With(f.State, nil), 1<<20)
}
