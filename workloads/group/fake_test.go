package group

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/histories"
	"ackproof/workloads"
	"ackproof/workloads/log"
)

// world runs clients as coroutines in virtual time, one at a time, against a broker in memory. The same seed gives the same run.
type world struct {
	t        *testing.T
	broker   *fakeBroker
	now      time.Duration
	tasks    []*task
	yielded  chan struct{}
	buffer   bytes.Buffer
	recorder *histories.Recorder
	workload *Workload
	cfg      Config
}

// task is one client.
type task struct {
	wake   time.Duration
	resume chan struct{}
	done   bool
}

const fakePartitions = 3

func newWorld(t *testing.T, change func(*Config)) *world {
	w := &world{t: t, yielded: make(chan struct{})}
	w.cfg = Config{
		Log: log.Config{
			Run: 7, Topic: "t", TopicID: [16]byte{9}, Partitions: fakePartitions, Clients: 4, Acks: -1, Idempotent: true, Rate: 300,
			RequestTimeout: time.Second, Deadline: 3 * time.Second, DialTimeout: time.Second,
		},
		Groups: Groups(7), Members: 3, Session: 2 * time.Second, Rebalance: 2 * time.Second, Heartbeat: 250 * time.Millisecond,
	}
	if change != nil {
		change(&w.cfg)
	}
	w.broker = newFakeBroker(w)
	w.recorder = histories.NewRecorderClock(&w.buffer, histories.Header{Run: 7}, func() time.Duration { return w.now })
	w.workload = New(w.cfg, log.New(w.cfg.Log, w.recorder, log.NewCounters(fakePartitions)), w.recorder)
	return w
}

var fakeLinks = map[int32]string{1: "n1", 2: "n2", 3: "n3"}

// begin starts a client that is asked to stop at a moment.
func (w *world) begin(stop time.Duration, run func(env workloads.Env)) {
	t := &task{wake: w.now, resume: make(chan struct{})}
	env := &fakeEnv{w, t, stop, rand.New(rand.NewPCG(3, uint64(len(w.tasks))))}
	w.tasks = append(w.tasks, t)
	go func() {
		<-t.resume
		run(env)
		t.done = true
		w.yielded <- struct{}{}
	}()
}

// run lets the clients work until all have ended.
func (w *world) run() {
	w.t.Helper()
	for {
		var next *task
		for _, t := range w.tasks {
			if !t.done && (next == nil || t.wake < next.wake) {
				next = t
			}
		}
		if next == nil {
			w.tasks = nil
			return
		}
		w.now = max(w.now, next.wake)
		next.resume <- struct{}{}
		<-w.yielded
	}
}

// load runs all clients of the workload.
func (w *world) load(lasts time.Duration) {
	w.t.Helper()
	for _, worker := range w.workload.Workers() {
		w.begin(w.now+lasts, func(env workloads.Env) { worker.Run(env, fakeLinks) })
	}
	w.run()
}

// drain lets every group read to the end and gives what they complain of.
func (w *world) drain() (problems []string) {
	for _, g := range w.cfg.Groups {
		w.begin(w.now+time.Hour, func(env workloads.Env) {
			if p := w.workload.Drain(g, env, fakeLinks, 30*time.Second); p != "" {
				problems = append(problems, p)
			}
		})
	}
	w.run()
	return problems
}

// history is everything so far, in the form that checkers take.
func (w *world) history() iter.Seq2[histories.Event, error] {
	w.t.Helper()
	if err := w.recorder.Flush(); err != nil {
		w.t.Fatal(err)
	}
	raw := bytes.Clone(w.buffer.Bytes())
	return func(yield func(histories.Event, error) bool) {
		in, err := histories.NewReader(bytes.NewReader(raw))
		if err != nil {
			yield(histories.Event{}, err)
			return
		}
		for {
			var ev histories.Event
			if err := in.Next(&ev); err == io.EOF {
				return
			} else if !yield(ev, err) || err != nil {
				return
			}
		}
	}
}

// fakeEnv is the world of one client.
type fakeEnv struct {
	w    *world
	t    *task
	stop time.Duration
	rand *rand.Rand
}

