package linearizability

import (
	"cmp"
	"fmt"
	"slices"

	"ackproof/histories"
	"ackproof/model"
)

// place finds the order of versions of each object and who wrote each, and who has committed.
func (t *transactions) place() {
	if t.logs {
		t.drainMark()
		t.offsets()
	}
	counts := make([]int32, len(t.objects))
	for i := range t.steps {
		s := &t.steps[i]
		if s.does == nothing && !t.logs {
			s.does, s.at = reads, 0
		}
		if !t.logs && s.does == appends {
			s.at = -1 // an offset means nothing in a list
		}
		if s.does == appends {
			counts[s.key]++
		}
	}
	var size, all int32
	for k := range t.objects {
		t.objects[k].base = size
		size += int32(len(t.objects[k].order))
		all += counts[k]
	}
	store := make([]int32, all)
	for k, n := range counts {
		t.objects[k].appends, store = store[:0:n], store[n:]
	}
	for i := range t.steps {
		if s := &t.steps[i]; s.does == appends {
			t.objects[s.key].appends = append(t.objects[s.key].appends, int32(i))
		}
	}
	t.versions = int64(size)
	t.writer, t.wrote = make([]int32, size), make([]int32, size)
	for k := range t.objects {
		t.origins(&t.objects[k])
	}
	for i := range t.all {
		x := &t.all[i]
		x.committed = x.outcome == histories.OK
		if x.committed || x.outcome == histories.Fail {
			continue
		}
		for _, s := range t.of(int32(i)) {
			if s.does == appends && s.at >= 0 {
				x.committed = true
			}
		}
	}
	for i := range t.all {
		if t.all[i].committed {
			t.committed++
		}
	}
	for i, s := range t.wrote {
		t.writer[i] = none
		if s != none && t.all[t.steps[s].txn].committed {
			t.writer[i] = t.steps[s].txn
		}
	}
}

// of is the steps of a transaction.
func (t *transactions) of(n int32) []txnStep {
	x := &t.all[n]
	return t.steps[x.first : x.first+x.steps]
}

// offsets orders the records of each log by offset, from acknowledgements and from what was read, and turns offsets into places in that order.
func (t *transactions) offsets() {
	counts := make([]int32, len(t.objects))
	placed := func(s *txnStep) bool {
		return s.at >= 0 && (s.does == finds || s.does == appends)
	}
	for i := range t.steps {
		if placed(&t.steps[i]) {
			counts[t.steps[i].key]++
		}
	}
	for k := range t.objects {
		t.objects[k].offsets = make([]int64, 0, counts[k])
	}
	for i := range t.steps {
		if s := &t.steps[i]; placed(s) {
			t.objects[s.key].offsets = append(t.objects[s.key].offsets, s.at)
		}
	}
	by := make([][]int32, len(t.objects)) // the step that said so first
	for k := range t.objects {
		x := &t.objects[k]
		slices.Sort(x.offsets)
		x.offsets = slices.Compact(x.offsets)
		x.order = make([]int64, len(x.offsets))
		by[k] = slices.Repeat([]int32{none}, len(x.offsets))
	}
	for _, does := range [...]txnDoes{finds, appends} { // who read is believed before who was told
		for i := range t.steps {
			s := &t.steps[i]
			if s.does != does || s.at < 0 {
				continue
			}
			x := &t.objects[s.key]
			at := x.position(s.at)
			first := &by[s.key][at]
			switch {
			case *first == none:
				*first, x.order[at] = int32(i), s.value
			case x.order[at] != s.value:
				a, b, offset := *first, int32(i), s.at
				t.note(model.InconsistentOffset, fmt.Sprintf("%s@%d", x.name, offset), func(c *txnCertificate) {
					c.Object, c.Offset = x.name, offset
					c.Sentence = fmt.Sprintf("At offset %d of %s, %s, but %s.", offset, x.name, c.put(a), c.put(b))
				})
				if does == appends {
					s.at = -1
					continue
				}
			}
			s.at = int64(at)
		}
	}
	for i := range t.steps {
		if s := &t.steps[i]; s.does == nothing && s.at >= 0 {
			s.at = int64(t.objects[s.key].position(s.at))
		}
	}
}

// position is the number of versions of a log below an offset.
func (x *txnObject) position(offset int64) int {
	n := len(x.offsets)
	if n > 0 && x.offsets[n-1]-x.offsets[0] == int64(n-1) {
		return int(min(max(offset-x.offsets[0], 0), int64(n)))
	}
	i, _ := slices.BinarySearch(x.offsets, offset)
	return i
}

