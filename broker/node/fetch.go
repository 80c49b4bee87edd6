package node

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/core/host"
	"ackproof/broker/core/partition"
	"ackproof/broker/storage"
	"ackproof/broker/wire"
)

// fetch is a Fetch request under way. All partitions are asked at once; if there is too little, it registers with every partition, and reads all again when it is woken or its time is over.
// That is done by whoever wakes it.
type fetch struct {
	node     *Node
	view     *view
	resp     *wire.FetchResponse
	slots    []fetchSlot
	minBytes int
	maxBytes int
	deadline time.Time
	follower bool
	late     atomic.Bool // it has waited long enough for records to come with its news

	mu     sync.Mutex
	trying bool   // somebody reads
	again  bool   // there is a reason to read again
	last   bool   // the time is over: the answer is what there is
	over   bool   // answered, or given up
	given  bool   // given up: nobody takes the answer
	ready  func() // to be called when it is answered
	timer  *time.Timer
}

// fetchSlot is one partition of a fetch; it is the token of its inputs.
type fetchSlot struct {
	fetch    *fetch
	replica  *replica // nil: answered already
	ask      partition.Fetch
	maxBytes int
	into     *wire.FetchPartition
	reply    partition.FetchReply // of the last step, written by the goroutine that made it
}

// fetchToken is the token of a partition.Fetch.
type fetchToken interface {
	answer(partition.FetchReply)
	wake()
	news()
}

func (s *fetchSlot) answer(e partition.FetchReply) { s.reply = e }

// wake is called by whoever makes the step that gives the fetch something to read. A follower is answered before that goes on, since a record waits for it; consumers, of which there may be
// many, are not.
func (s *fetchSlot) wake() {
	if s.fetch.follower {
		s.fetch.look(false)
	} else {
		go s.fetch.look(false)
	}
}

func (s *fetchSlot) news() { s.fetch.node.late.add(s.fetch) }

// handleFetch asks every partition, in the reader's goroutine: a follower's fetch is also its report of what it holds (R1), and takes effect in
// order.
func (n *Node) handleFetch(q *kmsg.FetchRequest) wire.Pending {
	f := &fetch{node: n, view: n.view.Load(), minBytes: int(q.MinBytes), maxBytes: int(q.MaxBytes), trying: true}
	f.resp = &wire.FetchResponse{Version: q.Version, Topics: make([]wire.FetchTopic, len(q.Topics))}
	if q.Version >= 7 && q.SessionEpoch > 0 {
		// We never gave a session id, so this can only be another broker's.
		f.resp.ErrorCode, f.resp.Topics = kerr.FetchSessionIDNotFound.Code, nil
		return wire.Ready(f.resp)
	}
	replica, _ := host.Asker(q)
	if f.follower = replica >= 0; !f.follower {
		f.maxBytes = min(f.maxBytes, int(n.cfg.ConsumerMaxBytes))
	}
	count := 0
	for i := range q.Topics {
		count += len(q.Topics[i].Partitions)
	}
	f.slots = make([]fetchSlot, 0, count)
	for i := range q.Topics {
		in, out := &q.Topics[i], &f.resp.Topics[i]
		out.Name, out.ID = in.Topic, in.TopicID
		out.Partitions = make([]wire.FetchPartition, len(in.Partitions))
		for j := range in.Partitions {
			p, into := &in.Partitions[j], &out.Partitions[j]
			*into = wire.FetchPartition{Partition: p.Partition, HighWatermark: -1, LogStart: -1, Leader: -1, LeaderEpoch: -1}
			r, hint, code := n.find(f.view, topicRef{in.Topic, in.TopicID, q.Version >= 13}, p.Partition)
			if code != nil {
				into.ErrorCode, into.Leader, into.LeaderEpoch = code.Code, hint.leader, hint.epoch
				f.minBytes = 0 // an error is a reason to answer
				continue
			}
			into.NullAborted = q.IsolationLevel == 0 // as in Kafka, which says null of partitions that it has looked at for such readers
			f.slots = append(f.slots, fetchSlot{
				fetch: f, replica: r, into: into, maxBytes: int(max(p.PartitionMaxBytes, 0)),
				ask: host.Question(q, p),
			})
		}
	}
	f.minBytes = min(f.minBytes, f.maxBytes)
	wait := time.Duration(max(q.MaxWaitMillis, 0)) * time.Millisecond
	f.deadline = time.Now().Add(wait)
	if f.try(wait == 0 || len(f.slots) == 0) {
		f.trying, f.over = false, true
	} else {
		f.goOn()
	}
	return f
}

// Then implements wire.Prompt.
func (f *fetch) Then(ready func()) {
	f.mu.Lock()
	over := f.over
	if !over {
		f.ready = ready
		f.timer = time.AfterFunc(time.Until(f.deadline), func() { f.look(true) })
	}
	f.mu.Unlock()
	if over {
		ready()
	}
}

