package controller

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// world is a cluster of controllers under a seeded scheduler that loses, delays and reorders messages, and stops nodes at any effect, also in the middle
// of one. Each node plays its broker too. After every image and every answer the invariants are checked.
type world struct {
	t      *testing.T
	fail   func(string) // ends the run: something is not as it must be
	rng    *rand.Rand
	now    time.Time
	nodes  []*node
	net    []*raftpb.Message
	faults bool
	drop   func(*raftpb.Message) bool // if set: which messages are lost
	trace  []string

	images      map[uint64][]byte // by index: what every node must have there
	termLeader  map[uint64]int32
	epochLeader map[string]int32 // topic id, partition and leader epoch: who led
	producerIDs map[int64]bool
	created     map[string][16]byte // acknowledged and never asked to be deleted
	doomed      map[string]bool     // somebody asked to delete it
	nextTopic   int
	acked       int
}

type node struct {
	id          int32
	c           *Controller // nil while down
	cfg         Config
	disk        Stored
	waiting     map[int]func(kmsg.Response)
	image       *Image
	incarnation byte
	epoch       int64 // of the registration, 0 if not registered in this life
	epochBefore int64 // of the life before if it ended cleanly
	wantStop    bool
}

var voters = []int32{0, 1, 2, 3, 4}

func testConfig(self int32, n int) Config {
	return Config{
		Self: self, Voters: voters[:n], Cluster: "test",
		TickEvery: 50 * time.Millisecond, ElectionTicks: 10, SessionTimeout: 2 * time.Second, ImbalanceEach: 5 * time.Second, SnapshotAfter: 20,
		Defaults: map[string]string{"min.insync.replicas": "2"}, DefaultRF: int16(min(n, 3)), DefaultParts: 2,
	}
}

func newWorld(t *testing.T, n int, seed uint64, edit func(*Config)) *world {
	cryptotest.SetGlobalRandom(t, seed) // raft's election time-outs
	w := &world{
		t: t, fail: func(text string) { t.Fatal(text) }, rng: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1_000_000, 0),
		images: map[uint64][]byte{}, termLeader: map[uint64]int32{}, epochLeader: map[string]int32{}, producerIDs: map[int64]bool{},
		created: map[string][16]byte{}, doomed: map[string]bool{},
	}
	for i := range int32(n) {
		nd := &node{id: i, cfg: testConfig(i, n)}
		if edit != nil {
			edit(&nd.cfg)
		}
		w.nodes = append(w.nodes, nd)
		w.start(nd)
	}
	return w
}

func (w *world) logf(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%v ", w.now.Sub(time.Unix(1_000_000, 0)))+fmt.Sprintf(format, args...))
}

func (w *world) fatalf(format string, args ...any) {
	w.t.Helper()
	for _, l := range w.trace[max(0, len(w.trace)-40):] {
		w.t.Log(l)
	}
	w.fail(fmt.Sprintf(format, args...))
}

func (w *world) start(nd *node) {
	stored := Stored{HardState: nd.disk.HardState, Snapshot: nd.disk.Snapshot, Entries: slices.Clone(nd.disk.Entries)}
	c, effects, err := New(nd.cfg, stored, w.now)
	if err != nil {
		w.fatalf("start of %d: %v", nd.id, err)
	}
	nd.c, nd.waiting, nd.image, nd.epoch, nd.wantStop = c, map[int]func(kmsg.Response){}, nil, 0, false
	nd.incarnation++
	w.logf("%d starts", nd.id)
	w.carryOut(nd, effects)
}

func (w *world) stop(nd *node, clean bool) {
	w.logf("%d stops (clean %v)", nd.id, clean)
	if nd.epochBefore = 0; clean {
		nd.epochBefore = nd.epoch
	}
	nd.c = nil
}

func (w *world) step(nd *node, in Input) {
	if nd.c != nil {
		w.carryOut(nd, nd.c.Step(w.now, in))
	}
}

