package linearizability

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ackproof/histories"
	"ackproof/model"
)

// CheckGroups decides what a consumer group is given: group-delivery, and commit-safety as far as the positions tell at which members begin. Operations on the log
// may stand in the same history: acknowledged appends say which offsets are due, and answers about the start which are trimmed.
//
// # Derivation
//
// That a record is given to the group at least once is an existential statement about each record, so nothing has to be searched. Let base be the position at which the first
// owner of the partition began; what lies below was not the group's. An offset is due if it is at or above base and not trimmed and, in a sparse log, if an append to
// it was acknowledged or somebody was given it. An offset was given by time t if some poll with it had ended before t. Then for real time t
//
//	1 an owner that begins at s, by a look-up that ended at t, has given up what lies below: all due offsets < s were given by t;
//	2 within one assignment positions are contiguous: who is given offset o at t, from position q < o, leaves out [q, o): all due ones of it were given by t;
//	3 an accepted commit of c that was asked for at t gives up what lies below: all due offsets < c were given by t;
//	4 who begins at s must find s committed: if every value that the committed offset can have had during the look-up (those of CheckCommits: a commit is
//	  replaced for certain if another began after it and was acknowledged before the look-up) lies above s, the committed offset went back;
//	5 after the group has read everything, no due offset is left that nobody was given.
//
// 1, 2, 3 and 5 are a group-skip, 4 is a committed-offset-regression. Where no commit had been acknowledged when the look-up began the reset policy may have
// decided where an owner begins: such positions are believed (resets).
//
// Owners: assignments may overlap, since a member that is cut off cannot know that it lost its partitions (overlaps). It is a double-owner when the coordinator took part
// in it: a commit of an older generation accepted after one of a newer generation; or two processes of one generation, of which the
// first is given records by a poll that began after the second had been assigned the same partition.
//
// # Cost
//
// One pass, O(log i) per step for i stretches of delivered offsets, which are one per partition while nothing is left out. There is one form only: no rule looks ahead, so
// CheckGroups is GroupMonitor fed with the whole history. Memory per partition: 400 bytes, 16 per stretch of offsets given, 16 per stretch
// acknowledged, 200 per process that was assigned it and did not revoke, 250 per open operation, 200 per commit that may still be the latest.
//
// # Undecided
//
// Acknowledged records at the end of the log that nobody was given, where it is not known that the group read to the end (MonitorOptions.Drained).
//
// # Not promised
//
// That a record is processed before it is committed: if members mark what they processed, commits of more are counted (unprocessed); it is the members' doing. That nothing is given
// twice. In a sparse log a record that was acknowledged only after it was skipped and then given late is not noticed if the late delivery came before the acknowledgement of the commit.
func CheckGroups(events iter.Seq2[histories.Event, error], o MonitorOptions) (*Answer, error) {
	m := NewGroupMonitor(o)
	if err := replay(events, func(ev *histories.Event) error {
		_, err := m.Step(ev)
		return err
	}); err != nil {
		return nil, err
	}
	return m.Finish(m.options.Facts), nil
}

// GroupMonitor is CheckGroups while the test runs.
type GroupMonitor struct {
	joined
	ledger
	options MonitorOptions
	keys    map[string]*owned
	byPart  map[int32][]*owned
	acked   map[int32]*stretches
	trimmed map[int32]int64
	appends map[uint64]int64 // open: how many records
}

// owned is what is known of one partition as one group sees it.
type owned struct {
	key       string
	partition int32
	base      int64 // −1: nobody owned it yet
	reset     int64 // the highest position at which the reset policy had somebody begin
	given     stretches
	processed stretches
	marks     bool             // members mark what they processed
	highest   int64            // end of what was given
	furthest  *stepped         // the poll that was given it
	epochs    map[int32]*epoch // by process
	committed uint64           // when a commit was acknowledged for the first time, 0: not yet
	commits   []*stepped       // those that may still be the latest; open ones have no end
	unknown   *stepped         // of commits of unknown outcome, the lowest
	lookups   []uint64         // open assignments, by inv
	fences    []fence          // by generation
	highWater *stepped         // the accepted commit of the highest offset
}

