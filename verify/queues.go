package verify

import (
	"math"
	"slices"
	"strconv"
	"time"

	"ackproof/histories"
)

// overtaken: of two messages the later one was handed out before the first; or their numbers contradict each other, or real time.
func overtaken(p *proof) {
	if p.role("earlier") != nil {
		earlier, later := p.step("earlier", false), p.step("later", true)
		in := earlier.ret()
		if p.role("delivery") != nil {
			got := p.step("delivery", true)
			p.need(what(got.Step) == what(earlier.Step), "another message was handed out")
			in = min(in, got.end.Seq)
		}
		p.need(earlier.Do == histories.Enqueue && later.Do == histories.Enqueue && in < later.begin.Seq && earlier.Number >= later.Number && later.Number > 0, "the numbers agree with real time")
		return
	}
	a, b := p.step("first-send", true), p.step("second-send", false)
	p.need(a.Do == histories.Enqueue && b.Do == histories.Enqueue && what(a.Step) != what(b.Step), "not two sends")
	if p.role("second") == nil {
		p.need(b.outcome == histories.OK && a.Number == b.Number && a.Number > 0, "the numbers differ")
		return
	}
	got := p.step("second", true)
	p.need((got.Do == histories.Dequeue || got.Do == histories.Receive) && what(got.Step) == what(b.Step), "the second message was not handed out")
	lower, higher := a, b // numbers of their own, or of a message sent after the first was there, and of one that was there before the second was sent
	if p.role("lower") != nil {
		lower = p.step("lower", true)
		p.need(lower.Do == histories.Enqueue && a.before(lower.operation), "the message with the lower number may have been there before the first")
	}
	if p.role("higher") != nil {
		higher = p.step("higher", true)
		in := higher.ret()
		if p.role("higher-delivery") != nil {
			got := p.step("higher-delivery", true)
			p.need((got.Do == histories.Dequeue || got.Do == histories.Receive) && what(got.Step) == what(higher.Step), "another message was handed out")
			in = min(in, got.end.Seq)
		}
		p.need(higher.Do == histories.Enqueue && in < b.begin.Seq, "the message with the higher number may have been there after the second")
	}
	p.need(a.before(b.operation) || higher.outcome == histories.OK && 0 < lower.Number && lower.Number < higher.Number, "the first message was not there before the second")
	p.need(p.goneBy(a, got.end.Seq), "the first message may have been handed out before")
}

// goneBy tells that a message cannot have been handed out by a moment: it was only later; or never, and there are more such messages, each with another
// that came after it and was handed out in time, than replies that were lost.
func (p *proof) goneBy(a fact, by uint64) bool {
	for _, f := range p.gets(what(a.Step)) {
		if f.begin.Seq < by {
			return false
		}
	}
	lost, out := 0, make(map[string]uint64) // when a message was handed out first
	for _, f := range p.steps(histories.Dequeue, histories.Receive) {
		switch v := what(f.Step); {
		case f.outcome == histories.OK && v != "":
			if _, has := out[v]; !has || f.end.Seq < out[v] {
				out[v] = f.end.Seq
			}
		case f.outcome == histories.Info && f.begin.Seq < by && f.Do == histories.Receive:
			return false // it may have taken any number
		case f.outcome == histories.Info && f.begin.Seq < by:
			lost++
		}
	}
	if _, has := out[what(a.Step)]; has {
		return true
	}
	missing, sends := 0, p.every(histories.Enqueue) // one that was refused may have been handed out all the same
	for _, m := range sends {
		if _, has := out[what(m.Step)]; has || m.outcome != histories.OK {
			continue
		}
		if slices.ContainsFunc(sends, func(n fact) bool {
			at, has := out[what(n.Step)]
			return has && at <= by && (m.before(n.operation) || n.outcome == histories.OK && 0 < m.Number && m.Number < n.Number)
		}) {
			missing++
		}
	}
	return missing > lost
}

