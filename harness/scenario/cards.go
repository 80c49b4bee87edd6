package scenario

import (
	"slices"
	"time"

	"ackproof/harness"
	"ackproof/model"
	"ackproof/nemesis"
	"ackproof/nemesis/lossy"
	"ackproof/systems"
)

// Names of systems.
const (
	reference = "reference"
	kafka     = "kafka"
)

// Cards are all scenarios.
func Cards() []Card {
	return []Card{
		acks1Isolation, acks1Kills, acks1Pause, acks1FollowersCut, acksAllIsolation, acksAllFollowersCut, acksAllControlCut, killOfAll, uncleanElection, cleanElection, emptiedLog, newDisk, powerLossOfAll, powerLossOfAllFlushed,
		kip966Off, kip966On, minISRElsewhere, lostAcksPlain, lostAcksIdempotent, clean,
	}
}

// Times in terms of a system's own.
func session(t systems.Timers, times float64) int64 {
	return int64(times * float64(t.Session.Milliseconds()))
}

// both are setups on both systems with three nodes.
func both(onReference, onKafka Answer, lengthReference, lengthKafka time.Duration) []Setup {
	return []Setup{
		{System: reference, Expect: onReference, Nodes: 3, Time: lengthReference},
		{System: kafka, Expect: onKafka, Nodes: 3, Time: lengthKafka},
	}
}

// apart are setups whose control plane outlives the loss of all copies but one: the reference broker on five nodes, Kafka with a controller of its own. Where every node is
// a controller too, the loss of two of three leaves no quorum, and no in-sync set changes any more.
func apart(onReference, onKafka Answer, lengthReference, lengthKafka time.Duration, settings ...string) []Setup {
	out := both(onReference, onKafka, lengthReference, lengthKafka)
	out[0].Nodes = 5
	out[1].Settings = map[string]string{"controllers": "1"}
	for i := 0; i+1 < len(settings); i += 2 {
		out[1].Settings[settings[i]] = settings[i+1]
	}
	return out
}

func only(system string, all []Setup) []Setup {
	return slices.DeleteFunc(all, func(s Setup) bool { return s.System != system })
}

func at(fault int) *int { return &fault }

const (
	begin     = 2000 // ms of load before the first fault
	patience  = 60_000
	enough    = 100 // acknowledged records that a step waits for
	shortDown = 500 // ms
)

// all are the numbers of all clients.
func all() []int {
	out := make([]int, clients)
	for i := range out {
		out[i] = i + 1
	}
	return out
}

// isolation cuts the leader off from all other nodes, together with half of the clients.
func isolation(t systems.Timers) []nemesis.Fault {
	cut := nemesis.Cut{Shape: nemesis.Isolate}
	for c := 2; c <= clients; c += 2 {
		cut.Clients = append(cut.Clients, c)
	}
	return []nemesis.Fault{{Kind: nemesis.Partition, Start: nemesis.Trigger{AfterMS: begin, AckedMore: enough, GiveUpMS: patience}, ForMS: session(t, 3.5),
		Target: nemesis.Target{Role: nemesis.RoleLeader}, Cut: cut}}
}

var acks1Isolation = Card{
	Name:     "acks-1-isolation",
	Question: "With acks=1, what becomes of what a leader acknowledges while it is cut off?",
	Claim:    model.NoLoss, Anomaly: model.LostAcked,
	Allows: "With acks=1 a record may be lost at any change of leader.",
	Story: []string{"The leader and half of the clients are cut off from the other nodes for 3.5 sessions.",
		"The others elect a leader; the old one goes on acknowledging to its side until the cut is healed, and then has to give up what it took."},
	On:        both(Permitted, Permitted, 12*time.Second, 30*time.Second),
	configure: func(o *harness.Options) { o.Acks, o.Idempotent = 1, false },
	faults:    isolation,
}

