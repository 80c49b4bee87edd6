package sim

import (
	"fmt"
	"slices"

	"ackproof/broker/core/partition"
	"ackproof/sim/cluster"
	"ackproof/sim/world"
)

// invariants are looked at after every step of every replica: what must be true inside, whatever clients see.
type invariants struct {
	w       *world.World
	tell    func(partition int32, format string, args ...any) // of what is worth telling
	clean   func() bool                                       // nothing committed may be lost, so far
	leaders []map[int32]int32
	terms   map[uint64]int32 // whom raft elected to lead the control plane
	// committed is the largest high watermark that the leader of each epoch had, per partition, by rising epoch.
	committed [][]epochHW
	broken    []string
}

const brokenAtMost = 5

// forget begins anew, for another topic.
func (v *invariants) forget() {
	for p := range v.committed {
		v.committed[p], v.leaders[p] = nil, map[int32]int32{}
	}
}

func newInvariants(c Case, w *world.World, exposed func() bool, tell func(int32, string, ...any)) *invariants {
	v := &invariants{w: w, tell: tell, clean: func() bool { return !c.Unclean && !exposed() }, committed: make([][]epochHW, c.Partitions), terms: map[uint64]int32{}}
	for range c.Partitions {
		v.leaders = append(v.leaders, map[int32]int32{})
	}
	return v
}

func (v *invariants) complain(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	v.w.Note("broken")
	v.w.Say("invariant: %s", text)
	if len(v.broken) < brokenAtMost {
		v.broken = append(v.broken, fmt.Sprintf("%.3f s: %s", v.w.Now().Seconds(), text))
	}
}

func (v *invariants) stepped(node, p int32, before, after partition.Status) {
	if after.Role == partition.Failed || int(p) >= len(v.committed) {
		return
	}
	// R22
	if after.LogStart > after.HighWatermark || after.HighWatermark > after.LogEnd {
		v.complain("n%d p%d: log start %d, high watermark %d, log end %d are not in this order", node, p, after.LogStart, after.HighWatermark, after.LogEnd)
	}
	// R1: it never falls within an epoch, unless a follower begins its log anew within a batch (R25).
	if before.LeaderEpoch == after.LeaderEpoch && before.Role == after.Role && after.Role != partition.Idle && after.HighWatermark < before.HighWatermark &&
		after.LogStart < after.LogEnd && v.clean() {
		v.complain("n%d p%d: the high watermark fell from %d to %d in epoch %d", node, p, before.HighWatermark, after.HighWatermark, after.LeaderEpoch)
	}
	v.story(node, p, before, after)
	if after.Role != partition.Leader {
		return
	}
	if other, led := v.leaders[p][after.LeaderEpoch]; !led {
		v.leaders[p][after.LeaderEpoch] = node
		if hw := v.before(p, after.LeaderEpoch); after.LogEnd < hw && v.clean() {
			v.complain("n%d leads p%d in epoch %d with a log that ends at %d, committed was everything below %d", node, p, after.LeaderEpoch, after.LogEnd, hw)
		}
	} else if other != node {
		v.complain("n%d and n%d both lead p%d in epoch %d", other, node, p, after.LeaderEpoch)
	}
	v.commit(p, after.LeaderEpoch, after.HighWatermark)
}

// elected is told who leads the control plane in a term: never two (Ongaro and Ousterhout, "In Search of an Understandable Consensus Algorithm", USENIX ATC 2014, election safety).
func (v *invariants) elected(node int32, term uint64) {
	if other, led := v.terms[term]; led && other != node {
		v.complain("n%d and n%d were both elected to lead the control plane in term %d", other, node, term)
	}
	v.terms[term] = node
}

// proposed looks at whom a leader lets into its in-sync set: R14, who comes in has all that was ever committed, and R10, R11, what it has is the leader's.
func (v *invariants) proposed(leader *cluster.Copy, members []int32) {
	own, p := leader.Status(), leader.Index()
	if !v.clean() || int(p) >= len(v.committed) || own.LeaderEpoch < v.latest(p) {
		return
	}
	for _, id := range members {
		member := leader.Peer(id)
		if slices.Contains(own.ISR, id) || member == nil {
			continue
		}
		s := member.Status()
		if hw := v.before(p, own.LeaderEpoch+1); s.LogEnd < hw {
			v.complain("n%d, which leads p%d in epoch %d, lets n%d into the in-sync set with a log that ends at %d, committed is everything below %d", leader.Node(), p, own.LeaderEpoch, id, s.LogEnd, hw)
		}
		last := s.LogEnd - 1
		theirs, ok := member.Batch(last)
		mine, led := leader.Batch(last)
		if ok && led && (theirs.BaseOffset != mine.BaseOffset || theirs.LeaderEpoch != mine.LeaderEpoch || theirs.CRC != mine.CRC) {
			v.complain("n%d, which leads p%d in epoch %d, lets n%d into the in-sync set, whose record at offset %d is of epoch %d and another than its own, of epoch %d", leader.Node(), p, own.LeaderEpoch, id, last, theirs.LeaderEpoch, mine.LeaderEpoch)
		}
	}
}

// latest is the newest epoch in which anybody led.
func (v *invariants) latest(p int32) int32 {
	c := v.committed[p]
	if len(c) == 0 {
		return 0
	}
	return c[len(c)-1].epoch
}

// epochHW is how far the leader of an epoch committed.
type epochHW struct {
	epoch int32
	hw    int64
}

// before is how far the leaders of earlier epochs committed. A leader may hear of its epoch when others have long gone on in later ones: what those
// committed it need not have.
func (v *invariants) before(p, epoch int32) (hw int64) {
	for _, c := range v.committed[p] {
		if c.epoch < epoch {
			hw = max(hw, c.hw)
		}
	}
	return hw
}

func (v *invariants) commit(p, epoch int32, hw int64) {
	i, found := slices.BinarySearchFunc(v.committed[p], epoch, func(c epochHW, e int32) int { return int(c.epoch) - int(e) })
	if !found {
		v.committed[p] = slices.Insert(v.committed[p], i, epochHW{epoch, hw})
	}
	c := &v.committed[p][i]
	c.hw = max(c.hw, hw)
}

// story tells the turns of a partition.
func (v *invariants) story(node, p int32, before, after partition.Status) {
	leads := after.Role == partition.Leader
	switch {
	case leads && (before.Role != partition.Leader || before.LeaderEpoch != after.LeaderEpoch):
		v.tell(p, "n%d leads p%d in epoch %d; its log ends at %d, its high watermark is %d", node, p, after.LeaderEpoch, after.LogEnd, after.HighWatermark)
	case leads && !slices.Equal(before.ISR, after.ISR):
		v.tell(p, "n%d has the in-sync set %v of p%d", node, after.ISR, p)
	}
	if after.LogEnd < before.LogEnd {
		v.tell(p, "n%d cuts its log of p%d from %d to %d, in epoch %d", node, p, before.LogEnd, after.LogEnd, after.LeaderEpoch)
	}
}
