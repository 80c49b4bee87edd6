package linearizability

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ackproof/histories"
	"ackproof/model"
)

// Each anomaly planted into a small legal history: what must be found, and nothing else.
var planted = []struct {
	name   string
	claims []model.Claim // beyond the contract's
	want   map[model.Anomaly]int64
	write  func(s *script)
}{
	{"legal", []model.Claim{model.ReadAfterAck}, nil, func(s *script) {
		s.acked(0, 1, 0, 2)
		s.fetch(1, 0)(at(0, 1, 0, 2))
		done := s.send(2, 0, 1)
		s.fetch(1, 2)()
		s.fetch(1, 2)(at(2, 2, 0, 1)) // before its ack: allowed
		done(histories.Event{Type: histories.Info, Code: histories.NoAnswer})
		s.send(2, 1, 1)(histories.Event{Type: histories.Fail, Code: 19})
		s.send(3, 0, 1) // never ends, never seen
		s.answer(histories.EndOffset, 3, 1)
		s.drain(9, 3, at(0, 1, 0, 2), at(2, 2, 0, 1))
		s.copyRead(2, 0, at(0, 1, 0, 2), at(2, 2, 0, 1))
	}},
	{"lost in the middle", nil, map[model.Anomaly]int64{model.LostAcked: 1, model.InconsistentOffset: 1}, func(s *script) {
		s.acked(0, 1, 0, 1)
		s.acked(1, 1, 1, 1)
		s.acked(1, 2, 0, 1)
		s.acked(2, 1, 2, 1)
		s.drain(9, 3, at(0, 1, 0, 1), at(1, 2, 0, 1), at(2, 1, 2, 1))
	}},
	{"lost into a hole", nil, map[model.Anomaly]int64{model.LostAcked: 1, model.UnfillableGap: 1}, func(s *script) {
		for k := range int64(3) {
			s.acked(k, 1, k, 1)
		}
		s.drain(9, 3, at(0, 1, 0, 1), at(2, 1, 2, 1))
	}},
	{"lost tail", nil, map[model.Anomaly]int64{model.LostAcked: 2}, func(s *script) {
		s.acked(0, 1, 0, 1)
		s.acked(1, 1, 1, 2)
		s.drain(9, 1, at(0, 1, 0, 1))
	}},
	{"everything lost", nil, map[model.Anomaly]int64{model.LostAcked: 2}, func(s *script) {
		s.acked(0, 1, 0, 2)
		s.phase("drain")
		s.fetch(9, 0)()
	}},
	{"lost without an offset", nil, map[model.Anomaly]int64{model.LostAcked: 1}, func(s *script) {
		s.acked(-1, 1, 0, 1)
		s.acked(-1, 1, 1, 1)
		s.drain(9, 1, at(0, 1, 1, 1))
	}},
	{"undelivered", nil, map[model.Anomaly]int64{model.Undelivered: 1}, func(s *script) {
		s.acked(0, 1, 0, 3)
		s.fetch(1, 0)(at(0, 1, 0, 1))
		s.fetch(1, 1)(at(2, 1, 2, 1))
		s.fetch(1, 3)()
		s.drain(9, 3, at(0, 1, 0, 3))
	}},
	{"skipped by a late reader", nil, map[model.Anomaly]int64{model.PollSkip: 1}, func(s *script) {
		s.acked(0, 1, 0, 4)
		s.fetch(1, 1)(at(1, 1, 1, 1), at(3, 1, 3, 1))
		s.drain(9, 4, at(0, 1, 0, 4))
	}},
	{"reader goes back", nil, map[model.Anomaly]int64{model.NonmonotonicPoll: 1}, func(s *script) {
		s.acked(0, 1, 0, 3)
		s.fetch(1, 0)(at(0, 1, 0, 3))
		s.fetch(1, 3)(at(1, 1, 1, 2))
		s.drain(9, 3, at(0, 1, 0, 3))
	}},
	{"one producer out of order", nil, map[model.Anomaly]int64{model.Reordered: 1}, func(s *script) {
		first, second := s.send(1, 0, 1), s.send(1, 1, 1)
		first(histories.Event{Offset: 1})
		second(histories.Event{Offset: 0})
		s.drain(9, 2, at(0, 1, 1, 1), at(1, 1, 0, 1))
	}},
	{"two producers against real time", nil, map[model.Anomaly]int64{model.ReorderedRealtime: 1}, func(s *script) {
		s.acked(1, 1, 0, 1)
		s.acked(0, 2, 0, 1)
		s.drain(9, 2, at(0, 2, 0, 1), at(1, 1, 0, 1))
	}},
	{"read before a lower one was sent", nil, map[model.Anomaly]int64{model.ReorderedRealtime: 1}, func(s *script) {
		one := s.send(1, 0, 1)
		s.fetch(1, 1)(at(1, 1, 0, 1))
		s.acked(0, 2, 0, 1)
		one(histories.Event{Offset: 1})
		s.drain(9, 2, at(0, 2, 0, 1), at(1, 1, 0, 1))
	}},
	{"two values at one offset", nil, map[model.Anomaly]int64{model.InconsistentOffset: 1, model.DirtyRead: 1}, func(s *script) {
		s.acked(0, 1, 0, 1)
		s.send(2, 0, 1)(histories.Event{Type: histories.Info})
		s.fetch(1, 0)(at(0, 2, 0, 1))
		s.drain(9, 1, at(0, 1, 0, 1))
	}},
	{"ack names another offset", nil, map[model.Anomaly]int64{model.InconsistentOffset: 1}, func(s *script) {
		s.send(2, 0, 1)(histories.Event{Type: histories.Info})
		s.acked(0, 1, 0, 1)
		s.drain(9, 2, at(0, 2, 0, 1), at(1, 1, 0, 1))
	}},
	{"copies differ", nil, map[model.Anomaly]int64{model.ReplicaDivergence: 1}, func(s *script) {
		s.send(2, 0, 1)(histories.Event{Type: histories.Info})
		s.acked(0, 1, 0, 1)
		s.drain(9, 1, at(0, 1, 0, 1))
		s.copyRead(2, 0, at(0, 2, 0, 1))
	}},
	{"a copy lacks one", nil, map[model.Anomaly]int64{model.ReplicaDivergence: 1}, func(s *script) {
		s.acked(0, 1, 0, 3)
		s.drain(9, 3, at(0, 1, 0, 3))
		s.copyRead(2, 0, at(0, 1, 0, 1), at(2, 1, 2, 1))
	}},
	{"a hole that nobody filled", nil, map[model.Anomaly]int64{model.UnfillableGap: 1}, func(s *script) {
		s.acked(0, 1, 0, 1)
		s.acked(2, 1, 1, 1)
		s.send(2, 0, 1)(histories.Event{Type: histories.Info}) // too late for it
		s.phase("drain")
	}},
	{"a hole passed by the drain", nil, map[model.Anomaly]int64{model.UnfillableGap: 1}, func(s *script) {
		s.send(2, 0, 1)(histories.Event{Type: histories.Info}) // in time, but the drain saw that it is not there
		s.acked(0, 1, 0, 1)
		s.acked(2, 1, 1, 1)
		s.drain(9, 3, at(0, 1, 0, 1), at(2, 1, 1, 1))
	}},
	{"never sent", nil, map[model.Anomaly]int64{model.Phantom: 1}, func(s *script) {
		s.acked(0, 1, 0, 1)
		s.drain(9, 2, at(0, 1, 0, 1), at(1, 7, 7, 1))
	}},
	{"refused and read", nil, map[model.Anomaly]int64{model.Phantom: 1}, func(s *script) {
		s.acked(0, 1, 0, 1)
		s.send(1, 1, 1)(histories.Event{Type: histories.Fail, Code: 19})
		s.drain(9, 2, at(0, 1, 0, 2))
	}},
	{"read before it was sent", nil, map[model.Anomaly]int64{model.FutureRead: 1}, func(s *script) {
		s.fetch(1, 0)(at(0, 1, 0, 1))
		s.acked(0, 1, 0, 1)
		s.drain(9, 1, at(0, 1, 0, 1))
	}},
	{"altered", nil, map[model.Anomaly]int64{model.CorruptValue: 1}, func(s *script) {
		s.acked(0, 1, 0, 1)
		s.fetch(1, 0)(histories.Run{Offset: 0, Count: 1, Defect: histories.Corrupt})
		s.drain(9, 1, at(0, 1, 0, 1))
	}},
	{"of another topic", nil, map[model.Anomaly]int64{model.ForeignRecord: 1}, func(s *script) {
		s.acked(0, 1, 0, 1)
		s.drain(9, 2, at(0, 1, 0, 1), histories.Run{Offset: 1, Producer: 4, Sequence: 9, Count: 1, Defect: histories.Foreign})
	}},
	{"of another partition", nil, map[model.Anomaly]int64{model.ForeignRecord: 1}, func(s *script) {
		s.acked(0, 1, 0, 1)
		s.begin(histories.Event{Kind: histories.Append, Partition: 1, Runs: values(2, 0, 1)})(histories.Event{Type: histories.Info})
		s.drain(9, 2, at(0, 1, 0, 1), at(1, 2, 0, 1))
	}},
	{"read and gone", nil, map[model.Anomaly]int64{model.DirtyRead: 1}, func(s *script) {
		s.acked(0, 1, 0, 1)
		s.send(2, 0, 1)(histories.Event{Type: histories.Info})
		s.fetch(1, 1)(at(1, 2, 0, 1))
		s.drain(9, 1, at(0, 1, 0, 1))
	}},
	{"twice", nil, map[model.Anomaly]int64{model.Duplicate: 1}, func(s *script) {
		s.acked(0, 1, 0, 1)
		s.drain(9, 2, at(0, 1, 0, 1), at(1, 1, 0, 1))
	}},
	{"the end falls", nil, map[model.Anomaly]int64{model.StaleEndOffset: 1}, func(s *script) {
		s.acked(0, 1, 0, 2)
		s.answer(histories.EndOffset, 2, 1)
		s.answer(histories.EndOffset, 1, 2)
		s.drain(9, 2, at(0, 1, 0, 2))
	}},
	{"a deposed leader may answer less", nil, nil, func(s *script) {
		s.acked(0, 1, 0, 2)
		s.answer(histories.EndOffset, 2, 2)
		s.answer(histories.EndOffset, 1, 1)
		s.drain(9, 2, at(0, 1, 0, 2))
	}},
	{"the start falls", nil, map[model.Anomaly]int64{model.StartOffsetBackwards: 1}, func(s *script) {
		s.acked(0, 1, 0, 2)
		s.answer(histories.StartOffset, 1, 1)
		s.answer(histories.StartOffset, 0, 1)
		s.phase("drain")
		s.fetch(9, 1)(at(1, 1, 1, 1))
		s.fetch(9, 2)()
	}},
	{"the start lies above the end", nil, map[model.Anomaly]int64{model.StartAboveHW: 1}, func(s *script) {
		s.acked(0, 1, 0, 2)
		s.answer(histories.StartOffset, 1, 1)
		s.answer(histories.EndOffset, 0, 1)
		s.phase("drain")
		s.fetch(9, 1)(at(1, 1, 1, 1))
		s.fetch(9, 2)()
	}},
	{"stale read", []model.Claim{model.ReadAfterAck}, map[model.Anomaly]int64{model.StaleRead: 1}, func(s *script) {
		s.acked(0, 1, 0, 1)
		s.fetch(1, 0)()
		s.drain(9, 1, at(0, 1, 0, 1))
	}},
	{"one reader sees less than another saw", []model.Claim{model.ReadAfterAck}, map[model.Anomaly]int64{model.StaleRead: 1}, func(s *script) {
		done := s.send(1, 0, 1)
		s.fetch(1, 0)(at(0, 1, 0, 1))
		s.fetch(2, 0)()
		done(histories.Event{Offset: 0})
		s.drain(9, 1, at(0, 1, 0, 1))
	}},
	{"trimmed is not lost", nil, nil, func(s *script) {
		s.acked(0, 1, 0, 3)
		s.fetch(1, 0)(at(0, 1, 0, 3))
		s.answer(histories.StartOffset, 2, 1)
		s.phase("drain")
		s.fetch(9, 2)(at(2, 1, 2, 1))
		s.fetch(9, 3)()
	}},
}

