package reference

import "syscall"

// guarded: a process group of its own, so that a signal reaches all of it and a key on the terminal does not; killed when the thread that
// started it dies.
func guarded() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
