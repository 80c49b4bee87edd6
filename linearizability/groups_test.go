package linearizability

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ackproof/histories"
	"ackproof/model"
)

// randomGroup runs a few members that own one partition in turn, with overlaps, and damages what was recorded, or not.
func randomGroup(r *rand.Rand) []histories.Event {
	const key = "g/0"
	type member struct {
		process    int32
		owns       bool
		generation int64
		next       int64
		step       histories.Step
		done       func(histories.Type, ...histories.Step)
		seen       []histories.Step
		outcome    histories.Type
		applied    bool
	}
	var (
		s          script
		committed  int64 = -1
		generation int64
		fenced     int64
	)
	end := 4 + r.Int64N(6)
	members := []*member{{process: 1}, {process: 2}, {process: 3}}
	for budget := 10 + r.IntN(16); budget > 0 || slices.ContainsFunc(members, func(m *member) bool { return m.done != nil }); {
		m := members[r.IntN(len(members))]
		switch {
		case m.done == nil && budget > 0:
			budget--
			m.step = histories.Step{Key: key, Number: m.generation}
			switch n := r.IntN(6); {
			case !m.owns:
				m.step.Do, m.step.Offset, m.step.Number = histories.Assigned, -1, 0
			case n == 0:
				m.step.Do = histories.Revoked
				m.owns = false
			case n < 3:
				m.step.Do, m.step.Offset = histories.Commit, m.next
			default:
				m.step.Do = histories.Delivered
			}
			m.done, m.applied, m.outcome = s.as(m.process, m.step), false, histories.OK
		case m.done == nil:
		case !m.applied:
			m.applied = true
			seen := m.step
			switch m.step.Do {
			case histories.Assigned:
				generation++
				m.owns, m.generation, m.next = true, generation, max(committed, 0)
				seen.Offset, seen.Number = m.next, generation
			case histories.Commit:
				switch {
				case m.generation < fenced:
					m.outcome = histories.Fail
				case r.IntN(8) == 0:
					m.outcome = histories.Info
					if r.IntN(2) == 0 {
						break
					}
					fallthrough
				default:
					committed, fenced = m.next, m.generation
				}
			case histories.Delivered:
				seen.Offset, seen.Number = m.next, min(r.Int64N(4), end-m.next)
				m.next += max(seen.Number, 0)
				if seen.Number <= 0 {
					seen.Number = 0
				}
			}
			m.seen = []histories.Step{seen}
		default:
			if m.outcome == histories.OK {
				m.done(m.outcome, m.seen...)
			} else {
				m.done(m.outcome)
			}
			m.done = nil
		}
	}
	for range r.IntN(6) {
		i := r.IntN(len(s.events))
		for range 4 { // an answer, more likely than not an assignment or a refusal
			if ev := &s.events[i]; ev.Type == histories.Fail || ev.Type == histories.OK && ev.Steps[0].Do == histories.Assigned {
				break
			}
			i = r.IntN(len(s.events))
		}
		ev := &s.events[i]
		if ev.Type == histories.Invoke || r.IntN(4) == 0 {
			swap(s.events, i)
			continue
		}
		if ev.Type != histories.OK {
			if ev.Steps = nil; ev.Type == histories.Fail {
				ev.Type = histories.OK
				ev.Steps = slices.Clone(s.events[slices.IndexFunc(s.events, func(o histories.Event) bool { return o.Seq == ev.Op })].Steps)
			}
			continue
		}
		ev.Steps = slices.Clone(ev.Steps)
		switch st := &ev.Steps[0]; st.Do {
		case histories.Delivered:
			if st.Number > 0 && r.IntN(2) == 0 {
				st.Number--
			} else {
				ev.Type, ev.Steps = histories.Info, nil
			}
		case histories.Assigned:
			st.Offset = max(0, st.Offset+r.Int64N(7)-4)
		}
	}
	return s.events
}

