// Package partition is one copy of one partition as a pure state machine: what to append, up to where a reader may read, who is in
// sync, when a record counts as committed, where to cut a log that went astray. Each rule of replication is cited where it is kept.
//
// It knows neither files, sockets, clocks nor the other partitions: a Step takes the time and one Input and gives Effects, which the shell or
// a simulator carries out and reports back. It has no goroutine and no lock. Start reading at Replica.Step, then leader.go and follower.go;
// api.go lists all inputs and effects.
package partition

import (
	"fmt"
	"slices"
	"time"

	"ackproof/broker/fault"
	"ackproof/broker/record"
	"ackproof/broker/storage"
)

// The error codes that a replica answers with; names as in Kafka's protocol guide.
const (
	codeOffsetOutOfRange     int16 = 1
	codeNotLeader            int16 = 6 // NOT_LEADER_OR_FOLLOWER
	codeRequestTimedOut      int16 = 7
	codeMessageTooLarge      int16 = 10
	codeNotEnoughReplicas    int16 = 19
	codeNotEnoughAfterAppend int16 = 20
	codeOutOfOrderSequence   int16 = 45
	codeInvalidProducerEpoch int16 = 47
	codeStorageError         int16 = 56
	codeFencedLeaderEpoch    int16 = 74
	codeUnknownLeaderEpoch   int16 = 75
	codeOffsetNotAvailable   int16 = 78
	codeInvalidRecord        int16 = 87
	codeInvalidUpdateVersion int16 = 95
)

const (
	noLeader int32 = -1
	noEpoch  int32 = -1
)

// Replica is one copy of one partition. Use New; it is not safe for concurrent use.
type Replica struct {
	cfg   Config
	state State // as last heard from the controller, with ISR answers applied
	role  Role

	epochs    epochList
	producers producerTable

	// Offsets, each ≤ the next: start ≤ hw ≤ end ≤ next. [end, next) is on its way to the log.
	start, hw, end, next int64
	flushed              int64 // below: durable
	cutting              int   // Truncate, Trim and Reset effects under way
	replaying            bool  // one of them brings the producer state that the cut has lost (R29)

	lead    leadership
	follow  following
	fetches []waitingFetch
	deletes []waitingDelete
	failure error
	savedHW int64     // high watermark of the last checkpoint
	savedAt time.Time // and when it was made
	stale   bool      // the checkpoint on disk speaks of records that the log has lost
	now     time.Time
	effects []Effect
}

// ReplayFrom tells from which offset on New needs the headers of the log: the checkpoint's snapshot of producer state spares it what lies below.
func ReplayFrom(cp storage.Checkpoint, b storage.Bounds) int64 {
	if cp.ProducersAt < b.Start || cp.ProducersAt > b.End {
		return b.Start
	}
	return cp.ProducersAt
}

// New makes a replica from what its log holds: the last checkpoint, the bounds, and the headers from ReplayFrom on. It is Idle until the first Assign.
func New(cfg Config, cp storage.Checkpoint, b storage.Bounds, replay []record.Header) (*Replica, error) {
	r := &Replica{cfg: cfg, end: b.End, next: b.End, flushed: b.Durable}
	r.state = State{Leader: noLeader, LeaderEpoch: noEpoch, PartitionEpoch: -1}
	// R22: log start ≤ high watermark ≤ log end, whatever the checkpoint says of a log that has since lost its tail.
	r.start = min(max(cp.LogStart, b.Start), b.End)
	r.hw = min(max(cp.HighWatermark, r.start), r.end)
	if fault.On(fault.StartOffsetNotDurable) {
		r.start = b.Start
	}
	if fault.On(fault.HWResetOnRestart) {
		r.hw = r.start
	}
	r.savedHW = r.hw
	from := ReplayFrom(cp, b)
	if from == cp.ProducersAt {
		if err := r.producers.restore(cp.Producers); err != nil {
			return nil, fmt.Errorf("producer snapshot at offset %d: %w", cp.ProducersAt, err)
		}
		if fault.On(fault.ProducerStateLostOnRoll) {
			r.producers = producerTable{} // B18: only what is read again is known, not what lies before
		}
		for _, e := range cp.Epochs {
			if !r.epochs.assign(e.Epoch, e.Start) {
				return nil, fmt.Errorf("leader epochs of the checkpoint: epoch %d is out of order in %v", e.Epoch, cp.Epochs)
			}
		}
	}
	for _, h := range replay {
		if !r.epochs.appended(h.LeaderEpoch, h.BaseOffset) {
			return nil, fmt.Errorf("batch at offset %d has leader epoch %d, after epoch %d", h.BaseOffset, h.LeaderEpoch, r.epochs.last(h.BaseOffset))
		}
		r.producers.update(h)
	}
	if n := len(cp.Epochs); n > 0 && cp.Epochs[n-1].Start == b.End {
		r.epochs.assign(cp.Epochs[n-1].Epoch, b.End) // R12: an epoch that nobody has written in stands in the checkpoint alone
	}
	r.stale = cp.ProducersAt > b.End || cp.HighWatermark > b.End
	r.epochs.cutAbove(r.end) // R12: the list moves with the log; an epoch that began exactly at the end is kept
	r.epochs.trim(r.start)
	r.check()
	return r, nil
}

