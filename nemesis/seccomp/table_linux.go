//go:build amd64 || arm64

package seccomp

import "golang.org/x/sys/unix"

// syscallOf tells of a system call which class it is of, and how it names its file: by the descriptor in an argument, or by a path relative to one.
type syscallOf struct {
	name string
	call Call
	fd   int  // argument with the descriptor, or with that of the folder that the path counts from; −1: the working folder
	path int  // argument with the address of the path, −1: there is none
	too  *two // a second path
}

// two is the second path of a rename.
type two struct{ fd, path int }

// everywhere are the calls of all machines; table adds those of this one.
func everywhere() map[int32]syscallOf {
	return map[int32]syscallOf{
		unix.SYS_WRITE:           {"write", Write, 0, -1, nil},
		unix.SYS_PWRITE64:        {"pwrite64", Write, 0, -1, nil},
		unix.SYS_WRITEV:          {"writev", Write, 0, -1, nil},
		unix.SYS_PWRITEV:         {"pwritev", Write, 0, -1, nil},
		unix.SYS_PWRITEV2:        {"pwritev2", Write, 0, -1, nil},
		unix.SYS_COPY_FILE_RANGE: {"copy_file_range", Write, 2, -1, nil},
		unix.SYS_SENDFILE:        {"sendfile", Write, 0, -1, nil},
		unix.SYS_FSYNC:           {"fsync", Flush, 0, -1, nil},
		unix.SYS_FDATASYNC:       {"fdatasync", Flush, 0, -1, nil},
		unix.SYS_SYNC_FILE_RANGE: {"sync_file_range", Flush, 0, -1, nil},
		unix.SYS_RENAMEAT:        {"renameat", Rename, 2, 3, &two{0, 1}},
		unix.SYS_RENAMEAT2:       {"renameat2", Rename, 2, 3, &two{0, 1}},
		unix.SYS_UNLINKAT:        {"unlinkat", Remove, 0, 1, nil},
		unix.SYS_FTRUNCATE:       {"ftruncate", Truncate, 0, -1, nil},
		unix.SYS_FALLOCATE:       {"fallocate", Truncate, 0, -1, nil},
		unix.SYS_TRUNCATE:        {"truncate", Truncate, -1, 0, nil},
	}
}
