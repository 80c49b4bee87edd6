package partition

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ackproof/broker/record"
	"ackproof/broker/storage"
)

// bench is a replica with an obedient disk: storage effects are carried out at once unless held.
type bench struct {
	t    *testing.T
	r    *Replica
	now  time.Time
	held bool // storage effects are kept instead
	kept []Effect
	out  []Effect // effects other than storage, since the last call of took
}

func newBench(t *testing.T, cfg Config, cp storage.Checkpoint, b storage.Bounds, replay ...record.Header) *bench {
	t.Helper()
	cfg.Self, cfg.LagTime = 1, time.Second
	r, err := New(cfg, cp, b, replay)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, r: r, now: began}
}

// leading is a leader of epoch 5 with followers 2 and 3 in sync, registered with epochs 12 and 13, min ISR 2.
func leading(t *testing.T) *bench {
	b := newBench(t, Config{}, storage.Checkpoint{}, storage.Bounds{})
	b.in(Assign{threeOf(1, 5)})
	b.took()
	return b
}

func threeOf(leader, epoch int32) State {
	return State{Leader: leader, LeaderEpoch: epoch, PartitionEpoch: epoch, Replicas: []int32{1, 2, 3}, ISR: []int32{1, 2, 3},
		BrokerEpochs: map[int32]int64{1: 11, 2: 12, 3: 13}, MinISR: 2, MaxBytes: 10_000}
}

func (b *bench) in(in Input) {
	b.t.Helper()
	for _, e := range slices.Clone(b.r.Step(b.now, in)) {
		switch e.(type) {
		case Append, Flush, Truncate, Trim, Reset, Checkpoint:
			b.kept = append(b.kept, e)
		default:
			b.out = append(b.out, e)
		}
	}
	if !b.held {
		b.release()
	}
}

// release carries out the storage effects that were kept.
func (b *bench) release() {
	b.t.Helper()
	for len(b.kept) > 0 {
		e := b.kept[0]
		b.kept = b.kept[1:]
		switch e := e.(type) {
		case Append:
			b.in(Appended{e.Batches[len(e.Batches)-1].NextOffset()})
		case Flush:
			b.in(Flushed{b.r.end})
		case Truncate:
			b.in(Cut{Bounds: storage.Bounds{Durable: e.To, End: e.To}})
		case Trim:
			b.in(Cut{Bounds: storage.Bounds{Durable: b.r.end, End: b.r.end}})
		case Reset:
			b.in(Cut{Bounds: storage.Bounds{Start: e.Start, Durable: e.Start, End: e.Start}})
		}
	}
}

func (b *bench) took() []Effect { out := b.out; b.out = nil; return out }

func batch(values int) record.Batch {
	return record.Build(record.Spec{ProducerID: record.NoProducer, ProducerEpoch: -1, BaseSequence: -1, Values: make([][]byte, values)})
}

func at(base int64, epoch int32, values int) record.Batch {
	x := batch(values)
	x.Assign(base, epoch)
	return x
}

func (b *bench) produce(token any, values int, acks int16) {
	b.t.Helper()
	b.in(Produce{Token: token, Batch: batch(values), Acks: acks, Deadline: b.now.Add(10 * time.Second)})
}

// follower makes a follower's fetch.
func (b *bench) follower(id int32, offset int64) FetchReply {
	b.t.Helper()
	return b.fetch(Fetch{Token: id, Replica: id, ReplicaEpoch: int64(id) + 10, LeaderEpoch: b.r.state.LeaderEpoch, LastFetchedEpoch: b.r.epochs.last(offset), Offset: offset, KnownHW: -1})
}

func consumerAt(offset int64) Fetch {
	return Fetch{Token: "consumer", Replica: -1, ReplicaEpoch: -1, LeaderEpoch: -1, LastFetchedEpoch: -1, Offset: offset, KnownHW: -1}
}

func (b *bench) fetch(in Fetch) FetchReply {
	b.t.Helper()
	b.in(in)
	return only[FetchReply](b)
}

// only returns the one effect of that type since the last look and keeps the others.
func only[E Effect](b *bench) E {
	b.t.Helper()
	var found []E
	b.out = slices.DeleteFunc(b.out, func(e Effect) bool {
		x, ok := e.(E)
		if ok {
			found = append(found, x)
		}
		return ok
	})
	if len(found) != 1 {
		var zero E
		b.t.Fatalf("%d effects %T, expected one: %+v", len(found), zero, found)
	}
	return found[0]
}

func (b *bench) none(what string) {
	b.t.Helper()
	if len(b.out) > 0 {
		b.t.Fatalf("%s: expected no effect, got %+v", what, b.out)
	}
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("%s: unexpected (-want +got):\n%s", what, d)
	}
}

