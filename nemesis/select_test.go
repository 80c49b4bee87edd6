package nemesis

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ackproof/systems"
)

var threeNodes = systems.Roles{Controller: 3, Partitions: []systems.PartitionRoles{{Leader: 1, Replicas: []int{1, 2, 3}, ISR: []int{1, 2}}}}

func selector(hurt ...int) Selector {
	return Selector{Nodes: []int{1, 2, 3}, Pick: rand.New(rand.NewPCG(1, 1)), Hurt: func(n int) bool { return slices.Contains(hurt, n) }, LastJoined: func(int32) int { return 2 }}
}

func TestUnhurtIsWhoeverIsUpAndAwake(t *testing.T) {
	got, err := selector(2).Choose(Target{Role: RoleUnhurt}, threeNodes)
	if err != nil || !slices.Equal(got.Nodes, []int{1, 3}) {
		t.Errorf("%v, %v, expected nodes 1 and 3", got.Nodes, err)
	}
	if got, err := selector(1, 2, 3).Choose(Target{Role: RoleUnhurt}, threeNodes); err == nil {
		t.Errorf("%v, expected an error: nobody is left", got.Nodes)
	}
}

// A narrowed cut holds the lanes between the targets and one role, and no others.
func TestACutAgainstARole(t *testing.T) {
	of := Choice{Nodes: []int{2}, Partition: 0}
	for _, c := range []struct {
		against Role
		want    string
	}{
		{"", "n1>n2 n2<n1 n2<n3 n3>n2"}, {RoleLeader, "n1>n2 n2<n1"}, {RoleController, "n2<n3 n3>n2"}, {RoleFollowers, "n2<n3 n3>n2"},
	} {
		cut := Cut{Shape: OneWayIn, Against: c.against}
		other, err := selector().Other(cut, of, threeNodes)
		got := strings.Join(blocked(cut.Lanes(of.Nodes, other, []int{1, 2, 3}, nil, nil)), " ")
		if err != nil || got != c.want {
			t.Errorf("against %q: holds %s, %v, expected %s", c.against, got, err, c.want)
		}
	}
	if other, err := selector().Other(Cut{Shape: OneWayIn, Against: RoleLastInISR}, of, threeNodes); err == nil {
		t.Errorf("against itself: %v, expected an error", other)
	}
}

func TestTheInSyncSetHasGrown(t *testing.T) {
	for n, want := range map[int]bool{0: true, 1: true, 2: true, 3: false} {
		if got := (Trigger{ISRAtLeast: n}).Reached(0, threeNodes, 1, 0, 0); got != want {
			t.Errorf("at least %d of an in-sync set of two: %t, expected %t", n, got, want)
		}
	}
	if (Trigger{ISRAtLeast: 1}).Reached(7, threeNodes, 1, 0, 0) {
		t.Error("a partition that does not exist has an in-sync set")
	}
}

// What a campaign draws fits the cluster, and every preset gets its turn.
func TestShuffledSchedulesAreValidAndHaveEveryPreset(t *testing.T) {
	seen := map[string]bool{}
	o := defaultRun
	o.Shuffle, o.Kinds, o.Nodes = true, AllKinds(), 5
	for seed := range int64(100) {
		s := Generate(seed, o)
		if err := s.Validate(o.Nodes, o.Partitions, o.Clients); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, f := range s.Faults {
			seen[f.Preset] = true
		}
	}
	for _, p := range slices.Concat(Catalogue(), Machines(), Long()) {
		if !seen[p.Name] {
			t.Errorf("%s was drawn by none of 100 seeds", p.Name)
		}
	}
}

func TestTheHeirAndTheOthers(t *testing.T) {
	part := systems.Roles{Controller: 3, Partitions: []systems.PartitionRoles{{Leader: 2, Replicas: []int{1, 2, 3}, ISR: []int{3, 2}}}}
	for role, want := range map[Role][]int{RoleHeir: {3}, RoleOthers: {1, 2}} {
		got, err := selector().Choose(Target{Role: role}, part)
		if err != nil || !slices.Equal(got.Nodes, want) {
			t.Errorf("%s: %v, %v, expected %v", role, got.Nodes, err, want)
		}
	}
	part.Partitions[0].ISR = []int{2}
	if got, err := selector().Choose(Target{Role: RoleHeir}, part); err == nil {
		t.Errorf("a leader alone has the heir %v", got.Nodes)
	}
	part.Controller = 0
	if got, err := selector().Choose(Target{Role: RoleOthers}, part); err == nil {
		t.Errorf("all but an unknown controller are %v", got.Nodes)
	}
}

func TestTheControllerHasMoved(t *testing.T) {
	for then, want := range map[int]bool{0: true, 1: true, 3: false} {
		if got := (Trigger{ControllerMoved: true}).Reached(0, threeNodes, 1, then, 0); got != want {
			t.Errorf("from %d to %d: %t, expected %t", then, threeNodes.Controller, got, want)
		}
	}
	if (Trigger{ControllerMoved: true}).Reached(0, systems.Roles{}, 1, 3, 0) {
		t.Error("an unknown controller is another one")
	}
}
