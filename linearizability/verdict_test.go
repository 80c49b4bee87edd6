package linearizability

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"ackproof/histories"
	"ackproof/model"
)

// TestUndecided: a final log that is not known to its end decides nothing about what may still be there, and loses nothing.
func TestUndecided(t *testing.T) {
	incomplete := model.Facts{DrainReason: "p0 has no leader", Liveness: model.Recovery{Checked: true}}
	cases := []struct {
		name  string
		facts model.Facts
		write func(s *script)
		claim model.Claim
		want  model.Verdict
		why   string
	}{
		{"nothing was read", incomplete, func(s *script) { s.acked(0, 1, 0, 616); s.phase("drain") },
			model.NoLoss, model.Undecided, "616 acknowledged records in 1 partitions were neither found nor ruled out: p0 has no leader"},
		{"the visible end lags", incomplete, func(s *script) { s.acked(0, 1, 0, 2); s.drain(9, 1, at(0, 1, 0, 1)) },
			model.NoLoss, model.Undecided, "p0 has no leader"},
		{"all the same a loss in the middle is one", incomplete, func(s *script) { s.acked(0, 1, 0, 3); s.drain(9, 3, at(0, 1, 0, 1), at(2, 1, 2, 1)) },
			model.NoLoss, model.Violated, ""},
		{"everything was found before the drain broke off", incomplete, func(s *script) { s.acked(0, 1, 0, 3); s.drain(9, 3, at(0, 1, 0, 3)) },
			model.NoLoss, model.Held, ""},
		{"no empty read at the end", whole(), func(s *script) { s.acked(0, 1, 0, 2); s.phase("drain"); s.fetch(9, 0)(at(0, 1, 0, 1)) },
			model.NoLoss, model.Undecided, "no read of the drain reached the end of p0"},
		{"the end was not read to", whole(), func(s *script) {
			s.acked(0, 1, 0, 2)
			s.phase("drain")
			s.answer(histories.EndOffset, 2, 1)
			s.fetch(9, 0)(at(0, 1, 0, 1))
		}, model.NoLoss, model.Undecided, "not read from offset 1 to its end 2"},
		{"copies end apart", whole(), func(s *script) {
			s.acked(0, 1, 0, 2)
			s.drain(9, 2, at(0, 1, 0, 2))
			s.begin(histories.Event{Kind: histories.CopyEnd, Node: 3})(histories.Event{Offset: 1, HighWatermark: 1})
			s.acked(2, 1, 2, 1)
		}, model.NoLoss, model.Undecided, "one ends at 1, another at 2"},
		{"acknowledged after the final read", whole(), func(s *script) {
			s.acked(0, 1, 0, 1)
			late := s.send(2, 0, 1)
			s.drain(9, 1, at(0, 1, 0, 1))
			late(histories.Event{Offset: 1})
		}, model.NoLoss, model.Undecided, "the final read of p0 began before they were acknowledged"},
		{"read, and the end unknown", incomplete, func(s *script) { s.acked(0, 1, 0, 2); s.fetch(1, 0)(at(0, 1, 0, 2)); s.drain(9, 1, at(0, 1, 0, 1)) },
			model.NoDirtyRead, model.Undecided, "1 read records"},
		{"nobody read it all", whole(), func(s *script) {
			s.acked(0, 1, 0, 2)
			s.phase("drain")
			s.copyRead(1, 0, at(0, 1, 0, 2))
			s.copyRead(1, 2)
		},
			model.AtLeastOnce, model.Undecided, "no reader that went from start to end"},
		{"not all copies", model.Facts{DrainComplete: true, CopiesRead: 2, CopiesWanted: 3}, func(s *script) { s.acked(0, 1, 0, 2); s.drain(9, 2, at(0, 1, 0, 2)) },
			model.OffsetAgreement, model.Undecided, "2 of 3 copies"},
		{"holes that only batches fit", whole(), func(s *script) { s.send(2, 0, 2); s.send(3, 0, 2); s.acked(3, 1, 0, 1); s.phase("drain") },
			model.OffsetAgreement, model.Undecided, "3 unread offsets"},
		{"holes that single records fit", whole(), func(s *script) {
			s.send(2, 0, 1)
			s.send(3, 0, 1)
			s.acked(2, 1, 0, 1)
			s.fetch(1, 2)(at(2, 1, 0, 1))
			s.fetch(1, 2)(at(2, 1, 0, 1))
			s.phase("drain")
		}, model.OffsetAgreement, model.Held, ""},
		{"progress not watched", model.Facts{DrainComplete: true}, func(s *script) { s.acked(0, 1, 0, 1) }, model.Liveness, model.Undecided, "not watched"},
		{"no progress", model.Facts{Liveness: model.Recovery{Checked: true, BoundMS: 500, Unmet: []string{"p0 has no leader"}}}, func(s *script) { s.acked(0, 1, 0, 1) },
			model.Liveness, model.Violated, ""},
		{"the harness died", model.Facts{DrainComplete: true, Broken: "a client panicked"}, func(s *script) { s.acked(0, 1, 0, 1); s.drain(9, 1, at(0, 1, 0, 1)) },
			model.NoLoss, model.Undecided, "a client panicked"},
		{"the harness died, and yet", model.Facts{DrainComplete: true, Broken: "a client panicked"}, func(s *script) { s.acked(0, 1, 0, 1); s.phase("drain"); s.fetch(9, 0)() },
			model.NoLoss, model.Violated, ""},
	}
	for _, c := range cases {
		s := &script{}
		c.write(s)
		got := decide(t, s, strong(), c.facts).claim(c.claim)
		if got.Verdict != c.want || !strings.Contains(got.Reason, c.why) {
			t.Errorf("%s: %s is %s (%q), want %s with %q", c.name, c.claim, got.Verdict, got.Reason, c.want, c.why)
		}
	}
}

