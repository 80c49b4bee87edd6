package linearizability

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ackproof/histories"
	"ackproof/model"
)

// The cases here are those that ci/mutants showed no other test to notice.

// TestARecordThatMoved: a reader got a record at an offset that is empty in the end, and the record stands elsewhere. Both are told: that what was read
// is gone, and that two offsets are claimed for one record.
func TestARecordThatMoved(t *testing.T) {
	s := &script{}
	s.acked(0, 2, 0, 1)
	s.send(1, 0, 1)(histories.Event{Type: histories.Info})
	s.fetch(1, 1)(at(1, 1, 0, 1))
	s.drain(9, 3, at(0, 2, 0, 1), at(2, 1, 0, 1))
	got, permitted := decide(t, s, strong(), whole()).anomalies()
	want := map[model.Anomaly]int64{model.DirtyRead: 1, model.InconsistentOffset: 1, model.UnfillableGap: 1}
	if d := cmp.Diff(want, got); d != "" || len(permitted) > 0 {
		t.Errorf("violated (-want +got):\n%s\npermitted: %v", d, permitted)
	}
}

// TestOnlyWhatLastsHasAnOrder: an offset that may have belonged to a log which is gone says nothing of the order of records: neither an acknowledgement
// that a leader may have taken with it, nor, under unclean election, a read before the drain.
func TestOnlyWhatLastsHasAnOrder(t *testing.T) {
	for name, c := range map[string]struct {
		contract model.Contract
		read     bool
		want     int64
	}{
		"acknowledged under acks=1":      {model.Contract{Acks: 1}, false, 0},
		"read under acks=1":              {model.Contract{Acks: 1}, true, 1},
		"acknowledged under acks=all":    {model.Contract{Acks: -1}, false, 1},
		"acknowledged, unclean election": {model.Contract{Acks: -1, Unclean: true}, false, 0},
		"read under unclean election":    {model.Contract{Acks: -1, Unclean: true}, true, 0},
	} {
		c.contract.System, c.contract.Partitions, c.contract.Replication, c.contract.MinISR = "test", 1, 3, 2
		s := &script{}
		s.acked(1, 1, 0, 1)
		if c.read {
			s.fetch(1, 1)(at(1, 1, 0, 1))
		}
		s.acked(0, 2, 0, 1) // a lower offset, and later
		if c.read {
			s.fetch(2, 0)(at(0, 2, 0, 1))
		}
		violated, permitted := decide(t, s, model.LogContract(c.contract), model.Facts{DrainReason: "nobody drained"}).anomalies()
		if got := violated[model.ReorderedRealtime] + permitted[model.ReorderedRealtime]; got != c.want {
			t.Errorf("%s: %d out of order in real time, want %d", name, got, c.want)
		}
	}
}

// TestAnswersAboutALostLogAreVoid: an end of the log that counted a record which did not stay says nothing of the record that came into its place.
func TestAnswersAboutALostLogAreVoid(t *testing.T) {
	s := &script{}
	s.acked(0, 1, 0, 2)
	s.answer(histories.EndOffset, 2, 1)
	s.acked(1, 2, 0, 1) // in the place of the second
	s.drain(9, 2, at(0, 1, 0, 1), at(1, 2, 0, 1))
	got, _ := decide(t, s, strong(), whole()).anomalies()
	want := map[model.Anomaly]int64{model.LostAcked: 1, model.InconsistentOffset: 1}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("violated (-want +got):\n%s", d)
	}
}

// TestFollowersMayTrail: freshness is asked of leaders.
func TestFollowersMayTrail(t *testing.T) {
	for node, want := range map[int32]int64{0: 1, 2: 0} {
		s := &script{}
		s.acked(0, 1, 0, 1)
		s.begin(histories.Event{Kind: histories.Fetch, Session: 1, Node: node})(histories.Event{HighWatermark: -1})
		s.drain(9, 1, at(0, 1, 0, 1))
		got, _ := decide(t, s, strong(), whole(), model.ReadAfterAck).anomalies()
		if got[model.StaleRead] != want {
			t.Errorf("an empty read after an acknowledgement, from node %d (0: the leader): %d stale, want %d", node, got[model.StaleRead], want)
		}
	}
}

// TestOrderFurtherUp: disorder counts wherever in the log it is, not only at its beginning.
func TestOrderFurtherUp(t *testing.T) {
	s := &script{}
	s.acked(0, 1, 0, 1)
	second, third := s.send(1, 1, 1), s.send(1, 2, 1)
	third(histories.Event{Offset: 1})
	s.acked(2, 2, 0, 1)
	second(histories.Event{Offset: 3})
	s.drain(9, 4, at(0, 1, 0, 1), at(1, 1, 2, 1), at(2, 2, 0, 1), at(3, 1, 1, 1))
	got, _ := decide(t, s, strong(), whole()).anomalies()
	if d := cmp.Diff(map[model.Anomaly]int64{model.Reordered: 1}, got); d != "" {
		t.Errorf("violated (-want +got):\n%s", d)
	}
}

