//go:build !linux

package lossy

import (
	"errors"
	"os"
	"runtime"
	"syscall"
)

var errElsewhere = errors.New("the file system that loses power takes FUSE and mount namespaces, which " + runtime.GOOS + " has not")

// Attach needs Linux.
func (f *FS) Attach() error { return errElsewhere }

// Available tells why Attach does not work here.
func Available() (ok bool, why string) { return false, errElsewhere.Error() }

func owner(info os.FileInfo) (uid, gid uint32) {
	st := info.Sys().(*syscall.Stat_t)
	return st.Uid, st.Gid
}
