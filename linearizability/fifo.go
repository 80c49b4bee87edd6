package linearizability

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"ackproof/histories"
	"ackproof/model"
)

// CheckFIFO decides a queue, or each group of messages of a queue (Key), that hands out first what came in first: fifo, no-phantom, no-duplicate and, where
// the options give it a window, dedup-window; no-loss on demand. A delivery is a Dequeue, or the first Receive of a message: leases and
// redelivery are CheckWorkQueue's.
//
// # Derivation
//
// Values are unique, so every delivery names its message, and groups are independent. A history of sends and deliveries is that of a FIFO queue iff
// nothing is delivered that was not sent, or twice, or before it was sent, and there are no a, b with
//
//	send(a).ret < send(b).inv and deliver(b).ret < deliver(a).inv,
//
// that is, b came in after a and went out before it (Bouajjani, Emmi, Enea and Hamza: the violations of a queue are finitely many
// patterns). A message that was acknowledged and never delivered has deliver(a) = ∞. Sends of unknown outcome that nobody saw are dropped, others end
// never. For a the question is whether the earliest end of a delivery among all b sent after a lies before deliver(a).inv: a minimum over a suffix of
// the messages by send.inv: O(n log n) time, O(n) memory.
//
// A Dequeue of unknown outcome may have taken one message with it. An undelivered a has to be gone at X(a), the earliest end of a delivery of
// some b sent after it, so it needs a lost Dequeue of its own with inv < X(a). The sets of those that fit are nested, so the earliest X takes the earliest inv, which
// is a maximum matching. A Receive of unknown outcome may have been the first delivery of any number of messages: all X(a) behind its inv are excused.
//
// An empty Dequeue is wrong (false-empty) iff at every moment of its interval some message was certainly there: the interval is covered by the union of the
// (send.ret, deliver.inv). Empty Receives prove nothing: queues with leases may answer from some of their servers only.
//
// Where the queue gave sequence numbers they must agree with the real time of the sends, and decide which of two messages came first. A message without a
// number (the answer to its send is unknown) comes after all whose number is no higher than that of some message that was in the queue before it was sent,
// and before all whose number is no lower than that of some message sent after it was acknowledged. No more can be needed: real time of sends, real time of deliveries and numbers each are
// interval orders, of which a shortest circle uses each at most once (of two steps of one such order in a circle one can be replaced by a step across it, and
// a circle of real time and numbers alone is one of two messages), so that a FIFO order exists iff no message is delivered before another that comes before it
// in one of these ways. The number of a possible copy (see below) may be that of the message it copies: it decides nothing.
//
// Deduplication: two delivered messages with equal ids whose sends certainly lie within the window (less drift) of each other are a dedup-leak; the moment of a send
// lies between its invocation and its acknowledgement, or its first delivery if that is earlier. A message that was acknowledged and never delivered is taken
// for a recognised copy if another with its id may have come in before it, within the window (and drift).
//
// # Undecided
//
// Values that repeat; empty Dequeues that only lost Dequeues can explain (how to match these with empties has no proof here).
// For no-loss: undelivered messages where no empty reply came after they were acknowledged, or where a lost delivery may have taken them.
//
// # Not promised
//
// That a group is blocked while one of its messages is leased. That a refusal was right.
func CheckFIFO(events iter.Seq2[histories.Event, error], o MonitorOptions) (*Answer, error) {
	o.fill(fifoClaims(o)...)
	c := &fifoCheck{fifoRules: fifoRules{drift: o.Drift, window: o.Window}, keys: make(map[string]*line)}
	if err := replay(events, func(ev *histories.Event) error { return c.step(ev, c) }); err != nil {
		return nil, err
	}
	for _, op := range c.open {
		for i, s := range op.asked {
			c.finish(&stepped{Step: s, inv: op.inv, invTime: op.invTime, endTime: -1, process: op.process}, op.kept[i])
		}
		c.counts.Info++
	}
	for _, name := range sortedKeys(c.keys) {
		c.decide(name, c.keys[name])
	}
	return c.answer(&o, c.counts, fifoDecides...), nil
}

