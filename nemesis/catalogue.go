package nemesis

import (
	"time"

	"ackproof/nemesis/seccomp"
	"ackproof/systems"
)

// Preset is a sequence of one to three faults that belong together: the first makes replicas differ, the next changes the leader while they
// do. Most losses in the field took two faults about one time-out apart.
type Preset struct {
	Name  string
	Why   string // what it puts to the test
	Nodes int    // the smallest cluster in which it makes sense
	Steps []PresetStep
}

// PresetStep is one fault of a preset, with its times in multiples of the system's own timers. Its partition is the sequence's.
type PresetStep struct {
	NewController bool // as Trigger.ControllerMoved

	Kind        Kind
	Role        Role
	Shape       Shape
	Aside       bool // as Target.Aside
	Against     Role // as Cut.Against
	HalfClients bool // every second client is cut off from the targets as well, the others stay on their side
	Reset       bool // as Cut.Reset
	// The first step begins the sequence. The others begin After the step Follows took effect (Healed: was healed), once the state is reached.
	Follows     int
	Healed      bool
	After       Span
	AckedMore   int64
	LeaderMoved bool
	ISRAtMost   int
	ISRAtLeast  int
	Expect      Span // how long the state, or what Aside waits for, is expected to take; for the layout only
	For         Span
	Until       int // healed when that step takes effect, if > 0
	Stagger     Span
	Staggered   int // how many staggers the layout has to count
	Call        seccomp.Call
	Nth         int   // as Fault.Nth, the largest that is drawn
	Amount      Span  // as Fault.AmountMS; of a clock in either direction
	Percent     int   // as Fault.Percent
	Rate        int64 // as Fault.BytesPerSecond
	Shuffle     bool  // as Fault.Shuffle
}

// Span is a range from which a length of time is drawn.
type Span struct{ Low, High Multiple }

// Multiple is a length of time in terms of the system's timers.
type Multiple struct {
	Sessions, Lags, Fetches, Elections float64
	Plain                              time.Duration // whatever the timers are
}

func (m Multiple) of(t systems.Timers) time.Duration {
	return time.Duration(m.Sessions*float64(t.Session)+m.Lags*float64(t.Lag)+m.Fetches*float64(t.Fetch)+m.Elections*float64(t.Election)) + m.Plain
}

func sessions(low, high float64) Span { return Span{Multiple{Sessions: low}, Multiple{Sessions: high}} }
func lags(low, high float64) Span     { return Span{Multiple{Lags: low}, Multiple{Lags: high}} }
func fetches(low, high float64) Span  { return Span{Multiple{Fetches: low}, Multiple{Fetches: high}} }
func elections(low, high float64) Span {
	return Span{Multiple{Elections: low}, Multiple{Elections: high}}
}
func plain(low, high time.Duration) Span {
	return Span{Multiple{Plain: low}, Multiple{Plain: high}}
}

// The core: what every run holds, because each of its sequences is the one that shows some known kind of bug. A slot with three presets gives
// one to each of three seeds in a row. DeafFollower comes twice, because its window is one round of replication.
var core = [][]Preset{
	{LostAckFailover},
	{LagThenKill},
	{OneWayOutLeader, OneWayInLeader, OneWayOutFollower},
	{DeafFollower},
	{ShrinkThenKill},
	{UncleanElectorate},
	{KillAll},
	{DeafFollower},
}

// The deck beyond the core, in hands; a seed begins with its own, so that as many seeds in a row as there are hands see the whole catalogue.
var hands = [][]Preset{
	{MajorityRing, PauseLeader},
	{Halves, IsolateLeader},
	{FollowerBounce},
	{KillLeader},
	{ControllerKill},
	{OneWayInFollower},
	{SplitFollowers},
	{Minority},
}

// Catalogue is every preset.
func Catalogue() []Preset {
	var all []Preset
	for _, slot := range core {
		all = append(all, slot...)
	}
	for _, hand := range hands {
		all = append(all, hand...)
	}
	return all
}

