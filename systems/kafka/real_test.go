package kafka

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ackproof/systems"
	"ackproof/systems/kafka/install"
)

// realEnv asks for the tests that run Kafka itself; its value is the version. They take half a minute and some processor time.
const realEnv = "ACKPROOF_KAFKA"

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestLifeOfARealCluster(t *testing.T) {
	version := os.Getenv(realEnv)
	if version == "" {
		t.Skipf("set %s=%s to run Kafka itself", realEnv, install.DefaultVersion)
	}
	if _, err := install.Find("", version); err != nil {
		t.Skip(err)
	}
	o := with(options(t.TempDir()), "version", version, "controllers", "1")
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		for _, n := range c.nodes {
			if n.PID() != 0 {
				t.Errorf("%s survives the end", n.Name())
			}
		}
	})
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.TopicID() == ([16]byte{}) {
		t.Error("the topic has no id")
	}
	r := roles(t, c, "full in-sync sets and the controller", func(r systems.Roles) bool { return r.Controller == 4 && led(r, 0) })
	dead := c.nodes[r.Partitions[0].Leader-1]
	if err := dead.Kill(); err != nil {
		t.Fatal(err)
	}
	roles(t, c, "the others lead", func(r systems.Roles) bool { return led(r, dead.ID()) })
	if err := dead.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	roles(t, c, "the dead one is back in sync", func(r systems.Roles) bool { return led(r, 0) })
}

// led: every partition is led, and all but one are in its in-sync set, 0 for all.
func led(r systems.Roles, without int) bool {
	return len(r.Partitions) > 0 && !slices.ContainsFunc(r.Partitions, func(p systems.PartitionRoles) bool {
		want := len(p.Replicas)
		if without != 0 {
			want--
		}
		return p.Leader == 0 || len(p.ISR) != want || slices.Contains(p.ISR, without)
	})
}

func roles(t *testing.T, c *Cluster, what string, ok func(systems.Roles) bool) systems.Roles {
	t.Helper()
	var last systems.Roles
	var err error
	for end := time.Now().Add(startBound); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if last, err = c.Roles(t.Context()); err == nil && ok(last) {
			return last
		}
	}
	t.Fatalf("never: %s; the last roles are %+v, %v", what, last, err)
	return last
}