var fifoDecides = []model.Claim{model.FIFO, model.NoPhantom, model.NoDuplicate, model.DedupWindow, model.NoLoss}

func fifoClaims(o MonitorOptions) []model.Claim {
	claims := []model.Claim{model.FIFO, model.NoPhantom, model.NoDuplicate}
	if o.Window > 0 {
		claims = append(claims, model.DedupWindow)
	}
	return claims
}

// fifoRules are what both forms of the checker share: how single facts are judged and reported.
type fifoRules struct {
	joined
	ledger
	drift  float64
	window int64
}

type fifoCheck struct {
	fifoRules
	keys map[string]*line
}

// line is all that a history has about one group.
type line struct {
	sends, deliveries []*stepped
	empties           []*stepped
	lost              []*stepped // Dequeues of unknown outcome
	lostReceive       *stepped   // the earliest Receive of unknown outcome
}

// message is one value with its send and its first delivery.
type message struct {
	send, first *stepped
	partners    []*message // sends of the same deduplication id that may have come in before it, within the window
	copied      bool       // had partners when it was acknowledged: it may be a recognised copy
	least       *message   // of the numbered messages that came in no later, that of the highest number: itself, if it has a number
	most        *message   // of those that came in no earlier, that of the lowest
	kin         []*message // online: all that were sent with its id, within the window
	missed      uint64     // X: when it had to be gone, forever if never
	by          *message   // which one was delivered then
	told        bool       // reported
}

// leased tells whether a delivery was a Receive.
func leased(s *stepped) bool { return s.Do == histories.Receive }

func (c *fifoCheck) begin(*stepped) any { return nil }

func (c *fifoCheck) finish(s *stepped, _ any) {
	k := c.keys[s.Key]
	if k == nil {
		k = &line{}
		c.keys[s.Key] = k
	}
	maybe := s.outcome != histories.OK && s.outcome != histories.Fail
	switch {
	case s.Do == histories.Enqueue:
		k.sends = append(k.sends, s)
	case s.Do != histories.Dequeue && !leased(s):
	case maybe && leased(s):
		if k.lostReceive == nil || s.inv < k.lostReceive.inv {
			k.lostReceive = s
		}
	case maybe:
		k.lost = append(k.lost, s)
	case s.outcome != histories.OK:
	case s.Value.Form != histories.Nil:
		k.deliveries = append(k.deliveries, s)
	default:
		k.empties = append(k.empties, s)
	}
}

func byInv(a, b *stepped) int { return cmpInt(a.inv, b.inv) }
func byEnd(a, b *stepped) int { return cmpInt(a.end, b.end) }

func (c *fifoCheck) decide(name string, k *line) {
	slices.SortFunc(k.sends, byInv)
	slices.SortFunc(k.deliveries, byEnd)
	slices.SortFunc(k.lost, byInv)
	by := make(map[string]*message, len(k.sends))
	var all []*message // by send.inv
	ids := make(map[string][]*message)
	for _, s := range k.sends {
		id := datum(s.Value)
		if by[id] != nil && by[id].send.outcome != histories.Fail {
			c.repeats(by[id].send, s)
			continue
		}
		m := &message{send: s, missed: forever}
		by[id] = m
		all = append(all, m)
		c.sent(s)
		if s.Old.Form != histories.Nil {
			ids[datum(s.Old)] = append(ids[datum(s.Old)], m)
		}
	}
	for _, d := range k.deliveries {
		m := by[datum(d.Value)]
		switch {
		case m == nil || m.send.inv > d.end:
			c.phantom(d, nil)
		case m.send.outcome == histories.Fail:
			switch c.phantom(d, m.send); {
			case m.first != nil && !leased(d):
				c.twice(m.send, m.first, d)
			case m.first == nil && d.end < m.send.end:
				m.first = d // refused afterwards: it was in the queue
			}
		default:
			c.delivered(d, m.first == nil)
			if m.first == nil {
				m.first = d
			} else if !leased(d) {
				c.twice(m.send, m.first, d)
			}
		}
	}
	if c.window > 0 {
		for _, id := range sortedKeys(ids) {
			for i, m := range ids[id] {
				for _, earlier := range ids[id][:i] {
					c.leak(earlier, m)
				}
				for j, other := range ids[id] {
					if i == j {
						continue
					}
					if c.near(other, m) {
						m.partners = append(m.partners, other)
					}
					m.copied = m.copied || c.closeTo(other, m) && !(other.send.outcome == histories.Fail && other.send.end < m.send.end)
				}
			}
		}
	}
	c.inversions(name, k, all)
	c.emptiness(k, all)
	c.left(name, k.deliveries, k.empties, k.lost, k.lostReceive, all)
}