// carryOut does what the shell would do. With faults on, the node may die between any two effects, and within a Persist.
func (w *world) carryOut(nd *node, effects []Effect) {
	dies := func() bool {
		if w.faults && w.rng.IntN(3000) == 0 {
			w.stop(nd, false)
			return true
		}
		return false
	}
	c := nd.c
	for _, e := range effects {
		if nd.c != c || dies() {
			return
		}
		switch e := e.(type) {
		case Persist:
			if e.CutFrom != 0 {
				nd.disk.Entries = slices.DeleteFunc(slices.Clone(nd.disk.Entries), func(x *raftpb.Entry) bool { return x.GetIndex() >= e.CutFrom })
				if dies() {
					return
				}
			}
			if e.Snapshot != nil {
				nd.disk.Snapshot = e.Snapshot
				nd.disk.Entries = slices.DeleteFunc(slices.Clone(nd.disk.Entries), func(x *raftpb.Entry) bool { return x.GetIndex() <= e.Snapshot.GetMetadata().GetIndex() })
				if dies() {
					return
				}
			}
			if e.HardState != nil {
				nd.disk.HardState = e.HardState
				if dies() {
					return
				}
			}
			if len(e.Entries) > 0 {
				from := e.Entries[0].GetIndex()
				kept := slices.DeleteFunc(slices.Clone(nd.disk.Entries), func(x *raftpb.Entry) bool { return x.GetIndex() >= from })
				nd.disk.Entries = append(kept, e.Entries...)
			}
		case Send:
			m := proto.Clone(e.Message).(*raftpb.Message)
			if brokerID(m.GetTo()) != e.To {
				w.fatalf("message to %d sent to %d", brokerID(m.GetTo()), e.To)
			}
			w.net = append(w.net, m)
			if w.faults && m.GetType() == raftpb.MsgVoteResp && !m.GetReject() && w.rng.IntN(3) == 0 {
				w.stop(nd, false) // the moment for a vote to be forgotten
				w.start(nd)
				return
			}
		case Publish:
			w.published(nd, e.Image)
		case Reply:
			f := nd.waiting[e.Token.(int)]
			delete(nd.waiting, e.Token.(int))
			if f != nil {
				f(e.Response)
			}
		case LeaderChanged:
			w.logf("%d: leader is %d", nd.id, e.Leader)
			if e.Leader == nd.id {
				term := nd.c.office.term
				if other, ok := w.termLeader[term]; ok && other != nd.id {
					w.fatalf("term %d is led by %d and %d", term, other, nd.id)
				}
				w.termLeader[term] = nd.id
			}
		case Failed:
			w.fatalf("%d failed: %v", nd.id, e.Err)
		}
	}
}

func (w *world) published(nd *node, im *Image) {
	if err := im.Check(); err != nil {
		w.fatalf("%d: %v", nd.id, err)
	}
	data, err := encodeImage(im)
	if err != nil {
		w.fatalf("%v", err)
	}
	if other, ok := w.images[im.Index]; ok && !bytes.Equal(other, data) {
		w.fatalf("%d: at index %d the image is\n%s\nelsewhere it is\n%s", nd.id, im.Index, data, other)
	}
	w.images[im.Index] = data
	old := nd.image
	nd.image = im
	if old == nil {
		return
	}
	if im.Index <= old.Index {
		w.fatalf("%d: image of index %d after %d", nd.id, im.Index, old.Index)
	}
	if im.NextProducerID < old.NextProducerID {
		w.fatalf("%d: producer ids go back", nd.id)
	}
	for name, t := range im.Topics {
		for i, p := range t.Partitions {
			if p.Leader != none {
				key := fmt.Sprintf("%x-%d@%d", t.ID, i, p.LeaderEpoch)
				if other, ok := w.epochLeader[key]; ok && other != p.Leader {
					w.fatalf("%s is led by %d and %d", key, other, p.Leader)
				}
				w.epochLeader[key] = p.Leader
			}
			before := old.Topics[name]
			if before == nil || before.ID != t.ID || i >= len(before.Partitions) {
				continue
			}
			b := before.Partitions[i]
			if p.LeaderEpoch < b.LeaderEpoch || p.PartitionEpoch < b.PartitionEpoch || p.PartitionEpoch == b.PartitionEpoch && !reflect.DeepEqual(p, b) {
				w.fatalf("%d: %s-%d: epochs go back or stand still:\n%+v\n%+v", nd.id, name, i, b, p)
			}
		}
	}
}

var tokens int

