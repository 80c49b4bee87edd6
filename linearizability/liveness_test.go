package linearizability

import (
	"testing"

	"ackproof/histories"
	"ackproof/model"
)

// What a copy that knows that it is incomplete refuses is permitted where the faults left no copy whole, and nowhere else.
func TestUnavailabilityIsPermittedOnlyWhereNoCopyWasLeftWhole(t *testing.T) {
	facts := model.Facts{Liveness: model.Recovery{Checked: true, BoundMS: 100, Unmet: []string{"p0 has no leader"}}}
	for _, power := range []bool{false, true} {
		c := model.LogContract(model.Contract{Partitions: 1, Replication: 3, MinISR: 2, Acks: -1, PowerLoss: power})
		a, err := CheckLog(histories.Events(nil), c, facts, Options{Floors: model.HistoryFloors(), Claims: []model.Claim{model.Liveness}})
		if err != nil {
			t.Fatal(err)
		}
		r := a.Claims[0]
		if violated := r.Verdict == model.Violated; violated == power || (len(r.Permitted) == 1) != power {
			t.Errorf("power lost %t: %+v", power, r)
		}
	}
}