// inversions finds the patterns of two messages.
func (c *fifoCheck) inversions(name string, k *line, all []*message) {
	// next[i]: of the messages i… by send.inv, the one whose delivery ended first.
	next := make([]*message, len(all)+1)
	for i := len(all) - 1; i >= 0; i-- {
		if next[i] = next[i+1]; all[i].first != nil && (next[i] == nil || all[i].first.end < next[i].first.end) {
			next[i] = all[i]
		}
	}
	for _, a := range all {
		a.miss(next[sort.Search(len(all), func(i int) bool { return all[i].send.inv > a.send.ret() })])
	}
	c.numbers(all)
	var gone []*message
	for _, a := range all {
		switch {
		case a.missed == forever || k.lostReceive != nil && k.lostReceive.inv < a.missed:
		case a.first != nil:
			if a.missed < a.first.inv {
				c.inverted(a)
			}
		case a.due():
			gone = append(gone, a)
		}
	}
	c.match(gone, k.lost)
}

// numbers judges the sequence numbers that the queue gave, and what they say of all messages, which come in the order of their sends.
func (c *fifoCheck) numbers(all []*message) {
	var numbered []*message
	for _, m := range all {
		if m.numbered() {
			m.least, m.most = m, m
			numbered = append(numbered, m)
		}
	}
	if len(numbered) == 0 {
		return
	}
	slices.SortStableFunc(numbered, func(a, b *message) int { return cmpInt(a.send.Number, b.send.Number) })
	var ended *message // of the higher numbers, who was in the queue first
	for i := len(numbered) - 1; i >= 0; i-- {
		m := numbered[i]
		if i > 0 && numbered[i-1].send.Number == m.send.Number {
			c.sameNumber(numbered[i-1].send, m.send)
		}
		if ended != nil && ended.in() < m.send.inv {
			c.misnumbered(ended, m)
		}
		if ended == nil || m.in() < ended.in() {
			ended = m
		}
	}
	slices.SortFunc(numbered, func(a, b *message) int { return cmpInt(a.in(), b.in()) })
	var top *message
	i := 0
	for _, m := range all {
		for ; i < len(numbered) && numbered[i].in() < m.send.inv; i++ {
			if top == nil || numbered[i].send.Number > top.send.Number {
				top = numbered[i]
			}
		}
		if !m.numbered() {
			m.least = top
		}
	}
	lowest := make([]*message, len(all)+1) // of all[i:]
	for i := len(all) - 1; i >= 0; i-- {
		if lowest[i] = lowest[i+1]; all[i].numbered() && (lowest[i] == nil || all[i].send.Number < lowest[i].send.Number) {
			lowest[i] = all[i]
		}
	}
	for _, m := range all {
		if !m.numbered() {
			m.most = lowest[sort.Search(len(all), func(i int) bool { return all[i].send.inv > m.send.ret() })]
		}
	}
	out := slices.DeleteFunc(slices.Clone(all), func(m *message) bool { return m.first == nil || m.least == nil })
	slices.SortFunc(out, func(a, b *message) int { return cmpInt(a.least.send.Number, b.least.send.Number) })
	next := make([]*message, len(out)+1) // of out[i:], whose delivery ended first
	for i := len(out) - 1; i >= 0; i-- {
		if next[i] = next[i+1]; next[i] == nil || out[i].first.end < next[i].first.end {
			next[i] = out[i]
		}
	}
	for _, a := range all {
		if a.most != nil {
			a.miss(next[sort.Search(len(out), func(i int) bool { return a.precedes(out[i]) })])
		}
	}
}

