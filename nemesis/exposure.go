package nemesis

import (
	"slices"
	"sync"
	"time"

	"ackproof/systems"
)

// Exposure decides whether the faults took from a partition every copy that an acknowledgement may have rested on: some copy lost its power without a flush, or its
// disk, and before the cluster was whole again every other one was lost too, restarted or out of the in-sync set. Then the contract permits loss; see
// model.LogContract. A copy that is restarted counts, because a controller cannot know what a broker that died still has (KIP-966).
//
// It is told of every strike and every look at the roles, in order. It is not safe for concurrent use.
type Exposure struct {
	Flushed bool // before the ack: a loss of power loses nothing but what a disk has lied of
	One     bool // one copy is enough for an acknowledgement: its loss is enough

	// Moment is the number of the last event of the history; nil: there is none.
	Moment func() uint64

	partitions [][]int // replicas
	lied       []int   // nodes whose disk has ever said that something was flushed which was not: what it lied of may never be flushed again
	lost       []int   // nodes that lost power or disk since the cluster was whole
	weak       []int   // nodes that died since then
	out        [][]int // nodes that were out of the in-sync set since then, by partition
	exposed    bool
	open       bool   // and the cluster was not whole since
	latent     bool   // a disk may be damaged where nobody has looked yet
	until      uint64 // the Moment at which it was; 0: never
	// last, by partition, is who led it alone in the in-sync set when it was killed, after the last loss of anything; 0: nobody. It has everything, and as the last
	// known leader it, and nobody who lost anything, leads when it is back (KIP-966). That takes that whoever lost something has registered since: until then it
	// counts for what it was, and may be eligible.
	last  []int
	away  []int         // nodes that lost something and have not registered since
	roles systems.Roles // at the last look
}

// Exposed tells whether it has happened.
func (e *Exposure) Exposed() bool { return e.exposed }

// Until is the Moment at which the cluster was whole again after it has happened for the last time: what was sent later rests on copies that have nothing of that behind them, since whoever is
// in sync has followed the leader to its end in the leader's own epoch. 0: it was not, or damage to a disk may come to light at any time.
func (e *Exposure) Until() uint64 {
	if e.open || e.latent {
		return 0
	}
	return e.until
}

// Strike tells of a fault that takes effect on the nodes.
func (e *Exposure) Strike(k Kind, nodes []int) {
	lost := nodes
	e.latent = e.latent || k == BitFlip || k == Truncate
	switch {
	case k == FlushLie:
		e.lied = append(e.lied, nodes...)
		return
	case k == PowerLoss && e.Flushed:
		lost = slices.DeleteFunc(slices.Clone(nodes), func(n int) bool { return !slices.Contains(e.lied, n) })
	case !k.takesDisk() && k != PowerLoss:
		lost = nil
	}
	if len(lost) > 0 {
		e.lost, e.away = append(e.lost, lost...), append(e.away, lost...)
		clear(e.last)
	}
	if k.Down() || slices.Contains([]Kind{DiskError, DiskFull, CrashAtCall, ErrorAtCall, Memory}, k) {
		e.weak = append(e.weak, nodes...)
		for p, part := range e.roles.Partitions {
			if k == Kill && len(part.ISR) == 1 && part.ISR[0] == part.Leader && slices.Contains(nodes, part.Leader) && !slices.Contains(e.lost, part.Leader) &&
				!slices.ContainsFunc(part.Replicas, func(n int) bool { return slices.Contains(e.away, n) }) {
				e.last[p] = part.Leader
			}
		}
	}
	e.judge()
}

