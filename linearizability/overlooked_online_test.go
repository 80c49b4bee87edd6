package linearizability

import (
	"testing"

	"ackproof/histories"
	"ackproof/model"
)

// TestOnlineOverlooked has the cases that ci/mutants showed no other test to notice.
func TestOnlineOverlooked(t *testing.T) {
	for _, c := range []struct {
		name  string
		want  model.Anomaly // the first, "" for none
		write func(s *script)
	}{
		{"acknowledged at the last offset that had been counted", model.ReorderedRealtime, func(s *script) {
			s.answer(histories.EndOffset, 1, 1)
			s.acked(0, 1, 0, 1)
		}},
		{"acknowledged right behind it", "", func(s *script) {
			s.answer(histories.EndOffset, 1, 1)
			s.acked(1, 1, 0, 1)
		}},
		{"of two records that were read one had been sent", model.Phantom, func(s *script) {
			s.send(1, 0, 1)
			s.fetch(1, 0)(at(0, 1, 0, 2))
		}},
		{"two reads of one session at once", "", func(s *script) {
			s.acked(0, 1, 0, 3)
			later, earlier := s.fetch(1, 2), s.fetch(1, 0)
			later(at(2, 1, 2, 1))
			earlier(at(0, 1, 0, 2))
		}},
	} {
		s := &script{}
		c.write(s)
		o := NewOnline(strong())
		got := model.Anomaly("")
		for i := range s.events {
			if sighted := o.Step(&s.events[i]); sighted != nil && got == "" {
				got = sighted.Anomaly
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
