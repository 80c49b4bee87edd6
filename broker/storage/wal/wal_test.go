package wal

import (
	"testing"

	"ackproof/broker/storage"
	"ackproof/broker/storage/storagetest"
)

func TestConformance(t *testing.T) {
	for _, tt := range []struct {
		name  string
		cache *Cache
	}{{"files", nil}, {"cache", NewCache(4 << 10)}} {
		t.Run(tt.name, func(t *testing.T) {
			storagetest.Run(t, func(t testing.TB) storagetest.Store {
				dir := t.TempDir()
				return func() (storage.Log, error) { return Open(dir, Options{SegmentBytes: 1024, Cache: tt.cache}) }
			})
		})
	}
}