// groupRules says of a dense log by quantifiers over the whole history which rules it breaks.
func groupRules(events []histories.Event) (skip, back, double bool) {
	all := joinedSteps(events)
	ok := func(s *stepped, do histories.Do) bool { return s.Do == do && s.outcome == histories.OK }
	var starts []*stepped
	for _, s := range all {
		if ok(s, histories.Assigned) {
			starts = append(starts, s)
		}
	}
	slices.SortFunc(starts, byEnd)
	base, began := int64(-1), forever
	for _, s := range all {
		if s.end < began && (ok(s, histories.Assigned) && s.Offset >= 0 || ok(s, histories.Delivered) && s.Number > 0) {
			base, began = s.Offset, s.end
		}
	}
	maybe := func(c *stepped, t uint64) bool { // it may have taken effect by t
		return c.Do == histories.Commit && c.inv < t && !(c.outcome == histories.Fail && c.end < t)
	}
	reset := func(s *stepped) bool { // the look-up may have found nothing committed
		return !slices.ContainsFunc(all, func(c *stepped) bool { return ok(c, histories.Commit) && c.end < s.inv })
	}
	given := func(o int64, t uint64) bool {
		for _, s := range all {
			if ok(s, histories.Delivered) && s.end < t && s.Offset <= o && o < s.Offset+s.Number {
				return true
			}
			if ok(s, histories.Assigned) && s.end < t && o < s.Offset && reset(s) {
				return true // the reset policy gave it up
			}
		}
		return false
	}
	lacks := func(from, to int64, t uint64) bool {
		if base < 0 || began > t {
			return false
		}
		for o := max(from, base); o < to; o++ {
			if !given(o, t) {
				return true
			}
		}
		return false
	}
	for _, s := range all {
		switch {
		case ok(s, histories.Commit):
			skip = skip || lacks(base, s.Offset, s.inv)
			for _, n := range all {
				double = double || ok(n, histories.Commit) && n.Number > s.Number && s.Number > 0 && n.end < s.inv && n.process != s.process
			}
		case ok(s, histories.Assigned) && !reset(s):
			skip = skip || lacks(base, s.Offset, s.end)
			// Every commit that may be the latest lies above, and something was committed for certain.
			lowest, certain := true, false
			for _, c := range all {
				if !maybe(c, s.end) {
					continue
				}
				replaced := slices.ContainsFunc(all, func(x *stepped) bool { return ok(x, histories.Commit) && x.end < s.inv && c.ret() < x.inv })
				lowest = lowest && (replaced || c.Offset > s.Offset)
				certain = certain || ok(c, histories.Commit) && c.end < s.inv
			}
			back = back || lowest && certain
		case ok(s, histories.Delivered) && s.Number > 0:
			var at *stepped // what its process was last told or given
			for _, p := range all {
				if p.process == s.process && p.end < s.inv && (ok(p, histories.Assigned) || ok(p, histories.Delivered) && p.Number > 0 || p.Do == histories.Revoked) && (at == nil || p.end > at.end || p.end == 0) {
					at = p
				}
			}
			if at == nil || at.Do == histories.Revoked {
				break
			}
			skip = skip || lacks(at.Offset+map[bool]int64{true: at.Number}[at.Do == histories.Delivered], s.Offset, s.end)
		}
	}
	return skip, back, double
}

// groupDuel applies the rules by quantifiers over the whole history.
var groupDuel = duel{name: "group delivery", n: 3000, bad: 50, fight: func(t testing.TB, r *rand.Rand, s *score) error {
	events := randomGroup(r)
	var want, got [3]bool
	want[0], want[1], want[2] = groupRules(events)
	a, err := CheckGroups(histories.Events(events), MonitorOptions{Floors: model.Floors{}})
	if err != nil {
		t.Fatal(err)
	}
	checkProofs(t, a)
	found, _ := a.anomalies()
	got[0], got[1], got[2] = found[model.GroupSkip] > 0, found[model.CommittedOffsetRegression] > 0, found[model.DoubleOwner] > 0
	for i, name := range []string{"skips", "commits undone", "owners"} {
		s.asked(name, !want[i], false)
	}
	if got != want {
		return fmt.Errorf("skip, regression, double owner: the checker says %v, the rules %v:\n%s", got, want, showSteps(events))
	}
	return nil
}}

func TestGroupsOracle(t *testing.T) { groupDuel.test(t) }
func FuzzGroups(f *testing.F)       { groupDuel.fuzz(f) }
