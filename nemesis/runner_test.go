package nemesis

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ackproof/model"
	"ackproof/systems"
)

// run carries out the faults and returns the results and the steps.
func run(t *testing.T, r *Runner, faults ...Fault) ([]model.FaultResult, []FaultStep) {
	t.Helper()
	var steps []FaultStep
	r.Event = func(s FaultStep) { steps = append(steps, s) }
	s := Schedule{Version: 1, Seed: 1, Faults: faults}
	if err := s.Validate(len(r.System.Nodes()), 2, 4); err != nil {
		t.Fatal(err)
	}
	return r.Run(t.Context(), s), steps
}

func TestEachFaultProvesItsEffect(t *testing.T) {
	c := newCluster(t, 3, 2)
	r := &Runner{System: c, Backend: &Proxies{mesh: c.mesh(4)}}
	one := Target{Role: RoleNode, Node: 1}
	for _, x := range []struct {
		name    string
		fault   Fault
		targets []string
		proof   []string
	}{
		{"kill", Fault{Kind: Kill, ForMS: 20, Target: Target{Role: RoleLeader, Partition: 1}}, names(1), []string{"gone", "refused", "after the restart"}},
		{"kill all", Fault{Kind: Kill, Target: Target{Role: RoleAll}}, names(1, 2, 3), []string{"n1", "n2", "n3"}},
		{"pause", Fault{Kind: Pause, ForMS: 250, Target: Target{Role: RoleFollowers}}, names(2, 3), []string{"state T", "answered"}},
		{"short pause", Fault{Kind: Pause, ForMS: 30, Target: one}, names(1), []string{"state T", "answered"}},
		{"machine-death", Fault{Kind: MachineDeath, Target: Target{Role: RoleFollowers}}, names(2, 3), []string{"n2: pid", "silence on its connection and on a new one", "after the restart"}},
		{"isolate", Fault{Kind: Partition, ForMS: 250, Target: one, Cut: Cut{Shape: Isolate, Clients: []int{2, 4}}}, names(1), []string{"6 of 6 links"}},
		{"isolate and reset", Fault{Kind: Partition, ForMS: 250, Target: one, Cut: Cut{Shape: Isolate, Reset: true}}, names(1), []string{"4 of 4 links"}},
		{"one-way-out", Fault{Kind: Partition, ForMS: 250, Target: one, Cut: Cut{Shape: OneWayOut}}, names(1), []string{"4 of 4 links"}},
		{"one-way-in", Fault{Kind: Partition, ForMS: 250, Target: one, Cut: Cut{Shape: OneWayIn}}, names(1), []string{"4 of 4 links"}},
		{"dial-in", Fault{Kind: Partition, ForMS: 250, Target: one, Cut: Cut{Shape: DialIn}}, names(1), []string{"2 of 2 links"}},
		{"client-link", Fault{Kind: Partition, ForMS: 250, Target: one, Cut: Cut{Shape: ClientLink}}, names(1), []string{"2 of 2 links"}},
		{"bridge", Fault{Kind: Partition, ForMS: 250, Target: Target{Role: RoleController}, Cut: Cut{Shape: Bridge}}, names(3), []string{"2 of 2 links"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			results, steps := run(t, r, x.fault)
			got := results[0]
			if !got.Effective || !slices.Equal(got.Targets, x.targets) || got.Kind != string(x.fault.Kind) || got.ToMS-got.FromMS < x.fault.ForMS {
				t.Errorf("%+v, expected an effective fault of %v", got, x.targets)
			}
			for _, p := range x.proof {
				if !strings.Contains(got.Proof, p) {
					t.Errorf("proof %q lacks %q", got.Proof, p)
				}
			}
			var order []Step
			for _, s := range steps {
				order = append(order, s.Step)
			}
			if !slices.Equal(order, []Step{Began, Healed, Judged}) || steps[2].Result.Proof != got.Proof {
				t.Errorf("steps %v", order)
			}
		})
	}
	if err := r.Heal(t.Context()); err != nil {
		t.Error(err)
	}
}