func (e *fakeEnv) Now() time.Duration { return e.w.now }
func (e *fakeEnv) Rand() *rand.Rand   { return e.rand }
func (e *fakeEnv) Stopped() bool      { return e.w.now >= e.stop }

func (e *fakeEnv) Sleep(d time.Duration) {
	if e.w.now+d > e.stop {
		d = max(0, e.stop-e.w.now)
	}
	e.pass(d)
}

// pass lets the others go on for a while.
func (e *fakeEnv) pass(d time.Duration) {
	e.t.wake = e.w.now + d
	e.w.yielded <- struct{}{}
	<-e.t.resume
}

func (e *fakeEnv) Dial(addr string, _ time.Duration) (workloads.Conn, error) {
	if e.w.broker.fault(addr, nil).refuse {
		e.pass(time.Millisecond)
		return nil, fmt.Errorf("dial %s: %w", addr, workloads.ErrNotSent)
	}
	return &fakeConn{e, addr}, nil
}

type fakeConn struct {
	e    *fakeEnv
	addr string
}

func (c *fakeConn) Close() {}

func (c *fakeConn) RoundTrip(req kmsg.Request, timeout time.Duration) (kmsg.Response, error) {
	c.e.pass(time.Millisecond)
	b := c.e.w.broker
	fault := b.fault(c.addr, req)
	if f, ok := req.(*kmsg.FetchRequest); ok && b.logs[f.Topics[0].Partitions[0].Partition].end == f.Topics[0].Partitions[0].FetchOffset {
		c.e.pass(time.Duration(f.MaxWaitMillis) * time.Millisecond)
	}
	var resp kmsg.Response
	if join, ok := req.(*kmsg.JoinGroupRequest); ok && fault.code == 0 {
		resp = b.groups[join.Group].join(c.e, join)
	} else {
		resp = b.answer(req, fault.code)
	}
	if fault.lose || resp == nil {
		return nil, errors.New("connection lost")
	}
	c.e.pass(time.Millisecond)
	return resp, nil
}

// fakeFault is what goes wrong with one request.
type fakeFault struct {
	refuse bool  // the dial fails
	code   int16 // the answer is this code, and nothing is done
	lose   bool  // it is done, and the answer is lost
}

// fakeBroker has every partition and every group; it passes for three nodes.
type fakeBroker struct {
	w      *world
	logs   [fakePartitions]fakeLog
	seen   map[string]int64 // idempotent batches: where they are
	next   int64            // producer id
	groups map[string]*fakeGroup
	fault  func(node string, req kmsg.Request) fakeFault
}

type fakeLog struct {
	batches [][]byte
	end     int64
}

func newFakeBroker(w *world) *fakeBroker {
	b := &fakeBroker{w: w, seen: map[string]int64{}, groups: map[string]*fakeGroup{}, fault: func(string, kmsg.Request) fakeFault { return fakeFault{} }}
	for _, g := range w.cfg.Groups {
		b.groups[g.Name] = &fakeGroup{w: w, members: map[string]*fakeMember{}, committed: map[int32]fakeOffset{}, owner: map[int32]string{}}
	}
	return b
}

