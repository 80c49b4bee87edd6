package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"ackproof/broker/storage/files"
	"ackproof/histories"
	"ackproof/model"
	"ackproof/nemesis"
	"ackproof/sim/cluster"
	"ackproof/sim/world"
	"ackproof/systems"
)

// attack carries a schedule out on the simulated cluster: what nemesis.Runner does on a real one, with the same meaning of triggers, targets and cuts
// (nemesis/select.go, nemesis/cut.go). Every fault is a coroutine of one process that nothing hurts.
type attack struct {
	r     *run
	self  *world.Process
	began time.Duration
	ended bool
	over  world.Signal // the load is over
	steps world.Signal // some fault took effect or was healed
	lives []*life
	hurt  map[int]int // how many kills and pauses hold a node now; looked up only

	roles   systems.Roles
	leader  []int
	joined  []int
	changes int
	looked  world.Signal
	harm    nemesis.Exposure
}

// life is one fault while it runs.
type life struct {
	fault     nemesis.Fault
	index     int
	pick      *rand.Rand
	result    model.FaultResult
	begun     bool // it took effect, or never will
	took      bool
	healed    bool
	nodes     []int
	against   []int // the other side of a cut, if it is narrowed down
	partition int32
	seen      systems.Roles
}

func newAttack(r *run) *attack {
	a := &attack{r: r, self: r.w.NewProcess(1 << 10), began: r.w.Now(), hurt: map[int]int{}, harm: nemesis.Exposure{Flushed: r.c.FlushEach, One: r.c.MinISR == 1, Moment: r.journal.Last}}
	for i, f := range r.c.Schedule.Faults {
		a.lives = append(a.lives, &life{fault: f, index: i, partition: -1, pick: rand.New(rand.NewPCG(uint64(r.c.Schedule.Seed), uint64(i))),
			result: model.FaultResult{Kind: string(f.Kind), Role: string(f.Target.Role), Targets: []string{}}})
	}
	return a
}

// look is how often the roles are looked at.
const look = 10 * time.Millisecond

func (a *attack) begin() {
	a.watch()
	for _, l := range a.lives {
		a.r.w.Go(a.self, func(t *world.Task) { a.live(t, l) })
	}
}

// watch follows the roles.
func (a *attack) watch() {
	if now, err := a.r.cluster.Roles(); err == nil {
		for len(a.leader) < len(now.Partitions) {
			a.leader, a.joined = append(a.leader, 0), append(a.joined, 0)
		}
		for p, part := range now.Partitions {
			if part.Leader != 0 {
				if old := a.leader[p]; old != 0 && old != part.Leader {
					a.changes++
				}
				a.leader[p] = part.Leader
			}
			if p < len(a.roles.Partitions) {
				for _, n := range part.ISR {
					if !slices.Contains(a.roles.Partitions[p].ISR, n) {
						a.joined[p] = n
					}
				}
			}
		}
		a.roles = now
		a.harm.Look(now)
		a.looked.Broadcast()
	}
	a.r.w.After(look, a.self, a.watch)
}

// end heals whatever lasts and waits until that is done.
func (a *attack) end(t *world.Task) {
	a.ended = true
	a.over.Broadcast()
	a.looked.Broadcast()
	a.steps.Broadcast()
	for slices.ContainsFunc(a.lives, func(l *life) bool { return !l.healed }) {
		t.Wait(&a.steps, time.Second)
	}
}

// abandon writes down where the faults stand when the run ends without healing them.
func (a *attack) abandon() {
	for _, l := range a.lives {
		switch {
		case l.healed:
		case l.took:
			l.result.ToMS, l.result.Proof = a.ms(), "lasted when the run ended"
		default:
			l.result.FromMS, l.result.ToMS, l.result.Proof = a.ms(), a.ms(), "not started: the run ended first"
		}
	}
}

func (a *attack) results() []model.FaultResult {
	out := []model.FaultResult{}
	for _, l := range a.lives {
		out = append(out, l.result)
	}
	return out
}

func (a *attack) ms() int64 { return (a.r.w.Now() - a.began).Milliseconds() }

// tell puts a step into the journal, as the harness does.
func (a *attack) tell(l *life, step nemesis.Step, note string) {
	a.r.w.Note("fault", int64(l.index), int64(len(l.nodes)))
	a.r.w.Say("fault %d %s: %s", l.index, step, note)
	if step != nemesis.Judged {
		a.r.turn(-1, "%s", note)
	}
	a.r.journal.Mark(histories.Event{Kind: histories.Fault, Offset: int64(l.index), Note: string(step) + ": " + note})
	a.steps.Broadcast()
}