func TestR1CommittedIsWhatEveryInSyncReplicaHas(t *testing.T) {
	b := leading(t)
	b.produce("a", 2, -1)
	b.none("nobody has fetched")
	b.follower(2, 2)
	b.none("one follower is missing")
	equal(t, "R1: consumers see nothing of it", b.fetch(consumerAt(0)).UpTo, int64(0))
	b.follower(3, 1) // holds less than the whole batch
	equal(t, "high watermark", b.r.hw, int64(1))
	b.none("offset 1 is not committed")
	b.follower(3, 2)
	reply := only[ProduceReply](b)
	equal(t, "answer", []any{reply.Token, reply.Code, reply.BaseOffset}, []any{"a", int16(0), int64(0)})
	equal(t, "consumers see it now", b.fetch(consumerAt(0)).UpTo, int64(2))
}

func TestR2R16BothSetsCountWhileAChangeIsInFlight(t *testing.T) {
	b := leading(t)
	s := threeOf(1, 5)
	s.ISR, s.PartitionEpoch = []int32{1, 2}, 6
	b.in(Assign{s})
	b.follower(3, 0)
	ask := only[AlterISR](b)
	equal(t, "asked for", ask.ISR, []Member{{1, 11}, {2, 12}, {3, 13}})
	b.produce("a", 1, -1)
	b.follower(2, 1)
	b.none("R2: 3 counts as soon as it is proposed")
	b.now = b.now.Add(600 * time.Millisecond)
	b.in(Tick{}) // no answer: asked again
	equal(t, "asked again with the same partition epoch", only[AlterISR](b).PartitionEpoch, int32(6))
	b.in(ISRAnswer{Code: codeIneligibleReplica, LeaderEpoch: 5})
	equal(t, "R16: refused, but a copy is under way: asks for the set as it is", len(only[AlterISR](b).ISR), 2)
	b.follower(2, 1)
	b.none("R2: 3 still counts")
	b.in(ISRAnswer{LeaderEpoch: 5, PartitionEpoch: 7, ISR: []int32{1, 2}})
	equal(t, "decided without 3", only[ProduceReply](b).Code, int16(0))
}

func TestR3R4NothingIsCommittedBelowMinISR(t *testing.T) {
	b := leading(t)
	b.produce("a", 1, -1)
	s := threeOf(1, 5)
	s.ISR, s.PartitionEpoch = []int32{1}, 6
	b.in(Assign{s})
	b.none("R3: the leader alone commits nothing")
	b.produce("b", 1, -1)
	equal(t, "R4 at append", only[ProduceReply](b).Code, codeNotEnoughReplicas)
	b.produce("c", 1, 1)
	equal(t, "acks=1 is not concerned", only[ProduceReply](b).Code, int16(0))
	b.now = b.now.Add(11 * time.Second)
	b.in(Tick{})
	equal(t, "the waiting one times out", only[ProduceReply](b).Code, codeRequestTimedOut)
	equal(t, "high watermark", b.r.hw, int64(0))
}

func TestR5WaitingRequestsDieWithTheEpoch(t *testing.T) {
	b := leading(t)
	b.produce("a", 1, -1)
	b.in(Assign{threeOf(2, 6)})
	reply := only[ProduceReply](b)
	equal(t, "R5, R27", []any{reply.Code, reply.Leader, reply.LeaderEpoch}, []any{codeNotLeader, int32(2), int32(6)})
	b.in(Assign{threeOf(1, 7)})
	b.took()
	b.follower(2, 1)
	b.follower(3, 1)
	equal(t, "committed in the next epoch, and nobody is told", b.r.hw, int64(1))
	b.none("no second answer")
}

func TestR6WaitingFetchIsWoken(t *testing.T) {
	b := leading(t)
	wait := consumerAt(0)
	wait.Wait = true
	equal(t, "registered", b.fetch(wait).Registered, true)
	b.produce("a", 1, -1)
	b.follower(2, 1)
	b.none("not committed")
	b.follower(3, 1)
	equal(t, "R6", only[Wake](b).Token, any("consumer"))
	equal(t, "with something to read a fetch does not wait", b.fetch(wait).Registered, false)
	wait.Offset = 1
	b.fetch(wait)
	b.in(CancelFetch{Token: "consumer"})
	b.in(Assign{threeOf(2, 6)})
	for _, e := range b.took() {
		if _, ok := e.(Wake); ok {
			t.Fatal("woken after it was cancelled")
		}
	}
}