// Look tells of the roles as they are now. Nodes of which they do not tell the truth yet, because they were started anew and nobody but whoever did that knows, must be
// among the offline ones.
func (e *Exposure) Look(r systems.Roles) {
	e.roles = r
	for len(e.partitions) < len(r.Partitions) {
		e.partitions, e.out, e.last = append(e.partitions, nil), append(e.out, nil), append(e.last, 0)
	}
	e.away = slices.DeleteFunc(e.away, func(n int) bool {
		return !slices.ContainsFunc(r.Partitions, func(p systems.PartitionRoles) bool { return slices.Contains(p.Offline, n) })
	})
	whole := Recovered(r)
	for p, part := range r.Partitions {
		e.partitions[p] = part.Replicas
		if whole {
			e.out[p] = nil
		}
		if whole || part.Leader != 0 && part.Leader != e.last[p] && !slices.Contains(e.lost, part.Leader) {
			e.last[p] = 0
		}
		for _, n := range part.Replicas {
			if !slices.Contains(part.ISR, n) {
				e.out[p] = append(e.out[p], n)
			}
		}
	}
	if whole {
		e.lost, e.weak = nil, nil
		if e.open && e.Moment != nil {
			e.open, e.until = false, e.Moment()
		}
	}
	e.judge()
}

func (e *Exposure) judge() {
	for p, replicas := range e.partitions {
		lost, spared := false, false
		for _, n := range replicas {
			switch {
			case slices.Contains(e.lost, n):
				lost = true
			case n == e.last[p], !slices.Contains(e.weak, n) && !slices.Contains(e.out[p], n):
				spared = true
			}
		}
		if lost && (!spared || e.One) {
			e.exposed, e.open = true, true
		}
	}
}

// takesDisk tells kinds that take something off a disk whether it was flushed or not.
func (k Kind) takesDisk() bool { return k == DiskWipe || k == BitFlip || k == Truncate }

// MayExpose tells whether faults of the kinds can do what an Exposure decides at the end of the run.
func MayExpose(kinds []Kind, flushed bool) bool {
	return slices.ContainsFunc(kinds, func(k Kind) bool {
		return k.takesDisk() || k == PowerLoss && (!flushed || slices.Contains(kinds, FlushLie))
	})
}

// exposing keeps the exposure of a run: what the roles say is not believed of nodes that faults have just been at.
type exposing struct {
	mu       sync.Mutex
	harm     Exposure
	groups   Exposure          // of the log that keeps what groups commit, where there is one
	patience time.Duration     // for the roles to tell the truth of a node that was started again
	held     map[int]int       // by node: how many faults that may take it away are at it now
	freed    map[int]time.Time // when the last one let go
}

func (e *exposing) begin(harm Exposure, patience time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.harm, e.groups, e.patience, e.held, e.freed = harm, harm, patience, map[int]int{}, map[int]time.Time{}
}

// strike tells of a fault that is about to take effect.
func (e *exposing) strike(k Kind, nodes []int) {
	if !k.Down() && !k.ofDisk() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, n := range nodes {
		e.held[n]++
	}
	e.harm.Strike(k, nodes)
	e.groups.Strike(k, nodes)
}

// healed is the reverse.
func (e *exposing) healed(k Kind, nodes []int) {
	if !k.Down() && !k.ofDisk() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, n := range nodes {
		e.held[n]--
		e.freed[n] = time.Now()
	}
}

// look takes in what the roles were when they were asked for.
func (e *exposing) look(asked time.Time, r systems.Roles) {
	e.mu.Lock()
	defer e.mu.Unlock()
	doubtful := func(n int) bool { return e.held[n] > 0 || asked.Before(e.freed[n].Add(e.patience)) }
	doubted := func(all []systems.PartitionRoles) []systems.PartitionRoles {
		all = slices.Clone(all)
		for i := range all {
			p := &all[i]
			p.Offline = slices.Clone(p.Offline)
			for _, n := range p.Replicas {
				if doubtful(n) && !slices.Contains(p.Offline, n) {
					p.Offline = append(p.Offline, n)
				}
			}
		}
		return all
	}
	e.harm.Look(systems.Roles{Controller: r.Controller, Partitions: doubted(r.Partitions)})
	e.groups.Look(systems.Roles{Controller: r.Controller, Partitions: doubted(r.Coordinators)})
}

func (e *exposing) exposed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.harm.Exposed() || e.groups.Exposed()
}

func (e *exposing) until() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.harm.Until()
}

// disturbed tells whether a fault of its disk is at the node, or was just now: then its process may end of it.
func (e *exposing) disturbed(n int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.held[n] > 0 || time.Since(e.freed[n]) < afterwards
}

// afterwards is how long after a fault of its disk a process may still end of it.
const afterwards = 2 * time.Second