// TestPermitted: what each configuration allows is listed with its cause and breaks nothing.
func TestPermitted(t *testing.T) {
	type permitted map[model.Claim]map[model.Anomaly]string
	reused := func(s *script) { // an acknowledged record goes with its leader, its offset to another
		s.acked(0, 1, 0, 1)
		s.acked(0, 2, 0, 1)
		s.drain(9, 1, at(0, 2, 0, 1))
	}
	dirty := func(s *script) {
		s.acked(0, 1, 0, 1)
		s.fetch(1, 0)(at(0, 1, 0, 1))
		s.acked(0, 2, 0, 1)
		s.answer(histories.EndOffset, 1, 1)
		s.answer(histories.EndOffset, 0, 2)
		s.drain(9, 1, at(0, 2, 0, 1))
	}
	const power = "power or disks were lost while no other copy was whole"
	cut := func(s *script) { // the sending of the record that is gone is event 3
		s.acked(0, 1, 0, 1)
		s.acked(1, 1, 1, 1)
		s.drain(9, 1, at(0, 1, 0, 1))
	}
	cases := []struct {
		name     string
		c        model.Contract
		write    func(*script)
		want     permitted
		violated []model.Anomaly
	}{
		{"acks=1", model.Contract{Acks: 1}, reused, permitted{model.NoLoss: {model.LostAcked: "acks=1"}, model.OffsetAgreement: {model.InconsistentOffset: "acks=1"}}, nil},
		{"acks=1 does not excuse readers", model.Contract{Acks: 1}, dirty, permitted{model.NoLoss: {model.LostAcked: "acks=1"}, model.OffsetAgreement: {model.InconsistentOffset: "acks=1"}},
			[]model.Anomaly{model.DirtyRead, model.InconsistentOffset, model.StaleEndOffset}},
		{"unclean election", model.Contract{Acks: -1, Idempotent: true, Unclean: true}, dirty, permitted{
			model.NoLoss: {model.LostAcked: "unclean.leader.election.enable=true"}, model.NoDirtyRead: {model.DirtyRead: "unclean.leader.election.enable=true"},
			model.OffsetAgreement: {model.InconsistentOffset: "unclean.leader.election.enable=true"}, model.VisibleEnd: {model.StaleEndOffset: "unclean.leader.election.enable=true"}}, nil},
		{"sent before every copy was whole again", model.Contract{Acks: -1, Idempotent: true, PowerLoss: true, PowerLossUntil: 3}, cut, permitted{model.NoLoss: {model.LostAcked: power}}, nil},
		{"sent after that", model.Contract{Acks: -1, Idempotent: true, PowerLoss: true, PowerLossUntil: 2}, cut, permitted{}, []model.Anomaly{model.LostAcked}},
		{"unclean election does not excuse copies", model.Contract{Acks: -1, Idempotent: true, Unclean: true}, func(s *script) {
			s.send(2, 0, 1)
			s.acked(0, 1, 0, 1)
			s.drain(9, 1, at(0, 1, 0, 1))
			s.copyRead(2, 0, at(0, 2, 0, 1))
		}, nil, []model.Anomaly{model.ReplicaDivergence}},
		{"acks=0", model.Contract{Acks: 0}, func(s *script) {
			s.acked(-1, 1, 0, 1)
			s.acked(-1, 1, 1, 1)
			s.drain(9, 1, at(0, 1, 1, 1))
		}, permitted{model.NoLoss: {model.LostAcked: "acks=0"}}, nil},
		{"idempotence off", model.Contract{Acks: -1}, func(s *script) {
			a, b := s.send(1, 0, 1), s.send(1, 1, 1)
			b(histories.Event{Offset: 0})
			a(histories.Event{Offset: 1})
			s.drain(9, 3, at(0, 1, 1, 1), at(1, 1, 0, 2))
		}, permitted{model.NoDuplicate: {model.Duplicate: "idempotence off"}, model.Order: {model.Reordered: "idempotence off"}}, nil},
		{"idempotence needs acks=all", model.Contract{Acks: 1, Idempotent: true}, func(s *script) {
			s.acked(0, 1, 0, 1)
			s.drain(9, 2, at(0, 1, 0, 1), at(1, 1, 0, 1))
		}, permitted{model.NoDuplicate: {model.Duplicate: "idempotence off"}}, nil},
	}
	for _, c := range cases {
		c.c.System, c.c.Partitions, c.c.Replication, c.c.MinISR, c.c.Dense = "test", 1, 3, 2, true
		s := &script{}
		c.write(s)
		a := decide(t, s, model.LogContract(c.c), whole())
		var violated []model.Anomaly
		for _, claim := range a.Claims {
			for _, x := range claim.Anomalies {
				violated = append(violated, x.Kind)
			}
			got := make(map[model.Anomaly]string)
			for _, x := range claim.Permitted {
				got[x.Kind] = x.Because
			}
			if want := c.want[claim.ID]; fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %s permits %v, want %v", c.name, claim.ID, got, want)
			}
		}
		slices.Sort(violated)
		if !slices.Equal(violated, c.violated) {
			t.Errorf("%s: violated by %v, want %v", c.name, violated, c.violated)
		}
		if o, err := SecondOpinion(a, OpinionOptions{}); err != nil || o.Windows == 0 && c.c.Acks != 0 {
			t.Errorf("%s: second opinion %+v: %v", c.name, o, err)
		}
	}
}