// leaky is a system whose probe goes past everything: to a server that no fault touches.
type leaky struct {
	*cluster
	aside string
}

func (l leaky) Ping(net.Conn) error {
	c, err := net.Dial("tcp", l.aside)
	if err != nil {
		return err
	}
	defer c.Close()
	return pingFrame(c)
}

func TestFaultsWithoutEffectAreNotCalledEffective(t *testing.T) {
	c := newCluster(t, 3, 1)
	m := c.mesh(0)
	node := func(id int) Target { return Target{Role: RoleNode, Node: id} }
	for _, x := range []struct {
		name  string
		build func(t *testing.T) *Runner
		fault Fault
		why   string
	}{
		{"a kill that kills nothing", func(t *testing.T) *Runner {
			c.nodes[0].broken = true
			t.Cleanup(func() { c.nodes[0].broken = false })
			return &Runner{System: c, Backend: &Proxies{mesh: m}}
		}, Fault{Kind: Kill, ForMS: 10, Target: node(1)}, "still there"},
		{"a pause that stops nothing", func(t *testing.T) *Runner {
			c.nodes[0].broken = true
			t.Cleanup(func() { c.nodes[0].broken = false })
			return &Runner{System: c, Backend: &Proxies{mesh: m}}
		}, Fault{Kind: Pause, ForMS: 100, Target: node(1)}, "answered while paused"},
		{"a node that is down already", func(t *testing.T) *Runner {
			c.nodes[0].Kill()
			return &Runner{System: c, Backend: &Proxies{mesh: m}}
		}, Fault{Kind: Kill, ForMS: 10, Target: node(1)}, "down already"},
		{"a machine that dies with a farewell", func(*testing.T) *Runner {
			return &Runner{System: leaky{c, c.nodes[1].addr}, Backend: &Proxies{mesh: m}}
		}, Fault{Kind: MachineDeath, ForMS: 10, Target: node(2)}, "was not left in silence"},
		{"a machine that dies on a mesh that nobody uses", func(t *testing.T) *Runner {
			m := NewMesh()
			t.Cleanup(func() { m.Close() })
			return &Runner{System: c, Backend: &Proxies{mesh: m}}
		}, Fault{Kind: MachineDeath, ForMS: 10, Target: node(2)}, "past this network"},
		{"links that lead past the mesh", func(*testing.T) *Runner {
			return &Runner{System: leaky{c, c.nodes[2].addr}, Backend: &Proxies{mesh: m}}
		}, Fault{Kind: Partition, ForMS: 100, Target: node(1), Cut: Cut{Shape: Isolate}}, "answered through the cut"},
		{"a mesh that nobody uses", func(t *testing.T) *Runner {
			m := NewMesh()
			t.Cleanup(func() { m.Close() })
			return &Runner{System: c, Backend: &Proxies{mesh: m}}
		}, Fault{Kind: Partition, ForMS: 100, Target: node(1), Cut: Cut{Shape: Isolate}}, "reach each other past this network"},
		{"a system without a probe", func(*testing.T) *Runner {
			return &Runner{System: struct{ systems.System }{c}, Backend: &Proxies{mesh: m}}
		}, Fault{Kind: Pause, ForMS: 50, Target: node(1)}, "no probe"},
	} {
		t.Run(x.name, func(t *testing.T) {
			results, _ := run(t, x.build(t), x.fault)
			if results[0].Effective || !strings.Contains(results[0].Proof, x.why) {
				t.Errorf("%+v, expected no effect because of %q", results[0], x.why)
			}
		})
	}
}

