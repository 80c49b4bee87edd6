package linearizability

import (
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ackproof/histories"
	"ackproof/model"
)

// groupCheckers are the checkers of groups and work queues, both forms of each.
var groupCheckers = map[string]struct {
	check   func(iter.Seq2[histories.Event, error], MonitorOptions) (*Answer, error)
	monitor func(MonitorOptions) Monitor
	all     []model.Claim
}{
	"commits": {CheckCommits, func(o MonitorOptions) Monitor { return NewCommitMonitor(o) }, []model.Claim{model.CommitSafety}},
	"groups":  {CheckGroups, func(o MonitorOptions) Monitor { return NewGroupMonitor(o) }, []model.Claim{model.GroupDelivery, model.CommitSafety}},
	"queue":   {CheckWorkQueue, func(o MonitorOptions) Monitor { return NewQueueMonitor(o) }, queueDecides},
	"fifo":    {CheckFIFO, func(o MonitorOptions) Monitor { return NewFIFOMonitor(o) }, fifoDecides},
}

const ms = int64(time.Millisecond)

func send(value int64) histories.Step {
	return histories.Step{Do: histories.Enqueue, Value: histories.IntDatum(value)}
}

func sendAs(value, id, number int64) histories.Step {
	s := send(value)
	if s.Number = number; id > 0 {
		s.Old = histories.IntDatum(id)
	}
	return s
}

func take(value int64) histories.Step {
	return histories.Step{Do: histories.Dequeue, Value: histories.IntDatum(value)}
}

func lease(value, length int64) histories.Step {
	return histories.Step{Do: histories.Receive, Value: histories.IntDatum(value), Number: length * ms}
}

func about(do histories.Do, value, length int64) histories.Step {
	return histories.Step{Do: do, Value: histories.IntDatum(value), Number: length * ms}
}

// sent is a whole send; took a whole delivery, of nothing where no step is given; handled a whole step of a process on a message.
func (s *script) sent(step histories.Step) { s.steps(step)(histories.OK) }

func (s *script) took(seen ...histories.Step) {
	if seen == nil {
		seen = []histories.Step{{Do: histories.Dequeue}}
	}
	s.steps(histories.Step{Do: histories.Dequeue})(histories.OK, seen...)
}

func (s *script) handled(process int32, step histories.Step) {
	asked := step
	if step.Do == histories.Receive {
		asked = histories.Step{Do: histories.Receive}
	}
	s.as(process, asked)(histories.OK, step)
}

func (s *script) wait(events int) {
	for range events {
		s.phase("load")
	}
}

func (s *script) assigned(process int32, offset, generation int64) {
	s.as(process, histories.Step{Do: histories.Assigned, Key: "g/0"})(histories.OK, histories.Step{Do: histories.Assigned, Key: "g/0", Offset: offset, Number: generation})
}

func (s *script) given(process int32, offset, n int64) {
	s.as(process, histories.Step{Do: histories.Delivered, Key: "g/0"})(histories.OK, histories.Step{Do: histories.Delivered, Key: "g/0", Offset: offset, Number: n})
}

func (s *script) commits(process int32, offset, generation int64) {
	s.as(process, commitOf("g/0", offset, 0, generation))(histories.OK)
}

