package controller

import (
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.etcd.io/raft/v3/raftpb"
	"pgregory.net/rapid"
)

// leading returns a world that has a leader, all brokers active, and that leader.
func leading(t *testing.T, n int, seed uint64, edit func(*Config)) (*world, *node) {
	w := newWorld(t, n, seed, edit)
	w.run(80)
	for _, nd := range w.nodes {
		if nd.c.IsLeader() {
			for _, other := range w.nodes {
				if !nd.image.Active(other.id) {
					t.Fatalf("broker %d is not active after 4 s", other.id)
				}
			}
			return w, nd
		}
	}
	t.Fatal("no leader after 4 s")
	return nil, nil
}

// others returns a world's nodes but the given one.
func (w *world) others(nd *node) []*node {
	return slices.DeleteFunc(slices.Clone(w.nodes), func(x *node) bool { return x == nd })
}

func (w *world) create(nd *node, name string, done func(*kmsg.CreateTopicsResponse)) {
	q := latest(kmsg.NewPtrCreateTopicsRequest())
	qt := kmsg.NewCreateTopicsRequestTopic()
	qt.Topic, qt.NumPartitions, qt.ReplicationFactor = name, 1, -1
	q.Topics = append(q.Topics, qt)
	w.ask(nd, q, func(r kmsg.Response) { done(r.(*kmsg.CreateTopicsResponse)) })
}

// R26: an answer only after commit; a leader that is cut off answers NOT_CONTROLLER when it gives up, and does not know whether it came to pass.
func TestAnswersOnlyAfterCommit(t *testing.T) {
	w, l := leading(t, 3, 1, nil)
	w.drop = func(m *raftpb.Message) bool { return m.GetTo() == raftID(l.id) || m.GetFrom() == raftID(l.id) }
	var answer *kmsg.CreateTopicsResponse
	w.create(l, "t", func(r *kmsg.CreateTopicsResponse) { answer = r })
	if answer != nil {
		t.Fatalf("answered before anybody else has the entry: %+v", answer)
	}
	for range 30 {
		w.now = w.now.Add(50 * time.Millisecond)
		for _, nd := range w.nodes {
			w.step(nd, Tick{})
		}
		w.deliver()
	}
	if answer == nil || answer.Topics[0].ErrorCode != kerr.NotController.Code {
		t.Fatalf("the answer of a leader that was cut off is %+v, want NOT_CONTROLLER", answer)
	}
	if l.c.IsLeader() || l.c.Leader() != none {
		t.Fatal("still leads though cut off for longer than an election time-out")
	}
	w.drop = nil
	w.run(80)
	if l.image.Topics["t"] != nil {
		t.Fatal("a topic whose entry reached nobody exists")
	}
}

func TestFollowerRefuses(t *testing.T) {
	w, l := leading(t, 3, 2, nil)
	f := w.others(l)[0]
	for _, q := range []kmsg.Request{
		latest(kmsg.NewPtrBrokerHeartbeatRequest()), latest(kmsg.NewPtrBrokerRegistrationRequest()), latest(kmsg.NewPtrAlterPartitionRequest()),
		latest(kmsg.NewPtrElectLeadersRequest()), latest(kmsg.NewPtrAllocateProducerIDsRequest()),
	} {
		effects := f.c.Step(w.now, Request{Token: 1, Request: q})
		reply, ok := effects[0].(Reply)
		if !ok || len(effects) != 1 {
			t.Fatalf("%T: effects %v", q, effects)
		}
		var code int16
		switch r := reply.Response.(type) {
		case *kmsg.BrokerHeartbeatResponse:
			code = r.ErrorCode
		case *kmsg.BrokerRegistrationResponse:
			code = r.ErrorCode
		case *kmsg.AlterPartitionResponse:
			code = r.ErrorCode
		case *kmsg.ElectLeadersResponse:
			code = r.ErrorCode
		case *kmsg.AllocateProducerIDsResponse:
			code = r.ErrorCode
		}
		if code != kerr.NotController.Code {
			t.Errorf("%T answered %d, want NOT_CONTROLLER", q, code)
		}
	}
	effects := l.c.Step(w.now, Request{Token: 1, Request: kmsg.NewPtrMetadataRequest()})
	if reply, ok := effects[0].(Reply); !ok || reply.Response != nil {
		t.Errorf("a request that is not the controller's is answered %v, want nil", effects)
	}
}

