package log

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A write whose leader changes before it is read is gone, if its acknowledgement did not wait for the others, and says nothing of whether the partition is whole. An
// acknowledgement that did wait has to be readable.
func TestWriteThatIsGoneWithItsLeader(t *testing.T) {
	for _, c := range []struct {
		acks int16
		want string // "" for no complaint
	}{{1, ""}, {0, ""}, {-1, "does not give back"}} {
		w := newWorld(t, func(cfg *Config) { cfg.Acks, cfg.Idempotent = c.acks, c.acks == -1 })
		moved := false
		w.broker.fault = func(_ string, req kmsg.Request) fakeFault {
			if _, reads := req.(*kmsg.FetchRequest); reads && !moved {
				moved = true
				w.broker.log, w.broker.end = nil, 0
			}
			return fakeFault{}
		}
		v := w.workload.Visit(w.env(time.Minute), 0, map[int32]string{1: "n1", 2: "n2", 3: "n3"})
		got := v.WriteAndRead(5 * time.Second)
		v.Close()
		if !moved || (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("acks %d: %q, expected %q", c.acks, got, c.want)
		}
	}
}
