// Package group is the workload of consumer groups: members that join, leave, crash, stall and rewind, and that commit what they have read, before or after they process it;
// others that read the committed offsets back; and the producers of package log, which write what is read. It records what every member was given, where it began, what it
// processed and what it committed. It knows no fault and no checker. Start reading at Workload, then member.go; classic.go and consumer.go are the two protocols.
//
// Several groups read the same topic, each by a protocol of its own. A commit carries metadata that no other commit has, so that whoever reads it back can tell which it was. A
// member that left a commit open retires: it drops its connections, tells nobody, and comes back as somebody else.
package group

import (
	"fmt"
	"time"

	"ackproof/histories"
	"ackproof/workloads"
	"ackproof/workloads/kafka"
	"ackproof/workloads/log"
)

// Protocol is how the members of a group share its partitions.
type Protocol string

// The protocols.
const (
	Eager       Protocol = "eager"       // classic: everybody gives everything back before each round; ranges
	Cooperative Protocol = "cooperative" // classic, incremental (KIP-429): only what moves is given back, in a round of its own
	Consumer    Protocol = "consumer"    // KIP-848: the coordinator assigns
)

// Protocols are all of them.
func Protocols() []Protocol { return []Protocol{Eager, Cooperative, Consumer} }

// Group is one consumer group.
type Group struct {
	Name     string // its id; unique over all runs
	Protocol Protocol
	Latest   bool // auto.offset.reset: where there is no committed offset, begin at the end and not at the start
}

// Key names the group's view of one partition in histories.
func (g Group) Key(partition int32) string { return fmt.Sprintf("%s/%d", g.Name, partition) }

// Groups are the groups of a run: one of each protocol. The cooperative one begins at the end of the log.
func Groups(run uint64) []Group {
	var out []Group
	for _, p := range Protocols() {
		out = append(out, Group{Name: fmt.Sprintf("%s-%016x", p, run), Protocol: p, Latest: p == Cooperative})
	}
	return out
}

// Config is one load.
type Config struct {
	Log     log.Config
	Groups  []Group
	Members int // of each group
	// Static so many of them are static members (KIP-345): now and then they go without a word and are back, within the session, under the same instance id.
	Static int
	// Storm: members live for moments only and are slow, so that every group is shared anew all the time.
	Storm bool
	// Before: members commit what they were given before they process it, which loses what a crash leaves unprocessed (at most once). Otherwise they commit what they have
	// processed, and a crash repeats what was not committed yet (at least once).
	Before    bool
	Session   time.Duration // of a classic member; that of the others is the coordinator's
	Rebalance time.Duration // how long a round waits for its members
	Heartbeat time.Duration
}

// Workload is one run's clients and what they share.
type Workload struct {
	cfg     Config
	log     *log.Workload
	journal log.Journal
	sink    *Sink

	progress progress
}

// StallBound is how long a group may process nothing, although there is something to process and nobody harms the system, however often it is shared anew: two rounds that wait for
// members which are gone, each after a session without a word, and some time to begin and to process.
func (c Config) StallBound() time.Duration { return 2*(c.Session+c.Rebalance) + 2*time.Second }

// New prepares a load. Processes and sessions are numbered together with those of the producers.
func New(cfg Config, producers *log.Workload, journal log.Journal) *Workload {
	return &Workload{cfg: cfg, log: producers, journal: journal, sink: newSink(), progress: progress{groups: map[string]*gap{}}}
}

// Sink is where the members' work takes effect.
func (w *Workload) Sink() *Sink { return w.sink }

// observersPerGroup read committed offsets back; several, so that one of them asks at the moment when a coordinator takes over.
const observersPerGroup = 2

// Workers lists the clients of the load: producers, members and observers.
func (w *Workload) Workers() []log.Worker {
	out := w.log.Writers()
	add := func(name string, run func(env workloads.Env, links map[int32]string)) {
		out = append(out, log.Worker{Name: name, Client: len(out)%w.cfg.Log.Clients + 1, Run: run})
	}
	for _, g := range w.cfg.Groups {
		for i := range w.cfg.Members {
			add(fmt.Sprintf("member %d of %s", i+1, g.Name), func(env workloads.Env, links map[int32]string) { w.lives(g, w.instance(g, i), env, links) })
		}
		for range observersPerGroup {
			add("observer of "+g.Name, func(env workloads.Env, links map[int32]string) { w.observe(g, env, links) })
		}
	}
	return out
}

// instance is the instance id of a group's member, "" if it is none that is static.
func (w *Workload) instance(g Group, member int) string {
	if member >= w.cfg.Static {
		return ""
	}
	return fmt.Sprintf("%s-i%d", g.Name, member+1)
}

func (w *Workload) client(env workloads.Env, links map[int32]string) *kafka.Client {
	return kafka.New(env, kafka.Config{
		Topic: w.cfg.Log.Topic, Links: links, Acks: w.cfg.Log.Acks, RequestTimeout: w.cfg.Log.RequestTimeout, DialTimeout: w.cfg.Log.DialTimeout, StartMS: w.cfg.Log.StartMS,
	})
}

// between draws a duration from [from, to).
func between(env workloads.Env, from, to time.Duration) time.Duration {
	return from + time.Duration(env.Rand().Int64N(int64(to-from)))
}

// object is the invocation or completion of an operation on groups.
func object(process int32, steps ...histories.Step) histories.Event {
	return histories.Event{Kind: histories.Object, Process: process, Steps: steps}
}
