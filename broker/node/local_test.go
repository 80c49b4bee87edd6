package node

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestRunLocal runs brokers as processes: this test's binary is the broker's (TestMain).
func TestRunLocal(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, in := io.Pipe()
	done := make(chan error, 1)
	said, notes := io.Pipe()
	go func() {
		done <- RunLocal(ctx, 3, "", []string{"num.partitions=2"}, os.Args[0], in, notes)
		in.Close()
		notes.Close()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("no bootstrap list: %v; %v", err, <-done)
	}
	brokers := strings.Split(strings.TrimSpace(line), ",")
	if len(brokers) != 3 {
		t.Fatalf("bootstrap list %q", line)
	}
	// Ready means ready: a topic is made and written to without ado.
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.AllowAutoTopicCreation())
	if err != nil {
		t.Fatal(err)
	}
	if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "auto", Value: []byte("x")}).FirstErr(); err != nil {
		t.Error(err)
	}
	cl.Close()

	// A broker that is killed comes back.
	if runtime.GOOS == "linux" { // where a process can list its children
		killAChild(t)
		line, err = bufio.NewReader(said).ReadString('\n')
		if err != nil || !strings.Contains(line, "started again") {
			t.Errorf("after a kill: %q, %v", line, err)
		}
		for _, at := range brokers {
			await(t, at+" knows all brokers again", func() bool {
				n, err := liveBrokers(ctx, at)
				return err == nil && n == 3
			})
		}
	}
	stop()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("RunLocal does not return")
	}
	for _, at := range brokers {
		if n, err := liveBrokers(t.Context(), at); err == nil {
			t.Errorf("%s still answers, it knows %d brokers", at, n)
		}
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "ackproof-local-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestRunLocalSaysWhy: when a broker does not start, the error has its last words.
func TestRunLocalSaysWhy(t *testing.T) {
	err := RunLocal(t.Context(), 1, t.TempDir(), []string{"no.such.key=1"}, os.Args[0], io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "no.such.key") {
		t.Errorf("%v; should name the key", err)
	}
}

// killAChild kills one of the processes that this one has started.
func killAChild(t *testing.T) {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, field := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("no child process found")
}
