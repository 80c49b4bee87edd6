package linearizability

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"ackproof/histories"
	"ackproof/model"
)

// sets decides sets to which elements are only added, as Jepsen's set-full does, but by intervals instead of by the order of completions:
//
//   - an element is known from the first end of an acknowledged add of it, or of a read that found it;
//   - a read that began later and has it not is lacking: nothing ever removes an element;
//   - an element is lost if a lacking read began after every read that found it had ended. Acknowledged, it breaks no-loss (lost-acked); else, having
//     been seen, no-dirty-read. If it was found again it was only stale, which breaks the opt-in claim read-after-ack;
//   - an element that nobody added, or whose adds were all refused, is a phantom; one found before its first add began is read from the future.
//
// An acknowledged element that no read found, and after whose acknowledgement none began, is undecided.
//
// Cost: O(n log n) for n operations and elements of replies; memory 4 bytes for each of the latter beyond the history. Not promised: that reads which overlap agree
// on an order of the adds (a long fork), so the claim linearizable is not made.
func (h *objects) sets(o *ObjectOptions) ([]model.ClaimResult, error) {
	loss, phantom, dirty, stale, double := newResult(model.NoLoss), newResult(model.NoPhantom), newResult(model.NoDirtyRead), newResult(model.ReadAfterAck), newResult(model.NoDuplicate)
	var all setFindings
	keys, ops := h.byKey()
	for i, key := range keys {
		h.set(key, ops[i], &all)
	}
	for _, r := range []*model.ClaimResult{&loss, &dirty, &stale} {
		r.Evidence["acked"], r.Evidence["elements"], r.Evidence["reads"] = all.acked, all.elements, all.reads
	}
	stale.Evidence["appends"] = all.acked
	loss.Evidence["read_back"], loss.Evidence["undecided"] = all.readBack, all.open
	phantom.Evidence["reads"], phantom.Evidence["found"], double.Evidence["found"] = all.reads, all.found, all.found
	phantom.Evidence["records"], double.Evidence["records"], dirty.Evidence["read_early"] = all.found, all.found, all.found
	all.lost.into(&loss, model.LostAcked, o.Places)
	all.phantom.into(&phantom, model.Phantom, o.Places)
	all.future.into(&phantom, model.FutureRead, o.Places)
	all.gone.into(&dirty, model.DirtyRead, o.Places)
	all.stale.into(&stale, model.StaleRead, o.Places)
	all.double.into(&double, model.Duplicate, o.Places)
	judged(&loss, all.why, all.acked, "no add was acknowledged")
	judged(&phantom, "", all.reads, "no read was answered")
	judged(&dirty, "", all.found, "no read found anything")
	judged(&stale, "", min(all.reads, all.acked), "no add was acknowledged, or no read was answered")
	judged(&double, "", all.found, "no read found anything")
	return []model.ClaimResult{loss, phantom, dirty, stale, double}, nil
}

// judged gives the verdict of a result whose anomalies are in.
func judged(r *model.ClaimResult, undecided string, seen int64, untested string) {
	switch {
	case len(r.Anomalies) > 0:
		r.Verdict = model.Violated
	case undecided != "":
		r.Verdict, r.Reason = model.Undecided, undecided
	case seen == 0:
		r.Verdict, r.Reason = model.NotTested, untested
	default:
		r.Verdict = model.Held
	}
}

// setFindings is what the sets of a history have to say together.
type setFindings struct {
	lost, phantom, future, gone, stale, double objectFindings
	acked, elements, reads, found, readBack    int64
	open                                       int64  // elements that are undecided
	why                                        string // of the first
}

// element is all that is known of one element of a set.
type element struct {
	value  int64
	add    int32   // the add that ended first with an acknowledgement, else the one that began first; none: nobody added it
	inv    uint64  // the first beginning of an add that was not refused
	ack    uint64  // the first acknowledgement; forever: none
	reads  []int32 // the reads that found it, as numbers in the order of their beginnings
	maxRet uint64  // the latest end of one of them
	minRet uint64  // the earliest; forever: none
	last   int32   // the read that ended last
	early  int32   // the one that ended first
	refuse int32   // an add that was refused
}

