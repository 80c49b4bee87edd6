// Package seccomp stands between one process and the kernel, without privilege and without the process's help: chosen system calls wait until the harness has said
// what becomes of them. The process can be killed exactly at the k-th write, flush or rename, before it is carried out, or be given an error for it; and a connect can be
// led to another port. The process has to be started for it (Start); any program will do, unless it makes its calls by io_uring. It knows nothing of nodes or faults.
// Start reading at Start, then Trap.
package seccomp

import (
	"net/netip"
	"syscall"
)

// Call is a class of system calls.
type Call string

// The classes.
const (
	Write    Call = "write"    // to files: write and its variants, copies from file to file
	Flush    Call = "flush"    // fsync, fdatasync, sync_file_range
	Rename   Call = "rename"   // of files and folders
	Remove   Call = "remove"   // of files and folders
	Truncate Call = "truncate" // and whatever else gives a file another length by number
)

// Calls are all classes.
func Calls() []Call { return []Call{Write, Flush, Rename, Remove, Truncate} }

// Trap is what happens to one call, once.
type Trap struct {
	Calls []Call // which count
	Under string // only calls on files below this folder count, as the process sees it; "": on any file
	// Nth of the calls, from 1, since the trap was set. 0 only counts.
	Nth int
	// Errno is the call's result; the call is not carried out. 0: the process is killed before the call is carried out.
	Errno syscall.Errno
	// Fired, if set, is told of the call just before that happens. It must not call the Supervisor.
	Fired func(Hit)
}

// Hit is a call that met a trap.
type Hit struct {
	Name string // of the system call
	Path string // of the file; of the target of a rename
}

// Options of Start.
type Options struct {
	Calls []Call // that traps may be set for; every one costs some ten microseconds, on sockets too
	Trap  Trap   // set from the process's first instruction on; the zero Trap sets none
	// Redirect, if set, says where a connect of the process to an address of IPv4 (in either form) or to IPv6's loopback goes instead: to another port of the same
	// address, or nowhere, with an error. 0 and no error: where it was going.
	Redirect func(to netip.AddrPort) (port uint16, err syscall.Errno)
}