var groupFixtures = []struct {
	checker   string
	name      string
	options   MonitorOptions
	want      map[model.Anomaly]int64
	undecided []model.Claim
	write     func(s *script)
}{
	{checker: "commits", name: "kept", write: func(s *script) { s.commit("g/0", 5, 1, 1); s.committed("g/0", 5, 1) }},
	{checker: "commits", name: "undone", want: map[model.Anomaly]int64{model.CommittedOffsetRegression: 1}, write: func(s *script) {
		s.commit("g/0", 5, 1, 1)
		s.commit("g/0", 9, 2, 1)
		s.committed("g/0", 5, 1)
	}},
	{checker: "commits", name: "lost altogether", want: map[model.Anomaly]int64{model.CommittedOffsetRegression: 1}, write: func(s *script) {
		s.commit("g/0", 5, 1, 1)
		s.committed("g/0", -1, 0)
	}},
	{checker: "commits", name: "unknown outcome, seen, undone", want: map[model.Anomaly]int64{model.CommittedOffsetRegression: 1}, write: func(s *script) {
		s.commit("g/0", 5, 1, 1)
		s.steps(commitOf("g/0", 9, 2, 1))(histories.Info)
		s.committed("g/0", 9, 2)
		s.committed("g/0", 5, 1)
	}},
	{checker: "commits", name: "unknown outcome, late", write: func(s *script) {
		s.steps(commitOf("g/0", 5, 1, 1))(histories.Info)
		s.commit("g/0", 9, 2, 1)
		s.committed("g/0", 9, 2)
		s.committed("g/0", 5, 1)
	}},
	{checker: "commits", name: "never committed", want: map[model.Anomaly]int64{model.Phantom: 1}, write: func(s *script) { s.commit("g/0", 5, 1, 1); s.committed("g/0", 7, 3) }},
	{checker: "commits", name: "refused and found", want: map[model.Anomaly]int64{model.Phantom: 1}, write: func(s *script) {
		s.commit("g/0", 5, 1, 1)
		s.steps(commitOf("g/0", 9, 2, 1))(histories.Fail)
		s.committed("g/0", 9, 2)
	}},
	{checker: "commits", name: "another offset than committed", want: map[model.Anomaly]int64{model.Phantom: 1}, write: func(s *script) { s.commit("g/0", 5, 1, 1); s.committed("g/0", 6, 1) }},
	{checker: "commits", name: "zombie", want: map[model.Anomaly]int64{model.ZombieCommit: 1}, write: func(s *script) {
		s.commit("g/0", 5, 1, 2)
		s.commit("g/0", 4, 2, 1)
		s.committed("g/0", 4, 2)
	}},
	{checker: "commits", name: "an older generation that had begun before", write: func(s *script) {
		old := s.steps(commitOf("g/0", 4, 2, 1))
		s.commit("g/0", 5, 1, 2)
		old(histories.OK)
	}},
	{checker: "commits", name: "repeated without metadata", undecided: []model.Claim{model.CommitSafety}, write: func(s *script) {
		s.commit("g/0", 5, 0, 1)
		s.commit("g/0", 9, 0, 1)
		s.commit("g/0", 5, 0, 1)
		s.committed("g/0", 5, 0)
	}},
	{checker: "groups", name: "a handover", write: func(s *script) {
		s.assigned(1, 0, 1)
		s.given(1, 0, 4)
		s.commits(1, 4, 1)
		s.assigned(2, 4, 2)
		s.given(2, 4, 2)
		s.commits(2, 6, 2)
	}},
	{checker: "groups", name: "committed and not given", want: map[model.Anomaly]int64{model.GroupSkip: 1}, write: func(s *script) {
		s.assigned(1, 0, 1)
		s.given(1, 0, 4)
		s.commits(1, 6, 1)
	}},
	{checker: "groups", name: "left out between two polls", want: map[model.Anomaly]int64{model.GroupSkip: 1}, write: func(s *script) {
		s.assigned(1, 0, 1)
		s.given(1, 0, 4)
		s.given(1, 6, 1)
	}},
	{checker: "groups", name: "begins too high", want: map[model.Anomaly]int64{model.GroupSkip: 1}, write: func(s *script) {
		s.assigned(1, 0, 1)
		s.given(1, 0, 4)
		s.commits(1, 4, 1)
		s.assigned(2, 6, 2)
	}},
	{checker: "groups", name: "begins too low", want: map[model.Anomaly]int64{model.CommittedOffsetRegression: 1}, write: func(s *script) {
		s.assigned(1, 0, 1)
		s.given(1, 0, 4)
		s.commits(1, 4, 1)
		s.assigned(2, 2, 2)
	}},
	{checker: "groups", name: "two owners by their commits", want: map[model.Anomaly]int64{model.DoubleOwner: 1}, write: func(s *script) {
		s.assigned(1, 0, 1)
		s.given(1, 0, 4)
		s.assigned(2, 0, 2)
		s.given(2, 0, 4)
		s.commits(2, 4, 2)
		s.commits(1, 2, 1)
	}},
	{checker: "groups", name: "two owners in one generation", want: map[model.Anomaly]int64{model.DoubleOwner: 1}, write: func(s *script) {
		s.assigned(1, 0, 3)
		s.assigned(2, 0, 3)
		s.given(1, 0, 2)
	}},
	{checker: "groups", name: "acknowledged and never given", options: MonitorOptions{Drained: true}, want: map[model.Anomaly]int64{model.GroupSkip: 1}, write: func(s *script) {
		s.acked(0, 1, 0, 4)
		s.assigned(4, 0, 1)
		s.given(4, 0, 3)
	}},
	{checker: "groups", name: "acknowledged and not given yet", undecided: []model.Claim{model.GroupDelivery}, write: func(s *script) {
		s.acked(0, 1, 0, 4)
		s.assigned(4, 0, 1)
		s.given(4, 0, 3)
		s.commits(4, 3, 1)
	}},
	{checker: "groups", name: "no record at a marker", options: MonitorOptions{Sparse: true}, write: func(s *script) {
		s.acked(0, 1, 0, 4)
		s.acked(5, 1, 4, 1)
		s.assigned(4, 0, 1)
		s.given(4, 0, 4)
		s.given(4, 5, 1)
		s.commits(4, 6, 1)
	}},
	{checker: "queue", name: "handed out when the lease was over", write: func(s *script) {
		s.sent(send(1))
		s.handled(2, lease(1, 6))
		s.wait(6)
		s.handled(3, lease(1, 6))
		s.handled(3, about(histories.Ack, 1, 0))
	}},
	{checker: "queue", name: "handed out inside a lease", want: map[model.Anomaly]int64{model.EarlyRedelivery: 1}, write: func(s *script) {
		s.sent(send(1))
		s.handled(2, lease(1, 9))
		s.handled(3, lease(1, 9))
	}},
	{checker: "queue", name: "a nack ends the lease", write: func(s *script) {
		s.sent(send(1))
		s.handled(2, lease(1, 9))
		s.handled(2, about(histories.Nack, 1, 0))
		s.handled(3, lease(1, 9))
	}},
	{checker: "queue", name: "the nack of an old lease does not", want: map[model.Anomaly]int64{model.EarlyRedelivery: 1}, write: func(s *script) {
		s.sent(send(1))
		s.handled(2, lease(1, 1))
		s.wait(2)
		s.handled(3, lease(1, 20))
		s.handled(2, about(histories.Nack, 1, 0))
		s.handled(4, lease(1, 9))
	}},
	{checker: "queue", name: "an extension is ignored", want: map[model.Anomaly]int64{model.EarlyRedelivery: 1}, write: func(s *script) {
		s.sent(send(1))
		s.handled(2, lease(1, 5))
		s.handled(2, about(histories.Extend, 1, 30))
		s.wait(5)
		s.handled(3, lease(1, 9))
	}},
	{checker: "queue", name: "handed out after its deletion", want: map[model.Anomaly]int64{model.Duplicate: 1}, write: func(s *script) {
		s.sent(send(1))
		s.handled(2, lease(1, 5))
		s.handled(2, about(histories.Ack, 1, 0))
		s.handled(3, lease(1, 5))
	}},
	{checker: "queue", name: "never sent", want: map[model.Anomaly]int64{model.Phantom: 1}, undecided: []model.Claim{model.NoLoss}, write: func(s *script) { s.sent(send(1)); s.handled(2, lease(7, 5)) }},
	{checker: "queue", name: "lost", want: map[model.Anomaly]int64{model.LostAcked: 1}, write: func(s *script) {
		s.sent(send(1))
		s.sent(send(2))
		s.handled(3, lease(2, 5))
		s.phase("drain")
		s.handled(3, histories.Step{Do: histories.Receive})
	}},
	{checker: "queue", name: "perhaps lost", undecided: []model.Claim{model.NoLoss}, write: func(s *script) {
		s.sent(send(1))
		s.sent(send(2))
		s.handled(3, lease(2, 5))
	}},
	{checker: "fifo", name: "in order", write: func(s *script) {
		s.sent(send(1))
		s.sent(send(2))
		s.took(take(1))
		s.took(take(2))
		s.took()
	}},
	{checker: "fifo", name: "overtaken", want: map[model.Anomaly]int64{model.FIFOInversion: 1}, write: func(s *script) {
		s.sent(send(1))
		s.sent(send(2))
		s.took(take(2))
		s.took(take(1))
	}},
	{checker: "fifo", name: "left behind", want: map[model.Anomaly]int64{model.FIFOInversion: 1}, undecided: []model.Claim{model.NoLoss}, write: func(s *script) {
		s.sent(send(1))
		s.sent(send(2))
		s.took(take(2))
	}},
	{checker: "fifo", name: "perhaps taken by a lost reply", undecided: []model.Claim{model.NoLoss}, write: func(s *script) {
		s.sent(send(1))
		s.sent(send(2))
		s.steps(histories.Step{Do: histories.Dequeue})(histories.Info)
		s.took(take(2))
	}},
	{checker: "fifo", name: "numbers against real time", want: map[model.Anomaly]int64{model.FIFOInversion: 2}, write: func(s *script) {
		s.sent(sendAs(1, 0, 8))
		s.sent(sendAs(2, 0, 7))
		s.took(take(2))
		s.took(take(1))
	}},
	{checker: "fifo", name: "numbers decide", want: map[model.Anomaly]int64{model.FIFOInversion: 1}, write: func(s *script) {
		one, two := s.steps(sendAs(1, 0, 0)), s.steps(sendAs(2, 0, 0))
		one(histories.OK, sendAs(1, 0, 1))
		two(histories.OK, sendAs(2, 0, 2))
		s.took(take(2))
		s.took(take(1))
	}},
	{checker: "fifo", name: "said to be empty", want: map[model.Anomaly]int64{model.FalseEmpty: 1}, write: func(s *script) {
		s.sent(send(1))
		s.took()
		s.took(take(1))
	}},
	{checker: "fifo", name: "said to be empty, and lost", want: map[model.Anomaly]int64{model.FalseEmpty: 1, model.LostAcked: 1}, write: func(s *script) { s.sent(send(2)); s.took(take(2)); s.sent(send(1)); s.took() }},
	{checker: "fifo", name: "empty after a lost reply", undecided: []model.Claim{model.FIFO, model.NoLoss}, write: func(s *script) {
		s.sent(send(2))
		s.took(take(2))
		s.sent(send(1))
		s.steps(histories.Step{Do: histories.Dequeue})(histories.Info)
		s.took()
	}},
	{checker: "fifo", name: "taken twice", want: map[model.Anomaly]int64{model.Duplicate: 1}, write: func(s *script) {
		s.sent(send(1))
		s.took(take(1))
		s.took(take(1))
	}},
	{checker: "fifo", name: "refused and taken", want: map[model.Anomaly]int64{model.Phantom: 1}, write: func(s *script) {
		s.sent(send(2))
		s.took(take(2))
		s.steps(send(1))(histories.Fail)
		s.took(take(1))
	}},
	{checker: "fifo", name: "a copy inside the window", options: MonitorOptions{Window: 100 * ms}, want: map[model.Anomaly]int64{model.DedupLeak: 1}, write: func(s *script) {
		s.sent(sendAs(1, 9, 0))
		s.sent(sendAs(2, 9, 0))
		s.took(take(1))
		s.took(take(2))
	}},
	{checker: "fifo", name: "a copy recognised", options: MonitorOptions{Window: 100 * ms}, write: func(s *script) {
		s.sent(sendAs(1, 9, 0))
		s.sent(sendAs(2, 9, 0))
		s.sent(sendAs(3, 8, 0))
		s.took(take(1))
		s.took(take(3))
		s.took()
	}},
	{checker: "fifo", name: "a copy outside the window", options: MonitorOptions{Window: 4 * ms}, write: func(s *script) {
		s.sent(sendAs(1, 9, 0))
		s.wait(6)
		s.sent(sendAs(2, 9, 0))
		s.took(take(1))
		s.took(take(2))
	}},
	{checker: "fifo", name: "sent twice under one name", undecided: fifoDecides, write: func(s *script) { s.sent(send(1)); s.sent(send(1)); s.took(take(1)) }},
}

