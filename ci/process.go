package ci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"

	"ackproof/model"
)

// grace is how long a process may take to heal what it hurt and to stop its nodes after it was asked to end.
const grace = 30 * time.Second

// process runs `ackproof test` in a process of its own until it ends or limit has passed.
type process struct {
	binary         string
	args           []string
	stdout, stderr io.Writer
	limit          time.Duration
}

// errOutOfTime: the process was ended because its time was over.
var errOutOfTime = errors.New("its time was over")

// run gives the exit code; a process that died of a signal is a crash. The error says why there is no such code: it could not be started, or it had to be ended.
func (p process) run(ctx context.Context) (code int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.limit, errOutOfTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.binary, p.args...)
	cmd.Stdout, cmd.Stderr = p.stdout, p.stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	// A process group of its own: a key on the terminal reaches the gate, which asks the run to end.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Run()
	if cmd.ProcessState == nil {
		return model.ExitInfrastructure, fmt.Errorf("start %s: %w", p.binary, err)
	}
	code = cmd.ProcessState.ExitCode()
	if code != model.ExitViolated && ctx.Err() != nil { // a violation that was found all the same outranks it
		return model.ExitInfrastructure, context.Cause(ctx)
	}
	if code < 0 {
		return model.ExitCrash, fmt.Errorf("the process of the run ended by itself: %v", cmd.ProcessState)
	}
	return code, nil
}
