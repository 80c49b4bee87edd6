package linearizability

import (
	"slices"
	"time"

	"ackproof/histories"
	"ackproof/model"
)

// FIFOMonitor is CheckFIFO while the test runs; both give the same verdict.
//
// When the delivery of b ends, X(a) = now for every a that is acknowledged and not delivered, has no X yet and was acknowledged before b was sent. These
// are the first in the order of acknowledgements, so each message gets its X once. An a that is delivered afterwards is an inversion iff X(a) <
// deliver(a).inv; one that nobody can have taken any more (no open or lost delivery began before X(a)) is one at once.
//
// An empty Dequeue is right iff at some moment t of its interval nothing was certainly there, that is, every message that was acknowledged and not delivered by
// t was taken by a Dequeue that was open at t. So only moments are of interest at which at most as many messages are left as Dequeues are open or lost; those are
// kept with their messages until these are delivered, or too many of the Dequeues have ended.
//
// Memory per group: about 300 bytes, 300 per message in the queue, 250 per open operation, 250 per lost Dequeue, 16 per stretch of consecutive numbers in the names of
// messages that are done with (see CommitMonitor), with a window 300 per message sent within it, 300 per message
// acknowledged with a number or delivered since the oldest open send.
type FIFOMonitor struct {
	fifoRules
	options MonitorOptions
	keys    map[string]*lineNow
}

// lineNow is what is still needed of one group.
type lineNow struct {
	values  map[string]*message // open or acknowledged, not delivered
	done    names
	line    []*message // acknowledged, no X yet; some delivered since
	overdue []*message // with X: not delivered, or delivered late and not yet judged
	gone    []*message // reported and never delivered
	ids     map[string][]*message

	sends       []*stepped // open, by inv
	takers      []*stepped // open Dequeues and Receives, by inv
	lost        []*stepped // Dequeues of unknown outcome, by inv once sorted
	lostReceive *stepped
	empty       *stepped // the empty reply that began last

	moments []*moment // at which the queue may have been empty
	waiting []*stepped

	numbered []*message // acknowledged with a number of their own, since the oldest open send
	handed   []*message // delivered since the oldest open send
	highest  *message   // of the highest number among those acknowledged before it
	top      *message   // of the highest number of all
	mixed    bool       // some were acknowledged without a number of their own
}

// moment is one at which nothing was certainly in the queue if those messages that are left were being taken.
type moment struct {
	at   uint64
	left []*message
}

// NewFIFOMonitor begins with empty queues.
func NewFIFOMonitor(o MonitorOptions) *FIFOMonitor {
	o.fill(fifoClaims(o)...)
	return &FIFOMonitor{fifoRules: fifoRules{drift: o.Drift, window: o.Window}, options: o, keys: make(map[string]*lineNow)}
}

// Step takes the next event; see Monitor.
func (m *FIFOMonitor) Step(ev *histories.Event) (*model.Certificate, error) {
	err := m.step(ev, m)
	if ev.Kind == histories.Object {
		for _, k := range m.keys {
			m.after(k, ev.Seq)
		}
	}
	return m.take(), err
}

// Finish answers; see Monitor.
func (m *FIFOMonitor) Finish(facts model.Facts) *Answer {
	m.options.Facts = facts
	m.counts.Info += int64(len(m.open))
	for _, name := range sortedKeys(m.keys) {
		k := m.keys[name]
		for _, s := range k.takers {
			if !leased(s) {
				k.lost = append(k.lost, s)
			} else if k.lostReceive == nil || s.inv < k.lostReceive.inv {
				k.lostReceive = s
			}
		}
		k.takers = nil
		slices.SortFunc(k.lost, byInv)
		m.judge(k)
		var undelivered, gone []*message
		for _, a := range append(slices.Clone(k.line), k.overdue...) {
			if a.first == nil {
				undelivered = append(undelivered, a)
				if a.missed != forever && a.due() && (k.lostReceive == nil || k.lostReceive.inv > a.missed) {
					gone = append(gone, a)
				}
			}
		}
		m.match(gone, k.lost)
		for _, e := range k.waiting {
			m.perhapsEmpty(e, k.lost[0])
		}
		var empties []*stepped
		if k.empty != nil {
			empties = append(empties, k.empty)
		}
		m.left(name, nil, empties, k.lost, k.lostReceive, append(undelivered, k.gone...))
	}
	return m.answer(&m.options, m.counts, fifoDecides...)
}