// epoch is one assignment.
type epoch struct {
	by         *stepped
	next       int64 // position, −1 unknown
	generation int64
	rival      *stepped // the assignment of another process in the same generation
}

// wish is what is remembered of a commit that was asked for: what it gives up although nobody was given it.
type wish struct {
	s           *stepped
	from, to    int64
	skips       bool
	unprocessed bool
}

// NewGroupMonitor begins with nothing owned.
func NewGroupMonitor(o MonitorOptions) *GroupMonitor {
	o.fill(model.GroupDelivery, model.CommitSafety)
	return &GroupMonitor{options: o, keys: make(map[string]*owned), byPart: make(map[int32][]*owned), acked: make(map[int32]*stretches), trimmed: make(map[int32]int64),
		appends: make(map[uint64]int64)}
}

// Step takes the next event; see Monitor.
func (m *GroupMonitor) Step(ev *histories.Event) (*model.Certificate, error) {
	switch {
	case ev.Kind == histories.Append:
		m.append(ev)
	case ev.Kind == histories.StartOffset && ev.Type == histories.OK:
		m.trimmed[ev.Partition] = max(m.trimmed[ev.Partition], ev.Offset)
		for _, k := range m.byPart[ev.Partition] {
			k.given.add(0, ev.Offset-1)
		}
	}
	err := m.step(ev, m)
	return m.take(), err
}

func (m *GroupMonitor) append(ev *histories.Event) {
	if ev.Type == histories.Invoke {
		n := int64(0)
		for _, r := range ev.Runs {
			n += int64(r.Count)
		}
		m.appends[ev.Op] = n
		return
	}
	n := m.appends[ev.Op]
	delete(m.appends, ev.Op)
	if ev.Type != histories.OK || ev.Offset < 0 {
		return
	}
	a := m.acked[ev.Partition]
	if a == nil {
		a = &stretches{}
		m.acked[ev.Partition] = a
	}
	a.add(ev.Offset, ev.Offset+n-1)
	m.count(model.GroupDelivery, "acked", n)
	for _, k := range m.byPart[ev.Partition] { // acknowledged late: given up already?
		if c := k.highWater; c != nil && k.base >= 0 {
			if from, to, any := k.given.missing(max(ev.Offset, k.base), min(ev.Offset+n, c.Offset)-1); any {
				m.skipped(k, from, to, c, fmt.Sprintf("offset %d was committed by %s", c.Offset, c.ended()), nil)
			}
		}
	}
}

// missing gives the first due offsets in [from, to] that nobody was given.
func (m *GroupMonitor) missing(k *owned, from, to int64) (first, last int64, any bool) {
	if from = max(from, k.base); k.base < 0 || from > to {
		return 0, 0, false
	}
	if !m.options.Sparse {
		return k.given.missing(from, to)
	}
	acked := m.acked[k.partition]
	if acked == nil {
		return 0, 0, false
	}
	for from <= to {
		first, last, any = k.given.missing(from, to)
		if !any {
			return 0, 0, false
		}
		if i, has := acked.find(first); has {
			return first, min(last, acked.to[i]), true
		} else if i < len(acked.to) && acked.from[i] <= last {
			return acked.from[i], min(last, acked.to[i]), true
		}
		from = last + 1
	}
	return 0, 0, false
}

// skipped reports due offsets that were given up although nobody was given them.
func (m *GroupMonitor) skipped(k *owned, from, to int64, by *stepped, how string, more *stepped) {
	k.given.add(from, to) // reported once
	m.add(model.GroupDelivery, model.GroupSkip, k.key, from, func() string {
		return fmt.Sprintf("In %s %s, and yet no poll that had ended by then was given %s.", k.key, how, offsets(from, to))
	}, role{"skips", by}, role{"begins", more})
}