// TestNews: to a patient follower a newer high watermark alone is told once, records and a deletion end its wait as ever; and who is not patient is answered.
func TestNews(t *testing.T) {
	b := leading(t)
	fetch := func(id int32, offset, knownHW int64, patient bool) FetchReply {
		return b.fetch(Fetch{Token: id, Replica: id, ReplicaEpoch: int64(id) + 10, LeaderEpoch: 5, LastFetchedEpoch: b.r.epochs.last(offset), Offset: offset, KnownHW: knownHW, Wait: true, Patient: patient})
	}
	registered := func(id int32, offset, knownHW int64) {
		t.Helper()
		b.in(Fetch{Token: id, Replica: id, ReplicaEpoch: int64(id) + 10, LeaderEpoch: 5, LastFetchedEpoch: b.r.epochs.last(offset), Offset: offset, KnownHW: knownHW, Wait: true, Patient: true})
	}
	b.produce("a", 1, 0)
	b.took()
	fetch(2, 1, 0, true)
	fetch(3, 0, 0, true)
	b.took() // the first answer tells of the log start
	equal(t, "nothing new for 2", fetch(2, 1, 0, true).Registered, true)
	registered(3, 1, 0) // commits
	out := b.took()
	equal(t, "who commits is registered, and both are told", out, []Effect{
		News{int32(2)},
		FetchReply{Token: int32(3), Offset: 1, UpTo: 1, HighWatermark: 1, Registered: true, Leader: -1, LeaderEpoch: -1},
		News{int32(3)},
	})
	b.produce("b", 2, 0)
	b.took()
	b.in(CancelFetch{Token: int32(2)})
	fetch(2, 3, 1, true)
	fetch(3, 2, 1, true)
	b.follower(3, 2)
	equal(t, "told of the second", only[News](b).Token, any(int32(2)))
	b.follower(3, 3)
	b.none("told already")
	b.in(CancelFetch{Token: int32(2)})
	registered(2, 3, 2) // has the records, lacks the news of the last
	equal(t, "told of what is known before it waits", only[News](b).Token, any(int32(2)))
	b.in(CancelFetch{Token: int32(2)})
	b.took()
	equal(t, "who is not patient is answered", fetch(2, 3, 2, false).Registered, false)
	b.took()
	equal(t, "registered again", fetch(2, 3, 3, true).Registered, true)
	b.in(DeleteRecords{Token: "d", Offset: 1, Deadline: b.now.Add(time.Second)})
	equal(t, "a deletion is not put off", only[Wake](b).Token, any(int32(2)))
}

func TestR10EpochsAreCheckedBothWays(t *testing.T) {
	b := leading(t)
	for epoch, code := range map[int32]int16{-1: 0, 5: 0, 4: codeFencedLeaderEpoch, 6: codeUnknownLeaderEpoch} {
		f := consumerAt(0)
		f.LeaderEpoch = epoch
		equal(t, "fetch", b.fetch(f).Code, code)
		b.in(ListOffsets{Replica: -1, LeaderEpoch: epoch, Timestamp: -2})
		equal(t, "list offsets", only[OffsetReply](b).Code, code)
		b.in(EpochEnd{LeaderEpoch: epoch, Epoch: 5})
		equal(t, "epoch end", only[EpochEndReply](b).Code, code)
	}
	b.produce("a", 1, -1)
	b.fetch(Fetch{Replica: 2, ReplicaEpoch: 12, LeaderEpoch: 4, LastFetchedEpoch: -1, Offset: 1, KnownHW: -1})
	b.fetch(Fetch{Replica: 2, ReplicaEpoch: 99, LeaderEpoch: 5, LastFetchedEpoch: -1, Offset: 1, KnownHW: -1}) // R19: another incarnation
	equal(t, "neither counts", b.r.lead.progress[2].end, int64(-1))
}