var acksAllIsolation = Card{
	Name:     "acks-all-isolation",
	Question: "And with acks=all?",
	Claim:    model.NoLoss, Anomaly: model.LostAcked,
	Allows:    "Nothing: with acks=all and two copies in sync, no crash, pause or cut loses what was acknowledged.",
	Story:     []string{"As acks-1-isolation."},
	On:        both(Held, Held, 12*time.Second, 30*time.Second),
	configure: func(*harness.Options) {},
	faults:    isolation,
}

var acks1Kills = Card{
	Name:     "acks-1-kills",
	Question: "With acks=1, what do crashes of the leader cost?",
	Claim:    model.NoLoss, Anomaly: model.LostAcked,
	Allows: "With acks=1 a record may be lost at any change of leader.",
	Story:  []string{"Three times: the followers stand still for a moment, and the leader is killed."},
	On:     both(Permitted, Permitted, 20*time.Second, 75*time.Second),
	configure: func(o *harness.Options) {
		o.Acks, o.Idempotent = 1, false
	},
	faults: func(t systems.Timers) []nemesis.Fault {
		var out []nemesis.Fault
		for i := range 3 {
			start := nemesis.Trigger{AfterMS: begin, AckedMore: enough, GiveUpMS: patience}
			if i > 0 {
				start = nemesis.Trigger{Fault: at(2*i - 1), Healed: true, AfterMS: session(t, 0.5), Recovered: true, GiveUpMS: patience}
			}
			out = append(out,
				nemesis.Fault{Kind: nemesis.Pause, Start: start, ForMS: session(t, 0.7), UntilFault: at(2*i + 1), Target: nemesis.Target{Role: nemesis.RoleFollowers}},
				nemesis.Fault{Kind: nemesis.Kill, Start: nemesis.Trigger{Fault: at(2 * i), AfterMS: session(t, 0.2)}, ForMS: session(t, 1.2), Target: nemesis.Target{Role: nemesis.RoleLeader}})
		}
		return out
	},
}

var acks1Pause = Card{
	Name:     "acks-1-pause",
	Question: "With acks=1, what does it cost when the leader stands still while a follower is behind?",
	Claim:    model.NoLoss, Anomaly: model.LostAcked,
	Allows: "With acks=1 a record may be lost at any change of leader; whoever is in the in-sync set may be the next one, however far behind it is.",
	Story: []string{"The leader is cut off from the follower that would lead next, and from nobody else. Before that one has left the in-sync set, the leader is paused for 3.5 sessions.",
		"The follower leads without what it has not seen. Then the old leader goes on, and has to give that up."},
	On: both(Permitted, Permitted, 14*time.Second, 45*time.Second),
	configure: func(o *harness.Options) {
		o.Acks, o.Idempotent = 1, false
	},
	faults: func(t systems.Timers) []nemesis.Fault {
		return []nemesis.Fault{
			{Kind: nemesis.Partition, Start: nemesis.Trigger{AfterMS: begin, AckedMore: enough, GiveUpMS: patience}, ForMS: session(t, 3),
				Target: nemesis.Target{Role: nemesis.RoleHeir}, Cut: nemesis.Cut{Shape: nemesis.Isolate, Against: nemesis.RoleLeader}},
			{Kind: nemesis.Pause, Start: nemesis.Trigger{Fault: at(0), AckedMore: enough, GiveUpMS: patience}, ForMS: session(t, 3.5), Target: nemesis.Target{Role: nemesis.RoleLeader}},
		}
	},
}

