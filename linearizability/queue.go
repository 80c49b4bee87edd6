package linearizability

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"ackproof/histories"
	"ackproof/model"
)

// CheckWorkQueue decides a queue that leases its messages (visibility time-outs): lease and no-phantom; no-loss and no-duplicate on demand.
//
// # Derivation
//
// Messages do not interact, but for empty replies, which prove nothing here (servers answer for a part of the queue). Of one message, let p be the moments at which
// its receives, nacks, acks and extensions took effect, each between invocation and completion. A receive i is legal iff no lease is valid at p(i). It begins
// a lease of L(i)(1−ε), ε being the drift of the queue's clock; an extension of the lease that is held begins it anew from its own moment; a nack or an ack
// of the lease that is held ends it; of a lease that is not held any more they have no effect. Those of unknown outcome may have happened or not; a receive
// of unknown outcome, whichever message it took, only adds a lease that nobody knows of, so it is taken for one that did not happen, except that it may have made
// an extension void that ended after it began: such an extension counts as one that may have had no effect.
//
// For a given order of the moments every constraint is a lower bound that grows with the moments before it, and an upper bound that does not:
//
//	p(j) ≥ inv(j),  p(j) ≥ p(previous),  receive: p(j) ≥ end of the lease, which is p(i) + L(i)(1−ε) or earlier;  p(j) ≤ ret(j).
//
// So placing everything as early as possible is best, and the order is feasible iff that meets all p(j) ≤ ret(j). (These are the difference
// constraints of a simple temporal network; it is infeasible iff it has a negative cycle, here inv(i) + L(i)(1−ε) + … > ret(j): two receives, with the extension
// between them, if any: the certificate.) Orders differ only in operations that overlap. The search goes through them, with what was placed, who
// holds the lease and until when as its state: where no receive overlaps another or a nack it is one pass; with k operations
// that overlap at most k! orders, in practice a few. In general the question is one of scheduling with release times and deadlines, strongly
// NP-hard, so a search over the bound of 20,000 states leaves the message undecided. Taking receives in the order of their invocations alone is wrong: a nack
// may fall between them.
//
// The core of a proof is found by leaving out receives, with all that is about their leases, and extensions while what is left stays infeasible. What is left out
// must not have been able to help: extensions that a receive left out may have made void count as optional, and one that may shorten its lease stays.
//
// # Undecided
//
// Messages whose search is over the bound, by name; values that were sent twice. For no-loss: messages that were acknowledged and never
// handed out, unless an empty reply of the drain proves that they are gone: a reply that was asked for after the acknowledgement and
// after every lease that a lost reply can have begun.
//
// # Not promised
//
// At-least-once queues may hand out a message again after its ack was acknowledged: this is counted (redelivered_after_ack), and is a duplicate only under
// no-duplicate. That a lease lasts no longer than asked for. Times are the recorder's; the order of events is the journal's.
func CheckWorkQueue(events iter.Seq2[histories.Event, error], o MonitorOptions) (*Answer, error) {
	o.fill(model.Lease, model.NoPhantom)
	c := &queueCheck{queueRules: queueRules{drift: o.Drift}, keys: make(map[string]*workItems)}
	if err := replay(events, func(ev *histories.Event) error {
		c.phase(ev)
		return c.step(ev, c)
	}); err != nil {
		return nil, err
	}
	for _, op := range c.open {
		for i, s := range op.asked {
			c.finish(&stepped{Step: s, inv: op.inv, invTime: op.invTime, endTime: -1, process: op.process}, op.kept[i])
		}
		c.counts.Info++
	}
	for _, name := range sortedKeys(c.keys) {
		k := c.keys[name]
		void := forever // from when on an extension may be void
		for _, s := range k.lost {
			void = min(void, s.inv)
		}
		for _, value := range sortedKeys(k.by) {
			c.decide(k.by[value], void)
		}
		c.gone(name, k)
	}
	return c.answer(&o, c.counts, queueDecides...), nil
}

var queueDecides = []model.Claim{model.Lease, model.NoPhantom, model.NoLoss, model.NoDuplicate}

// queueRules are what both forms of the checker share.
type queueRules struct {
	joined
	ledger
	drift float64
	drain uint64 // sequence number of the drain's beginning, 0: not yet
}

type queueCheck struct {
	queueRules
	keys map[string]*workItems
}