func TestR8R9R11DivergingHistoriesAreCut(t *testing.T) {
	// The leader's history: epoch 1 from 0, epoch 3 from 10, epoch 5 (ours) from 20.
	cp := storage.Checkpoint{HighWatermark: 20, Epochs: []storage.EpochStart{{Epoch: 1, Start: 0}, {Epoch: 3, Start: 10}}, ProducersAt: 20}
	b := newBench(t, Config{}, cp, storage.Bounds{Durable: 20, End: 20})
	b.in(Assign{threeOf(1, 5)})
	b.took()
	for _, c := range []struct {
		epoch int32
		off   int64
		code  int16
		want  *storage.EpochStart
	}{
		{1, 10, 0, nil}, {3, 20, 0, nil}, {3, 15, 0, nil},
		{1, 12, 0, &storage.EpochStart{Epoch: 1, Start: 10}}, // more of epoch 1 than the leader has
		{2, 10, 0, &storage.EpochStart{Epoch: 1, Start: 10}}, // KIP-279: an epoch that the leader does not know
		{4, 25, 0, &storage.EpochStart{Epoch: 3, Start: 20}},
		{3, 21, 0, &storage.EpochStart{Epoch: 3, Start: 20}},
		{0, 5, codeOffsetOutOfRange, nil}, // nothing in common
	} {
		r := b.fetch(Fetch{Replica: 2, ReplicaEpoch: 12, LeaderEpoch: 5, LastFetchedEpoch: c.epoch, Offset: c.off, KnownHW: -1})
		equal(t, "R11", []any{r.Code, r.Diverging}, []any{c.code, c.want})
	}
	for epoch, want := range map[int32][2]int64{0: {-1, -1}, 1: {1, 10}, 2: {1, 10}, 3: {3, 20}, 4: {3, 20}, 5: {5, 20}, 6: {-1, -1}} {
		b.in(EpochEnd{LeaderEpoch: -1, Epoch: epoch})
		r := only[EpochEndReply](b)
		equal(t, "R9", [2]int64{int64(r.Epoch), r.EndOffset}, want)
	}

	// The same log as a follower: it cuts to the smaller of its own end of the epoch and the answer, never to its high watermark (R8).
	for _, c := range []struct {
		answer storage.EpochStart
		to     int64
	}{{storage.EpochStart{Epoch: 3, Start: 15}, 15}, {storage.EpochStart{Epoch: 2, Start: 14}, 10}, {storage.EpochStart{Epoch: 1, Start: 7}, 7}} {
		f := newBench(t, Config{}, cp, storage.Bounds{Durable: 20, End: 20})
		f.in(Assign{threeOf(2, 5)})
		f.took()
		f.held = true
		s, ok := f.r.FollowState()
		equal(t, "first question", []any{ok, s.Offset, s.LastFetchedEpoch}, []any{true, int64(20), int32(3)})
		f.in(Fetched{LeaderEpoch: 5, Offset: 20, HighWatermark: 20, Diverging: &c.answer})
		cut := f.kept[len(f.kept)-1].(Truncate)
		equal(t, "R11, S6: cut and checkpoint in one effect", []any{cut.To, cut.Checkpoint.HighWatermark, cut.Checkpoint.ProducersAt}, []any{c.to, c.to, c.to})
		_, ok = f.r.FollowState()
		equal(t, "no question before the cut is done", ok, false)
		f.release()
		s, _ = f.r.FollowState()
		equal(t, "next question", s.Offset, c.to)
	}
}

func TestR12AnEpochWithoutRecordsIsRecordedAndForgotten(t *testing.T) {
	b := newBench(t, Config{}, storage.Checkpoint{}, storage.Bounds{})
	b.held = true
	b.in(Assign{threeOf(1, 5)})
	cp := b.kept[0].(Checkpoint).Checkpoint
	equal(t, "R12: recorded before the first batch", cp.Epochs, []storage.EpochStart{{Epoch: 5, Start: 0}})
	b.release()
	b.held = false
	again := newBench(t, Config{}, cp, storage.Bounds{})
	equal(t, "after a restart", again.r.epochs.list, cp.Epochs)
	again.in(Assign{threeOf(2, 6)})
	s, _ := again.r.FollowState()
	equal(t, "no record has that epoch", s.LastFetchedEpoch, noEpoch)
	again.in(Fetched{LeaderEpoch: 6, Offset: 0, HighWatermark: 0, Batches: []record.Batch{at(0, 4, 1), at(1, 6, 1)}})
	equal(t, "the records that were written decide", again.r.epochs.list, []storage.EpochStart{{Epoch: 4, Start: 0}, {Epoch: 6, Start: 1}})
}

func TestR13AFollowerAppendsExactly(t *testing.T) {
	for name, sent := range map[string][]record.Batch{
		"gap": {at(1, 5, 1)}, "overlap": {at(0, 5, 2), at(1, 5, 1)}, "epoch back": {at(0, 5, 1), at(1, 4, 1)}, "epoch of the future": {at(0, 6, 1)},
	} {
		b := newBench(t, Config{}, storage.Checkpoint{}, storage.Bounds{})
		b.in(Assign{threeOf(2, 5)})
		b.took()
		b.in(Fetched{LeaderEpoch: 5, Offset: 0, Batches: sent})
		if only[Offline](b); b.r.role != Failed || b.r.next != 0 {
			t.Errorf("%s: role %d, next offset %d", name, b.r.role, b.r.next)
		}
	}
}

