package linearizability

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"ackproof/histories"
	"ackproof/model"
)

// operations gives porcupine's form. An operation of unknown outcome never ends; what it does is a set of two states.
func operations(items []item) []porcupine.Operation {
	out := make([]porcupine.Operation, len(items))
	for i, it := range items {
		out[i] = porcupine.Operation{ClientId: int(it.op), Input: it.call, Call: clamp(it.inv), Return: clamp(it.ret)}
	}
	return out
}

func clamp(seq uint64) int64 { return int64(min(seq, math.MaxInt64-2)) }

// search decides a component: by frontier in half of the budget, else by porcupine in the other. The reason says why it is Unknown.
func (c *component) search(budget time.Duration, memory int64) (verdict porcupine.CheckResult, why string) {
	if budget <= 0 {
		return porcupine.Unknown, fmt.Sprintf("there was no time left for %s: a larger budget would settle it", c.name())
	}
	start := time.Now()
	if verdict, _ = c.frontier(c.items, int(memory/situationSize), start.Add(budget/2)); verdict != porcupine.Unknown {
		return verdict, ""
	}
	n := int64(len(c.items))
	if need := n * n / 8; need > memory {
		return porcupine.Unknown, fmt.Sprintf("the search over the %d operations on %s would take %d KiB, more than the %d allowed: more memory would settle it, or values that are written once",
			n, c.name(), need>>10, memory>>10)
	}
	verdict = porcupine.CheckOperationsTimeout(c.model, operations(c.items), max(time.Millisecond, budget-time.Since(start)))
	if verdict != porcupine.Unknown {
		return verdict, ""
	}
	unknown, first := 0, ""
	for _, it := range c.items {
		if it.unknown {
			if unknown++; unknown == 1 {
				first = fmt.Sprintf(" (the first is operation %d)", it.inv)
			}
		}
	}
	return porcupine.Unknown, fmt.Sprintf("%d operations on %s, %d of unknown outcome%s and up to %d at once, were not decided in %v: a larger budget would settle it, or values that are written once",
		n, c.name(), unknown, first, overlap(c.items), budget.Round(time.Millisecond))
}

// overlap is the largest number of operations with an outcome that were open at once.
func overlap(items []item) int {
	type edge struct {
		at uint64
		by int
	}
	var edges []edge
	for _, it := range items {
		if !it.unknown {
			edges = append(edges, edge{it.inv, 1}, edge{it.ret, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.by, a.by)) })
	open, most := 0, 0
	for _, e := range edges {
		open += e.by
		most = max(most, open)
	}
	return most
}

const (
	shrinkTime    = time.Second            // for making one proof small
	probeTime     = 200 * time.Millisecond // for one of its searches
	situationSize = 512                    // bytes that frontier takes for a situation, about
)

// shrink looks for a small proof that a component has no legal order. Leaving operations out at will would prove nothing, for a read without its write is
// never legal. So each step only takes knowledge away, such that the history allows more and more runs, and stays illegal:
//
//   - cut after the completion that makes it illegal: what began later is gone, what ended later has an unknown outcome;
//   - drop a reader, which changes nothing;
//   - take the outcome and the interval of a writer as unknown: it may have happened at any time, or not at all.
//
// What is left cannot be explained, whatever became of the others. No single one of it can be spared, if time allows to find out.
func (h *objects) shrink(c *component) *objectFinding {
	deadline := time.Now().Add(shrinkTime)
	illegal := func(items []item) bool {
		items = c.unseen(slices.Clone(items))
		left := min(time.Until(deadline), probeTime)
		verdict, _ := c.frontier(items, 1<<16, time.Now().Add(left))
		if verdict == porcupine.Unknown && left > 0 {
			verdict = porcupine.CheckOperationsTimeout(c.model, operations(items), left)
		}
		return verdict == porcupine.Illegal
	}
	items := c.items
	if verdict, at := c.frontier(items, 1<<20, deadline); verdict == porcupine.Illegal { // what began later plays no part
		over := items[at].ret
		items = slices.DeleteFunc(slices.Clone(items), func(it item) bool { return it.inv > over })
	}
	// An illegal beginning stays illegal however it goes on, so that halving finds the shortest.
	var ends []uint64
	for _, it := range items {
		if !it.unknown {
			ends = append(ends, it.ret)
		}
	}
	slices.Sort(ends)
	for lo, hi := 0, len(ends); lo < hi; {
		mid := (lo + hi) / 2
		if until := c.until(ends[mid]); illegal(until) {
			hi, items = mid, until
		} else {
			lo = mid + 1
		}
	}
	last := slices.MaxFunc(items, func(a, b item) int { return cmp.Compare(ended(a), ended(b)) })
	// Each probe goes through all items, so that a long proof is left as it is when the time is over.
	late := func() bool { return time.Now().After(deadline) }
	for size := len(items); size > 0 && !late(); size /= 2 {
		for from := 0; from < len(items) && !late(); {
			less := slices.Clone(items[:from])
			n, i := 0, from // firm operations that are given up, and what has been gone through
			for ; i < len(items) && n < size; i++ {
				if it := items[i]; it.op == last.op || !it.firm() {
					less = append(less, it)
				} else if n++; !it.unknown {
					if it, left := c.weaken(it); left {
						it.inv = 0
						less = append(less, it)
					}
				} else {
					it.inv = 0
					less = append(less, it)
				}
			}
			next := len(less)
			if n == 0 {
				break
			}
			if less = append(less, items[i:]...); illegal(less) {
				items, from = less, next
			} else {
				from = i
			}
		}
	}
	return h.unexplained(c, items, last)
}