// LostAckFailover loses acknowledgements, and then the leader.
var LostAckFailover = Preset{
	Name: "lost-ack-failover", Nodes: 2,
	Why: "Acknowledgements are lost on the way to half of the clients, then the leader dies: their retries meet a leader that must know the producers' sequence numbers from replication alone.",
	Steps: []PresetStep{
		{Kind: Partition, Role: RoleLeader, Shape: ClientLink, For: sessions(0.5, 0.8)},
		{Kind: Kill, Role: RoleSame, After: sessions(0.15, 0.35), For: sessions(0.7, 1.1)},
	},
}

// LagThenKill kills a leader that has run ahead of its followers.
var LagThenKill = Preset{
	Name: "lag-then-kill", Nodes: 3,
	Why: "The followers stand still, not long enough to leave the in-sync set; the leader goes on alone, is read from, and dies. Nothing that only it had may have been acknowledged or shown.",
	Steps: []PresetStep{
		{Kind: Pause, Role: RoleFollowers, For: sessions(0.7, 0.8), Until: 1},
		{Kind: Kill, Role: RoleLeader, After: sessions(0.25, 0.5), For: sessions(0.9, 1.2)},
	},
}

// OneWayOutLeader makes the leader mute.
var OneWayOutLeader = Preset{
	Name: "one-way-out-leader", Nodes: 2,
	Why:   "The leader hears everybody and nobody hears it: it must be replaced, and must not go on as if its words arrived.",
	Steps: []PresetStep{{Kind: Partition, Role: RoleLeader, Shape: OneWayOut, For: sessions(1.1, 1.4)}},
}

// OneWayInLeader makes the leader deaf.
var OneWayInLeader = Preset{
	Name: "one-way-in-leader", Nodes: 2,
	Why:   "The leader is heard and hears nothing: it misses fetches, its replacement and its fencing.",
	Steps: []PresetStep{{Kind: Partition, Role: RoleLeader, Shape: OneWayIn, HalfClients: true, For: sessions(1.1, 1.4)}},
}

// OneWayOutFollower makes a follower mute.
var OneWayOutFollower = Preset{
	Name: "one-way-out-follower", Nodes: 2,
	Why:   "A follower's fetches never arrive: it must leave the in-sync set before anything is acknowledged without it.",
	Steps: []PresetStep{{Kind: Partition, Role: RoleFollower, Shape: OneWayOut, For: sessions(1.1, 1.5)}},
}

// OneWayInFollower makes a follower deaf.
var OneWayInFollower = Preset{
	Name: "one-way-in-follower", Nodes: 2,
	Why:   "A follower asks and is never answered: being asked must not be taken for being in step.",
	Steps: []PresetStep{{Kind: Partition, Role: RoleFollower, Shape: OneWayIn, For: sessions(1.1, 1.4)}},
}

// DeafFollower lets a follower become one of a leader that it can never ask.
var DeafFollower = Preset{
	Name: "deaf-follower", Nodes: 3,
	Why: "One follower sleeps through the end of its leader and wakes when the next one, too, is gone before it could be fetched from: a follower that cuts its log by anything but its leader's history loses acknowledged records.",
	Steps: []PresetStep{
		{Kind: Pause, Role: RoleSpare, Aside: true, Expect: sessions(0.4, 0.4), For: sessions(1.2, 1.4), Until: 2},
		{Kind: Kill, Role: RoleLeader, After: fetches(0.3, 2), For: fetches(0, 0)},
		{Kind: Kill, Role: RoleLeader, Follows: 1, LeaderMoved: true, Expect: sessions(0.4, 0.4), For: sessions(0.4, 0.6)},
	},
}

// UncleanElectorate leaves nobody to elect but a laggard.
var UncleanElectorate = Preset{
	Name: "unclean-electorate", Nodes: 3,
	Why: "A follower sleeps until it has left the in-sync set; then the whole set dies and the laggard is back first, with a quorum but without the records: nobody may lead until a member of the set is back.",
	Steps: []PresetStep{
		{Kind: Pause, Role: RoleFollower, For: sessions(3, 3), Until: 1},
		{Kind: Kill, Role: RoleInSync, ISRAtMost: 2, AckedMore: 50, Expect: lags(1.1, 1.1), For: fetches(0.5, 2), Stagger: sessions(2.3, 2.5), Staggered: 1},
	},
}

// PauseLeader stops the leader past its session.
var PauseLeader = Preset{
	Name: "pause-leader", Nodes: 2,
	Why:   "The leader stands still past its session and wakes as a leader of yesterday, with requests in its buffers.",
	Steps: []PresetStep{{Kind: Pause, Role: RoleLeader, For: sessions(1.1, 1.5)}},
}

