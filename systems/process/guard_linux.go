package process

import "syscall"

// guarded: a session and a process group of its own, so that a signal reaches all of it, a key on the terminal does not, and the scheduler, which
// may group processes by session (sched_autogroup), gives it a share of its own; killed when the thread that started it dies.
func guarded() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
