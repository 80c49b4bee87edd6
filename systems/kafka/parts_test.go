package kafka

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ackproof/model"
	"ackproof/nemesis"
	"ackproof/systems"
	"ackproof/systems/kafka/install"
	"ackproof/systems/process"
)

func options(dir string) systems.Options {
	return systems.Options{Dir: dir, Nodes: 3, Topic: "ledger", Partitions: 4, Replication: 3, MinISR: 2, Acks: -1, Idempotent: true}
}

// made is a cluster of a version that need not be there; nothing of it runs.
func made(t *testing.T, version string, o systems.Options) *Cluster {
	t.Helper()
	set, err := read(o.Settings)
	if err != nil {
		t.Fatal(err)
	}
	o.Host, o.Note = process.NewLoopback(), func(string) {}
	c := &Cluster{o: o, set: set, in: install.Installation{Version: version}}
	if c.keepELR, err = set.elr(c.in); err != nil {
		t.Fatal(err)
	}
	if err := c.makeNodes(); err != nil {
		t.Fatal(err)
	}
	c.askAll()
	return c
}

func with(o systems.Options, settings ...string) systems.Options {
	o.Settings = map[string]string{}
	for i := 0; i < len(settings); i += 2 {
		o.Settings[settings[i]] = settings[i+1]
	}
	return o
}

func TestOptionsAndSettingsThatMakeNoSense(t *testing.T) {
	for _, spoil := range []func(*systems.Options){
		func(o *systems.Options) { o.Dir = "" },
		func(o *systems.Options) { o.Nodes = 0 },
		func(o *systems.Options) { o.Topic = "" },
		func(o *systems.Options) { o.Partitions = 0 },
		func(o *systems.Options) { o.Replication = 4 },
		func(o *systems.Options) { o.MinISR = 4 },
		func(o *systems.Options) { o.Acks = 2 },
		func(o *systems.Options) { o.Plant = "B01" },
		func(o *systems.Options) { *o = with(*o, "timers", "slow") },
		func(o *systems.Options) { *o = with(*o, "controllers", "2") },
		func(o *systems.Options) { *o = with(*o, "elr", "maybe") },
		func(o *systems.Options) { *o = with(*o, "min-insync-in", "controllers") },
		func(o *systems.Options) { *o = with(*o, "colour", "red") },
		func(o *systems.Options) { *o = with(*o, "version", "4.4.0", "path", "/opt/kafka") },
		func(o *systems.Options) { *o = with(*o, "version", "0.8.0") },
	} {
		o := options(t.TempDir())
		spoil(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), "expected") {
			t.Errorf("%+v gives %v, expected an error that says what was expected", o, err)
		}
	}
	if _, err := (Settings{ELR: "on"}).elr(install.Installation{Version: "3.9.1"}); err == nil {
		t.Error("Kafka 3.9.1 is to keep eligible leader replicas, expected an error")
	}
}

