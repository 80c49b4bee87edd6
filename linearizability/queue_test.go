package linearizability

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"ackproof/histories"
	"ackproof/model"
)

// as lets the next operation be one of a process of one's choice.
func (s *script) as(process int32, step histories.Step) func(histories.Type, ...histories.Step) {
	s.process = process - 1
	return s.steps(step)
}

// randomWork runs a queue with leases for a few workers, and damages what was recorded, or not.
func randomWork(r *rand.Rand, messages int) []histories.Event { return randomWorkAt(r, messages, nil) }

// randomWorkAt lets some events come at one time, as tie says.
func randomWorkAt(r *rand.Rand, messages int, tie func() bool) []histories.Event {
	const ms = 1_000_000
	type state struct {
		until  int64 // ms; of the lease
		holder int32
		gone   bool
	}
	type worker struct {
		process int32
		step    histories.Step
		done    func(histories.Type, ...histories.Step)
		applied bool
		outcome histories.Type
		seen    []histories.Step
		holds   int64
	}
	s := script{tie: tie}
	next := int32(0)
	box := make(map[int64]*state)
	for m := range messages {
		next++
		s.as(next, histories.Step{Do: histories.Enqueue, Value: histories.IntDatum(int64(m + 1))})(histories.OK)
		box[int64(m+1)] = &state{}
	}
	workers := make([]*worker, 2+r.IntN(2))
	for i := range workers {
		next++
		workers[i] = &worker{process: next}
	}
	for budget := 8 + r.IntN(10); ; {
		w := workers[r.IntN(len(workers))]
		now := int64(s.events[len(s.events)-1].Time) / ms
		switch {
		case w.done == nil && budget == 0:
			if !slices.ContainsFunc(workers, func(w *worker) bool { return w.done != nil }) {
				goto damage
			}
		case w.done == nil:
			budget--
			w.step, w.seen = histories.Step{Do: histories.Receive}, nil
			if w.holds > 0 {
				w.step.Value = histories.IntDatum(w.holds)
				w.step.Do = []histories.Do{histories.Ack, histories.Nack, histories.Nack, histories.Extend, histories.Extend, histories.Receive, histories.Receive, histories.Receive}[r.IntN(8)]
				switch w.step.Do {
				case histories.Extend:
					w.step.Number = (2 + r.Int64N(6)) * ms
				case histories.Receive:
					w.step.Value = histories.Datum{}
				}
			}
			w.done, w.applied = s.as(w.process, w.step), false
		case !w.applied:
			w.applied, w.outcome = true, histories.OK
			if w.step.Do != histories.Receive && r.IntN(8) == 0 {
				w.outcome = histories.Info
				if r.IntN(2) == 0 {
					break
				}
			}
			b := box[w.step.Value.Int]
			switch w.step.Do {
			case histories.Receive:
				seen := w.step
				for m := range messages {
					if b := box[int64(m+1)]; !b.gone && b.until <= now {
						seen.Value, seen.Number = histories.IntDatum(int64(m+1)), (2+r.Int64N(6))*ms
						b.until, b.holder = now+seen.Number/ms, w.process
						break
					}
				}
				w.seen = []histories.Step{seen}
			case histories.Extend:
				if b.holder == w.process {
					b.until = now + w.step.Number/ms
				}
			case histories.Nack:
				if b.holder == w.process {
					b.until, b.holder = 0, 0
				}
			case histories.Ack:
				b.gone = true
			}
		case r.IntN(2) == 0: // the moment lies well before the end
			w.holds = 0
			if w.step.Do == histories.Extend {
				w.holds = w.step.Value.Int
			}
			if w.step.Do == histories.Receive && w.outcome == histories.OK {
				w.holds = w.seen[0].Value.Int
			}
			w.done(w.outcome, w.seen...)
			w.done = nil
		}
	}
damage:
	for range r.IntN(6) {
		i := r.IntN(len(s.events))
		for range 4 { // a lease or its end, more likely than not
			if ev := &s.events[i]; ev.Type == histories.OK && (ev.Steps[0].Number > 0 || ev.Steps[0].Do == histories.Nack) {
				break
			}
			i = r.IntN(len(s.events))
		}
		ev := &s.events[i]
		if ev.Type == histories.OK && ev.Steps[0].Number > 0 && r.IntN(3) > 0 {
			ev.Steps = slices.Clone(ev.Steps)
			ev.Steps[0].Number += (r.Int64N(14) - 2) * ms
			if j := slices.IndexFunc(s.events, func(o histories.Event) bool { return o.Seq == ev.Op }); ev.Steps[0].Do == histories.Extend {
				s.events[j].Steps = slices.Clone(ev.Steps) // as asked
			}
			continue
		}
		if ev.Type == histories.OK && ev.Steps[0].Do == histories.Nack {
			ev.Type = histories.Fail
			continue
		}
		swap(s.events, i)
	}
	return s.events
}