// Step makes one step. The effects are valid until the next one.
func (r *Replica) Step(now time.Time, in Input) []Effect {
	clear(r.effects)
	r.effects = r.effects[:0]
	r.now = now
	hwBefore, epochBefore, roleBefore := r.hw, r.state.LeaderEpoch, r.role

	switch in := in.(type) {
	case Assign:
		r.assign(in.State)
	case Produce:
		r.produce(in)
	case Fetch:
		r.fetch(in)
	case CancelFetch:
		r.fetches = slices.DeleteFunc(r.fetches, func(w waitingFetch) bool { return w.in.Token == in.Token })
	case ListOffsets:
		r.listOffsets(in)
	case EpochEnd:
		r.epochEnd(in)
	case DeleteRecords:
		r.deleteRecords(in)
	case Fetched:
		r.fetched(in)
	case Appended:
		r.appended(in.End)
	case Flushed:
		r.durable(in.End)
	case Cut:
		r.cut(in)
	case StorageFailed:
		r.fail(in.Err)
	case ISRAnswer:
		r.isrAnswer(in)
	case ISRUnanswered:
		if r.role == Leader && r.lead.proposal != nil && in.LeaderEpoch == r.state.LeaderEpoch {
			r.ask()
		}
	case Tick:
		r.tick()
	default:
		panic(fmt.Sprintf("partition: unknown input %T", in))
	}

	r.check()
	if r.role == Leader && roleBefore == Leader && r.state.LeaderEpoch == epochBefore && r.hw < hwBefore {
		panic(fmt.Sprintf("R1: high watermark fell from %d to %d within epoch %d", hwBefore, r.hw, epochBefore))
	}
	return r.effects
}

func (r *Replica) emit(e Effect) { r.effects = append(r.effects, e) }

// counted is the log end that this replica may claim: what is appended, or, where a flush is promised, what is flushed (S1).
func (r *Replica) counted() int64 {
	if r.cfg.FlushEach && !fault.On(fault.AckBeforeFsync) {
		return r.flushed
	}
	return r.end
}

// assign takes news from the controller (R26).
func (r *Replica) assign(s State) {
	if r.role == Failed || s.LeaderEpoch < r.state.LeaderEpoch || s.PartitionEpoch < r.state.PartitionEpoch {
		return
	}
	if s.PartitionEpoch == r.state.PartitionEpoch {
		s.ISR = r.state.ISR // equal epochs, equal sets; only broker epochs and configuration can be news
	}
	newEpoch := s.LeaderEpoch > r.state.LeaderEpoch || r.role == Idle
	newSet := s.PartitionEpoch > r.state.PartitionEpoch
	r.state = s
	if !newEpoch {
		if r.role == Leader {
			r.stateOfEpochChanged(newSet)
		}
		return
	}
	if r.stale {
		// Before anything is appended: otherwise the log would grow past the checkpoint's offsets, and it would pass for true after the next crash.
		r.stale = false
		r.checkpoint()
	}
	if r.cfg.FlushEach && r.flushed < r.end {
		r.emit(Flush{}) // left by a crash: without it what the log holds would never count (S1)
	}
	was := r.role
	if was == Leader {
		r.resign(codeNotLeader)
	}
	switch {
	case s.Leader == r.cfg.Self:
		r.role = Leader
		r.becomeLeader()
	case s.Leader != noLeader && slices.Contains(s.Replicas, r.cfg.Self):
		r.role = Follower
		r.becomeFollower()
	default:
		r.role = Idle
	}
	r.emit(RoleChanged{r.role})
	r.wakeAll()
}