// TestMalformed: what cannot be judged is an error and no verdict.
func TestMalformed(t *testing.T) {
	failing := errors.New("read error")
	far := &script{}
	far.acked(0, 1, 0, 1)
	far.acked(1<<40, 1, 1, 1)
	twice := &script{}
	twice.acked(0, 1, 0, 1)
	twice.acked(1, 1, 0, 1)
	for name, c := range map[string]struct {
		events iter.Seq2[histories.Event, error]
		want   error
	}{
		"read error":        {func(yield func(histories.Event, error) bool) { yield(histories.Event{}, failing) }, failing},
		"a value twice":     {histories.Events(twice.events), histories.ErrMalformed},
		"offsets far apart": {histories.Events(far.events), histories.ErrMalformed},
	} {
		if a, err := CheckLog(c.events, strong(), whole(), Options{}); !errors.Is(err, c.want) || a != nil {
			t.Errorf("%s: %v with error %v, want only %v", name, a, err, c.want)
		}
	}
}

// TestEmpty: a history of nothing is not tested, whatever was asked for.
func TestEmpty(t *testing.T) {
	for _, c := range decide(t, &script{}, strong(), whole(), model.ReadAfterAck).Claims {
		want := model.NotTested
		if c.ID == model.Liveness {
			want = model.Held // it was watched, by the facts
		}
		if c.Verdict != want {
			t.Errorf("%s of nothing is %s (%s), want %s", c.ID, c.Verdict, c.Reason, want)
		}
	}
}

// suspect makes every operation as suspect as that.
func suspect(a *Answer, s suspicion) {
	for _, block := range a.log.ops.all {
		for i := range block[:blockSize] {
			block[i].suspect = s
		}
	}
}

// TestDisagreement: were the exact checkers to miss an anomaly, or to invent one, porcupine would say so.
func TestDisagreement(t *testing.T) {
	for _, c := range planted {
		s := &script{}
		c.write(s)
		a := decide(t, s, strong(), whole())
		suspect(a, 0)
		o, err := SecondOpinion(a, OpinionOptions{})
		if errors.Is(err, ErrDisagreement) == o.Agreed {
			t.Errorf("%s: agreed is %v, and the error %v", c.name, o.Agreed, err)
		}
		if c.name == "two producers against real time" || c.name == "lost in the middle" || c.name == "read and gone" {
			if err == nil {
				t.Errorf("%s: porcupine did not miss what the exact checkers forgot", c.name)
			}
		}
		if c.name == "legal" {
			suspect(a, mustFail)
			if _, err := SecondOpinion(a, OpinionOptions{}); err == nil {
				t.Errorf("%s: an invented anomaly was believed", c.name)
			}
		}
	}
}
