package wal

import (
	"bytes"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"ackproof/broker/record"
	"ackproof/broker/storage"
	"ackproof/broker/storage/internal/rawwal"
	"ackproof/broker/storage/internal/window"
	"ackproof/broker/storage/sample"
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
	got, err := sample.Contents(l)
	must(t, err)
	must(t, sample.Same(got, want))
}

func segmentFile(index uint64) string {
	return filepath.Join("log", filepath.Base(rawwal.Path("", index)))
}

// walFiles says what the files look like.
var walFiles = storagetest.Files{
	Open: func(dir string, segmentBytes int) (storage.Log, error) {
		l, err := Open(dir, Options{SegmentBytes: segmentBytes})
		if err != nil {
			return nil, err
		}
		return l, nil
	},
	Segments: func(m storagetest.Image) []string {
		names := slices.Sorted(maps.Keys(m))
		return slices.DeleteFunc(names, func(name string) bool { return filepath.Dir(name) != "log" })
	},
	Batches: func(raw []byte) (out []storagetest.Place) {
		c := cursor{window: window.Window{File: bytes.NewReader(raw), Limit: int64(len(raw))}}
		for c.pos < c.window.Limit {
			e, err := c.next()
			if err != nil {
				panic(err)
			}
			if !e.isGuard {
				out = append(out, storagetest.Place{Begin: int(e.pos), End: int(e.end())})
			}
		}
		return out
	},
	State: stateFile, Marker: markerFile,
}

func TestDamage(t *testing.T) { storagetest.RunDamage(t, walFiles) }

// TestMarkerSkipsTheWalk: with the marker, opening does not even read the headers.
func TestMarkerSkipsTheWalk(t *testing.T) {
	dir := storagetest.TempDir(t)
	l := mustOpen(t, dir, Options{SegmentBytes: 700})
	must(t, l.Append(sample.Batches(0, 20, 2, 1, 100), false))
	must(t, l.Close(true))
	l = mustOpen(t, dir, Options{SegmentBytes: 700})
	for _, s := range l.segments {
		if s.indexed && s.Entries > 0 {
			t.Fatal("a segment was walked")
		}
	}
}

// TestLeftovers: files that the library, or we, were writing when the end came.
func TestLeftovers(t *testing.T) {
	all := sample.Batches(0, 20, 2, 1, 100)
	m := walFiles.Build(t, 700, 0, all)
	first, half := segmentFile(1), m[segmentFile(1)][:50]
	walFiles.CheckRepaired(t, "TEMP files", m.With(first+".START.TEMP", half).With(first+".TEMP", half).With("state.TEMP", half).With("clean.TEMP", half), 700, all)
	walFiles.CheckRepaired(t, "a folder and a stranger's file", m.With("log/README", half), 700, all)
	// A complete START of the first segment replaces it by the same.
	walFiles.CheckRepaired(t, "START", m.With(first+".START", m[first]).With(first, nil), 700, all)
	// A complete END of the first segment: the truncation behind it is finished.
	starts := walFiles.Batches(m[first])
	walFiles.CheckRepaired(t, "END", m.With(first+".END", m[first][:starts[1].End]), 700, all[:2])
	walFiles.CheckDamaged(t, "START and END", m.With(first+".START", m[first]).With(first+".END", half), 700)
}