// numbered tells that the message has a sequence number of its own.
func (m *message) numbered() bool {
	return m.send.outcome == histories.OK && m.send.Number > 0 && !m.copied
}

// precedes tells that by their numbers, or those of messages before and after them, the message came in before b.
func (m *message) precedes(b *message) bool {
	return m.most != nil && b.least != nil && m.most.send.Number < b.least.send.Number
}

// in is the latest moment at which the message came in.
func (m *message) in() uint64 {
	if m.first != nil {
		return min(m.send.ret(), m.first.end)
	}
	return m.send.ret()
}

// miss notes a message that was delivered after one that had to go before it.
func (m *message) miss(b *message) {
	if b != nil && b.first.end < m.missed {
		m.missed, m.by = b.first.end, b
	}
}

// due tells that the message came in for certain and is no recognised copy of another.
func (m *message) due() bool {
	return m.send.outcome == histories.OK && !slices.ContainsFunc(m.partners, func(p *message) bool { return p.send.outcome != histories.Fail })
}

// match gives each message that had to be gone, and was not seen, a lost Dequeue that may have taken it; the rest is reported.
func (r *fifoRules) match(gone []*message, lost []*stepped) {
	slices.SortFunc(gone, func(a, b *message) int { return cmpInt(a.missed, b.missed) })
	for _, a := range gone {
		if len(lost) > 0 && lost[0].inv < a.missed {
			lost = lost[1:]
			continue
		}
		r.inverted(a)
	}
}

// emptiness judges empty Dequeues.
func (c *fifoCheck) emptiness(k *line, all []*message) {
	if !slices.ContainsFunc(k.empties, func(s *stepped) bool { return !leased(s) }) {
		return
	}
	// How many messages were certainly there: of those that were delivered later, and of those that never were.
	type change struct {
		at             uint64
		later, forever int
	}
	var changes []change
	for _, m := range all {
		switch {
		case m.send.outcome != histories.OK:
		case m.first == nil && m.due():
			changes = append(changes, change{m.send.end, 0, 1})
		case m.first != nil && m.first.inv > m.send.end:
			changes = append(changes, change{m.send.end, 1, 0}, change{m.first.inv, -1, 0})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmpInt(a.at, b.at) })
	// sums[i] holds between changes i−1 and i.
	sums := make([]change, len(changes)+1)
	for i, ch := range changes {
		sums[i+1] = change{ch.at, sums[i].later + ch.later, sums[i].forever + ch.forever}
	}
	for _, e := range k.empties {
		if leased(e) {
			continue
		}
		i := sort.Search(len(changes), func(i int) bool { return changes[i].at > e.inv })
		empty, perhaps := false, false
		for ; ; i++ {
			until := e.end
			if i < len(changes) {
				until = min(until, changes[i].at)
			}
			// The most that can have been lost by the end of this stretch.
			lost := sort.Search(len(k.lost), func(i int) bool { return k.lost[i].inv >= until })
			empty = empty || sums[i].later == 0 && sums[i].forever == 0
			perhaps = perhaps || sums[i].later == 0 && sums[i].forever <= lost
			if empty || i >= len(changes) || changes[i].at > e.end {
				break
			}
		}
		switch {
		case empty:
		case perhaps:
			c.perhapsEmpty(e, k.lost[0])
		default:
			c.falselyEmpty(e, covering(e, all), k.lost)
		}
	}
}

// covering picks messages that were there, one after the other, all the time.
func covering(e *stepped, all []*message) (chain []*message) {
	for at := e.inv; at <= e.end; {
		var best *message
		until := at
		for _, m := range all {
			if m.send.outcome == histories.OK && m.send.end < max(at, e.inv+1) && (m.first != nil || m.due()) && m.leaves() > until {
				best, until = m, m.leaves()
			}
		}
		if best == nil {
			return chain
		}
		chain = append(chain, best)
		at = until
	}
	return chain
}

