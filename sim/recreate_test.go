package sim

import (
	"testing"

	"ackproof/model"
)

// A topic that is made anew while a node is down that has a copy of the first one is another topic (R24).
func TestATopicIsMadeAnew(t *testing.T) {
	for _, store := range []string{"memory", "segment"} {
		c := short(6)
		c.Recreated, c.Store = true, store
		r := mustRun(t, c, Options{})
		if v := r.Verdict(); v != model.Held || r.Answer.Records.Acked < 100 {
			t.Errorf("store %s: %s with %d records acknowledged: %v %v", store, v, r.Answer.Records.Acked, r.Anomalies(), r.Broken)
		}
		c.Nodes, c.Replication = 2, 2
		if _, err := Run(c, Options{}); err == nil {
			t.Error("two nodes, one of them down: no error")
		}
	}
}
