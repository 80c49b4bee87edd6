package segment

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ackproof/broker/record"
	"ackproof/broker/storage"
	"ackproof/broker/storage/files"
	"ackproof/broker/storage/sample"
	"ackproof/broker/storage/storagetest"
)

// segmentFiles says what the files look like.
var segmentFiles = storagetest.Files{
	Open: func(dir string, segmentBytes int) (storage.Log, error) {
		return opened(Open(dir, Options{SegmentBytes: int64(segmentBytes)}))
	},
	Segments: func(m storagetest.Image) []string {
		names := slices.Sorted(maps.Keys(m))
		return slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, logSuffix) })
	},
	Batches: func(raw []byte) (out []storagetest.Place) {
		batches, err := record.ParseAll(raw)
		if err != nil {
			panic(err)
		}
		at := 0
		for _, b := range batches {
			out = append(out, storagetest.Place{Begin: at, End: at + len(b.Bytes())})
			at += len(b.Bytes())
		}
		return out
	},
	State: stateFile, Marker: markerFile,
}

func TestDamage(t *testing.T) { storagetest.RunDamage(t, segmentFiles) }

// TestLeftovers: files that we were writing when the end came, and files that are not ours.
func TestLeftovers(t *testing.T) {
	all := sample.Batches(0, 20, 2, 1, 100)
	m := segmentFiles.Build(t, 700, 0, all)
	first := fileName(0, logSuffix)
	half := m[first][:50]
	segmentFiles.CheckRepaired(t, "TEMP files", m.With(first+files.TempSuffix, half).With("state.TEMP", half).With("clean.TEMP", half), 700, all)
	segmentFiles.CheckRepaired(t, "strangers' files", m.With("README", half).With("7.log", half).With("leader-epoch-checkpoint", half), 700, all)
	segmentFiles.CheckRepaired(t, "an index without its log", m.With(fileName(999, indexSuffix), half), 700, all)
	segmentFiles.CheckRepaired(t, "no index", m.With(fileName(0, indexSuffix), nil).With(fileName(0, timeSuffix), nil), 700, all)
}

// TestOtherLayout: the folder of another store is refused, and neither taken for empty nor for damaged.
func TestOtherLayout(t *testing.T) {
	dir := t.TempDir()
	must(t, files.WriteSmall(files.OS{}, filepath.Join(dir, stateFile), []byte(`{"version":1,"start":0,"recovery":0,"checkpoint":{}}`)))
	_, err := Open(dir, Options{})
	if err == nil || errors.Is(err, storage.ErrDamaged) || !strings.Contains(err.Error(), "layout") {
		t.Fatalf("the state of another store: %v", err)
	}
}

// TestIndexIsACache: an index that is missing, cut, foreign or wrong in any bit is made again from the log, also if only a clean marker vouches for the log.
func TestIndexIsACache(t *testing.T) {
	all := sample.Batches(0, 60, 2, 1, 100)
	for i := range all {
		all[i] = record.Build(record.Spec{BaseOffset: int64(2 * i), ProducerID: record.NoProducer, Timestamp: int64(1000 + i%7 + 10*i), Values: [][]byte{make([]byte, 60), make([]byte, 60)}})
	}
	opts := Options{SegmentBytes: 4000, IndexBytes: 300}
	for _, clean := range []bool{true, false} {
		dir := storagetest.TempDir(t)
		l := mustOpen(t, dir, opts)
		must(t, l.Append(all, false))
		must(t, l.Close(clean))
		m := storagetest.Take(t, dir)
		for _, suffix := range []string{indexSuffix, timeSuffix} {
			name := fileName(0, suffix)
			raw := m[name]
			if len(raw) < 3*timeEntry {
				t.Fatalf("%s has %d bytes", name, len(raw))
			}
			spoilt := [][]byte{nil, {}, raw[:len(raw)-1], raw[:timeEntry], append(slices.Clone(raw), raw...)}
			for at := range raw {
				bad := slices.Clone(raw)
				bad[at] ^= 1 << (at % 8)
				spoilt = append(spoilt, bad)
			}
			for _, bad := range spoilt {
				l := mustOpen(t, m.With(name, bad).Put(t), opts)
				for i, b := range all {
					h, ok, err := l.OffsetAt(b.MaxTimestamp)
					must(t, err)
					first := slices.IndexFunc(all, func(x record.Batch) bool { return x.MaxTimestamp >= b.MaxTimestamp })
					if !ok || h != all[first].Header {
						t.Fatalf("clean %t, %s spoilt: time of batch %d is found at %d (%t), expected %d", clean, name, i, h.BaseOffset, ok, all[first].BaseOffset)
					}
				}
				wantContents(t, l, all)
				must(t, l.Close(false))
			}
		}
	}
}