// FollowerBounce kills the leader soon after a follower is back.
var FollowerBounce = Preset{
	Name: "follower-bounce", Nodes: 3,
	Why: "A follower restarts, and soon after it is back in the in-sync set its leader dies: whoever was let in last must have everything.",
	Steps: []PresetStep{
		{Kind: Kill, Role: RoleFollower, For: fetches(0.5, 3)},
		{Kind: Kill, Role: RoleLeader, Healed: true, After: fetches(0.5, 5), For: sessions(0.3, 1.1)},
	},
}

// ShrinkThenKill kills a leader that has lost its in-sync set.
var ShrinkThenKill = Preset{
	Name: "shrink-then-kill", Nodes: 3,
	Why: "Fetches do not reach the leader although it reaches the controller, until it is alone in the in-sync set; then it dies. What was appended while the set was large enough and shrank afterwards was never safe to acknowledge.",
	Steps: []PresetStep{
		{Kind: Partition, Role: RoleLeader, Aside: true, Expect: sessions(0.4, 0.4), Shape: DialIn, For: lags(2.5, 2.5), Until: 1},
		{Kind: Kill, Role: RoleSame, ISRAtMost: 1, Expect: lags(1.4, 1.4), After: fetches(1, 4), For: sessions(0.8, 1.2)},
	},
}

// KillAll kills all nodes at once.
var KillAll = Preset{
	Name:  "kill-all",
	Why:   "Everything dies at once and comes back: what the disks hold must be enough, and the visible end must not go back.",
	Steps: []PresetStep{{Kind: Kill, Role: RoleAll, For: fetches(0, 3)}},
}

// ControllerKill kills the controller.
var ControllerKill = Preset{
	Name: "controller-kill", Nodes: 3,
	Why:   "The controller dies, with the partitions that it leads: nothing that it decided may come undone.",
	Steps: []PresetStep{{Kind: Kill, Role: RoleController, For: sessions(0.2, 1.2)}},
}

// IsolateLeader makes a zombie leader with clients of its own.
var IsolateLeader = Preset{
	Name: "isolate-leader", Nodes: 3,
	Why:   "The leader is cut off together with half of the clients: two leaders believe in themselves, and only one may acknowledge.",
	Steps: []PresetStep{{Kind: Partition, Role: RoleLeader, Shape: Isolate, HalfClients: true, For: sessions(1.2, 1.7)}},
}

// Minority isolates any minority, and ends with reset connections.
var Minority = Preset{
	Name: "minority", Nodes: 3,
	Why:   "A minority of the nodes, whatever they are, is cut off and comes back.",
	Steps: []PresetStep{{Kind: Partition, Role: RoleMinority, Shape: Isolate, Reset: true, For: sessions(0.8, 1.2)}},
}

// SplitFollowers cuts the followers off from each other.
var SplitFollowers = Preset{
	Name: "split-followers", Nodes: 3,
	Why:   "The followers lose each other and keep the leader: each of them sees a majority, and one may lose its controller.",
	Steps: []PresetStep{{Kind: Partition, Role: RoleFollowers, Shape: FollowerWeb, For: sessions(0.8, 1.2)}},
}

// Halves leaves one node as the bridge between two halves.
var Halves = Preset{
	Name: "bridge", Nodes: 4,
	Why:   "Two halves that only one node sees both: it serves two masters, or is one.",
	Steps: []PresetStep{{Kind: Partition, Role: RoleLeader, Shape: Bridge, For: sessions(0.8, 1.3)}},
}

// MajorityRing gives every node a majority of its own.
var MajorityRing = Preset{
	Name: "majority-ring", Nodes: 4,
	Why:   "Everybody sees a majority, and no two the same one.",
	Steps: []PresetStep{{Kind: Partition, Role: RoleLeader, Shape: Ring, For: sessions(1, 1.5)}},
}

// KillLeader kills the leader, and no more.
var KillLeader = Preset{
	Name: "kill-leader", Nodes: 2,
	Why:   "The leader dies under load.",
	Steps: []PresetStep{{Kind: Kill, Role: RoleLeader, For: sessions(0.2, 1.3)}},
}
