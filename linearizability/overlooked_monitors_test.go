package linearizability

import (
	"testing"

	"ackproof/histories"
	"ackproof/model"
)

// The cases here are those that ci/mutants showed no oracle to notice.

// found is how many violations of a kind an answer has.
func found(t *testing.T, what string, a *Answer, err error, kind model.Anomaly, want int64) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	violated, _ := a.anomalies()
	if got := violated[kind]; got != want {
		t.Errorf("%s: %d %s, want %d (violated: %v)", what, got, kind, want, violated)
	}
}

// TestCommitsOverlooked: offsets and their metadata belong together; generations fence older ones that began after they were accepted, and no others.
func TestCommitsOverlooked(t *testing.T) {
	for _, c := range []struct {
		name  string
		kind  model.Anomaly
		want  int64
		write func(s *script)
	}{
		{"another offset under the same metadata", model.Phantom, 1, func(s *script) {
			s.commit("g", 5, 1, 0)
			s.committed("g", 6, 1)
		}},
		{"two of an older generation", model.ZombieCommit, 2, func(s *script) {
			s.commit("g", 1, 1, 3)
			s.commit("g", 2, 2, 2)
			s.commit("g", 3, 3, 2)
		}},
		{"two of one generation", model.ZombieCommit, 0, func(s *script) {
			s.commit("g", 1, 1, 3)
			s.commit("g", 2, 2, 3)
		}},
		{"two generations at once", model.ZombieCommit, 0, func(s *script) {
			newer := s.steps(commitOf("g", 1, 1, 3))
			older := s.steps(commitOf("g", 2, 2, 2))
			newer(histories.OK)
			older(histories.OK)
		}},
	} {
		s := &script{}
		c.write(s)
		a, err := CheckCommits(histories.Events(s.events), MonitorOptions{})
		found(t, c.name, a, err, c.kind, c.want)
		m := NewCommitMonitor(MonitorOptions{})
		for i := range s.events {
			if _, err := m.Step(&s.events[i]); err != nil {
				t.Fatalf("%s, online: %v", c.name, err)
			}
		}
		found(t, c.name+", online", m.Finish(model.Facts{}), nil, c.kind, c.want)
	}
}

func queueStep(do histories.Do, value int64) histories.Step {
	s := histories.Step{Do: do}
	if value > 0 {
		s.Value = histories.IntDatum(value)
	}
	return s
}

func TestFIFOOverlooked(t *testing.T) {
	took := func(s *script, do histories.Do, value int64) {
		s.steps(queueStep(do, 0))(histories.OK, queueStep(do, value))
	}
	identified := func(s *script) {
		for v := range int64(2) {
			send := queueStep(histories.Enqueue, v+1)
			send.Old = histories.IntDatum(7)
			s.steps(send)(histories.OK)
		}
		took(s, histories.Dequeue, 1)
		took(s, histories.Dequeue, 2)
	}
	for _, c := range []struct {
		name    string
		options MonitorOptions
		kind    model.Anomaly
		want    int64
		write   func(s *script)
	}{
		{"a receive of unknown outcome may have come first", MonitorOptions{}, model.FIFOInversion, 0, func(s *script) {
			s.steps(queueStep(histories.Enqueue, 1))(histories.OK)
			s.steps(queueStep(histories.Enqueue, 2))(histories.OK)
			s.steps(queueStep(histories.Receive, 0))(histories.Info)
			took(s, histories.Receive, 2)
			took(s, histories.Receive, 1)
		}},
		{"a lease that ended", MonitorOptions{}, model.Duplicate, 0, func(s *script) {
			s.steps(queueStep(histories.Enqueue, 1))(histories.OK)
			took(s, histories.Receive, 1)
			took(s, histories.Receive, 1)
		}},
		// The sends lie within 3 ms of each other, for certain.
		{"a window that drift may have made too short", MonitorOptions{Window: 3_000_000, Drift: 0.1}, model.DedupLeak, 0, identified},
		{"a window that is long enough", MonitorOptions{Window: 4_000_000, Drift: 0.1}, model.DedupLeak, 1, identified},
		{"empty before it was acknowledged", MonitorOptions{Claims: []model.Claim{model.NoLoss}}, model.LostAcked, 0, func(s *script) {
			send := s.steps(queueStep(histories.Enqueue, 1))
			took(s, histories.Dequeue, 0)
			send(histories.OK)
		}},
		{"empty after it was acknowledged", MonitorOptions{Claims: []model.Claim{model.NoLoss}}, model.LostAcked, 1, func(s *script) {
			s.steps(queueStep(histories.Enqueue, 1))(histories.OK)
			took(s, histories.Dequeue, 0)
		}},
	} {
		s := &script{}
		c.write(s)
		a, err := CheckFIFO(histories.Events(s.events), c.options)
		found(t, c.name, a, err, c.kind, c.want)
	}
}

