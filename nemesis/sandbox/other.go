//go:build !linux

package sandbox

import (
	"errors"
	"io"
	"os/exec"
	"runtime"

	"ackproof/nemesis"
)

var errNotHere = errors.New("make the sandbox: " + runtime.GOOS + " has no namespaces of users, networks and processes, expected Linux")

// Command says that there is no sandbox here.
func Command(...string) (*exec.Cmd, io.Closer, error) { return nil, nil, errNotHere }

// Explain gives the error as it is.
func Explain(err error) error { return err }

// Inside is false: there is no sandbox here.
func Inside() bool { return false }

// Enter says that there is no sandbox here.
func Enter() (inside bool, code int, err error) { return false, 0, errNotHere }

// New says that there is no sandbox here.
func New() (nemesis.Backend, error) { return nil, errNotHere }
