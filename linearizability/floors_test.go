package linearizability

import (
	"iter"
	"testing"

	"ackproof/histories"
	"ackproof/model"
)

// TestFloorsOfEveryChecker: of a test that saw too little, or in which nothing happened that could have broken a claim, or whose harness broke, no claim is held;
// of one that saw enough all are.
func TestFloorsOfEveryChecker(t *testing.T) {
	type check = func(events []histories.Event, f model.Facts) ([]model.ClaimResult, error)
	monitored := func(check func(iter.Seq2[histories.Event, error], MonitorOptions) (*Answer, error), claims ...model.Claim) check {
		return func(events []histories.Event, f model.Facts) ([]model.ClaimResult, error) {
			a, err := check(histories.Events(events), MonitorOptions{Claims: claims, Floors: model.TestQueueFloors(), Facts: f, Window: 1, Drained: true})
			if err != nil {
				return nil, err
			}
			return a.Claims, nil
		}
	}
	objects := func(name string, floors model.Floors, claims ...model.Claim) check {
		return func(events []histories.Event, f model.Facts) ([]model.ClaimResult, error) {
			a, err := CheckObjects(histories.Events(events), name, ObjectOptions{Claims: claims, Floors: floors, Facts: f})
			if err != nil {
				return nil, err
			}
			return a.Claims, nil
		}
	}
	transactions := func(v Versions, claim model.Claim) check {
		return func(events []histories.Event, f model.Facts) ([]model.ClaimResult, error) {
			a, err := CheckTransactions(histories.Events(events), TransactionOptions{Versions: v, Claims: []model.Claim{claim}, Floors: model.TestFloors(), Facts: f})
			if err != nil {
				return nil, err
			}
			return a.Claims, nil
		}
	}
	txn := func(s *script, asked, seen []histories.Step) {
		s.begin(histories.Event{Kind: histories.Object, Steps: asked})(histories.Event{Steps: seen})
	}
	contents := []model.Claim{model.NoLoss, model.NoPhantom, model.NoDuplicate}
	for _, c := range []struct {
		name  string
		check check
		round func(s *script, i int64) // one round
		end   func(s *script, rounds int64)
	}{
		{"register", objects("register", model.TestFloors(), model.Linearizable), func(s *script, i int64) {
			s.wrote("", int(i))
			s.answered(histories.Read, int(i))
		}, nil},
		{"set", objects("set", model.TestFloors(), model.NoLoss, model.NoPhantom, model.NoDirtyRead, model.NoDuplicate, model.ReadAfterAck), func(s *script, i int64) { s.did(histories.Add, int(i)) }, func(s *script, rounds int64) {
			for range min(rounds, 20) {
				var all []int64
				for i := range rounds {
					all = append(all, i)
				}
				s.answered(histories.Read, all)
			}
		}},
		{"total queue", objects("total-queue", model.TestQueueFloors(), contents...), func(s *script, i int64) {
			s.did(histories.Enqueue, int(i))
			s.answered(histories.Dequeue, int(i))
		}, func(s *script, _ int64) { s.answered(histories.Drain, []int64{}) }},
		{"commits", monitored(CheckCommits, model.CommitSafety), func(s *script, i int64) {
			s.commit("g/0", i, i+1, 0)
			s.committed("g/0", i, i+1)
		}, nil},
		{"groups", monitored(CheckGroups, model.GroupDelivery, model.CommitSafety), func(s *script, i int64) {
			s.assigned(1, i, i+1)
			s.given(1, i, 1)
			s.commits(1, i+1, i+1)
		}, nil},
		{"FIFO", monitored(CheckFIFO, append(contents, model.FIFO, model.DedupWindow)...), func(s *script, i int64) {
			s.sent(histories.Step{Do: histories.Enqueue, Value: histories.IntDatum(i), Old: histories.IntDatum(i)})
			s.steps(histories.Step{Do: histories.Dequeue})(histories.OK, histories.Step{Do: histories.Dequeue, Value: histories.IntDatum(i)})
		}, nil},
		{"work queue", monitored(CheckWorkQueue, append(contents, model.Lease)...), func(s *script, i int64) {
			s.sent(histories.Step{Do: histories.Enqueue, Value: histories.IntDatum(i)})
			s.steps(histories.Step{Do: histories.Receive})(histories.OK, histories.Step{Do: histories.Receive, Value: histories.IntDatum(i), Number: 1_000_000_000})
		}, nil},
		{"lists", transactions(Lists, model.Serializability), func(s *script, i int64) {
			add := histories.Step{Do: histories.AppendTo, Key: "x", Value: histories.IntDatum(i), Offset: -1}
			var list []int64
			for j := range i {
				list = append(list, j)
			}
			txn(s, []histories.Step{{Key: "x", Offset: -1}, add}, []histories.Step{{Key: "x", Value: histories.Datum{Form: histories.List, List: list}, Offset: -1}, add})
		}, nil},
		{"logs", transactions(Logs, model.Atomicity), func(s *script, i int64) {
			add := histories.Step{Do: histories.AppendTo, Key: "p", Value: histories.IntDatum(i), Offset: -1}
			added := add
			added.Offset = i
			txn(s, []histories.Step{add}, []histories.Step{added})
		}, func(s *script, rounds int64) {
			s.phase("drain")
			var found []histories.Step
			for i := range rounds {
				found = append(found, histories.Step{Key: "p", Value: histories.IntDatum(i), Offset: i})
			}
			txn(s, []histories.Step{{Offset: -1}}, append(found, histories.Step{Key: "p", Offset: rounds}))
		}},
	} {
		run := func(rounds int64, f model.Facts) []model.ClaimResult {
			s := &script{}
			for i := range rounds {
				c.round(s, i)
			}
			if c.end != nil {
				c.end(s, rounds)
			}
			claims, err := c.check(s.events, f)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			return claims
		}
		faulted := model.Facts{Faults: []model.FaultResult{{Kind: "kill", Effective: true}}, LeaderChanges: 1}
		broken := faulted
		broken.Broken = "a worker died"
		for _, r := range []struct {
			what   string
			rounds int64
			facts  model.Facts
			want   model.Verdict
		}{
			{"enough", 100, faulted, model.Held}, {"one round", 1, faulted, model.NotTested}, {"no fault", 100, model.Facts{}, model.NotTested}, {"a broken harness", 100, broken, model.Undecided},
		} {
			for _, got := range run(r.rounds, r.facts) {
				if got.Verdict != r.want {
					t.Errorf("%s, %s: %s is %s (%s) with %v, want %s", c.name, r.what, got.ID, got.Verdict, got.Reason, got.Evidence, r.want)
				}
			}
		}
	}
}
