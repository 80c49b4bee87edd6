package log

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/histories"
	"ackproof/workloads"
)

// fakeBroker is one partition in memory, led by node 1 and followed by nodes 2 and 3, which have the same log.
type fakeBroker struct {
	log   [][]byte // one batch of records each
	start int64
	end   int64
	seen  map[string]int64 // idempotent batches: where they are
	next  int64            // producer id
	trim  int64            // fetches above it are out of range, if > 0
	fault func(node string, req kmsg.Request) fakeFault
}

// fakeFault is what goes wrong with one request.
type fakeFault struct {
	refuse bool  // the dial fails
	code   int16 // the answer is this code, and nothing is done
	lose   bool  // it is done, and the answer is lost
}

type fakeEnv struct {
	broker *fakeBroker
	clock  *time.Duration
	stop   time.Duration
	rand   *rand.Rand
}

func (e *fakeEnv) Now() time.Duration    { return *e.clock }
func (e *fakeEnv) Sleep(d time.Duration) { *e.clock += d }
func (e *fakeEnv) Rand() *rand.Rand      { return e.rand }
func (e *fakeEnv) Stopped() bool         { return *e.clock >= e.stop }

func (e *fakeEnv) Dial(addr string, _ time.Duration) (workloads.Conn, error) {
	if e.broker.fault(addr, nil).refuse {
		return nil, fmt.Errorf("dial %s: %w", addr, workloads.ErrNotSent)
	}
	return &fakeConn{e, addr}, nil
}

type fakeConn struct {
	e    *fakeEnv
	addr string
}

func (c *fakeConn) Close() {}

func (c *fakeConn) RoundTrip(req kmsg.Request, _ time.Duration) (kmsg.Response, error) {
	*c.e.clock += time.Millisecond
	fault := c.e.broker.fault(c.addr, req)
	resp := c.e.broker.answer(c.addr, req, fault.code)
	if fault.lose {
		return nil, errors.New("connection lost")
	}
	return resp, nil
}

func (b *fakeBroker) answer(addr string, req kmsg.Request, code int16) kmsg.Response {
	switch q := req.(type) {
	case *kmsg.MetadataRequest:
		p := kmsg.NewMetadataResponseTopicPartition()
		p.Leader, p.LeaderEpoch, p.Replicas, p.ISR = 1, 4, []int32{1, 2, 3}, []int32{1, 2, 3}
		topic := kmsg.NewMetadataResponseTopic()
		topic.Topic, topic.Partitions = q.Topics[0].Topic, []kmsg.MetadataResponseTopicPartition{p}
		resp := kmsg.NewPtrMetadataResponse()
		resp.Topics = append(resp.Topics, topic)
		return resp
	case *kmsg.InitProducerIDRequest:
		resp := kmsg.NewPtrInitProducerIDResponse()
		b.next++
		resp.ProducerID, resp.ErrorCode = b.next, code
		return resp
	case *kmsg.ProduceRequest:
		p := kmsg.NewProduceResponseTopicPartition()
		p.ErrorCode = code
		if code == 0 {
			p.BaseOffset = b.append(q.Topics[0].Partitions[0].Records)
		}
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic, topic.Partitions = q.Topics[0].Topic, []kmsg.ProduceResponseTopicPartition{p}
		resp := kmsg.NewPtrProduceResponse()
		resp.Topics = append(resp.Topics, topic)
		return resp
	case *kmsg.FetchRequest:
		p := kmsg.NewFetchResponseTopicPartition()
		p.ErrorCode, p.HighWatermark, p.LogStartOffset = code, b.end, 0
		at := q.Topics[0].Partitions[0].FetchOffset
		if b.trim > 0 && at > b.trim {
			p.ErrorCode = 1
		}
		if p.ErrorCode == 0 {
			p.RecordBatches = b.from(at)
		}
		topic := kmsg.NewFetchResponseTopic()
		topic.Topic, topic.Partitions = q.Topics[0].Topic, []kmsg.FetchResponseTopicPartition{p}
		resp := kmsg.NewPtrFetchResponse()
		resp.Topics = append(resp.Topics, topic)
		return resp
	case *kmsg.ListOffsetsRequest:
		p := kmsg.NewListOffsetsResponseTopicPartition()
		p.ErrorCode, p.LeaderEpoch = code, 4
		if q.Topics[0].Partitions[0].Timestamp == -1 {
			p.Offset = b.end
		} else {
			p.Offset, p.LeaderEpoch = b.start, 1 // Kafka tells the epoch of the record there
		}
		topic := kmsg.NewListOffsetsResponseTopic()
		topic.Topic, topic.Partitions = q.Topics[0].Topic, []kmsg.ListOffsetsResponseTopicPartition{p}
		resp := kmsg.NewPtrListOffsetsResponse()
		resp.Topics = append(resp.Topics, topic)
		return resp
	case *kmsg.DeleteRecordsRequest:
		p := kmsg.NewDeleteRecordsResponseTopicPartition()
		p.ErrorCode = code
		if code == 0 {
			b.start = max(b.start, q.Topics[0].Partitions[0].Offset)
			p.LowWatermark = b.start
		}
		topic := kmsg.NewDeleteRecordsResponseTopic()
		topic.Topic, topic.Partitions = q.Topics[0].Topic, []kmsg.DeleteRecordsResponseTopicPartition{p}
		resp := kmsg.NewPtrDeleteRecordsResponse()
		resp.Topics = append(resp.Topics, topic)
		return resp
	}
	return req.ResponseKind()
}

