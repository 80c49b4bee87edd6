//go:build !(linux && amd64)

package vdso

import (
	"errors"
	"runtime"
)

// Clock is the wall clock of one process, in the hands of somebody else. Here there is none.
type Clock struct{}

var errHere = errors.New("the patch of the vDSO is x86-64 code for Linux, and this is " + runtime.GOOS + "/" + runtime.GOARCH)

// Attach takes hold of the clock of a process: not here.
func Attach(int) (*Clock, error) { return nil, errHere }

// Set makes the clock wrong.
func (*Clock) Set(s Setting) error { return errors.Join(s.validate(), errHere) }

// Setting reads back how the clock is wrong.
func (*Clock) Setting() (Setting, error) { return Setting{}, errHere }

// Detach gives the process its true clock back.
func (*Clock) Detach() error { return errHere }

// Close ends the hold.
func (*Clock) Close() error { return nil }

// Available tells whether the clocks of this process's children can be made wrong, and how, or why not.
func Available() (ok bool, how string) { return false, errHere.Error() }
