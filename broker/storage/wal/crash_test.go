package wal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ackproof/broker/record"
	"ackproof/broker/storage"
	"ackproof/broker/storage/internal/rawwal"
	"ackproof/broker/storage/recent"
	"ackproof/broker/storage/sample"
	"ackproof/broker/storage/storagetest"
)

var errStop = errors.New("stopped here")

// TestCrashInCut: wherever a truncation, trim or reset stops, the next open finds log and checkpoint both as before or both as after (S6), also if
// it is stopped itself while it finishes the job.
func TestCrashInCut(t *testing.T) {
	all := sample.Batches(0, 20, 2, 1, 100)
	opts := Options{SegmentBytes: 700, Cache: recent.New(1 << 20)}
	before := storage.Checkpoint{HighWatermark: 7, Epochs: []storage.EpochStart{{Epoch: 1}}, Producers: []byte("old"), ProducersAt: 9}
	after := storage.Checkpoint{HighWatermark: 5, Epochs: []storage.EpochStart{{Epoch: 1}}, Producers: []byte("new"), ProducersAt: 2}
	trimmed := storage.Checkpoint{LogStart: 21, HighWatermark: 30, Producers: []byte("new")}
	reset := storage.Checkpoint{LogStart: 500, HighWatermark: 500, Producers: []byte("new")}
	for _, tt := range []struct {
		name string
		call func(*Log) error
		cp   storage.Checkpoint
		left []record.Batch
		from int // of all: a trim keeps what else is in the first segment
	}{
		{"truncate", func(l *Log) error { return l.Truncate(11, after) }, after, all[:5], 0},
		{"truncate to nothing", func(l *Log) error { return l.Truncate(0, after) }, storage.Checkpoint{}, nil, 0},
		{"trim", func(l *Log) error { return l.Trim(trimmed) }, trimmed, all, 10},
		{"reset", func(l *Log) error { return l.Reset(500, reset) }, reset, nil, 0},
	} {
		for _, at := range []string{"before intent", "intent saved", "end cut", "files cut", "intent gone"} {
			for _, again := range []bool{false, true} {
				name := fmt.Sprintf("%s, stopped at %q, again %t", tt.name, at, again)
				dir := storagetest.TempDir(t)
				reached := false
				stopAt := func(step string) error {
					if step == at {
						reached = true
						return errStop
					}
					return nil
				}
				l, err := open(dir, opts, stopAt)
				must(t, err)
				must(t, l.Append(all, true))
				must(t, l.Save(before))
				err = tt.call(l)
				if !reached {
					if err != nil || tt.name != "reset" { // which has no such step
						t.Fatalf("%s: the step was not reached: %v", name, err)
					}
				} else if !errors.Is(err, errStop) {
					t.Fatalf("%s: %v", name, err)
				}
				must(t, l.Close(false))
				if again {
					if l, err := open(dir, opts, stopAt); err == nil {
						must(t, l.Close(false))
					} else if !errors.Is(err, errStop) {
						t.Fatalf("%s: %v", name, err)
					}
				}
				l = mustOpen(t, dir, opts)
				want, cp, end := tt.left, tt.cp, l.Bounds().End
				switch {
				case at == "before intent":
					want, cp = all, before
				case tt.name == "trim":
					if s := l.Bounds().Start; s == 0 || s > trimmed.LogStart {
						t.Fatalf("%s: starts at %d", name, s)
					}
					want = all[l.Bounds().Start/2:]
				case tt.name == "truncate to nothing":
					cp = after.Within(storage.Bounds{})
				}
				wantContents(t, l, want)
				if diff := cmp.Diff(cp, l.Checkpoint()); diff != "" {
					t.Fatalf("%s: checkpoint (-want +got):\n%s", name, diff)
				}
				more := sample.Batches(end, 8, 2, 6, 100)
				must(t, l.Append(more, false))
				must(t, l.Close(false))
				l = mustOpen(t, dir, opts) // the cut is not done again
				wantContents(t, l, append(slices.Clone(want), more...))
				must(t, l.Close(false))
			}
		}
	}
}

// wantDead expects that every call refuses from now on (S3).
func wantDead(t *testing.T, l *Log) {
	t.Helper()
	_, readErr := l.Read(0, 1, 1)
	_, _, timeErr := l.OffsetAt(0)
	for name, err := range map[string]error{
		"append": l.Append(nil, false), "flush": l.Flush(), "save": l.Save(storage.Checkpoint{}), "truncate": l.Truncate(0, storage.Checkpoint{}),
		"trim": l.Trim(storage.Checkpoint{}), "reset": l.Reset(0, storage.Checkpoint{}), "read": readErr, "offset at": timeErr,
		"headers": l.Headers(0, func(record.Header) error { return nil }),
	} {
		if !errors.Is(err, storage.ErrDead) {
			t.Errorf("%s: %v, expected %v", name, err, storage.ErrDead)
		}
	}
}