func TestRegistrationIsChecked(t *testing.T) {
	w, l := leading(t, 3, 3, nil)
	for _, tc := range []struct {
		id      int32
		cluster string
		want    *kerr.Error
	}{{1, "other", kerr.InconsistentClusterID}, {9, "test", kerr.InvalidRegistration}} {
		q := latest(kmsg.NewPtrBrokerRegistrationRequest())
		q.BrokerID, q.ClusterID = tc.id, tc.cluster
		var got *kmsg.BrokerRegistrationResponse
		w.ask(l, q, func(r kmsg.Response) { got = r.(*kmsg.BrokerRegistrationResponse) })
		if got == nil || got.ErrorCode != tc.want.Code {
			t.Errorf("broker %d of cluster %q: %+v, want %v", tc.id, tc.cluster, got, tc.want)
		}
	}
	q := kmsg.NewPtrAlterPartitionRequest()
	q.Version = 2
	var got *kmsg.AlterPartitionResponse
	w.ask(l, q, func(r kmsg.Response) { got = r.(*kmsg.AlterPartitionResponse) })
	if got == nil || got.ErrorCode != kerr.UnsupportedVersion.Code {
		t.Errorf("AlterPartition 2: %+v, want UNSUPPORTED_VERSION", got)
	}
}

// A quiet cluster writes nothing: heartbeats are answered from the leader's memory.
func TestHeartbeatsWriteNothing(t *testing.T) {
	w, l := leading(t, 3, 4, nil)
	index := l.image.Index
	w.run(200)
	if l.image.Index != index {
		t.Errorf("%d entries in 10 s of rest", l.image.Index-index)
	}
}

// silence lets ticks pass in which the given broker does not heartbeat; raft goes on.
func (w *world) silence(quiet *node, ticks int) {
	for range ticks {
		w.now = w.now.Add(50 * time.Millisecond)
		for _, nd := range w.nodes {
			w.step(nd, Tick{})
			if nd != quiet {
				w.broker(nd)
			}
		}
		w.deliver()
	}
}

func TestSilentBrokerIsFenced(t *testing.T) {
	w, l := leading(t, 3, 5, nil)
	quiet := w.others(l)[0]
	w.broker(quiet)
	w.silence(quiet, 39)
	if !l.image.Active(quiet.id) {
		t.Fatal("fenced before its session of 2 s ended")
	}
	w.silence(quiet, 3)
	if l.image.Active(quiet.id) {
		t.Fatal("not fenced after its session of 2 s")
	}
	w.run(20)
	if !l.image.Active(quiet.id) {
		t.Fatal("heartbeats again, but is not unfenced")
	}
}

// A new leader gives everybody a full session: it cannot know when its predecessor heard of them (R20).
func TestNewLeaderGivesFullSession(t *testing.T) {
	w, l := leading(t, 5, 6, nil)
	quiet := w.others(l)[0]
	w.silence(quiet, 30)
	w.stop(l, false)
	elected := func() *node {
		for _, nd := range w.nodes {
			if nd.c != nil && nd.c.IsLeader() {
				return nd
			}
		}
		return nil
	}
	for range 60 {
		if w.silence2(quiet, l); elected() != nil {
			break
		}
	}
	n := elected()
	if n == nil {
		t.Fatal("no new leader in 3 s")
	}
	for range 37 {
		w.silence2(quiet, l)
	}
	if !n.image.Active(quiet.id) {
		t.Fatal("fenced by the time that the old leader counted")
	}
	for range 6 {
		w.silence2(quiet, l)
	}
	if n.image.Active(quiet.id) {
		t.Fatal("not fenced a session after the election")
	}
}

// successor lets ticks pass, in which the given node says nothing as a broker, until another one leads.
func (w *world) successor(t *testing.T, old *node) (n *node, ticks int) {
	t.Helper()
	for ticks = 1; ticks < 60; ticks++ {
		w.silence2(old, old)
		for _, nd := range w.others(old) {
			if nd.c.IsLeader() {
				return nd, ticks
			}
		}
	}
	t.Fatal("no new leader in 3 s")
	return nil, 0
}

// The leader that died is fenced a session after its last message, not a session after the election that this made necessary (R20).
func TestDeadLeaderIsFencedAfterItsSession(t *testing.T) {
	w, l := leading(t, 3, 9, nil)
	w.stop(l, false)
	n, ticks := w.successor(t, l)
	for ; n.image.Active(l.id) && ticks < 100; ticks++ {
		w.silence2(l, l)
	}
	if ticks < 38 || ticks > 43 {
		t.Errorf("fenced %d ticks after its death, want about 40", ticks)
	}
}