// workItems is all that a history has about one queue.
type workItems struct {
	by      map[string]*workItem
	empties []*stepped
	lost    []*stepped    // receives of unknown outcome
	longest time.Duration // lease
}

// workItem is one message of a work queue.
type workItem struct {
	name     string
	sends    []*stepped
	receives []*stepped
	ops      []*leaseOp
}

// leaseOp is a step that begins, changes or ends a lease. of is the invocation of the receive whose lease it is about: its own, of a receive.
type leaseOp struct {
	*stepped
	of uint64
}

// leaseState is what the past of a message means for its future: who holds the lease (the receive's invocation; 0: nobody), and until when, and
// the moment of the last operation. The zero of times is the beginning of the run.
type leaseState struct {
	holder    uint64
	until, at time.Duration
}

func (r *queueRules) phase(ev *histories.Event) {
	if ev.Kind == histories.Phase && ev.Note == "drain" && r.drain == 0 {
		r.drain = ev.Seq
	}
}

func (c *queueCheck) begin(*stepped) any { return nil }

func (c *queueCheck) finish(s *stepped, _ any) {
	k := c.keys[s.Key]
	if k == nil {
		k = &workItems{by: make(map[string]*workItem)}
		c.keys[s.Key] = k
	}
	switch {
	case s.Do == histories.Receive && s.Value.Form == histories.Nil:
		switch s.outcome {
		case histories.OK:
			k.empties = append(k.empties, s)
		case histories.Fail:
		default:
			k.lost = append(k.lost, s)
		}
		return
	case s.outcome == histories.Fail && s.Do != histories.Enqueue:
		return
	case s.Do != histories.Enqueue && s.Do != histories.Receive && s.Do != histories.Ack && s.Do != histories.Nack && s.Do != histories.Extend:
		return
	}
	p := k.by[datum(s.Value)]
	if p == nil {
		p = &workItem{name: datum(s.Value)}
		k.by[p.name] = p
	}
	switch s.Do {
	case histories.Enqueue:
		p.sends = append(p.sends, s)
		c.posted(s)
	case histories.Receive:
		if s.outcome == histories.OK {
			p.receives = append(p.receives, s)
			p.ops = append(p.ops, &leaseOp{s, s.inv})
			k.longest = max(k.longest, time.Duration(s.Number))
		}
	default:
		p.ops = append(p.ops, &leaseOp{s, 0})
		if s.outcome == histories.OK {
			k.longest = max(k.longest, time.Duration(s.Number))
		}
	}
}

// attribute finds the lease that a nack, an ack or an extension is about: that of the last receive that its process had completed.
func attribute(op *stepped, receives []*stepped) uint64 {
	for i := len(receives) - 1; i >= 0; i-- {
		if r := receives[i]; r.process == op.process && r.end < op.inv {
			return r.inv
		}
	}
	return 0
}

func (c *queueCheck) decide(p *workItem, void uint64) {
	slices.SortFunc(p.receives, byEnd)
	slices.SortFunc(p.sends, byInv)
	taken := slices.DeleteFunc(slices.Clone(p.sends), func(s *stepped) bool { return s.outcome == histories.Fail })
	if len(taken) > 1 {
		c.sentTwice(taken[0], taken[1])
	}
	for _, r := range p.receives {
		c.handed(r)
		switch {
		case len(p.sends) == 0 || p.sends[0].inv > r.end:
			c.phantom(r, nil)
		case len(taken) == 0:
			c.phantom(r, p.sends[0])
		}
		var acked *stepped
		for _, op := range p.ops {
			if op.Do == histories.Ack && op.outcome == histories.OK && op.end < r.inv && (acked == nil || op.end < acked.end) {
				acked = op.stepped
			}
		}
		if acked != nil {
			c.afterAck(acked, r)
		}
	}
	var ops []*leaseOp
	for _, op := range p.ops {
		if op.Do != histories.Receive {
			op.of = attribute(op.stepped, p.receives)
		}
		if op.Do == histories.Extend && op.ret() > void {
			op = op.maybe()
		}
		if op.of != 0 {
			ops = append(ops, op)
		}
	}
	slices.SortFunc(ops, func(a, b *leaseOp) int { return cmpInt(a.ret(), b.ret()) })
	c.leases(p.name, ops)
}

