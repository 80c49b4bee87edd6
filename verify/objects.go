package verify

import (
	"math"
	"slices"
	"time"

	"ackproof/histories"
	"ackproof/model"
)

// objectRules say for each way to break a promise about objects what the cited operations have to show.
var objectRules = map[model.Claim]map[model.Anomaly]func(*proof){
	model.Linearizable:  {model.Nonlinearizable: unexplained},
	model.NoPhantom:     {model.Phantom: unborn, model.FutureRead: unborn},
	model.NoLoss:        {model.LostAcked: notThere},
	model.NoDirtyRead:   {model.DirtyRead: lacks},
	model.ReadAfterAck:  {model.StaleRead: lacks},
	model.NoDuplicate:   {model.Duplicate: twice},
	model.CommitSafety:  {model.CommittedOffsetRegression: regressed, model.ZombieCommit: outdated, model.Phantom: unborn},
	model.GroupDelivery: {model.GroupSkip: passedOver, model.DoubleOwner: twoOwners},
	model.Lease:         {model.EarlyRedelivery: tooEarly},
	model.FIFO:          {model.FIFOInversion: overtaken, model.FalseEmpty: neverEmpty},
	model.DedupWindow:   {model.DedupLeak: leaked},
	model.Serializability: {model.G0: circle, model.G1c: circle, model.GSingle: circle, model.GNonadjacent: circle, model.G2Item: circle, model.G1a: aborted, model.G1b: halfRead,
		model.IncompatibleOrder: disordered, model.InconsistentOffset: disagree, model.Duplicate: standsTwice, model.Phantom: neverAppended, model.Internal: forgot, model.LostUpdate: ignored},
	model.Atomicity: {model.G1a: aborted, model.TornTxn: torn, model.LostAcked: torn, model.DirtyRead: torn, model.PrecommittedRead: early},
}

// fact is one step of an operation, as it was answered, or as it was asked where there is no answer.
type fact struct {
	histories.Step
	*operation
	outcome histories.Type
}

// ret is the last moment at which it can have taken effect.
func (f fact) ret() uint64 {
	if f.outcome == histories.OK {
		return f.end.Seq
	}
	return math.MaxUint64
}

// every gives the facts about the object that do one of the things, in the order of invocation. What was asked and is not in an answer was refused.
func (p *proof) every(do ...histories.Do) (all []fact) {
	for _, o := range p.ops {
		list, outcome := o.begin.Steps, histories.Info
		switch {
		case o.ok():
			list, outcome = o.end.Steps, histories.OK
		case o.done:
			outcome = o.end.Type
		}
		for _, s := range list {
			if slices.Contains(do, s.Do) && p.isAbout(s.Key) {
				all = append(all, fact{s, o, outcome})
			}
		}
	}
	return all
}

// steps are those of them that were not refused.
func (p *proof) steps(do ...histories.Do) []fact {
	return slices.DeleteFunc(p.every(do...), func(f fact) bool { return f.outcome == histories.Fail })
}

func (p *proof) does(do ...histories.Do) bool { return len(p.steps(do...)) > 0 }

// step is what the certificate quotes of the operation that plays a part; ok demands that it went through.
func (p *proof) step(role string, ok bool) fact {
	for i, c := range p.Operations {
		if c.Role == role && len(p.said[i]) == 1 {
			f := fact{p.said[i][0], p.cited[i], histories.Info}
			if f.operation.ok() && slices.ContainsFunc(f.end.Steps, func(s histories.Step) bool { return quoteOf(s) == quoteOf(f.Step) }) {
				f.outcome = histories.OK
			}
			if p.need(!ok || f.outcome == histories.OK, "what plays the part %q did not go through", role) {
				return f
			}
		}
	}
	p.need(false, "no step plays the part %q", role)
	return fact{operation: &operation{}}
}

// what names the value of a step: of a commit with its offset.
func what(s histories.Step) string {
	if s.Do == histories.Commit || s.Do == histories.Committed {
		return committed(s)
	}
	return s.Value.String()
}

// times is how often the step puts or finds the value; nothing, "", is no value.
func (f fact) times(value string) (n int) {
	if value == "" {
		return 0
	}
	for _, v := range f.Value.List {
		if histories.IntDatum(v).String() == value {
			n++
		}
	}
	if f.Value.Form != histories.List && what(f.Step) == value {
		n++
	}
	return n
}

// puts are the steps that may have brought the value in, gets those that found it for certain.
func (p *proof) puts(value string) []fact {
	return slices.DeleteFunc(p.steps(histories.Add, histories.Enqueue, histories.Commit), func(f fact) bool { return f.times(value) == 0 })
}

