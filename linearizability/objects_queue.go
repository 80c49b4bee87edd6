package linearizability

import (
	"fmt"

	"ackproof/histories"
	"ackproof/model"
)

// queues decides what went into a queue against what came out, whatever the order (Jepsen's total-queue), with intervals and unknown outcomes taken seriously:
//
//   - an element that came out and that nobody put in, or whose every enqueue was refused, is a phantom; one that came out before its first enqueue
//     began is from the future;
//   - an acknowledged element is due at the end: the last drain that was answered, or reply "empty" that began after every enqueue had ended. Due and never
//     given out, it is missing. Each dequeue of unknown outcome that began before the end was over may have taken one element, and a drain of unknown
//     outcome any number: so many of the missing are undecided, and only the rest, of which none can be pointed at if there are such, is lost-acked;
//   - an element that came out more often than it went in, acknowledged or not, is a duplicate: counted in the evidence, and a violation of the opt-in claim no-duplicate.
//
// Elements acknowledged after the end began are undecided, and all are if there is no end. Cost: O(n) for n operations and elements of replies, with a hash
// table of the elements. Not promised: any order, and that an element was not given out by a dequeue that was refused.
func (h *objects) queues(o *ObjectOptions) ([]model.ClaimResult, error) {
	loss, phantom, double := newResult(model.NoLoss), newResult(model.NoPhantom), newResult(model.NoDuplicate)
	var all queueFindings
	keys, ops := h.byKey()
	for i, key := range keys {
		h.queue(key, ops[i], &all)
	}
	loss.Evidence["acked"], loss.Evidence["dequeued"], loss.Evidence["recovered"], loss.Evidence["undecided"] = all.acked, all.dequeued, all.recovered, all.open
	loss.Evidence["duplicates"] = all.double.count
	phantom.Evidence["dequeued"], double.Evidence["dequeued"] = all.dequeued, all.dequeued
	loss.Evidence["received"], phantom.Evidence["received"], double.Evidence["received"] = all.dequeued, all.dequeued, all.dequeued
	all.lost.into(&loss, model.LostAcked, o.Places)
	all.phantom.into(&phantom, model.Phantom, o.Places)
	all.future.into(&phantom, model.FutureRead, o.Places)
	all.double.into(&double, model.Duplicate, o.Places)
	judged(&loss, all.why, all.acked, "no enqueue was acknowledged")
	judged(&phantom, "", all.dequeued, "nothing was dequeued")
	judged(&double, "", all.dequeued, "nothing was dequeued")
	return []model.ClaimResult{loss, phantom, double}, nil
}

// queueFindings is what the queues of a history have to say together.
type queueFindings struct {
	lost, phantom, future, double    objectFindings
	acked, dequeued, recovered, open int64
	why                              string // of the first queue with something open
}

// atom is a value as a key of maps.
type atom struct {
	form histories.Form
	n    int64
	text string
}

func atomOf(d histories.Datum) atom { return atom{d.Form, d.Int, d.Text} }

func (a atom) datum() histories.Datum { return histories.Datum{Form: a.form, Int: a.n, Text: a.text} }

func (a atom) String() string { return datum(a.datum()) }

// parcel is all that is known of one value of a queue.
type parcel struct {
	value           atom
	tried, acks     int   // enqueues that were not refused; those acknowledged
	put, refuse     int32 // the enqueue that was acknowledged last, else one of unknown outcome; one that was refused
	inv             uint64
	begins          int32 // the enqueue that began first
	acked           uint64
	got             int
	early, one, two int32 // the dequeue that ended first; the first two
}

