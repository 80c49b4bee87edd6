package node

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ackproof/broker/fault"
)

func TestLoadConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.properties")
	text := "# a comment\nnode.id=2\nlisteners = PLAINTEXT://127.0.0.1:9094\ncontroller.quorum.voters=1@a:1,2@b:2\nlog.dirs=/x/${y}\nreplica.lag.time.max.ms: 4000\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := LoadConfig(path, []string{"replica.lag.time.max.ms=5000", "log.flush.interval.messages=1"})
	if err != nil {
		t.Fatal(err)
	}
	if c.NodeID != 2 || c.Listen != "127.0.0.1:9094" || c.Voters[1] != "a:1" || c.Voters[2] != "b:2" || c.LogDir != "/x/${y}" || c.LagTime != 5*time.Second || !c.FlushEach {
		t.Errorf("%+v", c)
	}
	if c.SessionTimeout != 9*time.Second || c.MaxMessageBytes != 1048588 || c.AllowSingleCopy || c.MinISR != 1 {
		t.Errorf("defaults: %+v", c)
	}
}

func TestLoadConfigErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.properties")
	if err := os.WriteFile(path, []byte("node.id=1\n\nlog.dirs=/x\nreplica.lag.max.ms=3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	with := func(sets ...string) []string { return append([]string{"node.id=1", "log.dirs=/x"}, sets...) }
	for name, tc := range map[string]struct {
		path string
		sets []string
		want []string
	}{
		"no file":            {"/none", nil, []string{"/none"}},
		"nothing set":        {"", nil, []string{"node.id is missing", "log.dirs is missing"}},
		"unknown key":        {path, nil, []string{path + ":4", `"replica.lag.max.ms"`, "replica.lag.time.max.ms"}},
		"unknown override":   {"", with("mim.insync.replicas=2"), []string{"override mim.insync.replicas", "min.insync.replicas"}},
		"no value":           {"", with("min.insync.replicas"), []string{"expected key=value"}},
		"no number":          {"", with("min.insync.replicas=two"), []string{"min.insync.replicas", `"two"`, "expected a number"}},
		"too small":          {"", with("num.partitions=0"), []string{"num.partitions", "from 1"}},
		"negative time":      {"", with("replica.lag.time.max.ms=-1"), []string{"expected milliseconds"}},
		"no boolean":         {"", with("unclean.leader.election.enable=yes"), []string{"expected true or false"}},
		"TLS":                {"", with("listeners=SSL://:9093"), []string{"SSL", "PLAINTEXT"}},
		"two listeners":      {"", with("listeners=a:1,b:2"), []string{"expected one listener"}},
		"no port":            {"", with("listeners=localhost"), []string{"host:port"}},
		"large port":         {"", with("listeners=localhost:70000"), []string{"70000"}},
		"voters without id":  {"", with("controller.quorum.voters=a:1"), []string{"id@host:port"}},
		"voter twice":        {"", with("controller.quorum.voters=1@a:1,1@b:1"), []string{"id 1 stands there twice"}},
		"not a voter":        {"", with("controller.quorum.voters=2@a:1"), []string{"node.id = 1 is not among"}},
		"two folders":        {"", with("log.dirs=/a,/b"), []string{"expected one folder"}},
		"short session":      {"", with("broker.session.timeout.ms=1000"), []string{"broker.session.timeout.ms = 1000", "2000"}},
		"short lag":          {"", with("replica.lag.time.max.ms=500"), []string{"replica.fetch.wait.max.ms = 500"}},
		"short election":     {"", with("controller.quorum.election.timeout.ms=100"), []string{"ackproof.raft.tick.ms"}},
		"open profile":       {"", with("ackproof.pprof.listen=0.0.0.0:6060"), []string{"loopback"}},
		"unknown store":      {"", with("log.store=log"), []string{"log.store", `"log"`, "segment or wal"}},
		"small segment":      {"", with("log.segment.bytes=100"), []string{"log.segment.bytes", "256"}},
		"large segment":      {"", with("log.segment.bytes=2147483648"), []string{"log.segment.bytes", "2147483647"}},
		"level":              {"", with("ackproof.log.level=loud"), []string{"ackproof.log.level"}},
		"several at a time":  {"", with("num.partitions=x", "default.replication.factor=y"), []string{"num.partitions", "default.replication.factor"}},
		"file value of none": {"", with("request.timeout.ms="), []string{"request.timeout.ms"}},
	} {
		_, err := LoadConfig(tc.path, tc.sets)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; should say %q", name, err, want)
			}
		}
	}
}

func TestEveryPropertyHasADoc(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Properties() {
		if p.Doc == "" || seen[p.Name] {
			t.Errorf("%s: no text, or twice", p.Name)
		}
		seen[p.Name] = true
	}
}

// TestOpenErrors: what cannot be had is named, with its key.
func TestOpenErrors(t *testing.T) {
	c := newCluster(t, 1)
	open := func(sets ...string) string {
		cfg, err := LoadConfig("", append([]string{"node.id=1", "listeners=127.0.0.1:0", "log.dirs=" + t.TempDir()}, sets...))
		if err != nil {
			t.Fatal(err)
		}
		n, err := Open(cfg, slog.New(slog.DiscardHandler))
		if err == nil {
			n.listener.Close()
			return "no error"
		}
		return err.Error()
	}
	type refusal struct {
		set  string
		want []string
	}
	refusals := map[string]refusal{
		"port in use":    {"listeners=" + c.addrs[0], []string{"listeners", c.addrs[0], "in use"}},
		"folder in use":  {"log.dirs=" + c.dirs[0], []string{"locked"}},
		"unknown bug":    {"ackproof.plant=B99", []string{"ackproof.plant", "B99"}},
		"not a listener": {"ackproof.listener.fd=60000", []string{"ackproof.listener.fd = 60000"}},
	}
	if !fault.Built {
		refusals["planted bug"] = refusal{"ackproof.plant=B01", []string{"ackproof.plant", "failpoints"}}
	}
	for name, tc := range refusals {
		got := open(tc.set)
		for _, want := range tc.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %s; should say %q", name, got, want)
			}
		}
	}
	c.halt(0)
	for set, want := range map[string]string{"ackproof.cluster.id=another": `cluster "ackproof"`, "log.store=wal": "log.store = segment"} {
		if got := open("log.dirs="+c.dirs[0], set); !strings.Contains(got, want) {
			t.Errorf("a folder of something else than %s: %s; should say %q", set, got, want)
		}
	}
}
