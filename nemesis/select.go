package nemesis

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"ackproof/systems"
)

// What a schedule means, without clock or goroutine: when the state of a trigger is reached, and whom a target names. Whoever carries a schedule out
// (Runner on a real system, the simulator on its own) asks here.

// WaitsForState tells whether the trigger has more than a time to wait for.
func (t Trigger) WaitsForState() bool { return t.aboutPartition() || t.Recovered || t.ControllerMoved }

// GiveUp is how long the state is waited for.
func (t Trigger) GiveUp() time.Duration {
	if t.GiveUpMS > 0 {
		return time.Duration(t.GiveUpMS) * time.Millisecond
	}
	return 5 * time.Second
}

// Reached tells whether the state that the trigger waits for is there: p is the partition that it is about, now what the system says, leaderThen who led
// p, controllerThen who was the controller, and acked how many records p has acknowledged since, all as Trigger says.
func (t Trigger) Reached(p int32, now systems.Roles, leaderThen, controllerThen int, acked int64) bool {
	if t.AckedMore > 0 && acked < t.AckedMore {
		return false
	}
	if t.Recovered && !Recovered(now) || t.ControllerMoved && (now.Controller == 0 || now.Controller == controllerThen) {
		return false
	}
	if !t.LeaderMoved && t.ISRAtMost == 0 && t.ISRAtLeast == 0 {
		return true
	}
	if p < 0 || int(p) >= len(now.Partitions) {
		return false
	}
	part := now.Partitions[p]
	return (!t.LeaderMoved || part.Leader != 0 && part.Leader != leaderThen) && (t.ISRAtMost == 0 || len(part.ISR) <= t.ISRAtMost) &&
		len(part.ISR) >= t.ISRAtLeast
}

// Recovered tells whether there is a controller, and every partition is led, has a full in-sync set and no replica offline. Without a controller the view may be one of
// before the fault.
func Recovered(r systems.Roles) bool {
	for _, p := range r.Partitions {
		if p.Leader == 0 || len(p.ISR) < len(p.Replicas) || len(p.Offline) > 0 {
			return false
		}
	}
	return len(r.Partitions) > 0 && r.Controller != 0
}

// LeaderOf is the leader of the partition, 0 if unknown.
func LeaderOf(r systems.Roles, p int32) int {
	if p < 0 || int(p) >= len(r.Partitions) {
		return 0
	}
	return r.Partitions[p].Leader
}

// Selector chooses the targets of one fault.
type Selector struct {
	Nodes      []int // all nodes, by id
	Pick       *rand.Rand
	Hurt       func(node int) bool           // held by a kill or a pause now
	LastJoined func(partition int32) (n int) // whoever entered the in-sync set last, 0 unknown
	// Sequence: the fault starts while another one may last, and takes the partition of that one, Follows, for AnyPartition.
	Sequence bool
	Follows  int32
}

// Choice is what a target came to mean.
type Choice struct {
	Nodes     []int
	Partition int32  // −1: by none
	Role      string // for people: "leader of p3"
}

// ByRoles tells whether the target depends on what the system says of its roles.
func (t Target) ByRoles() bool {
	return !slices.Contains([]Role{RoleSame, RoleNode, RoleAll, RoleUnhurt, RoleMinority}, t.Role)
}

// Choose resolves a target of any role but RoleSame. An error says which role has no holder at the moment.
func (s Selector) Choose(t Target, r systems.Roles) (Choice, error) {
	switch t.Role {
	case RoleNode:
		if len(t.Nodes) > 0 {
			return Choice{slices.Clone(t.Nodes), t.Partition, ""}, nil
		}
		return Choice{[]int{t.Node}, -1, ""}, nil
	case RoleAll:
		return Choice{slices.Clone(s.Nodes), -1, "all"}, nil
	case RoleUnhurt:
		nodes := slices.DeleteFunc(slices.Clone(s.Nodes), s.Hurt)
		if len(nodes) == 0 {
			return Choice{}, errors.New("every node is down or paused")
		}
		return Choice{nodes, -1, "unhurt"}, nil
	case RoleMinority:
		nodes := shuffled(s.Nodes, s.Pick)[:max(1, (len(s.Nodes)-1)/2)]
		slices.Sort(nodes)
		return Choice{nodes, -1, "minority"}, nil
	case RoleController, RoleOthers:
		if r.Controller == 0 {
			return Choice{}, errors.New("the controller is not known")
		}
		if t.Role == RoleOthers {
			return Choice{slices.DeleteFunc(slices.Clone(s.Nodes), func(n int) bool { return n == r.Controller }), -1, "all but the controller"}, nil
		}
		return Choice{[]int{r.Controller}, -1, "controller"}, nil
	}
	of, parts := "p", r.Partitions
	if t.Role.ofGroups() {
		of, parts = "groups in g", r.Coordinators
	}
	p := t.Partition
	if p == AnyPartition {
		p = s.anyPartition(t.Role, parts, r.Controller)
	}
	if p < 0 || int(p) >= len(parts) {
		return Choice{}, fmt.Errorf("partition %d does not exist, or none is led", p)
	}
	part := parts[p]
	if part.Leader == 0 && t.Role != RoleInSync {
		return Choice{}, fmt.Errorf("partition %d has no leader", p)
	}
	nodes := s.ofPartition(t.Role, p, part)
	if len(nodes) == 0 {
		return Choice{}, fmt.Errorf("partition %d has no %s", p, t.Role)
	}
	return Choice{slices.Clone(nodes), p, fmt.Sprintf("%s of %s%d", t.Role, of, p)}, nil
}

