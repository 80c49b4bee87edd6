package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestLeadersComeAndGo: what was acknowledged survives a clean stop, a failure and a restart of whoever leads, in order and once.
func TestLeadersComeAndGo(t *testing.T) {
	t.Parallel()
	for _, store := range []string{storeWAL, storeSegment} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			testLeadersComeAndGo(t, store)
		})
	}
}

func testLeadersComeAndGo(t *testing.T, store string) {
	c := newCluster(t, 3, "log.store="+store, "log.segment.bytes=20000")
	c.create("t", 1, 3)
	var mu sync.Mutex
	acked := map[string]bool{}
	producing, stop := sync.WaitGroup{}, make(chan struct{})
	cl := c.client(kgo.SeedBrokers(c.addrs...))
	sent := 0
	producing.Go(func() {
		for ; ; sent++ {
			select {
			case <-stop:
				return
			default:
			}
			value := fmt.Sprintf("v-%d", sent)
			if err := cl.ProduceSync(c.ctx(), &kgo.Record{Topic: "t", Value: []byte(value)}).FirstErr(); err != nil {
				t.Errorf("produce %s: %v", value, err)
				return
			}
			mu.Lock()
			acked[value] = true
			mu.Unlock()
		}
	})
	more := func() {
		mu.Lock()
		want := len(acked) + 50
		mu.Unlock()
		await(t, "more records acknowledged", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(acked) >= want
		})
	}
	leader := func() int {
		for _, n := range c.nodes {
			if n != nil {
				return int(n.view.Load().Topics["t"].Partitions[0].Leader) - 1
			}
		}
		return -1
	}
	more()
	for _, end := range []func(int){c.halt, c.kill} {
		i := leader()
		end(i)
		more()
		c.start(i, 0)
		c.awaitISR("t", 3)
		more()
	}
	close(stop)
	producing.Wait()
	var want []string
	for i := range sent {
		want = append(want, fmt.Sprintf("v-%d", i))
	}
	if got := c.consume("t", 0, sent); !slices.Equal(got, want) {
		t.Errorf("%d records sent one after the other, read back %d, in another order or twice", sent, len(got))
	}
	c.sameLogs("t", 0)
}

// TestRestart: a clean stop is marked last, the mark is gone while the broker runs, and everything is there afterwards.
func TestRestart(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	c.create("t", 2, 3)
	cl := c.client()
	c.produce(cl, "t", 0, "a", 100)
	c.produce(cl, "t", 1, "b", 50)
	for i := range c.nodes {
		if c.exists(i, cleanFile) {
			t.Errorf("node %d runs with the marker of a clean stop", i+1)
		}
		c.halt(i)
		if !c.exists(i, cleanFile) {
			t.Errorf("node %d has left no marker of its clean stop", i+1)
		}
	}
	for i := range c.nodes {
		c.start(i, 0)
	}
	c.awaitBrokers(3)
	c.awaitISR("t", 3)
	c.produce(cl, "t", 0, "c", 10)
	if got := c.consume("t", 0, 110); got[99] != "a-99" || got[109] != "c-9" {
		t.Errorf("records 99 and 109 are %s and %s", got[99], got[109])
	}
	c.consume("t", 1, 50)
}

// TestDamagedLogIsRebuilt: bit rot below the recovery point is not cut away but replaced by a copy from the others, and the damaged log is kept
// (R23).
func TestDamagedLogIsRebuilt(t *testing.T) {
	t.Parallel()
	for store, folder := range map[string]string{storeWAL: "log", storeSegment: "."} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			testDamagedLogIsRebuilt(t, store, folder)
		})
	}
}

func testDamagedLogIsRebuilt(t *testing.T, store, files string) {
	c := newCluster(t, 3, "log.store="+store)
	c.create("t", 1, 3)
	c.produce(c.client(), "t", 0, "a", 200)
	victim := 0
	c.halt(victim)
	folder := filepath.Join(c.dirs[victim], "t-0")
	damage(t, folder, files)
	c.start(victim, 0)
	c.awaitISR("t", 3)
	c.sameLogs("t", 0)
	if !c.exists(victim, filepath.Join(damagedFolder, "t-0.1")) {
		t.Error("the damaged log was not kept")
	}
	await(t, "the mark of the rebuilt copy goes", func() bool { return !c.exists(victim, filepath.Join("t-0", rebuildingFile)) })
	c.consume("t", 0, 200)
}