// TestEachPartitionHasItsOrder: a producer's records are in order partition by partition, and out of it in one of them.
func TestEachPartitionHasItsOrder(t *testing.T) {
	s := &script{}
	send := func(partition int32, seq int64) func(histories.Event) {
		return s.begin(histories.Event{Kind: histories.Append, Partition: partition, Runs: values(1, seq, 1)})
	}
	send(0, 0)(histories.Event{Offset: 0})
	send(0, 1)(histories.Event{Offset: 1})
	send(2, 2)(histories.Event{Offset: 0}) // lower than the one before it, elsewhere
	third, fourth := send(3, 3), send(3, 4)
	third(histories.Event{Offset: 1})
	fourth(histories.Event{Offset: 0})
	s.phase("drain")
	for partition, runs := range [][]histories.Run{0: {at(0, 1, 0, 2)}, 2: {at(0, 1, 2, 1)}, 3: {at(0, 1, 4, 1), at(1, 1, 3, 1)}} {
		if runs == nil {
			continue
		}
		partition, end := int32(partition), runs[len(runs)-1].Offset+int64(runs[len(runs)-1].Count)
		s.begin(histories.Event{Kind: histories.Fetch, Session: 9, Partition: partition})(histories.Event{Runs: runs, HighWatermark: -1})
		s.begin(histories.Event{Kind: histories.Fetch, Session: 9, Partition: partition, Offset: end})(histories.Event{Offset: end, HighWatermark: -1})
	}
	got, _ := decide(t, s, strong(), whole()).anomalies()
	if d := cmp.Diff(map[model.Anomaly]int64{model.Reordered: 1}, got); d != "" {
		t.Errorf("violated (-want +got):\n%s", d)
	}
}

// TestReadsAtOnceHaveNoOrder: of two reads of one session that overlap the one that was asked for later may get less.
func TestReadsAtOnceHaveNoOrder(t *testing.T) {
	s := &script{}
	s.acked(0, 1, 0, 3)
	later, earlier := s.fetch(1, 2), s.fetch(1, 0)
	later(at(2, 1, 2, 1))
	earlier(at(0, 1, 0, 2))
	s.drain(9, 3, at(0, 1, 0, 3))
	if got, _ := decide(t, s, strong(), whole()).anomalies(); len(got) > 0 {
		t.Errorf("violated: %v, want nothing", got)
	}
}

// TestASessionStaysWhereItWas: a read that goes back does not set the session back, so that the next one is judged by the furthest it had seen.
func TestASessionStaysWhereItWas(t *testing.T) {
	s := &script{}
	s.acked(0, 1, 0, 4)
	s.fetch(1, 0)(at(0, 1, 0, 4))
	s.fetch(1, 4)(at(1, 1, 1, 1))
	s.fetch(1, 2)(at(2, 1, 2, 1)) // behind the last read, and before the first
	s.drain(9, 4, at(0, 1, 0, 4))
	got, _ := decide(t, s, strong(), whole()).anomalies()
	if d := cmp.Diff(map[model.Anomaly]int64{model.NonmonotonicPoll: 2}, got); d != "" {
		t.Errorf("violated (-want +got):\n%s", d)
	}
}

// TestTrimmedRecordsAreNotDue: a reader that is taken past what was trimmed has skipped nothing.
func TestTrimmedRecordsAreNotDue(t *testing.T) {
	s := &script{}
	s.acked(0, 1, 0, 4)
	s.answer(histories.StartOffset, 2, 1)
	s.fetch(1, 0)(at(2, 1, 2, 2))
	s.phase("drain")
	s.fetch(9, 2)(at(2, 1, 2, 2))
	s.fetch(9, 4)()
	if got, _ := decide(t, s, strong(), whole()).anomalies(); len(got) > 0 {
		t.Errorf("violated: %v, want nothing", got)
	}
}

// TestProcessesAreSessions: where a history names no sessions each process has its own.
func TestProcessesAreSessions(t *testing.T) {
	s := &script{}
	s.acked(0, 1, 0, 2)
	s.fetch(0, 0)(at(0, 1, 0, 2))
	s.fetch(0, 0)(at(0, 1, 0, 2)) // of another process
	s.drain(9, 2, at(0, 1, 0, 2))
	if got, _ := decide(t, s, strong(), whole()).anomalies(); len(got) > 0 {
		t.Errorf("violated: %v, want nothing", got)
	}
}

