//go:build linux

package sandbox

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"ackproof/model"
	"ackproof/nemesis"
	"ackproof/systems"
)

// system is the world's nodes as a system: n1 leads its only partition.
type system struct{ w *world }

func (s system) Info() model.SystemInfo      { return model.SystemInfo{Name: "echo"} }
func (s system) Start(context.Context) error { return nil }
func (s system) Timers() systems.Timers      { return systems.Timers{} }
func (s system) Contract() model.Contract    { return model.Contract{} }
func (s system) TopicID() [16]byte           { return [16]byte{} }
func (s system) Stop() error                 { return nil }

func (s system) Nodes() []systems.Node {
	var out []systems.Node
	for _, n := range s.w.nodes {
		out = append(out, n)
	}
	return out
}

func (s system) Roles(context.Context) (systems.Roles, error) {
	all := []int{1, 2, 3}
	return systems.Roles{Controller: 3, Partitions: []systems.PartitionRoles{{Leader: 1, LeaderEpoch: 1, Replicas: all, ISR: all}}}, nil
}

// Ping implements systems.Prober.
func (s system) Ping(c net.Conn) error {
	if _, err := c.Write([]byte{1}); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 1))
	return err
}

func TestEachFaultOfTheNetworkProvesItsEffect(t *testing.T) {
	w := newWorld(t, 3)
	leader := nemesis.Target{Role: nemesis.RoleLeader}
	isolate := nemesis.Cut{Shape: nemesis.Isolate, Clients: []int{1}}
	for _, f := range []nemesis.Fault{
		{Kind: nemesis.Partition, Cut: isolate},
		{Kind: nemesis.Partition, Cut: nemesis.Cut{Shape: nemesis.Isolate, Plane: nemesis.PlaneData}},
		{Kind: nemesis.Partition, Cut: nemesis.Cut{Shape: nemesis.Isolate, Reset: true}},
		{Kind: nemesis.Partition, Cut: nemesis.Cut{Shape: nemesis.OneWayOut}},
		{Kind: nemesis.Partition, Cut: nemesis.Cut{Shape: nemesis.OneWayIn}},
		{Kind: nemesis.Partition, Cut: nemesis.Cut{Shape: nemesis.DialIn}},
		{Kind: nemesis.Partition, Cut: nemesis.Cut{Shape: nemesis.ClientLink, Clients: []int{1}}},
		{Kind: nemesis.PacketDelay, AmountMS: 15, Cut: isolate},
		{Kind: nemesis.PacketDelay, AmountMS: 15, Cut: nemesis.Cut{Shape: nemesis.OneWayOut}},
		{Kind: nemesis.PacketLoss, Percent: 20, Cut: isolate},
		{Kind: nemesis.PacketDuplicate, Percent: 50, Cut: isolate},
		{Kind: nemesis.PacketReorder, Percent: 30, Cut: isolate},
		{Kind: nemesis.PacketCorrupt, Percent: 20, Cut: isolate},
		{Kind: nemesis.LinkRate, BytesPerSecond: 1 << 20, Cut: isolate},
		{Kind: nemesis.LinkClog, Shuffle: true, Cut: isolate},
		{Kind: nemesis.Pause},
		{Kind: nemesis.MachineDeath},
		{Kind: nemesis.Kill},
	} {
		name := strings.Join([]string{string(f.Kind), string(f.Cut.Shape), string(f.Cut.Plane)}, " ")
		t.Run(name, func(t *testing.T) {
			conn := w.dial(t, n2, n1)
			flood(conn) // so that there is something to lose, to overtake and to wait
			defer conn.Close()
			f.ForMS, f.Target = 300, leader
			s := nemesis.Schedule{Version: nemesis.ScheduleVersion, Seed: 3, Faults: []nemesis.Fault{f}}
			if err := s.Validate(3, 1, 1); err != nil {
				t.Fatal(err)
			}
			r := &nemesis.Runner{System: system{w}, Backend: w.Backend}
			got := r.Run(t.Context(), s)[0]
			if !got.Effective {
				t.Errorf("%+v, expected a fault with effect", got)
			}
			if err := r.Heal(t.Context()); err != nil {
				t.Errorf("after the fault: %v", err)
			}
		})
	}
}

// A cut of a plane on which nobody has a link is no effect.
func TestAFaultWithoutALinkIsNotCalledEffective(t *testing.T) {
	w := newWorld(t, 3)
	s := nemesis.Schedule{Version: nemesis.ScheduleVersion, Faults: []nemesis.Fault{{Kind: nemesis.Partition, ForMS: 50, Target: nemesis.Target{Role: nemesis.RoleLeader},
		Cut: nemesis.Cut{Shape: nemesis.Isolate, Plane: nemesis.PlaneControl}}}}
	got := (&nemesis.Runner{System: system{w}, Backend: w.Backend}).Run(t.Context(), s)[0]
	if got.Effective || !strings.Contains(got.Proof, "0 of 0 links") {
		t.Errorf("%+v, expected no effect", got)
	}
}
