package nemesis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ackproof/systems"
)

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
	if !t.WaitsForState() {
		return since, "", nil
	}
	giveUp := t.GiveUp()
	p := t.Partition
	if p == AnyPartition && t.Fault != nil {
		p = x.lives[*t.Fault].partition
	}
	then, _, _ := x.watcher.now()
	if t.Fault != nil && !t.Healed {
		then = x.lives[*t.Fault].seen
	}
	leaderThen, controllerThen, ackedThen := LeaderOf(then, p), then.Controller, x.acked(p)
	reached := x.watcher.until(ctx, since, giveUp, func(r systems.Roles) bool {
		return t.Reached(p, r, leaderThen, controllerThen, x.acked(p)-ackedThen)
	})
	switch {
	case ctx.Err() != nil:
		return since, "", errLoadEnded
	case !reached:
		return since, fmt.Sprintf("began although the state of its trigger was not reached within %v", giveUp), nil
	}
	return since, "", nil
}

func (x *execution) acked(p int32) int64 {
	if x.r.Acked == nil || p < 0 {
		return 0
	}
	return x.r.Acked(p)
}

// choose resolves the fault's partition and nodes by what the system said after since.
func (x *execution) choose(ctx context.Context, l *life, since time.Time) error {
	t := l.fault.Target
	l.seen, _, _ = x.watcher.now()
	s := Selector{Nodes: x.nodeIDs(), Pick: l.pick, Hurt: x.hurtNow, LastJoined: x.watcher.lastJoined, Follows: -1}
	if other := l.fault.Start.Fault; other != nil {
		if t.Role == RoleSame {
			l.nodes, l.partition = x.lives[*other].nodes, x.lives[*other].partition
			x.name(l, x.lives[*other].result.Role)
			return x.other(ctx, l, s, since)
		}
		if !l.fault.Start.Healed {
			s.Follows = x.lives[*other].partition
			s.Sequence = true
		}
	}
	choice := Choice{}
	if !t.ByRoles() {
		choice, _ = s.Choose(t, l.seen)
		l.nodes = choice.Nodes
		x.name(l, choice.Role)
		return x.other(ctx, l, s, since)
	}
	if t.Aside {
		x.watcher.until(ctx, since, asidePatience, func(r systems.Roles) bool { return AnyAside(t.Role, r) })
	}
	var problem error
	ok := x.watcher.until(ctx, since, rolesPatience, func(r systems.Roles) bool {
		l.seen = r
		choice, problem = s.Choose(t, r)
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
	l.nodes, l.partition = choice.Nodes, choice.Partition
	x.name(l, choice.Role)
	return x.other(ctx, l, s, since)
}

// other resolves the other side of a cut, if the fault narrows it down.
func (x *execution) other(ctx context.Context, l *life, s Selector, since time.Time) error {
	if l.fault.Cut.Against == "" {
		return nil
	}
	problem := errors.New("no node tells the roles")
	x.watcher.until(ctx, since, rolesPatience, func(r systems.Roles) bool {
		l.against, problem = s.Other(l.fault.Cut, Choice{Nodes: l.nodes, Partition: l.partition}, r)
		return problem == nil
	})
	if ctx.Err() != nil {
		return errLoadEnded
	}
	return problem
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