// ask sends a request to whom the node takes for the leader; the answer may be lost.
func (w *world) ask(nd *node, q kmsg.Request, done func(kmsg.Response)) {
	if w.faults && w.rng.IntN(20) == 0 {
		return
	}
	l := nd.c.Leader()
	if l == none || w.nodes[l].c == nil {
		return
	}
	to := w.nodes[l]
	tokens++
	token := tokens
	asker := nd.c
	to.waiting[token] = func(r kmsg.Response) {
		if nd.c == asker && !(w.faults && w.rng.IntN(20) == 0) {
			done(r)
		}
	}
	wire := kmsg.RequestForKey(q.Key())
	wire.SetVersion(q.GetVersion())
	if err := wire.ReadFrom(q.AppendTo(nil)); err != nil {
		w.fatalf("%T: %v", q, err)
	}
	w.step(to, Request{token, wire})
}

func latest[Q kmsg.Request](q Q) Q {
	q.SetVersion(q.MaxVersion())
	return q
}

// broker is what the broker of a node does now and then.
func (w *world) broker(nd *node) {
	if nd.image == nil {
		return
	}
	if nd.epoch == 0 {
		q := latest(kmsg.NewPtrBrokerRegistrationRequest())
		q.BrokerID, q.ClusterID, q.IncarnationID = nd.id, "test", [16]byte{byte(nd.id), nd.incarnation}
		q.PreviousBrokerEpoch = nd.epochBefore
		l := kmsg.NewBrokerRegistrationRequestListener()
		l.Host, l.Port = "127.0.0.1", uint16(9000+nd.id)
		q.Listeners = append(q.Listeners, l)
		w.ask(nd, q, func(r kmsg.Response) {
			if r := r.(*kmsg.BrokerRegistrationResponse); r.ErrorCode == 0 {
				nd.epoch = r.BrokerEpoch
			}
		})
		return
	}
	q := latest(kmsg.NewPtrBrokerHeartbeatRequest())
	q.BrokerID, q.BrokerEpoch, q.CurrentMetadataOffset, q.WantShutdown = nd.id, nd.epoch, int64(nd.image.Index), nd.wantStop
	w.ask(nd, q, func(r kmsg.Response) {
		switch r := r.(*kmsg.BrokerHeartbeatResponse); {
		case r.ErrorCode == kerr.StaleBrokerEpoch.Code || r.ErrorCode == kerr.BrokerIDNotRegistered.Code:
			nd.epoch = 0
		case r.ErrorCode == 0 && r.ShouldShutdown && nd.wantStop:
			w.stop(nd, true)
		}
	})
}