func (b *fakeBroker) answer(req kmsg.Request, code int16) kmsg.Response {
	resp := req.ResponseKind()
	switch q := req.(type) {
	case *kmsg.MetadataRequest:
		topic := kmsg.NewMetadataResponseTopic()
		topic.Topic = q.Topics[0].Topic
		for i := range b.logs {
			p := kmsg.NewMetadataResponseTopicPartition()
			p.Partition, p.Leader, p.LeaderEpoch, p.Replicas, p.ISR = int32(i), int32(i)%3+1, 4, []int32{1, 2, 3}, []int32{1, 2, 3}
			topic.Partitions = append(topic.Partitions, p)
		}
		resp.(*kmsg.MetadataResponse).Topics = append(resp.(*kmsg.MetadataResponse).Topics, topic)
	case *kmsg.InitProducerIDRequest:
		b.next++
		resp.(*kmsg.InitProducerIDResponse).ProducerID = b.next
	case *kmsg.ProduceRequest:
		p := kmsg.NewProduceResponseTopicPartition()
		p.Partition, p.ErrorCode = q.Topics[0].Partitions[0].Partition, code
		if code == 0 {
			p.BaseOffset = b.append(p.Partition, q.Topics[0].Partitions[0].Records)
		}
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic, topic.Partitions = q.Topics[0].Topic, []kmsg.ProduceResponseTopicPartition{p}
		resp.(*kmsg.ProduceResponse).Topics = append(resp.(*kmsg.ProduceResponse).Topics, topic)
	case *kmsg.FetchRequest:
		p := kmsg.NewFetchResponseTopicPartition()
		p.Partition, p.ErrorCode = q.Topics[0].Partitions[0].Partition, code
		p.HighWatermark, p.LogStartOffset = b.logs[p.Partition].end, 0
		if code == 0 {
			p.RecordBatches = b.logs[p.Partition].from(q.Topics[0].Partitions[0].FetchOffset)
		}
		topic := kmsg.NewFetchResponseTopic()
		topic.Topic, topic.Partitions = q.Topics[0].Topic, []kmsg.FetchResponseTopicPartition{p}
		resp.(*kmsg.FetchResponse).Topics = append(resp.(*kmsg.FetchResponse).Topics, topic)
	case *kmsg.ListOffsetsRequest:
		p := kmsg.NewListOffsetsResponseTopicPartition()
		p.Partition, p.ErrorCode, p.LeaderEpoch, p.Offset = q.Topics[0].Partitions[0].Partition, code, 4, 0
		if q.Topics[0].Partitions[0].Timestamp == -1 {
			p.Offset = b.logs[p.Partition].end
		}
		topic := kmsg.NewListOffsetsResponseTopic()
		topic.Topic, topic.Partitions = q.Topics[0].Topic, []kmsg.ListOffsetsResponseTopicPartition{p}
		resp.(*kmsg.ListOffsetsResponse).Topics = append(resp.(*kmsg.ListOffsetsResponse).Topics, topic)
	case *kmsg.FindCoordinatorRequest:
		resp.(*kmsg.FindCoordinatorResponse).NodeID = 2
	case *kmsg.JoinGroupRequest: // those that are not refused wait; see join
		resp.(*kmsg.JoinGroupResponse).ErrorCode = code
	case *kmsg.SyncGroupRequest:
		return b.groups[q.Group].sync(q, code)
	case *kmsg.HeartbeatRequest:
		resp.(*kmsg.HeartbeatResponse).ErrorCode = code
		if code == 0 {
			resp.(*kmsg.HeartbeatResponse).ErrorCode = b.groups[q.Group].beat(q)
		}
	case *kmsg.LeaveGroupRequest:
		b.groups[q.Group].remove(q.Members[0].MemberID)
		resp.(*kmsg.LeaveGroupResponse).Members = []kmsg.LeaveGroupResponseMember{{MemberID: q.Members[0].MemberID}}
	case *kmsg.ConsumerGroupHeartbeatRequest:
		return b.groups[q.Group].consumerBeat(q, code)
	case *kmsg.OffsetCommitRequest:
		return b.groups[q.Group].commit(q, code)
	case *kmsg.OffsetFetchRequest:
		return b.fetchOffsets(q, code)
	}
	return resp
}

func (b *fakeBroker) append(partition int32, raw []byte) int64 {
	be, l := binary.BigEndian, &b.logs[partition]
	key := fmt.Sprint(partition, raw[43:57])
	if int64(be.Uint64(raw[43:])) >= 0 {
		if at, ok := b.seen[key]; ok {
			return at
		}
	}
	base, kept := l.end, bytes.Clone(raw)
	be.PutUint64(kept, uint64(base))
	l.batches = append(l.batches, kept)
	b.seen[key] = base
	l.end += int64(be.Uint32(raw[57:]))
	return base
}

// from gives some batches from an offset on.
func (l *fakeLog) from(offset int64) (out []byte) {
	last := func(batch []byte) int64 {
		return int64(binary.BigEndian.Uint64(batch)) + int64(int32(binary.BigEndian.Uint32(batch[23:])))
	}
	at, _ := slices.BinarySearchFunc(l.batches, offset, func(batch []byte, o int64) int { return int(last(batch) - o) })
	for _, batch := range l.batches[at:] {
		if len(out) > 16<<10 {
			break
		}
		out = append(out, batch...)
	}
	return out
}
