//go:build !linux

package nemesis

import (
	"errors"
	"runtime"
)

var errLimits = errors.New(runtime.GOOS + " has no call that sets the limits of another process")

func tightenDescriptors(int) (was, now uint64, err error) { return 0, 0, errLimits }

func tightenMemory(int) (was, now uint64, err error) { return 0, 0, errLimits }

func widenDescriptors(int, uint64) error { return errLimits }

// limitsAvailable tells whether the limits of a child can be set, and how, or why not.
func limitsAvailable() (ok bool, how string) { return false, errLimits.Error() }
