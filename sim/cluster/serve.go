package cluster

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.etcd.io/raft/v3/raftpb"

	"ackproof/broker/core/controller"
	"ackproof/broker/core/host"
	"ackproof/broker/core/partition"
	"ackproof/broker/record"
	"ackproof/broker/storage"
	"ackproof/sim/world"
)

// serve takes one message of a connection: a request of Kafka's protocol as kmsg's struct, which is not changed, or a message of raft.
func (b *broker) serve(conn *world.Conn, l *line, m any) {
	if q, ok := m.(*raftpb.Message); ok {
		if b.known(conn.Dialer()) {
			b.control.offer(controller.Message{Message: q})
		}
		return
	}
	c := l.join(conn)
	switch q := m.(type) {
	case *kmsg.ApiVersionsRequest:
		c.Reply(q.ResponseKind())
	case *kmsg.ProduceRequest:
		b.produce(c, q)
	case *kmsg.FetchRequest:
		b.fetch(c, q)
	case *kmsg.MetadataRequest:
		b.metadata(c, q)
	case *kmsg.ListOffsetsRequest:
		c.Reply(b.listOffsets(q))
	case *kmsg.OffsetForLeaderEpochRequest:
		c.Reply(b.epochEnds(q))
	case *kmsg.DeleteRecordsRequest:
		b.deleteRecords(c, q)
	case *kmsg.InitProducerIDRequest:
		b.initProducerID(c, q)
	case *kmsg.FindCoordinatorRequest:
		b.findCoordinator(c, q)
	case *kmsg.JoinGroupRequest, *kmsg.SyncGroupRequest, *kmsg.HeartbeatRequest, *kmsg.LeaveGroupRequest, *kmsg.OffsetCommitRequest, *kmsg.OffsetFetchRequest, *kmsg.OffsetDeleteRequest,
		*kmsg.ListGroupsRequest, *kmsg.DescribeGroupsRequest, *kmsg.DeleteGroupsRequest, *kmsg.ConsumerGroupHeartbeatRequest, *kmsg.ConsumerGroupDescribeRequest:
		b.groups(c, q.(kmsg.Request))
	case kmsg.Request: // the brokers' own, and those of an administrator
		b.control.request(q, func(r kmsg.Response) {
			if r == nil {
				c.Refuse()
				return
			}
			c.Reply(r)
		})
	}
}

// lookUp finds this broker's replica of a partition, or an error and who leads.
func (b *broker) lookUp(name string, id [16]byte, byID bool, index int32) (*replica, int16, *controller.Partition) {
	var t *controller.Topic
	unknown := kerr.UnknownTopicOrPartition
	if byID {
		t, unknown = b.view.TopicByID(id), kerr.UnknownTopicID
	} else {
		t = b.view.Topics[name]
	}
	if t == nil {
		if b.applied < 0 {
			unknown = kerr.NotLeaderForPartition // it has just started and knows nothing yet
		}
		return nil, unknown.Code, nil
	}
	if index < 0 || int(index) >= len(t.Partitions) {
		return nil, kerr.UnknownTopicOrPartition.Code, nil
	}
	if r := b.find(key{t.ID, index}); r != nil {
		return r, 0, nil
	}
	return nil, kerr.NotLeaderForPartition.Code, t.Partitions[index]
}

// produce is a Produce request under way.
func (b *broker) produce(c *turn, q *kmsg.ProduceRequest) {
	p := &produce{c: c, resp: q.ResponseKind().(*kmsg.ProduceResponse), acks: q.Acks, left: 1}
	deadline := b.n.clock().Add(time.Duration(max(q.TimeoutMillis, 0)) * time.Millisecond)
	for i := range q.Topics {
		in := &q.Topics[i]
		out := kmsg.NewProduceResponseTopic()
		out.Topic, out.TopicID = in.Topic, in.TopicID
		out.Partitions = make([]kmsg.ProduceResponseTopicPartition, len(in.Partitions))
		p.resp.Topics = append(p.resp.Topics, out)
		for j := range in.Partitions {
			slot := &produceSlot{p, &out.Partitions[j]}
			*slot.into = kmsg.NewProduceResponseTopicPartition()
			slot.into.Partition, slot.into.BaseOffset = in.Partitions[j].Partition, -1
			p.left++
			r, code, at := b.lookUp(in.Topic, in.TopicID, q.Version >= 13, in.Partitions[j].Partition)
			if code != 0 {
				if at != nil {
					slot.into.CurrentLeader.LeaderID, slot.into.CurrentLeader.LeaderEpoch = at.Leader, at.LeaderEpoch
				}
				slot.fail(code)
				continue
			}
			// S8: the checksum is checked here. The bytes are the request's own, as after a socket: the log patches their header.
			batch, rest, err := record.Parse(slices.Clone(in.Partitions[j].Records))
			switch {
			case errors.Is(err, record.ErrMagic):
				slot.fail(kerr.UnsupportedForMessageFormat.Code)
			case err != nil:
				slot.fail(kerr.CorruptMessage.Code)
			case len(rest) > 0:
				slot.fail(kerr.InvalidRecord.Code)
			default:
				r.step(partition.Produce{Token: slot, Batch: batch, Acks: q.Acks, Deadline: deadline})
			}
		}
	}
	p.finish()
}