// TestEndsAreComparedInOrder: answers that overlap are not compared, and a higher answer of an older leader outweighs a lower one of a newer leader.
func TestEndsAreComparedInOrder(t *testing.T) {
	overlap := &script{}
	overlap.acked(0, 1, 0, 5)
	first, second := overlap.begin(histories.Event{Kind: histories.EndOffset}), overlap.begin(histories.Event{Kind: histories.EndOffset})
	first(histories.Event{Offset: 5, LeaderEpoch: 1})
	second(histories.Event{Offset: 3, LeaderEpoch: 1})
	epochs := &script{}
	epochs.acked(0, 1, 0, 5)
	epochs.answer(histories.EndOffset, 2, 3)
	epochs.answer(histories.EndOffset, 5, 1) // deposed, and does not know it
	epochs.answer(histories.EndOffset, 3, 3)
	long := &script{} // asked before the others had an answer
	long.acked(0, 1, 0, 5)
	late := long.begin(histories.Event{Kind: histories.EndOffset})
	long.answer(histories.EndOffset, 5, 1)
	long.answer(histories.EndOffset, 5, 1)
	late(histories.Event{Offset: 3, LeaderEpoch: 1})
	for name, c := range map[string]struct {
		s    *script
		want int64
	}{"overlap": {overlap, 0}, "epochs": {epochs, 1}, "long": {long, 0}} {
		c.s.drain(9, 5, at(0, 1, 0, 5))
		if got, _ := decide(t, c.s, strong(), whole()).anomalies(); got[model.StaleEndOffset] != c.want {
			t.Errorf("%s: %d stale ends, want %d", name, got[model.StaleEndOffset], c.want)
		}
	}
}

// TestTheLoadBeginsTheCount: what passed before the load began is not a time without an acknowledgement, and what passed after it is.
func TestTheLoadBeginsTheCount(t *testing.T) {
	s := &script{}
	send := func(seq int64, at time.Duration) {
		end := s.send(1, seq, 1)
		s.events[len(s.events)-1].Time = at
		end(histories.Event{Offset: seq})
		s.events[len(s.events)-1].Time = at
	}
	send(0, time.Second)
	s.phase("load")
	s.events[len(s.events)-1].Time = time.Minute
	send(1, time.Minute+3*time.Second)
	send(2, time.Minute+5*time.Second)
	a, err := CheckLog(histories.Events(s.events), strong(), whole(), Options{Floors: model.TestFloors()})
	if err != nil {
		t.Fatal(err)
	}
	if got := a.UnavailableMS["p0"]; got != 3000 {
		t.Errorf("%d ms without an acknowledgement, want 3000", got)
	}
}

// TestEndsBelowTheStart: an answer that counted offsets which were trimmed since is one that later answers must know of.
func TestEndsBelowTheStart(t *testing.T) {
	s := &script{}
	s.answer(histories.EndOffset, 8, 1)
	s.answer(histories.EndOffset, 5, 1)
	s.answer(histories.StartOffset, 10, 1)
	s.acked(10, 1, 0, 2)
	s.phase("drain")
	s.fetch(9, 10)(at(10, 1, 0, 2))
	s.fetch(9, 12)()
	if got, _ := decide(t, s, strong(), whole(), model.ReadAfterAck).anomalies(); got[model.StaleRead] != 1 {
		t.Errorf("violated: %v, want one stale read", got)
	}
}

// TestACopyMayBeTrimmed: a copy need not hold what lies below the start of the log.
func TestACopyMayBeTrimmed(t *testing.T) {
	s := &script{}
	s.acked(0, 1, 0, 4)
	s.answer(histories.StartOffset, 2, 1)
	s.drain(9, 4, at(0, 1, 0, 4)) // read before it was trimmed
	s.copyRead(2, 0, at(2, 1, 2, 2))
	if got, _ := decide(t, s, strong(), whole()).anomalies(); len(got) > 0 {
		t.Errorf("violated: %v, want nothing", got)
	}
}

// TestSecondOpinionOfSparseLogs: where offsets may be skipped the model has to know what lasts by itself, and has to let offsets be skipped.
func TestSecondOpinionOfSparseLogs(t *testing.T) {
	for name, last := range map[string]bool{"a gap": true, "a loss": false} {
		s := &script{}
		s.acked(0, 1, 0, 1)
		if !last {
			s.acked(1, 1, 1, 1)
		}
		s.acked(2, 1, 2, 1)
		s.drain(9, 3, at(0, 1, 0, 1), at(2, 1, 2, 1))
		c := strong()
		c.Dense = false
		a := decide(t, s, c, whole())
		if got, _ := a.anomalies(); (len(got) == 0) != last {
			t.Errorf("%s: violated: %v", name, got)
		}
		if o, err := SecondOpinion(a, OpinionOptions{}); err != nil || o.Windows == 0 {
			t.Errorf("%s: second opinion %+v: %v", name, o, err)
		}
	}
}
