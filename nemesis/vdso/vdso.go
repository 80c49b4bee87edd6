// Package vdso makes the wall clock of one running process wrong, without privilege and without the process's help: programs ask the time of the vDSO, a page of
// code that the kernel gives every process, and each process has a copy of its own as soon as somebody writes to it. Its neighbours, the kernel's own time (of
// files and timers) and the monotonic clock stay right; so does whatever asks the kernel past the vDSO. The package sends no signals and knows nothing of nodes or
// faults. Start reading at Attach.
package vdso

import (
	"errors"
	"fmt"
	"time"
)

// Setting is how a clock is wrong.
type Setting struct {
	// Offset from the true time, at most MaxOffset either way.
	Offset time.Duration
	// DriftPPM is how much the clock gains on the true time from the moment of Set on, in millionths; at most MaxDriftPPM either way, so that time goes on. It
	// may last for five hours.
	DriftPPM int64
}

// Bounds of a Setting, within which no arithmetic of the patched clock overflows.
const (
	MaxOffset   = 50 * 365 * 24 * time.Hour
	MaxDriftPPM = 500_000
)

// Plus is what two settings come to together.
func (s Setting) Plus(o Setting) Setting {
	return Setting{s.Offset + o.Offset, s.DriftPPM + o.DriftPPM}
}

func (s Setting) validate() error {
	if s.Offset < -MaxOffset || s.Offset > MaxOffset || s.DriftPPM < -MaxDriftPPM || s.DriftPPM > MaxDriftPPM {
		return fmt.Errorf("set a clock to %+v: expected an offset of at most %v and a drift of at most %d ppm", s, MaxOffset, MaxDriftPPM)
	}
	return nil
}

var (
	// ErrRuns: Attach or Detach found a thread of the process running.
	ErrRuns = errors.New("the process does not stand still")
	// ErrInside: a thread stands in the very instructions that are to be replaced. Let the process run for a moment and try again.
	ErrInside = errors.New("a thread is about to read the clock")
)