func TestR14R15InAndOutOfTheISR(t *testing.T) {
	b := leading(t)
	b.produce("a", 4, -1)
	b.follower(2, 4)
	for range 12 {
		b.now = b.now.Add(100 * time.Millisecond)
		b.follower(2, 4)
		b.follower(3, 1) // it fetches, but is never caught up
		b.in(Tick{})
	}
	ask := only[AlterISR](b)
	equal(t, "R15: 3 leaves by time", ask.ISR, []Member{{1, 11}, {2, 12}})
	equal(t, "R2, R20: until the controller answers 3 counts", b.r.hw, int64(1))
	b.in(ISRAnswer{LeaderEpoch: 5, PartitionEpoch: 6, ISR: []int32{1, 2}})
	equal(t, "committed without 3", b.r.hw, int64(4))
	b.took()
	b.follower(3, 3)
	b.none("R14: below the high watermark")
	s := threeOf(1, 5)
	s.ISR, s.PartitionEpoch, s.BrokerEpochs = []int32{1, 2}, 6, map[int32]int64{1: 11, 2: 12}
	b.in(Assign{s})
	b.follower(3, 4)
	b.none("R19: caught up, but fenced")
	s.BrokerEpochs = map[int32]int64{1: 11, 2: 12, 3: 13}
	b.in(Assign{s})
	b.follower(3, 4)
	equal(t, "R14: now it may", len(only[AlterISR](b).ISR), 3)
}

func TestR16ARetryDoesNotVouchForALaterRegistration(t *testing.T) {
	b := leading(t)
	s := threeOf(1, 5)
	s.ISR, s.PartitionEpoch = []int32{1, 2}, 6
	b.in(Assign{s})
	b.follower(3, 0)
	equal(t, "proposed as seen", only[AlterISR](b).ISR[2], Member{3, 13})
	s.BrokerEpochs = map[int32]int64{1: 11, 2: 12, 3: 99} // it restarted, outside of the set, and fetches nothing yet
	b.in(Assign{s})
	b.now = b.now.Add(600 * time.Millisecond)
	b.in(Tick{})
	equal(t, "asked again for the one that was seen", only[AlterISR](b).ISR[2], Member{3, 13})
}

func TestR19WhatAnUnregisteredReplicaFetchedIsItsOwn(t *testing.T) {
	b := leading(t)
	b.produce("a", 4, -1)
	b.took()
	s := threeOf(1, 5)
	s.ISR, s.PartitionEpoch, s.BrokerEpochs = []int32{1, 2}, 6, map[int32]int64{1: 11, 2: 12}
	b.in(Assign{s})
	b.in(Fetch{Token: 3, Replica: 3, ReplicaEpoch: 50, LeaderEpoch: 5, LastFetchedEpoch: 5, Offset: 4, KnownHW: -1}) // fenced
	b.took()
	s.BrokerEpochs = map[int32]int64{1: 11, 2: 12, 3: 51} // the next incarnation is registered; it may have an empty log
	b.in(Assign{s})
	equal(t, "nothing is known of it", b.r.lead.progress[3].end, int64(-1))
}

func TestR14NotBeforeTheStartOfTheEpoch(t *testing.T) {
	// A new leader whose watermark lags: 10 of 20 records are known to be committed.
	b := newBench(t, Config{}, storage.Checkpoint{HighWatermark: 10, Epochs: []storage.EpochStart{{Epoch: 4, Start: 0}}, ProducersAt: 20}, storage.Bounds{Durable: 20, End: 20})
	s := threeOf(1, 5)
	s.ISR = []int32{1, 2}
	b.in(Assign{s})
	b.took()
	b.follower(3, 10)
	b.none("at the high watermark, but below the start of the epoch")
	b.in(ListOffsets{Replica: -1, LeaderEpoch: -1, Timestamp: -1})
	equal(t, "R21: the end is not known yet", only[OffsetReply](b).Code, codeOffsetNotAvailable)
	b.follower(2, 20)
	b.in(ListOffsets{Replica: -1, LeaderEpoch: -1, Timestamp: -1})
	equal(t, "R21: now it is", only[OffsetReply](b).Offset, int64(20))
}

func TestR21R22AfterARestart(t *testing.T) {
	for _, c := range []struct{ start, hw, end, wantStart, wantHW int64 }{{0, 5, 9, 0, 5}, {0, 12, 9, 0, 9}, {6, 5, 9, 6, 6}, {12, 12, 9, 9, 9}} {
		b := newBench(t, Config{}, storage.Checkpoint{LogStart: c.start, HighWatermark: c.hw, ProducersAt: c.end}, storage.Bounds{Durable: c.end, End: c.end})
		equal(t, "R22", []int64{b.r.start, b.r.hw, b.r.end}, []int64{c.wantStart, c.wantHW, c.end})
	}
	b := newBench(t, Config{}, storage.Checkpoint{HighWatermark: 5, ProducersAt: 9}, storage.Bounds{Durable: 9, End: 9})
	b.in(Assign{threeOf(2, 5)})
	b.took()
	r := b.fetch(consumerAt(7))
	equal(t, "R21: between watermark and end a read is empty, no error", []any{r.Code, r.UpTo}, []any{int16(0), int64(7)})
	equal(t, "KIP-392: a follower does not know what lies beyond its end", b.fetch(consumerAt(10)).Code, codeOffsetNotAvailable)
}

