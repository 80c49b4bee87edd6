//go:build failpoints

package partition

import (
	"fmt"
	"testing"
	"time"

	"ackproof/broker/fault"
	"ackproof/broker/record"
	"ackproof/broker/storage"
)

// TestPlantsChangeBehaviour: each switch changes what one short scene shows, and in the way that its name says. (HWResetOnRestart: restart_plant_test.go.)
func TestPlantsChangeBehaviour(t *testing.T) {
	for _, c := range []struct {
		bug         fault.Bug
		scene       func(*testing.T) string
		right, with string
	}{
		{fault.AckBeforeISR, func(t *testing.T) string { return answers(written(t, 3)) }, "", "w=0@0"},
		{fault.MinISRAtAppendOnly, func(t *testing.T) string {
			b := written(t, 3)
			b.isr(6, 1)
			return answers(b)
		}, "", "w=0@0"},
		{fault.ISRExpandTooEarly, func(t *testing.T) string {
			b := newBench(t, Config{}, storage.Checkpoint{HighWatermark: 2}, storage.Bounds{Durable: 6, End: 6}, at(0, 4, 6).Header)
			s := threeOf(1, 5)
			s.ISR = []int32{1, 2}
			b.in(Assign{s})
			b.follower(3, 2)
			return proposals(b)
		}, "", "[1 2 3]"},
		{fault.ISRWidenAckGap, func(t *testing.T) string {
			b := leading(t)
			b.isr(6, 1, 2)
			b.follower(3, 0)
			b.produce("w", 1, -1)
			b.follower(2, 1)
			return answers(b)
		}, "", "w=0@0"},
		{fault.TruncateToHW, func(t *testing.T) string {
			f := following5(t, 6, 2)
			return fmt.Sprint(f.r.next)
		}, "6", "2"},
		{fault.EpochEndWithoutEpoch, func(t *testing.T) string {
			// Epoch 4 is ours alone from 3 on; the leader's epoch 2 goes on until 5 and its epoch 5 begins there.
			f := newBench(t, Config{}, storage.Checkpoint{}, storage.Bounds{Durable: 6, End: 6}, at(0, 2, 3).Header, at(3, 4, 3).Header)
			f.in(Assign{threeOf(2, 5)})
			f.in(Fetched{LeaderEpoch: 5, Offset: 6, HighWatermark: 1, LogStart: -1, Diverging: &storage.EpochStart{Epoch: 2, Start: 5}})
			s, _ := f.r.FollowState()
			return fmt.Sprintf("%d after epoch %d", s.Offset, s.LastFetchedEpoch)
		}, "3 after epoch 2", "5 after epoch -1"},
		{fault.DivergingFetchCounts, func(t *testing.T) string {
			b := newBench(t, Config{}, storage.Checkpoint{}, storage.Bounds{Durable: 2, End: 2}, at(0, 3, 2).Header)
			b.in(Assign{threeOf(1, 5)})
			b.produce("w", 3, -1)
			b.follower(2, 5)
			b.in(Fetch{Token: "f", Replica: 3, ReplicaEpoch: 13, LeaderEpoch: 5, LastFetchedEpoch: 4, Offset: 5, KnownHW: -1})
			return answers(b)
		}, "", "w=0@2"},
		{fault.FetchAboveHW, func(t *testing.T) string {
			b := written(t, 3)
			return fmt.Sprint(b.fetch(consumerAt(0)).UpTo)
		}, "0", "3"},
		{fault.EndOffsetBackwards, func(t *testing.T) string {
			b := newBench(t, Config{}, storage.Checkpoint{HighWatermark: 2}, storage.Bounds{Durable: 6, End: 6}, at(0, 4, 6).Header)
			b.in(Assign{threeOf(1, 5)})
			b.took()
			b.in(ListOffsets{Token: "end", Replica: -1, LeaderEpoch: -1, Timestamp: -1})
			o := only[OffsetReply](b)
			return fmt.Sprint(o.Code, o.Offset)
		}, "78 -1", "0 2"},
		{fault.ProducerStateLostOnRoll, func(t *testing.T) string {
			before := newBench(t, Config{}, storage.Checkpoint{}, storage.Bounds{})
			before.in(Assign{threeOf(1, 5)})
			before.idempotent("x", 0, 1)
			after := newBench(t, Config{}, before.r.Checkpoint(), storage.Bounds{Durable: 1, End: 1})
			return fmt.Sprint(after.r.Status().Producers)
		}, "1", "0"},
		{fault.ProducerStateLeaderOnly, func(t *testing.T) string {
			f := newBench(t, Config{}, storage.Checkpoint{}, storage.Bounds{})
			f.in(Assign{threeOf(2, 5)})
			b := sequenced(0, 1)
			b.Assign(0, 5)
			f.in(Fetched{LeaderEpoch: 5, Batches: one(b)})
			return fmt.Sprint(f.r.Status().Producers)
		}, "1", "0"},
		{fault.DedupeBeforeAppend, func(t *testing.T) string {
			b := leading(t)
			b.isr(6, 1)
			b.idempotent("refused", 0, 1)
			b.isr(7, 1, 2, 3)
			b.produce("other", 1, -1)
			b.idempotent("again", 0, 1)
			b.follower(2, b.r.end)
			b.follower(3, b.r.end)
			return answers(b)
		}, "refused=19@-1 other=0@0 again=0@1", "refused=19@-1 other=0@0 again=0@0"},
		{fault.SequenceGapAccepted, func(t *testing.T) string {
			b := leading(t)
			b.idempotent("a", 0, 1)
			b.idempotent("c", 2, 1)
			b.idempotent("b", 1, 1)
			return fmt.Sprint(b.r.end)
		}, "2", "3"},
		{fault.StartOffsetNotDurable, func(t *testing.T) string {
			f := following5(t, 6, 6)
			f.in(Fetched{LeaderEpoch: 5, Offset: 6, HighWatermark: 6, LogStart: 4})
			cp := f.r.Checkpoint()
			cp.LogStart = 4
			again := newBench(t, Config{}, cp, storage.Bounds{Durable: 6, End: 6})
			b := written(t, 6)
			b.follower(2, 6)
			b.follower(3, 6)
			answers(b)
			b.in(DeleteRecords{Token: "d", Offset: 4, Deadline: b.now.Add(time.Second)})
			return fmt.Sprintf("follower %d, after a restart %d, %d answers", f.r.start, again.r.start, len(b.took()))
		}, "follower 4, after a restart 4, 0 answers", "follower 0, after a restart 0, 1 answers"},
		{fault.AckBeforeFsync, func(t *testing.T) string {
			b := newBench(t, Config{FlushEach: true}, storage.Checkpoint{}, storage.Bounds{})
			b.in(Assign{threeOf(1, 5)})
			b.held = true
			b.produce("w", 3, -1)
			b.in(Appended{3})
			b.follower(2, 3)
			b.follower(3, 3)
			return answers(b)
		}, "", "w=0@0"},
		{fault.AckOnDemotion, func(t *testing.T) string {
			b := written(t, 3)
			b.in(Assign{threeOf(2, 6)})
			return answers(b)
		}, "w=6@-1", "w=0@0"},
		{fault.AckOnTimeout, func(t *testing.T) string {
			b := written(t, 3)
			b.now = b.now.Add(10 * time.Second)
			b.in(Tick{})
			return answers(b)
		}, "w=7@-1", "w=0@0"},
		{fault.DivergenceOffByOne, func(t *testing.T) string {
			b := leading(t)
			f := b.fetch(Fetch{Token: "f", Replica: 2, ReplicaEpoch: 12, LeaderEpoch: 5, LastFetchedEpoch: 5, Offset: 1, KnownHW: -1})
			return fmt.Sprint(f.Diverging != nil)
		}, "true", "false"},
		{fault.RepeatOfAnotherBatch, func(t *testing.T) string {
			b := leading(t)
			b.idempotent("a", 0, 1)
			b.idempotent("b", 1, 1)
			b.follower(2, 2)
			b.follower(3, 2)
			answers(b)
			b.idempotent("a again", 0, 1)
			return answers(b)
		}, "a again=0@0", "a again=0@1"},
		{fault.ISRShrinkAtOnce, func(t *testing.T) string {
			b := written(t, 3)
			b.follower(2, 3)
			b.now = b.now.Add(900 * time.Millisecond)
			b.follower(2, 3)
			b.now = b.now.Add(200 * time.Millisecond)
			b.in(Tick{})
			b.follower(2, 3)
			return answers(b)
		}, "", "w=0@0"},
		{fault.HWByMinISR, func(t *testing.T) string {
			b := written(t, 3)
			b.follower(2, 3)
			return answers(b)
		}, "", "w=0@0"},
		{fault.FollowersTakenForCaughtUp, func(t *testing.T) string {
			b := newBench(t, Config{}, storage.Checkpoint{HighWatermark: 2}, storage.Bounds{Durable: 6, End: 6}, at(0, 4, 6).Header)
			b.in(Assign{threeOf(1, 5)})
			return fmt.Sprint(b.r.hw)
		}, "2", "6"},
		{fault.ProducerStateNotCut, func(t *testing.T) string {
			f := newBench(t, Config{}, storage.Checkpoint{}, storage.Bounds{})
			f.in(Assign{threeOf(2, 5)})
			b := sequenced(0, 1)
			b.Assign(0, 5)
			f.in(Fetched{LeaderEpoch: 5, Batches: one(b)})
			f.in(Assign{threeOf(3, 6)})
			f.in(Fetched{LeaderEpoch: 6, Offset: 1, Diverging: &storage.EpochStart{Epoch: 5, Start: 0}})
			return fmt.Sprint(f.r.end, f.r.Status().Producers)
		}, "0 0", "0 1"},
		{fault.EpochStartsAtHW, func(t *testing.T) string {
			b := newBench(t, Config{}, storage.Checkpoint{HighWatermark: 2}, storage.Bounds{Durable: 6, End: 6}, at(0, 4, 6).Header)
			b.in(Assign{threeOf(1, 5)})
			b.took()
			b.in(EpochEnd{Token: "e", LeaderEpoch: 5, Epoch: 4})
			return fmt.Sprint(only[EpochEndReply](b).EndOffset)
		}, "6", "2"},
	} {
		t.Run(c.bug.Name, func(t *testing.T) {
			equal(t, "without the bug", c.scene(t), c.right)
			if err := fault.Plant(c.bug); err != nil {
				t.Fatal(err)
			}
			defer fault.Uproot(c.bug)
			equal(t, "with the bug", c.scene(t), c.with)
		})
	}
}

