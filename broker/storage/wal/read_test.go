package wal

import (
	"os"
	"testing"

	"ackproof/broker/record"
	"ackproof/broker/storage"
	"ackproof/broker/storage/recent"
	"ackproof/broker/storage/sample"
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
	const size = 40 << 10 // large batches are sent from the file
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
			l := mustOpen(t, t.TempDir(), Options{SegmentBytes: 128 << 10})
			must(t, l.Append(all, false))
			run, err := l.Read(0, 12, 1<<20)
			must(t, err)
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

func TestSmallBatchesComeInOnePiece(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{})
	all := sample.Batches(0, 500, 1, 1, 200)
	must(t, l.Append(all, false))
	run, err := l.Read(100, 500, 1<<20)
	must(t, err)
	defer run.Release()
	if n := len(run.Chunks()); n != 1 {
		t.Fatalf("%d chunks, expected 1", n)
	}
	must(t, sample.Same(parse(t, run), all[100:]))
}

// TestOpenFilesAreBounded: reading a log of many segments does not use up descriptors.
func TestOpenFilesAreBounded(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{SegmentBytes: 1000})
	all := sample.Batches(0, 200, 1, 1, 100)
	must(t, l.Append(all, false))
	for range 2 {
		wantContents(t, l, all)
	}
	open := 0
	for _, s := range l.segments {
		if s.file != nil {
			open++
		}
	}
	if open != len(l.open) || open > maxOpenFiles || len(l.segments) < 10 {
		t.Fatalf("%d of %d segments are open, %d counted, at most %d expected", open, len(l.segments), len(l.open), maxOpenFiles)
	}
}

// TestCacheBudget: one budget for all logs, oldest out first, and nothing left behind.
func TestCacheBudget(t *testing.T) {
	one := sample.Batch(0, 1, 1, 1000)
	size := len(one.Bytes())
	cache := recent.New(4 * size)
	logs := []*Log{mustOpen(t, t.TempDir(), Options{Cache: cache}), mustOpen(t, t.TempDir(), Options{Cache: cache})}
	cached := func(l *Log, offset int64) bool {
		run, err := l.Read(offset, offset+1, 1<<20)
		must(t, err)
		defer run.Release()
		must(t, sample.Same(parse(t, run), []record.Batch{sample.Batch(offset, 1, 1, 1000)}))
		l.mu.Lock()
		defer l.mu.Unlock()
		kept, ok := l.ring.Read(offset, offset+1, 1<<20)
		kept.Release()
		return ok
	}
	for offset := range int64(3) {
		for _, l := range logs {
			must(t, l.Append([]record.Batch{sample.Batch(offset, 1, 1, 1000)}, true))
		}
	}
	for _, l := range logs {
		if cached(l, 0) || !cached(l, 1) || !cached(l, 2) {
			t.Fatalf("cached: %t %t %t, expected the last two", cached(l, 0), cached(l, 1), cached(l, 2))
		}
	}
	// A batch that may not be kept leaves a gap: nothing before it can be served together with what follows.
	must(t, logs[0].Append([]record.Batch{sample.Batch(3, 1, 1, 1000)}, false))
	if cached(logs[0], 2) || !cached(logs[1], 2) {
		t.Fatal("a gap in the cache")
	}
	must(t, logs[1].Truncate(2, storage.Checkpoint{}))
	if cached(logs[1], 1) {
		t.Fatal("cached after a truncation")
	}
	must(t, logs[0].Append([]record.Batch{sample.Batch(4, 1, 1, 1000)}, true))
	for _, l := range logs {
		must(t, l.Close(true))
	}
	if bytes, batches := cache.Used(); bytes != 0 || batches != 0 {
		t.Fatalf("%d bytes of %d batches are left in the cache", bytes, batches)
	}
}

// TestReaderInsideACut: a reader that opens the tail between the moment when a truncation is decided and the moment when the file is replaced must not
// stick to the old file, which goes on with the old history.
func TestReaderInsideACut(t *testing.T) {
	var l *Log
	old := sample.Batches(0, 6, 1, 1, 100)
	reads := 0
	l, err := open(t.TempDir(), Options{}, func(step string) error {
		if step != "intent saved" {
			return nil
		}
		reads++
		run, err := l.Read(0, 6, 1<<20)
		if err != nil {
			return err
		}
		defer run.Release()
		return sample.Same(parse(t, run), old[:3])
	})
	must(t, err)
	t.Cleanup(func() { _ = l.Close(false) })
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
	dir := t.TempDir()
	all := sample.Batches(0, 20, 1, 1, 100)
	l := mustOpen(t, dir, Options{SegmentBytes: 1000})
	must(t, l.Append(all, false))
	must(t, l.Close(true))
	l = mustOpen(t, dir, Options{SegmentBytes: 1000})
	cut, gone := l.segments[0], l.segments[1]
	must(t, l.Truncate(2, storage.Checkpoint{}))
	for _, s := range []*segment{cut, gone} {
		must(t, l.ensureIndexed(s))
		if s.indexed {
			t.Fatal("a segment that is no longer part of the log was walked")
		}
	}
	wantContents(t, l, all[:2])
}
