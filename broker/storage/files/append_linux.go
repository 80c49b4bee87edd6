package files

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// mostParts is how many parts one system call takes (IOV_MAX).
const mostParts = 1024

// writeParts writes the parts one behind the other, with one system call for as many as the system takes.
func writeParts(f *os.File, at int64, parts [][]byte) error {
	if len(parts) == 1 {
		_, err := f.WriteAt(parts[0], at)
		return err
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	left := append(make([][]byte, 0, len(parts)), parts...) // the caller's slice stays as it is
	var failed error
	err = raw.Control(func(fd uintptr) {
		for len(left) > 0 {
			n, err := unix.Pwritev(int(fd), left[:min(len(left), mostParts)], at)
			switch {
			case err == unix.EINTR:
				continue
			case err != nil:
				failed = &os.PathError{Op: "pwritev", Path: f.Name(), Err: err}
				return
			case n == 0 && len(left[0]) > 0:
				failed = fmt.Errorf("write %s at %d: %w", f.Name(), at, io.ErrShortWrite)
				return
			}
			at += int64(n)
			left = behind(left, n)
		}
	})
	if err != nil {
		return err
	}
	return failed
}

// behind gives what is left of the parts after their first n bytes.
func behind(parts [][]byte, n int) [][]byte {
	for len(parts) > 0 && n >= len(parts[0]) {
		n -= len(parts[0])
		parts = parts[1:]
	}
	if n > 0 {
		parts[0] = parts[0][n:]
	}
	return parts
}
