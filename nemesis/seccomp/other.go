//go:build !(linux && (amd64 || arm64))

package seccomp

import (
	"errors"
	"os/exec"
	"runtime"
)

// Supervisor decides over the calls of one process. Here there is none.
type Supervisor struct{}

var errHere = errors.New("seccomp is Linux's, and its numbers are known for amd64 and arm64; this is " + runtime.GOOS + "/" + runtime.GOARCH)

// Shim must come first in main of every program that calls Start.
func Shim() {}

// Start starts the command under a supervisor: not here.
func Start(*exec.Cmd, Options, func(*exec.Cmd) error) (*Supervisor, error) { return nil, errHere }

// Set sets a trap.
func (*Supervisor) Set(Trap) {}

// Unset takes the trap away.
func (*Supervisor) Unset() {}

// Seen tells how many calls the trap counted so far, and which one it fired at, if it did.
func (*Supervisor) Seen() (count int, hit *Hit) { return 0, nil }

// Done is closed when the process is gone.
func (*Supervisor) Done() <-chan struct{} { return nil }

// Available tells whether Start works here, and how, or why not.
func Available() (ok bool, how string) { return false, errHere.Error() }
