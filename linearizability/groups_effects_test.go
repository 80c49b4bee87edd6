package linearizability

import (
	"testing"

	"ackproof/histories"
)

func TestEffectsOfProcessing(t *testing.T) {
	var s script
	processed := func(process int32, offset, n int64) {
		step := histories.Step{Do: histories.Processed, Key: "g/0", Offset: offset, Number: n}
		s.as(process, step)(histories.OK, step)
	}
	s.acked(0, 9, 0, 20)
	s.assigned(1, 2, 1) // 0 and 1 are not the group's
	s.given(1, 2, 2)
	processed(1, 2, 2)
	s.assigned(2, 6, 2) // nothing was committed: the reset policy passes over 4 and 5
	s.given(2, 6, 6)
	processed(2, 6, 4)
	s.commits(2, 12, 2)
	s.assigned(3, 12, 3)
	processed(3, 8, 3) // 8 and 9 again; 11 never
	processed(3, 12, 4)
	got, err := GroupEffects(histories.Events(s.events))
	if err != nil {
		t.Fatal(err)
	}
	// Nobody came as far as 16 to 19, which were acknowledged.
	if want := (Effects{Processed: 11, Repeats: 2, Unprocessed: 5, Rebalances: 2}); got != want {
		t.Errorf("%+v, expected %+v", got, want)
	}
}
