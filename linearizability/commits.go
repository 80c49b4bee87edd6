package linearizability

import (
	"fmt"
	"iter"
	"slices"
	"sort"

	"ackproof/histories"
	"ackproof/model"
)

// CheckCommits decides commit-safety: the committed offset of each key (group and partition) is a register that commits write and that
// Committed reads, and it is linearizable.
//
// # Derivation
//
// Metadata makes every commit unique, so each read names the commit that it saw (Gibbons and Korach). Let the cluster of a commit be that commit and
// the reads of it, f the earliest end in it and s the latest beginning; a commit of unknown outcome that nobody read is dropped, one that was
// read ends never; the state before all commits is a cluster with f = 0. In a linearization the operations of a cluster are consecutive, so
// cluster i has to come before cluster j as soon as f(i) < s(j): something of i ended before something of j began. Hence no pair may have
// f(i) < s(j) and f(j) < s(i). If no pair has, the relation has no cycle at all (of three clusters in a circle each f would be less than the next s; the one
// with the least f then closes a circle of two with its predecessor: f(least) < … < s(predecessor) while f(predecessor) < s(least)), so the
// clusters can be sorted, and inside a cluster the commit comes first unless a read of it ended before it was asked for, which is a phantom.
//
// A failing pair is shown by four operations at most: the one that ended at f(i), the one that began at s(j), the one that ended at f(j), and
// the read that began at s(i). Sorting and a prefix maximum of s over the clusters by f find all: O(n log n) time, O(n) memory.
//
// Besides, by real time alone: a commit of generation g, asked for after one of a newer generation had been accepted, must be refused (KIP-98,
// KIP-345: the fence of a group's generation); where it was accepted it is a zombie-commit.
//
// # Undecided
//
// Commits that repeat a value (the same offset without metadata) leave open which of them a read saw; the question is then NP-complete. Such reads are judged
// against all that they can have seen: a read is still stale for certain if some acknowledged commit came after all of them and before it. Where
// that shows nothing the claim is undecided, and the reason names the commits; metadata of their own would settle it.
//
// # Not promised
//
// That a refused commit was refused rightly. That the committed offset only rises: a member may commit a lower one on purpose; such commits are counted (rewinds).
// That records below it were delivered: see CheckGroups.
func CheckCommits(events iter.Seq2[histories.Event, error], o MonitorOptions) (*Answer, error) {
	o.fill(model.CommitSafety)
	c := &commitCheck{keys: make(map[string]*committed)}
	if err := replay(events, func(ev *histories.Event) error { return c.step(ev, c) }); err != nil {
		return nil, err
	}
	for _, op := range c.open { // never completed
		for i, s := range op.asked {
			c.finish(&stepped{Step: s, inv: op.inv, invTime: op.invTime, endTime: -1, process: op.process}, op.kept[i])
		}
		c.counts.Info++
	}
	for _, name := range sortedKeys(c.keys) {
		c.decide(name, c.keys[name])
	}
	return c.ledger.answer(&o, c.counts, model.CommitSafety), nil
}

type commitCheck struct {
	joined
	ledger
	keys map[string]*committed
}

// committed is all that a history has about one key.
type committed struct{ commits, reads []*stepped }

func (c *commitCheck) begin(*stepped) any { return nil }

func (c *commitCheck) finish(s *stepped, _ any) {
	k := c.keys[s.Key]
	if k == nil && (s.Do == histories.Commit || s.Do == histories.Committed) {
		k = &committed{}
		c.keys[s.Key] = k
	}
	switch {
	case s.Do == histories.Commit:
		k.commits = append(k.commits, s)
	case s.Do == histories.Committed && s.outcome == histories.OK:
		k.reads = append(k.reads, s)
	}
}

// valueOf identifies what was committed: by its metadata, or by the offset where there is none.
func valueOf(s *stepped) histories.Datum {
	switch {
	case s.Offset < 0:
		return histories.Datum{}
	case s.Value.Form == histories.Nil:
		return histories.IntDatum(s.Offset)
	case s.Value.Form == histories.Int: // apart from an offset
		return histories.Datum{Form: histories.Text, Text: "\x00" + datum(s.Value)}
	}
	return s.Value
}

// commitCluster is one committed value with all who saw it.
type commitCluster struct {
	write   *stepped // nil: the state before all commits
	first   *stepped // the operation that ended first, at f
	last    *stepped // the one that began last, at s
	f, s    uint64
	reads   int64
	refused bool
}