func offsets(from, to int64) string {
	if from == to {
		return fmt.Sprintf("offset %d", from)
	}
	return fmt.Sprintf("offsets %d to %d", from, to)
}

func (m *GroupMonitor) key(name string) *owned {
	k := m.keys[name]
	if k == nil {
		k = &owned{key: name, base: -1, partition: -1, epochs: make(map[int32]*epoch)}
		if n, err := strconv.ParseInt(name[strings.LastIndexByte(name, '/')+1:], 10, 32); err == nil {
			k.partition = int32(n)
		}
		k.given.add(0, m.trimmed[k.partition]-1)
		m.keys[name] = k
		m.byPart[k.partition] = append(m.byPart[k.partition], k)
	}
	return k
}

func (m *GroupMonitor) begin(s *stepped) any {
	if s.Do < histories.Commit || s.Do > histories.Processed || s.Do == histories.Committed {
		return nil
	}
	k := m.key(s.Key)
	switch s.Do {
	case histories.Assigned:
		k.lookups = append(k.lookups, s.inv)
	case histories.Revoked:
		delete(k.epochs, s.process)
	case histories.Commit:
		w := &wish{s: s}
		w.from, w.to, w.skips = m.missing(k, k.base, s.Offset-1)
		if k.marks && k.base >= 0 {
			_, _, w.unprocessed = k.processed.missing(k.base, s.Offset-1)
		}
		k.commits = append(k.commits, s)
		return w
	}
	return nil
}

func (m *GroupMonitor) finish(s *stepped, remembered any) {
	if s.Do < histories.Commit || s.Do > histories.Processed || s.Do == histories.Committed {
		return
	}
	k := m.key(s.Key)
	switch s.Do {
	case histories.Commit:
		m.commit(k, s, remembered.(*wish))
		return
	case histories.Assigned:
		if s.outcome == histories.OK {
			m.assigned(k, s)
		}
		if i := slices.Index(k.lookups, s.inv); i >= 0 {
			k.lookups = slices.Delete(k.lookups, i, i+1)
		}
		k.prune()
	case histories.Delivered:
		if s.outcome == histories.OK && s.Number > 0 {
			m.delivered(k, s)
		}
	case histories.Processed:
		if s.outcome == histories.OK {
			k.marks = true
			k.processed.add(s.Offset, s.Offset+s.Number-1)
		}
	}
}

func (m *GroupMonitor) commit(k *owned, s *stepped, w *wish) {
	switch s.outcome {
	case histories.Fail:
		k.commits = slices.DeleteFunc(k.commits, func(c *stepped) bool { return c == w.s })
		return
	case histories.OK:
		*w.s = *s
		if k.committed == 0 {
			k.committed = s.end
		}
	default:
		k.commits = slices.DeleteFunc(k.commits, func(c *stepped) bool { return c == w.s })
		if k.unknown == nil || s.Offset < k.unknown.Offset {
			k.unknown = s
		}
		return
	}
	m.count(model.GroupDelivery, "commits", 1)
	m.count(model.CommitSafety, "commits", 1)
	if w.skips {
		m.skipped(k, w.from, w.to, s, fmt.Sprintf("a commit of offset %d, sent at %s, was accepted at %s", s.Offset, s.began(), s.ended()), nil)
	}
	if w.unprocessed {
		m.count(model.GroupDelivery, "unprocessed", 1)
	}
	if k.highWater == nil || s.Offset > k.highWater.Offset {
		k.highWater = s
	}
	if s.Number > 0 {
		for i := len(k.fences) - 1; i >= 0 && k.fences[i].by.Number > s.Number; i-- {
			if newer := k.fences[i].by; newer.end < s.inv && newer.process != s.process {
				m.add(model.GroupDelivery, model.DoubleOwner, k.key, s.Offset, func() string {
					return fmt.Sprintf("Process %d committed offset %d of %s in generation %d at %s, and yet a commit of process %d in generation %d, sent after that at %s, was accepted too.",
						newer.process, newer.Offset, k.key, newer.Number, newer.ended(), s.process, s.Number, s.began())
				}, role{"newer", newer}, role{"zombie", s})
				break
			}
		}
		k.fence(s)
	}
	k.prune()
}

