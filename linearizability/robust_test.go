package linearizability

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"ackproof/histories"
	"ackproof/model"
)

// TestAnyHistory: whatever events say, there is an answer or an ErrMalformed, and porcupine agrees.
func TestAnyHistory(t *testing.T) {
	number := rapid.OneOf(rapid.Int64Range(-1, 6), rapid.Int64Range(-1, 6), rapid.Int64Range(0, 3000), rapid.Int64())
	rapid.Check(t, func(rt *rapid.T) {
		s := &script{}
		type open struct {
			kind histories.Kind
			end  func(histories.Event)
		}
		var flying []open
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			switch rapid.IntRange(0, 2).Draw(rt, "step") {
			case 0:
				ev := histories.Event{Kind: histories.Kind(rapid.IntRange(0, 5).Draw(rt, "kind")), Partition: int32(rapid.IntRange(0, 1).Draw(rt, "partition")), Offset: number.Draw(rt, "from"),
					Session: int32(rapid.IntRange(0, 3).Draw(rt, "session")), Node: int32(rapid.IntRange(0, 2).Draw(rt, "node"))}
				if ev.Kind == histories.Append {
					ev.Runs = values(1, int64(len(s.events))*4, int32(rapid.IntRange(1, 4).Draw(rt, "count")))
				}
				flying = append(flying, open{ev.Kind, s.begin(ev)})
			case 1:
				if len(flying) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(flying)-1).Draw(rt, "which")
				ev := histories.Event{Type: histories.Type(rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(rt, "type")), Offset: number.Draw(rt, "offset"), HighWatermark: number.Draw(rt, "high"),
					LeaderEpoch: rapid.Int32Range(-1, 3).Draw(rt, "epoch")}
				if flying[i].kind.IsRead() {
					for range rapid.IntRange(0, 3).Draw(rt, "runs") {
						ev.Runs = append(ev.Runs, histories.Run{Offset: number.Draw(rt, "at"), Producer: 1, Sequence: rapid.Int64Range(0, 60).Draw(rt, "sequence"),
							Count: rapid.Int32Range(1, 5).Draw(rt, "n"), Defect: histories.Defect(rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(rt, "defect"))})
					}
				}
				flying[i].end(ev)
				flying = append(flying[:i], flying[i+1:]...)
			case 2:
				if rapid.IntRange(0, 9).Draw(rt, "phase") == 0 {
					s.phase("drain")
				}
			}
		}
		c := configuration(rapid.IntRange(0, len(configurations)-1).Draw(rt, "configuration"))
		c.Dense = rapid.Bool().Draw(rt, "dense")
		a, err := CheckLog(histories.Events(s.events), model.LogContract(c), whole(), Options{Floors: model.HistoryFloors()})
		if err != nil {
			if !errors.Is(err, histories.ErrMalformed) {
				rt.Fatal(err)
			}
			return
		}
		if _, err := SecondOpinion(a, OpinionOptions{}); err != nil {
			rt.Fatalf("%v\n%s%s", err, show(s.events), proofs(a))
		}
	})
}