// A node that hangs for a reason of its own looks like a cut, but not a byte of its silence is ours.
func TestSilenceOfAnotherCauseIsNoProof(t *testing.T) {
	c := newCluster(t, 2, 1)
	r := &Runner{System: c, Backend: &Proxies{mesh: c.mesh(0)}}
	target := Target{Role: RoleNode, Node: 1}
	c.nodes[1].Pause()
	defer c.nodes[1].Resume()
	results, _ := run(t, r, Fault{Kind: Partition, ForMS: 100, Target: target, Cut: Cut{Shape: DialIn}})
	if results[0].Effective != true { // n2 hangs, but the link from n2 to n1 is proven
		t.Errorf("%+v", results[0])
	}
	c.nodes[0].Pause()
	defer c.nodes[0].Resume()
	results, _ = run(t, r, Fault{Kind: Partition, ForMS: 100, Target: target, Cut: Cut{Shape: Isolate}})
	if results[0].Effective || !strings.Contains(results[0].Proof, "did not answer before the cut") {
		t.Errorf("%+v", results[0])
	}
}

func TestTriggers(t *testing.T) {
	c := newCluster(t, 3, 2)
	var acked atomic.Int64
	r := &Runner{System: c, Backend: &Proxies{mesh: c.mesh(2)}, Acked: func(int32) int64 { return acked.Add(1) }}
	// The first fault takes the leader away for as long as it takes the second one to see that; the third waits until both are over and everything has recovered.
	results, steps := run(t, r,
		Fault{Kind: Kill, ForMS: 8000, UntilFault: at(1), Target: Target{Role: RoleLeader, Partition: AnyPartition}},
		Fault{Kind: Pause, ForMS: 100, Start: Trigger{Fault: at(0), LeaderMoved: true, ISRAtMost: 2, Partition: AnyPartition}, Target: Target{Role: RoleLeader, Partition: AnyPartition}},
		Fault{Kind: Kill, ForMS: 0, Start: Trigger{Fault: at(1), Healed: true, Recovered: true, AckedMore: 5, Partition: AnyPartition}, Target: Target{Role: RoleSame}},
	)
	for i, want := range [][]string{names(1), names(2), names(2)} {
		if !results[i].Effective || !slices.Equal(results[i].Targets, want) || strings.Contains(results[i].Proof, "not reached") {
			t.Errorf("fault %d: %+v, expected targets %v", i, results[i], want)
		}
	}
	when := map[int]map[Step]int{0: {}, 1: {}, 2: {}}
	for i, s := range steps {
		when[s.Fault][s.Step] = i
	}
	if !(when[0][Began] < when[1][Began] && when[1][Began] < when[0][Healed] && when[1][Healed] < when[2][Began] && when[0][Healed] < when[2][Began]) {
		t.Errorf("order of steps: %v", steps)
	}
	if r.LeaderChanges() < 2 { // from n1, and back to it
		t.Errorf("%d leader changes seen", r.LeaderChanges())
	}
}

func TestStateThatIsNeverReached(t *testing.T) {
	c := newCluster(t, 2, 1)
	results, _ := run(t, &Runner{System: c, Backend: &Proxies{mesh: c.mesh(0)}},
		Fault{Kind: Pause, ForMS: 20, Start: Trigger{AckedMore: 1, GiveUpMS: 60}, Target: Target{Role: RoleLeader}})
	if got := results[0]; !got.Effective || !strings.Contains(got.Proof, "not reached within 60ms") || got.FromMS < 60 {
		t.Errorf("%+v, expected a fault that began after it gave up waiting", got)
	}
}