// origins finds for each version of an object the step that wrote it.
func (t *transactions) origins(x *txnObject) {
	byValue := func(a, b int32) int { return cmp.Compare(t.steps[a].value, t.steps[b].value) }
	if !slices.IsSortedFunc(x.appends, byValue) {
		slices.SortStableFunc(x.appends, byValue)
	}
	n := len(x.appends)
	for j := 1; j < n; j++ {
		if a, b := &t.steps[x.appends[j-1]], &t.steps[x.appends[j]]; a.value == b.value && t.repeated == "" {
			t.repeated = fmt.Sprintf("value %d is appended to %q twice, by the operations %d and %d, so it is not known whose was read", a.value, x.name, t.op(a.txn), t.op(b.txn))
		}
	}
	dense := n > 0 && t.steps[x.appends[n-1]].value-t.steps[x.appends[0]].value == int64(n-1)
	find := func(value int64) int32 {
		if dense {
			if i := value - t.steps[x.appends[0]].value; i >= 0 && i < int64(n) {
				return x.appends[i]
			}
			return none
		}
		if i, ok := slices.BinarySearchFunc(x.appends, value, func(s int32, v int64) int { return cmp.Compare(t.steps[s].value, v) }); ok {
			return x.appends[i]
		}
		return none
	}
	if t.logs { // an acknowledgement is a claim; the place is where the record stands
		for _, s := range x.appends {
			if a := &t.steps[s]; a.at >= 0 && x.order[a.at] != a.value {
				a.at = -1
			}
		}
	}
	for at, value := range x.order {
		s := find(value)
		t.wrote[int(x.base)+at] = s
		if s == none {
			t.note(model.Phantom, x.where(at), func(c *txnCertificate) {
				c.about(x, value)
				r := c.t.reader(x, at)
				c.Sentence = fmt.Sprintf("%s read %d in %s, which nobody ever appended.", c.op(r), value, x.name)
			})
			continue
		}
		a := &t.steps[s]
		if a.at >= 0 && a.at != int64(at) {
			first := int(a.at)
			t.note(model.Duplicate, x.where(at), func(c *txnCertificate) {
				c.about(x, value)
				c.Sentence = fmt.Sprintf("%s appended %d to %s once, but it stands there twice", c.op(t.steps[s].txn), value, x.name)
				if x.offsets != nil {
					c.Sentence += fmt.Sprintf(", at offsets %d and %d", x.offsets[first], x.offsets[at])
				}
				if r := c.t.reader(x, at); r != none {
					c.Sentence += fmt.Sprintf(", as %s read", c.op(r))
				}
				c.Sentence += "."
			})
			t.wrote[int(x.base)+at] = none
			continue
		}
		a.at = int64(at)
	}
}

// where names a version of an object.
func (x *txnObject) where(at int) string {
	if x.offsets != nil {
		return fmt.Sprintf("%s@%d", x.name, x.offsets[at])
	}
	return fmt.Sprintf("%s[%d]", x.name, at)
}

// reader is a transaction that read a version, the first to be invoked, −1 if there is none.
func (t *transactions) reader(x *txnObject, at int) int32 {
	for i := range t.steps {
		s := &t.steps[i]
		if &t.objects[s.key] == x && (s.does == reads && s.at > int64(at) || s.does == finds && s.at == int64(at)) && t.all[s.txn].outcome == histories.OK {
			return s.txn
		}
	}
	return none
}

// direct finds what takes no order of transactions to see.
func (t *transactions) direct() {
	for k := range t.objects {
		x := &t.objects[k]
		for at := range x.order {
			s := t.wrote[int(x.base)+at]
			if s == none || t.all[t.steps[s].txn].outcome != histories.Fail {
				continue
			}
			t.note(model.G1a, x.where(at), func(c *txnCertificate) {
				c.about(x, t.steps[s].value)
				c.Sentence = fmt.Sprintf("%s appended %d to %s and was aborted, but %s read it.", c.op(t.steps[s].txn), t.steps[s].value, x.name, c.op(c.t.reader(x, at)))
			})
		}
	}
	next := slices.Repeat([]int32{none}, len(t.wrote)+len(t.objects)) // of each version, who read no further and then appended
	for n := range t.all {
		if !t.all[n].committed {
			continue
		}
		first := t.all[n].first
		for i := range t.of(int32(n)) {
			t.walk(int32(n), first+int32(i), next)
		}
	}
}