func (k *commitCluster) saw(s *stepped) {
	if ret := s.ret(); k.first == nil || ret < k.f {
		k.first, k.f = s, ret
	}
	if k.last == nil || s.inv > k.s {
		k.last, k.s = s, s.inv
	}
}

func (c *commitCheck) decide(name string, k *committed) {
	slices.SortFunc(k.commits, func(a, b *stepped) int { return cmpInt(a.inv, b.inv) })
	slices.SortFunc(k.reads, func(a, b *stepped) int { return cmpInt(a.end, b.end) })
	clusters := []*commitCluster{{}}
	by := map[string][]*commitCluster{datum(histories.Datum{}): clusters[:1:1]}
	for _, s := range k.commits {
		if s.outcome == histories.OK {
			c.count(model.CommitSafety, "commits", 1)
		}
		w := &commitCluster{write: s, refused: s.outcome == histories.Fail}
		id := datum(valueOf(s))
		by[id] = append(by[id], w)
		clusters = append(clusters, w)
	}
	for _, r := range k.reads {
		c.count(model.CommitSafety, "reads", 1)
		writes := by[datum(valueOf(r))]
		if taken := slices.DeleteFunc(slices.Clone(writes), func(w *commitCluster) bool {
			return w.refused || w.write != nil && w.write.inv > r.end
		}); len(taken) > 0 {
			writes = taken
		} else {
			writes = writes[:min(1, len(writes))]
		}
		switch {
		case len(writes) > 1:
			c.repeated(name, k, r, writes)
		case len(writes) == 0 || writes[0].write != nil && writes[0].write.inv > r.end:
			c.unwritten(r, nil)
		case writes[0].write != nil && writes[0].write.Offset != r.Offset:
			c.unwritten(r, writes[0].write)
		case writes[0].refused && writes[0].write.end < r.end:
			c.unwritten(r, writes[0].write)
		default:
			if writes[0].refused { // refused after it had been read
				c.unwritten(r, writes[0].write)
			}
			writes[0].saw(r)
			writes[0].reads++
		}
	}
	var all []*commitCluster
	for _, w := range clusters {
		switch {
		case w.write == nil: // the beginning ended before everything
			if w.f = 0; w.last == nil {
				w.s = 0
			}
			w.first = nil
		case w.write.outcome != histories.OK && w.reads == 0:
			continue
		default:
			w.saw(w.write)
		}
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b *commitCluster) int { return cmpInt(a.f, b.f) })
	tops := make([]topTwo, len(all)+1) // of the first n clusters
	for i, w := range all {
		tops[i+1] = tops[i]
		tops[i+1].offer(w)
	}
	for _, old := range all {
		n := sort.Search(len(all), func(i int) bool { return all[i].f >= old.s })
		if newer := tops[n].but(old); newer != nil && newer.s > old.f && newer.f > old.f {
			c.undone(name, old, newer, old.last)
		}
	}
	c.fences(name, k.commits)
}

// topTwo are the two clusters that began last.
type topTwo [2]*commitCluster

func (t *topTwo) offer(c *commitCluster) {
	switch {
	case c == nil || c == t[0]:
	case t[0] == nil || c.s > t[0].s:
		if t[0] != c {
			t[1] = t[0]
		}
		t[0] = c
	case c == t[1]:
	case t[1] == nil || c.s > t[1].s:
		t[1] = c
	}
}

// merge takes in those of another; both may hold the same cluster.
func (t *topTwo) merge(o topTwo) {
	t.offer(o[0])
	t.offer(o[1])
}

// but is the cluster that began last, other than one.
func (t *topTwo) but(c *commitCluster) *commitCluster {
	if t[0] != c {
		return t[0]
	}
	return t[1]
}

// undone reports a value that was seen again (by the read) after it had been replaced. What began with the older value may be forgotten (nil).
func (l *ledger) undone(key string, old, newer *commitCluster, read *stepped) {
	l.add(model.CommitSafety, model.CommittedOffsetRegression, key, read.Offset, func() string {
		before := "At first nothing was committed in " + key
		switch {
		case old == nil: // forgotten
			before = fmt.Sprintf("%s had been committed in %s before", commitName(read), key)
		case old.first != nil:
			before = fmt.Sprintf("%s was %s in %s at %s", commitName(old.first), deed(old.first), key, old.first.ended())
		}
		return fmt.Sprintf("%s, then %s, and yet the read that began at %s found %s.", before, newer.replaced(), read.began(), lower(commitName(read)))
	}, role{"before", old.began()}, role{"newer", newer.last}, role{"known", newer.first}, role{"read", read})
}