// client makes one random request by way of the node.
func (w *world) client(nd *node) {
	if nd.image == nil {
		return
	}
	names := sortedKeys(nd.image.Topics)
	pick := func() string {
		if len(names) == 0 || w.rng.IntN(20) == 0 {
			return "no-such-topic"
		}
		return names[w.rng.IntN(len(names))]
	}
	switch w.rng.IntN(12) {
	case 0:
		if len(names) > 12 {
			break
		}
		w.nextTopic++
		name := fmt.Sprintf("t%d", w.nextTopic)
		q := latest(kmsg.NewPtrCreateTopicsRequest())
		qt := kmsg.NewCreateTopicsRequestTopic()
		qt.Topic, qt.NumPartitions, qt.ReplicationFactor = name, int32(1+w.rng.IntN(4)), -1
		q.Topics = append(q.Topics, qt)
		w.ask(nd, q, func(r kmsg.Response) {
			if t := r.(*kmsg.CreateTopicsResponse).Topics[0]; t.ErrorCode == 0 && !w.doomed[name] {
				w.created[name] = t.TopicID
				w.acked++
			}
		})
	case 1:
		if w.rng.IntN(4) > 0 {
			break
		}
		name := pick()
		w.doomed[name] = true
		delete(w.created, name)
		q := latest(kmsg.NewPtrDeleteTopicsRequest())
		q.Topics = append(q.Topics, kmsg.DeleteTopicsRequestTopic{Topic: &name})
		w.ask(nd, q, func(kmsg.Response) {})
	case 2:
		q := latest(kmsg.NewPtrCreatePartitionsRequest())
		q.Topics = append(q.Topics, kmsg.CreatePartitionsRequestTopic{Topic: pick(), Count: int32(2 + w.rng.IntN(4))})
		w.ask(nd, q, func(kmsg.Response) {})
	case 3:
		q := latest(kmsg.NewPtrIncrementalAlterConfigsRequest())
		res := kmsg.NewIncrementalAlterConfigsRequestResource()
		res.ResourceType, res.ResourceName = kmsg.ConfigResourceTypeTopic, pick()
		op, key, v := kmsg.IncrementalAlterConfigOp(w.rng.IntN(2)), minISRKey, fmt.Sprint(1+w.rng.IntN(3))
		if w.rng.IntN(3) == 0 {
			key, v = uncleanKey, "true"
		}
		res.Configs = append(res.Configs, kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: key, Op: op, Value: &v})
		q.Resources = append(q.Resources, res)
		w.ask(nd, q, func(kmsg.Response) {})
	case 4:
		q := latest(kmsg.NewPtrElectLeadersRequest())
		q.ElectionType = int8(w.rng.IntN(2))
		if w.rng.IntN(2) == 0 {
			q.Topics = append(q.Topics, kmsg.ElectLeadersRequestTopic{Topic: pick(), Partitions: []int32{0, 1}})
		}
		w.ask(nd, q, func(kmsg.Response) {})
	case 5:
		q := latest(kmsg.NewPtrAllocateProducerIDsRequest())
		q.BrokerID, q.BrokerEpoch = nd.id, nd.epoch
		w.ask(nd, q, func(r kmsg.Response) {
			if r := r.(*kmsg.AllocateProducerIDsResponse); r.ErrorCode == 0 {
				if w.producerIDs[r.ProducerIDStart] || r.ProducerIDLen != 1000 {
					w.fatalf("producer ids from %d (%d of them) were given out twice", r.ProducerIDStart, r.ProducerIDLen)
				}
				w.producerIDs[r.ProducerIDStart] = true
				w.acked++
			}
		})
	default:
		w.alterISR(nd, pick())
	}
}

// alterISR plays the leader of one of a topic's partitions, which takes followers in and out as it likes.
func (w *world) alterISR(nd *node, topic string) {
	t := nd.image.Topics[topic]
	if t == nil {
		return
	}
	i := w.rng.IntN(len(t.Partitions))
	p := t.Partitions[i]
	if p.Leader != nd.id {
		return
	}
	q := latest(kmsg.NewPtrAlterPartitionRequest())
	q.BrokerID, q.BrokerEpoch = nd.id, nd.epoch
	qp := kmsg.NewAlterPartitionRequestTopicPartition()
	qp.Partition, qp.LeaderEpoch, qp.PartitionEpoch = int32(i), p.LeaderEpoch, p.PartitionEpoch
	for _, id := range p.Replicas {
		if id == nd.id || w.rng.IntN(3) > 0 {
			m := kmsg.AlterPartitionRequestTopicPartitionNewEpochISR{BrokerID: id, BrokerEpoch: -1}
			if b := nd.image.Brokers[id]; b != nil {
				m.BrokerEpoch = b.Epoch
			}
			qp.NewEpochISR = append(qp.NewEpochISR, m)
		}
	}
	q.Topics = append(q.Topics, kmsg.AlterPartitionRequestTopic{TopicID: t.ID, Partitions: []kmsg.AlterPartitionRequestTopicPartition{qp}})
	w.ask(nd, q, func(r kmsg.Response) {
		resp := r.(*kmsg.AlterPartitionResponse)
		if resp.ErrorCode != 0 || resp.Topics[0].Partitions[0].ErrorCode != 0 {
			return
		}
		rp := resp.Topics[0].Partitions[0]
		if rp.LeaderID != nd.id || rp.LeaderEpoch != p.LeaderEpoch || rp.PartitionEpoch > p.PartitionEpoch+1 || len(rp.ISR) != len(qp.NewEpochISR) {
			w.fatalf("AlterPartition of %+v answered %+v", qp, rp)
		}
		w.acked++
	})
}

