package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrLocked: somebody else holds the lock of the folder, be it another process or another handle of this one.
var ErrLocked = errors.New("folder is locked")

// Lock takes the lock of a folder: an flock on its file "lock". The kernel gives it back when the process dies. Closing the file
// unlocks; the file stays, because removing it would let two holders have two different files.
// Its name is not durable: after a crash nobody holds it.
func Lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o640)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", dir, ErrLocked)
		}
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return f, nil
}
