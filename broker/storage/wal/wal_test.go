package wal

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
	}{{"files", nil}, {"cache", recent.New(4 << 10)}} {
		t.Run(tt.name, func(t *testing.T) {
			storagetest.Run(t, func(t testing.TB) storagetest.Store {
				dir := storagetest.TempDir(t)
				return func() (storage.Log, error) { return Open(dir, Options{SegmentBytes: 1024, Cache: tt.cache}) }
			})
		})
	}
}

// TestSegmentBytesChanged: the option may change from one open to the next, in both directions.
func TestSegmentBytesChanged(t *testing.T) {
	dir := storagetest.TempDir(t)
	var all []record.Batch
	for i, size := range []int{4096, 300, 2000, 300, 4096} {
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
	if _, err := Open(storagetest.TempDir(t), Options{SegmentBytes: minSegmentBytes - 1}); err == nil {
		t.Fatal("a segment size below the least was accepted")
	}
}
