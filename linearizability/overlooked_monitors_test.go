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