var acks1FollowersCut = Card{
	Name:     "acks-1-followers-cut",
	Question: "With acks=1, what becomes of what a leader acknowledges that has lost its followers and keeps its controller?",
	Claim:    model.NoLoss, Anomaly: model.LostAcked, Spared: true,
	Allows: "With acks=1 a record may be lost at any change of leader. Here there is none before the followers have everything.",
	Story: []string{"The leader is cut off from its followers, and from nobody else, until long after they have left the in-sync set; it goes on leading and acknowledging.",
		"When the set is full again, all clients are cut off from the leader; a session later, whatever it acknowledged being with its followers, it is killed, and another one leads."},
	On: apart(Held, Held, 16*time.Second, 60*time.Second),
	configure: func(o *harness.Options) {
		o.Acks, o.Idempotent = 1, false
	},
	faults: func(t systems.Timers) []nemesis.Fault {
		end := turnover(0, t)
		quiet := nemesis.Fault{Kind: nemesis.Partition, Start: end.Start, ForMS: session(t, 3), UntilFault: at(2), Target: nemesis.Target{Role: nemesis.RoleLeader}, Cut: nemesis.Cut{Shape: nemesis.ClientLink, Clients: all()}}
		end.Start, end.Target = nemesis.Trigger{Fault: at(1), AfterMS: session(t, 1)}, nemesis.Target{Role: nemesis.RoleSame}
		return []nemesis.Fault{alone(nemesis.Cut{Shape: nemesis.Isolate, Against: nemesis.RoleFollowers})(t)[0], quiet, end}
	},
}

// alone cuts the leader off from its followers and from nobody else.
func alone(cut nemesis.Cut) func(systems.Timers) []nemesis.Fault {
	return func(t systems.Timers) []nemesis.Fault {
		return []nemesis.Fault{{Kind: nemesis.Partition, Start: nemesis.Trigger{AfterMS: begin, AckedMore: enough, GiveUpMS: patience}, ForMS: session(t, 2) + 2*t.Lag.Milliseconds(),
			Target: nemesis.Target{Role: nemesis.RoleLeader}, Cut: cut}, turnover(0, t)}
	}
}

var acksAllFollowersCut = Card{
	Name:     "acks-all-followers-cut",
	Question: "What if the leader loses its followers and keeps its controller?",
	Claim:    model.NoLoss, Anomaly: model.LostAcked,
	Allows:    "Nothing: the in-sync set shrinks to the leader, and then min.insync.replicas refuses all writes.",
	Story:     []string{"The leader is cut off from its followers, and from nobody else, until long after the set has shrunk.", "When all is well again, whoever leads is killed."},
	On:        apart(Held, Held, 16*time.Second, 50*time.Second),
	configure: func(*harness.Options) {},
	faults:    alone(nemesis.Cut{Shape: nemesis.Isolate, Against: nemesis.RoleFollowers}),
}

var acksAllControlCut = Card{
	Name:     "acks-all-control-cut",
	Question: "What if the leader loses the control plane, and its followers keep fetching from it?",
	Claim:    model.NoLoss, Anomaly: model.LostAcked,
	Allows:    "Nothing: it is replaced behind its back, and may acknowledge no more.",
	Story:     []string{"The connections of the leader to the listeners of the controllers are cut, those for data are not.", "When all is well again, whoever leads is killed."},
	On:        only(kafka, both(Held, Held, 0, 50*time.Second)),
	configure: func(*harness.Options) {},
	faults:    alone(nemesis.Cut{Shape: nemesis.Isolate, Plane: nemesis.PlaneControl}),
}

var killOfAll = Card{
	Name:     "kill-of-all",
	Question: "What does it cost when all brokers crash at once, with the power on?",
	Claim:    model.NoLoss, Anomaly: model.LostAcked,
	Allows:    "Nothing: what was written is with the kernel, flushed or not.",
	Story:     []string{"All nodes are killed at the same moment, and return after half a second.", "When all is well again, whoever leads is killed."},
	On:        both(Held, Held, 14*time.Second, 50*time.Second),
	configure: func(*harness.Options) {},
	faults: func(t systems.Timers) []nemesis.Fault {
		return []nemesis.Fault{{Kind: nemesis.Kill, Start: nemesis.Trigger{AfterMS: begin, AckedMore: 2 * enough, GiveUpMS: patience}, ForMS: shortDown,
			Target: nemesis.Target{Role: nemesis.RoleAll}}, turnover(0, t)}
	},
}

// turnover kills the leader when all is well again after the fault, so that what it has is put to the test by its successor.
func turnover(after int, t systems.Timers) nemesis.Fault {
	return nemesis.Fault{Kind: nemesis.Kill, Start: nemesis.Trigger{Fault: at(after), Healed: true, AfterMS: session(t, 0.5), Recovered: true, GiveUpMS: patience}, ForMS: session(t, 1.5),
		Target: nemesis.Target{Role: nemesis.RoleLeader}}
}