// TestKafkaLayout: names and index files are what Kafka's tools expect: an offset entry names a batch's last offset and its position, a time entry the largest timestamp
// up to a batch and the first batch that has it, and the last time entry of a closed segment the largest of all.
func TestKafkaLayout(t *testing.T) {
	dir := storagetest.TempDir(t)
	l := mustOpen(t, dir, Options{SegmentBytes: 20000})
	must(t, l.Reset(77, storage.Checkpoint{}))
	all := sample.Batches(77, 200, 2, 1, 100)
	must(t, l.Append(all, false))
	must(t, l.Close(true))
	m := storagetest.Take(t, dir)
	next := int64(77)
	for _, name := range segmentFiles.Segments(m) {
		base, _ := baseOf(name, logSuffix)
		if base != next {
			t.Fatalf("segment %s, expected one that begins at %d", name, next)
		}
		batches, err := record.ParseAll(m[name])
		must(t, err)
		if len(m[name]) > 20000 {
			t.Errorf("%s has %d bytes", name, len(m[name]))
		}
		at := map[int64]int64{} // last offset → position
		pos, holder := int64(0), batches[0]
		for _, b := range batches {
			at[b.LastOffset()] = pos
			pos += int64(len(b.Bytes()))
			if b.MaxTimestamp > holder.MaxTimestamp {
				holder = b
			}
		}
		next = batches[len(batches)-1].NextOffset()
		x := &index{offsets: m[fileName(base, indexSuffix)], times: m[fileName(base, timeSuffix)]}
		if n, want := len(x.offsets)/offsetEntry, len(m[name])/(DefaultIndexBytes+len(batches[0].Bytes())); n < want-1 || n > want+1 {
			t.Errorf("%s has %d entries, expected about %d", name, n, want)
		}
		last := int64(-1)
		for i := range len(x.offsets) / offsetEntry {
			one := (&index{offsets: x.offsets[i*offsetEntry:][:offsetEntry]}).find(1 << 31)
			if want, ok := at[base+one.last]; !ok || want != one.pos || one.last <= last {
				t.Errorf("%s: entry %d says that the batch that ends at %d is at byte %d", name, i, base+one.last, one.pos)
			}
			last = one.last
		}
		if n := len(x.times) / timeEntry; n == 0 || x.timeAt(n-1) != holder.MaxTimestamp {
			t.Errorf("%s: the last time entry of %d is not the largest timestamp", name, n)
		}
	}
	if next != l.bounds.End {
		t.Errorf("the segments end at %d, expected %d", next, l.bounds.End)
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
	all := sample.Batches(0, 20, 2, 1, 100)
	fits := 700 / len(all[0].Bytes())
	next := filepath.Join(dir, fileName(int64(2*fits), logSuffix))
	must(t, os.Symlink("/dev/full", next))
	acked := 0
	var err error
	for ; acked < len(all); acked++ {
		if err = l.Append(all[acked:acked+1], true); err != nil {
			break
		}
	}
	if !errors.Is(err, storage.ErrDead) || !errors.Is(err, syscall.ENOSPC) || acked != fits {
		t.Fatalf("append %d: %v, expected append %d to fail with %v because of %v", acked, err, fits, storage.ErrDead, syscall.ENOSPC)
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
	for round := range 4 {
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
		must(t, l.Close(round%2 == 0))
	}
}

// TestEpochsAreChecked: a flipped leader epoch is found even where no later batch contradicts it.
func TestEpochsAreChecked(t *testing.T) {
	all := append(sample.Batches(0, 2, 1, 7, 10), sample.Batches(2, 2, 1, 9, 10)...)
	m := segmentFiles.Build(t, 1<<20, 4, all)
	name := fileName(0, logSuffix)
	for i := range all {
		raw := slices.Clone(m[name])
		at := segmentFiles.Batches(raw)[i].Begin
		copy(raw[at+12:], []byte{0, 0, 0, 8})
		if bytes.Equal(raw, m[name]) {
			t.Fatal("nothing was changed")
		}
		segmentFiles.CheckDamaged(t, "epoch 8", m.With(name, raw), 1<<20)
	}
}
