package process

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"
)

// running is a node whose program is a script that has said that it is ready.
func running(t *testing.T, script string) *Node {
	t.Helper()
	n, err := New(Spec{ID: 1, Dir: t.TempDir(), Argv: []string{"/bin/sh", "-c", script}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Stop() })
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); !strings.Contains(n.LogTail(1), "ready"); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the script is not ready; its log: %q", n.LogTail(5))
		}
	}
	return n
}

func TestANodeThatIsAskedToEnd(t *testing.T) {
	n := running(t, `trap 'echo asked; exit 0' TERM; echo ready; while :; do sleep 0.01; done`)
	if err := n.Terminate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if alive, reason := n.Alive(); alive || reason != nil || n.PID() != 0 {
		t.Errorf("alive: %t, reason: %v, pid %d; expected a node that is down because it was asked to", alive, reason, n.PID())
	}
	if got := n.LogTail(1); got != "asked" {
		t.Errorf("the last line of the log is %q, expected what the script says at its end", got)
	}
	if err := n.Terminate(t.Context()); err != nil {
		t.Errorf("a node that is down: %v", err)
	}
}

func TestANodeThatDoesNotEndWhenItIsAsked(t *testing.T) {
	n := running(t, `trap '' TERM; echo ready; while :; do sleep 0.01; done`)
	pid := n.PID()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.Terminate(over); err == nil || !strings.Contains(err.Error(), "did not end when it was asked to") || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, expected that it had to be killed", err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("pid %d: %v, expected it to be gone", pid, err)
	}
}
