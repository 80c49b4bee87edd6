//go:build !linux

package reference

import "syscall"

// guarded: a process group of its own. Without a parent-death signal the end of standard input is the only guard.
func guarded() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