func TestNodesAndTheirRoles(t *testing.T) {
	c := made(t, "4.4.0", with(options(t.TempDir()), "controllers", "1"))
	if len(c.nodes) != 4 || len(c.asked.Nodes) != 3 || len(c.Nodes()) != 4 {
		t.Fatalf("%d nodes, %d of them asked; expected three brokers and a controller", len(c.nodes), len(c.asked.Nodes))
	}
	for i, n := range c.Nodes() {
		if systems.Serves(n) != (i < 3) {
			t.Errorf("%s serves clients: %t", n.Name(), systems.Serves(n))
		}
	}
	broker, controller := strings.Join(c.properties(c.nodes[0]), "\n"), strings.Join(c.properties(c.nodes[3]), "\n")
	voters := "controller.quorum.voters=4@" + c.nodes[3].control
	for _, want := range []string{"process.roles=broker\n", voters, "advertised.listeners=PLAINTEXT://" + c.nodes[0].client, "broker.session.timeout.ms=4000", "auto.leader.rebalance.enable=false"} {
		if !strings.Contains(broker, want) {
			t.Errorf("the broker's file has no %q:\n%s", want, broker)
		}
	}
	for _, want := range []string{"process.roles=controller\n", voters, "listeners=CONTROLLER://" + c.nodes[3].control, "node.id=4"} {
		if !strings.Contains(controller, want) {
			t.Errorf("the controller's file has no %q:\n%s", want, controller)
		}
	}
	if strings.Contains(controller, "advertised.listeners") {
		t.Error("the controller advertises a listener for clients")
	}

	c = made(t, "3.9.1", with(options(t.TempDir()), "timers", "default"))
	text := strings.Join(c.properties(c.nodes[1]), "\n")
	for _, want := range []string{"process.roles=broker,controller", "broker.session.timeout.ms=9000", "1@" + c.nodes[0].control + ",2@" + c.nodes[1].control + ",3@" + c.nodes[2].control} {
		if !strings.Contains(text, want) {
			t.Errorf("the file has no %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "group.consumer") || strings.Contains(text, "share.") {
		t.Error("Kafka 3.9.1 is given settings of 4.0")
	}
}

// Where min.insync.replicas is written decides what holds, and so the contract.
func TestContractAndWarnings(t *testing.T) {
	for _, c := range []struct {
		name, version string
		change        func(*systems.Options)
		settings      []string
		minISR        int
		warned        string // a part of one of the warnings, "" for none
	}{
		{name: "set for the topic", version: "4.4.0", settings: []string{"controllers", "3"}, minISR: 2},
		{name: "in the files of the brokers, which the controller ignores", version: "4.4.0", settings: []string{"controllers", "1", "min-insync-in", "brokers"}, minISR: 1, warned: "the file of the controllers decides"},
		{name: "the same without ELR", version: "4.4.0", settings: []string{"controllers", "1", "min-insync-in", "brokers", "elr", "off"}, minISR: 2, warned: "KIP-966"},
		{name: "the same before ELR", version: "3.9.1", settings: []string{"controllers", "1", "min-insync-in", "brokers"}, minISR: 2, warned: "KIP-966"},
		{name: "every node is a controller", version: "4.4.0", settings: []string{"min-insync-in", "brokers"}, minISR: 2, warned: "every node is a controller"},
		{name: "one copy is enough", version: "4.4.0", change: func(o *systems.Options) { o.MinISR = 1 }, settings: []string{"controllers", "1"}, minISR: 1, warned: "what nobody else has"},
		{name: "acks=1", version: "4.4.0", change: func(o *systems.Options) { o.Acks, o.Idempotent = 1, false }, settings: []string{"controllers", "1"}, minISR: 2, warned: "does not count"},
		{name: "unclean", version: "4.4.0", change: func(o *systems.Options) { o.Unclean = true }, settings: []string{"controllers", "1"}, minISR: 2, warned: "unclean"},
		{name: "all copies", version: "4.4.0", change: func(o *systems.Options) { o.MinISR = 3 }, settings: []string{"controllers", "1"}, minISR: 3, warned: "stops all writes"},
		{name: "flushed, without ELR", version: "3.9.1", change: func(o *systems.Options) { o.FlushEach = true }, settings: []string{"controllers", "1"}, minISR: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := with(options(t.TempDir()), c.settings...)
			if c.change != nil {
				c.change(&o)
			}
			k := made(t, c.version, o)
			contract, warnings := k.Contract(), k.Lint()
			if contract.MinISR != c.minISR || contract.System != "kafka" || !contract.Dense || contract.Validate() != nil {
				t.Errorf("contract %+v, expected min.insync.replicas %d", contract, c.minISR)
			}
			if _, ok := contract.Promise(model.NoLoss); !ok {
				t.Error("the contract says nothing of loss")
			}
			switch {
			case c.warned == "" && len(warnings) > 0:
				t.Errorf("warnings %q, expected none", warnings)
			case c.warned != "" && !slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, c.warned) }):
				t.Errorf("warnings %q, expected one with %q", warnings, c.warned)
			}
		})
	}
}

func TestFaultsThatWouldShowNothing(t *testing.T) {
	c := made(t, "4.4.0", options(t.TempDir()))
	for _, k := range nemesis.AllKinds() {
		spared := slices.Contains([]nemesis.Kind{nemesis.DiskError, nemesis.FlushError, nemesis.DiskFull, nemesis.ErrorAtCall}, k)
		if why := c.Spare(string(k)); (why != "") != spared {
			t.Errorf("%s: %q, expected a reason: %t", k, why, spared)
		}
	}
}

func TestTopicSettings(t *testing.T) {
	o := options(t.TempDir())
	o.FlushEach = true
	found := map[string]string{}
	for _, s := range made(t, "4.4.0", o).topicSettings() {
		found[s.Name] = s.Value
	}
	if found[minISR] != "2" || found[flushEach] != "1" || found["unclean.leader.election.enable"] != "false" {
		t.Errorf("settings of the topic %v", found)
	}
	for _, s := range made(t, "4.4.0", with(options(t.TempDir()), "min-insync-in", "brokers")).topicSettings() {
		if s.Name == minISR || s.Name == flushEach {
			t.Errorf("the topic has %s although nobody asked for it", s.Name)
		}
	}
}

func TestFeaturesByVersion(t *testing.T) {
	for _, c := range []struct{ version, elr, name string }{{"4.4.0", "", "elr"}, {"4.4.0", "off", "no-elr"}, {"4.0.0", "", "no-elr"}, {"4.0.0", "on", "elr"}, {"3.9.1", "", "plain"}} {
		o := options(t.TempDir())
		if c.elr != "" {
			o = with(o, "elr", c.elr)
		}
		if _, name := made(t, c.version, o).features(); name != c.name {
			t.Errorf("Kafka %s with elr %q is formatted as %s, expected %s", c.version, c.elr, name, c.name)
		}
	}
}