func TestPlanted(t *testing.T) {
	var golden strings.Builder
	for _, c := range planted {
		s := &script{}
		c.write(s)
		a := decide(t, s, strong(), whole(), c.claims...)
		got, permitted := a.anomalies()
		want := c.want
		if want == nil {
			want = map[model.Anomaly]int64{}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: anomalies (want −, got +):\n%s", c.name, d)
		}
		if len(permitted) > 0 {
			t.Errorf("%s: permitted %v under the strong contract", c.name, permitted)
		}
		if len(want) == 0 && a.claim(model.NoLoss).Verdict != model.Held {
			t.Errorf("%s: no-loss is %s (%s), want held", c.name, a.claim(model.NoLoss).Verdict, a.claim(model.NoLoss).Reason)
		}
		for _, claim := range a.Claims {
			if (len(claim.Anomalies) > 0) != (claim.Verdict == model.Violated) {
				t.Errorf("%s: %s is %s with %d anomalies", c.name, claim.ID, claim.Verdict, len(claim.Anomalies))
			}
			for _, x := range claim.Anomalies {
				if x.Proof == nil || len(x.Proof.Operations) == 0 || len(x.Proof.Operations) > 4 {
					t.Fatalf("%s: %s has the proof %+v, want one to four operations", c.name, x.Kind, x.Proof)
				}
				fmt.Fprintf(&golden, "%s\n  %s at %v: %s\n", c.name, x.Kind, x.Where, x.Proof.Sentence)
				for _, op := range x.Proof.Operations {
					fmt.Fprintf(&golden, "    %-8s %3d–%-3d %s\n", op.Role, op.Op, op.EndSeq, op.Text)
				}
			}
		}
		if o, err := SecondOpinion(a, OpinionOptions{}); err != nil || !o.Agreed {
			t.Errorf("%s: second opinion: %v", c.name, err)
		}
	}
	file := filepath.Join("testdata", "certificates.golden")
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
