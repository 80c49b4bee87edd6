package sim

import (
	"slices"

	"ackproof/nemesis"
	"ackproof/systems"
)

// exposure decides whether the faults took from a partition every copy that an acknowledgement may have rested on: some copy lost its power without a flush, or its
// disk, and before the cluster was whole again every other one was lost too, restarted or out of the in-sync set. Then the contract permits loss; see
// model.LogContract. A copy that is restarted counts, because a controller cannot know what a broker that died still has (KIP-966).
type exposure struct {
	flushed bool // before the ack: a loss of power loses nothing
	one     bool // one copy is enough for an acknowledgement: its loss is enough

	partitions [][]int // replicas
	lost       []int   // nodes that lost power or disk since the cluster was whole
	weak       []int   // nodes that died since then
	out        [][]int // nodes that were out of the in-sync set since then, by partition
	exposed    bool
	// last, by partition, is who led it alone in the in-sync set when it was killed, after the last loss of anything; 0: nobody. It has everything, and as the last
	// known leader it, and nobody who lost anything, leads when it is back (KIP-966). That takes that whoever lost something has registered since: until then it
	// counts for what it was, and may be eligible.
	last  []int
	away  []int         // nodes that lost something and have not registered since
	roles systems.Roles // at the last look
}

func (e *exposure) strike(k nemesis.Kind, nodes []int) {
	switch {
	case k == nemesis.DiskWipe, k == nemesis.PowerLoss && !e.flushed:
		e.lost, e.away = append(e.lost, nodes...), append(e.away, nodes...)
		clear(e.last)
	case k.Down(), k == nemesis.DiskError, k == nemesis.DiskFull:
		e.weak = append(e.weak, nodes...)
		for p, part := range e.roles.Partitions {
			if k == nemesis.Kill && len(part.ISR) == 1 && part.ISR[0] == part.Leader && slices.Contains(nodes, part.Leader) && !slices.Contains(e.lost, part.Leader) &&
				!slices.ContainsFunc(part.Replicas, func(n int) bool { return slices.Contains(e.away, n) }) {
				e.last[p] = part.Leader
			}
		}
	}
	e.judge()
}

func (e *exposure) look(r systems.Roles) {
	e.roles = r
	for len(e.partitions) < len(r.Partitions) {
		e.partitions, e.out, e.last = append(e.partitions, nil), append(e.out, nil), append(e.last, 0)
	}
	e.away = slices.DeleteFunc(e.away, func(n int) bool {
		return !slices.ContainsFunc(r.Partitions, func(p systems.PartitionRoles) bool { return slices.Contains(p.Offline, n) })
	})
	whole := nemesis.Recovered(r)
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
	}
	e.judge()
}

func (e *exposure) judge() {
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
		if lost && (!spared || e.one) {
			e.exposed = true
		}
	}
}