func (m *FIFOMonitor) begin(s *stepped) any {
	k := m.keys[s.Key]
	if k == nil {
		k = &lineNow{values: make(map[string]*message), done: make(names), ids: make(map[string][]*message)}
		m.keys[s.Key] = k
	}
	switch s.Do {
	case histories.Dequeue, histories.Receive:
		k.takers = append(k.takers, s)
		return s
	case histories.Enqueue:
		id := datum(s.Value)
		if other := k.values[id]; other != nil || k.done.has(s.Value) {
			first := s
			if other != nil {
				first = other.send
			}
			m.repeats(first, s)
			return nil
		}
		a := &message{send: s, missed: forever, least: k.top}
		k.values[id] = a
		k.sends = append(k.sends, s)
		if m.window > 0 && s.Old.Form != histories.Nil {
			m.identify(k, a)
		}
		return a
	}
	return nil
}

// identify keeps the messages of one deduplication id while they are within the window of those to come.
func (m *FIFOMonitor) identify(k *lineNow, a *message) {
	id := datum(a.send.Old)
	reach := time.Duration(float64(m.window) * (1 + m.drift))
	for other, all := range k.ids {
		all = slices.DeleteFunc(all, func(o *message) bool {
			return o.send.outcome == histories.Fail || o.send.outcome == histories.OK && a.send.invTime-o.send.endTime > reach
		})
		if k.ids[other] = all; len(all) == 0 {
			delete(k.ids, other)
		}
	}
	for _, o := range k.ids[id] {
		a.kin, o.kin = append(a.kin, o), append(o.kin, a)
		a.partners = append(a.partners, o)
		if o.send.outcome == histories.Invoke { // still open: a may come in before it
			o.partners = append(o.partners, a)
		}
	}
	k.ids[id] = append(k.ids[id], a)
}

func (m *FIFOMonitor) finish(s *stepped, remembered any) {
	k := m.keys[s.Key]
	switch r := remembered.(type) {
	case *stepped:
		m.taken(k, s, r)
	case *message:
		m.sentNow(k, s, r)
	}
}

// sentNow takes the end of a send.
func (m *FIFOMonitor) sentNow(k *lineNow, s *stepped, a *message) {
	begun := a.send
	k.sends = slices.DeleteFunc(k.sends, func(o *stepped) bool { return o == begun })
	m.sent(s)
	*begun = *s
	switch s.outcome {
	case histories.Fail:
		if a.first != nil {
			m.phantom(a.first, s)
		}
		delete(k.values, datum(s.Value))
	case histories.OK:
		a.partners = slices.DeleteFunc(a.partners, func(o *message) bool { return !m.near(o, a) })
		if a.first == nil {
			k.line = append(k.line, a)
		}
		if a.copied = len(a.partners) > 0; a.numbered() {
			m.number(k, a)
		} else {
			k.mixed = true
		}
	}
	oldest := forever
	if len(k.sends) > 0 {
		oldest = k.sends[0].inv
	}
	k.numbered = slices.DeleteFunc(k.numbered, func(o *message) bool {
		old := o.send.end < oldest
		if old && (k.highest == nil || o.send.Number > k.highest.send.Number) {
			k.highest = o
		}
		return old
	})
	k.handed = slices.DeleteFunc(k.handed, func(o *message) bool { return o.first.end < oldest })
}