func TestR25LogStart(t *testing.T) {
	b := leading(t)
	b.produce("a", 10, 1)
	b.follower(2, 6)
	b.follower(3, 6)
	b.took()
	b.in(DeleteRecords{Token: "d", Offset: 7})
	equal(t, "R25: not above the watermark", only[DeleteReply](b).Code, codeOffsetOutOfRange)
	b.in(DeleteRecords{Token: "d", Offset: -1, Deadline: b.now.Add(time.Second)})
	b.none("the followers have not followed")
	equal(t, "below the start", b.fetch(consumerAt(5)).Code, codeOffsetOutOfRange)
	for id := int32(2); id <= 3; id++ {
		b.in(Fetch{Replica: id, ReplicaEpoch: int64(id) + 10, LeaderEpoch: 5, LastFetchedEpoch: 5, Offset: 10, LogStart: 6, KnownHW: -1})
	}
	d := only[DeleteReply](b)
	equal(t, "done", []any{d.Code, d.LowWatermark}, []any{int16(0), int64(6)})

	f := newBench(t, Config{}, storage.Checkpoint{}, storage.Bounds{})
	f.in(Assign{threeOf(2, 5)})
	f.in(Fetched{LeaderEpoch: 5, Code: codeOffsetOutOfRange, LogStart: 40})
	s, _ := f.r.FollowState()
	equal(t, "a follower behind the leader's log start begins anew there", s.Offset, int64(40))
	f.in(Fetched{LeaderEpoch: 5, Offset: 40, HighWatermark: 42, LogStart: 40, Batches: []record.Batch{at(40, 3, 2)}})
	f.in(Fetched{LeaderEpoch: 5, Offset: 42, HighWatermark: 42, LogStart: 41})
	equal(t, "and follows it", f.r.start, int64(41))
}

// A deletion that was acknowledged holds under whoever leads next: a replica that still has the records does not come in, one that may have come in without
// our knowledge has to follow (R2), and nothing is acknowledged while others are eligible (R18).
func TestR25ADeletionHoldsUnderTheNextLeader(t *testing.T) {
	deleted := func(b *bench, id int32, start int64) {
		b.in(Fetch{Token: "f", Replica: id, ReplicaEpoch: int64(id) + 10, LeaderEpoch: 5, LastFetchedEpoch: 5, Offset: 6, LogStart: start, KnownHW: -1})
		only[FetchReply](b)
	}
	without3 := func(b *bench) {
		s := threeOf(1, 5)
		s.ISR, s.PartitionEpoch = []int32{1, 2}, 6
		b.in(Assign{s})
	}
	ready := func() *bench {
		b := leading(t)
		b.produce("a", 6, 1)
		b.took()
		deleted(b, 2, 0)
		deleted(b, 3, 0)
		return b
	}

	b := ready()
	without3(b)
	b.in(DeleteRecords{Token: "d", Offset: 4, Deadline: b.now.Add(time.Second)})
	deleted(b, 3, 0)
	b.none("3 has what is deleted")
	deleted(b, 3, 4)
	equal(t, "asked for once 3 has followed", len(only[AlterISR](b).ISR), 3)

	b = ready()
	without3(b)
	deleted(b, 3, 0)
	equal(t, "asked for", len(only[AlterISR](b).ISR), 3)
	b.in(DeleteRecords{Token: "d", Offset: 4, Deadline: b.now.Add(time.Second)})
	deleted(b, 2, 4)
	b.none("3 may be in sync already, and has not followed")
	deleted(b, 3, 4)
	equal(t, "done", only[DeleteReply](b).LowWatermark, int64(4))

	b = ready()
	s := threeOf(1, 5)
	s.ISR, s.PartitionEpoch = []int32{1}, 6
	b.in(Assign{s})
	b.in(DeleteRecords{Token: "d", Offset: 4, Deadline: b.now.Add(time.Second)})
	b.none("others are eligible")
	b.now = b.now.Add(time.Second)
	b.in(Tick{})
	equal(t, "too few in sync", only[DeleteReply](b).Code, codeRequestTimedOut)
}

