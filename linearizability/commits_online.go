package linearizability

import (
	"fmt"
	"slices"

	"ackproof/histories"
	"ackproof/model"
)

// CommitMonitor is CheckCommits while the test runs. Both give the same verdict, save for repeated values, which the monitor always leaves undecided.
//
// Completions arrive with the time of their event, so clusters are born in the order of f, and a pair can only fail when an operation of the older
// value ends: with inv = i it fails iff max{s(w) : f(w) < i, w ≠ v} > f(v). What is asked is a maximum over a prefix, and the only prefixes ever
// asked for are those of the reads that are open, and of reads to come, which is everything. So the clusters between two open reads are kept as
// the two that began last. Once such a maximum over the shortest prefix exceeds f(v), every further read of v fails: v is superseded, and only its name is
// kept, as a number within a stretch.
//
// Memory per key: about 400 bytes, 350 per open read, 400 per commit that is open or of unknown outcome and unseen, 400 per value not yet superseded (two, plus
// those that came while the oldest open read was open), 16 per stretch of consecutive numbers in the metadata of each prefix ("c3-17": one stretch per
// client that counts on), 24 per generation since the oldest open commit. Values that do not end in a counted number take 32 bytes each for ever.
type CommitMonitor struct {
	joined
	ledger
	options MonitorOptions
	keys    map[string]*committedNow
}

// committedNow is what is still needed of one key.
type committedNow struct {
	values     map[string]*commitCluster // commits that are open, unseen or not superseded
	live       []*commitCluster          // those that were seen or acknowledged, by f
	superseded names
	gates      []*gate // open reads, by inv
	tail       topTwo  // of clusters with f behind all gates
	fences     []fence // by generation, the first accepted commit of each
	commits    []uint64
	latest     *stepped // accepted
	ambiguous  bool
}

// gate is an open read with the clusters whose f lies between the gate before and this one.
type gate struct {
	inv uint64
	top topTwo
}

// fence is the first commit of a generation that was accepted.
type fence struct{ by *stepped }

// NewCommitMonitor begins with nothing committed.
func NewCommitMonitor(o MonitorOptions) *CommitMonitor {
	o.fill(model.CommitSafety)
	return &CommitMonitor{options: o, keys: make(map[string]*committedNow)}
}

// Step takes the next event; see Monitor.
func (m *CommitMonitor) Step(ev *histories.Event) (*model.Certificate, error) {
	err := m.step(ev, m)
	return m.take(), err
}

// Finish answers; see Monitor.
func (m *CommitMonitor) Finish(facts model.Facts) *Answer {
	m.options.Facts = facts
	m.counts.Info += int64(len(m.open))
	return m.answer(&m.options, m.counts, model.CommitSafety)
}

func (m *CommitMonitor) begin(s *stepped) any {
	if s.Do != histories.Commit && s.Do != histories.Committed {
		return nil
	}
	k := m.keys[s.Key]
	if k == nil {
		k = &committedNow{values: make(map[string]*commitCluster), superseded: make(names)}
		start := &commitCluster{}
		k.values[datum(histories.Datum{})] = start
		k.born(start, 0)
		m.keys[s.Key] = k
	}
	if s.Do == histories.Committed {
		g := &gate{s.inv, k.tail}
		k.tail = topTwo{}
		k.gates = append(k.gates, g)
		return g
	}
	k.commits = append(k.commits, s.inv)
	id := valueOf(s)
	if other := k.values[datum(id)]; other != nil || k.superseded.has(id) {
		if !k.ambiguous {
			k.ambiguous = true
			m.undecided(model.CommitSafety, fmt.Sprintf("%s: operation %d commits %s, which was committed before; metadata of its own for each commit would settle what reads of it saw", s.Key, s.inv, lower(commitName(s))))
		}
		if other != nil { // nobody can tell the two apart any more
			k.forget(other, datum(id))
		}
		k.superseded.add(id)
		return nil
	}
	w := &commitCluster{write: s}
	k.values[datum(id)] = w
	return w
}

// born gives a cluster its f.
func (k *committedNow) born(c *commitCluster, f uint64) {
	c.f = f
	k.live = append(k.live, c)
	k.place(c)
}

// place offers a cluster to the stretch of its f.
func (k *committedNow) place(c *commitCluster) {
	i, _ := slices.BinarySearchFunc(k.gates, c.f, func(g *gate, f uint64) int { return cmpInt(g.inv, f) })
	if i < len(k.gates) {
		k.gates[i].top.offer(c)
		return
	}
	k.tail.offer(c)
}

// before gives the clusters with f < inv that began last.
func (k *committedNow) before(inv uint64) (t topTwo) {
	for _, g := range k.gates {
		if g.inv > inv {
			return t
		}
		t.merge(g.top)
	}
	return t
}