// leases decides the lease of one message, cutting its past where nothing is open.
func (c *queueCheck) leases(name string, ops []*leaseOp) {
	states := []leaseState{{}}
	var before []*leaseOp // for proofs
	for len(ops) > 0 {
		// The first operations, in the order of their ends, behind which all others begin.
		n, last := 1, uint64(0)
		for ; n < len(ops); n++ {
			last = max(last, ops[n-1].ret())
			if !slices.ContainsFunc(ops[n:], func(op *leaseOp) bool { return op.inv < last }) {
				break
			}
		}
		chunk := ops[:n:n]
		after, verdict := c.search(states, chunk)
		switch verdict {
		case model.Held:
			states, ops = after, ops[n:]
		case model.Undecided:
			c.tooWide(name, chunk)
			states, ops = []leaseState{{}}, ops[n:]
		default: // the shortest part that fails, by the order of ends
			fails := 1
			for ; fails < n; fails++ {
				if _, verdict := c.search(states, until(chunk, fails)); verdict != model.Held {
					break
				}
			}
			c.early(chunk[0].Key, append(before, until(chunk, fails)...), chunk[fails-1])
			states, ops = []leaseState{{}}, ops[fails:]
		}
		before = append(before, chunk...)
		before = before[max(0, len(before)-proofOps):]
	}
}

// until gives the first n operations by their ends, and those that had begun by then and may have taken effect.
func until(ops []*leaseOp, n int) []*leaseOp {
	part := slices.Clone(ops[:n])
	for _, op := range ops[n:] {
		if op.inv < ops[n-1].ret() && op.Do != histories.Receive {
			part = append(part, op.maybe())
		}
		if op.Do == histories.Receive { // where it may lie before the end of an extension, that may be void
			for i, o := range part {
				if o.Do == histories.Extend && o.ret() > op.inv {
					part[i] = o.maybe()
				}
			}
		}
	}
	return part
}

// maybe is the operation as one of unknown outcome.
func (op *leaseOp) maybe() *leaseOp {
	s := *op.stepped
	s.outcome = histories.Info
	return &leaseOp{&s, op.of}
}

// proofOps bounds the past of a message that is looked at for a proof, in operations.
const proofOps = 16

// searchStates bounds the search of one stretch of one message; searchWidth the operations in it.
const (
	searchStates = 20000
	searchWidth  = 60
)

// term is how long a lease certainly lasts.
func (r *queueRules) term(s *stepped) time.Duration {
	return time.Duration(float64(s.Number) * (1 - r.drift))
}

// search places operations behind one of the states in every order that real time allows, each as early as it can be. It returns the states behind
// them, without those that another one makes needless, and Held if there is one; Violated if not; Undecided if it gave up.
func (r *queueRules) search(states []leaseState, ops []*leaseOp) (after []leaseState, v model.Verdict) {
	if len(ops) > searchWidth {
		return nil, model.Undecided
	}
	type visit struct {
		placed uint64
		leaseState
	}
	been := make(map[visit]bool)
	must := uint64(0)
	for i, op := range ops {
		if op.outcome == histories.OK {
			must |= 1 << i
		}
	}
	var from func(v visit)
	from = func(v visit) {
		if been[v] || len(been) > searchStates {
			return
		}
		been[v] = true
		if v.placed&must == must {
			after = reduce(after, v.leaseState)
		}
		first := forever // the earliest end among those that still have to happen
		for i, op := range ops {
			if v.placed&(1<<i) == 0 && must&(1<<i) != 0 {
				first = min(first, op.end)
			}
		}
		for i, op := range ops {
			if v.placed&(1<<i) != 0 || op.inv > first {
				continue
			}
			next := visit{v.placed | 1<<i, v.leaseState}
			if next.place(op, r.term(op.stepped)) {
				from(next)
			}
		}
	}
	for _, s := range states {
		from(visit{0, s})
	}
	switch {
	case len(after) > 0: // found before giving up: what is missing are needless states, or the rest of a wide search
		if len(been) > searchStates {
			return nil, model.Undecided
		}
		return after, model.Held
	case len(been) > searchStates:
		return nil, model.Undecided
	}
	return nil, model.Violated
}