// sleep waits unless the load ends first.
func (a *attack) sleep(t *world.Task, d time.Duration) bool {
	for end := t.Now() + d; !a.ended && t.Now() < end; {
		t.Wait(&a.over, end-t.Now())
	}
	return !a.ended
}

// live is the whole life of one fault.
func (a *attack) live(t *world.Task, l *life) {
	fail := func(why string) {
		l.result.FromMS, l.result.ToMS, l.result.Proof = a.ms(), a.ms(), why
		l.begun, l.healed = true, true
		a.tell(l, nemesis.Judged, why)
	}
	remark, err := a.await(t, l)
	if err == nil {
		err = a.choose(t, l)
	}
	if err != nil {
		fail("not started: " + err.Error())
		return
	}
	harm := a.injury(l)
	a.mark(l, +1)
	a.harm.Strike(l.fault.Kind, l.nodes)
	harm.strike()
	l.result.FromMS = a.ms()
	l.took, l.begun = true, true
	a.tell(l, nemesis.Began, fmt.Sprintf("%s of %s (%s) took effect", l.fault.Kind, strings.Join(l.result.Targets, ", "), l.result.Role))
	a.last(t, l)
	harm.heal(t)
	a.mark(l, -1)
	l.result.ToMS = a.ms()
	effective, proof := harm.verdict()
	l.result.Effective, l.result.Proof = effective, proof
	if remark != "" {
		l.result.Proof = remark + "; " + proof
	}
	l.healed = true
	a.tell(l, nemesis.Healed, fmt.Sprintf("%s of %s healed", l.fault.Kind, strings.Join(l.result.Targets, ", ")))
	a.tell(l, nemesis.Judged, l.result.Proof)
}

// last waits for the moment to heal.
func (a *attack) last(t *world.Task, l *life) {
	until := func() bool {
		j := l.fault.UntilFault
		return j != nil && *j >= 0 && *j < len(a.lives) && a.lives[*j].begun
	}
	for end := t.Now() + ms(l.fault.ForMS); !a.ended && !until() && t.Now() < end; {
		t.Wait(&a.steps, end-t.Now())
	}
}

type loadEnded struct{}

func (loadEnded) Error() string { return "the load ended first" }

// await returns when the fault's trigger says that it is time.
func (a *attack) await(t *world.Task, l *life) (remark string, err error) {
	tr := l.fault.Start
	base := a.began
	if tr.Fault != nil {
		other := a.lives[*tr.Fault]
		for !a.ended && !(other.begun && !tr.Healed || other.healed) {
			t.Wait(&a.steps, world.Forever)
		}
		if a.ended {
			return "", loadEnded{}
		}
		if !other.took && !tr.Healed {
			return "", fmt.Errorf("fault %d, which it belongs to, never took effect", other.index)
		}
		base = t.Now()
	}
	if !a.sleep(t, base+ms(tr.AfterMS)-t.Now()) {
		return "", loadEnded{}
	}
	if !tr.WaitsForState() {
		return "", nil
	}
	p, then := tr.Partition, a.roles
	if tr.Fault != nil {
		if p == nemesis.AnyPartition {
			p = a.lives[*tr.Fault].partition
		}
		if !tr.Healed {
			then = a.lives[*tr.Fault].seen
		}
	}
	leaderThen, controllerThen, ackedThen := nemesis.LeaderOf(then, p), then.Controller, a.r.counters.Acked(p)
	reached := a.until(t, tr.GiveUp(), func(now systems.Roles) bool {
		return tr.Reached(p, now, leaderThen, controllerThen, a.r.counters.Acked(p)-ackedThen)
	})
	switch {
	case a.ended:
		return "", loadEnded{}
	case !reached:
		return fmt.Sprintf("began although the state of its trigger was not reached within %v", tr.GiveUp()), nil
	}
	return "", nil
}

// until waits for a look at the roles that satisfies ok.
func (a *attack) until(t *world.Task, limit time.Duration, ok func(systems.Roles) bool) bool {
	for end := t.Now() + limit; !a.ended; {
		if t.Now() >= end {
			return false
		}
		if t.Wait(&a.looked, end-t.Now()) && !a.ended && ok(a.roles) {
			return true
		}
	}
	return false
}