// fence keeps the first accepted commit of each of the last generations.
func (k *owned) fence(s *stepped) {
	i, found := slices.BinarySearchFunc(k.fences, s.Number, func(f fence, n int64) int { return cmpInt(f.by.Number, n) })
	if !found {
		k.fences = slices.Insert(k.fences, i, fence{s})
	}
	oldest := forever
	for _, c := range k.commits {
		if c.end == 0 {
			oldest = min(oldest, c.inv)
		}
	}
	// Every commit that is open or to come stands behind the fences that ended before; of these the newest will do.
	first := 0
	for i, f := range k.fences {
		if f.by.end < oldest {
			first = i
		}
	}
	k.fences = k.fences[first:]
}

// prune drops commits that are replaced for every look-up that is open or to come.
func (k *owned) prune() {
	oldest := forever
	if len(k.lookups) > 0 {
		oldest = k.lookups[0]
	}
	var last *stepped
	for _, c := range k.commits {
		if c.outcome == histories.OK && c.end < oldest && (last == nil || c.inv > last.inv) {
			last = c
		}
	}
	if last == nil {
		return
	}
	k.commits = slices.DeleteFunc(k.commits, func(c *stepped) bool { return c.outcome == histories.OK && c.end < last.inv })
}

func (m *GroupMonitor) assigned(k *owned, s *stepped) {
	m.count(model.GroupDelivery, "assignments", 1)
	m.count(model.CommitSafety, "reads", 1)
	for _, process := range slices.Sorted(maps.Keys(k.epochs)) {
		e := k.epochs[process]
		if process == s.process {
			continue
		}
		m.count(model.GroupDelivery, "overlaps", 1)
		if e.generation > 0 && e.generation == s.Number && e.rival == nil {
			e.rival = s
		}
	}
	k.epochs[s.process] = &epoch{by: s, next: s.Offset, generation: s.Number}
	if s.Offset < 0 {
		return
	}
	if k.base < 0 {
		k.base = s.Offset
	}
	if k.committed == 0 || k.committed > s.inv { // the reset policy may have decided
		m.count(model.GroupDelivery, "resets", 1)
		k.given.add(k.base, s.Offset-1)
		k.reset = max(k.reset, s.Offset)
		return
	}
	if from, to, any := m.missing(k, k.base, s.Offset-1); any {
		m.skipped(k, from, to, s, fmt.Sprintf("process %d began at offset %d when it was assigned the partition at %s", s.process, s.Offset, s.ended()), nil)
	}
	// What may the committed offset have been?
	var last, lowest *stepped
	for _, c := range k.commits {
		if c.outcome == histories.OK && c.end < s.inv && (last == nil || c.inv > last.inv) {
			last = c
		}
	}
	if last == nil || last.Offset <= s.Offset || k.unknown != nil && k.unknown.Offset <= s.Offset {
		return
	}
	for _, c := range k.commits {
		if (c.outcome != histories.OK || c.end > last.inv) && (lowest == nil || c.Offset < lowest.Offset) {
			lowest = c
		}
	}
	if lowest.Offset > s.Offset {
		m.add(model.CommitSafety, model.CommittedOffsetRegression, k.key, s.Offset, func() string {
			return fmt.Sprintf("A commit of offset %d in %s was acknowledged at %s, and no lower one came after it, and yet process %d, whose assignment began at %s, was told to begin at %d.",
				last.Offset, k.key, last.ended(), s.process, s.began(), s.Offset)
		}, role{"commit", last}, role{"begins", s})
	}
}