// place puts an operation behind a state, as early as it can be; false if it is too late then.
func (s *leaseState) place(op *leaseOp, term time.Duration) bool {
	at := max(s.at, op.invTime)
	if op.Do == histories.Receive {
		at = max(at, s.until)
	}
	if op.outcome == histories.OK && at > op.endTime {
		return false
	}
	s.at = at
	switch {
	case op.Do == histories.Receive:
		s.holder, s.until = op.of, at+term
	case op.of != s.holder:
	case op.Do == histories.Extend:
		s.until = at + term
	default:
		s.holder, s.until = 0, 0
	}
	return true
}

// reduce adds a state to a set, unless one of the same holder is as early in everything, and drops those that it is as early as.
func reduce(states []leaseState, s leaseState) []leaseState {
	covers := func(a, b leaseState) bool {
		return a.holder == b.holder && a.until <= b.until && a.at <= b.at || a.holder == 0 && a.at <= b.at && a.until <= b.until
	}
	if slices.ContainsFunc(states, func(o leaseState) bool { return covers(o, s) }) {
		return states
	}
	return append(slices.DeleteFunc(states, func(o leaseState) bool { return covers(s, o) }), s)
}

// core leaves out what the infeasibility does not need.
func (r *queueRules) core(ops []*leaseOp) []*leaseOp {
	fails := func(ops []*leaseOp) bool {
		_, v := r.search([]leaseState{{}}, ops)
		return v == model.Violated
	}
	if !fails(ops) {
		return ops
	}
	for i := 0; i < len(ops); {
		op := ops[i]
		var less []*leaseOp
		switch {
		case op.Do == histories.Receive:
			for _, o := range ops {
				if o.Do == histories.Extend && o.of != op.of && o.ret() > op.inv {
					o = o.maybe()
				}
				if o.of != op.of {
					less = append(less, o)
				}
			}
		case op.Do == histories.Extend && op.outcome == histories.OK:
			less = slices.Clone(ops)
			less[i] = op.maybe()
		case op.Do == histories.Extend && !slices.ContainsFunc(ops, func(o *leaseOp) bool {
			return o.Do == histories.Receive && o.of == op.of && op.invTime+r.term(op.stepped) < o.endTime+r.term(o.stepped)
		}):
			less = slices.Delete(slices.Clone(ops), i, i+1)
		}
		if less != nil && fails(less) {
			ops, i = less, 0
			continue
		}
		i++
	}
	return ops
}

// early reports a second delivery inside a valid lease. culprit is the operation with whose end it came to light.
func (r *queueRules) early(key string, ops []*leaseOp, culprit *leaseOp) {
	c := r.found[charge{model.Lease, model.EarlyRedelivery}]
	if c != nil { // only the first is proved
		r.add(model.Lease, model.EarlyRedelivery, key, -1, nil)
		return
	}
	ops = r.core(ops)
	slices.SortFunc(ops, func(a, b *leaseOp) int { return cmpInt(a.inv, b.inv) })
	var receives, others []*leaseOp
	for _, op := range ops {
		switch {
		case op.Do == histories.Receive:
			receives = append(receives, op)
		case op.Do == histories.Extend:
			others = append(others, op)
		}
	}
	var roles []role
	name := datum(culprit.Value)
	text := ""
	switch {
	case len(receives) == 2 && len(others) <= 1:
		first, again := receives[0], receives[1]
		lasts := r.term(first.stepped)
		text = fmt.Sprintf("Message %s was handed out to process %d for %v by a receive that began at %s", name, first.process, time.Duration(first.Number), first.began())
		roles = append(roles, role{"first", first.stepped})
		from := first.invTime
		for _, op := range others {
			if term := r.term(op.stepped); op.outcome == histories.OK || op.invTime+term < from+lasts {
				from, lasts = op.invTime, term
			}
			text += fmt.Sprintf(", its lease was begun anew for %v by an extension that began at %s", time.Duration(op.Number), op.began())
			roles = append(roles, role{"extension", op.stepped})
		}
		text += fmt.Sprintf(", and yet it had been handed out to process %d by %s, before the lease could end at %s.", again.process, again.ended(), stamp(from+lasts))
		if first.ret() >= again.inv { // they overlap: neither order will do
			text = text[:len(text)-1] + ", and the other order of the two will not do either."
		}
		roles = append(roles, role{"again", again.stepped})
	default:
		culprit = slices.MaxFunc(receives, func(a, b *leaseOp) int { return cmpInt(a.end, b.end) })
		text = fmt.Sprintf("Message %s was handed out %d times between %s and %s, and no order of these receives leaves room for the lease of each.", name, len(receives), ops[0].began(), culprit.ended())
		for _, op := range append(receives, others...) {
			if len(roles) < 3 && op != culprit {
				roles = append(roles, role{"received", op.stepped})
			}
		}
		roles = append(roles, role{"again", culprit.stepped})
	}
	r.add(model.Lease, model.EarlyRedelivery, key, -1, func() string { return text }, roles...)
}