func TestQueueOverlooked(t *testing.T) {
	empty := histories.Step{Do: histories.Drain, Value: histories.Datum{Form: histories.List, List: []int64{}}}
	for _, c := range []struct {
		name  string
		want  int64
		write func(s *script)
	}{
		{"drained before it was acknowledged", 0, func(s *script) {
			send := s.steps(queueStep(histories.Enqueue, 1))
			s.steps(queueStep(histories.Drain, 0))(histories.OK, empty)
			send(histories.OK)
		}},
		{"drained afterwards", 1, func(s *script) {
			s.steps(queueStep(histories.Enqueue, 1))(histories.OK)
			s.steps(queueStep(histories.Drain, 0))(histories.OK, empty)
		}},
		{"a drain of unknown outcome may have taken all", 0, func(s *script) {
			for v := range int64(3) {
				s.steps(queueStep(histories.Enqueue, v+1))(histories.OK)
			}
			s.steps(queueStep(histories.Drain, 0))(histories.Info)
			s.steps(queueStep(histories.Drain, 0))(histories.OK, empty)
		}},
	} {
		s := &script{}
		c.write(s)
		a, err := CheckObjects(histories.Events(s.events), "total-queue", ObjectOptions{Claims: []model.Claim{model.NoLoss}})
		found(t, c.name, a, err, model.LostAcked, c.want)
	}
}

// TestWorkQueueOverlooked: drift shortens the leases that a queue must keep.
func TestWorkQueueOverlooked(t *testing.T) {
	s := &script{}
	took := queueStep(histories.Receive, 1)
	took.Number = 10_000_000 // ns; an event takes one millisecond
	s.steps(queueStep(histories.Enqueue, 1))(histories.OK)
	s.steps(queueStep(histories.Receive, 0))(histories.OK, took) // from 3 ms on
	for v := range int64(3) {
		s.steps(queueStep(histories.Enqueue, v+2))(histories.OK)
	}
	s.steps(queueStep(histories.Receive, 0))(histories.OK, took) // by 12 ms
	for drift, want := range map[float64]int64{0: 1, 0.1: 0} {
		a, err := CheckWorkQueue(histories.Events(s.events), MonitorOptions{Drift: drift})
		found(t, "a lease of 10 ms that lasted 9", a, err, model.EarlyRedelivery, want)
	}
}

// TestWorkQueuePhantomsAndLoss: nobody is given what is sent later, and only an empty reply of the drain tells that a message is gone.
func TestWorkQueuePhantomsAndLoss(t *testing.T) {
	for _, c := range []struct {
		name  string
		claim model.Claim
		kind  model.Anomaly
		want  int64
		write func(s *script)
	}{
		{"given before it was sent", model.NoPhantom, model.Phantom, 1, func(s *script) {
			s.steps(queueStep(histories.Receive, 0))(histories.OK, queueStep(histories.Receive, 1))
			s.steps(queueStep(histories.Enqueue, 1))(histories.OK)
		}},
		{"empty before the drain", model.NoLoss, model.LostAcked, 0, func(s *script) {
			s.steps(queueStep(histories.Enqueue, 1))(histories.OK)
			s.steps(queueStep(histories.Receive, 0))(histories.OK)
			s.phase("drain")
		}},
		{"empty in the drain", model.NoLoss, model.LostAcked, 1, func(s *script) {
			s.steps(queueStep(histories.Enqueue, 1))(histories.OK)
			s.phase("drain")
			s.steps(queueStep(histories.Receive, 0))(histories.OK)
		}},
	} {
		s := &script{}
		c.write(s)
		a, err := CheckWorkQueue(histories.Events(s.events), MonitorOptions{Claims: []model.Claim{c.claim}})
		found(t, c.name, a, err, c.kind, c.want)
	}
}