// lastReplica leaves the leader alone in the in-sync set, lets it acknowledge, kills it, and lets the others return first.
func lastReplica(t systems.Timers) []nemesis.Fault {
	return []nemesis.Fault{
		{Kind: nemesis.Kill, Start: nemesis.Trigger{AfterMS: begin, AckedMore: enough, GiveUpMS: patience}, ForMS: patience, UntilFault: at(1), Target: nemesis.Target{Role: nemesis.RoleFollowers}},
		{Kind: nemesis.Kill, Start: nemesis.Trigger{Fault: at(0), ISRAtMost: 1, AckedMore: enough, GiveUpMS: patience}, ForMS: session(t, 6), Target: nemesis.Target{Role: nemesis.RoleLeader}},
		turnover(1, t),
	}
}

var uncleanElection = Card{
	Name:     "unclean-election",
	Question: "With unclean.leader.election.enable=true, what does an election cost?",
	Claim:    model.NoLoss, Anomaly: model.LostAcked,
	Allows: "A copy that is not in sync may lead, and what it lacks is gone.",
	Story: []string{"Both followers are killed; the leader is left alone in the in-sync set and goes on acknowledging (min.insync.replicas=1).",
		"The leader is killed, the followers return first, and one of them leads. Six sessions later the old leader returns.",
		"When all is well again, whoever leads is killed."},
	On:        apart(Permitted, Permitted, 28*time.Second, 80*time.Second),
	configure: func(o *harness.Options) { o.Unclean, o.MinISR = true, 1 },
	faults:    lastReplica,
}

var cleanElection = Card{
	Name:     "clean-election",
	Question: "And with unclean elections off?",
	Claim:    model.NoLoss, Anomaly: model.LostAcked,
	Allows:    "No loss: nobody leads until the last member of the in-sync set is back.",
	Story:     []string{"As unclean-election."},
	On:        apart(Held, Held, 28*time.Second, 80*time.Second),
	configure: func(o *harness.Options) { o.MinISR = 1 },
	faults:    lastReplica,
}

// lastDisk is lastReplica, and the leader loses its logs with its life, or the whole disk.
func lastDisk(whole bool) func(systems.Timers) []nemesis.Fault {
	return func(t systems.Timers) []nemesis.Fault {
		out := lastReplica(t)
		out[1].Kind, out[1].Whole = nemesis.DiskWipe, whole
		return out
	}
}

var lastDiskStory = []string{"Both followers are killed; the leader is left alone in the in-sync set and goes on acknowledging (min.insync.replicas=1).",
	"The leader is killed, and the followers return, with all that was acknowledged while they were there. Six sessions later the old leader returns."}

var emptiedLog = Card{
	Name:     "last-replica-emptied",
	Question: "And if the last member of the in-sync set comes back with an empty log?",
	Claim:    model.NoLoss, Anomaly: model.LostAcked,
	Allows:    "What was acknowledged is kept as long as the disk of the last member of the in-sync set is. Without eligible leader replicas (KIP-966) it leads again, empty, and the others throw away what they have; who notices leads no more, and loses what it alone had.",
	Story:     append(slices.Clone(lastDiskStory), "The folder of its partition is gone then; the rest of its disk is as it was.", "When all is well again, whoever leads is killed."),
	On:        apart(Permitted, Permitted, 28*time.Second, 80*time.Second, "elr", "off"),
	configure: func(o *harness.Options) { o.MinISR = 1 },
	faults:    lastDisk(false),
}

