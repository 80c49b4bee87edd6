package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// asCommand makes the test binary behave as ackproof, for itself and for the nodes that it starts: what is tested is whole processes, with their exit codes and signals.
const asCommand = "ACKPROOF_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// command prepares ackproof with these arguments. Its temporary files go to a folder of the test, which is checked to be empty at the end.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	scratch := t.TempDir()
	t.Cleanup(func() {
		left, err := os.ReadDir(scratch)
		if err != nil || len(left) > 0 {
			t.Errorf("ackproof %s left %v in its temporary folder (%v)", strings.Join(args, " "), left, err)
		}
	})
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asCommand+"=1", "TMPDIR="+scratch)
	return cmd
}

// outcome runs a command to its end.
func outcome(t *testing.T, cmd *exec.Cmd) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func TestWrongUsageSaysWhatWasExpected(t *testing.T) {
	for _, args := range [][]string{
		{"nonsense"},
		{"broker"},
		{"broker", "--local", "0"},
		{"broker", "--local", "3", "--config", "x"},
		{"broker", "--dir", "x", "--set", "node.id=1"},
		{"broker", "--local", "1", "--set", "min.insync.replica=1"},
		{"broker", "--local", "1", "--set", "min.insync.replicas=none"},
		{"broker", "--config", "/nonexistent/node.properties"},
		{"fetch"},
		{"fetch", "nats"},
		{"fetch", "kafka", "--version", "0.8.0"},
		{"scenario", "extra"},
		{"scenario", "show", "nothing"},
		{"scenario", "run", "nothing"},
		{"scenario", "run", "clean", "--system", "nats"},
		{"scenario", "run", "last-replica-power-loss", "--system", "reference"},
		{"scenario", "run", "clean", "--tries", "0"},
		{"scenario", "run", "clean", "--time", "1ms"},
		{"scenario", "run", "clean", "--setting", "timers=mid"},
		{"scenario", "run", "clean", "--backend", "moon"},
		{"scenario", "run", "clean", "--system", "kafka", "--setting", "timers=slow"},
		{"scenario", "run", "unclean-election", "--system", "kafka", "--bootstrap", "127.0.0.1:1"},
		{"bench", "extra"},
		{"bench", "--acks", "two"},
		{"bench", "--size", "0"},
		{"bench", "--size", "2MiB"},
		{"bench", "--size", "big"},
		{"bench", "--records", "-1"},
		{"bench", "--clients", "0"},
		{"bench", "--sync", "--acks", "0"},
		{"bench", "--server-pids", "1"},
		{"bench", "--bootstrap", ""},
	} {
		code, stdout, stderr := outcome(t, command(t, args...))
		if code != 254 || stdout != "" || !strings.HasPrefix(stderr, "ackproof: ") {
			t.Errorf("ackproof %v: exit %d, stdout %q, stderr %q; want exit 254 and a line on stderr", args, code, stdout, stderr)
		}
	}
}
