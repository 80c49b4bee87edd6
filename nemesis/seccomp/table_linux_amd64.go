package seccomp

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

func table() map[int32]syscallOf {
	t := everywhere()
	t[unix.SYS_RENAME] = syscallOf{"rename", Rename, -1, 1, &two{-1, 0}}
	t[unix.SYS_UNLINK] = syscallOf{"unlink", Remove, -1, 0, nil}
	t[unix.SYS_RMDIR] = syscallOf{"rmdir", Remove, -1, 0, nil}
	return t
}