func (r *queueRules) posted(s *stepped) {
	if s.outcome == histories.OK {
		r.count(model.NoLoss, "acked", 1)
	}
}

func (r *queueRules) handed(s *stepped) {
	for _, claim := range []model.Claim{model.NoPhantom, model.NoDuplicate, model.NoLoss} {
		r.count(claim, "received", 1)
	}
	r.count(model.Lease, "receives", 1)
}

// afterAck counts a delivery that was asked for after the message had been deleted.
func (r *queueRules) afterAck(ack, again *stepped) {
	r.count(model.Lease, "redelivered_after_ack", 1)
	r.add(model.NoDuplicate, model.Duplicate, again.Key, -1, func() string {
		if ack == nil {
			return fmt.Sprintf("Message %s was handed out by a receive that began at %s, after its deletion had been acknowledged.", datum(again.Value), again.began())
		}
		return fmt.Sprintf("The deletion of message %s was acknowledged at %s, and yet a receive that began at %s was given it again.", datum(again.Value), ack.ended(), again.began())
	}, role{"ack", ack}, role{"again", again})
}

func (r *queueRules) sentTwice(a, b *stepped) {
	for _, claim := range queueDecides {
		r.undecided(claim, fmt.Sprintf("%s: operations %d and %d both send %s, so a delivery of it names neither; a value of its own for each send would settle it", named(b.Key), a.inv, b.inv, datum(b.Value)))
	}
}

func (r *queueRules) tooWide(name string, ops []*leaseOp) {
	r.undecided(model.Lease, fmt.Sprintf("%s: message %s has %d operations, from %d on, that overlap in too many orders to go through; receives that are over before the next begins would settle it",
		named(ops[0].Key), name, len(ops), ops[0].inv))
}

// gone judges messages that were acknowledged and never handed out.
func (c *queueCheck) gone(name string, k *workItems) {
	var proof *stepped
	for _, e := range k.empties {
		if c.drain != 0 && e.inv > c.drain && (proof == nil || e.inv > proof.inv) {
			proof = e
		}
	}
	open := int64(0)
	var first *stepped
	for _, value := range sortedKeys(k.by) {
		p := k.by[value]
		if len(p.receives) > 0 {
			continue
		}
		for _, s := range p.sends {
			if s.outcome != histories.OK {
				continue
			}
			if c.proves(proof, s, k.lost, k.longest) {
				c.vanished(s, proof)
				continue
			}
			open++
			if first == nil || s.inv < first.inv {
				first = s
			}
		}
	}
	c.unproved(name, open, first)
}

// proves tells that an empty reply of the drain shows an undelivered message to be gone: no lost reply can have leased it for so long.
func (r *queueRules) proves(empty, send *stepped, lost []*stepped, longest time.Duration) bool {
	if empty == nil || empty.inv < send.end {
		return false
	}
	for _, l := range lost {
		if l.end == 0 || l.endTime+longest+time.Duration(r.drift*float64(longest)) > empty.invTime {
			return false
		}
	}
	return true
}

func (r *queueRules) vanished(s, empty *stepped) {
	r.add(model.NoLoss, model.LostAcked, s.Key, -1, func() string {
		return fmt.Sprintf("Message %s was acknowledged at %s and never handed out, and the queue was found empty by a receive of the drain that began at %s.", datum(s.Value), s.ended(), empty.began())
	}, role{"send", s}, role{"empty", empty})
}

func (r *queueRules) unproved(name string, n int64, first *stepped) {
	if n > 0 {
		r.undecided(model.NoLoss, fmt.Sprintf("%s: of acknowledged messages %d were never handed out, the first of operation %d; an empty reply of a drain that begins after the longest lease would settle it", named(name), n, first.inv))
	}
}