func TestRoles(t *testing.T) {
	c := newCluster(t, 3, 2)
	c.roles = func() systems.Roles {
		return systems.Roles{Controller: 2, Partitions: []systems.PartitionRoles{
			{Leader: 2, Replicas: []int{1, 2, 3}, ISR: []int{2, 3}},
			{Leader: 3, Replicas: []int{2, 3, 1}, ISR: []int{3, 1}},
		}}
	}
	r := &Runner{System: c, Backend: &Proxies{mesh: c.mesh(0)}}
	for _, x := range []struct {
		target Target
		want   []string
		role   string
	}{
		{Target{Role: RoleLeader, Partition: 0}, names(2), "leader of p0"},
		{Target{Role: RoleLeader, Partition: AnyPartition}, names(3), "leader of p1"}, // the one that is not the controller
		{Target{Role: RoleFollowers, Partition: 0}, names(1, 3), "followers of p0"},
		{Target{Role: RoleFollower, Partition: 0}, names(3), "follower of p0"}, // by preference one in sync
		{Target{Role: RoleSpare, Partition: 0}, names(3), "spare of p0"},
		{Target{Role: RoleSpare, Partition: 1}, names(1), "spare of p1"},
		{Target{Role: RoleSpare, Partition: AnyPartition, Aside: true}, names(1), "spare of p1"},
		{Target{Role: RoleInSync, Partition: 1}, names(1, 3), "in-sync of p1"},
		{Target{Role: RoleController}, names(2), "controller"},
		{Target{Role: RoleNode, Node: 3}, names(3), ""},
	} {
		results, _ := run(t, r, Fault{Kind: Pause, ForMS: 1, Target: x.target})
		if !slices.Equal(results[0].Targets, x.want) || results[0].Role != x.role {
			t.Errorf("%+v chose %v as %q, expected %v as %q", x.target, results[0].Targets, results[0].Role, x.want, x.role)
		}
	}
	results, _ := run(t, r, Fault{Kind: Pause, ForMS: 1, Target: Target{Role: RoleMinority}})
	if len(results[0].Targets) != 1 {
		t.Errorf("a minority of 3 is %v", results[0].Targets)
	}
	c.roles = func() systems.Roles { return systems.Roles{Partitions: []systems.PartitionRoles{{Replicas: []int{1}}}} }
	results, _ = run(t, r, Fault{Kind: Kill, Target: Target{Role: RoleLeader}})
	if results[0].Effective || !strings.Contains(results[0].Proof, "not started: partition 0 has no leader") {
		t.Errorf("%+v", results[0])
	}
}

// Whoever joined last is known from watching.
func TestLastJoined(t *testing.T) {
	w := newWatcher(nil, func(time.Time, systems.Roles) {})
	isr := func(ids ...int) systems.Roles {
		return systems.Roles{Partitions: []systems.PartitionRoles{{Leader: 1, Replicas: []int{1, 2, 3}, ISR: ids}}}
	}
	for _, x := range []struct {
		now  []int
		want int
	}{{[]int{1, 2, 3}, 0}, {[]int{1}, 0}, {[]int{1, 3}, 3}, {[]int{1, 2, 3}, 2}, {[]int{1, 2}, 2}} {
		w.look(time.Now(), isr(x.now...), nil)
		if got := w.lastJoined(0); got != x.want {
			t.Errorf("after %v the last to join is %d, expected %d", x.now, got, x.want)
		}
	}
}

// When the load ends, what lasts is healed at once and what has not begun never does.
func TestEndOfLoadHeals(t *testing.T) {
	c := newCluster(t, 3, 1)
	r := &Runner{System: c, Backend: &Proxies{mesh: c.mesh(0)}}
	ctx, cancel := context.WithCancel(t.Context())
	var began sync.WaitGroup
	began.Add(3)
	r.Event = func(s FaultStep) {
		if s.Step == Began {
			began.Done()
		}
	}
	go func() {
		began.Wait()
		cancel()
	}()
	hour := time.Hour.Milliseconds()
	results := r.Run(ctx, Schedule{Version: 1, Faults: []Fault{
		{Kind: Kill, ForMS: hour, Target: Target{Role: RoleNode, Node: 1}},
		{Kind: Pause, ForMS: hour, Target: Target{Role: RoleNode, Node: 2}},
		{Kind: Partition, ForMS: hour, Target: Target{Role: RoleNode, Node: 3}, Cut: Cut{Shape: Isolate}},
		{Kind: Kill, Start: Trigger{AfterMS: hour}, Target: Target{Role: RoleNode, Node: 3}},
		{Kind: Kill, Start: Trigger{Fault: at(3)}, Target: Target{Role: RoleSame}},
	}})
	for i, got := range results {
		if started := !strings.Contains(got.Proof, "not started: the load ended first"); started != (i < 3) {
			t.Errorf("fault %d: %+v", i, got)
		}
	}
	if err := r.Heal(t.Context()); err != nil {
		t.Error(err)
	}
	for _, n := range c.nodes {
		if n.PID() == 0 || processState(n.PID()) == "T" {
			t.Errorf("%s: pid %d is not well", n.Name(), n.PID())
		}
	}
}