// append keeps a batch, or finds it if an idempotent producer sends it again.
func (b *fakeBroker) append(raw []byte) int64 {
	be := binary.BigEndian
	key := string(raw[43:57])
	if int64(be.Uint64(raw[43:])) >= 0 {
		if at, ok := b.seen[key]; ok {
			return at
		}
	}
	base := b.end
	kept := bytes.Clone(raw)
	be.PutUint64(kept, uint64(base))
	b.log = append(b.log, kept)
	b.seen[key] = base
	b.end += int64(be.Uint32(raw[57:]))
	return base
}

func (b *fakeBroker) from(offset int64) []byte {
	var out []byte
	for _, batch := range b.log {
		last := int64(binary.BigEndian.Uint64(batch)) + int64(int32(binary.BigEndian.Uint32(batch[23:])))
		if last >= offset {
			out = append(out, batch...)
		}
	}
	return out
}

// world runs clients one after the other against a fakeBroker in virtual time and gives the history, which the Joiner has found well-formed.
type world struct {
	t        *testing.T
	broker   *fakeBroker
	clock    time.Duration
	buffer   bytes.Buffer
	recorder *histories.Recorder
	workload *Workload
	counters *Counters
}

func newWorld(t *testing.T, change func(*Config)) *world {
	w := &world{t: t, broker: &fakeBroker{seen: map[string]int64{}, fault: func(string, kmsg.Request) fakeFault { return fakeFault{} }}}
	cfg := Config{
		Run: 7, Topic: "t", Partitions: 1, Clients: 1, Acks: -1, Idempotent: true,
		RequestTimeout: time.Second, Deadline: 3 * time.Second, DialTimeout: time.Second,
	}
	if change != nil {
		change(&cfg)
	}
	w.recorder = histories.NewRecorderClock(&w.buffer, histories.Header{Run: 7}, func() time.Duration { return w.clock })
	w.counters = NewCounters(1)
	w.workload = New(cfg, w.recorder, w.counters)
	return w
}

// env is the world of one client that is asked to stop after some time.
func (w *world) env(lasts time.Duration) *fakeEnv {
	return &fakeEnv{w.broker, &w.clock, w.clock + lasts, rand.New(rand.NewPCG(1, 2))}
}

// work runs one kind of client for some virtual time.
func (w *world) work(name string, lasts time.Duration) {
	w.t.Helper()
	for _, worker := range slices.Concat(w.workload.Workers(), w.workload.Deleters()) {
		if worker.Name == name {
			worker.Run(w.env(lasts), map[int32]string{1: "n1", 2: "n2", 3: "n3"})
			return
		}
	}
	w.t.Fatalf("there is no client called %q", name)
}

// operation is an invocation with its completion.
type operation struct{ invoke, end histories.Event }

func (w *world) history() []operation {
	w.t.Helper()
	if err := w.recorder.Close(); err != nil {
		w.t.Fatal(err)
	}
	in, err := histories.NewReader(bytes.NewReader(w.buffer.Bytes()))
	if err != nil {
		w.t.Fatal(err)
	}
	joiner := histories.NewJoiner()
	var ops []operation
	for {
		var ev histories.Event
		if err := in.Next(&ev); err == io.EOF {
			return ops
		} else if err != nil {
			w.t.Fatal(err)
		}
		at, err := joiner.Join(&ev)
		if err != nil {
			w.t.Fatal(err)
		}
		if ev.Type == histories.Invoke {
			ops = append(ops, operation{invoke: ev})
		} else {
			ops[at].end = ev
		}
	}
}
