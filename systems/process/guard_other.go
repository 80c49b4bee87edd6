//go:build !linux

package process

import "syscall"

// guarded: a session of its own. Without a parent-death signal the end of standard input is the only guard.
func guarded() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
