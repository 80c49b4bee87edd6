package wire

import (
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// sendfile sends n bytes of f at the given offset. The offset is explicit, unlike with (*net.TCPConn).ReadFrom, because several connections send from
// one descriptor. done is false, with nothing sent, if the file cannot be sent this way.
func sendfile(conn *net.TCPConn, f *os.File, at int64, n int) (done bool, err error) {
	out, err := conn.SyscallConn()
	if err != nil {
		return false, err
	}
	in, err := f.SyscallConn()
	if err != nil {
		return false, err
	}
	left := n
	var failed, closed error
	err = out.Write(func(outFD uintptr) bool {
		wait := false
		closed = in.Control(func(inFD uintptr) {
			for left > 0 {
				sent, err := unix.Sendfile(int(outFD), int(inFD), &at, left)
				switch {
				case err == unix.EAGAIN:
					wait = true
					return
				case err == unix.EINTR:
				case err != nil:
					failed = err
					return
				case sent == 0:
					failed = fmt.Errorf("log file ends at %d, %d bytes short: %w", at, left, io.ErrUnexpectedEOF)
					return
				default:
					left -= sent
				}
			}
		})
		return !wait
	})
	switch {
	case closed != nil:
		return false, closed
	case failed != nil && left == n && (failed == unix.EINVAL || failed == unix.ENOSYS):
		return false, nil
	case failed != nil:
		return false, failed
	}
	return err == nil, err
}