func (p *proof) gets(value string) []fact {
	return slices.DeleteFunc(p.steps(histories.Read, histories.Dequeue, histories.Drain, histories.Receive, histories.Committed), func(f fact) bool { return f.outcome != histories.OK || f.times(value) == 0 })
}

// cites tells whether one of the facts is of a cited operation, and gives the first.
func (p *proof) cites(all []fact) (fact, bool) {
	i := slices.IndexFunc(all, func(f fact) bool { return slices.Contains(p.cited, f.operation) })
	if i < 0 {
		return fact{operation: &operation{}}, false
	}
	return all[i], true
}

// at tells whether an offset is the certificate's.
func (p *proof) at(offset int64) bool {
	p.placed = true
	return offset == p.Offset
}

// value is what the certificate is about: the value that it names, or that of the quoted step.
func (p *proof) value(role string) string {
	if p.Value != "" {
		return p.Value
	}
	return what(p.step(role, false).Step)
}

// unborn: a cited operation found the value, and nobody had begun to bring it in by then.
func unborn(p *proof) {
	role := "delivery"
	if p.role("read") != nil {
		role = "read"
		p.need(p.at(p.step("read", true).Offset), "the read found another offset")
	}
	v := p.value(role)
	got, cited := p.cites(p.gets(v))
	p.need(cited, "no cited operation found %s", v)
	for _, f := range p.puts(v) {
		p.need(f.begin.Seq > got.end.Seq && !(p.Anomaly == model.Phantom && p.Value != ""), "operation %d brings it in", f.begin.Seq)
	}
	if w := p.role("write"); w != nil && p.Anomaly == model.FutureRead {
		_, cited = p.cites(p.puts(v))
		p.need(cited, "the cited operation does not bring it in")
	}
}

// twice: a reply that lists the value twice; a delivery after the value was deleted; or more deliveries than operations that can have brought it in.
func twice(p *proof) {
	v := p.value("again")
	gets, sent := p.gets(v), len(p.puts(v))
	got, cited := p.cites(gets)
	p.need(cited, "no cited operation found %s", v)
	taken, leases := 0, 0
	for _, f := range gets {
		if f.Do == histories.Receive {
			leases = 1
		} else {
			taken += f.times(v)
		}
	}
	deleted := slices.ContainsFunc(p.steps(histories.Ack), func(f fact) bool {
		return f.outcome == histories.OK && f.times(v) > 0 && slices.ContainsFunc(gets, func(g fact) bool { return f.before(g.operation) && slices.Contains(p.cited, g.operation) })
	})
	p.need(got.Do == histories.Read && got.times(v) > 1 || got.Do != histories.Read && taken+leases > sent && taken+leases > 1 || deleted, "it was not found more often than it can have been there")
}

// notThere: what was acknowledged is missing when the object is known to have been read to its end.
func notThere(p *proof) {
	switch {
	case p.role("final") != nil:
		lacks(p)
		return
	case p.role("send") != nil:
		neverHandedOut(p)
		return
	}
	w, end, last := p.as("write"), p.as("end"), uint64(0)
	put, cited := p.cites(p.puts(p.Value))
	p.need(cited && put.operation == w && w.ok() && w.before(end) && end.ok(), "the value was not acknowledged before the end")
	drained := slices.ContainsFunc(p.steps(histories.Drain), func(f fact) bool { return f.operation == end })
	acked, got := make(map[string]int), make(map[string]int)
	for _, f := range p.steps(histories.Enqueue) {
		last = max(last, f.end.Seq)
		if f.outcome == histories.OK && f.end.Seq < end.begin.Seq {
			acked[what(f.Step)]++
		}
	}
	empty := slices.ContainsFunc(p.steps(histories.Dequeue), func(f fact) bool { return f.operation == end && what(f.Step) == "" && f.begin.Seq > last })
	p.need(drained || empty, "the end does not show that the queue was empty")
	takers, lost := 0, 0
	for _, f := range p.steps(histories.Dequeue, histories.Drain) {
		switch {
		case f.outcome == histories.OK && f.Do == histories.Drain:
			for _, v := range f.Value.List {
				got[histories.IntDatum(v).String()]++
			}
		case f.outcome == histories.OK:
			got[what(f.Step)]++
		case f.begin.Seq <= end.end.Seq:
			takers++
			p.need(f.Do != histories.Drain, "a drain of unknown outcome may have taken it")
		}
	}
	for v, n := range acked {
		lost += max(0, n-got[v])
	}
	p.need(acked[p.Value] > got[p.Value], "it was given out")
	p.need(lost > takers, "operations of unknown outcome may have taken it")
}