// Two cuts of one link do not open each other's, and a fault judges only what it can see.
func TestOverlappingFaults(t *testing.T) {
	c := newCluster(t, 3, 1)
	r := &Runner{System: c, Backend: &Proxies{mesh: c.mesh(2)}}
	results, _ := run(t, r,
		Fault{Kind: Partition, ForMS: 900, Target: Target{Role: RoleNode, Node: 1}, Cut: Cut{Shape: Isolate}},
		Fault{Kind: Partition, ForMS: 300, Start: Trigger{Fault: at(0), AfterMS: 250}, Target: Target{Role: RoleSame}, Cut: Cut{Shape: ClientLink}},
		Fault{Kind: Kill, ForMS: 500, Start: Trigger{Fault: at(1), AfterMS: 220}, Target: Target{Role: RoleSame}},
	)
	for i, got := range results {
		if !got.Effective {
			t.Errorf("fault %d: %+v", i, got)
		}
	}
	if err := r.Heal(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestHealFindsWhatFaultsLeft(t *testing.T) {
	c := newCluster(t, 3, 1)
	r := &Runner{System: c, Backend: &Proxies{mesh: c.mesh(1)}}
	c.nodes[0].Kill()
	c.nodes[1].Pause()
	r.Backend.Network().Hold(Flow(NodeParty(1), NodeParty(3))...)
	if err := r.Heal(t.Context()); err != nil {
		t.Fatal(err)
	}
	if roles, _ := c.Roles(t.Context()); !Recovered(roles) {
		t.Errorf("%+v after the heal", roles)
	}

	c.nodes[2].broken = true // its Resume does nothing
	c.nodes[2].cmd.Process.Signal(stop)
	defer c.nodes[2].cmd.Process.Signal(cont)
	for processState(c.nodes[2].PID()) != "T" { // a signal takes its time on a busy machine
		if t.Context().Err() != nil {
			t.Fatal("n3 does not stop")
		}
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := r.Heal(ctx); err == nil || !strings.Contains(err.Error(), "n3 does not answer") {
		t.Errorf("error %v, expected that n3 does not answer", err)
	}
}

// Restarts with a stagger come one after the other, in the order of the nodes, while the load lasts.
func TestStaggeredRestarts(t *testing.T) {
	c := newCluster(t, 3, 1)
	r := &Runner{System: c, Backend: &Proxies{mesh: c.mesh(0)}}
	results, _ := run(t, r, Fault{Kind: Kill, ForMS: 20, StaggerMS: 60, Target: Target{Role: RoleAll}})
	if got := results[0]; !got.Effective || got.ToMS-got.FromMS < 20+2*60 {
		t.Errorf("%+v, expected the last restart after 140 ms or more", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.Event = func(s FaultStep) {
		if s.Step == Began {
			cancel()
		}
	}
	results = r.Run(ctx, Schedule{Version: 1, Faults: []Fault{{Kind: Kill, ForMS: 20, StaggerMS: time.Hour.Milliseconds(), Target: Target{Role: RoleAll}}}})
	if !results[0].Effective {
		t.Errorf("%+v", results[0])
	}
	if roles, _ := c.Roles(t.Context()); !Recovered(roles) {
		t.Errorf("%+v: the end of the load has not healed everything", roles)
	}
}