// TestGroupFixtures: each fixture has what was planted and nothing else, in both forms of its checker; the proofs stand in a golden file.
func TestGroupFixtures(t *testing.T) {
	var golden strings.Builder
	for _, f := range groupFixtures {
		name := f.checker + ", " + f.name
		s := &script{}
		f.write(s)
		c := groupCheckers[f.checker]
		o := f.options
		o.Floors, o.Claims = model.Floors{}, c.all
		offline, err := c.check(histories.Events(s.events), o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := f.want
		if want == nil {
			want = map[model.Anomaly]int64{}
		}
		for form, a := range map[string]*Answer{"offline": offline, "online": along(t, c.monitor(o), s.events)} {
			got, _ := a.anomalies()
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s, %s: anomalies (want −, got +):\n%s", name, form, d)
			}
			for _, claim := range a.Claims {
				if undecided := slices.Contains(f.undecided, claim.ID); undecided != (claim.Verdict == model.Undecided) {
					t.Errorf("%s, %s: %s is %s (%s), want undecided %v", name, form, claim.ID, claim.Verdict, claim.Reason, undecided)
				}
			}
			checkProofs(t, a)
		}
		fmt.Fprintf(&golden, "%s\n", name)
		for _, claim := range offline.Claims {
			if claim.Reason != "" {
				fmt.Fprintf(&golden, "  %s: %s\n", claim.ID, claim.Reason)
			}
			for _, x := range claim.Anomalies {
				fmt.Fprintf(&golden, "  %s at %v: %s\n", x.Kind, x.Where, x.Proof.Sentence)
				for _, op := range x.Proof.Operations {
					fmt.Fprintf(&golden, "    %-11s %3d–%-3d %s\n", op.Role, op.Op, op.EndSeq, op.Text)
				}
			}
		}
	}
	file := filepath.Join("testdata", "groups.golden")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, []byte(golden.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), golden.String()); d != "" {
		t.Errorf("certificates differ from %s (UPDATE_GOLDEN=1 rewrites it):\n%s", file, d)
	}
}

// TestEmptyHistory: nothing shown is nothing held.
func TestEmptyGroupHistory(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(groupCheckers)) {
		c := groupCheckers[name]
		a, err := c.check(histories.Events(nil), MonitorOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if v := a.Verdict(); v != model.NotTested {
			t.Errorf("%s: an empty history is %s, want %s", name, v, model.NotTested)
		}
		if a, err = c.check(histories.Events(nil), MonitorOptions{Claims: []model.Claim{model.Liveness}}); err != nil || a.Verdict() != model.Undecided {
			t.Errorf("%s: a claim of somebody else is %v (%v), want undecided", name, a.Verdict(), err)
		}
	}
}
