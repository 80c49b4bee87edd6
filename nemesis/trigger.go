package nemesis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ackproof/systems"
)

// defaultGiveUp bounds the wait for a state, as Trigger.GiveUpMS says.
const defaultGiveUp = 5 * time.Second

var errLoadEnded = errors.New("the load ended first")

// await returns when the fault's trigger says that it is time. since is when the time condition was met. The remark says that a state was
// not reached; an error, that the fault will never start.
func (x *execution) await(ctx context.Context, l *life) (since time.Time, remark string, err error) {
	t := l.fault.Start
	base := x.began
	if t.Fault != nil {
		if *t.Fault < 0 || *t.Fault >= l.index {
			return since, "", fmt.Errorf("start.fault is %d, expected an earlier fault than %d", *t.Fault, l.index)
		}
		other := x.lives[*t.Fault]
		event := other.effect
		if t.Healed {
			event = other.healed
		}
		select {
		case <-event:
		case <-ctx.Done():
			return since, "", errLoadEnded
		}
		if !other.took && !t.Healed {
			return since, "", fmt.Errorf("fault %d, which it belongs to, never took effect", other.index)
		}
		base = time.Now()
	}
	if !sleep(ctx, time.Until(base.Add(time.Duration(t.AfterMS)*time.Millisecond))) {
		return since, "", errLoadEnded
	}
	since = time.Now()
	if !t.aboutPartition() && !t.Recovered {
		return since, "", nil
	}
	giveUp := defaultGiveUp
	if t.GiveUpMS > 0 {
		giveUp = time.Duration(t.GiveUpMS) * time.Millisecond
	}
	p := t.Partition
	if p == AnyPartition && t.Fault != nil {
		p = x.lives[*t.Fault].partition
	}
	then, _, _ := x.watcher.now()
	if t.Fault != nil && !t.Healed {
		then = x.lives[*t.Fault].seen
	}
	leaderThen, ackedThen := leader(then, p), x.acked(p)
	reached := x.watcher.until(ctx, since, giveUp, func(r systems.Roles) bool {
		if t.AckedMore > 0 && x.acked(p)-ackedThen < t.AckedMore {
			return false
		}
		if t.Recovered && !recovered(r) {
			return false
		}
		if !t.LeaderMoved && t.ISRAtMost == 0 {
			return true
		}
		if p < 0 || int(p) >= len(r.Partitions) {
			return false
		}
		now := r.Partitions[p]
		return (!t.LeaderMoved || now.Leader != 0 && now.Leader != leaderThen) && (t.ISRAtMost == 0 || len(now.ISR) <= t.ISRAtMost)
	})
	switch {
	case ctx.Err() != nil:
		return since, "", errLoadEnded
	case !reached:
		return since, fmt.Sprintf("began although the state of its trigger was not reached within %v", giveUp), nil
	}
	return since, "", nil
}

// leader of the partition, 0 if unknown.
func leader(r systems.Roles, p int32) int {
	if p < 0 || int(p) >= len(r.Partitions) {
		return 0
	}
	return r.Partitions[p].Leader
}

func (x *execution) acked(p int32) int64 {
	if x.r.Acked == nil || p < 0 {
		return 0
	}
	return x.r.Acked(p)
}

// recovered: every partition is led and has a full in-sync set.
func recovered(r systems.Roles) bool {
	for _, p := range r.Partitions {
		if p.Leader == 0 || len(p.ISR) < len(p.Replicas) {
			return false
		}
	}
	return len(r.Partitions) > 0
}

