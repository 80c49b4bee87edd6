package wire

import (
	"net"

	"golang.org/x/sys/unix"
)

// writeNow writes as much of the parts as the socket takes without waiting, and tells how many bytes that was. Why it was not all, an ordinary write of the rest will find out.
func writeNow(conn net.Conn, parts [][]byte) (n int) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return 0
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0
	}
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		for {
			n, failed = unix.Writev(int(fd), parts)
			if failed != unix.EINTR {
				return true
			}
		}
	})
	if err != nil || failed != nil {
		return 0
	}
	return n
}
