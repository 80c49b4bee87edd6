package kafka

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/systems"
	"ackproof/systems/kafkaproto"
	"ackproof/systems/reference"
)

// A cluster that runs already is one of any broker that speaks the protocol: here, of the reference broker, which needs no JVM.
func TestAClusterThatRunsAlreadyIsLeftAsItWas(t *testing.T) {
	executable := filepath.Join(t.TempDir(), "ackproof")
	if out, err := exec.Command("go", "build", "-o", executable, "ackproof/cmd/ackproof").CombinedOutput(); err != nil {
		t.Fatalf("build ackproof: %v\n%s", err, out)
	}
	host := options(t.TempDir())
	host.Topic = "of-somebody-else"
	cluster, err := reference.New(host, executable)
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Stop()
	if err := cluster.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := cluster.Nodes()[0]

	o := with(options(t.TempDir()), "bootstrap", "127.0.0.1:1,"+first.Addr())
	if _, err := Open(systems.Options{Nodes: 5, Settings: o.Settings}); err == nil || !strings.Contains(err.Error(), "expected --nodes 3") {
		t.Errorf("error %v, expected the number of brokers", err)
	}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Nodes()) != 3 || s.Nodes()[0].Addr() != first.Addr() || !systems.IsUnlinked(s) {
		t.Errorf("nodes %v, expected the three of the cluster, past the network of the run", s.Nodes())
	}
	if timers := s.Timers(); timers.Session <= 0 || timers.Lag <= 0 || timers.Start <= 0 {
		t.Errorf("timers %+v", timers)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Roles(t.Context()); err != nil || !led(r, 0) || s.TopicID() == ([16]byte{}) {
		t.Errorf("roles %+v, %v, expected all partitions to be led", r, err)
	}
	for name, do := range map[string]func() error{"kill": s.Nodes()[0].Kill, "pause": s.Nodes()[0].Pause, "resume": s.Nodes()[0].Resume} {
		if err := do(); !errors.Is(err, errForeign) {
			t.Errorf("%s gives %v, expected that the node is left alone", name, err)
		}
	}
	for range 2 {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}
	gone := func() bool { return errors.Is(topicCode(t, first.Addr(), o.Topic), kerr.UnknownTopicOrPartition) }
	for end := time.Now().Add(createTimeout); !gone() && time.Now().Before(end); { // a broker hears of it a moment later
		time.Sleep(10 * time.Millisecond)
	}
	if !gone() {
		t.Error("the topic of the test is still there")
	}
	if code := topicCode(t, first.Addr(), host.Topic); code != nil {
		t.Errorf("the topic of somebody else: %v", code)
	}
	if alive, _ := first.Alive(); !alive {
		t.Error("a node of the cluster has ended")
	}
}

func topicCode(t *testing.T, addr, topic string) error {
	t.Helper()
	q := kmsg.NewPtrMetadataRequest()
	q.Version = 12
	one := kmsg.NewMetadataRequestTopic()
	one.Topic = &topic
	q.Topics = append(q.Topics, one)
	resp, err := kafkaproto.Ask(addr, q, createTimeout)
	if err != nil {
		t.Fatal(err)
	}
	return kerr.ErrorForCode(resp.(*kmsg.MetadataResponse).Topics[0].ErrorCode)
}