// run lets ticks pass. Between two of them some messages arrive, in any order.
func (w *world) run(ticks int) {
	for range ticks {
		w.now = w.now.Add(50 * time.Millisecond)
		for _, nd := range w.nodes {
			if nd.c == nil && (!w.faults || w.rng.IntN(30) == 0) {
				w.start(nd)
			}
			w.step(nd, Tick{})
			if w.faults && nd.c != nil {
				if w.rng.IntN(400) == 0 {
					w.stop(nd, false)
				} else if w.rng.IntN(400) == 0 {
					nd.wantStop = true
				}
			}
			if nd.c != nil && w.rng.IntN(3) == 0 {
				w.broker(nd)
			}
			if nd.c != nil && w.faults && w.rng.IntN(3) == 0 {
				w.client(nd)
			}
		}
		w.deliver()
	}
}

func (w *world) deliver() {
	for n := 0; len(w.net) > 0 && n < 200; n++ {
		i := 0
		if w.faults {
			if w.rng.IntN(12) == 0 {
				return // the rest is delayed
			}
			i = w.rng.IntN(len(w.net))
		}
		m := w.net[i]
		w.net = slices.Delete(w.net, i, i+1)
		to := w.nodes[brokerID(m.GetTo())]
		if w.faults && w.rng.IntN(20) == 0 || w.drop != nil && w.drop(m) {
			continue
		}
		if w.faults && w.rng.IntN(50) == 0 {
			w.net = append(w.net, proto.Clone(m).(*raftpb.Message)) // it comes twice
		}
		w.step(to, Message{m})
	}
}

// heal ends the faults and demands what must hold then.
func (w *world) heal() {
	w.faults = false
	w.run(200)
	leaders := 0
	for _, nd := range w.nodes {
		if nd.c.IsLeader() {
			leaders++
		}
		if nd.image.Index != w.nodes[0].image.Index {
			w.fatalf("%d is at index %d, 0 is at %d", nd.id, nd.image.Index, w.nodes[0].image.Index)
		}
	}
	if leaders != 1 {
		w.fatalf("%d leaders", leaders)
	}
	im := w.nodes[0].image
	for _, nd := range w.nodes {
		if !im.Active(nd.id) || im.Brokers[nd.id].Epoch != nd.epoch {
			w.fatalf("broker %d of epoch %d is not active: %+v", nd.id, nd.epoch, im.Brokers[nd.id])
		}
	}
	for name, id := range w.created {
		if t := im.Topics[name]; t == nil || t.ID != id {
			w.fatalf("topic %s was acknowledged with id %x and is now %+v", name, id, t)
		}
	}
	for name, t := range im.Topics {
		for i, p := range t.Partitions {
			if p.Leader == none {
				w.fatalf("all brokers are up, but %s-%d has no leader: %+v", name, i, p)
			}
		}
	}
}

var seeds = flag.Uint64("seeds", 3, "how many seeds the cluster and partition worlds try")

func TestClusterUnderFaults(t *testing.T) {
	for _, n := range []int{1, 3, 5} {
		for seed := range *seeds {
			t.Run(fmt.Sprintf("nodes=%d/seed=%d", n, seed), func(t *testing.T) {
				w := newWorld(t, n, seed, func(c *Config) { c.AllowSingleCopy = n == 1 })
				w.run(60)
				for range 2 {
					w.faults = true
					w.run(500)
					w.heal()
				}
				if w.acked < 30 {
					t.Fatalf("only %d requests were acknowledged: the run shows nothing", w.acked)
				}
				t.Logf("%d images, %d acknowledged, %d terms", len(w.images), w.acked, len(w.termLeader))
			})
		}
	}
}

// The same seed gives the same run: neither map order nor anything outside decides.
func TestClusterReplays(t *testing.T) {
	var first map[uint64][]byte
	for range 2 {
		t.Run("", func(t *testing.T) {
			w := newWorld(t, 3, 42, nil)
			w.run(60)
			w.faults = true
			w.run(300)
			if first == nil {
				first = w.images
			}
			if len(w.images) != len(first) {
				t.Fatalf("%d images, the first run had %d", len(w.images), len(first))
			}
			for i, data := range w.images {
				if !bytes.Equal(data, first[i]) {
					t.Fatalf("image %d differs from the first run's", i)
				}
			}
		})
	}
}