// A leader that lost its office but lives, as raft's messages show, has a full session like everybody (R20).
func TestDeposedLeaderHasAFullSession(t *testing.T) {
	w, l := leading(t, 3, 9, nil)
	w.drop = func(m *raftpb.Message) bool { return brokerID(m.GetFrom()) == l.id || brokerID(m.GetTo()) == l.id }
	n, _ := w.successor(t, l)
	w.drop = nil
	w.silence(l, 37)
	if !n.image.Active(l.id) {
		t.Error("fenced by the time before the election, though it has been heard since")
	}
	w.silence(l, 8)
	if n.image.Active(l.id) {
		t.Error("not fenced a session after the election")
	}
}

// silence2 is one tick of silence while one node is down.
func (w *world) silence2(quiet, down *node) {
	w.now = w.now.Add(50 * time.Millisecond)
	for _, nd := range w.nodes {
		w.step(nd, Tick{})
		if nd != quiet && nd != down {
			w.broker(nd)
		}
	}
	w.deliver()
}

// A leader that was stopped itself (SIGSTOP of the whole cluster, a suspended laptop) takes nobody's silence for death.
func TestPausedLeaderFencesNobody(t *testing.T) {
	w, l := leading(t, 3, 7, nil)
	w.now = w.now.Add(time.Hour)
	w.run(20)
	for _, nd := range w.nodes {
		if !w.nodes[l.id].image.Active(nd.id) {
			t.Errorf("broker %d was fenced", nd.id)
		}
	}
}

// Controlled shutdown waits until the others know the new leaders.
func TestControlledShutdown(t *testing.T) {
	w, l := leading(t, 3, 8, nil)
	w.create(l, "t", func(*kmsg.CreateTopicsResponse) {})
	w.deliver()
	leaver := w.nodes[l.image.Topics["t"].Partitions[0].Leader]
	var resp *kmsg.BrokerHeartbeatResponse
	beat := func(nd *node, offset uint64, shutdown bool) {
		q := latest(kmsg.NewPtrBrokerHeartbeatRequest())
		q.BrokerID, q.BrokerEpoch, q.CurrentMetadataOffset, q.WantShutdown = nd.id, nd.epoch, int64(offset), shutdown
		resp = nil
		w.ask(l, q, func(r kmsg.Response) { resp = r.(*kmsg.BrokerHeartbeatResponse) })
		w.deliver()
		if resp == nil || resp.ErrorCode != 0 {
			t.Fatalf("heartbeat of %d: %+v", nd.id, resp)
		}
	}
	old := l.image.Index
	beat(leaver, old, true)
	p := l.image.Topics["t"].Partitions[0]
	if p.Leader == leaver.id || slices.Contains(p.ISR, leaver.id) || resp.ShouldShutdown {
		t.Fatalf("at first: %+v, %+v; want the lead moved, and no leave to go yet", p, resp)
	}
	beat(leaver, l.image.Index, true)
	if resp.ShouldShutdown {
		t.Fatal("may go though nobody else said that they know")
	}
	rest := w.others(leaver)
	beat(rest[0], l.image.Index, false)
	beat(rest[1], old, false)
	beat(leaver, l.image.Index, true)
	if resp.ShouldShutdown {
		t.Fatal("may go though one of the others does not know yet")
	}
	beat(rest[1], l.image.Index, false)
	beat(leaver, l.image.Index, true)
	if !resp.ShouldShutdown || !resp.IsFenced || l.image.Active(leaver.id) {
		t.Fatalf("%+v, want to be fenced and let go", resp)
	}
}

func TestPreferredLeadersComeBack(t *testing.T) {
	w, l := leading(t, 3, 9, nil)
	w.create(l, "t", func(*kmsg.CreateTopicsResponse) {})
	w.deliver()
	first := w.nodes[l.image.Topics["t"].Partitions[0].Replicas[0]]
	w.silence(first, 45)
	w.run(10)
	p := l.image.Topics["t"].Partitions[0]
	if p.Leader == first.id || !l.image.Active(first.id) {
		t.Fatalf("%+v; want another leader than %d, and %d alive again", p, first.id, first.id)
	}
	leader := w.nodes[p.Leader]
	q := latest(kmsg.NewPtrAlterPartitionRequest())
	q.BrokerID, q.BrokerEpoch = leader.id, leader.epoch
	qp := kmsg.AlterPartitionRequestTopicPartition{LeaderEpoch: p.LeaderEpoch, PartitionEpoch: p.PartitionEpoch}
	for _, nd := range w.nodes {
		qp.NewEpochISR = append(qp.NewEpochISR, kmsg.AlterPartitionRequestTopicPartitionNewEpochISR{BrokerID: nd.id, BrokerEpoch: nd.epoch})
	}
	q.Topics = append(q.Topics, kmsg.AlterPartitionRequestTopic{TopicID: l.image.Topics["t"].ID, Partitions: []kmsg.AlterPartitionRequestTopicPartition{qp}})
	w.ask(l, q, func(kmsg.Response) {})
	w.run(110) // ImbalanceEach is 5 s
	if p := l.image.Topics["t"].Partitions[0]; p.Leader != first.id || len(p.ISR) != 3 {
		t.Fatalf("%+v, want the preferred replica %d to lead", p, first.id)
	}
}