type produce struct {
	c    *turn
	resp *kmsg.ProduceResponse
	acks int16
	left int
}

// produceSlot is the place of one partition in the answer; it is the token of its Produce.
type produceSlot struct {
	p    *produce
	into *kmsg.ProduceResponseTopicPartition
}

func (s *produceSlot) fail(code int16) {
	s.into.ErrorCode = code
	s.p.finish()
}

func (s *produceSlot) reply(e partition.ProduceReply) {
	s.into.ErrorCode, s.into.BaseOffset, s.into.LogStartOffset = e.Code, e.BaseOffset, e.LogStart
	s.into.CurrentLeader.LeaderID, s.into.CurrentLeader.LeaderEpoch = e.Leader, e.LeaderEpoch
	s.p.finish()
}

func (p *produce) finish() {
	if p.left--; p.left > 0 {
		return
	}
	if p.acks != 0 {
		p.c.Reply(p.resp)
		return
	}
	p.c.Skip()
	for _, t := range p.resp.Topics {
		for _, o := range t.Partitions {
			if o.ErrorCode != 0 {
				p.c.Refuse() // that is how Kafka tells a producer that does not listen
				return
			}
		}
	}
}

func (b *broker) metadata(c *turn, q *kmsg.MetadataRequest) {
	answer := func() {
		resp := q.ResponseKind().(*kmsg.MetadataResponse)
		resp.Default()
		resp.ControllerID = b.control.lead
		for _, id := range slices.Sorted(maps.Keys(b.view.Brokers)) {
			if r := b.view.Brokers[id]; !r.Fenced {
				o := kmsg.NewMetadataResponseBroker()
				o.NodeID, o.Host, o.Port = r.ID, r.Host, r.Port
				resp.Brokers = append(resp.Brokers, o)
			}
		}
		for _, asked := range q.Topics {
			t := b.view.Topics[*asked.Topic]
			if t == nil {
				o := kmsg.NewMetadataResponseTopic()
				o.Topic, o.ErrorCode = asked.Topic, kerr.UnknownTopicOrPartition.Code
				resp.Topics = append(resp.Topics, o)
				continue
			}
			resp.Topics = append(resp.Topics, host.DescribeTopic(b.view, t))
		}
		c.Reply(resp)
	}
	if b.applied >= 0 {
		answer()
		return
	}
	// Before the view has this broker's own registration it may be of another age.
	b.n.c.w.Go(b.n.process, func(t *world.Task) {
		for b.applied < 0 {
			t.Wait(&b.viewNews, world.Forever)
		}
		answer()
	})
}