// close takes a gate away.
func (k *committedNow) close(g *gate) {
	i := slices.Index(k.gates, g)
	if i < 0 {
		return
	}
	if i+1 < len(k.gates) {
		k.gates[i+1].top.merge(g.top)
	} else {
		k.tail.merge(g.top)
	}
	k.gates = slices.Delete(k.gates, i, i+1)
}

func (k *committedNow) forget(c *commitCluster, id string) {
	delete(k.values, id)
	if i := slices.Index(k.live, c); i >= 0 {
		k.live = slices.Delete(k.live, i, i+1)
	}
}

// retire forgets values of which every further read fails.
func (k *committedNow) retire() {
	first := k.tail
	if len(k.gates) > 0 {
		first = k.gates[0].top
	}
	for len(k.live) > 1 {
		old := k.live[0]
		if newer := first.but(old); newer == nil || newer.s <= old.f {
			return
		}
		id := histories.Datum{}
		if old.write != nil {
			id = valueOf(old.write)
		}
		k.superseded.add(id)
		k.forget(old, datum(id))
	}
}

func (m *CommitMonitor) finish(s *stepped, remembered any) {
	k := m.keys[s.Key]
	switch w := remembered.(type) {
	case *gate:
		if s.outcome == histories.OK {
			m.count(model.CommitSafety, "reads", 1)
			m.read(k, s, w)
		}
		k.close(w)
		k.retire()
	case *commitCluster:
		m.commit(k, s)
		id := datum(valueOf(w.write))
		switch s.outcome {
		case histories.OK:
			*w.write = *s
			if w.first == nil {
				w.saw(w.write)
				if k.values[id] == w {
					k.born(w, w.f)
				}
			}
		case histories.Fail:
			*w.write = *s
			if w.reads > 0 {
				for range w.reads {
					m.unwritten(w.first, w.write)
				}
				w.refused = true
			} else if k.values[id] == w {
				k.forget(w, id)
			}
		}
		k.retire()
	default:
		if s.Do == histories.Commit {
			m.commit(k, s)
		}
	}
}

// read judges a read that ended now.
func (m *CommitMonitor) read(k *committedNow, s *stepped, g *gate) {
	id := valueOf(s)
	c := k.values[datum(id)]
	switch {
	case c == nil && k.ambiguous:
		return
	case c == nil && k.superseded.has(id):
		first := k.before(g.inv)
		newer := first[0]
		if newer.write == nil || datum(valueOf(newer.write)) == datum(id) {
			newer = first.but(newer)
		}
		m.undone(s.Key, nil, newer, s)
		return
	case c == nil:
		m.unwritten(s, nil)
		return
	case c.write != nil && c.write.Offset != s.Offset, c.refused:
		m.unwritten(s, c.write)
		return
	}
	born := c.first == nil && c.write != nil
	if c.write != nil {
		if born {
			c.last, c.s = c.write, c.write.inv
		}
		c.saw(s)
	} else {
		f := c.f
		c.saw(s)
		c.f, c.first = f, nil
	}
	c.reads++
	if born {
		k.born(c, c.f)
		return
	}
	newer := k.before(g.inv)
	if w := newer.but(c); w != nil && w.s > c.f {
		m.undone(s.Key, c, w, s)
	}
	k.place(c)
}

// commit keeps the fence of generations.
func (m *CommitMonitor) commit(k *committedNow, s *stepped) {
	i, found := slices.BinarySearch(k.commits, s.inv)
	if found {
		k.commits = slices.Delete(k.commits, i, i+1)
	}
	if s.outcome != histories.OK {
		return
	}
	m.count(model.CommitSafety, "commits", 1)
	if k.latest != nil && k.latest.end < s.inv && s.Offset < k.latest.Offset {
		m.count(model.CommitSafety, "rewinds", 1)
	}
	k.latest = s
	if s.Number <= 0 {
		return
	}
	for i := len(k.fences) - 1; i >= 0 && k.fences[i].by.Number > s.Number; i-- {
		if k.fences[i].by.end < s.inv {
			m.zombie(s.Key, k.fences[i].by, s)
			break
		}
	}
	i, found = slices.BinarySearchFunc(k.fences, s.Number, func(f fence, n int64) int { return cmpInt(f.by.Number, n) })
	if !found {
		k.fences = slices.Insert(k.fences, i, fence{s})
	}
	// Of fences that all open commits, and those to come, stand behind, only the newest is needed.
	oldest := forever
	if len(k.commits) > 0 {
		oldest = k.commits[0]
	}
	newest := int64(0)
	for _, f := range k.fences {
		if f.by.end < oldest {
			newest = f.by.Number
		}
	}
	k.fences = slices.DeleteFunc(k.fences, func(f fence) bool { return f.by.Number < newest })
}