var newDisk = Card{
	Name:     "last-replica-new-disk",
	Question: "And if it comes back with a new disk?",
	Claim:    model.Liveness, Anomaly: model.UnavailableAfterHeal, Or: &Alternative{Claim: model.NoLoss, Anomaly: model.LostAcked},
	Allows:    "A partition that nobody leads until somebody orders an unclean election: nobody there has everything that was acknowledged. Or that the last known leader leads again, with nothing, and the others throw away what they have.",
	Story:     append(slices.Clone(lastDiskStory), "Its whole disk is gone then; in the place of it is a new one, formatted, with another directory.id.", "When all is well again, whoever leads is killed."),
	On:        only(kafka, apart(Permitted, Permitted, 0, 80*time.Second)),
	configure: func(o *harness.Options) { o.MinISR = 1 },
	faults:    lastDisk(true),
}

// blackout takes the power of all nodes at once, and everything that was not flushed.
func blackout(t systems.Timers) []nemesis.Fault {
	return []nemesis.Fault{{Kind: nemesis.PowerLoss, Start: nemesis.Trigger{AfterMS: 2 * begin, AckedMore: 2 * enough, GiveUpMS: patience}, ForMS: shortDown, Loss: lossy.LoseAll,
		Target: nemesis.Target{Role: nemesis.RoleAll}}, turnover(0, t)}
}

var powerLossOfAll = Card{
	Name:     "power-loss-of-all",
	Question: "With acks=all and the default flush, what does a power cut of the whole site cost?",
	Claim:    model.NoLoss, Anomaly: model.LostAcked,
	Allows: "Everything that was not flushed, which by default is everything since the segment began; a real kernel writes back after about 30 s, this one never does.",
	Story: []string{"All nodes lose power at the same moment, and with it all that was not flushed; they return after half a second.",
		"When all is well again, whoever leads is killed."},
	On:        both(Permitted, Permitted, 16*time.Second, 50*time.Second),
	configure: func(*harness.Options) {},
	faults:    blackout,
}

var powerLossOfAllFlushed = Card{
	Name:     "power-loss-of-all-flushed",
	Question: "And with a flush before each acknowledgement (flush.messages=1)?",
	Claim:    model.NoLoss, Anomaly: model.LostAcked,
	Allows:    "Nothing.",
	Story:     []string{"As power-loss-of-all."},
	On:        both(Held, Held, 16*time.Second, 50*time.Second),
	configure: func(o *harness.Options) { o.FlushEach = true },
	faults:    blackout,
}

// lastStanding pauses the followers until they are out of the in-sync set, takes the power of the leader alone, and lets it return first. more is how many records
// must have been acknowledged meanwhile.
func lastStanding(more int64) func(systems.Timers) []nemesis.Fault {
	return func(t systems.Timers) []nemesis.Fault {
		return []nemesis.Fault{
			{Kind: nemesis.Pause, Start: nemesis.Trigger{AfterMS: 2 * begin, AckedMore: 2 * enough, GiveUpMS: patience}, ForMS: session(t, 12), Target: nemesis.Target{Role: nemesis.RoleFollowers}},
			{Kind: nemesis.PowerLoss, Start: nemesis.Trigger{Fault: at(0), AfterMS: session(t, 2.5), ISRAtMost: 1, AckedMore: more, GiveUpMS: patience}, ForMS: shortDown, Loss: lossy.LoseAll,
				Target: nemesis.Target{Role: nemesis.RoleLeader}},
			turnover(0, t),
		}
	}
}

var lastStandingStory = []string{"Both followers are paused until they are out of the in-sync set, with everything that was acknowledged on their disks.",
	"The leader alone loses its power and what it had not flushed, and returns first; the followers go on long after.",
	"When all is well again, whoever leads is killed."}

var kip966Off = Card{
	Name:     "last-replica-power-loss",
	Question: "Without eligible leader replicas (KIP-966), what can the power loss of one node cost?",
	Claim:    model.NoLoss, Anomaly: model.LostAcked,
	Allows:    "The last member of the in-sync set lost its log and may lead again: what it forgot is gone, on the copies that had it too.",
	Story:     lastStandingStory,
	On:        only(kafka, apart(Permitted, Permitted, 0, 75*time.Second, "elr", "off")),
	configure: func(*harness.Options) {},
	faults:    lastStanding(0),
}

