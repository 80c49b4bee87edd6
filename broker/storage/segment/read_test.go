package segment

import (
	"os"
	"strings"
	"testing"

	"ackproof/broker/record"
	"ackproof/broker/storage"
	"ackproof/broker/storage/files"
	"ackproof/broker/storage/sample"
	"ackproof/broker/storage/storagetest"
)

func parse(t *testing.T, run storage.Records) []record.Batch {
	t.Helper()
	raw, err := run.Bytes()
	must(t, err)
	out, err := record.ParseAll(raw)
	must(t, err)
	return out
}

// TestRunsOutliveCuts: what a reader was given stays readable and the same, whatever becomes of the log.
func TestRunsOutliveCuts(t *testing.T) {
	const size = 4 << 10
	all := sample.Batches(0, 12, 1, 1, size)
	for name, change := range map[string]func(*Log) error{
		"truncate and append": func(l *Log) error {
			if err := l.Truncate(1, storage.Checkpoint{}); err != nil {
				return err
			}
			return l.Append(sample.Batches(1, 11, 1, 2, size), false)
		},
		"trim":  func(l *Log) error { return l.Trim(storage.Checkpoint{LogStart: 12}) },
		"reset": func(l *Log) error { return l.Reset(0, storage.Checkpoint{}) },
		"close": func(l *Log) error { return l.Close(true) },
	} {
		t.Run(name, func(t *testing.T) {
			l := mustOpen(t, storagetest.TempDir(t), Options{SegmentBytes: 16 << 10})
			must(t, l.Append(all, false))
			run, err := l.Read(0, 12, 1<<20)
			must(t, err)
			if n := len(run.Chunks()); n != len(l.parts) {
				t.Fatalf("%d chunks, expected one for each of %d segments", n, len(l.parts))
			}
			for _, c := range run.Chunks() {
				if _, ok := c.File.(*os.File); !ok {
					t.Fatalf("a chunk of %T, expected an *os.File", c.File)
				}
			}
			must(t, change(l))
			must(t, sample.Same(parse(t, run), all))
			file := run.Chunks()[0].File.(*os.File)
			run.Release()
			if _, err := file.Stat(); err == nil {
				t.Fatal("a file that nobody uses is still open")
			}
		})
	}
}

// TestOpenFilesAreBounded: reading a log of many segments uses up neither descriptors nor memory for indexes.
func TestOpenFilesAreBounded(t *testing.T) {
	l := mustOpen(t, storagetest.TempDir(t), Options{SegmentBytes: 1000, IndexBytes: 1})
	all := sample.Batches(0, 200, 1, 1, 100)
	for i := range all {
		must(t, l.Append(all[i:i+1], false))
		if n := len(l.unflushed); n > maxUnflushed {
			t.Fatalf("%d closed segments wait for a flush, at most %d expected", n, maxUnflushed)
		}
	}
	if l.recovery == 0 || l.bounds.Durable != 0 {
		t.Fatalf("recovery point %d, durable %d; expected that segments were flushed and nothing was promised", l.recovery, l.bounds.Durable)
	}
	for range 2 {
		wantContents(t, l, all)
	}
	opened, indexed := 0, 0
	for _, p := range l.parts {
		if p.file != nil {
			opened++
		}
		if p.index != nil {
			indexed++
		}
	}
	if opened != len(l.open) || opened > maxOpenFiles || indexed > maxOpenFiles+1 || len(l.parts) < 10 {
		t.Fatalf("of %d segments %d are open, %d counted, %d have their index in memory; at most %d expected", len(l.parts), opened, len(l.open), indexed, maxOpenFiles)
	}
}

// TestSpansFollowTheIndex: for every range and limit, a read through the index gives what a walk would.
func TestSpansFollowTheIndex(t *testing.T) {
	all := sample.Batches(0, 40, 2, 1, 60)
	for _, interval := range []int64{1, 200, 1000, 1 << 20} {
		l := mustOpen(t, storagetest.TempDir(t), Options{SegmentBytes: 2500, IndexBytes: interval})
		must(t, l.Append(all, false))
		size := len(all[0].Bytes())
		for from := range int64(80) {
			for to := from + 1; to <= 80; to += 3 {
				for _, limit := range []int{0, size, 3*size + 1, 11 * size, 17*size - 1, 1 << 20} {
					want := all[from/2 : max(from/2, min(to/2, from/2+int64(max(1, limit/size))))]
					run, err := l.Read(from, to, limit)
					must(t, err)
					if err := sample.Same(parse(t, run), want); err != nil {
						t.Fatalf("index of %d bytes, [%d, %d), %d bytes: %v", interval, from, to, limit, err)
					}
					run.Release()
				}
			}
		}
	}
}

// hooked calls a function before a file is renamed.
type hooked struct {
	files.OS
	before func(to string) error
}

func (h hooked) Rename(from, to string) error {
	if err := h.before(to); err != nil {
		return err
	}
	return h.OS.Rename(from, to)
}

// TestReaderInsideACut: a reader that opens the tail between the moment when a truncation is decided and the moment when the file is replaced must not
// stick to the old file, which goes on with the old history.
func TestReaderInsideACut(t *testing.T) {
	var l *Log
	old := sample.Batches(0, 6, 1, 1, 100)
	reads := 0
	l = mustOpen(t, storagetest.TempDir(t), Options{FS: hooked{before: func(to string) error {
		if !strings.HasSuffix(to, logSuffix) {
			return nil
		}
		reads++
		run, err := l.Read(0, 6, 1<<20)
		if err != nil {
			return err
		}
		defer run.Release()
		return sample.Same(parse(t, run), old[:3])
	}}})
	must(t, l.Append(old, false))
	must(t, l.Truncate(3, storage.Checkpoint{}))
	if reads != 1 {
		t.Fatalf("%d reads inside the cut, expected 1", reads)
	}
	more := sample.Batches(3, 3, 1, 2, 100)
	must(t, l.Append(more, false))
	wantContents(t, l, append(old[:3:3], more...))
}

// TestIndexOvertakenByACut: a reader that was about to walk a segment when it was cut must not take the shorter file for damage.
func TestIndexOvertakenByACut(t *testing.T) {
	dir := storagetest.TempDir(t)
	all := sample.Batches(0, 20, 1, 1, 100)
	l := mustOpen(t, dir, Options{SegmentBytes: 1000})
	must(t, l.Append(all, false))
	must(t, l.Close(true))
	l = mustOpen(t, dir, Options{SegmentBytes: 1000})
	cut, gone := l.parts[0], l.parts[1]
	must(t, l.Truncate(2, storage.Checkpoint{}))
	for _, p := range []*part{cut, gone} {
		p.index = nil
		must(t, l.ensureIndexed(p))
		if p.index != nil {
			t.Fatal("a segment that is no longer part of the log was walked")
		}
	}
	wantContents(t, l, all[:2])
}
