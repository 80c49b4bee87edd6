package nemesis

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"ackproof/systems"
)

func TestCoordinatorsAreTargets(t *testing.T) {
	r := systems.Roles{Controller: 1,
		Partitions:   []systems.PartitionRoles{{Leader: 1, Replicas: []int{1, 2, 3}, ISR: []int{1, 2, 3}}},
		Coordinators: []systems.PartitionRoles{{Leader: 1, Replicas: []int{1, 2, 3}, ISR: []int{1, 2, 3}}, {Leader: 3, Replicas: []int{3, 1, 2}, ISR: []int{3, 1, 2}}},
	}
	s := Selector{Nodes: []int{1, 2, 3}, Pick: rand.New(rand.NewPCG(1, 2)), Hurt: func(int) bool { return false }, LastJoined: func(int32) int { return 0 }, Follows: -1}
	first, err := s.Choose(Target{Role: RoleCoordinator, Partition: AnyPartition}, r)
	if err != nil || !slices.Equal(first.Nodes, []int{3}) || first.Role != "coordinator of groups in g1" {
		t.Errorf("%+v %v, expected the coordinator that is not the controller", first, err)
	}
	s.Sequence, s.Follows = true, first.Partition
	then, err := s.Choose(Target{Role: RoleCoordinatorFollowers, Partition: AnyPartition}, r)
	if err != nil || !slices.Equal(then.Nodes, []int{1, 2}) {
		t.Errorf("%+v %v, expected the followers of the same partition", then, err)
	}
	r.Coordinators = nil
	if _, err := s.Choose(Target{Role: RoleCoordinator, Partition: AnyPartition}, r); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("%v, expected that nobody coordinates", err)
	}
}

func TestSchedulesOfGroupsAimAtCoordinators(t *testing.T) {
	seen := map[string]bool{}
	for seed := int64(1); seed <= 10; seed++ {
		for _, shuffle := range []bool{false, true} {
			s := Generate(seed, GenerateOptions{Nodes: 3, Partitions: 3, Clients: 8, Load: 20 * time.Second, Shuffle: shuffle, Groups: true})
			if err := s.Validate(3, 3, 8); err != nil {
				t.Fatal(err)
			}
			others := 0
			for _, f := range s.Faults {
				if f.Target.Role.ofGroups() {
					seen[f.Preset] = true
				} else {
					others++
				}
			}
			if others == 0 {
				t.Errorf("seed %d: no fault of the log", seed)
			}
		}
	}
	if len(seen) != len(OfGroups()) {
		t.Errorf("%v, expected every preset of %d", seen, len(OfGroups()))
	}
	plain := Generate(1, GenerateOptions{Nodes: 3, Partitions: 3, Load: 20 * time.Second})
	if slices.ContainsFunc(plain.Faults, func(f Fault) bool { return f.Target.Role.ofGroups() }) {
		t.Error("a schedule without groups aims at a coordinator")
	}
}
