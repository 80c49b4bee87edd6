package verify_test

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"ackproof/histories"
	"ackproof/linearizability"
	"ackproof/model"
	"ackproof/verify"
)

// lossy is a history in which the second of two acknowledged records is gone when the drain reads the log to its end.
func lossy() []histories.Event {
	events := []histories.Event{
		{Kind: histories.Append, Process: 1, Runs: []histories.Run{{Producer: 1, Count: 2}}},
		{Kind: histories.Append, Process: 1, Type: histories.OK, Op: 1},
		{Kind: histories.Phase, Type: histories.Info, Note: "drain"},
		{Kind: histories.Fetch, Process: 2, Session: 1},
		{Kind: histories.Fetch, Process: 2, Session: 1, Type: histories.OK, Op: 4, HighWatermark: -1, Runs: []histories.Run{{Producer: 1, Count: 1}}},
		{Kind: histories.Fetch, Process: 2, Session: 1, Offset: 1},
		{Kind: histories.Fetch, Process: 2, Session: 1, Type: histories.OK, Op: 6, HighWatermark: -1},
	}
	for i := range events {
		events[i].Seq = uint64(i + 1)
		if events[i].Op == 0 {
			events[i].Op = events[i].Seq
		}
	}
	return events
}

// The checkers prove what broke by certificates; each is judged against the history alone.
func Example() {
	events := lossy()
	contract := model.LogContract(model.Contract{Partitions: 1, Replication: 3, MinISR: 2, Acks: -1, Idempotent: true, Dense: true})
	answer, err := linearizability.CheckLog(histories.Events(events), contract, model.Facts{DrainComplete: true}, linearizability.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	proof := *answer.Claims[0].Anomalies[0].Proof
	proof.Bind("history.bin", 7)
	fmt.Println(proof.Anomaly, verify.Certificate(proof, 7, histories.Events(events)))

	proof.Operations[0].EndSeq = 3
	proof.Bind("history.bin", 7)
	err = verify.Certificate(proof, 7, histories.Events(events))
	fmt.Println(errors.Is(err, verify.ErrRejected))
	// Output:
	// lost-acked <nil>
	// true
}

// TestNothingIsAcceptedForNothing: certificates of any content are answered, and none is accepted that names no operation.
func TestNothingIsAcceptedForNothing(t *testing.T) {
	anomalies := []model.Anomaly{model.LostAcked, model.Undelivered, model.PollSkip, model.NonmonotonicPoll, model.Reordered, model.ReorderedRealtime, model.InconsistentOffset,
		model.ReplicaDivergence, model.UnfillableGap, model.Phantom, model.FutureRead, model.CorruptValue, model.ForeignRecord, model.DirtyRead, model.Duplicate, model.StaleEndOffset,
		model.StartOffsetBackwards, model.StartAboveHW, model.StaleRead, model.UnavailableAfterHeal}
	claims := []model.Claim{model.NoLoss, model.AtLeastOnce, model.SessionReads, model.Order, model.RealTimeOrder, model.OffsetAgreement, model.NoPhantom, model.NoDirtyRead, model.NoDuplicate,
		model.VisibleEnd, model.ReadAfterAck}
	events := lossy()
	// The operations of the history as they are, in any part: what they do not prove must be refused, and every lie about them.
	quotes := []model.ProofOp{
		{Op: 1, EndSeq: 2, Process: 1, What: "append", Quote: &model.Quote{Outcome: "ok", HighWatermark: -1, Next: -1, Records: []model.QuotedRecord{{Producer: 1}}}},
		{Op: 4, EndSeq: 5, Process: 2, What: "fetch", Quote: &model.Quote{Outcome: "ok", Session: 1, HighWatermark: -1, Next: 1, Records: []model.QuotedRecord{{Producer: 1}}}},
		{Op: 6, EndSeq: 7, Process: 2, What: "fetch", Quote: &model.Quote{Outcome: "ok", Session: 1, Offset: 1, HighWatermark: -1, Next: 1}},
	}
	roles := []string{"write", "final", "end", "reader", "before", "after", "later", "earlier", "late", "known", "copy", "other", "stale", "witness"}
	rapid.Check(t, func(t *rapid.T) {
		c := model.Certificate{Version: 1, Claim: rapid.SampledFrom(claims).Draw(t, "claim"), Anomaly: rapid.SampledFrom(anomalies).Draw(t, "anomaly"), Partition: int32(rapid.IntRange(0, 1).Draw(t, "partition")),
			Offset: rapid.SampledFrom([]int64{-1, 0, 1 << 60}).Draw(t, "offset")} // all but 1, where the loss is
		for range rapid.IntRange(0, 4).Draw(t, "operations") {
			op := rapid.SampledFrom(quotes).Draw(t, "operation")
			op.Role = rapid.SampledFrom(roles).Draw(t, "role")
			switch rapid.IntRange(0, 9).Draw(t, "lie") {
			case 0:
				op.Quote = nil
			case 1:
				op.Op = rapid.Uint64Range(0, 9).Draw(t, "op")
			}
			c.Operations = append(c.Operations, op)
		}
		c.Bind("history.bin", 7)
		if err := verify.Certificate(c, 7, histories.Events(events)); !errors.Is(err, verify.ErrRejected) {
			t.Fatalf("%+v: %v", c, err)
		}
	})
}
