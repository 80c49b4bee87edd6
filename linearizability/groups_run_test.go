package linearizability

import (
	"iter"
	"strings"
	"testing"

	"ackproof/histories"
	"ackproof/model"
)

// A group of which every other floor is reached is tested only if it was shared anew.
func TestAGroupHasToBeSharedAnew(t *testing.T) {
	key := "g/0"
	history := func(generations int64) []histories.Event {
		var out []histories.Event
		seq := uint64(0)
		does := func(kind histories.Kind, change func(*histories.Event)) {
			ev := histories.Event{Kind: kind, Process: 1, Op: seq + 1, Type: histories.Invoke}
			change(&ev)
			for _, typ := range []histories.Type{histories.Invoke, histories.OK} {
				seq++
				ev.Type, ev.Seq = typ, seq
				out = append(out, ev)
			}
		}
		does(histories.Append, func(ev *histories.Event) { ev.Runs = []histories.Run{{Producer: 1, Count: 10}} })
		for g := range generations {
			for _, s := range []histories.Step{
				{Do: histories.Assigned, Key: key, Number: g + 1}, {Do: histories.Delivered, Key: key, Number: 10}, {Do: histories.Processed, Key: key, Number: 10},
				{Do: histories.Commit, Key: key, Offset: 10 * (g + 1), Number: g + 1},
			} {
				if g > 0 && s.Do != histories.Commit && s.Do != histories.Assigned {
					continue
				}
				if s.Do == histories.Assigned {
					s.Offset = 10 * min(g, 1)
				}
				if s.Do == histories.Commit {
					s.Offset = 10
				}
				does(histories.Object, func(ev *histories.Event) { ev.Process = int32(10 + g); ev.Steps = []histories.Step{s} })
			}
		}
		return out
	}
	for generations, want := range map[int64]model.Verdict{1: model.NotTested, 2: model.NotTested, 3: model.Held} {
		events := func() iter.Seq2[histories.Event, error] {
			return func(yield func(histories.Event, error) bool) {
				for _, ev := range history(generations) {
					if !yield(ev, nil) {
						return
					}
				}
			}
		}
		c := model.GroupContract(model.LogContract(model.Contract{Partitions: 1, Replication: 3, MinISR: 2, Acks: -1, Idempotent: true, Dense: true}), model.CommitAfter)
		o := Options{Claims: []model.Claim{model.GroupDelivery}, Floors: model.Floors{model.GroupDelivery: {Faults: []string{"kill"}}}}
		a, err := CheckGroupRun(events, c, model.Facts{GroupsDrained: true, Faults: []model.FaultResult{{Kind: "kill", Effective: true}}}, o)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Claims[0]; got.Verdict != want || want == model.NotTested && !strings.Contains(got.Reason, "rebalances") {
			t.Errorf("%d generations: %s (%s), expected %s", generations, got.Verdict, got.Reason, want)
		}
	}
}