// walk follows transaction n through its step i: does it see what it wrote and what it saw before; whose writes does it see half.
func (t *transactions) walk(n, i int32, next []int32) {
	s := &t.steps[i]
	x := &t.objects[s.key]
	if x.txn != n {
		x.txn, x.seen, x.own, x.ownFirst, x.straight, x.odd, x.wrote = n, -1, 0, -1, true, false, false
	}
	internal := func(what string) {
		if x.odd {
			return
		}
		x.odd = true
		t.note(model.Internal, fmt.Sprintf("%s in %d", x.name, t.op(n)), func(c *txnCertificate) {
			c.Object = x.name
			c.Sentence = fmt.Sprintf("%s read %s and found %s.", c.op(n), x.name, what)
		})
	}
	switch s.does {
	case appends:
		if x.own == 0 {
			x.ownFirst = s.at
			if x.seen >= 0 && !t.logs && !x.wrote {
				at := int(x.base+s.key) + int(x.seen)
				if other := next[at]; other == none {
					next[at] = n
				} else if other != n {
					version := "the empty list"
					if x.seen > 0 {
						version = fmt.Sprintf("version %d", x.order[x.seen-1])
					}
					t.note(model.LostUpdate, fmt.Sprintf("%s[%d]", x.name, x.seen), func(c *txnCertificate) {
						c.Object = x.name
						c.Sentence = fmt.Sprintf("%s and %s both read %s of %s and then appended to it, so the one that came later did not see the other.", c.op(other), c.op(n), version, x.name)
					})
				}
			}
		} else if s.at != x.ownFirst+x.own {
			x.straight = false
		}
		if x.wrote && s.at >= 0 && (s.at < x.ownLast || x.ownLast < 0 && (!t.logs || t.options.WholeReads)) {
			before := t.previous(n, i)
			t.note(model.IncompatibleOrder, x.where(int(s.at)), func(c *txnCertificate) {
				c.about(x, s.value)
				c.Sentence = fmt.Sprintf("%s appended %d to %s and then %d, but %s read %d without the other before it.", c.op(n), before, x.name, s.value, c.op(t.reader(x, int(s.at))), s.value)
			})
		}
		x.wrote, x.ownLast = true, s.at
		x.own++
		if s.at >= 0 && s.at < x.seen && !t.logs {
			internal(fmt.Sprintf("%d in it, which it only appended afterwards", s.value))
		}
	case reads:
		t.reads++
		switch {
		case x.seen >= 0 && s.at != x.seen+x.own:
			internal(fmt.Sprintf("another state than it had left it in: %d elements, after %d and %d of its own", s.at, x.seen, x.own))
		case x.own > 0 && !(x.straight && x.ownFirst >= 0 && x.ownFirst == s.at-x.own):
			internal("its own appends not at the end")
		}
		x.seen, x.own, x.straight = s.at, 0, true
		t.intermediate(x, n, int(s.at)-1)
	case differs:
		t.reads++
		t.incompatible(x, i)
		x.odd = true
		x.seen, x.own, x.straight = -1, 0, true
	case finds:
		t.reads++
		if w := t.wrote[int(x.base)+int(s.at)]; w != none && t.steps[w].txn == n {
			t.note(model.PrecommittedRead, x.where(int(s.at)), func(c *txnCertificate) {
				c.about(x, s.value)
				c.Sentence = fmt.Sprintf("%s was given its own record %d of %s before it had committed.", c.op(n), s.value, x.name)
			})
		}
		if t.options.AtomicReads && !t.goesOn(n, i) {
			t.intermediate(x, n, int(s.at))
		}
	case nothing:
		t.reads++
	}
}

// previous is the value that transaction n appended to the same object before step i.
func (t *transactions) previous(n, i int32) int64 {
	for j := i - 1; j >= t.all[n].first; j-- {
		if s := &t.steps[j]; s.does == appends && s.key == t.steps[i].key {
			return s.value
		}
	}
	return 0
}

// goesOn tells whether the transaction finds something further on in the same log, after step i.
func (t *transactions) goesOn(n, i int32) bool {
	for _, s := range t.of(n)[i-t.all[n].first+1:] {
		if s.does == finds && s.key == t.steps[i].key && s.at > t.steps[i].at {
			return true
		}
	}
	return false
}

// intermediate finds G1b: transaction n saw a version as the last that another went on to write over.
func (t *transactions) intermediate(x *txnObject, n int32, at int) {
	for ; at >= 0; at-- {
		s := t.wrote[int(x.base)+at]
		if s != none && t.steps[s].txn == n {
			continue // its own, at the end of what others wrote
		}
		if s == none || !t.steps[s].again {
			return
		}
		t.note(model.G1b, x.where(at), func(c *txnCertificate) {
			c.about(x, t.steps[s].value)
			c.Sentence = fmt.Sprintf("%s appended %d to %s and went on to append more, but %s read it up to there.", c.op(t.steps[s].txn), t.steps[s].value, x.name, c.op(n))
		})
		return
	}
}

// incompatible notes a read of a list that no order of its versions explains together with another.
func (t *transactions) incompatible(x *txnObject, i int32) {
	list := t.odd[i]
	at := 0
	for at < len(list) && at < len(x.order) && list[at] == x.order[at] {
		at++
	}
	g := x.grown[slices.IndexFunc(x.grown, func(g txnGrown) bool { return g.to > int64(at) })]
	other := t.steps[g.step].txn
	t.note(model.IncompatibleOrder, x.where(at), func(c *txnCertificate) {
		c.Object = x.name
		c.Sentence = fmt.Sprintf("%s read %s with %d in place %d, but %s read it with %d in that place.", c.op(other), x.name, x.order[at], at, c.op(t.steps[i].txn), list[at])
	})
}