// number compares a number that is known now with those around it.
func (m *FIFOMonitor) number(k *lineNow, a *message) {
	if h := k.highest; h != nil && h.in() < a.send.inv && h.send.Number >= a.send.Number {
		m.misnumbered(h, a)
	}
	for _, o := range k.numbered {
		switch {
		case o.send.Number == a.send.Number:
			m.sameNumber(o.send, a.send)
		case o.send.Number > a.send.Number && o.in() < a.send.inv:
			m.misnumbered(o, a)
		case o.send.Number < a.send.Number && a.in() < o.send.inv:
			m.misnumbered(a, o)
		}
	}
	k.numbered = append(k.numbered, a)
	a.least, a.most = a, a
	if k.top == nil || k.top.send.Number < a.send.Number {
		k.top = a
	}
	overtaking := []*message{}
	if a.first != nil { // what was sent when it was in the queue already comes after it
		overtaking = append(overtaking, a)
		raise := func(b *message) bool {
			up := b.send.inv > a.first.end && !b.numbered() && (b.least == nil || b.least.send.Number < a.send.Number)
			if up {
				b.least = a
			}
			return up
		}
		for _, b := range k.values {
			raise(b)
		}
		for _, b := range k.handed {
			if raise(b) {
				overtaking = append(overtaking, b)
			}
		}
	}
	for _, all := range [][]*message{k.line, k.overdue, k.handed} {
		for i := 0; k.mixed && i < len(all); i++ { // what was acknowledged when it was not sent yet comes before it
			if b := all[i]; b.send.outcome == histories.OK && b.send.end < a.send.inv && !b.numbered() && (b.most == nil || b.most.send.Number > a.send.Number) {
				b.most = a
				overtaking = k.handed
			}
		}
	}
	for _, o := range k.handed {
		if a.precedes(o) {
			m.miss(k, a, o)
		}
	}
	for _, b := range overtaking {
		m.overtakes(k, b)
		for _, o := range k.handed {
			if o.precedes(b) {
				m.miss(k, o, b)
			}
		}
	}
}

// miss gives a message an X.
func (m *FIFOMonitor) miss(k *lineNow, a, b *message) {
	had := a.missed != forever
	if a.miss(b); !had && a.missed != forever {
		k.line = slices.DeleteFunc(k.line, func(o *message) bool { return o == a })
		k.overdue = append(k.overdue, a)
	}
}

// overtakes gives an X to all that should have been delivered before b.
func (m *FIFOMonitor) overtakes(k *lineNow, b *message) {
	n := 0
	for n < len(k.line) && k.line[n].send.end < b.send.inv {
		if a := k.line[n]; a.first == nil {
			a.miss(b)
			k.overdue = append(k.overdue, a)
		}
		n++
	}
	k.line = slices.Delete(k.line, 0, n)
	if b.least == nil {
		return
	}
	for _, a := range slices.Clone(k.line) {
		if a.first == nil && a.precedes(b) {
			m.miss(k, a, b)
		}
	}
	for _, a := range k.overdue {
		if a.precedes(b) {
			a.miss(b)
		}
	}
}

// taken takes the end of a delivery.
func (m *FIFOMonitor) taken(k *lineNow, s, begun *stepped) {
	k.takers = slices.DeleteFunc(k.takers, func(o *stepped) bool { return o == begun })
	switch {
	case s.outcome == histories.Fail:
	case s.outcome != histories.OK && leased(s):
		if k.lostReceive == nil || s.inv < k.lostReceive.inv {
			k.lostReceive = s
		}
	case s.outcome != histories.OK:
		k.lost = append(k.lost, s)
		slices.SortFunc(k.lost, byInv)
	case s.Value.Form == histories.Nil:
		if k.empty == nil || s.inv > k.empty.inv {
			k.empty = s
		}
		if !leased(s) {
			k.waiting = append(k.waiting, s)
		}
	default:
		m.handOut(k, s)
	}
	m.judge(k)
}

func (m *FIFOMonitor) handOut(k *lineNow, s *stepped) {
	a := k.values[datum(s.Value)]
	switch {
	case a == nil && !k.done.has(s.Value):
		m.phantom(s, nil)
		return
	case a == nil:
		m.delivered(s, false)
		if !leased(s) {
			m.twice(nil, nil, s)
		}
		return
	}
	m.delivered(s, true)
	a.first = s
	k.done.add(s.Value)
	delete(k.values, datum(s.Value))
	k.gone = slices.DeleteFunc(k.gone, func(o *message) bool { return o == a })
	for _, o := range a.kin {
		m.leak(a, o)
	}
	if len(k.sends) > 0 {
		k.handed = append(k.handed, a)
	}
	m.overtakes(k, a)
	for len(k.line) > 0 && k.line[0].first != nil {
		k.line = k.line[1:]
	}
}