// lacks: a read of a set has it not, although it was known before; no read found it later, or (stale) one did.
func lacks(p *proof) {
	role := "final"
	if p.Anomaly == model.StaleRead {
		role = "stale"
	}
	r := p.as(role)
	_, isRead := p.cites(slices.DeleteFunc(p.steps(histories.Read), func(f fact) bool { return f.operation != r || f.times(p.Value) > 0 }))
	put, cited := p.cites(p.puts(p.Value))
	p.need(r.ok() && isRead && cited, "the read found it, or nobody cited added it")
	known, later := put.outcome == histories.OK && put.before(r), false
	for _, f := range p.gets(p.Value) {
		known = known || f.before(r) && slices.Contains(p.cited, f.operation)
		later = later || f.end.Seq > r.begin.Seq
	}
	p.need(known, "it was not known before the read began")
	p.need(later == (p.Anomaly == model.StaleRead), "whether a read found it later does not fit")
	p.need(p.Anomaly != model.LostAcked || put.outcome == histories.OK, "it was not acknowledged")
}

// regressed: no order of the commits explains what was read; or an owner was told to begin below all that can have been committed.
func regressed(p *proof) {
	if p.role("begins") == nil {
		read := p.step("read", true)
		p.need(p.at(read.Offset), "the read found another offset")
		if p.role("before") == nil { // who watched the run may have forgotten that the value had been there; the history has not
			newer := p.step("newer", true)
			for _, f := range p.steps(histories.Commit, histories.Committed) {
				if f.outcome == histories.OK && what(f.Step) == what(read.Step) && f.before(newer.operation) {
					p.cited = append(p.cited, f.operation)
					break
				}
			}
		}
		unexplained(p)
		return
	}
	c, s := p.step("commit", true), p.step("begins", true)
	p.need(c.Do == histories.Commit && s.Do == histories.Assigned && c.before(s.operation) && p.at(s.Offset) && 0 <= s.Offset && s.Offset < c.Offset, "the owner did not begin below a commit acknowledged before")
	for _, f := range p.steps(histories.Commit) {
		p.need(f.begin.Seq > s.end.Seq || f.Offset > s.Offset || f.outcome == histories.OK && f.before(c.operation), "the commit of operation %d may be what it was told", f.begin.Seq)
	}
}

// outdated: a commit of an older generation was accepted, sent after one of a newer had been.
func outdated(p *proof) {
	newer, zombie := p.step("newer", true), p.step("zombie", true)
	p.need(newer.Do == histories.Commit && zombie.Do == histories.Commit && newer.before(zombie.operation) && newer.Number > zombie.Number && zombie.Number > 0 && p.at(zombie.Offset),
		"not two accepted commits, the later of an older generation")
}

func twoOwners(p *proof) {
	if p.role("zombie") != nil {
		outdated(p)
		p.need(p.as("newer").begin.Process != p.as("zombie").begin.Process, "both commits are of one process")
		return
	}
	first, second, poll := p.step("first", true), p.step("second", true), p.step("poll", true)
	p.need(first.Do == histories.Assigned && second.Do == histories.Assigned && first.Number == second.Number && first.Number > 0 && first.begin.Process != second.begin.Process,
		"not two processes of one generation")
	p.need(poll.Do == histories.Delivered && poll.Number > 0 && p.at(poll.Offset) && poll.begin.Process == first.begin.Process && second.before(poll.operation) && first.before(poll.operation),
		"the first was not given records after the second was assigned")
	for _, f := range p.steps(histories.Revoked, histories.Assigned) {
		p.need(f.begin.Process != first.begin.Process || f.begin.Seq <= first.begin.Seq || f.begin.Seq > poll.begin.Seq, "the first had given it up")
	}
}