// neverEmpty: at each moment of the interval in which the queue was said to be empty something was in it: a message that was handed out only later, or more
// that never were than replies that were lost by then.
func neverEmpty(p *proof) {
	e := p.step("empty", true)
	p.need(e.Do == histories.Dequeue && what(e.Step) == "", "the queue was not said to be empty")
	first, moments := make(map[string]uint64), []uint64{e.begin.Seq}
	var lost []uint64
	for _, f := range p.steps(histories.Dequeue, histories.Receive) {
		switch v := what(f.Step); {
		case f.outcome == histories.OK && v != "":
			if _, has := first[v]; !has || f.begin.Seq < first[v] {
				first[v] = f.begin.Seq
			}
		case f.outcome == histories.Info && f.Do == histories.Dequeue:
			lost = append(lost, f.begin.Seq)
		default:
			continue
		}
		moments = append(moments, f.begin.Seq)
	}
	sends := p.steps(histories.Enqueue)
	for _, at := range moments { // just after it
		if at < e.begin.Seq || at > e.end.Seq {
			continue
		}
		later, never, gone := false, 0, 0
		for _, m := range sends {
			out, has := first[what(m.Step)]
			switch {
			case m.outcome != histories.OK || m.end.Seq > at:
			case !has:
				never++
			case out > at:
				later = true
			}
		}
		for _, l := range lost {
			if l <= at {
				gone++
			}
		}
		p.need(later || never > gone, "the queue may have been empty just after event %d", at)
	}
}

// placed is one operation about the lease of a message. of is the receive whose lease it is about, firm that it certainly had its effect.
type placed struct {
	fact
	of   uint64
	firm bool
}

// tooEarly demands that the receives of a message that overlap the time of the cited ones cannot each have found it free. Each operation takes effect at
// some moment of its own, in an order that keeps real time; in a given order the earliest moments are the best.
func tooEarly(p *proof) {
	again := p.step("again", true)
	v, from, to := what(again.Step), uint64(math.MaxUint64), again.end.Seq
	p.need(again.Do == histories.Receive, "the message was not handed out")
	for _, o := range p.cited {
		from, to = min(from, o.begin.Seq), max(to, o.end.Seq)
	}
	var all []placed
	var receives []fact
	void := uint64(math.MaxUint64) // from when on another lease may have begun that nobody knows of
	for _, f := range p.steps(histories.Receive) {
		switch {
		case f.outcome == histories.Info:
			void = min(void, f.begin.Seq)
		case f.times(v) > 0:
			if receives = append(receives, f); f.begin.Seq > to {
				void = min(void, f.begin.Seq)
			} else if f.end.Seq >= from && f.end.Seq <= to {
				all = append(all, placed{f, f.begin.Seq, true})
			} else if f.end.Seq > to {
				void = min(void, f.begin.Seq)
			}
		}
	}
	for _, f := range p.steps(histories.Ack, histories.Nack, histories.Extend) {
		of, ended := uint64(0), uint64(0) // the last receive that its process had completed
		for _, r := range receives {
			if r.begin.Process == f.begin.Process && r.before(f.operation) && r.end.Seq > ended {
				of, ended = r.begin.Seq, r.end.Seq
			}
		}
		if f.times(v) > 0 && of != 0 && f.begin.Seq <= to {
			all = append(all, placed{f, of, f.Do == histories.Extend && f.ret() < void && f.ret() <= to})
		}
	}
	legal, tried := fits(all)
	p.need(tried < searchLimit && len(all) <= 64, "there are too many orders to go through")
	p.need(!legal, "each receive may have found the message free")
}

// fits looks for an order in which each firm operation has a moment.
func fits(all []placed) (legal bool, tried int) {
	been := make(map[string]bool)
	done := make([]byte, len(all))
	var next func(holder uint64, until, at time.Duration) bool
	next = func(holder uint64, until, at time.Duration) bool {
		key := string(done) + strconv.FormatUint(holder, 10) + " " + until.String() + " " + at.String()
		if been[key] || len(been) >= searchLimit {
			return false
		}
		been[key] = true
		first, latest, left := uint64(math.MaxUint64), uint64(0), false
		for i, f := range all {
			if done[i] != 0 {
				latest = max(latest, f.begin.Seq)
			} else if f.firm {
				first, left = min(first, f.end.Seq), true
			}
		}
		if !left {
			return true
		}
		for i, f := range all {
			if done[i] != 0 || f.begin.Seq > first || f.ret() < latest {
				continue
			}
			moment := max(at, f.begin.Time)
			if f.Do == histories.Receive {
				moment = max(moment, until)
			}
			if f.outcome == histories.OK && moment > f.end.Time {
				continue
			}
			holds, ends := holder, until
			switch {
			case f.Do == histories.Receive:
				holds, ends = f.of, moment+time.Duration(f.Number)
			case f.of != holder:
			case f.Do == histories.Extend:
				ends = moment + time.Duration(f.Number)
			default:
				holds, ends = 0, 0
			}
			done[i] = 1
			if next(holds, ends, moment) {
				return true
			}
			done[i] = 0
		}
		return false
	}
	legal = next(0, 0, 0)
	return legal, len(been)
}