// ofGroups tells roles of the partitions that hold consumer groups.
func (r Role) ofGroups() bool { return r == RoleCoordinator || r == RoleCoordinatorFollowers }

// Other resolves the other side of a cut, if it is narrowed down; of is what the target came to mean.
func (s Selector) Other(c Cut, of Choice, r systems.Roles) ([]int, error) {
	if c.Against == "" {
		return nil, nil
	}
	choice, err := s.Choose(Target{Role: c.Against, Partition: of.Partition}, r)
	if err != nil {
		return nil, err
	}
	nodes := slices.DeleteFunc(choice.Nodes, func(n int) bool { return slices.Contains(of.Nodes, n) })
	if len(nodes) == 0 {
		return nil, fmt.Errorf("no %s but the target itself", c.Against)
	}
	return nodes, nil
}

func (s Selector) ofPartition(role Role, p int32, part systems.PartitionRoles) []int {
	var followers, inSync []int
	for _, n := range part.Replicas {
		if n != part.Leader {
			followers = append(followers, n)
			if slices.Contains(part.ISR, n) && !s.Hurt(n) {
				inSync = append(inSync, n)
			}
		}
	}
	switch role {
	case RoleLeader, RoleCoordinator:
		return []int{part.Leader}
	case RoleFollowers, RoleCoordinatorFollowers:
		return followers
	case RoleInSync:
		return part.ISR
	case RoleSpare:
		if n := spare(part); n != 0 {
			return []int{n}
		}
	case RoleHeir:
		for _, n := range part.Replicas {
			if n != part.Leader && slices.Contains(part.ISR, n) {
				return []int{n}
			}
		}
	case RoleFollower, RoleLastInISR:
		from := inSync
		if len(from) == 0 {
			from = followers
		}
		if len(from) == 0 {
			return nil
		}
		drawn := from[s.Pick.IntN(len(from))]
		if last := s.LastJoined(p); role == RoleLastInISR && last != 0 && last != part.Leader {
			drawn = last
		}
		return []int{drawn}
	}
	return nil
}

// anyPartition is what AnyPartition says.
func (s Selector) anyPartition(role Role, parts []systems.PartitionRoles, controller int) int32 {
	if s.Sequence {
		return s.Follows
	}
	led := int32(-1)
	for _, p := range s.Pick.Perm(len(parts)) {
		switch part := parts[p]; {
		case aside(part, role, controller):
			return int32(p)
		case part.Leader != 0 && led < 0:
			led = int32(p)
		}
	}
	return led
}

// AnyAside tells whether there is a partition of the kind that AnyPartition prefers.
func AnyAside(role Role, r systems.Roles) bool {
	return slices.ContainsFunc(r.Partitions, func(p systems.PartitionRoles) bool { return aside(p, role, r.Controller) })
}

// aside: the partition is of the kind that AnyPartition prefers.
func aside(p systems.PartitionRoles, role Role, controller int) bool {
	return p.Leader != 0 && p.Leader != controller && (role != RoleSpare || spare(p) != controller)
}

// spare is the last follower in the replica order that is in sync, 0 if there is none.
func spare(p systems.PartitionRoles) int {
	for _, n := range slices.Backward(p.Replicas) {
		if n != p.Leader && slices.Contains(p.ISR, n) {
			return n
		}
	}
	return 0
}
