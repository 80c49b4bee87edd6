package segment

import (
	"testing"

	"ackproof/broker/record"
	"ackproof/broker/storage"
	"ackproof/broker/storage/recent"
	"ackproof/broker/storage/sample"
	"ackproof/broker/storage/storagetest"
)

func TestConformance(t *testing.T) {
	for _, tt := range []struct {
		name  string
		cache *recent.Cache
		index int64
	}{{"files", nil, 0}, {"dense index", nil, 1}, {"cache", recent.New(4 << 10), 300}} {
		t.Run(tt.name, func(t *testing.T) {
			storagetest.Run(t, func(t testing.TB) storagetest.Store {
				dir := storagetest.TempDir(t)
				return func() (storage.Log, error) {
					return opened(Open(dir, Options{SegmentBytes: 1024, IndexBytes: tt.index, Cache: tt.cache}))
				}
			})
		})
	}
}

// opened keeps a nil *Log from becoming a storage.Log that is not nil.
func opened(l *Log, err error) (storage.Log, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}

// TestSegmentBytesChanged: the option may change from one open to the next, in both directions.
func TestSegmentBytesChanged(t *testing.T) {
	dir := storagetest.TempDir(t)
	var all []record.Batch
	for i, size := range []int64{4096, 300, 2000, 300, 4096} {
		l := mustOpen(t, dir, Options{SegmentBytes: size})
		for range 3 {
			more := sample.Batches(l.Bounds().End, 3, 2, int32(i), 200)
			must(t, l.Append(more, false))
			all = append(all, more...)
		}
		wantContents(t, l, all)
		must(t, l.Close(i%2 == 0))
	}
	wantContents(t, mustOpen(t, dir, Options{}), all)
	for _, size := range []int64{-1, minSegmentBytes - 1, 1 << 31} {
		if _, err := Open(storagetest.TempDir(t), Options{SegmentBytes: size}); err == nil {
			t.Fatalf("a segment size of %d was accepted", size)
		}
	}
}

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