func (h *objects) set(key string, ops []int32, all *setFindings) {
	number := make(map[int64]int32)
	var elements []element          // in the order of their appearance
	get := func(v int64) *element { // until the next get
		i, known := number[v]
		if !known {
			i = int32(len(elements))
			number[v] = i
			elements = push(elements, element{value: v, add: none, refuse: none, last: none, early: none, inv: forever, ack: forever, minRet: forever})
		}
		return &elements[i]
	}
	var reads []int32 // in the order of invocation
	for _, i := range ops {
		op := &h.ops[i]
		switch s := h.of(op)[0]; {
		case s.Do == histories.Read:
			if op.outcome == histories.OK {
				reads = append(reads, i)
			}
		case op.outcome == histories.Fail:
			get(s.Value.Int).refuse = i
		default:
			e := get(s.Value.Int)
			e.inv = min(e.inv, op.inv)
			if ret := op.ret(); e.add == none || ret < e.ack {
				e.add, e.ack = i, ret
			}
		}
	}
	all.reads += int64(len(reads))
	for n, i := range reads {
		op := &h.ops[i]
		for _, v := range h.of(op)[0].Value.List {
			all.found++
			e := get(v)
			if k := len(e.reads); k > 0 && e.reads[k-1] == int32(n) {
				all.double.add(h.twice(key, e, op))
				continue
			}
			e.reads = append(e.reads, int32(n))
			if op.end > e.maxRet {
				e.maxRet, e.last = op.end, i
			}
			if op.end < e.minRet {
				e.minRet, e.early = op.end, i
			}
		}
	}
	began := func(after uint64) int { // number of the first read that began after a moment
		n, _ := slices.BinarySearchFunc(reads, after+1, func(i int32, at uint64) int { return cmp.Compare(h.ops[i].inv, at) })
		return n
	}
	for i := range elements {
		e := &elements[i]
		switch {
		case e.add == none && len(e.reads) == 0:
			continue // refused, and never seen
		case e.add == none:
			all.phantom.add(h.unadded(key, e))
			continue
		case e.minRet < e.inv:
			all.future.add(h.unborn(key, e))
		}
		all.elements++
		if e.ack != forever {
			all.acked++
			if len(e.reads) > 0 {
				all.readBack++
			}
		}
		known := min(e.ack, e.minRet)
		if known == forever {
			continue
		}
		from := began(known)
		if from == len(reads) && len(e.reads) == 0 {
			if all.open++; all.open == 1 {
				op := &h.ops[e.add]
				all.why = fmt.Sprintf("element %d%s, acknowledged to process %d at %s, was in no read, and none began later: a read at the end would settle it", e.value, inKey(key), op.process, h.over(op))
			} else if all.open == 2 {
				all.why += "; others as well"
			}
			continue
		}
		lacking := int32(len(reads)) - 1 // the last read that has it not
		for k := len(e.reads) - 1; k >= 0 && e.reads[k] == lacking; k-- {
			lacking--
		}
		if int(lacking) < from {
			continue
		}
		without := &h.ops[reads[lacking]]
		switch {
		case without.inv <= e.maxRet:
			all.stale.add(h.unfound(key, e, without, model.ReadAfterAck, model.StaleRead))
		case e.ack != forever:
			all.lost.add(h.unfound(key, e, without, model.NoLoss, model.LostAcked))
		default:
			all.gone.add(h.unfound(key, e, without, model.NoDirtyRead, model.DirtyRead))
		}
	}
}

// inKey names the object of a sentence, where it has a name.
func inKey(key string) string {
	if key == "" {
		return ""
	}
	return " of " + key
}

// unfound proves that a read lacks an element that was known before.
func (h *objects) unfound(key string, e *element, without *action, claim model.Claim, anomaly model.Anomaly) *objectFinding {
	f := h.finding(claim, anomaly, key, without).about(strconv.FormatInt(e.value, 10))
	add := &h.ops[e.add]
	text := fmt.Sprintf("Element %d%s was added by process %d and acknowledged at %s", e.value, inKey(key), add.process, h.over(add))
	if e.ack > e.minRet { // known by the read, with the add or without
		early := &h.ops[e.early]
		text = fmt.Sprintf("Process %d's read found element %d%s at %s", early.process, e.value, inKey(key), h.over(early))
		f.op("seen", early)
		if e.ack == forever {
			text += fmt.Sprintf(", which process %d had begun to add at %s", add.process, h.began(add))
		} else {
			text += fmt.Sprintf(", which process %d added and had acknowledged at %s", add.process, h.over(add))
		}
	}
	f.op("write", add)
	if anomaly == model.StaleRead {
		again := &h.ops[e.last]
		f.proof.Sentence = fmt.Sprintf("%s, but process %d's read that began at %s did not find it, though process %d's did that ended at %s.", text, without.process, h.began(without), again.process, h.over(again))
		f.op("stale", without)
		f.op("again", again)
		return f
	}
	if e.last != none && e.ack < e.maxRet {
		last := &h.ops[e.last]
		text += fmt.Sprintf(", and process %d's read still found it at %s", last.process, h.over(last))
		f.op("seen", last)
	}
	f.proof.Sentence = fmt.Sprintf("%s, but process %d's read that began at %s did not find it, and no read did afterwards.", text, without.process, h.began(without))
	f.op("final", without)
	return f
}

func (h *objects) unadded(key string, e *element) *objectFinding {
	read := &h.ops[e.early]
	f := h.finding(model.NoPhantom, model.Phantom, key, read).about(strconv.FormatInt(e.value, 10))
	f.proof.Sentence = fmt.Sprintf("Process %d's read found element %d%s at %s, which nobody ever added.", read.process, e.value, inKey(key), h.over(read))
	if e.refuse != none {
		add := &h.ops[e.refuse]
		f.proof.Sentence = fmt.Sprintf("Process %d's read found element %d%s at %s, but adding it had been refused to process %d at %s.", read.process, e.value, inKey(key), h.over(read), add.process, h.over(add))
		f.op("write", add)
	}
	f.op("reader", read)
	return f
}

func (h *objects) unborn(key string, e *element) *objectFinding {
	read := &h.ops[e.early]
	f := h.finding(model.NoPhantom, model.FutureRead, key, read).about(strconv.FormatInt(e.value, 10))
	var add *action // the one that began first
	for i := range h.ops {
		op := &h.ops[i]
		if s := h.of(op)[0]; op.inv == e.inv && s.Do == histories.Add {
			add = op
			break
		}
	}
	f.op("reader", read)
	f.op("write", add)
	f.proof.Sentence = fmt.Sprintf("Process %d's read found element %d%s at %s, but process %d only began to add it at %s.", read.process, e.value, inKey(key), h.over(read), add.process, h.began(add))
	return f
}

func (h *objects) twice(key string, e *element, read *action) *objectFinding {
	f := h.finding(model.NoDuplicate, model.Duplicate, key, read).about(strconv.FormatInt(e.value, 10))
	f.op("reader", read)
	f.proof.Sentence = fmt.Sprintf("Process %d's read at %s found element %d%s twice.", read.process, h.over(read), e.value, inKey(key))
	return f
}