// A leader's log may begin within a batch, and it sends whole batches: a follower that begins anew begins with the batch.
func TestR25AFollowerBeginsWithinABatch(t *testing.T) {
	f := newBench(t, Config{}, storage.Checkpoint{}, storage.Bounds{})
	f.in(Assign{threeOf(2, 5)})
	f.in(Fetched{LeaderEpoch: 5, Code: codeOffsetOutOfRange, LogStart: 41})
	f.in(Fetched{LeaderEpoch: 5, Offset: 41, HighWatermark: 44, LogStart: 41, Batches: []record.Batch{at(40, 3, 2), at(42, 3, 2)}})
	equal(t, "role, end and watermark", []any{f.r.role, f.r.end, f.r.hw}, []any{Follower, int64(44), int64(44)})
	f.in(Fetched{LeaderEpoch: 5, Offset: 44, HighWatermark: 44, LogStart: 41})
	equal(t, "what is deleted there is deleted here", f.r.start, int64(41))

	f.in(Fetched{LeaderEpoch: 5, Offset: 44, Batches: []record.Batch{at(43, 3, 2)}})
	equal(t, "R13: anywhere else it is no continuation", f.r.role, Failed)
}

// A leader is elected while records that it fetched as a follower are on their way to its log. Another follower that has them already is ahead of it, and
// must not be told that it is out of range: it would throw away a log that was acknowledged.
func TestR11AFollowerThatIsAheadForAMomentIsNotOutOfRange(t *testing.T) {
	b := newBench(t, Config{}, storage.Checkpoint{}, storage.Bounds{})
	b.in(Assign{threeOf(2, 5)})
	b.held = true
	b.in(Fetched{LeaderEpoch: 5, HighWatermark: 0, Batches: []record.Batch{at(0, 5, 2)}})
	b.in(Assign{threeOf(1, 6)})
	b.took()
	ask := func(offset int64) FetchReply {
		return b.fetch(Fetch{Token: "f", Replica: 3, ReplicaEpoch: 13, LeaderEpoch: 6, LastFetchedEpoch: 5, Offset: offset, KnownHW: -1, Wait: true})
	}
	ahead := ask(2)
	equal(t, "nothing to send yet", []any{ahead.Code, ahead.Diverging == nil, ahead.UpTo}, []any{int16(0), true, int64(2)})
	if further := ask(3); further.Diverging == nil || further.Diverging.Start != 2 {
		t.Errorf("what only the follower has: %+v, expected a divergence at 2", further)
	}
	b.release()
	b.follower(2, 2)
	equal(t, "what is in both logs counts", b.r.hw, int64(2))
}

func TestR26OldNewsIsIgnored(t *testing.T) {
	b := leading(t)
	b.in(Assign{threeOf(2, 4)})
	equal(t, "still leading", b.r.Status().Role, Leader)
	b.in(Fetched{LeaderEpoch: 4, Batches: []record.Batch{at(0, 4, 1)}})
	equal(t, "an answer to a question of another time", b.r.next, int64(0))
}

func TestR28R30Sequences(t *testing.T) {
	const pid = 7
	send := func(b *bench, epoch int16, seq int32, n int) ProduceReply {
		x := record.Build(record.Spec{ProducerID: pid, ProducerEpoch: epoch, BaseSequence: seq, Values: make([][]byte, n)})
		b.in(Produce{Token: seq, Batch: x, Acks: 1, Deadline: b.now.Add(time.Second)})
		return only[ProduceReply](b)
	}
	b := leading(t)
	for i := range int32(6) {
		equal(t, "in order", send(b, 0, i*2, 2).BaseOffset, int64(i)*2)
	}
	for i := range int32(5) {
		r := send(b, 0, 2+i*2, 2)
		equal(t, "R28: a repeat of one of the last five", []any{r.Code, r.BaseOffset}, []any{int16(0), int64(2 + i*2)})
	}
	equal(t, "the sixth last", send(b, 0, 0, 2).Code, codeOutOfOrderSequence)
	equal(t, "a gap", send(b, 0, 13, 1).Code, codeOutOfOrderSequence)
	equal(t, "half a repeat", send(b, 0, 10, 1).Code, codeOutOfOrderSequence)
	equal(t, "nothing was appended for these", b.r.next, int64(12))
	equal(t, "R30: a new epoch begins at 0", send(b, 1, 12, 1).Code, codeOutOfOrderSequence)
	equal(t, "R30: a new epoch", send(b, 1, 0, 1).Code, int16(0))
	equal(t, "R30: the old one is fenced", send(b, 0, 12, 1).Code, codeInvalidProducerEpoch)

	w := leading(t)
	equal(t, "an unknown producer", send(w, 0, 1<<31-2, 3).Code, int16(0))
	equal(t, "R28: sequences wrap after 2³¹−1", send(w, 0, 1, 1).Code, int16(0))
}

