package node

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill the child when the thread that started it ends. The child is its own process group, so that a signal from the
// terminal goes to the parent alone, which stops its children in order.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