// choose resolves the fault's partition and nodes.
func (a *attack) choose(t *world.Task, l *life) error {
	target := l.fault.Target
	l.seen = a.roles
	s := nemesis.Selector{Nodes: upTo(a.r.c.Nodes), Pick: l.pick, Hurt: func(n int) bool { return a.hurt[n] > 0 }, LastJoined: a.lastJoined, Follows: -1}
	if other := l.fault.Start.Fault; other != nil {
		if target.Role == nemesis.RoleSame {
			l.nodes, l.partition = a.lives[*other].nodes, a.lives[*other].partition
			a.name(l, a.lives[*other].result.Role)
			return a.other(t, l, s)
		}
		if !l.fault.Start.Healed {
			s.Sequence, s.Follows = true, a.lives[*other].partition
		}
	}
	if target.Aside {
		a.until(t, asidePatience, func(r systems.Roles) bool { return nemesis.AnyAside(target.Role, r) })
	}
	choice, problem := s.Choose(target, a.roles)
	if problem != nil {
		a.until(t, rolesPatience, func(r systems.Roles) bool {
			choice, problem = s.Choose(target, r)
			return problem == nil
		})
	}
	if a.ended {
		return loadEnded{}
	}
	if problem != nil {
		return problem
	}
	l.seen, l.nodes, l.partition = a.roles, choice.Nodes, choice.Partition
	a.name(l, choice.Role)
	return a.other(t, l, s)
}

// other resolves the other side of a cut, if the fault narrows it down.
func (a *attack) other(t *world.Task, l *life, s nemesis.Selector) error {
	resolve := func(r systems.Roles) (err error) {
		l.against, err = s.Other(l.fault.Cut, nemesis.Choice{Nodes: l.nodes, Partition: l.partition}, r)
		return err
	}
	problem := resolve(a.roles)
	if problem != nil {
		a.until(t, rolesPatience, func(r systems.Roles) bool { problem = resolve(r); return problem == nil })
	}
	if a.ended {
		return loadEnded{}
	}
	return problem
}

const (
	rolesPatience = 1500 * time.Millisecond // for a role to have a holder when a fault starts
	asidePatience = 4 * time.Second         // for a partition of the preferred kind
)

func (a *attack) lastJoined(p int32) int {
	if p < 0 || int(p) >= len(a.joined) {
		return 0
	}
	return a.joined[p]
}

func (a *attack) name(l *life, role string) {
	l.result.Role, l.result.Targets = role, []string{}
	for _, n := range l.nodes {
		l.result.Targets = append(l.result.Targets, fmt.Sprintf("n%d", n))
	}
	slices.Sort(l.result.Targets)
}

func (a *attack) mark(l *life, by int) {
	if l.fault.Kind.Down() || l.fault.Kind == nemesis.Pause {
		for _, n := range l.nodes {
			a.hurt[n] += by
		}
	}
}

// upTo gives the numbers from 1 to n, as nodes and clients have them.
func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i + 1
	}
	return out
}

// injury is the work of one kind of fault.
type injury interface {
	strike()
	heal(t *world.Task)
	verdict() (effective bool, proof string)
}

func (a *attack) injury(l *life) injury {
	switch l.fault.Kind {
	case nemesis.Kill:
		return &kill{a: a, l: l, die: (*cluster.Node).Kill, what: "gone"}
	case nemesis.PowerLoss:
		return &kill{a: a, l: l, die: (*cluster.Node).PowerLoss, what: "lost power"}
	case nemesis.DiskWipe:
		return &kill{a: a, l: l, die: (*cluster.Node).Wipe, what: "lost its logs"}
	case nemesis.DiskError, nemesis.FlushError, nemesis.DiskFull:
		return &badDisk{a: a, l: l}
	case nemesis.DiskSlow:
		return &tuned{a: a, l: l, set: func(n *cluster.Node, on int64) { n.SlowDisk(ms(l.fault.AmountMS * on)) }, what: "flushed slowly"}
	case nemesis.ClockSkew:
		return &tuned{a: a, l: l, set: func(n *cluster.Node, on int64) { n.SetClock(ms(l.fault.AmountMS * on)) }, what: "had another time"}
	case nemesis.Pause:
		return &pause{a: a, l: l}
	}
	return &cut{a: a, l: l, lanes: l.fault.Cut.Lanes(l.nodes, l.against, upTo(a.r.c.Nodes), upTo(a.r.c.Clients), l.pick)}
}

// inTurn heals target after target with the fault's stagger between them.
func (a *attack) inTurn(t *world.Task, l *life, do func(node int)) {
	for i, n := range l.nodes {
		if i > 0 && l.fault.StaggerMS > 0 {
			a.sleep(t, ms(l.fault.StaggerMS)) // no longer than the load lasts
		}
		do(n)
	}
}

// kill ends processes, in one way or another; healed by a restart.
type kill struct {
	a      *attack
	l      *life
	die    func(*cluster.Node)
	what   string   // became of them
	were   []string // that were up before
	failed []string
}

func (k *kill) strike() {
	for _, id := range k.l.nodes {
		n := k.a.r.cluster.Node(id)
		if n.Up() {
			k.were = append(k.were, n.Name())
		}
		k.die(n)
	}
}