// leaves is when the message may have left at the earliest.
func (m *message) leaves() uint64 {
	if m.first == nil {
		return forever
	}
	return m.first.inv
}

// left judges messages that were acknowledged and never delivered, for no-loss.
func (r *fifoRules) left(name string, deliveries, empties, lost []*stepped, lostReceive *stepped, all []*message) {
	var proof *stepped // the empty reply that began last
	for _, e := range empties {
		if proof == nil || e.inv > proof.inv {
			proof = e
		}
	}
	open, taken := 0, 0
	var first *message
	for _, m := range all {
		if m.first != nil || !m.due() {
			continue
		}
		if first == nil {
			first = m
		}
		switch {
		case proof == nil || proof.inv < m.send.end:
			open++
		case len(lost) > 0 && lost[0].inv < proof.end || lostReceive != nil && lostReceive.inv < proof.end:
			taken++
		default:
			r.lostFor(m, proof)
		}
	}
	if open > 0 {
		r.undecided(model.NoLoss, fmt.Sprintf("%s: of acknowledged messages %d were never handed out, the first of operation %d, and no empty reply came after; reading the queue until it is empty would settle it",
			named(name), open, first.send.inv))
	}
	if taken > 0 {
		r.undecided(model.NoLoss, fmt.Sprintf("%s: of acknowledged messages %d were never handed out, the first of operation %d, and deliveries of unknown outcome may have taken them; answers to these would settle it",
			named(name), taken, first.send.inv))
	}
}

// seconds are the moments, in ns, between which the message came in.
func (m *message) moments() (from, to int64) {
	from, to = int64(m.send.invTime), math.MaxInt64/4
	if m.send.outcome == histories.OK {
		to = int64(m.send.endTime)
	}
	if m.first != nil {
		to = min(to, int64(m.first.endTime))
	}
	return from, to
}

// near tells that the other may have come in before m, within the window.
func (r *fifoRules) near(other, m *message) bool {
	return other.send.outcome != histories.Fail && r.closeTo(other, m)
}

// closeTo is near, whether or not the other was refused in the end.
func (r *fifoRules) closeTo(other, m *message) bool {
	if m.send.outcome != histories.OK || other.send.inv > m.send.end {
		return false
	}
	return other.send.outcome != histories.OK || int64(m.send.invTime-other.send.endTime) <= int64(float64(r.window)*(1+r.drift))
}

// leak reports two messages of one id that were both delivered although they came in within the window.
func (r *fifoRules) leak(a, b *message) {
	if a.first == nil || b.first == nil {
		return
	}
	for _, m := range []*message{a, b} { // what was refused before both were handed out is a phantom, and no copy
		if m.send.outcome == histories.Fail && m.send.end < max(a.first.end, b.first.end) {
			return
		}
	}
	fromA, toA := a.moments()
	fromB, toB := b.moments()
	if apart := max(toB-fromA, toA-fromB); apart > int64(float64(r.window)*(1-r.drift)) {
		return
	}
	if a.send.inv > b.send.inv {
		a, b = b, a
	}
	r.add(model.DedupWindow, model.DedupLeak, a.send.Key, -1, func() string {
		return fmt.Sprintf("Messages %s and %s have the deduplication id %s and came in between %s and %s, within the window of %v, and yet the first was handed out at %s and the second at %s.",
			datum(a.send.Value), datum(b.send.Value), datum(a.send.Old), stamp(time.Duration(min(fromA, fromB))), stamp(time.Duration(max(toA, toB))), time.Duration(r.window), a.first.ended(), b.first.ended())
	}, role{"first-send", a.send}, role{"second-send", b.send}, role{"first", a.first}, role{"second", b.first})
	r.found[charge{model.DedupWindow, model.DedupLeak}].proof.WithinNS = r.window
}

func (r *fifoRules) sent(s *stepped) {
	if s.outcome == histories.OK {
		r.count(model.FIFO, "acked", 1)
		r.count(model.NoLoss, "acked", 1)
	}
	if s.Old.Form != histories.Nil {
		r.count(model.DedupWindow, "identified", 1)
	}
}