// leasesHold searches a queue's runs tick by tick for one that explains what was seen of one message.
func leasesHold(events []histories.Event, value int64) bool {
	const ms = 1_000_000
	var ops []*stepped
	of := make(map[*stepped]*stepped)
	all := joinedSteps(events)
	for _, s := range all {
		if s.Value.Form == histories.Nil || s.Value.Int != value || s.Do == histories.Enqueue || s.outcome == histories.Fail || s.outcome != histories.OK && s.Do == histories.Receive {
			continue
		}
		if s.Do != histories.Receive {
			for _, r := range all { // the last that its process had
				if r.Do == histories.Receive && r.Value.Int == value && r.outcome == histories.OK && r.process == s.process && r.end < s.inv {
					of[s] = r
				}
			}
			if of[s] == nil {
				continue
			}
		}
		ops = append(ops, s)
	}
	type state struct {
		now, until int64
		placed     uint64
		holder     *stepped
	}
	been := make(map[state]bool)
	last := int64(len(events) + 1) // in ms, whatever was at one time
	var from func(s state) bool
	from = func(s state) bool {
		if been[s] {
			return false
		}
		been[s] = true
		done := true
		for i, o := range ops {
			if s.placed&(1<<i) != 0 {
				continue
			}
			if o.outcome == histories.OK {
				done = false
				if int64(o.endTime)/ms < s.now {
					return false
				}
			}
		}
		if done {
			return true
		}
		for i, o := range ops {
			if s.placed&(1<<i) != 0 || int64(o.invTime)/ms > s.now {
				continue
			}
			if slices.ContainsFunc(ops, func(p *stepped) bool { // at one time there still is an order
				return p.outcome == histories.OK && p.end < o.inv && s.placed&(1<<slices.Index(ops, p)) == 0
			}) {
				continue
			}
			next := s
			next.placed |= 1 << i
			switch {
			case o.Do == histories.Receive && s.holder != nil && s.until > s.now:
				continue
			case o.Do == histories.Receive:
				next.holder, next.until = o, s.now+o.Number/ms
			case of[o] != s.holder:
			case o.Do == histories.Extend:
				next.until = s.now + o.Number/ms
			default:
				next.holder = nil
			}
			if from(next) {
				return true
			}
		}
		if s.now > last {
			return false
		}
		s.now++
		return from(s)
	}
	return from(state{})
}

// workQueueDuel searches the moments tick by tick.
var workQueueDuel = duel{name: "work queue", n: 3000, bad: 10, fight: func(t testing.TB, r *rand.Rand, s *score) error {
	messages := 1 + r.IntN(2)
	var tie func() bool
	if r.IntN(2) == 0 {
		tie = func() bool { return r.IntN(4) == 0 }
	}
	events := randomWorkAt(r, messages, tie)
	want := true
	for m := range messages {
		want = want && leasesHold(events, int64(m+1))
	}
	s.asked("", want, false)
	o := MonitorOptions{Floors: model.Floors{}, Claims: []model.Claim{model.Lease}}
	a, err := CheckWorkQueue(histories.Events(events), o)
	if err != nil {
		t.Fatal(err)
	}
	checkProofs(t, a)
	if got := a.Verdict(); (got == model.Held) != want {
		return fmt.Errorf("the checker says %s, the search %v:\n%s", got, want, showSteps(events))
	}
	o.Claims = queueDecides
	if a, err = CheckWorkQueue(histories.Events(events), o); err != nil {
		t.Fatal(err)
	}
	online := along(t, NewQueueMonitor(o), events)
	checkProofs(t, online)
	for j, c := range a.Claims {
		if online.Claims[j].Verdict != c.Verdict {
			return fmt.Errorf("%s is %s online, %s offline:\n%s", c.ID, online.Claims[j].Verdict, c.Verdict, showSteps(events))
		}
	}
	return nil
}}

func TestWorkQueueOracle(t *testing.T) { workQueueDuel.test(t) }
func FuzzWorkQueue(f *testing.F)       { workQueueDuel.fuzz(f) }

// TestDeletionByWhoLostTheLease: whoever deletes a message, it is deleted; but the lease that somebody else holds goes on. Both forms say so.
func TestDeletionByWhoLostTheLease(t *testing.T) {
	receive := func(s *script, process int32, lease int64) {
		s.handled(process, histories.Step{Do: histories.Receive, Value: histories.IntDatum(1), Number: lease * 1_000_000})
	}
	deleted := func(s *script) { s.handled(1, histories.Step{Do: histories.Ack, Value: histories.IntDatum(1)}) }
	for _, c := range []struct {
		name  string
		want  map[model.Anomaly]int64
		write func(s *script)
	}{
		{"the lease was over", map[model.Anomaly]int64{model.Duplicate: 1}, func(s *script) {
			receive(s, 1, 1)
			s.wait(3)
			receive(s, 2, 1)
			s.wait(3)
			receive(s, 3, 1)
			s.wait(3)
			deleted(s)
			receive(s, 2, 1)
		}},
		{"somebody else has it", map[model.Anomaly]int64{model.Duplicate: 1, model.EarlyRedelivery: 1}, func(s *script) {
			receive(s, 1, 1)
			s.wait(3)
			receive(s, 2, 50)
			deleted(s)
			s.wait(3)
			receive(s, 3, 1)
		}},
		{"the holder deletes it", map[model.Anomaly]int64{model.Duplicate: 1}, func(s *script) {
			receive(s, 1, 50)
			deleted(s)
			receive(s, 3, 1)
		}},
	} {
		s := &script{process: 9}
		s.sent(histories.Step{Do: histories.Enqueue, Value: histories.IntDatum(1)})
		c.write(s)
		o := MonitorOptions{Floors: model.Floors{}, Claims: queueDecides}
		a, err := CheckWorkQueue(histories.Events(s.events), o)
		if err != nil {
			t.Fatal(err)
		}
		for form, a := range map[string]*Answer{"offline": a, "online": along(t, NewQueueMonitor(o), s.events)} {
			if found, _ := a.anomalies(); !maps.Equal(found, c.want) {
				t.Errorf("%s, %s: %v, want %v", c.name, form, found, c.want)
			}
		}
	}
}
