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
// A write of unknown outcome ended never; if nobody read it, f is never either and it has to come before nothing.
type unique struct {
	h     *objects
	key   string
	like  *component // what the register would be in a search
	ops   []int32
	zones []zone
	ints  map[int64]int32 // value → zone
	texts map[string]int32
	null  bool // zone 0 is nothing's
	// refused are the values of writes that certainly did not happen; found when first asked for.
	refused map[atom]int32
	found   []*objectFinding
}

// zone is everything that was done with one value. Operations are numbers of objects.ops; none for the initial value.
type zone struct {
	f, s       uint64
	first, far int32 // the operations that set f and s
	write      int32
}

// newUnique is nil where the object is not a register with values that are written once.
func newUnique(h *objects, key string, ops []int32, like *component) *unique {
	u := &unique{h: h, key: key, like: like, ops: ops, ints: make(map[int64]int32), texts: make(map[string]int32), zones: []zone{{first: none, far: none, write: none}}}
	switch like.start.Form {
	case model.IntValue:
		u.ints[like.start.Int] = 0
	case model.TextValue:
		u.texts[like.start.Text] = 0
	default:
		u.null = true
	}
	for _, i := range ops {
		op := &h.ops[i]
		switch s := &h.steps[op.first]; {
		case s.Do == histories.Read || op.outcome == histories.Fail:
		case s.Do == histories.Write:
			if _, again := u.zone(&s.Value); again || s.Value.Form == histories.Nil {
				return nil
			}
			u.add(&s.Value)
			u.zones = push(u.zones, zone{f: op.ret(), s: op.inv, first: i, far: i, write: i})
		default:
			return nil
		}
	}
	return u
}

// zone finds the zone of a value.
func (u *unique) zone(d *histories.Datum) (zone int32, known bool) {
	switch {
	case d.Form == histories.Text:
		zone, known = u.texts[d.Text]
	case u.like.text:
		v, _ := cellValue(*d)
		zone, known = u.texts[asText(v).Text]
	case d.Form == histories.Int:
		zone, known = u.ints[d.Int]
	default:
		known = u.null
	}
	return zone, known
}

// add makes the next zone that of a value.
func (u *unique) add(d *histories.Datum) {
	next := int32(len(u.zones))
	switch {
	case d.Form == histories.Text:
		u.texts[d.Text] = next
	case u.like.text:
		v, _ := cellValue(*d)
		u.texts[asText(v).Text] = next
	default:
		u.ints[d.Int] = next
	}
}

// check finds what is wrong: reads of what nobody wrote or had begun to write, and zones that have to come before each other. Each read, and
// each zone against the one that reaches furthest, counts once.
func (u *unique) check() []*objectFinding {
	for _, i := range u.ops {
		op := &u.h.ops[i]
		s := &u.h.steps[op.first]
		if s.Do != histories.Read || op.outcome != histories.OK {
			continue
		}
		n, known := u.zone(&s.Value)
		if !known {
			u.phantom(op)
			continue
		}
		z := &u.zones[n]
		if z.write != none && op.end < u.h.ops[z.write].inv {
			u.future(op, z)
			continue
		}
		if op.end < z.f {
			z.f, z.first = op.end, i
		}
		if op.inv > z.s {
			z.s, z.far = op.inv, i
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
	f := u.h.finding(model.Linearizable, model.Nonlinearizable, u.key, again)
	if a.write == none {
		f.proof.Sentence = fmt.Sprintf("Process %d began at %s to read %s and found %s, which it held only at first, though %s had been %s by process %d by %s.",
			again.process, u.h.began(again), u.name(), u.value(again), u.value(by), u.deed(by), by.process, u.h.over(by))
		f.op("by", by)
		f.op("again", again)
		u.found = append(u.found, f)
		return
	}
	first, second := &u.h.ops[a.first], &u.h.ops[b.far]
	f.proof.Sentence = fmt.Sprintf("In %s, %s was %s by process %d by %s, before process %d began to %s %s at %s; but %s was %s by process %d by %s, before process %d began to %s %s at %s; and each was written only once.",
		u.name(), u.value(first), u.deed(first), first.process, u.h.over(first), second.process, u.doing(second), u.value(second), u.h.began(second),
		u.value(by), u.deed(by), by.process, u.h.over(by), again.process, u.doing(again), u.value(again), u.h.began(again))
	f.op("first", first)
	f.op("second", second)
	f.op("by", by)
	f.op("again", again)
	u.found = append(u.found, f)
}

func (u *unique) name() string            { return objectName(u.like.kind, []string{u.key}) }
func (u *unique) value(op *action) string { return datum(u.h.steps[op.first].Value) }
func (u *unique) doing(op *action) string { return u.h.steps[op.first].Do.String() }

func (u *unique) deed(op *action) string {
	if u.h.steps[op.first].Do == histories.Read {
		return "read"
	}
	return "written"
}

// phantom proves that a read found what nobody can have written.
func (u *unique) phantom(read *action) {
	f := u.h.finding(model.Linearizable, model.Nonlinearizable, u.key, read)
	f.proof.Sentence = fmt.Sprintf("Process %d found %s in %s at %s, but nobody ever wrote it.", read.process, u.value(read), u.name(), u.h.over(read))
	if i, refused := u.refusals()[atomOf(u.h.steps[read.first].Value)]; refused {
		w := &u.h.ops[i]
		f.proof.Sentence = fmt.Sprintf("Process %d found %s in %s at %s, but its only write, by process %d, had been refused at %s.",
			read.process, u.value(read), u.name(), u.h.over(read), w.process, u.h.over(w))
		f.op("write", w)
	}
	f.op("reader", read)
	u.found = append(u.found, f)
}

func (u *unique) refusals() map[atom]int32 {
	if u.refused == nil {
		u.refused = make(map[atom]int32)
		for _, i := range u.ops {
			if op := &u.h.ops[i]; op.outcome == histories.Fail && u.h.steps[op.first].Do == histories.Write {
				u.refused[atomOf(u.h.steps[op.first].Value)] = i
			}
		}
	}
	return u.refused
}

// future proves that a read found what was only written later.
func (u *unique) future(read *action, z *zone) {
	w := &u.h.ops[z.write]
	f := u.h.finding(model.Linearizable, model.Nonlinearizable, u.key, read)
	f.proof.Sentence = fmt.Sprintf("Process %d found %s in %s at %s, but process %d only began to write it at %s.", read.process, u.value(read), u.name(), u.h.over(read), w.process, u.h.began(w))
	f.op("reader", read)
	f.op("write", w)
	u.found = append(u.found, f)
}