// choose resolves the fault's partition and nodes by what the system said after since.
func (x *execution) choose(ctx context.Context, l *life, since time.Time) error {
	t := l.fault.Target
	l.seen, _, _ = x.watcher.now()
	switch t.Role {
	case RoleSame:
		other := x.lives[*l.fault.Start.Fault]
		l.nodes, l.partition = other.nodes, other.partition
		x.name(l, other.result.Role)
		return nil
	case RoleNode:
		l.nodes = []int{t.Node}
		x.name(l, "")
		return nil
	case RoleAll:
		l.nodes = x.nodeIDs()
		x.name(l, "all")
		return nil
	case RoleMinority:
		l.nodes = shuffled(x.nodeIDs(), l.pick)[:max(1, (len(x.nodeIDs())-1)/2)]
		slices.Sort(l.nodes)
		x.name(l, "minority")
		return nil
	}
	var problem error
	if t.Aside {
		x.watcher.until(ctx, since, asidePatience, func(r systems.Roles) bool {
			return slices.ContainsFunc(r.Partitions, func(p systems.PartitionRoles) bool { return aside(p, t.Role, r.Controller) })
		})
	}
	ok := x.watcher.until(ctx, since, rolesPatience, func(r systems.Roles) bool {
		l.seen = r
		problem = x.byRole(l, r)
		return problem == nil
	})
	if ctx.Err() != nil {
		return errLoadEnded
	}
	if !ok {
		if problem == nil {
			problem = errors.New("no node tells the roles")
		}
		return problem
	}
	return nil
}

// byRole resolves the roles that the system's view decides.
func (x *execution) byRole(l *life, r systems.Roles) error {
	t := l.fault.Target
	if t.Role == RoleController {
		if r.Controller == 0 {
			return errors.New("the controller is not known")
		}
		l.nodes = []int{r.Controller}
		x.name(l, "controller")
		return nil
	}
	p := t.Partition
	if p == AnyPartition {
		p = x.anyPartition(l, r)
	}
	if p < 0 || int(p) >= len(r.Partitions) {
		return fmt.Errorf("partition %d does not exist, or none is led", p)
	}
	part := r.Partitions[p]
	if part.Leader == 0 && t.Role != RoleInSync {
		return fmt.Errorf("partition %d has no leader", p)
	}
	var followers, inSync []int
	for _, n := range part.Replicas {
		if n != part.Leader {
			followers = append(followers, n)
			if slices.Contains(part.ISR, n) && !x.hurtNow(n) {
				inSync = append(inSync, n)
			}
		}
	}
	var nodes []int
	switch t.Role {
	case RoleLeader:
		nodes = []int{part.Leader}
	case RoleFollowers:
		nodes = followers
	case RoleInSync:
		nodes = part.ISR
	case RoleSpare:
		if n := spare(part); n != 0 {
			nodes = []int{n}
		}
	case RoleFollower, RoleLastInISR:
		from := inSync
		if len(from) == 0 {
			from = followers
		}
		if len(from) > 0 {
			nodes = []int{from[l.pick.IntN(len(from))]}
		}
		if last := x.watcher.lastJoined(p); t.Role == RoleLastInISR && last != 0 && last != part.Leader {
			nodes = []int{last}
		}
	}
	if len(nodes) == 0 {
		return fmt.Errorf("partition %d has no %s", p, t.Role)
	}
	l.nodes, l.partition = slices.Clone(nodes), p
	x.name(l, fmt.Sprintf("%s of p%d", t.Role, p))
	return nil
}

// anyPartition is what AnyPartition says.
func (x *execution) anyPartition(l *life, r systems.Roles) int32 {
	if t := l.fault.Start; t.Fault != nil && !t.Healed {
		return x.lives[*t.Fault].partition
	}
	led := int32(-1)
	for _, p := range l.pick.Perm(len(r.Partitions)) {
		switch part := r.Partitions[p]; {
		case aside(part, l.fault.Target.Role, r.Controller):
			return int32(p)
		case part.Leader != 0 && led < 0:
			led = int32(p)
		}
	}
	return led
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

func (x *execution) nodeIDs() []int {
	var ids []int
	for _, n := range x.r.System.Nodes() {
		ids = append(ids, n.ID())
	}
	return ids
}

// name writes the targets into the result.
func (x *execution) name(l *life, role string) {
	l.result.Role = role
	l.result.Targets = []string{}
	for _, n := range x.r.System.Nodes() {
		if slices.Contains(l.nodes, n.ID()) {
			l.result.Targets = append(l.result.Targets, n.Name())
		}
	}
}

// sleep returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