// damage flips a bit in the first batch of a log, whose files are in the given folder of its own, and takes away its mark of a clean stop, so that it is looked at.
func damage(t *testing.T, folder, files string) {
	t.Helper()
	if err := os.Remove(filepath.Join(folder, "clean")); err != nil {
		t.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(folder, files, "0*"))
	slices.Sort(segments)
	segments = slices.DeleteFunc(segments, func(path string) bool { return strings.HasSuffix(path, "index") })
	if err != nil || len(segments) == 0 {
		t.Fatal("no segment files", err)
	}
	path := segments[0]
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.Index(raw, 'a') // inside of a record's value
	if at < 0 {
		t.Fatal("no record in the first segment")
	}
	raw[at+60] ^= 1
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRebuildingCopyDoesNotLead: the only copy was lost. The empty one in its place must not become the truth, though the controller elects the last
// known leader.
func TestRebuildingCopyDoesNotLead(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, "min.insync.replicas=1")
	c.create("t", 1, 1)
	c.produce(c.client(), "t", 0, "a", 20)
	c.halt(0)
	damage(t, filepath.Join(c.dirs[0], "t-0"), ".")
	for range 2 { // also after another start, when the new folder is nothing special any more
		c.start(0, 0)
		c.awaitBrokers(1)
		q := kmsg.NewPtrListOffsetsRequest()
		q.Version, q.ReplicaID = 5, -1
		q.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: "t", Partitions: []kmsg.ListOffsetsRequestTopicPartition{{Timestamp: -1, CurrentLeaderEpoch: -1}}}}
		got := c.ask(0, q).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
		if err := kerr.ErrorForCode(got.ErrorCode); !errors.Is(err, kerr.NotLeaderForPartition) {
			t.Errorf("end of the lost partition: offset %d, %v; want %v", got.Offset, err, kerr.NotLeaderForPartition)
		}
		c.halt(0)
	}
	if !c.exists(0, filepath.Join(damagedFolder, "t-0.1")) {
		t.Error("the damaged log was not kept")
	}
}

// TestStorageFailure: a log that fails while it is served is opened again under a new registration, and comes back.
func TestStorageFailure(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	c.create("t", 1, 3)
	cl := c.client()
	c.produce(cl, "t", 0, "a", 20)
	n := c.nodes[0]
	r := n.replicas.get(partitionKey{n.view.Load().Topics["t"].ID, 0})
	before := n.registered.Load().epoch
	// A closed log refuses the next append as a dead one does.
	if err := r.log.Close(false); err != nil {
		t.Fatal(err)
	}
	c.produce(cl, "t", 0, "b", 20)
	await(t, "a new registration", func() bool { return n.registered.Load().epoch > before })
	c.awaitISR("t", 3)
	c.sameLogs("t", 0)
	if got := c.consume("t", 0, 40); got[39] != "b-19" {
		t.Errorf("the last record is %s", got[39])
	}
}

// TestNoQuorumNoAck: alone, a leader must not acknowledge acks=all.
func TestNoQuorumNoAck(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	c.create("t", 1, 3)
	cl := c.client()
	c.produce(cl, "t", 0, "a", 5)
	leader := int(c.nodes[0].view.Load().Topics["t"].Partitions[0].Leader) - 1
	for i := range c.nodes {
		if i != leader {
			c.kill(i)
		}
	}
	q := produceRequest(c.nodes[leader].view.Load().Topics["t"].ID, 0, -1, "b")
	q.TimeoutMillis = 300
	got := c.ask(leader, q).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	switch err := kerr.ErrorForCode(got.ErrorCode); {
	case errors.Is(err, kerr.RequestTimedOut), errors.Is(err, kerr.NotEnoughReplicas), errors.Is(err, kerr.NotEnoughReplicasAfterAppend):
	default:
		t.Errorf("acks=all with one of three copies: offset %d, %v", got.BaseOffset, err)
	}
}

// TestNothingIsUnknownToABrokerThatKnowsNothing: a broker that has just started, and has not registered yet, sends clients elsewhere. "Unknown topic" would be false, and kcat, for one, takes it for
// final. Kafka does not serve before that.
func TestNothingIsUnknownToABrokerThatKnowsNothing(t *testing.T) {
	c := newCluster(t, 3)
	c.create("t", 1, 3)
	id := c.nodes[0].view.Load().Topics["t"].ID
	for i := range c.nodes {
		c.kill(i)
	}
	c.start(0, 0) // alone, so that it learns nothing
	list := kmsg.NewPtrListOffsetsRequest()
	list.Version, list.ReplicaID = 7, -1
	list.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: "t", Partitions: []kmsg.ListOffsetsRequestTopicPartition{{CurrentLeaderEpoch: -1, Timestamp: -1}}}}
	for what, code := range map[string]int16{
		"ListOffsets":   c.ask(0, list).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0].ErrorCode,
		"Fetch":         fetched(c.ask(0, fetchRequest(12, "t", id, 0))).ErrorCode,
		"Fetch by id":   fetched(c.ask(0, fetchRequest(13, "", id, 0))).ErrorCode,
		"Produce by id": c.ask(0, produceRequest(id, 0, 1, "x")).(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode,
	} {
		if code != kerr.NotLeaderForPartition.Code {
			t.Errorf("%s: %v, want %v", what, kerr.ErrorForCode(code), kerr.NotLeaderForPartition)
		}
	}
}