func (k *kill) heal(t *world.Task) {
	k.a.inTurn(t, k.l, func(id int) {
		if k.a.hurt[id] > 1 && k.a.otherKill(k.l, id) {
			return // another fault holds it down and will start it
		}
		if err := k.a.r.cluster.Node(id).Start(); err != nil {
			k.failed = append(k.failed, err.Error())
			k.a.r.endings = append(k.a.r.endings, err.Error())
		}
	})
}

func (k *kill) verdict() (bool, string) {
	if len(k.were) == 0 {
		return false, "was down already"
	}
	if len(k.failed) > 0 {
		return true, strings.Join(k.failed, "; ")
	}
	return true, strings.Join(k.were, ", ") + " " + k.what + " and started again"
}

// otherKill tells whether another fault that keeps the node down lasts on the node.
func (a *attack) otherKill(own *life, node int) bool {
	return slices.ContainsFunc(a.lives, func(l *life) bool {
		return l != own && l.fault.Kind.Down() && l.took && !l.healed && slices.Contains(l.nodes, node)
	})
}

// pause makes processes stand still.
type pause struct {
	a    *attack
	l    *life
	were []string
}

func (p *pause) strike() {
	for _, id := range p.l.nodes {
		n := p.a.r.cluster.Node(id)
		if n.Up() && !n.Paused() {
			p.were = append(p.were, n.Name())
		}
		n.Pause()
	}
}

func (p *pause) heal(t *world.Task) {
	p.a.inTurn(t, p.l, func(id int) { p.a.r.cluster.Node(id).Resume() })
}

func (p *pause) verdict() (bool, string) {
	if len(p.were) == 0 {
		return false, "was down or paused already"
	}
	return true, strings.Join(p.were, ", ") + " stood still"
}

// cut holds lanes.
type cut struct {
	a      *attack
	l      *life
	lanes  []nemesis.Lane
	before int
	caught int
}

func (c *cut) sum() (n int) {
	for _, l := range c.lanes {
		caught, _ := c.a.r.net.Caught(l)
		n += caught
	}
	return n
}

func (c *cut) strike() {
	c.before = c.sum()
	for _, l := range c.lanes {
		c.a.r.net.Hold(l)
	}
}

func (c *cut) heal(*world.Task) {
	c.caught = c.sum() - c.before
	if c.l.fault.Cut.Reset {
		for _, l := range c.lanes {
			if !l.Back {
				c.a.r.net.Reset(l)
			}
		}
	}
	for _, l := range c.lanes {
		c.a.r.net.Release(l)
	}
}

func (c *cut) verdict() (bool, string) {
	if c.caught == 0 {
		return false, "nothing was on its way while the lanes were held"
	}
	return true, fmt.Sprintf("%d messages held on %d lanes", c.caught, len(c.lanes))
}

// badDisk makes writes and flushes fail: the next one, or all of them for a while.
type badDisk struct {
	a      *attack
	l      *life
	before int
}

func (d *badDisk) failures() (n int) {
	for _, id := range d.l.nodes {
		n += d.a.r.cluster.Node(id).DiskFailures()
	}
	return n
}

func (d *badDisk) strike() {
	d.before = d.failures()
	for _, id := range d.l.nodes {
		n := d.a.r.cluster.Node(id)
		switch d.l.fault.Kind {
		case nemesis.DiskFull:
			n.FailDisk(cluster.Failing{Err: files.ErrNoSpace})
		case nemesis.FlushError:
			n.FailDisk(cluster.Failing{Err: files.ErrIO, Once: true, Flush: true})
		default:
			n.FailDisk(cluster.Failing{Err: files.ErrIO, Once: true})
		}
	}
}

func (d *badDisk) heal(*world.Task) {
	for _, id := range d.l.nodes {
		d.a.r.cluster.Node(id).FailDisk(cluster.Failing{})
	}
}

func (d *badDisk) verdict() (bool, string) {
	n := d.failures() - d.before
	if n == 0 {
		return false, "nothing was written meanwhile"
	}
	return true, fmt.Sprintf("%d operations failed", n)
}

// tuned sets something of a machine, and sets it back.
type tuned struct {
	a    *attack
	l    *life
	set  func(n *cluster.Node, on int64) // on: 1, or 0 to set it back
	what string
}

func (u *tuned) strike() {
	for _, id := range u.l.nodes {
		u.set(u.a.r.cluster.Node(id), 1)
	}
}

func (u *tuned) heal(t *world.Task) {
	u.a.inTurn(t, u.l, func(id int) { u.set(u.a.r.cluster.Node(id), 0) })
}

func (u *tuned) verdict() (bool, string) {
	return true, fmt.Sprintf("%s %s by %d ms", strings.Join(u.l.result.Targets, ", "), u.what, u.l.fault.AmountMS)
}
