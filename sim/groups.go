package sim

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	coordinator "ackproof/broker/core/group"
	"ackproof/histories"
	"ackproof/linearizability"
	"ackproof/model"
	"ackproof/nemesis"
	"ackproof/sim/cluster"
	"ackproof/sim/world"
	"ackproof/workloads/group"
	"ackproof/workloads/log"
)

// What a case of consumer groups has besides that of the log that they read.

// Groups is the load of consumer groups. JSON.
type Groups struct {
	Members    int              `json:"members"`          // of each group
	Static     int              `json:"static,omitempty"` // so many of them are static members
	Storm      bool             `json:"storm,omitempty"`  // members live for moments only
	Before     bool             `json:"before,omitempty"` // members commit before they process
	Protocols  []group.Protocol `json:"protocols"`        // one group of each
	SessionMS  int64            `json:"session_ms"`
	Partitions int              `json:"partitions"` // of the internal topic
	// CompactBytes is the length of the log of the internal topic after which a coordinator writes it anew; 0: never.
	CompactBytes int `json:"compact_bytes"`
}

// WithGroups is the case with a load of consumer groups that read its log. What lets acknowledged records go is taken out of the configuration: a group can be given only what the log
// keeps.
func (c Case) WithGroups(g Groups) Case {
	c.Groups = &g
	c.Acks, c.Unclean, c.Deletes, c.InFlight = -1, false, false, false
	return c
}

// DefaultGroups is the load that `ackproof test --workload group` has, with a group of each protocol.
func DefaultGroups() Groups {
	return Groups{Members: 3, Static: 1, Protocols: group.Protocols(), SessionMS: 2000, Partitions: 3, CompactBytes: 32 << 10}
}

// SwarmGroups draws a case of consumer groups from its seed, as Swarm draws one of the log: cluster, timers and faults are those of the same seed there, as far as they leave acknowledged
// records alone. A few seeds are storms of rebalances; with storm all are.
func SwarmGroups(seed int64, kinds []nemesis.Kind, loadMS int64, storm bool) Case {
	r := rand.New(rand.NewPCG(uint64(seed), 0x67726f757073))
	often := func(percent int) bool { return r.IntN(100) < percent }
	g := DefaultGroups()
	g.Members = 2 + r.IntN(3)
	g.Before = often(30)
	if often(60) {
		g.Protocols = []group.Protocol{pick(r, group.Protocols()...)}
	}
	g.SessionMS = pick[int64](r, 800, 1200, 2000, 3000)
	g.Partitions = 1 + r.IntN(3)
	g.CompactBytes = pick(r, 0, 4<<10, 16<<10, 64<<10)
	g.Static = max(0, r.IntN(2*g.Members)-g.Members+1)
	if g.Storm = often(8) || storm; g.Storm {
		g.Members, g.SessionMS = 8+r.IntN(9), min(g.SessionMS, 1200)
	}
	c := Swarm(seed, kinds, loadMS)
	if g.Storm {
		c.Replication = 3
	}
	c.MinISR = min(2, c.Replication) // with more than that, coordinators would be away most of the time
	c.Rate = pick(r, 50, 100, 200)
	if len(kinds) == 0 {
		for _, k := range nemesis.SimulatedKinds() {
			if often(60) && !c.takesCommits(k) {
				kinds = append(kinds, k)
			}
		}
	}
	c = c.WithGroups(g)
	c.Schedule = c.generate(kinds, true)
	return c
}

// takesCommits tells whether faults of the kind may take acknowledged commits with them: what a run of groups is exposed to is not followed (see nemesis.Exposure).
func (c Case) takesCommits(k nemesis.Kind) bool {
	return nemesis.MayExpose([]nemesis.Kind{k}, c.FlushEach)
}

func (g *Groups) validate(c Case) error {
	bad := func(what string, got any, want string) error {
		return fmt.Errorf("simulated case: groups: %s is %v, expected %s", what, got, want)
	}
	switch {
	case g.Members < 1 || g.Members > 1000:
		return bad("members", g.Members, "1 to 1000")
	case g.Static < 0 || g.Static > g.Members:
		return bad("static", g.Static, "0 to the number of members")
	case g.SessionMS < 100 || g.SessionMS > 600_000:
		return bad("session_ms", g.SessionMS, "100 to 600000")
	case g.Partitions < 1 || g.Partitions > 64:
		return bad("partitions", g.Partitions, "1 to 64")
	case g.CompactBytes < 0:
		return bad("compact_bytes", g.CompactBytes, "0 or more")
	case c.Acks != -1 || c.Unclean || c.Deletes:
		return bad("the log", fmt.Sprintf("acks %d, unclean_election %t, deletes %t", c.Acks, c.Unclean, c.Deletes), "acks −1, clean elections and no deletions: a group can be given only what the log keeps")
	case slices.ContainsFunc(c.Schedule.Faults, func(f nemesis.Fault) bool { return c.takesCommits(f.Kind) }):
		return bad("the schedule", "one that takes disks or power without a flush", "faults that leave acknowledged commits alone")
	case len(g.Protocols) == 0:
		return bad("protocols", "empty", fmt.Sprint(group.Protocols()))
	}
	for i, p := range g.Protocols {
		if !slices.Contains(group.Protocols(), p) || slices.Contains(g.Protocols[:i], p) {
			return bad("protocols", g.Protocols, fmt.Sprintf("some of %v, each once", group.Protocols()))
		}
	}
	return nil
}

// commit is when members commit, as contracts have it.
func (g *Groups) commit() string {
	if g.Before {
		return model.CommitBefore
	}
	return model.CommitAfter
}