func (k *commitCluster) began() *stepped {
	if k == nil {
		return nil
	}
	return k.first
}

// replaced tells how a newer value came after an older one and was known before a read.
func (k *commitCluster) replaced() string {
	name := lower(commitName(k.first))
	if k.first == k.last {
		return fmt.Sprintf("%s was %s by an operation that ran from %s to %s", name, deed(k.first), k.first.began(), k.first.ended())
	}
	return fmt.Sprintf("%s was %s by an operation that began at %s, and had been %s by one that ended at %s",
		name, deed(k.last), k.last.began(), deed(k.first), k.first.ended())
}

func deed(s *stepped) string {
	if s.Do == histories.Commit {
		return "committed"
	}
	return "found"
}

func commitName(s *stepped) string {
	switch {
	case s.Offset < 0:
		return "No offset"
	case s.Value.Form == histories.Nil:
		return fmt.Sprintf("Offset %d", s.Offset)
	}
	return fmt.Sprintf("Offset %d (%s)", s.Offset, datum(s.Value))
}

// unwritten reports a read of something that nobody had asked to commit, or that was refused.
func (l *ledger) unwritten(r, write *stepped) {
	l.add(model.CommitSafety, model.Phantom, r.Key, r.Offset, func() string {
		found := fmt.Sprintf("The read that ended at %s found %s committed in %s, ", r.ended(), lower(commitName(r)), r.Key)
		switch {
		case write == nil:
			return found + "which nobody had asked for by then."
		case write.Offset != r.Offset:
			return found + fmt.Sprintf("but what was committed with this metadata at %s is offset %d.", write.began(), write.Offset)
		}
		return found + fmt.Sprintf("but that commit, sent at %s, was refused at %s.", write.began(), write.ended())
	}, role{"write", write}, role{"read", r})
}

// repeated judges a read of a value that several commits wrote.
func (c *commitCheck) repeated(name string, k *committed, r *stepped, writes []*commitCluster) {
	var between *stepped // the commit of another value that began last among those acknowledged before the read
	for _, s := range k.commits {
		if s.outcome == histories.OK && s.end < r.inv && datum(valueOf(s)) != datum(valueOf(r)) && (between == nil || s.inv > between.inv) {
			between = s
		}
	}
	var latest *stepped // of those that it can have seen
	for _, w := range writes {
		if w.refused || w.write.inv > r.end || between != nil && w.write.ret() < between.inv {
			if !w.refused && w.write.inv <= r.end && (latest == nil || latest.end < w.write.end) {
				latest = w.write
			}
			continue
		}
		c.ledger.undecided(model.CommitSafety, fmt.Sprintf("%s: operations %d and %d both commit %s, so the read of operation %d names neither; metadata of its own for each commit would settle it",
			name, writes[0].write.inv, writes[1].write.inv, lower(commitName(writes[0].write)), r.inv))
		return
	}
	if latest == nil {
		c.unwritten(r, nil)
		return
	}
	old, newer := &commitCluster{write: latest}, &commitCluster{write: between}
	old.saw(latest)
	newer.saw(between)
	c.undone(name, old, newer, r)
}

// fences finds commits of an older generation that were accepted after one of a newer generation.
func (c *commitCheck) fences(name string, commits []*stepped) {
	accepted := slices.DeleteFunc(slices.Clone(commits), func(s *stepped) bool { return s.outcome != histories.OK || s.Number <= 0 })
	byEnd := slices.Clone(accepted)
	slices.SortFunc(byEnd, func(a, b *stepped) int { return cmpInt(a.end, b.end) })
	var newest, before *stepped
	i := 0
	for _, s := range accepted { // by inv
		for ; i < len(byEnd) && byEnd[i].end < s.inv; i++ {
			if newest == nil || byEnd[i].Number > newest.Number {
				newest = byEnd[i]
			}
			if before == nil || byEnd[i].end > before.end {
				before = byEnd[i]
			}
		}
		if newest != nil && newest.Number > s.Number {
			c.zombie(name, newest, s)
		}
		if before != nil && s.Offset < before.Offset {
			c.count(model.CommitSafety, "rewinds", 1)
		}
	}
}

func (l *ledger) zombie(key string, newer, s *stepped) {
	l.add(model.CommitSafety, model.ZombieCommit, key, s.Offset, func() string {
		return fmt.Sprintf("A commit of generation %d in %s was accepted at %s, and yet %s of generation %d, sent after that at %s, was accepted too.",
			newer.Number, key, newer.ended(), lower(commitName(s)), s.Number, s.began())
	}, role{"newer", newer}, role{"zombie", s})
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