func (r *fifoRules) delivered(d *stepped, first bool) {
	if first {
		r.count(model.FIFO, "dequeued", 1)
		r.count(model.NoLoss, "dequeued", 1)
	}
	r.count(model.NoLoss, "received", 1)
	r.count(model.NoPhantom, "received", 1)
	r.count(model.NoDuplicate, "received", 1)
}

func (r *fifoRules) repeats(a, b *stepped) {
	for _, claim := range fifoDecides {
		r.undecided(claim, fmt.Sprintf("%s: operations %d and %d both send %s, so a delivery of it names neither; a value of its own for each send would settle it", named(b.Key), a.inv, b.inv, datum(b.Value)))
	}
}

func (l *ledger) phantom(d, send *stepped) {
	l.add(model.NoPhantom, model.Phantom, d.Key, -1, func() string {
		if send == nil {
			return fmt.Sprintf("Message %s was handed out at %s, and nobody had sent it by then.", datum(d.Value), d.ended())
		}
		return fmt.Sprintf("Message %s, sent at %s, was refused at %s, and yet it was handed out at %s.", datum(d.Value), send.began(), send.ended(), d.ended())
	}, role{"send", send}, role{"delivery", d})
}

// twice reports a message that was taken out of the queue twice. The first delivery may be forgotten (nil).
func (r *fifoRules) twice(send, first, again *stepped) {
	r.add(model.NoDuplicate, model.Duplicate, again.Key, -1, func() string {
		if first == nil {
			return fmt.Sprintf("Message %s was taken out of the queue at %s, and it had been taken out before.", datum(again.Value), again.ended())
		}
		return fmt.Sprintf("Message %s, sent once at %s, was taken out of the queue at %s and again at %s.", datum(again.Value), send.began(), first.ended(), again.ended())
	}, role{"send", send}, role{"first", first}, role{"again", again})
}

// inverted reports a message that another, which had come in later, overtook.
func (r *fifoRules) inverted(a *message) {
	if a.told {
		return
	}
	a.told = true
	b := a.by
	r.add(model.FIFO, model.FIFOInversion, a.send.Key, -1, func() string {
		order := fmt.Sprintf("Message %s had been acknowledged at %s when message %s was sent at %s", datum(a.send.Value), a.send.ended(), datum(b.send.Value), b.send.began())
		if before, after := a.most, b.least; a.send.ret() >= b.send.inv {
			order = fmt.Sprintf("Message %s was sent with number %d at %s and message %s with number %d at %s", datum(before.send.Value), before.send.Number, before.send.began(), datum(after.send.Value), after.send.Number, after.send.began())
			if before != a {
				order = fmt.Sprintf("Message %s was acknowledged at %s. Then message %s was sent with number %d at %s, and message %s with number %d at %s",
					datum(a.send.Value), a.send.ended(), datum(before.send.Value), before.send.Number, before.send.began(), datum(after.send.Value), after.send.Number, after.send.began())
			}
			if after != b {
				order += fmt.Sprintf(", which was in the queue before message %s was sent at %s", datum(b.send.Value), b.send.began())
			}
		}
		out := "and the first was never handed out"
		if a.first != nil {
			out = fmt.Sprintf("before the first, whose first delivery began at %s", a.first.began())
		}
		if a.send.ret() >= b.send.inv && (a.most != a || b.least != b) {
			out = strings.ReplaceAll(out, "the first", "message "+datum(a.send.Value))
			return fmt.Sprintf("%s, and yet message %s was handed out by %s, %s.", order, datum(b.send.Value), b.first.ended(), out)
		}
		return fmt.Sprintf("%s, and yet the second was handed out by %s, %s.", order, b.first.ended(), out)
	}, append(a.order(b), role{"second", b.first}, role{"first", a.first})...)
}

