package seccomp

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

func table() map[int32]syscallOf { return everywhere() }
