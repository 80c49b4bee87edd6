package harness

import (
	"testing"

	"ackproof/model"
)

func TestElectionsWithoutACauseAreNoise(t *testing.T) {
	idle, effective := model.FaultResult{}, model.FaultResult{Effective: true}
	for _, c := range []struct {
		changes int
		faults  []model.FaultResult
		noisy   bool
	}{
		{0, nil, false}, {0, []model.FaultResult{idle}, false}, {3, []model.FaultResult{idle, effective}, false}, {3, nil, true}, {3, []model.FaultResult{idle}, true},
	} {
		if got := noise(c.changes, c.faults); (got != "") != c.noisy {
			t.Errorf("%d changes of leader with faults %+v: %q, expected a remark: %t", c.changes, c.faults, got, c.noisy)
		}
	}
}
