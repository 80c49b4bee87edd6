package bench

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
)

// sound is a configuration without fault.
func sound() Config {
	return Config{Bootstrap: []string{"127.0.0.1:1"}, Partitions: 6, Replication: 3, Records: 1000, Size: 1024, Acks: -1, Clients: 1}
}

func TestValidateNamesTheSenselessValue(t *testing.T) {
	if err := sound().Validate(); err != nil {
		t.Fatalf("a sound configuration is refused: %v", err)
	}
	for want, spoil := range map[string]func(*Config){
		"bootstrap":   func(c *Config) { c.Bootstrap = nil },
		"records 0":   func(c *Config) { c.Records = 0 },
		"warm-up":     func(c *Config) { c.Warmup = -1 },
		"size 0":      func(c *Config) { c.Size = 0 },
		"size 200000": func(c *Config) { c.Size = 2000000 },
		"acks 2":      func(c *Config) { c.Acks = 2 },
		"0 clients":   func(c *Config) { c.Clients = 0 },
		"per client":  func(c *Config) { c.Clients, c.Records = 10, 9 },
		"partitions":  func(c *Config) { c.Partitions = 0 },
		"replication": func(c *Config) { c.Replication = 40000 },
		"in flight":   func(c *Config) { c.Sync, c.Acks = true, 0 },
		"read back":   func(c *Config) { c.Consume, c.Acks = true, 0 },
	} {
		c := sound()
		spoil(&c)
		err := c.Validate()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "expected") {
			t.Errorf("got %v, want an error about %q that says what was expected", err, want)
		}
		if _, ran := Run(t.Context(), c, nil); ran == nil || ran.Error() != err.Error() {
			t.Errorf("Run gives %v, Validate %v", ran, err)
		}
	}
}

func TestNoBrokerIsAnError(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := Run(ctx, sound(), nil); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("got %v, want an error that names the address", err)
	}
}

// A cluster that answers nothing must end the load: franz-go alone would wait for ever.
func TestStallEndsThePhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := attended(t.Context(), func() int64 { return 7 }, func(int64) {}, func(ctx context.Context, running *errgroup.Group) {
			running.Go(func() error { <-ctx.Done(); return context.Cause(ctx) })
		})
		if err == nil || !strings.Contains(err.Error(), "nothing moved for 30s") {
			t.Errorf("got %v, want a stall", err)
		}
	})
}

func TestProgressKeepsThePhaseAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		elapsed, err := attended(t.Context(), func() int64 { return int64(time.Since(start) / stallTimeout) }, func(int64) {}, func(_ context.Context, running *errgroup.Group) {
			running.Go(func() error { time.Sleep(10 * stallTimeout); return nil })
		})
		if err != nil || elapsed != 10*stallTimeout {
			t.Errorf("got %v after %v, want no error after %v", err, elapsed, 10*stallTimeout)
		}
	})
}

func TestFirstFailureStopsTheOthers(t *testing.T) {
	broken := errors.New("broken")
	_, err := attended(t.Context(), func() int64 { return 0 }, func(int64) {}, func(ctx context.Context, running *errgroup.Group) {
		running.Go(func() error { return broken })
		running.Go(func() error { <-ctx.Done(); return context.Cause(ctx) })
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

func TestOwnProcessCanBeMeasured(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("no /proc on this system")
	}
	pid := os.Getpid()
	before, err := cpuOf(pid)
	if err != nil {
		t.Fatal(err)
	}
	for used := ownCPU(); ownCPU() < used+10*clockTick; {
	}
	after, err := cpuOf(pid)
	if err != nil {
		t.Fatal(err)
	}
	if after <= before {
		t.Errorf("CPU time went from %v to %v although a tenth of a second was burnt", before, after)
	}
	if rss, err := PeakRSS(pid); err != nil || rss < 1<<20 {
		t.Errorf("peak memory %d, %v: want at least 1 MiB", rss, err)
	}
	if _, err := cpuOf(1 << 30); err == nil {
		t.Error("a process that does not exist has a CPU time")
	}
}

func TestText(t *testing.T) {
	ready, cost := 1.25, 5.5
	r := Result{
		ReadySeconds: &ready, Topic: Topic{Brokers: 3, Partitions: 6, Replication: 3}, Size: 1024, Acks: "all", Clients: 1,
		Produce: newPhase(1_000_000, 1_024_000_000, 4*time.Second, newHistogram()),
		Servers: []Server{{PID: 11, PeakRSS: 100 << 20}, {PID: 12, PeakRSS: 101 << 20}},
	}
	r.Produce.ServerCPUPerGB, r.Produce.ClientCPUPerGB = &cost, 2
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	want := `3 brokers, 6 partitions, replication 3, values of 1,024 bytes, acks=all, 1 client
ready    1.25 s after the start
produce     256.0 MB/s     250,000 records/s  (1,000,000 records in 4.00 s)
         latency ms  p50 0.00  p90 0.00  p99 0.00  p99.9 0.00  max 0.00
         CPU s per GB  client 2.00  servers 5.50
memory   peak resident  pid 11 100 MiB  pid 12 101 MiB
`
	if d := cmp.Diff(want, text.String()); d != "" {
		t.Errorf("text (-want +got):\n%s", d)
	}
}
