package wire

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// silenceMillis is how long the kernel waits for an acknowledgement from the other side before the connection is dead.
const silenceMillis = 3000

// giveUpSilence bounds how long a connection lives on in a cut network. Without it the kernel repeats ever more slowly, so that minutes after the cut
// has healed nothing has got through.
func giveUpSilence(_, _ string, raw syscall.RawConn) error {
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, silenceMillis)
	})
	if err != nil {
		return err
	}
	return failed
}