func (b *broker) listOffsets(q *kmsg.ListOffsetsRequest) kmsg.Response {
	resp := q.ResponseKind().(*kmsg.ListOffsetsResponse)
	for _, t := range q.Topics {
		out := kmsg.NewListOffsetsResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			o := kmsg.NewListOffsetsResponseTopicPartition()
			o.Partition, o.Offset, o.Timestamp, o.LeaderEpoch = p.Partition, -1, -1, -1
			r, code, _ := b.lookUp(t.Topic, [16]byte{}, false, p.Partition)
			if o.ErrorCode = code; code == 0 {
				var reply partition.OffsetReply
				r.step(partition.ListOffsets{Token: &reply, Replica: q.ReplicaID, LeaderEpoch: p.CurrentLeaderEpoch, Timestamp: p.Timestamp})
				o.ErrorCode, o.Offset, o.LeaderEpoch = reply.Code, reply.Offset, reply.LeaderEpoch
			}
			out.Partitions = append(out.Partitions, o)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

func (b *broker) epochEnds(q *kmsg.OffsetForLeaderEpochRequest) kmsg.Response {
	resp := q.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
	for _, t := range q.Topics {
		out := kmsg.NewOffsetForLeaderEpochResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			o := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			o.Partition, o.LeaderEpoch, o.EndOffset = p.Partition, -1, -1
			r, code, _ := b.lookUp(t.Topic, [16]byte{}, false, p.Partition)
			if o.ErrorCode = code; code == 0 {
				var reply partition.EpochEndReply
				r.step(partition.EpochEnd{Token: &reply, LeaderEpoch: p.CurrentLeaderEpoch, Epoch: p.LeaderEpoch})
				o.ErrorCode, o.LeaderEpoch, o.EndOffset = reply.Code, reply.Epoch, reply.EndOffset
			}
			out.Partitions = append(out.Partitions, o)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

// requestTime is a broker's default for its own requests.
const requestTime = 30 * time.Second

// initProducerID hands out ids from blocks that the controller gives (R30). What is left of a block when the broker dies is never used.
func (b *broker) initProducerID(c *turn, q *kmsg.InitProducerIDRequest) {
	answer := func() {
		resp := q.ResponseKind().(*kmsg.InitProducerIDResponse)
		resp.ProducerID, resp.ProducerEpoch = b.producers.next, 0
		b.producers.next++
		c.Reply(resp)
	}
	if b.producers.next < b.producers.end {
		answer()
		return
	}
	b.n.c.w.Go(b.n.process, func(t *world.Task) {
		a := &asker{b: b}
		defer a.drop()
		for b.producers.next >= b.producers.end {
			ask := kmsg.NewPtrAllocateProducerIDsRequest()
			ask.BrokerID, ask.BrokerEpoch = b.n.id, b.epoch
			r, _ := a.until(t, ask, requestTime).(*kmsg.AllocateProducerIDsResponse)
			if b.producers.next < b.producers.end {
				break // somebody else has fetched a block meanwhile; this one is left
			}
			if b.epoch < 0 || r == nil || r.ErrorCode != 0 || r.ProducerIDLen < 1 {
				resp := q.ResponseKind().(*kmsg.InitProducerIDResponse)
				resp.ProducerID, resp.ProducerEpoch, resp.ErrorCode = -1, -1, kerr.CoordinatorLoadInProgress.Code
				c.Reply(resp)
				return
			}
			b.producers.next, b.producers.end = r.ProducerIDStart, r.ProducerIDStart+int64(r.ProducerIDLen)
		}
		answer()
	})
}

// fetch is a Fetch request under way: all partitions are asked at once; if there is too little, it registers with every partition, waits for a wake-up or
// its time, and reads all again.
type fetch struct {
	b        *broker
	c        *turn
	resp     *kmsg.FetchResponse
	slots    []*fetchSlot
	minBytes int
	maxBytes int
	timer    *world.Event
	woken    bool
	waiting  bool
	late     bool // it has news for a follower and waits no longer
}

// fetchSlot is one partition of a fetch; it is the token of its inputs.
type fetchSlot struct {
	fetch    *fetch
	replica  *replica
	ask      partition.Fetch
	maxBytes int
	into     *kmsg.FetchResponseTopicPartition
	reply    partition.FetchReply
}

func (b *broker) fetch(c *turn, q *kmsg.FetchRequest) {
	f := &fetch{b: b, c: c, resp: q.ResponseKind().(*kmsg.FetchResponse), minBytes: int(q.MinBytes), maxBytes: int(q.MaxBytes)}
	f.resp.Topics = make([]kmsg.FetchResponseTopic, len(q.Topics))
	for i := range q.Topics {
		in, out := &q.Topics[i], &f.resp.Topics[i]
		out.Topic, out.TopicID = in.Topic, in.TopicID
		out.Partitions = make([]kmsg.FetchResponseTopicPartition, len(in.Partitions))
		for j := range in.Partitions {
			p, into := &in.Partitions[j], &out.Partitions[j]
			*into = kmsg.NewFetchResponseTopicPartition()
			into.Partition, into.HighWatermark, into.LogStartOffset = p.Partition, -1, -1
			r, code, at := b.lookUp(in.Topic, in.TopicID, q.Version >= 13, p.Partition)
			if code != 0 {
				into.ErrorCode = code
				if at != nil {
					into.CurrentLeader.LeaderID, into.CurrentLeader.LeaderEpoch = at.Leader, at.LeaderEpoch
				}
				f.minBytes = 0 // an error is a reason to answer
				continue
			}
			f.slots = append(f.slots, &fetchSlot{fetch: f, replica: r, into: into, maxBytes: int(max(p.PartitionMaxBytes, 0)), ask: host.Question(q, p)})
		}
	}
	f.minBytes = min(f.minBytes, f.maxBytes)
	wait := time.Duration(max(q.MaxWaitMillis, 0)) * time.Millisecond
	if f.try(wait == 0 || len(f.slots) == 0) {
		c.Reply(f.resp)
		return
	}
	f.waiting = true
	f.timer = b.n.c.w.After(b.n.scaled(wait), b.n.process, func() {
		f.cancel()
		f.try(true)
		f.answer()
	})
	f.look()
}

func (s *fetchSlot) answer(e partition.FetchReply) { s.reply = e }
func (s *fetchSlot) wake()                         { s.fetch.wake() }

func (f *fetch) answer() {
	f.waiting = false
	f.b.n.c.w.Cancel(f.timer)
	f.c.Reply(f.resp)
}

// news is told of a newer high watermark, within a step of its own or of another's. Here it is answered at once: the pause of a real broker (host.NewsPause) is one of the delays that the
// network has anyway.
func (f *fetch) news() {
	f.late = true
	f.wake()
}

// wake is called in the midst of another step: the look comes behind it.
func (f *fetch) wake() {
	if !f.woken {
		f.woken = true
		f.look()
	}
}

// look reads again once it has been woken.
func (f *fetch) look() {
	if !f.woken || !f.waiting {
		return
	}
	f.b.n.c.w.After(0, f.b.n.process, func() {
		f.woken = false
		if !f.waiting {
			return
		}
		f.cancel()
		if !f.c.Answerable() {
			f.waiting = false // whoever asked is gone: a follower's question must not count once more
			f.b.n.c.w.Cancel(f.timer)
			return
		}
		if f.try(false) {
			f.answer()
		} else {
			f.look()
		}
	})
}

// try asks every partition and reads; it tells whether there is enough to answer. If not, the fetch is registered with every partition.
func (f *fetch) try(last bool) bool {
	left, got, enough := f.maxBytes, 0, f.minBytes <= 0 || last
	for _, s := range f.slots {
		ask := s.ask
		ask.Token = s
		ask.Wait, ask.Patient = !last && ask.Replica >= 0, !f.late
		s.replica.step(ask)
		n, stop := s.take(left)
		left, got = left-n, got+n
		enough = enough || stop || (ask.Wait && (!s.reply.Registered || f.late))
	}
	if enough || got >= f.minBytes {
		f.cancel()
		return true
	}
	for _, s := range f.slots {
		s.into.RecordBatches = nil
	}
	f.register()
	return false
}

// take turns the replica's reply into the answer and reads up to left bytes. stop tells that the answer must not wait.
func (s *fetchSlot) take(left int) (n int, stop bool) {
	reply, into := &s.reply, s.into
	into.ErrorCode, into.HighWatermark, into.LogStartOffset = reply.Code, reply.HighWatermark, reply.LogStart
	into.CurrentLeader.LeaderID, into.CurrentLeader.LeaderEpoch = reply.Leader, reply.LeaderEpoch
	if d := reply.Diverging; d != nil {
		into.DivergingEpoch.Epoch, into.DivergingEpoch.EndOffset = d.Epoch, d.Start
	}
	if reply.Code != 0 || reply.Diverging != nil {
		return 0, true
	}
	if reply.UpTo <= reply.Offset || left <= 0 && left != s.fetch.maxBytes {
		return 0, false
	}
	records, err := s.replica.log.Read(reply.Offset, reply.UpTo, max(0, min(left, s.maxBytes)))
	if err == nil {
		defer records.Release()
		if records.Len() > left && left < s.fetch.maxBytes {
			return 0, false // a single batch that is too large for the rest
		}
		into.RecordBatches, err = bytesOf(records)
	}
	switch {
	case errors.Is(err, storage.ErrOutOfRange):
		into.ErrorCode = kerr.OffsetOutOfRange.Code
		return 0, true
	case err != nil:
		into.ErrorCode = kerr.KafkaStorageError.Code
		return 0, true
	}
	return len(into.RecordBatches), false
}

// bytesOf gives the run's bytes, without a copy if they lie together: a log does not change what it holds, nor does who reads it.
func bytesOf(r storage.Records) ([]byte, error) {
	if c := r.Chunks(); len(c) == 1 && c[0].File == nil {
		return c[0].Memory, nil
	}
	return r.Bytes()
}

// register asks every partition to wake the fetch; one that has something by now is a wake-up at once (R6).
func (f *fetch) register() {
	for _, s := range f.slots {
		if s.reply.Registered {
			continue
		}
		ask := s.ask
		ask.Token, ask.Wait = s, true
		if s.reply.UpTo > ask.Offset {
			ask.Offset, ask.LastFetchedEpoch = s.reply.UpTo, -1
		}
		s.replica.step(ask)
		if !s.reply.Registered {
			f.wake()
			return
		}
	}
}

func (f *fetch) cancel() {
	for _, s := range f.slots {
		if s.reply.Registered {
			s.replica.step(partition.CancelFetch{Token: s})
			s.reply.Registered = false
		}
	}
}
