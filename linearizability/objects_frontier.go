package linearizability

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"ackproof/model"
)

// frontier decides items by going through their events in order, with the set of all situations that the operations can have led to so far (Lowe, Testing
// for linearizability, 2017: just-in-time linearization). A situation is a state, which of the open operations have taken effect, and which of unknown
// outcome. Only when an operation ends does one have to have taken effect: then each situation goes on by every sequence of open ones that ends with it.
// None left: no order explains the history up to this event, nor the whole, and the operation is returned with Illegal.
//
// Three things keep the set small. Readers take effect as soon as they can, for they change nothing. Operations of unknown outcome that do the same are one
// class, of which only the number matters. And of two situations that differ in those only, one that used fewer makes the other needless.
//
// Cost: n times the size of the set, which is exponential in the writers open at once at worst, but does not grow with n where unknown outcomes are few or alike.
// porcupine keeps sets of states instead, needs n²/8 bytes, and tries orders depth first, which is sometimes quicker for legal histories. Unknown: the
// set grew beyond limit, more than 64 operations were open, or the time was up.
func (c *component) frontier(items []item, limit int, deadline time.Time) (verdict porcupine.CheckResult, at int) {
	f := &front{machine: c.machine, items: items, limit: limit, deadline: deadline, classes: make(map[string]uint32)}
	type event struct {
		at   uint64
		end  bool
		item int32
	}
	events := make([]event, 0, 2*len(items))
	for i, it := range items {
		events = append(events, event{it.inv, false, int32(i)})
		if !it.unknown {
			events = append(events, event{it.ret, true, int32(i)})
		}
	}
	// Times are numbers of events: only beginnings of which nothing is known are equal.
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	f.set = []situation{{state: c.machine.Init, key: c.machine.Key(c.machine.Init)}}
	slots := make([]int8, len(items))
	for _, e := range events {
		switch {
		case items[e.item].unknown:
			f.appear(e.item)
		case !e.end:
			slot := bits.TrailingZeros64(^f.open)
			if slot == 64 {
				return porcupine.Unknown, -1
			}
			slots[e.item] = int8(slot)
			f.begin(slot, e.item)
		default:
			if !f.end(int(slots[e.item])) {
				return porcupine.Unknown, -1
			}
			if len(f.set) == 0 {
				return porcupine.Illegal, int(e.item)
			}
		}
	}
	return porcupine.Ok, -1
}

// front is the frontier at work.
type front struct {
	machine  model.Machine
	items    []item
	limit    int
	deadline time.Time
	set      []situation

	open, readers uint64 // slots in use, and those of readers
	slot          [64]int32

	classes map[string]uint32 // of operations of unknown outcome
	sample  []int32           // one item of each class
	left    []int32           // how many of each class have begun and are not used by every situation
}

// situation is one way in which things can stand.
type situation struct {
	state any
	key   string
	done  uint64   // slots of open operations that have taken effect
	used  []uint32 // classes of unknown outcome, one entry for each that took effect, sorted
}

// appear adds an operation of unknown outcome.
func (f *front) appear(i int32) {
	name := fmt.Sprintf("%d", i)
	if call, ok := f.items[i].call.(model.Call); ok {
		name = fmt.Sprintf("%#v", call.Accesses)
	}
	class, known := f.classes[name]
	if !known {
		class = uint32(len(f.sample))
		f.classes[name] = class
		f.sample, f.left = append(f.sample, i), append(f.left, 0)
	}
	f.left[class]++
}

func (f *front) begin(slot int, i int32) {
	f.open |= 1 << slot
	f.slot[slot] = i
	if !f.items[i].reader {
		return
	}
	f.readers |= 1 << slot
	for n := range f.set {
		f.settle(&f.set[n])
	}
}

// settle lets the open readers take effect that can.
func (f *front) settle(c *situation) {
	for waiting := f.open & f.readers &^ c.done; waiting != 0; waiting &= waiting - 1 {
		slot := bits.TrailingZeros64(waiting)
		if _, ok := f.machine.Apply(c.state, f.items[f.slot[slot]].call); ok {
			c.done |= 1 << slot
		}
	}
}

// end makes every situation one in which the operation of a slot has taken effect; false if that is too much.
func (f *front) end(slot int) bool {
	bit := uint64(1) << slot
	seen, out := newSeen(), newSeen()
	var result []situation
	queue := f.set
	for _, c := range queue {
		seen.add(&c)
	}
	for n := 0; n < len(queue); n++ {
		if n%256 == 255 && (len(queue) > f.limit || time.Now().After(f.deadline)) {
			return false
		}
		c := queue[n]
		if c.done&bit != 0 {
			if c.done &^= bit; out.add(&c) {
				result = append(result, c)
			}
			continue
		}
		for waiting := f.open &^ f.readers &^ c.done; waiting != 0; waiting &= waiting - 1 {
			w := bits.TrailingZeros64(waiting)
			if next, ok := f.machine.Apply(c.state, f.items[f.slot[w]].call); ok {
				d := situation{state: next, key: f.machine.Key(next), done: c.done | 1<<w, used: c.used}
				f.settle(&d)
				if seen.add(&d) {
					queue = append(queue, d)
				}
			}
		}
		for class, left := range f.left {
			from, _ := slices.BinarySearch(c.used, uint32(class))
			to, _ := slices.BinarySearch(c.used, uint32(class)+1)
			if int(left) <= to-from {
				continue
			}
			next, ok := f.machine.Apply(c.state, f.items[f.sample[class]].call)
			if !ok {
				continue
			}
			d := situation{state: next, key: f.machine.Key(next), done: c.done}
			if d.key == c.key {
				continue // it changed nothing
			}
			d.used = slices.Insert(slices.Clone(c.used), to, uint32(class))
			f.settle(&d)
			if seen.add(&d) {
				queue = append(queue, d)
			}
		}
	}
	f.open &^= bit
	f.readers &^= bit
	if f.set = result; len(result) == 1 { // what is used for certain need not be carried along
		for _, class := range result[0].used {
			f.left[class]--
		}
		f.set[0].used = nil
	}
	return len(f.set) <= f.limit
}

// seen holds situations, and knows which are needless.
type seen map[seenKey][][]uint32

type seenKey struct {
	state string
	done  uint64
}

func newSeen() seen { return make(seen) }

// add answers false if a situation that used no more is there already.
func (s seen) add(c *situation) bool {
	k := seenKey{c.key, c.done}
	for _, used := range s[k] {
		if within(used, c.used) {
			return false
		}
	}
	s[k] = append(s[k], c.used)
	return true
}

// within tells whether all of a is in b. Both are sorted.
func within(a, b []uint32) bool {
	if len(a) > len(b) {
		return false
	}
	for _, v := range a {
		for len(b) > 0 && b[0] < v {
			b = b[1:]
		}
		if len(b) == 0 || b[0] != v {
			return false
		}
		b = b[1:]
	}
	return true
}