// Wait implements wire.Pending.
func (f *fetch) Wait(ctx context.Context) (any, error) {
	f.mu.Lock()
	if !f.over {
		// Nobody takes the answer. Whoever reads at the moment frees what is held.
		f.over, f.given = true, true
		f.stopTimer()
		trying := f.trying
		f.mu.Unlock()
		if !trying {
			f.cancel()
		}
		return nil, ctx.Err()
	}
	f.mu.Unlock()
	hints := hints{view: f.view}
	for i := range f.resp.Topics {
		for j := range f.resp.Topics[i].Partitions {
			hints.add(f.resp.Topics[i].Partitions[j].Leader)
		}
	}
	for _, b := range hints.brokers() {
		f.resp.Brokers = append(f.resp.Brokers, kmsg.FetchResponseBroker{NodeID: b.ID, Host: b.Host, Port: b.Port, Rack: rack(b)})
	}
	return f.resp, nil
}

func (f *fetch) stopTimer() {
	if f.timer != nil {
		f.timer.Stop()
	}
}

// look reads again, unless somebody does: then that one will. With last set, the time is over.
func (f *fetch) look(last bool) {
	f.mu.Lock()
	f.again, f.last = true, f.last || last
	mine := !f.trying && !f.over
	f.trying = f.trying || mine
	f.mu.Unlock()
	if mine {
		f.goOn()
	}
}

// goOn reads until there is enough to answer, or no reason to read again. The caller has set trying.
func (f *fetch) goOn() {
	for {
		f.mu.Lock()
		if f.over || !f.again {
			f.trying = false
			given := f.given
			f.mu.Unlock()
			if given {
				f.cancel()
			}
			return
		}
		f.again = false
		last := f.last
		f.mu.Unlock()
		f.cancel()
		if f.try(last) {
			break
		}
	}
	f.mu.Lock()
	f.trying, f.over = false, true
	f.stopTimer()
	ready, given := f.ready, f.given
	f.mu.Unlock()
	switch {
	case given:
		f.resp.Release()
	case ready != nil:
		ready()
	}
}

// try asks every partition and reads. It tells whether there is enough to answer: min bytes, an error, a diverging epoch, news for a follower. If
// not, nothing is read and the fetch is registered with every partition. With last set, the answer is what there is.
func (f *fetch) try(last bool) bool {
	left, got, enough := f.maxBytes, 0, f.minBytes <= 0 || last
	for i := range f.slots {
		s := &f.slots[i]
		ask := s.ask
		ask.Token = s
		// A follower registers in the same step, since its replica knows what is news to it. A consumer may want more than one batch, so it registers
		// later.
		ask.Wait = !last && ask.Replica >= 0
		ask.Patient = !f.late.Load()
		s.replica.step(ask)
		n, stop := s.take(left)
		left, got = left-n, got+n
		enough = enough || stop || (ask.Wait && !s.reply.Registered)
	}
	if enough || got >= f.minBytes {
		f.cancel()
		return true
	}
	for i := range f.slots {
		f.slots[i].into.Records.Release()
		f.slots[i].into.Records = storage.Records{}
	}
	f.register()
	return false
}

// take turns the replica's reply into the answer and reads up to left bytes. stop tells that the answer must not wait.
func (s *fetchSlot) take(left int) (n int, stop bool) {
	reply, into := &s.reply, s.into
	into.ErrorCode, into.HighWatermark, into.LogStart = reply.Code, reply.HighWatermark, reply.LogStart
	into.Diverging, into.Leader, into.LeaderEpoch = reply.Diverging, reply.Leader, reply.LeaderEpoch
	if reply.Code != 0 || reply.Diverging != nil {
		return 0, true
	}
	// KIP-74: the first partition with data gives at least one batch, whatever the limits say; the others only within what is left.
	if reply.UpTo > reply.Offset && (left > 0 || left == s.fetch.maxBytes) {
		records, err := s.replica.read(reply.Offset, reply.UpTo, max(0, min(left, s.maxBytes)))
		switch {
		case errors.Is(err, storage.ErrOutOfRange):
			into.ErrorCode = kerr.OffsetOutOfRange.Code // DeleteRecords came between
			return 0, true
		case err != nil:
			into.ErrorCode = kerr.KafkaStorageError.Code
			s.fetch.node.log.Error("read failed", "partition", s.replica.String(), "offset", reply.Offset, "error", err)
			return 0, true
		case records.Len() > left && left < s.fetch.maxBytes:
			records.Release() // a single batch that is too large for the rest: the next fetch begins elsewhere
		default:
			into.Records = records
			return records.Len(), false
		}
	}
	return 0, false
}

// register asks every partition to wake the fetch, from the end of what may be read now. A partition that has something by now is not registered:
// that is a wake-up at once (R6).
func (f *fetch) register() {
	for i := range f.slots {
		s := &f.slots[i]
		if s.reply.Registered {
			continue
		}
		ask := s.ask
		ask.Token, ask.Wait = s, true
		if s.reply.UpTo > ask.Offset {
			ask.Offset, ask.LastFetchedEpoch = s.reply.UpTo, -1 // there is something, but less than min bytes: wait for more
		}
		s.replica.step(ask)
		if !s.reply.Registered {
			f.look(false)
			return
		}
	}
}

// cancel forgets all registrations.
func (f *fetch) cancel() {
	for i := range f.slots {
		if s := &f.slots[i]; s.reply.Registered {
			s.replica.step(partition.CancelFetch{Token: s})
			s.reply.Registered = false
		}
	}
}