func (m *GroupMonitor) delivered(k *owned, s *stepped) {
	m.count(model.GroupDelivery, "delivered", s.Number)
	end := s.Offset + s.Number
	if k.base < 0 {
		k.base = s.Offset
	}
	if e := k.epochs[s.process]; e != nil {
		if r := e.rival; r != nil && r.end < s.inv {
			m.add(model.GroupDelivery, model.DoubleOwner, k.key, s.Offset, func() string {
				return fmt.Sprintf("Process %d was assigned %s in generation %d at %s and process %d in the same generation at %s, and yet the first was still given records by a poll that began at %s.",
					s.process, k.key, e.generation, e.by.ended(), r.process, r.ended(), s.began())
			}, role{"first", e.by}, role{"second", r}, role{"poll", s})
		}
		if e.next >= 0 && s.Offset > e.next {
			if from, to, any := m.missing(k, e.next, s.Offset-1); any {
				m.skipped(k, from, to, s, fmt.Sprintf("process %d, which stood at offset %d, was given offset %d at %s", s.process, e.next, s.Offset, s.ended()), e.by)
			}
		}
		e.next = end
	}
	if c := k.highWater; m.options.Sparse && c != nil { // offsets that nobody knew of when they were given up
		if from, to, any := k.given.missing(max(s.Offset, k.base), min(end, c.Offset)-1); any {
			m.skipped(k, from, to, c, fmt.Sprintf("a commit of offset %d was accepted at %s, before process %d was given a record below it at %s", c.Offset, c.ended(), s.process, s.ended()), s)
		}
	}
	k.given.add(s.Offset, end-1)
	if end > k.highest {
		k.highest, k.furthest = end, s
	}
}

// Finish answers; see Monitor.
func (m *GroupMonitor) Finish(facts model.Facts) *Answer {
	m.options.Facts = facts
	m.counts.Info += int64(len(m.open))
	for _, name := range sortedKeys(m.keys) {
		k := m.keys[name]
		acked := m.acked[k.partition]
		if k.base < 0 || acked == nil || len(acked.to) == 0 {
			continue
		}
		for at := k.base; ; {
			from, to, any := m.undelivered(k, acked, at)
			if !any {
				break
			}
			if from < k.highest && !m.options.Drained {
				to = min(to, k.highest-1)
			}
			if from >= k.highest && !m.options.Drained {
				m.undecided(model.GroupDelivery, fmt.Sprintf("%s: acknowledged records from offset %d on were given to nobody, and it is not known that the group read to the end; a drain by the group would settle it", name, from))
				break
			}
			m.ungiven(k, from, to)
			at = to + 1
		}
	}
	return m.answer(&m.options, m.counts, model.GroupDelivery, model.CommitSafety)
}

// ungiven reports acknowledged offsets that nobody was given to the end.
func (m *GroupMonitor) ungiven(k *owned, from, to int64) {
	by := k.furthest
	for _, process := range slices.Sorted(maps.Keys(k.epochs)) {
		if by == nil {
			by = k.epochs[process].by
		}
	}
	if by == nil { // owned once, by processes that gave it up and were given nothing
		by = k.highWater
	}
	m.add(model.GroupDelivery, model.GroupSkip, k.key, from, func() string {
		text := fmt.Sprintf("In %s nobody had been given %s, acknowledged, when the run ended", k.key, offsets(from, to))
		if k.furthest != nil {
			return text + fmt.Sprintf(", although process %d was given records up to offset %d at %s.", k.furthest.process, k.highest-1, k.furthest.ended())
		}
		return text + ", although the group read to the end."
	}, role{"reader", by})
}

// undelivered gives the first acknowledged offsets from one on that nobody was given.
func (m *GroupMonitor) undelivered(k *owned, acked *stretches, at int64) (from, to int64, any bool) {
	for i := range acked.to {
		if acked.to[i] < at {
			continue
		}
		if from, to, any = k.given.missing(max(at, acked.from[i]), acked.to[i]); any {
			return from, to, true
		}
	}
	return 0, 0, false
}