// TestDiskFull: the next segment file is a link to /dev/full, so that the write after the roll fails as on a full disk.
func TestDiskFull(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("needs /dev/full")
	}
	dir := t.TempDir()
	opts := Options{SegmentBytes: 700}
	l := mustOpen(t, dir, opts)
	all := sample.Batches(0, 40, 2, 1, 100)
	must(t, l.Append(all[:1], false))
	must(t, l.Flush())
	var second uint64 // segment
	layout(chain{index: 1}, 0, 700, all, placer{
		roll: func(c chain) {
			if second == 0 {
				second = c.index
			}
		},
		guard: func(guard) {}, batch: func(uint64, record.Batch) {},
	})
	next := rawwal.Path(filepath.Join(dir, "log"), second)
	must(t, os.Symlink("/dev/full", next))
	acked := 1
	var err error
	for ; acked < len(all); acked++ {
		if err = l.Append(all[acked:acked+1], true); err != nil {
			break
		}
	}
	if !errors.Is(err, storage.ErrDead) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("append: %v, expected %v because of %v", err, storage.ErrDead, syscall.ENOSPC)
	}
	if b := l.Bounds(); b.End != int64(2*acked) {
		t.Fatalf("bounds %+v after %d batches", b, acked)
	}
	must(t, os.Remove(next)) // there is space again; the handle must not care
	wantDead(t, l)
	if err := l.Close(true); !errors.Is(err, storage.ErrDead) {
		t.Fatalf("clean close: %v, expected %v", err, storage.ErrDead)
	}
	l = mustOpen(t, dir, opts)
	wantContents(t, l, all[:acked])
	must(t, l.Append(all[acked:], false))
	wantContents(t, l, all)
}

func TestFailedFlushAndSave(t *testing.T) {
	all := sample.Batches(0, 3, 1, 1, 10)
	for _, tt := range []struct {
		name  string
		spoil func(dir string) (undo func() error, err error)
		call  func(*Log) error
	}{
		{"flush", func(dir string) (func() error, error) { // its folder cannot be flushed
			log, away := filepath.Join(dir, "log"), filepath.Join(dir, "away")
			return func() error { return os.Rename(away, log) }, os.Rename(log, away)
		}, (*Log).Flush},
		{"save", blockState, func(l *Log) error { return l.Save(storage.Checkpoint{}) }},
		{"truncate", blockState, func(l *Log) error { return l.Truncate(1, storage.Checkpoint{}) }},
		{"reset", blockState, func(l *Log) error { return l.Reset(9, storage.Checkpoint{}) }},
		{"clean close", blockState, func(l *Log) error {
			err := l.Close(true)
			if _, statErr := os.Stat(filepath.Join(l.dir, markerFile)); !errors.Is(statErr, os.ErrNotExist) {
				return fmt.Errorf("a clean-shutdown marker was written: %v", statErr)
			}
			return err
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			l := mustOpen(t, dir, Options{})
			must(t, l.Append(all, false))
			undo, err := tt.spoil(dir)
			must(t, err)
			if err := tt.call(l); !errors.Is(err, storage.ErrDead) {
				t.Fatalf("%v, expected %v", err, storage.ErrDead)
			}
			must(t, undo())
			if tt.name != "clean close" {
				wantDead(t, l)
				must(t, l.Close(false))
			}
			l = mustOpen(t, dir, Options{})
			wantContents(t, l, all)
		})
	}
}

// blockState puts a folder where the new state file would be written.
func blockState(dir string) (undo func() error, err error) {
	path := filepath.Join(dir, stateFile+".TEMP")
	return func() error { return os.Remove(path) }, os.Mkdir(path, 0o750)
}

// TestKill: a process that is killed while it appends keeps everything that Append had returned for, and what it wrote can be told apart
// from what the kill cut off.
func TestKill(t *testing.T) {
	const count, size = 3, 3000
	opts := Options{SegmentBytes: 64 << 10}
	dir, child := storagetest.ChildDir()
	if child {
		l, err := Open(dir, opts)
		must(t, err)
		for {
			end := l.Bounds().End
			must(t, l.Append(sample.Batches(end, 4, count, 1, size), end%2 == 0))
			storagetest.Acknowledge(l.Bounds().End)
			if end%(16*count) == 0 {
				must(t, l.Flush())
			}
		}
	}
	dir = t.TempDir()
	for round := range 6 {
		acked := storagetest.KillChild(t, "TestKill", dir, 3+round*7, func() {
			if _, err := Open(dir, opts); !errors.Is(err, storage.ErrLocked) {
				t.Errorf("open while another process has it: %v, expected %v", err, storage.ErrLocked)
			}
		})
		l := mustOpen(t, dir, opts)
		end := l.Bounds().End
		if end < acked || end > acked+4*count {
			t.Fatalf("round %d: the log ends at %d, acknowledged %d", round, end, acked)
		}
		wantContents(t, l, sample.Batches(0, int(end/count), count, 1, size))
		if round == 3 { // begin anew, so that the test stays short
			must(t, l.Reset(0, storage.Checkpoint{}))
		}
		must(t, l.Close(round%2 == 0))
	}
}
