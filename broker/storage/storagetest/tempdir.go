package storagetest

import (
	"os"
	"testing"
)

// TempDir makes a folder that is removed with the test, in memory where the system offers that (/dev/shm). A test that opens hundreds of logs has
// no use for a disk: it cannot tell whether a flush has reached one.
func TempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "ackproof-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
