package nemesis

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// tighten lowers a limit of a live process and gives back what it was; widen sets it again. A process that has ended meanwhile gives os.ErrProcessDone.

// tightenDescriptors leaves the process the descriptors that it has and no further one: the next would have the lowest free number.
func tightenDescriptors(pid int) (was uint64, now uint64, err error) {
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return 0, 0, err
	}
	taken := map[uint64]bool{}
	for _, e := range open {
		if n, err := strconv.ParseUint(e.Name(), 10, 32); err == nil {
			taken[n] = true
		}
	}
	for taken[now] {
		now++
	}
	was, err = setLimit(pid, unix.RLIMIT_NOFILE, now)
	return was, now, err
}

// tightenMemory leaves the process the private memory that it has and no more (RLIMIT_DATA). Of what it has mapped and not touched yet it may still use.
func tightenMemory(pid int) (was uint64, now uint64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(status)) {
		if kb, ok := strings.CutPrefix(line, "VmData:"); ok {
			if _, err := fmt.Sscanf(kb, "%d kB", &now); err != nil {
				return 0, 0, fmt.Errorf("the line VmData of pid %d is %q, expected kB: %w", pid, kb, err)
			}
			now <<= 10
		}
	}
	was, err = setLimit(pid, unix.RLIMIT_DATA, now)
	return was, now, err
}

func widenDescriptors(pid int, to uint64) error {
	_, err := setLimit(pid, unix.RLIMIT_NOFILE, to)
	return err
}

// setLimit sets the soft limit and leaves the hard one, which nobody could raise again.
func setLimit(pid, which int, soft uint64) (was uint64, err error) {
	var old unix.Rlimit
	if err := unix.Prlimit(pid, which, nil, &old); err != nil {
		return 0, limitError(pid, err)
	}
	if err := unix.Prlimit(pid, which, &unix.Rlimit{Cur: min(soft, old.Max), Max: old.Max}, nil); err != nil {
		return 0, limitError(pid, err)
	}
	return old.Cur, nil
}

func limitError(pid int, err error) error {
	if errors.Is(err, unix.ESRCH) {
		err = os.ErrProcessDone
	}
	return fmt.Errorf("prlimit of pid %d: %w", pid, err)
}

// limitsAvailable tells whether the limits of a child can be set, and how, or why not.
func limitsAvailable() (ok bool, how string) {
	var have unix.Rlimit
	if err := unix.Prlimit(os.Getpid(), unix.RLIMIT_NOFILE, nil, &have); err != nil {
		return false, "prlimit: " + err.Error()
	}
	return true, "prlimit on the live process"
}