// written is a leader of epoch 5 with followers 2 and 3 in sync, to whom it has given nothing yet of the records of a request "w" that waits.
func written(t *testing.T, values int) *bench {
	b := leading(t)
	b.produce("w", values, -1)
	return b
}

// following5 is a follower in epoch 5 with a log of that many records of epoch 4.
func following5(t *testing.T, end, hw int64) *bench {
	f := newBench(t, Config{}, storage.Checkpoint{HighWatermark: hw}, storage.Bounds{Durable: end, End: end}, at(0, 4, int(end)).Header)
	f.in(Assign{threeOf(2, 5)})
	return f
}

// isr tells the leader of epoch 5 of another in-sync set.
func (b *bench) isr(partitionEpoch int32, ids ...int32) {
	s := threeOf(1, 5)
	s.ISR, s.PartitionEpoch = ids, partitionEpoch
	b.in(Assign{s})
}

func sequenced(first int32, values int) record.Batch {
	return record.Build(record.Spec{ProducerID: 7, BaseSequence: first, Values: make([][]byte, values)})
}

func (b *bench) idempotent(token string, first int32, values int) {
	b.t.Helper()
	b.in(Produce{Token: token, Batch: sequenced(first, values), Acks: -1, Deadline: b.now.Add(10 * time.Second)})
}

// answers gives the answers to Produce so far: token=code@offset.
func answers(b *bench) string {
	out := ""
	for _, e := range b.took() {
		if p, ok := e.(ProduceReply); ok {
			out += fmt.Sprintf(" %v=%d@%d", p.Token, p.Code, p.BaseOffset)
		}
	}
	return out[min(1, len(out)):]
}

// proposals gives the in-sync sets that were asked for.
func proposals(b *bench) string {
	out := ""
	for _, e := range b.took() {
		if a, ok := e.(AlterISR); ok {
			var ids []int32
			for _, m := range a.ISR {
				ids = append(ids, m.Broker)
			}
			out += fmt.Sprint(ids)
		}
	}
	return out
}