// appended: everything below end is in the log.
func (r *Replica) appended(end int64) {
	if r.role == Failed {
		return
	}
	r.end = max(r.end, min(end, r.next)) // a cut may have overtaken the report
	r.progressed()
}

// durable: everything below end is flushed (S1).
func (r *Replica) durable(end int64) {
	if r.role == Failed {
		return
	}
	r.flushed = max(r.flushed, min(end, r.end))
	r.progressed()
}

func (r *Replica) progressed() {
	switch r.role {
	case Leader:
		r.answerLocal()
		r.advanceHW()
	case Follower:
		r.hw = max(r.hw, min(r.follow.leaderHW, r.end))
	}
	r.wakeReady()
}

// cut: a Truncate, Trim or Reset has been carried out.
func (r *Replica) cut(in Cut) {
	if r.role == Failed {
		return
	}
	r.cutting--
	if in.Replayed != nil {
		r.producers, r.replaying = producerTable{}, false
		for _, h := range in.Replayed {
			if h.NextOffset() <= r.next {
				r.producers.update(h)
			}
		}
	}
	r.flushed = max(r.flushed, min(in.Bounds.Durable, r.end))
	if r.role == Leader {
		r.answerDeletes()
	}
}

// fail takes the replica offline: after a failed write or flush nothing it says about its log can be trusted (S3, S4).
func (r *Replica) fail(err error) {
	if r.role == Failed {
		return
	}
	if r.role == Leader {
		r.resign(codeStorageError)
	}
	r.role, r.failure = Failed, err
	r.emit(RoleChanged{Failed})
	r.emit(Offline{err})
	r.wakeAll()
}

func (r *Replica) tick() {
	if r.role == Failed {
		return
	}
	if r.role == Leader {
		r.leaderTick()
	}
	if r.cfg.ProducerExpiry > 0 {
		r.producers.expire(r.now.Add(-r.cfg.ProducerExpiry).UnixMilli())
	}
	if r.cfg.CheckpointEach > 0 && r.now.Sub(r.savedAt) >= r.cfg.CheckpointEach && r.hw != r.savedHW && r.cutting == 0 && r.end == r.next {
		r.checkpoint()
	}
}

// checkpoint orders the checkpoint saved; behind whatever is already under way.
func (r *Replica) checkpoint() {
	r.savedAt, r.savedHW = r.now, r.hw
	r.emit(Checkpoint{r.Checkpoint()})
}

// Checkpoint is the state that belongs to the log as it is now; the shell saves it before a clean close.
func (r *Replica) Checkpoint() storage.Checkpoint {
	cp := storage.Checkpoint{
		LogStart:      r.start,
		HighWatermark: r.hw,
		Epochs:        slices.Clone(r.epochs.list),
		Producers:     r.producers.snapshot(),
		ProducersAt:   r.next,
	}
	if r.replaying {
		cp.Producers, cp.ProducersAt = nil, -1 // incomplete: a restart must read it from the log
	}
	return cp
}

// Status describes the replica for metrics, metadata and tests.
func (r *Replica) Status() Status {
	return Status{
		Role: r.role, Leader: r.state.Leader, LeaderEpoch: r.state.LeaderEpoch, PartitionEpoch: r.state.PartitionEpoch,
		ISR: slices.Clone(r.state.ISR), LogStart: r.start, HighWatermark: r.hw, LogEnd: r.end, Producers: r.producers.len(),
	}
}

// Err is why the replica is offline, nil while it is not.
func (r *Replica) Err() error { return r.failure }

// check holds the invariants of one replica that are always on.
func (r *Replica) check() {
	if r.start > r.hw || r.hw > r.end || r.end > r.next || r.flushed > r.end {
		panic(fmt.Sprintf("R22: log start %d ≤ high watermark %d ≤ log end %d ≤ next offset %d, flushed %d ≤ log end does not hold", r.start, r.hw, r.end, r.next, r.flushed))
	}
	if r.role == Leader && r.state.Leader != r.cfg.Self {
		panic(fmt.Sprintf("R26: broker %d leads epoch %d, which belongs to broker %d", r.cfg.Self, r.state.LeaderEpoch, r.state.Leader))
	}
}
