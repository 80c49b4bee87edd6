package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), madeFile)
	read := func() *made {
		t.Helper()
		m, err := readMade(path)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	a, b, c := partitionKey{[16]byte{1}, 0}, partitionKey{[16]byte{1}, 12}, partitionKey{[16]byte{2}, 0}
	m := read()
	if !m.has(a) {
		t.Error("without a list, a partition is taken for one that was never made")
	}
	if err := m.replace([]partitionKey{a}); err != nil {
		t.Fatal(err)
	}
	if err := m.add([]partitionKey{a, b}); err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]*made{"the one that wrote it": m, "read back": read()} {
		if !m.has(a) || !m.has(b) || m.has(c) {
			t.Errorf("%s: the list is %v", name, m.keys)
		}
	}
	// A line that was torn is not there, and is written over.
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(text, "0102030405060708"...), 0o644); err != nil {
		t.Fatal(err)
	}
	if m = read(); len(m.keys) != 2 {
		t.Errorf("with a torn line the list is %v", m.keys)
	}
	if err := m.add([]partitionKey{c}); err != nil {
		t.Fatal(err)
	}
	if m = read(); len(m.keys) != 3 || !m.has(c) {
		t.Errorf("after a torn line the list is %v", m.keys)
	}
	if err := os.WriteFile(path, []byte("nonsense\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readMade(path); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("a damaged list gives the error %v", err)
	}
}

// TestFolderThatWasNeverMade: brokers that died after a topic was made and before its folders were, have lost nothing, and lead it.
func TestFolderThatWasNeverMade(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	c.create("t", 1, 3)
	for i := range c.nodes {
		c.kill(i)
	}
	for _, dir := range c.dirs {
		if err := os.RemoveAll(filepath.Join(dir, "t-0")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, madeFile), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i := range c.nodes {
		c.start(i, 0)
	}
	c.awaitISR("t", 3)
	c.produce(c.client(), "t", 0, "a", 10)
	c.consume("t", 0, 10)
}

// TestLostLogResigns: the last leader comes back without its log. It is elected again, as the only one that may be (KIP-966), and resigns; whoever asks for an unclean election gets
// the copy that there is, not the one that is gone (R17).
func TestLostLogResigns(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, "min.insync.replicas=1")
	c.create("t", 1, 2)
	cl := c.client()
	c.produce(cl, "t", 0, "a", 200)
	p := c.nodes[0].view.Load().Topics["t"].Partitions[0]
	leader, follower := int(p.Leader-1), int(p.Replicas[0]-1)
	if follower == leader {
		follower = int(p.Replicas[1] - 1)
	}
	other := 3 - leader - follower
	c.kill(follower)
	await(t, "only the leader is in sync", func() bool { return len(c.nodes[leader].view.Load().Topics["t"].Partitions[0].ISR) == 1 })
	c.kill(leader)
	if err := os.RemoveAll(filepath.Join(c.dirs[leader], "t-0")); err != nil {
		t.Fatal(err)
	}
	c.start(follower, 0)
	c.start(leader, 0)
	await(t, "who lost its log has resigned", func() bool {
		p := c.nodes[other].view.Load().Topics["t"].Partitions[0]
		return p.Leader < 0 && len(p.Lost) == 1 && p.Lost[0] == int32(leader+1)
	})
	c.awaitBrokers(3)
	q := kmsg.NewPtrElectLeadersRequest()
	q.Version, q.ElectionType, q.TimeoutMillis = 2, 1, 10_000
	q.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: "t", Partitions: []int32{0}}}
	await(t, "an unclean election", func() bool { // a controller that moves may not answer in time
		return c.ask(other, q).(*kmsg.ElectLeadersResponse).ErrorCode == 0
	})
	c.awaitISR("t", 2)
	c.produce(cl, "t", 0, "b", 1)
	if got := c.consume("t", 0, 201); got[199] != "a-199" || got[200] != "b-0" {
		t.Errorf("records 199 and 200 are %s and %s", got[199], got[200])
	}
}