func (g *Groups) session() time.Duration { return ms(g.SessionMS) }

func (g *Groups) heartbeat() time.Duration { return g.session() / 8 }

// load is what the members do.
func (g *Groups) load() group.Config {
	return group.Config{Members: g.Members, Static: g.Static, Storm: g.Storm, Before: g.Before, Session: g.session(), Rebalance: g.session(), Heartbeat: g.heartbeat()}
}

// cluster is how the brokers are set up for the groups.
func (g *Groups) cluster(replication int) cluster.Groups {
	return cluster.Groups{Partitions: int32(g.Partitions), Replication: int16(replication), Core: coordinator.Config{
		MinSession: g.session(), MaxSession: 30 * time.Minute, InitialRebalanceDelay: g.session() / 10, MaxSize: 10_000,
		ConsumerSession: g.session(), ConsumerHeartbeat: g.heartbeat(), MaxMetadata: 4096, OffsetsRetention: 7 * 24 * time.Hour, RetentionCheck: 10 * time.Minute,
		CompactAfter: g.CompactBytes, CommitTimeout: 5 * time.Second,
	}}
}

// groupRun is what a run of groups has beside that of a log. Nil: there are none.
type groupRun struct {
	r        *run
	load     *group.Workload
	all      []group.Group
	monitors []linearizability.Monitor
}

func newGroupRun(r *run, config log.Config) *groupRun {
	g := r.c.Groups
	if g == nil {
		return nil
	}
	x := &groupRun{r: r}
	for _, one := range group.Groups(r.c.runID()) {
		if slices.Contains(g.Protocols, one.Protocol) {
			x.all = append(x.all, one)
		}
	}
	load := g.load()
	load.Log, load.Groups = config, x.all
	x.load = group.New(load, r.workload, r.journal)
	o := linearizability.MonitorOptions{}
	x.monitors = []linearizability.Monitor{linearizability.NewGroupMonitor(o), linearizability.NewCommitMonitor(o)}
	return x
}

// watch is told of every event, and says which violation is certain, "" if none is.
func (x *groupRun) watch(ev *histories.Event) (sighting string) {
	if x == nil {
		return ""
	}
	for _, m := range x.monitors {
		proof, err := m.Step(ev)
		if err != nil {
			panic(err) // the recorder writes nothing of the kind
		}
		if proof != nil {
			return fmt.Sprintf("%s: %s in %s: %s", proof.Claim, proof.Anomaly, proof.Object, proof.Sentence)
		}
	}
	return ""
}

// answer demands that every group has a coordinator that tells its committed offsets; it returns what does not work when the bound has passed.
func (x *groupRun) answer(t *world.Task, bound time.Duration) (complaints []string) {
	complaints = x.every(t, func(g group.Group, e *env) string { return x.load.Answers(g, e, x.r.links(), bound) })
	return append(complaints, x.stalls()...)
}

// stalls says which groups went without progress for too long in a storm that no fault disturbed.
func (x *groupRun) stalls() []string {
	if x == nil {
		return nil
	}
	longest, complaints := x.load.Stalls(ms(x.r.c.Contract(false).GroupBoundMS))
	x.r.facts.GroupsStalledMS = longest.Milliseconds()
	if !x.r.c.Groups.Storm || len(x.r.c.Schedule.Faults) > 0 {
		return nil
	}
	return complaints
}

// groupDrainBound bounds the reading of what is left by one member: its join has to outlast the sessions of those that are gone.
const groupDrainBound = 60 * time.Second

// drain lets every group read on to the end.
func (x *groupRun) drain(t *world.Task) {
	if x == nil {
		return
	}
	reasons := x.every(t, func(g group.Group, e *env) string { return x.load.Drain(g, e, x.r.links(), groupDrainBound) })
	x.r.facts.GroupsDrained, x.r.facts.GroupsReason = len(reasons) == 0, strings.Join(reasons, "; ")
}

func (x *groupRun) every(t *world.Task, do func(group.Group, *env) string) (complaints []string) {
	if x == nil {
		return nil
	}
	for i, g := range x.all {
		if s := do(g, x.r.visitorEnv(t, 1<<10+i)); s != "" {
			complaints = append(complaints, s)
		}
	}
	return complaints
}

// check decides the whole run.
func (x *groupRun) check(contract model.Contract, o linearizability.Options) (*linearizability.Answer, error) {
	o.Floors = maps.Clone(o.Floors)
	for _, c := range []model.Claim{model.CommitSafety, model.GroupDelivery} {
		if _, has := o.Floors[c]; o.Floors != nil && !has {
			o.Floors[c] = model.GroupFloors()[c]
		}
	}
	raw := x.r.buffer.Bytes()
	events := func() iter.Seq2[histories.Event, error] {
		in, err := histories.NewReader(bytes.NewReader(raw))
		if err != nil {
			return func(yield func(histories.Event, error) bool) { yield(histories.Event{}, err) }
		}
		return in.All()
	}
	a, err := linearizability.CheckGroupRun(events, contract, x.r.facts, o)
	if err != nil {
		return nil, err
	}
	applied, repeats := x.load.Sink().Counts()
	for _, c := range a.Claims {
		if e := c.Evidence; c.ID == model.GroupDelivery && (e["processed"] != applied || e["processed_again"] != repeats) {
			return nil, fmt.Errorf("simulated run, seed %d: a bug of ackproof: the sink took %d records and %d again, the check knows of %d and %d",
				x.r.c.Seed, applied, repeats, e["processed"], e["processed_again"])
		}
	}
	return a, nil
}
