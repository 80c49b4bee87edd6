package linearizability

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ackproof/histories"
	"ackproof/model"
)

// The cases here are those that ci/mutants showed no other test to notice.

// TestARecordThatMoved: a reader got a record at an offset that is empty in the end, and the record stands elsewhere. Both are told: that what was read
// is gone, and that two offsets are claimed for one record.
func TestARecordThatMoved(t *testing.T) {
	s := &script{}
	s.acked(0, 2, 0, 1)
	s.send(1, 0, 1)(histories.Event{Type: histories.Info})
	s.fetch(1, 1)(at(1, 1, 0, 1))
	s.drain(9, 3, at(0, 2, 0, 1), at(2, 1, 0, 1))
	got, permitted := decide(t, s, strong(), whole()).anomalies()
	want := map[model.Anomaly]int64{model.DirtyRead: 1, model.InconsistentOffset: 1, model.UnfillableGap: 1}
	if d := cmp.Diff(want, got); d != "" || len(permitted) > 0 {
		t.Errorf("violated (-want +got):\n%s\npermitted: %v", d, permitted)
	}
}
