package log

import (
	"errors"
	"strings"
	"testing"

	"ackproof/workloads/kafka"
)

func TestViewsMustAgreeAndInSyncSetsBeFull(t *testing.T) {
	part := func(leader, epoch int32, isr ...int32) kafka.PartitionView {
		return kafka.PartitionView{Leader: kafka.Leader{Node: leader, Epoch: epoch}, ISR: isr}
	}
	full := func(node int32) NodeView {
		return NodeView{Node: node, View: kafka.View{Partitions: map[int32]kafka.PartitionView{0: part(1, 4, 1, 2, 3), 1: part(2, 5, 2, 1, 3)}}}
	}
	for _, c := range []struct {
		name   string
		change func(v []NodeView)
		want   string // "" : no complaint
	}{
		{"all agree", func([]NodeView) {}, ""},
		{"one does not answer", func(v []NodeView) { v[2].Err = errors.New("refused") }, "n3 gives no view: refused"},
		{"nobody leads", func(v []NodeView) { v[0].View.Partitions[1] = part(-1, 5, 1) }, "p1 has no leader"},
		{"older epoch", func(v []NodeView) { v[1].View.Partitions[0] = part(1, 3, 1, 2, 3) }, "n1 says that n1 leads p0 in epoch 4, n2 says n1 in epoch 3"},
		{"set too small", func(v []NodeView) {
			for i := range v {
				v[i].View.Partitions[0] = part(1, 4, 1, 2)
			}
		}, "p0 has the in-sync set [1 2], expected 3 members"},
		{"partition unknown", func(v []NodeView) { delete(v[1].View.Partitions, 1) }, "n2 does not know p1"},
	} {
		views := []NodeView{full(1), full(2), full(3)}
		c.change(views)
		if got := strings.Join(Complaints(views, 2, 3), "; "); got != c.want {
			t.Errorf("%s: %q, expected %q", c.name, got, c.want)
		}
	}
}