func TestIDsAreAsKafkaDrawsThem(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := randomID()
		if raw, err := base64.RawURLEncoding.DecodeString(id); err != nil || len(raw) != 16 || id[0] == '-' || seen[id] {
			t.Fatalf("id %q: %v", id, err)
		}
		seen[id] = true
	}
}

// transparent is a network whose links can be looked at.
type transparent struct {
	systems.Direct
	links map[[2]int]int
}

func (*transparent) Transparent() bool { return true }
func (n *transparent) NodeLink(from, to int, target string) (string, error) {
	n.links[[2]int{from, to}]++
	return target, nil
}

func TestWhoDialsWhom(t *testing.T) {
	net := &transparent{links: map[[2]int]int{}}
	o := with(options(t.TempDir()), "controllers", "1")
	o.Network = net
	c := made(t, "4.4.0", o)
	if err := c.join(); err != nil {
		t.Fatal(err)
	}
	if net.links[[2]int{1, 2}] != 1 || net.links[[2]int{1, 4}] != 1 || net.links[[2]int{4, 1}] != 0 {
		t.Errorf("links %v, expected brokers to dial brokers and the controller, which dials nobody", net.links)
	}

	mesh := nemesis.NewMesh()
	defer mesh.Close()
	o = options(t.TempDir())
	o.Network = mesh
	c = made(t, "4.4.0", o)
	if err := c.join(); err != nil {
		t.Fatal(err)
	}
	if d := mesh.Dialers(nemesis.NodeParty(1)); len(d) > 0 {
		t.Errorf("%v dial n1 through proxies of which Kafka knows nothing", d)
	}
}

func TestTheFormattedFolderIsCopiedAndNamed(t *testing.T) {
	c := made(t, "3.9.1", options(t.TempDir()))
	c.in.Lasting = t.TempDir()
	template := filepath.Join(c.in.Lasting, "formatted-plain")
	write(t, filepath.Join(template, "__cluster_metadata-0", "00000000000000000000-0000000000.checkpoint"), "levels")
	if err := c.format(t.Context()); err != nil {
		t.Fatal(err)
	}
	cluster := ""
	for i, n := range c.nodes {
		meta := readFile(t, filepath.Join(n.logs, metaFile))
		if !strings.Contains(meta, "node.id="+string(rune('1'+i))+"\n") || !strings.Contains(meta, "version=1\n") {
			t.Errorf("%s: %q", n.Name(), meta)
		}
		_, rest, _ := strings.Cut(meta, "cluster.id=")
		id, _, _ := strings.Cut(rest, "\n")
		if cluster != "" && cluster != id {
			t.Errorf("%s is of the cluster %s, the others of %s", n.Name(), id, cluster)
		}
		cluster = id
		if readFile(t, filepath.Join(n.logs, "__cluster_metadata-0", "00000000000000000000-0000000000.checkpoint")) != "levels" {
			t.Errorf("%s has not what the tool wrote", n.Name())
		}
	}
}

func TestANewDiskIsFormattedWithAnIDOfItsOwn(t *testing.T) {
	c := made(t, "3.9.1", with(options(t.TempDir()), "controllers", "1"))
	c.in.Lasting = t.TempDir()
	write(t, filepath.Join(c.in.Lasting, "formatted-plain", "bootstrap.checkpoint"), "levels")
	broker, controller := c.nodes[0], c.nodes[len(c.nodes)-1]
	if err := c.Format(broker); err == nil {
		t.Error("a disk was formatted for a cluster that has no id yet")
	}
	if err := c.format(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := strings.Split(readFile(t, filepath.Join(broker.logs, metaFile)), "\n")
	if err := os.RemoveAll(broker.logs); err != nil {
		t.Fatal(err)
	}
	if err := c.Format(broker); err != nil {
		t.Fatal(err)
	}
	after := strings.Split(readFile(t, filepath.Join(broker.logs, metaFile)), "\n")
	for i, line := range before {
		if same := line == after[i]; same == strings.HasPrefix(line, "directory.id=") {
			t.Errorf("%q, was %q; expected another directory.id and nothing else", after[i], line)
		}
	}
	if readFile(t, filepath.Join(broker.logs, "bootstrap.checkpoint")) != "levels" {
		t.Error("the new disk has not what the tool wrote")
	}
	if err := c.Format(controller); err == nil || !strings.Contains(err.Error(), "vote twice") {
		t.Errorf("error %v, expected that a controller is refused", err)
	}
}