// A voter that was away for longer than the others keep entries is given a snapshot, also if the first one is lost.
func TestLaggingVoterGetsSnapshot(t *testing.T) {
	w, l := leading(t, 3, 10, func(c *Config) { c.SnapshotAfter = 5 })
	away := w.others(l)[0]
	w.stop(away, false)
	for _, name := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
		w.create(l, name, func(*kmsg.CreateTopicsResponse) {})
		w.deliver()
	}
	if first := l.disk.Snapshot.GetMetadata().GetIndex(); first < away.disk.HardState.GetCommit() {
		t.Fatalf("the leader's snapshot is of index %d: nothing is tested", first)
	}
	w.start(away)
	lost := 0
	w.drop = func(m *raftpb.Message) bool {
		if lost > 0 || m.GetType() != raftpb.MsgSnap {
			return false
		}
		lost++
		return true
	}
	w.run(100)
	if lost != 1 || away.image.Index != l.image.Index {
		t.Fatalf("lost %d snapshots; at index %d, the leader at %d", lost, away.image.Index, l.image.Index)
	}
	w.stop(away, false)
	w.start(away)
	if away.image.Index < l.image.Index-5 {
		t.Errorf("after a restart at index %d, had %d", away.image.Index, l.image.Index)
	}
}

// A voter that lost its disk must not vote again as if it had agreed to nothing: it stops when it finds out.
func TestWipedVoterFails(t *testing.T) {
	w, l := leading(t, 3, 11, nil)
	wiped := w.others(l)[0]
	w.create(l, "t", func(*kmsg.CreateTopicsResponse) {})
	w.deliver()
	w.stop(wiped, false)
	c, _, err := New(wiped.cfg, Stored{}, w.now)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		w.now = w.now.Add(50 * time.Millisecond)
		for _, e := range l.c.Step(w.now, Tick{}) {
			s, ok := e.(Send)
			if !ok || s.To != wiped.id {
				continue
			}
			for _, e := range c.Step(w.now, Message{s.Message}) {
				if f, ok := e.(Failed); ok {
					if !strings.Contains(f.Err.Error(), "lost") {
						t.Errorf("failed with %q, want the reason", f.Err)
					}
					effects := c.Step(w.now, Request{Token: 1, Request: latest(kmsg.NewPtrBrokerHeartbeatRequest())})
					r, ok := effects[0].(Reply)
					if !ok || r.Response.(*kmsg.BrokerHeartbeatResponse).ErrorCode != kerr.NotController.Code {
						t.Errorf("a failed voter answers %v, want NOT_CONTROLLER", effects)
					}
					if effects := c.Step(w.now, Tick{}); len(effects) != 0 {
						t.Errorf("a failed voter goes on: %v", effects)
					}
					return
				}
			}
		}
	}
	t.Fatal("did not notice in 1 s that it knows nothing of what the leader had from it")
}