// TestAbortedVersionsBreakNoChain: a version of an aborted transaction that was read is a finding of its own; the transactions around it keep their order.
func TestAbortedVersionsBreakNoChain(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want model.Anomaly
	}{
		"writes on both sides": {`
			begin A: a x 1, a y 1
			begin B: a x 2
			begin C: a x 3, a y 3
			ok A: a x 1, a y 1
			abort B
			ok C: a x 3, a y 3
			D: r x [1 2 3], r y [3 1]`, model.G0},
		"a read before it, a write behind it": {`
			begin A: a x 1
			begin B: a x 2
			begin C: a x 3, a y 3
			begin D: r x, r y
			ok A: a x 1
			abort B
			ok C: a x 3, a y 3
			ok D: r x [1], r y [3]
			E: r x [1 2 3]`, model.GSingle},
	} {
		a, err := CheckTransactions(histories.Events(transact(t, c.text)), TransactionOptions{Level: Serializable})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		kinds := make(map[model.Anomaly]int64)
		for _, claim := range a.Claims {
			for _, x := range claim.Anomalies {
				kinds[x.Kind] += x.Count
			}
		}
		if kinds[c.want] != 1 || kinds[model.G1a] != 1 {
			t.Errorf("%s: %v, want one %s and one %s", name, kinds, c.want, model.G1a)
		}
	}
}

// TestGroupsOverlooked: what was trimmed is not due; a poll that began before the other was assigned shows no second owner; who gave a partition up does not
// own it.
func TestGroupsOverlooked(t *testing.T) {
	const key = "g/t/0"
	assigned := func(s *script, process int32, generation, from int64) {
		step := histories.Step{Do: histories.Assigned, Key: key, Number: generation, Offset: from}
		s.as(process, step)(histories.OK, step)
	}
	poll := func(s *script, process int32, from, n int64) (end func()) {
		done := s.as(process, histories.Step{Do: histories.Delivered, Key: key})
		return func() { done(histories.OK, histories.Step{Do: histories.Delivered, Key: key, Offset: from, Number: n}) }
	}
	for _, c := range []struct {
		name     string
		overlaps int64
		want     map[model.Anomaly]int64
		write    func(s *script)
	}{
		{"skipped", 0, map[model.Anomaly]int64{model.GroupSkip: 1}, func(s *script) {
			assigned(s, 11, 1, 0)
			s.acked(0, 1, 0, 4)
			poll(s, 11, 2, 2)()
		}},
		{"trimmed", 0, nil, func(s *script) {
			assigned(s, 11, 1, 0)
			s.acked(0, 1, 0, 4)
			s.answer(histories.StartOffset, 2, 1)
			poll(s, 11, 2, 2)()
		}},
		{"a poll after the other was assigned", 1, map[model.Anomaly]int64{model.DoubleOwner: 1}, func(s *script) {
			assigned(s, 11, 3, 0)
			assigned(s, 12, 3, 0)
			poll(s, 11, 0, 1)()
		}},
		{"a poll from before", 1, nil, func(s *script) {
			assigned(s, 11, 3, 0)
			end := poll(s, 11, 0, 1)
			assigned(s, 12, 3, 0)
			end()
		}},
		{"given up before", 0, nil, func(s *script) {
			assigned(s, 11, 3, 0)
			s.as(11, histories.Step{Do: histories.Revoked, Key: key})(histories.OK)
			assigned(s, 12, 3, 0)
		}},
	} {
		s := &script{process: 20}
		c.write(s)
		a, err := CheckGroups(histories.Events(s.events), MonitorOptions{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		violated, _ := a.anomalies()
		if len(violated) != len(c.want) || a.claim(model.GroupDelivery).Evidence["overlaps"] != c.overlaps {
			t.Errorf("%s: violated %v with %v, want %v with %d overlaps", c.name, violated, a.claim(model.GroupDelivery).Evidence, c.want, c.overlaps)
		}
		for kind, want := range c.want {
			found(t, c.name, a, nil, kind, want)
		}
	}
}