// firm tells that something is known of the operation beside what it was asked to do.
func (it item) firm() bool { return !it.unknown || it.inv > 0 }

// ended orders items by their certain ends.
func ended(it item) uint64 {
	if it.unknown {
		return 0
	}
	return it.ret
}

// until gives what was known just after a moment.
func (c *component) until(t uint64) []item {
	var out []item
	for _, it := range c.items {
		if it.inv > t {
			continue
		}
		if !it.unknown && it.ret > t {
			var left bool
			if it, left = c.weaken(it); !left {
				continue
			}
		}
		out = append(out, it)
	}
	return out
}

// listed is the largest number of operations that a certificate names one by one.
const listed = 12

// unexplained is the finding about operations that no order explains, of which last ended last.
func (h *objects) unexplained(c *component, items []item, last item) *objectFinding {
	f := h.finding(model.Linearizable, model.Nonlinearizable, strings.Join(c.keys, ","), &h.ops[last.op])
	var firm []item
	for _, it := range items {
		if it.firm() && it.op != last.op {
			firm = append(firm, it)
		}
	}
	slices.SortFunc(firm, func(a, b item) int { return cmp.Compare(a.inv, b.inv) })
	more := max(0, len(firm)-(listed-1))
	firm = firm[more:] // those nearest to the last
	var parts []string
	for _, it := range firm {
		op := &h.ops[it.op]
		if it.unknown {
			f.op("began", op)
			parts = append(parts, fmt.Sprintf("process %d's %s only began at %s", op.process, h.deed(op), h.began(op)))
			continue
		}
		f.op("before", op)
		parts = append(parts, fmt.Sprintf("process %d's %s ran from %s to %s", op.process, h.deed(op), h.began(op), h.over(op)))
	}
	op := &h.ops[last.op]
	f.op("unexplained", op)
	others := -len(firm) - 1 - more
	for _, it := range c.items {
		if it.inv <= last.ret {
			others++
		}
	}
	f.proof.Sentence = fmt.Sprintf("No run of %s explains process %d's %s from %s to %s", c.name(), op.process, h.deed(op), h.began(op), h.over(op))
	if len(parts) > 0 {
		f.proof.Sentence += ", since " + and(parts)
	}
	if more > 0 {
		f.proof.Sentence += " after " + several(more, "more operation")
	}
	if others > 0 {
		f.proof.Sentence += fmt.Sprintf(", whatever became of the %s that had begun by then", several(others, "other"))
	}
	f.proof.Sentence += "."
	return f
}

// and joins the parts of an enumeration.
func and(parts []string) string {
	if n := len(parts); n > 1 {
		return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
	return strings.Join(parts, "")
}

// several counts things.
func several(n int, thing string) string {
	if n == 1 {
		return "one " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// deed is what an operation did, for the middle of a sentence.
func (h *objects) deed(op *action) string {
	if h.kind != nil && h.kind.name == "stream" {
		return h.streamDeed(op)
	}
	var parts []string
	for _, s := range h.of(op) {
		parts = append(parts, stepDeed(s))
	}
	return and(parts)
}

func stepDeed(s histories.Step) string {
	on := ""
	if s.Key != "" {
		on = " of " + s.Key
	}
	switch s.Do {
	case histories.Read:
		return fmt.Sprintf("read%s that found %s", on, datum(s.Value))
	case histories.CompareAndSet:
		return fmt.Sprintf("cas%s from %s to %s", on, datum(s.Old), datum(s.Value))
	case histories.Acquire, histories.Release:
		return s.Do.String() + on
	}
	if on != "" {
		on = " to " + s.Key
	}
	return fmt.Sprintf("%v of %s%s", s.Do, datum(s.Value), on)
}

// datum prints a value for people.
func datum(d histories.Datum) string {
	switch d.Form {
	case histories.Int:
		return fmt.Sprint(d.Int)
	case histories.Text:
		return fmt.Sprintf("%q", d.Text)
	case histories.List:
		const most = 8
		if len(d.List) > most {
			return strings.TrimSuffix(fmt.Sprint(d.List[:most]), "]") + fmt.Sprintf(" … %d elements]", len(d.List))
		}
		return fmt.Sprint(d.List)
	}
	return "nothing"
}
