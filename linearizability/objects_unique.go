package linearizability

import (
	"cmp"
	"fmt"
	"slices"

	"ackproof/histories"
	"ackproof/model"
)

// unique decides a register to which every value is written once, exactly and in O(n log n) (Gibbons and Korach, Testing Shared Memories, 1997).
//
// All operations on one value, its write and its reads, are a zone. Let f be the earliest end of one of them and s the latest beginning. Between its write
// and its last read no other value can be in the register, so zones take effect one after the other, and i has to come before j if some operation
// of i ended before some of j began: f(i) < s(j). The initial value is a zone whose write took effect before everything.
//
// The register is linearizable iff no read ended before its write began, and no two zones have to come before each other: f(i) < s(j) and f(j) < s(i).
// Why pairs are enough: in a shortest cycle of three or more zones, i+1 does not come before i−1, which would be a chord or a pair. So f(i−1) ≥ s(i+1) > f(i):
// f falls all the way round, which no cycle can. Without cycles there is an order; within a zone the write goes first, and the reads follow in the order
// of their beginnings.
//
// A write of unknown outcome that nobody read is left out; one that was read ended never.
type unique struct {
	h     *objects
	c     *component
	zones []zone
	of    map[model.Value]int32
	found []*objectFinding
}

// zone is everything that was done with one value. The operations are numbers of objects.ops; none for the initial value.
type zone struct {
	value      model.Value
	write      int32
	writeInv   uint64
	f, s       uint64
	first, far int32 // the operations that set f and s
}

// newUnique is nil where the component is not a register with values that are written once.
func newUnique(h *objects, c *component) *unique {
	u := &unique{h: h, c: c, of: map[model.Value]int32{c.start: 0}}
	u.zones = append(u.zones, zone{value: c.start, write: none, first: none, far: none})
	for _, it := range c.items {
		call, ok := it.call.(model.Call)
		if !ok || len(call.Accesses) != 1 {
			return nil
		}
		switch a := call.Accesses[0]; a.Verb {
		case model.Get:
		case model.Put:
			if _, again := u.of[a.Value]; again {
				return nil
			}
			u.of[a.Value] = int32(len(u.zones))
			u.zones = append(u.zones, zone{value: a.Value, write: it.op, writeInv: it.inv, f: it.ret, s: it.inv, first: it.op, far: it.op})
		default:
			return nil
		}
	}
	return u
}

// check finds what is wrong: reads of what nobody wrote or had begun to write, and zones that have to come before each other. Each read, and
// each zone against the one that reaches furthest, counts once.
func (u *unique) check() []*objectFinding {
	for _, it := range u.c.items {
		a := it.call.(model.Call).Accesses[0]
		if a.Verb != model.Get {
			continue
		}
		i, known := u.of[a.Value]
		if !known {
			u.phantom(it, a)
			continue
		}
		c := &u.zones[i]
		if it.ret < c.writeInv {
			u.future(it, a, c)
			continue
		}
		if it.ret < c.f {
			c.f, c.first = it.ret, it.op
		}
		if it.inv > c.s {
			c.s, c.far = it.inv, it.op
		}
	}
	// Forward zones have f < s: their value was in the register all that time. Two of them must not overlap, and none may hold a whole backward one.
	// i comes before j in by; furthest[i] is the one of by[…i] with the greatest s.
	var by, backward []int32
	for i := range u.zones {
		if c := &u.zones[i]; c.f < c.s {
			by = append(by, int32(i))
		} else {
			backward = append(backward, int32(i))
		}
	}
	slices.SortFunc(by, func(a, b int32) int { return cmp.Or(cmp.Compare(u.zones[a].f, u.zones[b].f), cmp.Compare(a, b)) })
	furthest := make([]int32, len(by))
	for n, i := range by {
		furthest[n] = i
		if n > 0 {
			before := furthest[n-1]
			u.compare(before, i)
			if u.zones[before].s > u.zones[i].s {
				furthest[n] = before
			}
		}
	}
	for _, k := range backward {
		n, _ := slices.BinarySearchFunc(by, u.zones[k].s, func(i int32, s uint64) int { return cmp.Compare(u.zones[i].f, s) })
		if n > 0 { // by[…n−1] have f < s(k)
			u.compare(furthest[n-1], k)
		}
	}
	return u.found
}