func TestR29ProducerStateFollowsTheLog(t *testing.T) {
	idem := func(base int64, seq int32) record.Batch {
		x := record.Build(record.Spec{ProducerID: 7, BaseSequence: seq, Timestamp: began.UnixMilli(), Values: make([][]byte, 1)})
		x.Assign(base, 4)
		return x
	}
	f := newBench(t, Config{ProducerExpiry: time.Hour}, storage.Checkpoint{}, storage.Bounds{})
	f.in(Assign{threeOf(2, 5)})
	var headers []record.Header
	for i := range 8 {
		x := idem(int64(i), int32(i))
		headers = append(headers, x.Header)
		f.in(Fetched{LeaderEpoch: 5, Offset: int64(i), Batches: []record.Batch{x}})
	}
	f.held = true
	f.in(Fetched{LeaderEpoch: 5, Offset: 8, Diverging: &storage.EpochStart{Epoch: 4, Start: 2}})
	cut := f.kept[0].(Truncate)
	equal(t, "the last five were all cut: what is left must be read from the log", []any{cut.To, cut.Replay, cut.Checkpoint.ProducersAt}, []any{int64(2), true, int64(-1)})
	f.in(Cut{Bounds: storage.Bounds{Durable: 2, End: 2}, Replayed: headers[:2]})
	cp := f.r.Checkpoint()
	again := newBench(t, Config{}, cp, storage.Bounds{Durable: 2, End: 2})
	again.in(Assign{threeOf(1, 6)})
	again.took()
	x := idem(0, 1)
	again.in(Produce{Token: "repeat", Batch: x, Acks: 1, Deadline: began.Add(time.Second)})
	equal(t, "a repeat is known to the new leader after a cut and a restart", only[ProduceReply](again).BaseOffset, int64(1))
	again.r.cfg.ProducerExpiry = time.Hour
	again.now = began.Add(2 * time.Hour)
	again.in(Tick{})
	equal(t, "expired by time", again.r.Status().Producers, 0)
}

func TestS1FlushBeforeItCounts(t *testing.T) {
	b := newBench(t, Config{FlushEach: true}, storage.Checkpoint{}, storage.Bounds{})
	b.in(Assign{threeOf(1, 5)})
	b.took()
	b.held = true
	b.produce("a", 1, 1)
	equal(t, "append, then flush", len(b.kept), 2)
	b.in(Appended{1})
	b.follower(2, 1)
	b.follower(3, 1)
	b.none("S1: written, but not flushed")
	equal(t, "not committed either", b.r.hw, int64(0))
	b.in(Flushed{1})
	equal(t, "flushed", only[ProduceReply](b).Code, int16(0))
	equal(t, "committed", b.r.hw, int64(1))
}

func TestS1WhatACrashLeftIsFlushedBeforeItCounts(t *testing.T) {
	b := newBench(t, Config{FlushEach: true}, storage.Checkpoint{}, storage.Bounds{Durable: 0, End: 3}, at(0, 4, 3).Header)
	b.held = true
	b.in(Assign{threeOf(2, 5)})
	_, ok := b.r.FollowState()
	equal(t, "S1: nothing is claimed before the flush", ok, false)
	b.in(Flushed{3})
	s, ok := b.r.FollowState()
	equal(t, "after it", []any{ok, s.Offset}, []any{true, int64(3)})
}

func TestS3S4AFailedWriteTakesTheReplicaOffline(t *testing.T) {
	b := leading(t)
	b.produce("a", 1, -1)
	b.in(StorageFailed{errors.New("no space left on device")})
	equal(t, "S4: waiting requests", only[ProduceReply](b).Code, codeStorageError)
	only[Offline](b)
	b.took()
	b.produce("b", 1, 1)
	equal(t, "produce", only[ProduceReply](b).Code, codeStorageError)
	equal(t, "fetch", b.fetch(consumerAt(0)).Code, codeStorageError)
	b.in(Assign{threeOf(1, 9)})
	equal(t, "S3: it does not come back by itself", b.r.role, Failed)
}

func TestWhatIsNoBatchIsRefused(t *testing.T) {
	big := record.Build(record.Spec{ProducerID: -1, Values: [][]byte{make([]byte, 11_000)}})
	control := record.Build(record.Spec{ProducerID: -1, Attributes: 1 << 5, Values: make([][]byte, 1)})
	for _, c := range []struct {
		b    record.Batch
		code int16
	}{{big, codeMessageTooLarge}, {control, codeInvalidRecord}} {
		b := leading(t)
		b.in(Produce{Batch: c.b, Acks: 1})
		equal(t, "refused", only[ProduceReply](b).Code, c.code)
		equal(t, "nothing appended", b.r.next, int64(0))
	}
}
