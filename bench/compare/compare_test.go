package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	tab := table{progress: io.Discard}
	speed := measure{name: "speed", unit: "MB/s", goal: 2.2}
	for _, v := range []float64{100, 300, 120, 110} {
		tab.add(speed, kafka, v)
		tab.add(speed, ours, 3*v)
	}
	cost := measure{name: "cost", unit: "s/GB", less: true, goal: 0.35, decimal: 2}
	tab.add(cost, ours, 2.5)
	tab.add(cost, kafka, 5)
	start := measure{name: "start", unit: "s", less: true, most: 0.5, decimal: 2}
	tab.add(start, ours, 0.4)
	missing := measure{name: "missing", unit: "ms", less: true, goal: 0.1}
	tab.add(missing, kafka, 7)
	tab.add(measure{name: "plain", unit: "ms"}, ours, 1)
	want := `| measure | Kafka | ackproof | ratio | goal |
|---|---|---|---|---|
| speed, MB/s | 100 / **115** / 300 | 300 / **345** / 900 | 3.00 × | ≥ 2.2 ×: met |
| cost, s/GB | 5.00 | 2.50 | 0.50 × | ≤ 0.35 ×: **missed** |
| start, s | – | 0.40 | – | ≤ 0.50 s: met |
| missing, ms | 7 | – | – | ≤ 0.1 ×: not known |
| plain, ms | – | 1 | – |  |
`
	if d := cmp.Diff(want, tab.markdown()); d != "" {
		t.Errorf("table (-want +got):\n%s", d)
	}
}

// Both sides get their turn first, and one that fails does not end the other.
func TestAlternate(t *testing.T) {
	var order []string
	broken := errors.New("broken")
	err := alternate(t.Context(), 3, func(round int, s side) error {
		order = append(order, fmt.Sprint(round, " ", s))
		if round == 1 && s == kafka {
			return broken
		}
		return nil
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	if d := cmp.Diff([]string{"0 Kafka", "0 ackproof", "1 ackproof", "1 Kafka", "2 ackproof"}, order); d != "" {
		t.Errorf("order (-want +got):\n%s", d)
	}
}

func TestHops(t *testing.T) {
	shares, err := attribute(strings.NewReader(`File: ackproof
Type: cpu
-----------+-------------------------------------------------------
      40ms   hash/crc32.castagnoliSSE42Triple
             hash/crc32.Checksum (inline)
             ackproof/broker/node.(*Node).producePartition
-----------+-------------------------------------------------------
     100ms   syscall.pwrite
             ackproof/broker/storage/segment.(*Log).Append
             ackproof/broker/node.(*fetcher).take
-----------+-------------------------------------------------------
      20ms   runtime.findRunnable
-----------+-------------------------------------------------------
      40ms   ackproof/broker/core/partition.(*Replica).Step
`))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for i, h := range hops {
		if shares[i] > 0 {
			got[h.name] = shares[i]
		}
	}
	want := map[string]float64{"leader: checksum": 0.2, "followers: write to the log": 0.5, hops[len(hops)-1].name: 0.1, hops[len(hops)-2].name: 0.2}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("shares (-want +got):\n%s", d)
	}
	if _, err := attribute(strings.NewReader("File: ackproof\n")); err == nil {
		t.Error("no samples were taken for a profile")
	}
}

func TestListenerIsFound(t *testing.T) {
	if _, err := os.Stat("/proc/net/tcp"); err != nil {
		t.Skip("no /proc on this system")
	}
	for _, at := range []string{"127.0.0.1:0", ":0"} { // ":0" listens for IPv6 too, like a JVM
		l, err := net.Listen("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(l.Addr().String())
		if pid, err := listenerOf("127.0.0.1:" + port); err != nil || pid != os.Getpid() {
			t.Errorf("listener of %s: pid %d, %v; this is pid %d", l.Addr(), pid, err, os.Getpid())
		}
		l.Close()
		if pid, err := listenerOf("127.0.0.1:" + port); err == nil {
			t.Errorf("pid %d listens on a port that is closed", pid)
		}
	}
	if _, err := listenerOf("nowhere"); err == nil {
		t.Error("an address without a port has a listener")
	}
}

func TestGone(t *testing.T) {
	cmd := exec.Command("cat") // runs until its input ends
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if gone(cmd.Process.Pid) {
		t.Error("a process that runs is gone")
	}
	in.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := until(ctx, func(context.Context) error { // nobody has waited for it yet
		if !gone(cmd.Process.Pid) {
			return errors.New("still there")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A cluster that is started by commands: the last line says where it is, the session is told, and whatever goes wrong the second command has been run.
func TestScripted(t *testing.T) {
	dir := t.TempDir()
	down := "echo down >>" + filepath.Join(dir, "down")
	s := &scripted{up: `echo formatting; echo "127.0.0.1:1,127.0.0.1:2,$ACKPROOF_SESSION_MS,$ACKPROOF_HEARTBEAT_MS"; sleep 100 >/dev/null & echo $! >` + filepath.Join(dir, "pid"), down: down, log: io.Discard}
	t.Cleanup(func() { exec.Command("sh", "-c", "kill $(cat "+filepath.Join(dir, "pid")+")").Run() })
	cl, err := s.start(t.Context(), 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"127.0.0.1:1", "127.0.0.1:2", "2000", "500"}, cl.bootstrap); d != "" {
		t.Errorf("bootstrap (-want +got):\n%s", d)
	}
	if err := cl.stop(); err != nil {
		t.Error(err)
	}
	for up, want := range map[string]string{"exit 3": "exit status 3", "true": "last line"} {
		if _, err := (&scripted{up: up, down: down, log: io.Discard}).start(t.Context(), 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", up, err, want)
		}
	}
	if raw, _ := os.ReadFile(filepath.Join(dir, "down")); string(raw) != "down\ndown\ndown\n" {
		t.Errorf("the command that ends the cluster wrote %q, expected three lines", raw)
	}
	if _, err := (&running{}).start(t.Context(), time.Second); !errors.Is(err, errRuns) {
		t.Errorf("a cluster that runs already was started: %v", err)
	}
}

func TestOptions(t *testing.T) {
	sound := options{up: "u", down: "d", rounds: 1, scale: 1, limit: time.Second}
	if err := sound.check(0); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*options){
		"one of --kafka-up": func(o *options) { o.kafka = []string{"a:1"} },
		"go together":       func(o *options) { o.down = "" },
		"at least one":      func(o *options) { o.rounds = 0 },
		"--only x":          func(o *options) { o.only = []string{"x"} },
	} {
		o := sound
		spoil(&o)
		if err := o.check(0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	if err := sound.check(1); err == nil {
		t.Error("an argument was accepted")
	}
}