// compare notes a finding if two clusters have to come before each other.
func (u *unique) compare(i, j int32) {
	a, b := &u.zones[i], &u.zones[j]
	if a.f < b.s && b.f < a.s {
		u.conflict(a, b)
	}
}

// conflict proves that a has to come before b and b before a.
func (u *unique) conflict(a, b *zone) {
	again, by := &u.h.ops[a.far], &u.h.ops[b.first]
	f := u.h.finding(model.Linearizable, model.Nonlinearizable, u.c.keys[0], again)
	if a.write == none {
		f.proof.Sentence = fmt.Sprintf("Process %d began at %s to read %s and found %v, which it held only at first, though %v had been %s by process %d by %s.",
			again.process, stamp(again.invTime), u.c.name(), a.value, b.value, u.deed(by), by.process, stamp(by.endTime))
		f.op("by", by)
		f.op("again", again)
		u.found = append(u.found, f)
		return
	}
	first, second := &u.h.ops[a.first], &u.h.ops[b.far]
	f.proof.Sentence = fmt.Sprintf("In %s, %v was %s by process %d by %s, before process %d began to %s %v at %s; but %v was %s by process %d by %s, before process %d began to %s %v at %s; and each was written only once.",
		u.c.name(), a.value, u.deed(first), first.process, stamp(first.endTime), second.process, u.doing(second), b.value, stamp(second.invTime),
		b.value, u.deed(by), by.process, stamp(by.endTime), again.process, u.doing(again), a.value, stamp(again.invTime))
	f.op("first", first)
	f.op("second", second)
	f.op("by", by)
	f.op("again", again)
	u.found = append(u.found, f)
}

func (u *unique) deed(op *action) string {
	if u.h.seen(op)[0].Do == histories.Read {
		return "read"
	}
	return "written"
}

func (u *unique) doing(op *action) string { return u.h.seen(op)[0].Do.String() }

// phantom proves that a read found what nobody can have written.
func (u *unique) phantom(it item, a model.Access) {
	op := &u.h.ops[it.op]
	f := u.h.finding(model.Linearizable, model.Nonlinearizable, u.c.keys[0], op)
	f.proof.Sentence = fmt.Sprintf("Process %d found %v in %s at %s, but nobody ever wrote it", op.process, a.Value, u.c.name(), stamp(op.endTime))
	if w := u.refused(a); w != nil {
		f.proof.Sentence = fmt.Sprintf("Process %d found %v in %s at %s, but its only write, by process %d, had been refused at %s",
			op.process, a.Value, u.c.name(), stamp(op.endTime), w.process, stamp(w.endTime))
		f.op("write", w)
	}
	f.proof.Sentence += "."
	f.op("reader", op)
	u.found = append(u.found, f)
}

// refused finds the write of a value that certainly did not happen.
func (u *unique) refused(a model.Access) *action {
	for i := range u.h.ops {
		if op := &u.h.ops[i]; op.outcome == histories.Fail {
			if s := u.h.asked(op)[0]; s.Do == histories.Write && s.Key == a.Cell {
				if w, err := access(s, u.c.start.Form == model.TextValue); err == nil && w.Value == a.Value {
					return op
				}
			}
		}
	}
	return nil
}

// future proves that a read found what was only written later.
func (u *unique) future(it item, a model.Access, c *zone) {
	op, w := &u.h.ops[it.op], &u.h.ops[c.write]
	f := u.h.finding(model.Linearizable, model.Nonlinearizable, u.c.keys[0], op)
	f.proof.Sentence = fmt.Sprintf("Process %d found %v in %s at %s, but process %d only began to write it at %s.", op.process, a.Value, u.c.name(), stamp(op.endTime), w.process, stamp(w.invTime))
	f.op("reader", op)
	f.op("write", w)
	u.found = append(u.found, f)
}