func TestStoredStateIsChecked(t *testing.T) {
	w, l := leading(t, 3, 12, nil)
	w.create(l, "t", func(*kmsg.CreateTopicsResponse) {})
	w.deliver()
	good := l.disk
	ent := func(index, term uint64) *raftpb.Entry { return &raftpb.Entry{Index: &index, Term: &term} }
	at := good.Snapshot.GetMetadata().GetIndex()
	for _, tc := range []struct {
		name string
		edit func(*Config, *Stored)
		want string
	}{
		{"good", func(*Config, *Stored) {}, ""},
		{"snapshot lost", func(_ *Config, s *Stored) { s.Snapshot = nil }, "without a snapshot"},
		{"gap", func(_ *Config, s *Stored) { s.Entries = []*raftpb.Entry{ent(at+2, 9)} }, "want"},
		{"terms back", func(_ *Config, s *Stored) { s.Entries = []*raftpb.Entry{ent(at+1, 9), ent(at+2, 8)} }, "after term"},
		{"other voters", func(c *Config, _ *Stored) { c.Voters = voters[:5] }, "cannot change"},
		{"damaged image", func(_ *Config, s *Stored) {
			s.Snapshot = &raftpb.Snapshot{Metadata: s.Snapshot.Metadata, Data: s.Snapshot.Data[:10]}
		}, "metadata image"},
		{"foreign entry", func(_ *Config, s *Stored) {
			e := ent(at+1, 9)
			e.Data = []byte("no such entry in the metadata log")
			s.Entries, s.HardState = []*raftpb.Entry{e}, &raftpb.HardState{Commit: new(at + 1)}
		}, "metadata entry"},
		{"commit ahead of the entries", func(_ *Config, s *Stored) {
			s.HardState = &raftpb.HardState{Term: new(uint64(50)), Commit: new(uint64(1000))}
		}, ""},
		{"hard state lost", func(_ *Config, s *Stored) { s.HardState = nil }, ""},
		{"entries of before another snapshot", func(_ *Config, s *Stored) {
			s.Entries = []*raftpb.Entry{ent(at, 77), ent(at+1, 77)}
		}, ""},
		{"no voter", func(c *Config, _ *Stored) { c.Self = 7 }, "Voters"},
		{"voters out of order", func(c *Config, _ *Stored) { c.Voters = []int32{2, 1, 0} }, "ascending"},
		{"no ticks", func(c *Config, _ *Stored) { c.TickEvery = 0 }, "TickEvery"},
		{"hasty", func(c *Config, _ *Stored) { c.ElectionTicks = 1 }, "ElectionTicks"},
		{"no session", func(c *Config, _ *Stored) { c.SessionTimeout = 0 }, "SessionTimeout"},
		{"negative interval", func(c *Config, _ *Stored) { c.ImbalanceEach = -1 }, "ImbalanceEach"},
		{"no snapshots", func(c *Config, _ *Stored) { c.SnapshotAfter = 0 }, "SnapshotAfter"},
		{"no replicas", func(c *Config, _ *Stored) { c.DefaultRF = 0 }, "DefaultRF"},
		{"no partitions", func(c *Config, _ *Stored) { c.DefaultParts = 0 }, "DefaultParts"},
		{"bad default", func(c *Config, _ *Stored) { c.Defaults = map[string]string{"min.insync.replicas": "0"} }, "min.insync.replicas"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg, stored := l.cfg, good
			tc.edit(&cfg, &stored)
			c, effects, err := New(cfg, stored, w.now)
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if i := slices.IndexFunc(effects, func(e Effect) bool { _, ok := e.(Publish); return ok }); i < 0 {
					t.Error("no image is published")
				}
				if c.Image() == nil || c.Leader() != none {
					t.Errorf("image %v, leader %d; want an image and no leader", c.Image(), c.Leader())
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// Whoever reaches the port can send anything that is a raft message. It may end this voter, never the process.
func TestAnyMessage(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 1)
	rapid.Check(t, func(t *rapid.T) {
		c, _, err := New(testConfig(0, 3), Stored{}, time.Unix(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		small := rapid.OneOf(rapid.Uint64Range(0, 5), rapid.Just(^uint64(0)))
		for range rapid.IntRange(1, 30).Draw(t, "messages") {
			if rapid.Bool().Draw(t, "tick") {
				c.Step(time.Unix(0, 0), Tick{})
				continue
			}
			m := &raftpb.Message{
				Type: raftpb.MessageType(rapid.Int32Range(-1, 25).Draw(t, "type")).Enum(),
				To:   new(uint64(1)), From: new(rapid.Uint64Range(0, 4).Draw(t, "from")),
				Term: new(small.Draw(t, "term")), LogTerm: new(small.Draw(t, "log term")), Index: new(small.Draw(t, "index")), Commit: new(small.Draw(t, "commit")),
				Reject: new(rapid.Bool().Draw(t, "reject")), RejectHint: new(small.Draw(t, "hint")),
			}
			for range rapid.IntRange(0, 3).Draw(t, "entries") {
				m.Entries = append(m.Entries, &raftpb.Entry{Term: new(small.Draw(t, "entry term")), Index: new(small.Draw(t, "entry index")), Data: []byte("x")})
			}
			if rapid.Bool().Draw(t, "snapshot") {
				m.Snapshot = &raftpb.Snapshot{Data: []byte("{}"), Metadata: &raftpb.SnapshotMetadata{Index: new(small.Draw(t, "snapshot index")), Term: new(small.Draw(t, "snapshot term"))}}
			}
			c.Step(time.Unix(0, 0), Message{m})
		}
		c.Step(time.Unix(0, 0), Message{nil})
		c.Step(time.Unix(0, 0), Unreachable{99})
		c.Step(time.Unix(0, 0), Request{})
		c.Step(time.Unix(0, 0), CancelRequest{1})
	})
}

func TestCancelledRequestIsNotAnswered(t *testing.T) {
	w, l := leading(t, 3, 13, nil)
	answered := false
	w.create(l, "t", func(*kmsg.CreateTopicsResponse) { answered = true })
	w.step(l, CancelRequest{tokens})
	w.run(20)
	if answered {
		t.Error("answered though nobody waits any more")
	}
	if l.image.Topics["t"] == nil {
		t.Error("the topic was not created")
	}
}

// What the controller in office is configured to holds for all, also for voters that are configured otherwise.
func TestDefaultsFollowTheLeader(t *testing.T) {
	w, l := leading(t, 3, 14, func(c *Config) {
		c.Defaults = map[string]string{"min.insync.replicas": []string{"1", "2", "3"}[c.Self]}
	})
	want := l.cfg.Defaults["min.insync.replicas"]
	for _, nd := range w.nodes {
		if got := nd.image.Config(&Topic{}, "min.insync.replicas"); got != want {
			t.Errorf("broker %d goes by min.insync.replicas %s, the leader by %s", nd.id, got, want)
		}
	}
	w.stop(l, false)
	for range 60 {
		w.silence2(nil, l)
	}
	for _, nd := range w.others(l) {
		if got := nd.image.Config(&Topic{}, "min.insync.replicas"); got == want {
			t.Errorf("broker %d still goes by the old leader's %s", nd.id, got)
		}
	}
}

// validate_only answers as if, and writes nothing.
func TestValidateOnly(t *testing.T) {
	w, l := leading(t, 3, 15, nil)
	index := l.image.Index
	q := latest(kmsg.NewPtrCreateTopicsRequest())
	qt := kmsg.NewCreateTopicsRequestTopic()
	qt.Topic, qt.NumPartitions, qt.ReplicationFactor = "t", 3, 2
	q.Topics, q.ValidateOnly = append(q.Topics, qt), true
	var got *kmsg.CreateTopicsResponse
	w.ask(l, q, func(r kmsg.Response) { got = r.(*kmsg.CreateTopicsResponse) })
	w.run(20)
	if got == nil || got.Topics[0].ErrorCode != 0 || got.Topics[0].NumPartitions != 3 || got.Topics[0].TopicID != [16]byte{} {
		t.Errorf("%+v, want the topic as it would be, without an id", got)
	}
	if l.image.Index != index {
		t.Errorf("%d entries were written", l.image.Index-index)
	}
}

// One request cannot make an entry of any size.
func TestOversizedRequest(t *testing.T) {
	w, l := leading(t, 3, 16, nil)
	q := latest(kmsg.NewPtrCreateTopicsRequest())
	qt := kmsg.NewCreateTopicsRequestTopic()
	qt.Topic = strings.Repeat("x", 32_000)
	for range maxRequestBytes / 32_000 {
		q.Topics = append(q.Topics, qt)
	}
	q.Topics = append(q.Topics, qt)
	var got *kmsg.CreateTopicsResponse
	w.ask(l, q, func(r kmsg.Response) { got = r.(*kmsg.CreateTopicsResponse) })
	if got == nil || got.Topics[0].ErrorCode != kerr.InvalidRequest.Code {
		t.Errorf("want INVALID_REQUEST at once, got %v", got != nil)
	}
}

// A new cluster need not wait for an election time-out; and who asks while there is a leader disturbs nobody.
func TestCampaign(t *testing.T) {
	w := newWorld(t, 3, 17, nil)
	w.step(w.nodes[1], Campaign{})
	w.deliver()
	if !w.nodes[1].c.IsLeader() {
		t.Fatal("does not lead, though all have heard of the election")
	}
	term := w.nodes[1].c.office.term
	w.step(w.nodes[2], Campaign{})
	w.deliver()
	if !w.nodes[1].c.IsLeader() || w.nodes[1].c.office.term != term {
		t.Error("the leader lost its office to somebody who asked for an election")
	}
}
