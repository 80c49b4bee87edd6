package main

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"ackproof/bench"
)

func TestBenchStartsMeasuresAndStopsACluster(t *testing.T) {
	code, stdout, stderr := outcome(t, command(t, "bench", "--records", "3000", "--size", "100", "--clients", "2", "--consume", "--json"))
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var r bench.Result
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v in %q", err, stdout)
	}
	if r.Produce.Records != 3000 || r.Produce.Bytes != 300_000 || r.Produce.MBPerSecond <= 0 || r.Produce.Latency == nil || r.Produce.Latency.P50 <= 0 || r.Produce.Latency.P50 > r.Produce.Latency.Max {
		t.Errorf("produce: %+v", r.Produce)
	}
	if r.Consume == nil || r.Consume.Records != 3000 || r.Consume.Bytes != 300_000 {
		t.Errorf("consume: %+v", r.Consume)
	}
	if r.Topic.Brokers != 3 || r.Topic.Replication != 3 || r.Topic.Partitions != 6 {
		t.Errorf("topic: %+v", r.Topic)
	}
	if r.ReadySeconds == nil || *r.ReadySeconds <= 0 || len(r.Servers) != 3 || r.Produce.ServerCPUPerGB == nil {
		t.Errorf("a cluster that was started here has no times or processes: %s", stdout)
	}
	for _, s := range r.Servers {
		if s.PeakRSS < 1<<20 {
			t.Errorf("server %+v, want its memory", s)
		}
	}
	gone(t, pidsOf(r.Servers))
}

func pidsOf(servers []bench.Server) (pids []int) {
	for _, s := range servers {
		pids = append(pids, s.PID)
	}
	return pids
}

func TestBenchOfAGivenCluster(t *testing.T) {
	cluster, bootstrap := startBroker(t, "--local", "1")
	for _, flags := range []string{"--sync", "--acks 1 --consume", "--acks 0", "--topic kept", "--topic kept --consume"} {
		args := append([]string{"bench", "--bootstrap", bootstrap, "--replication", "1", "--records", "50"}, strings.Fields(flags)...)
		code, stdout, stderr := outcome(t, command(t, args...))
		if code != 0 || !strings.Contains(stdout, "50 records") {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", flags, code, stdout, stderr)
		}
	}
	code, _, stderr := outcome(t, command(t, "bench", "--bootstrap", bootstrap, "--replication", "3", "--records", "50"))
	if code != 3 || !strings.Contains(stderr, "replication 3") {
		t.Errorf("three copies on one broker: exit %d, stderr %q; want exit 3 and the reason", code, stderr)
	}
	if err := cluster.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Wait(); err != nil {
		t.Errorf("after %v: %v, want exit 0", syscall.SIGTERM, err)
	}
}

func TestBenchWithoutCluster(t *testing.T) {
	code, stdout, stderr := outcome(t, command(t, "bench", "--bootstrap", "127.0.0.1:1", "--quiet"))
	if code != 3 || stdout != "" || !strings.Contains(stderr, "127.0.0.1:1") {
		t.Errorf("exit %d, stdout %q, stderr %q; want exit 3 and the address", code, stdout, stderr)
	}
}