// order are the operations that show that the message came in before b.
func (m *message) order(b *message) []role {
	roles := []role{{"first-send", m.send}, {"second-send", b.send}}
	if m.send.ret() < b.send.inv {
		return roles
	}
	if m.most != m {
		roles = append(roles, role{"lower", m.most.send})
	}
	if high := b.least; high != b {
		if roles = append(roles, role{"higher", high.send}); high.send.ret() >= b.send.inv {
			roles = append(roles, role{"higher-delivery", high.first})
		}
	}
	return roles
}

// misnumbered reports sends whose numbers contradict real time.
func (r *fifoRules) misnumbered(earlier, later *message) {
	r.add(model.FIFO, model.FIFOInversion, later.send.Key, -1, func() string {
		how := "lower"
		if later.send.Number == earlier.send.Number {
			how = "same"
		}
		return fmt.Sprintf("Message %s was in the queue with number %d by %s, and yet message %s, sent after that at %s, was given the %s number %d.",
			datum(earlier.send.Value), earlier.send.Number, stamp(time.Duration(second(earlier.moments()))), datum(later.send.Value), later.send.began(), how, later.send.Number)
	}, role{"earlier", earlier.send}, role{"delivery", earlier.first}, role{"later", later.send})
}

func (r *fifoRules) sameNumber(a, b *stepped) {
	r.add(model.FIFO, model.FIFOInversion, b.Key, -1, func() string {
		return fmt.Sprintf("Message %s, sent at %s, and message %s, sent at %s, were both given the number %d.", datum(a.Value), a.began(), datum(b.Value), b.began(), b.Number)
	}, role{"first-send", a}, role{"second-send", b})
}

func second(_, b int64) int64 { return b }

// falselyEmpty reports an empty reply, with messages that cover its interval.
func (r *fifoRules) falselyEmpty(e *stepped, chain []*message, lost []*stepped) {
	var roles []role
	if len(lost) > 0 && lost[0].inv < e.end {
		roles, chain = append(roles, role{"lost", lost[0]}), chain[:min(1, len(chain))]
	}
	for _, m := range chain[:min(3, len(chain))] {
		roles = append(roles, role{"send", m.send})
	}
	if len(chain) == 1 {
		roles = append(roles, role{"delivery", chain[0].first})
	}
	r.add(model.FIFO, model.FalseEmpty, e.Key, -1, func() string {
		text := fmt.Sprintf("The queue was said to be empty between %s and %s, but ", e.began(), e.ended())
		switch {
		case len(chain) == 0:
			return text + "there was a message in it all the time."
		case len(lost) > 0 && lost[0].inv < e.end:
			return text + fmt.Sprintf("there were messages in it all the time, such as %s, acknowledged at %s: more than Dequeues of unknown outcome such as the one sent at %s can have taken.",
				datum(chain[0].send.Value), chain[0].send.ended(), lost[0].began())
		case len(chain) == 1 && chain[0].first == nil:
			return text + fmt.Sprintf("message %s, acknowledged at %s, was never taken out.", datum(chain[0].send.Value), chain[0].send.ended())
		case len(chain) == 1:
			return text + fmt.Sprintf("message %s, acknowledged at %s, was in it until %s at least.", datum(chain[0].send.Value), chain[0].send.ended(), chain[0].first.began())
		}
		return text + fmt.Sprintf("%d messages, beginning with %s, acknowledged at %s, were in it in turn all that time.", len(chain), datum(chain[0].send.Value), chain[0].send.ended())
	}, append(roles, role{"empty", e})...)
}

func (r *fifoRules) perhapsEmpty(e, lost *stepped) {
	r.undecided(model.FIFO, fmt.Sprintf("%s: operation %d found the queue empty, which only Dequeues of unknown outcome such as operation %d can explain; an answer to these would settle it", named(e.Key), e.inv, lost.inv))
}

func (r *fifoRules) lostFor(m *message, proof *stepped) {
	r.add(model.NoLoss, model.LostAcked, m.send.Key, -1, func() string {
		return fmt.Sprintf("Message %s was acknowledged at %s and never handed out, and the queue was said to be empty by a reply asked for at %s.", datum(m.send.Value), m.send.ended(), proof.began())
	}, role{"send", m.send}, role{"empty", proof})
}