var kip966On = Card{
	Name:     "last-replica-power-loss-elr",
	Question: "And with them?",
	Claim:    model.NoLoss, Anomaly: model.LostAcked,
	Allows:    "No loss by the unclean restart of fewer nodes than min.insync.replicas: the one that forgot does not lead before an eligible one is back.",
	Story:     lastStandingStory,
	On:        apart(Held, Held, 30*time.Second, 75*time.Second),
	configure: func(*harness.Options) {},
	faults:    lastStanding(0),
}

var minISRElsewhere = Card{
	Name:     "min-insync-from-controller",
	Question: "min.insync.replicas=2 is in the files of the brokers. Does it hold?",
	Claim:    model.NoLoss, Anomaly: model.LostAcked,
	Allows: "With eligible leader replicas the file of the controller decides: without the line there, one copy in sync is enough, and what it alone had goes with it.",
	Story: append([]string{"The topic has no setting of its own, the files of the brokers say 2, the file of the controller says nothing. The leader goes on acknowledging alone."},
		lastStandingStory...),
	On:        only(kafka, apart(Permitted, Permitted, 0, 75*time.Second, "min-insync-in", "brokers")),
	configure: func(*harness.Options) {},
	faults:    lastStanding(enough),
}

// lostAcks loses acknowledgements on their way to all clients and then kills the leader, so that clients try again elsewhere; three times. The connections are reset at the heal: else an
// answer that a proxy has held would come through after all.
func lostAcks(t systems.Timers) []nemesis.Fault {
	cut := nemesis.Cut{Shape: nemesis.ClientLink, Clients: all(), Answers: true, Reset: true}
	var out []nemesis.Fault
	for i := range 3 {
		start := nemesis.Trigger{AfterMS: begin, AckedMore: enough, GiveUpMS: patience}
		if i > 0 {
			start = nemesis.Trigger{Fault: at(2*i - 1), Healed: true, AfterMS: session(t, 0.5), Recovered: true, GiveUpMS: patience}
		}
		out = append(out,
			nemesis.Fault{Kind: nemesis.Partition, Start: start, ForMS: session(t, 0.8), Target: nemesis.Target{Role: nemesis.RoleLeader}, Cut: cut},
			nemesis.Fault{Kind: nemesis.Kill, Start: nemesis.Trigger{Fault: at(2 * i), AfterMS: session(t, 0.2)}, ForMS: session(t, 1), Target: nemesis.Target{Role: nemesis.RoleSame}})
	}
	return out
}

var lostAcksStory = []string{"Three times: the answers of the leader are lost on their way to all clients, then it is killed, and the connections break. The clients send again, to its successor."}

var lostAcksPlain = Card{
	Name:     "lost-acks",
	Question: "Without idempotence, what becomes of records whose acknowledgement was lost?",
	Claim:    model.NoDuplicate, Anomaly: model.Duplicate,
	Allows:    "Producers that try again write twice what was written already.",
	Story:     lostAcksStory,
	On:        both(Permitted, Permitted, 30*time.Second, 75*time.Second),
	configure: func(o *harness.Options) { o.Idempotent = false },
	faults:    lostAcks,
}

var lostAcksIdempotent = Card{
	Name:     "lost-acks-idempotent",
	Question: "And with it?",
	Claim:    model.NoDuplicate, Anomaly: model.Duplicate,
	Allows:    "Nothing: the broker knows what it has, and so does its successor.",
	Story:     lostAcksStory,
	On:        both(Held, Held, 30*time.Second, 75*time.Second),
	configure: func(*harness.Options) {},
	faults:    lostAcks,
}

var clean = Card{
	Name:     "clean",
	Question: "Does a careful configuration hold whatever happens to the nodes and the network?",
	Claim:    model.NoLoss, Anomaly: model.LostAcked,
	Allows:    "Nothing.",
	Story:     []string{"Kills, pauses and partitions of all shapes, drawn from the seed, for minutes."},
	On:        both(Held, Held, 2*time.Minute, 3*time.Minute),
	configure: func(o *harness.Options) { o.Partitions = 6 },
	kinds:     nemesis.ProcessKinds(),
}