// judge reports what no delivery that is open or lost can excuse any more.
func (m *FIFOMonitor) judge(k *lineNow) {
	k.overdue = slices.DeleteFunc(k.overdue, func(a *message) bool {
		before := func(s *stepped) bool { return s.inv < a.missed }
		excused := k.lostReceive != nil && before(k.lostReceive)
		switch {
		case a.first != nil && (a.missed > a.first.inv || excused):
			return true
		case slices.ContainsFunc(k.takers, func(s *stepped) bool { return before(s) && (a.first == nil || leased(s)) }):
			return false
		case a.first != nil:
			m.inverted(a)
			return true
		case excused || len(a.partners) > 0 || len(k.lost) > 0 && before(k.lost[0]):
			return false
		}
		m.inverted(a)
		k.gone = append(k.gone, a)
		return true
	})
}

// after looks at the queue behind an event, as empty Dequeues that are open may have seen it.
func (m *FIFOMonitor) after(k *lineNow, now uint64) {
	k.moments = slices.DeleteFunc(k.moments, func(p *moment) bool {
		late := false
		p.left = slices.DeleteFunc(p.left, func(a *message) bool {
			late = late || a.first != nil && a.first.inv > p.at
			return a.first != nil
		})
		return late || len(p.left) > k.able(p.at)
	})
	if dequeues := slices.ContainsFunc(k.takers, func(s *stepped) bool { return !leased(s) }); dequeues {
		if left, few := k.present(k.able(now)); few {
			n := len(k.moments)
			if n > 0 && slices.Equal(k.moments[n-1].left, left) && !slices.ContainsFunc(k.waiting, k.moments[n-1].within) {
				k.moments[n-1].at = now // for all that are open a later moment is as good
			} else {
				k.moments = append(k.moments, &moment{now, left})
			}
		}
	}
	k.waiting = slices.DeleteFunc(k.waiting, func(e *stepped) bool {
		open := false
		for _, p := range k.moments {
			if p.within(e) {
				if len(p.left) == 0 {
					return true
				}
				open = true
			}
		}
		if !open {
			m.falselyEmpty(e, k.witnesses(e), k.lost)
		}
		return !open
	})
	k.moments = slices.DeleteFunc(k.moments, func(p *moment) bool {
		return !slices.ContainsFunc(k.waiting, p.within) && !slices.ContainsFunc(k.takers, func(s *stepped) bool { return !leased(s) && s.inv <= p.at })
	})
}

// within tells that the moment lies in the interval of an operation.
func (p *moment) within(e *stepped) bool { return e.inv <= p.at && p.at < e.end }

// able is how many Dequeues, open or lost, can have been taking a message at a moment.
func (k *lineNow) able(at uint64) (n int) {
	for _, s := range k.takers {
		if !leased(s) && s.inv <= at {
			n++
		}
	}
	for _, s := range k.lost {
		if s.inv <= at {
			n++
		}
	}
	return n
}

// present are the messages that were acknowledged and not delivered, if they are no more than most.
func (k *lineNow) present(most int) (left []*message, few bool) {
	for _, all := range [][]*message{k.gone, k.overdue, k.line} {
		for _, a := range all {
			if a.first != nil || !a.due() {
				continue
			}
			if len(left) == most {
				return nil, false
			}
			left = append(left, a)
		}
	}
	return left, true
}

// witnesses are messages that were in the queue while it was said to be empty: one that was there all the time, if there is one.
func (k *lineNow) witnesses(e *stepped) (some []*message) {
	for _, all := range [][]*message{k.gone, k.overdue, k.line} {
		for _, a := range all {
			switch {
			case a.first != nil || !a.due() || a.send.end > e.end:
			case a.send.end < e.inv:
				return []*message{a}
			case len(some) < 3:
				some = append(some, a)
			}
		}
	}
	return some
}
