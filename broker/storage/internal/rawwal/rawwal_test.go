package rawwal

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidwall/wal"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write makes a log of ten entries, three to a segment: 1-3, 4-6, 7-9, 10.
func write(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	w, err := wal.Open(dir, &wal.Options{SegmentSize: 30, AllowEmpty: true})
	must(t, err)
	for i := uint64(1); i <= 10; i++ {
		must(t, w.Write(i, []byte{byte(i), 1, 2, 3, 4, 5, 6, 7, 8}))
	}
	must(t, w.Close())
	return dir
}

// wantEntries expects that the library opens the log and has these entries.
func wantEntries(t *testing.T, dir string, first, last uint64) {
	t.Helper()
	w, err := wal.Open(dir, &wal.Options{AllowEmpty: true})
	must(t, err)
	defer w.Close()
	gotFirst, err := w.FirstIndex()
	must(t, err)
	gotLast, err := w.LastIndex()
	must(t, err)
	if gotFirst != first || gotLast != last {
		t.Fatalf("entries %d to %d, expected %d to %d", gotFirst, gotLast, first, last)
	}
	for i := first; i <= last; i++ {
		if raw, err := w.Read(i); err != nil || raw[0] != byte(i) {
			t.Fatalf("entry %d: %v, %v", i, raw, err)
		}
	}
}

func copyFile(t *testing.T, from, to string, skip, length int) {
	t.Helper()
	raw, err := os.ReadFile(from)
	must(t, err)
	must(t, os.WriteFile(to, raw[skip:skip+length], 0o640))
}

// TestTidy: the leftovers of the library's own truncations, as a crash before each of its steps leaves them.
func TestTidy(t *testing.T) {
	const entryBytes = 10
	for _, tt := range []struct {
		name        string
		leave       func(dir string)
		first, last uint64
	}{
		{"nothing", func(string) {}, 1, 10},
		{"half a START", func(dir string) { copyFile(t, Path(dir, 4), Path(dir, 5)+".START.TEMP", 10, 13) }, 1, 10},
		{"START", func(dir string) { copyFile(t, Path(dir, 4), Path(dir, 5)+".START", 10, 2*entryBytes) }, 5, 10},
		{"START, files removed", func(dir string) {
			copyFile(t, Path(dir, 4), Path(dir, 5)+".START", 10, 2*entryBytes)
			must(t, os.Remove(Path(dir, 1)))
			must(t, os.Remove(Path(dir, 4)))
		}, 5, 10},
		{"END", func(dir string) { copyFile(t, Path(dir, 4), Path(dir, 4)+".END", 0, entryBytes) }, 1, 4},
		{"END, files removed", func(dir string) {
			copyFile(t, Path(dir, 4), Path(dir, 4)+".END", 0, entryBytes)
			must(t, os.Remove(Path(dir, 4)))
			must(t, os.Remove(Path(dir, 7)))
		}, 1, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t)
			tt.leave(dir)
			must(t, Tidy(dir))
			left, err := filepath.Glob(filepath.Join(dir, "*.*"))
			must(t, err)
			if len(left) > 0 {
				t.Fatalf("left: %v", left)
			}
			wantEntries(t, dir, tt.first, tt.last)
		})
	}
	dir := write(t)
	must(t, os.WriteFile(Path(dir, 1)+".START", nil, 0o640))
	must(t, os.WriteFile(Path(dir, 4)+".END", nil, 0o640))
	if err := Tidy(dir); !errors.Is(err, ErrAmbiguous) {
		t.Fatalf("START and END: %v, expected %v", err, ErrAmbiguous)
	}
}

func TestCutAndDrop(t *testing.T) {
	dir := write(t)
	for range 2 { // doing it again changes nothing
		must(t, Cut(dir, 7, 20))
		must(t, DropBelow(dir, 4))
	}
	wantEntries(t, dir, 4, 8)
	must(t, Cut(dir, 7, 0))
	wantEntries(t, dir, 4, 6)
	if err := Cut(dir, 4, 31); err == nil {
		t.Fatal("cut to more than there is")
	}
}

func TestEntry(t *testing.T) {
	for size := range 70000 {
		prefix := binary.AppendUvarint(nil, uint64(size+1))
		if got, want := EntryBytes(size+1), int64(len(prefix)+size+1); got != want {
			t.Fatalf("an entry of %d bytes takes %d, expected %d", size+1, got, want)
		}
	}
	for name, tt := range map[string]struct {
		raw   []byte
		limit int64
	}{
		"nothing": {nil, 0}, "zero length": {[]byte{0, 1, 2}, 3}, "unfinished length": {[]byte{0x80}, 1},
		"too long": {[]byte{3, 1, 2}, 3}, "overflow": {[]byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}, 11},
		"huge": {binary.AppendUvarint(nil, 1<<63), 100},
	} {
		if _, _, err := Entry(tt.raw, tt.limit); !errors.Is(err, ErrBad) {
			t.Errorf("%s: %v, expected %v", name, err, ErrBad)
		}
	}
	if head, size, err := Entry([]byte{2, 1, 2}, 3); head != 1 || size != 2 || err != nil {
		t.Errorf("head %d, size %d, %v", head, size, err)
	}
}