func (h *objects) queue(key string, ops []int32, all *queueFindings) {
	number := make(map[atom]int32)
	var parcels []parcel          // in the order of their appearance
	get := func(a atom) *parcel { // until the next get
		i, known := number[a]
		if !known {
			i = int32(len(parcels))
			number[a] = i
			parcels = push(parcels, parcel{value: a, put: none, refuse: none, begins: none, early: none, one: none, two: none, inv: forever})
		}
		return &parcels[i]
	}
	take := func(a atom, i int32) {
		all.dequeued++
		p := get(a)
		p.got++
		switch p.got {
		case 1:
			p.one, p.early = i, i
		case 2:
			p.two = i
		}
		if h.ops[i].end < h.ops[p.early].end {
			p.early = i
		}
	}
	var entered uint64 // the end of the last enqueue that ended
	for _, i := range ops {
		if op := &h.ops[i]; h.of(op)[0].Do == histories.Enqueue {
			entered = max(entered, op.end)
		}
	}
	end := none
	for _, i := range ops {
		op := &h.ops[i]
		s := h.of(op)[0]
		switch {
		case s.Do == histories.Enqueue && op.outcome == histories.Fail:
			get(atomOf(s.Value)).refuse = i
		case s.Do == histories.Enqueue:
			p := get(atomOf(s.Value))
			p.tried++
			if op.inv < p.inv {
				p.inv, p.begins = op.inv, i
			}
			if op.outcome == histories.OK {
				p.acks++
				all.acked++
				if op.end > p.acked {
					p.acked, p.put = op.end, i
				}
			}
		case op.outcome != histories.OK:
		case s.Do == histories.Drain:
			for _, v := range s.Value.List {
				take(atom{form: histories.Int, n: v}, i)
			}
			end = i
		case s.Value.Form == histories.Nil:
			if op.inv > entered {
				end = i
			}
		default:
			take(atomOf(s.Value), i)
		}
	}
	var missing []*parcel
	lost, late := 0, 0
	var firstLate *parcel
	for i := range parcels {
		p := &parcels[i]
		switch {
		case p.tried == 0 && p.got == 0:
			continue
		case p.tried == 0:
			all.phantom.add(h.unqueued(key, p))
			continue
		case p.got > 0 && h.ops[p.early].end < p.inv:
			all.future.add(h.premature(key, p))
		}
		if p.got > p.tried {
			all.double.add(h.redelivered(key, p))
		}
		if p.got > p.acks {
			all.recovered += int64(min(p.got, p.tried) - p.acks)
		}
		if n := p.acks - p.got; n > 0 {
			if end == none || h.ops[end].inv < p.acked {
				late += n
				if firstLate == nil {
					firstLate = p
				}
				continue
			}
			lost += n
			missing = append(missing, p)
		}
	}
	// Operations of unknown outcome that may have taken what is missing.
	takers, first, drained := 0, none, false
	if end != none {
		for _, i := range ops {
			op := &h.ops[i]
			if do := h.of(op)[0].Do; op.indeterminate() && do != histories.Enqueue && op.inv <= h.ops[end].end {
				takers++
				drained = drained || do == histories.Drain
				if first == none {
					first = i
				}
			}
		}
	}
	open := late
	why := ""
	if late > 0 {
		why = fmt.Sprintf("%s%s never dequeued, the first is %v; nothing shows that the queue was empty after it was acknowledged: a drain would settle it", several(late, "acknowledged element"), inKey(key), firstLate.value)
	}
	switch {
	case lost == 0:
	case drained || lost <= takers:
		open += lost
		why = fmt.Sprintf("%s%s never dequeued, the first is %v, and %s of unknown outcome (the first is operation %d of process %d) may have taken them: their outcomes would settle it",
			several(lost, "acknowledged element"), inKey(key), missing[0].value, several(takers, "operation"), h.ops[first].inv, h.ops[first].process)
	default:
		for _, p := range missing[:min(len(missing), lost-takers)] {
			all.lost.add(h.undequeued(key, p, lost, takers, end))
		}
		open += min(takers, lost)
	}
	if all.open += int64(open); all.why == "" {
		all.why = why
	}
}

func (h *objects) undequeued(key string, p *parcel, lost, takers int, end int32) *objectFinding {
	put, last := &h.ops[p.put], &h.ops[end]
	f := h.finding(model.NoLoss, model.LostAcked, key, put).about(p.value.datum().String())
	f.op("write", put)
	f.op("end", last)
	how := fmt.Sprintf("process %d drained it from %s to %s", last.process, h.began(last), h.over(last))
	if h.of(last)[0].Do == histories.Dequeue {
		how = fmt.Sprintf("process %d found it empty from %s to %s", last.process, h.began(last), h.over(last))
	}
	f.proof.Sentence = fmt.Sprintf("Element %v was enqueued%s by process %d and acknowledged at %s, but nobody was ever given it, though %s", p.value, toKey(key), put.process, h.over(put), how)
	if takers > 0 {
		f.proof.Sentence += fmt.Sprintf("; it is one of %d such elements, of which the %s of unknown outcome can have taken %d at most", lost, several(takers, "dequeue"), takers)
	}
	f.proof.Sentence += "."
	return f
}

func toKey(key string) string {
	if key == "" {
		return ""
	}
	return " to " + key
}

func (h *objects) unqueued(key string, p *parcel) *objectFinding {
	got := &h.ops[p.early]
	f := h.finding(model.NoPhantom, model.Phantom, key, got).about(p.value.datum().String())
	f.proof.Sentence = fmt.Sprintf("Process %d was given element %v%s at %s, which nobody ever enqueued.", got.process, p.value, inKey(key), h.over(got))
	if p.refuse != none {
		put := &h.ops[p.refuse]
		f.op("write", put)
		f.proof.Sentence = fmt.Sprintf("Process %d was given element %v%s at %s, but its enqueue had been refused to process %d at %s.", got.process, p.value, inKey(key), h.over(got), put.process, h.over(put))
	}
	f.op("reader", got)
	return f
}

func (h *objects) premature(key string, p *parcel) *objectFinding {
	got, put := &h.ops[p.early], &h.ops[p.begins]
	f := h.finding(model.NoPhantom, model.FutureRead, key, got).about(p.value.datum().String())
	f.op("reader", got)
	f.op("write", put)
	f.proof.Sentence = fmt.Sprintf("Process %d was given element %v%s at %s, but process %d only began to enqueue it at %s.", got.process, p.value, inKey(key), h.over(got), put.process, h.began(put))
	return f
}

func (h *objects) redelivered(key string, p *parcel) *objectFinding {
	one, two := &h.ops[p.one], &h.ops[p.two]
	f := h.finding(model.NoDuplicate, model.Duplicate, key, two).about(p.value.datum().String())
	f.op("write", &h.ops[p.begins])
	f.op("first", one)
	f.op("second", two)
	times := "once"
	if p.tried > 1 {
		times = fmt.Sprintf("%d times", p.tried)
	}
	f.proof.Sentence = fmt.Sprintf("Element %v%s was enqueued %s, first by process %d at %s, but given out %d times, to process %d at %s and to process %d at %s.",
		p.value, inKey(key), times, h.ops[p.begins].process, h.began(&h.ops[p.begins]), p.got, one.process, h.over(one), two.process, h.over(two))
	return f
}