// passedOver: an offset that was due was given up although nobody had been given it by then.
func passedOver(p *proof) {
	by, at := uint64(math.MaxUint64), p.Offset
	p.placed = true
	due := slices.ContainsFunc(p.appends, func(o *operation) bool { return o.begin.Kind == histories.Append && o.ok() && len(o.at(at)) > 0 })
	if p.role("reader") == nil {
		s := p.step("skips", true)
		switch by = s.end.Seq; s.Do {
		case histories.Commit:
			by = s.begin.Seq
		case histories.Delivered: // from where it stood: at its assignment, or behind what it was given since
			from := p.step("begins", true)
			p.need(from.Do == histories.Assigned && from.begin.Process == s.begin.Process && 0 <= from.Offset && from.Offset <= at && from.before(s.operation), "it did not stand below the offset")
			for _, f := range p.steps(histories.Delivered, histories.Revoked, histories.Assigned) {
				p.need(f.begin.Process != s.begin.Process || f.begin.Seq <= from.begin.Seq || f.begin.Seq >= s.begin.Seq || f.Do == histories.Delivered && (f.Number == 0 || f.Offset+f.Number <= at) || f.outcome != histories.OK, "it did not stand below the offset any more")
			}
		default:
			p.need(s.Do == histories.Assigned, "%v gives nothing up", s.Do)
		}
		p.need(s.Offset > at, "it does not pass the offset")
		due = due || !p.sparse(at)
	} else {
		p.need(p.role("reader").ok(), "no reader")
	}
	base, begun, committed := int64(0), uint64(math.MaxUint64), uint64(math.MaxUint64)
	for _, c := range p.steps(histories.Commit) {
		committed = min(committed, c.ret())
	}
	for _, f := range p.steps(histories.Assigned, histories.Delivered) {
		given := f.Do == histories.Delivered && f.Offset <= at && at < f.Offset+f.Number
		p.need(!given || f.outcome != histories.OK || f.end.Seq > by, "operation %d was given the offset", f.begin.Seq)
		due = due || given
		if f.outcome == histories.OK && f.Offset >= 0 && f.end.Seq < begun {
			base, begun = f.Offset, f.end.Seq
		}
		p.need(f.Do != histories.Assigned || f.outcome != histories.OK || f.end.Seq > by || f.Offset <= at || committed < f.begin.Seq, "operation %d began above it before anything was committed: a reset", f.begin.Seq)
	}
	for _, o := range p.appends {
		p.need(o.begin.Kind != histories.StartOffset || !o.ok() || o.end.Offset <= at || o.end.Seq > by, "the log starts above the offset")
	}
	p.need(due && at >= base, "the group did not have to be given the offset")
}

// sparse tells that acknowledged appends leave the offset out although they go past it: it may have no record.
func (p *proof) sparse(offset int64) bool {
	above, at := false, false
	for _, o := range p.appends {
		for k := range o.records() {
			above, at = above || k > offset, at || k == offset
		}
	}
	return above && !at
}

// neverHandedOut: acknowledged, found by nobody, and the queue said to be empty when no lost reply can have had it.
func neverHandedOut(p *proof) {
	s, e := p.step("send", true), p.step("empty", true)
	v := what(s.Step)
	p.need(s.Do == histories.Enqueue && (e.Do == histories.Dequeue || e.Do == histories.Receive) && what(e.Step) == "" && s.before(e.operation), "the queue was not found empty after it was acknowledged")
	p.need(len(p.gets(v)) == 0, "it was handed out")
	longest := int64(0)
	for _, f := range p.steps(histories.Receive, histories.Extend) {
		longest = max(longest, f.Number)
	}
	for _, f := range p.steps(histories.Receive, histories.Dequeue) {
		if f.outcome == histories.Info && f.begin.Seq < e.end.Seq {
			p.need(f.Do == histories.Receive && f.done && int64(f.end.Time)+longest <= int64(e.begin.Time), "operation %d of unknown outcome may have it", f.begin.Seq)
		}
	}
}

// leaked: two sends with one deduplication id, that came in within the window for certain, were both handed out.
func leaked(p *proof) {
	a, b := p.step("first-send", false), p.step("second-send", false)
	p.need(a.Do == histories.Enqueue && b.Do == histories.Enqueue && a.Old.Form != histories.Nil && a.Old.String() == b.Old.String() && what(a.Step) != what(b.Step), "not two sends with one deduplication id")
	between := func(send, got fact) (from, to time.Duration) { // when it came in
		p.need((got.Do == histories.Dequeue || got.Do == histories.Receive) && what(got.Step) == what(send.Step), "a message was not handed out")
		from, to = send.begin.Time, got.end.Time
		if send.outcome == histories.OK {
			to = min(to, send.end.Time)
		}
		return from, to
	}
	fromA, toA := between(a, p.step("first", true))
	fromB, toB := between(b, p.step("second", true))
	p.need(int64(max(toB-fromA, toA-fromB)) <= p.WithinNS, "they may have come in further apart than %v", time.Duration(p.WithinNS))
}
