package main

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"ackproof/bench"
)

// startBroker runs a local cluster until the test ends, and gives its bootstrap list.
func startBroker(t *testing.T, args ...string) (cmd *exec.Cmd, bootstrap string) {
	t.Helper()
	cmd = command(t, append([]string{"broker"}, args...)...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill() // only if the test failed before it stopped the cluster
			_ = cmd.Wait()
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("no bootstrap list: %v", err)
	}
	return cmd, strings.TrimSpace(line)
}

// gone waits until none of the processes is left.
func gone(t *testing.T, pids []int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		var left []int
		for _, pid := range pids {
			if syscall.Kill(pid, 0) == nil && !zombie(pid) {
				left = append(left, pid)
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("processes %v are left", left)
		}
	}
}

// zombie: it has ended, but whoever inherited it has not waited for it.
func zombie(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func TestLocalClusterServesAnyKafkaClient(t *testing.T) {
	cmd, bootstrap := startBroker(t, "--local", "3")
	if n := len(list(bootstrap)); n != 3 {
		t.Fatalf("bootstrap list %q, want three addresses", bootstrap)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(list(bootstrap)...), kgo.AllowAutoTopicCreation(), kgo.DefaultProduceTopic("greetings"),
		kgo.ConsumeTopics("greetings"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(t.Context(), kgo.StringRecord("hello")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	var read []string
	for len(read) == 0 {
		fetches := client.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) { read = append(read, string(r.Value)) })
	}
	if len(read) != 1 || read[0] != "hello" {
		t.Errorf("read %q, want hello", read)
	}

	nodes := bench.Children(cmd.Process.Pid)
	if len(nodes) != 3 {
		t.Errorf("nodes %v, want three processes", nodes)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after an interrupt: %v, want exit 0", err)
	}
	gone(t, nodes)
}

// A parent that is killed cannot stop its nodes; they must end by themselves.
func TestNodesDieWithTheirParent(t *testing.T) {
	dir := t.TempDir()
	cmd, _ := startBroker(t, "--local", "2", "--dir", dir)
	nodes := bench.Children(cmd.Process.Pid)
	if len(nodes) != 2 {
		t.Fatalf("nodes %v, want two processes", nodes)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // "signal: killed"
	gone(t, nodes)
}

func TestPortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	code, _, stderr := outcome(t, command(t, "broker", "--set", "node.id=1", "--set", "log.dirs="+t.TempDir(), "--set", "listeners=PLAINTEXT://"+taken.Addr().String()))
	if code != 3 || !strings.Contains(stderr, taken.Addr().String()) {
		t.Errorf("exit %d, stderr %q; want exit 3 and the address", code, stderr)
	}
}
