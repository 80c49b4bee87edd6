//go:build amd64 || arm64

package seccomp

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// shimName is the name under which this program runs when it is to put a filter on itself and become another program: its arguments are the numbers of the calls, the
// descriptor over which the listener goes to the harness, the path of the program, and its arguments from the name on.
const shimName = "ackproof-seccomp"

// Shim must come first in main of every program that calls Start, since Start runs that program once more. Where it is not such a run, it returns at once; otherwise never.
func Shim() {
	if os.Args[0] != shimName {
		return
	}
	runtime.LockOSThread() // the filter is the thread's; exec takes the thread along and ends the others
	fd, err := strconv.Atoi(os.Args[2])
	if err == nil {
		err = become(os.Args[1], fd, os.Args[3], os.Args[4:])
	}
	if fd > 0 {
		unix.Sendmsg(fd, []byte("E"+err.Error()), nil, nil, 0) // a write may wait for the harness by now
	}
	os.Exit(1)
}

// become returns only with an error.
func become(calls string, fd int, program string, args []string) error {
	var numbers []uint32
	for word := range strings.SplitSeq(calls, ",") {
		n, err := strconv.ParseUint(word, 10, 32)
		if err != nil {
			return fmt.Errorf("call number %q: %w", word, err)
		}
		numbers = append(numbers, uint32(n))
	}
	listener, err := filterThread(numbers)
	if err != nil {
		return err
	}
	unix.CloseOnExec(listener)
	unix.CloseOnExec(fd) // its end tells the harness that the program runs
	if err := unix.Sendmsg(fd, []byte("F"), unix.UnixRights(listener), nil, 0); err != nil {
		return fmt.Errorf("hand over the listener: %w", err)
	}
	unix.Close(listener)
	return fmt.Errorf("run %s: %w", program, syscall.Exec(program, args, os.Environ()))
}

// filterThread makes the calls of those numbers, of this thread and of all that come from it, wait for the listener.
func filterThread(numbers []uint32) (listener int, err error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("give up new privileges: %w", err)
	}
	const (
		numberAt = 0 // in struct seccomp_data
		archAt   = 4
	)
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	answer := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	equal := func(k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jt: yes, Jf: no}
	}
	n := len(numbers)
	program := []unix.SockFilter{load(archAt), equal(auditArch, 0, uint8(n+1)), load(numberAt)}
	for i, number := range numbers {
		program = append(program, equal(number, uint8(n-i), 0))
	}
	program = append(program, answer(unix.SECCOMP_RET_ALLOW), answer(unix.SECCOMP_RET_USER_NOTIF))
	p := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	// With the last flag, a signal does not take a call back that the harness has seen already (Linux 5.19); without it, such a call comes twice.
	for _, flags := range []uintptr{unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER} {
		fd, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&p)))
		if e == 0 {
			return int(fd), nil
		}
		if err = e; !errors.Is(err, unix.EINVAL) {
			break
		}
	}
	return 0, fmt.Errorf("put a filter on the calls (does an outer sandbox have a listener of its own?): %w", err)
}

// Available tells whether Start works here, and how, or why not.
func Available() (ok bool, how string) {
	action := uint32(unix.SECCOMP_RET_USER_NOTIF)
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action))); e != 0 {
		return false, "seccomp user notification: " + e.Error() + ", expected Linux 5.5 or newer and no sandbox that forbids it"
	}
	var sizes struct{ notif, resp, data uint16 }
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_NOTIF_SIZES, 0, uintptr(unsafe.Pointer(&sizes))); e != 0 {
		return false, "seccomp user notification: " + e.Error()
	}
	if uintptr(sizes.notif) != unsafe.Sizeof(notification{}) || uintptr(sizes.resp) != unsafe.Sizeof(response{}) {
		return false, fmt.Sprintf("seccomp user notification: messages of %d and %d bytes, expected %d and %d", sizes.notif, sizes.resp, unsafe.Sizeof(notification{}), unsafe.Sizeof(response{}))
	}
	return true, "seccomp user notification: the call waits until the harness has decided"
}
