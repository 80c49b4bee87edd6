package linearizability

import (
	"fmt"
	"time"

	"ackproof/histories"
	"ackproof/model"
)

// prove builds the certificate of a finding. Operations that a finding does not carry are looked for now: the last that returned a record, or
// that went past its offset.
func (t *tally) prove(f finding) *model.Certificate {
	c := &certificate{t: t, f: f, Certificate: model.Certificate{Version: 1, Claim: f.claim, Anomaly: f.anomaly, Partition: f.part.number, Offset: f.offset,
		Operations: []model.ProofOp{}}}
	h := t.h
	where := fmt.Sprintf("offset %d of %s", f.offset, f.part.name())
	switch f.anomaly {
	case model.LostAcked:
		write := c.op("write", f.a)
		ack := fmt.Sprintf("%s was acknowledged at %s at %s", c.record(f.record), where, c.ended(write))
		if f.offset < 0 {
			ack = fmt.Sprintf("%s was acknowledged in %s, without an offset, at %s", c.record(f.record), f.part.name(), c.ended(write))
		}
		pass := none
		if f.offset >= 0 {
			pass = h.passing(f.part, f.offset)
		}
		switch {
		case f.other != none && pass != none:
			c.Sentence = fmt.Sprintf("%s, but the final read that began at %s found %s at that offset.", ack, c.began(c.op("final", pass)), lower(c.record(f.other)))
		case pass != none:
			c.Sentence = fmt.Sprintf("%s, but the final read that began at %s went past that offset without it.", ack, c.began(c.op("final", pass)))
		default:
			c.Sentence = fmt.Sprintf("%s, but the log ended at %d when it was read to its end at %s, and the record was nowhere in it.", ack, f.part.end, c.began(c.op("end", f.part.endOp)))
		}
	case model.Undelivered, model.PollSkip:
		write := c.op("write", f.a)
		read := c.op("reader", f.b)
		c.Sentence = fmt.Sprintf("%s%s lies at %s, but the reader of session %d that asked from %d at %s was given records up to %d and not this one",
			c.record(f.record), c.acked(write), where, h.ops.at(f.b).session, h.ops.at(f.b).offset, c.began(read), h.reach(h.ops.at(f.b))-1)
		if f.anomaly == model.Undelivered {
			c.Sentence += ", although it read from the start to the end"
		}
		if other := h.returning(f.part, f.offset, f.record, f.b); other != none {
			c.Sentence += fmt.Sprintf("; another read at %s returned it", c.began(c.op("witness", other)))
		}
		c.Sentence += "."
	case model.NonmonotonicPoll:
		if f.a == none || f.a == f.b {
			c.Sentence = fmt.Sprintf("The read of session %d that asked %s from %d at %s was given offset %d after it had been past it.", h.ops.at(f.b).session, f.part.name(), h.ops.at(f.b).offset, c.began(c.op("reader", f.b)), f.offset)
			break
		}
		before := c.op("before", f.a)
		c.Sentence = fmt.Sprintf("Session %d had read %s up to offset %d at %s, but its next read at %s was given offset %d.", h.ops.at(f.b).session, f.part.name(), h.reach(h.ops.at(f.a))-1, c.ended(before), c.ended(c.op("reader", f.b)), f.offset)
	case model.Reordered:
		later := c.op("later", f.a)
		earlier := later // both may have been sent by one append
		if f.b != f.a {
			earlier = c.op("earlier", f.b)
		}
		c.Sentence = fmt.Sprintf("%s%s lies at %s, but %s%s, which the same producer sent before it, lies behind it at offset %d",
			c.record(f.record), c.acked(later), where, lower(c.record(f.other)), c.acked(earlier), f.part.base+int64(h.records.at(f.other).position))
		if r := h.returning(f.part, f.offset, f.record, none); r != none {
			c.Sentence += fmt.Sprintf(", as the read at %s found", c.began(c.op("reader", r)))
		}
		c.Sentence += "."
		if behind := f.part.base + int64(h.records.at(f.other).position); h.ackedAt(f.other) != behind {
			c.opIf("witness", h.returning(f.part, behind, f.other, none))
		}
	case model.ReorderedRealtime:
		late := c.op("late", f.a)
		by := h.ops.at(f.b)
		known := "the end of the log was known to lie above it"
		switch known0 := c.op("known", f.b); {
		case by.kind == histories.Append:
			known = fmt.Sprintf("%s had been acknowledged at offset %d at %s", lower(c.record(f.other)), h.ackedAt(f.other), c.ended(known0))
			if h.ackedAt(f.other) < 0 {
				known = fmt.Sprintf("%s, which lies above it, had been acknowledged at %s", lower(c.record(f.other)), c.ended(known0))
			}
		case by.kind.IsRead() && f.other != none:
			known = fmt.Sprintf("%s had been read above it at %s", lower(c.record(f.other)), c.ended(known0))
		case by.kind == histories.EndOffset:
			known = fmt.Sprintf("the end of the log had been answered as %d at %s", by.offset, c.ended(known0))
		}
		c.Sentence = fmt.Sprintf("%s was sent at %s, after %s, and yet lies at %s.", c.record(f.record), c.began(late), known, where)
		if h.ackedAt(f.record) != f.offset {
			c.opIf("reader", h.returning(f.part, f.offset, f.record, none))
		}
	case model.InconsistentOffset:
		t.proveConflict(c, where)
	case model.ReplicaDivergence:
		copyOp := c.op("copy", f.b)
		there := "nothing"
		if f.other != none {
			there = lower(c.record(f.other))
		}
		c.Sentence = fmt.Sprintf("At %s the copy on node %d holds %s, as its final read at %s found", where, h.ops.at(f.b).node, there, c.began(copyOp))
		if other := h.returning(f.part, f.offset, f.record, f.b); other != none {
			who := "the log"
			if h.ops.at(other).kind == histories.CopyRead {
				who = fmt.Sprintf("the copy on node %d", h.ops.at(other).node)
			}
			c.Sentence += fmt.Sprintf(", but %s holds %s, as the read at %s found", who, lower(c.record(f.record)), c.began(c.op("other", other)))
		}
		c.Sentence += "."
	case model.UnfillableGap:
		by := c.op("known", f.b)
		if pass := h.passing(f.part, f.offset); pass != none {
			c.Sentence = fmt.Sprintf("There is no record at %s: the final read that began at %s went past it, and no append can have filled it since offset %d existed at %s.", where, c.began(c.op("final", pass)), f.above, c.ended(by))
		} else {
			c.Sentence = fmt.Sprintf("Offset %d of %s existed at %s, but nobody saw offset %d, and no append of unknown outcome that was sent before can have filled it.", f.above, f.part.name(), c.ended(by), f.offset)
		}
	case model.Phantom:
		read := c.op("reader", f.b)
		if f.record == none {
			c.Sentence = fmt.Sprintf("The read at %s returned a value at %s that nobody ever sent.", c.ended(read), where)
		} else {
			c.Sentence = fmt.Sprintf("%s was refused with code %d at %s, but the read at %s returned it at %s.", c.record(f.record), h.ops.at(f.a).code, c.ended(c.op("write", f.a)), c.ended(read), where)
		}
	case model.FutureRead:
		c.Sentence = fmt.Sprintf("The read that ended at %s returned %s at %s, but that record was only sent at %s.", c.ended(c.op("reader", f.b)), lower(c.record(f.record)), where, c.began(c.op("write", f.a)))
	case model.CorruptValue:
		c.Sentence = fmt.Sprintf("The read at %s returned a value at %s whose checksum is wrong.", c.ended(c.op("reader", f.b)), where)
	case model.ForeignRecord:
		if f.record == none {
			c.Sentence = fmt.Sprintf("The read at %s returned a record at %s that was written in another run, topic or partition.", c.ended(c.op("reader", f.b)), where)
		} else {
			c.Sentence = fmt.Sprintf("%s was sent to p%d, but the read at %s returned it at %s.", c.record(f.record), h.ops.at(f.a).partition, c.ended(c.op("reader", f.b)), where)
			c.op("write", f.a)
		}
	case model.DirtyRead:
		c.Sentence = fmt.Sprintf("The read at %s returned %s at %s, but ", c.ended(c.op("reader", f.a)), lower(c.record(f.record)), where)
		pass := h.passing(f.part, f.offset)
		switch {
		case pass != none && f.other != none:
			c.Sentence += fmt.Sprintf("the final read that began at %s found %s there.", c.began(c.op("final", pass)), lower(c.record(f.other)))
		case pass != none:
			c.Sentence += fmt.Sprintf("the final read that began at %s went past that offset without it.", c.began(c.op("final", pass)))
		default:
			c.Sentence += fmt.Sprintf("the log ended at %d when it was read to its end at %s.", f.part.end, c.began(c.op("end", f.part.endOp)))
		}
		c.opIf("write", h.records.at(f.record).writer)
	case model.Duplicate:
		first := f.part.base + int64(h.records.at(f.record).position)
		write := c.op("write", h.records.at(f.record).writer)
		c.Sentence = fmt.Sprintf("%s, sent once at %s, stands at offset %d and again at offset %d of %s", c.record(f.record), c.began(write), min(first, f.offset), max(first, f.offset), f.part.name())
		a, b := h.returning(f.part, min(first, f.offset), f.record, none), h.returning(f.part, max(first, f.offset), f.record, none)
		switch {
		case a != none && b != none && a != b:
			c.Sentence += fmt.Sprintf(", as the reads at %s and %s found", c.began(c.op("first", a)), c.began(c.op("second", b)))
		case a != none || b != none:
			c.Sentence += fmt.Sprintf(", as the read at %s found", c.began(c.op("reader", max(a, b))))
		}
		c.Sentence += "."
	case model.StaleEndOffset, model.StartOffsetBackwards, model.StartAboveHW:
		before, after := h.ops.at(f.a), h.ops.at(f.b)
		c.Sentence = fmt.Sprintf("The %s of %s was %d in leader epoch %d when answered at %s, but the %s asked for at %s was %d in epoch %d.",
			bound(before.kind), f.part.name(), before.offset, before.epoch, c.ended(c.op("before", f.a)), bound(after.kind), c.began(c.op("after", f.b)), after.offset, after.epoch)
	case model.StaleRead:
		stale := h.ops.at(f.a)
		saw := "nothing from " + fmt.Sprint(f.offset) + " on"
		if stale.kind == histories.EndOffset || stale.count > 0 {
			saw = fmt.Sprintf("the log end at %d", f.offset)
		}
		c.Sentence = fmt.Sprintf("Offset %d of %s existed when %s ended at %s, but the %s of process %d that began at %s saw %s.",
			f.above, f.part.name(), lower(the(h.ops.at(f.b).kind)), c.ended(c.op("known", f.b)), stale.kind, stale.process, c.began(c.op("stale", f.a)), saw)
	}
	return &c.Certificate
}

// proveConflict explains one offset with two records, or one record acknowledged at an offset where the log has it not.
func (t *tally) proveConflict(c *certificate, where string) {
	f, h := c.f, t.h
	one := f.a // the operation that saw f.record at the offset
	if one == none {
		one = h.returning(f.part, f.offset, f.record, f.b)
	}
	if one == none {
		one = h.records.at(f.record).writer
	}
	first := c.claim(one, f.record, where)
	if f.other == none {
		elsewhere := f.part.base + int64(h.records.at(f.record).position)
		c.Sentence = first + fmt.Sprintf(", but the log has it at offset %d", elsewhere)
		if r := h.returning(f.part, elsewhere, f.record, one); r != none {
			c.Sentence += fmt.Sprintf(", as the read at %s found", c.began(c.op("reader", r)))
		}
		c.Sentence += "."
		return
	}
	two := f.b
	if two == none {
		two = h.returning(f.part, f.offset, f.other, one)
	}
	if two == none {
		two = h.records.at(f.other).writer
	}
	second := c.claim(two, f.other, "that offset")
	c.Sentence = first + ", but " + lower(second) + "."
}

// certificate is a model.Certificate in the making.
type certificate struct {
	model.Certificate
	t *tally
	f finding
}

// op adds an operation with its part in the sentence and returns its number in the history.
func (c *certificate) op(role string, i int32) int32 {
	o := c.t.h.ops.at(i)
	begin, end := c.t.h.moments.at(o.inv), c.t.h.moments.at(o.end)
	p := model.ProofOp{Role: role, Op: begin.seq, Invoked: int64(begin.time), Ended: -1, EndSeq: end.seq, Process: o.process, What: o.kind.String(), Text: c.t.h.describe(o), Quote: c.quote(i)}
	if o.end != 0 {
		p.Ended = int64(end.time)
	}
	c.Operations = append(c.Operations, p)
	return i
}

// opIf adds an operation that the sentence can do without.
func (c *certificate) opIf(role string, i int32) {
	if i != none && len(c.Operations) < 4 {
		c.op(role, i)
	}
}

func (c *certificate) began(i int32) string { return stamp(c.t.h.moments.at(c.t.h.ops.at(i).inv).time) }
func (c *certificate) ended(i int32) string { return stamp(c.t.h.moments.at(c.t.h.ops.at(i).end).time) }

// record names a record at the beginning of a sentence.
func (c *certificate) record(r int32) string {
	producer, seq := c.t.h.value(r)
	if producer < 0 { // a value without a producer of its own
		return fmt.Sprintf("Value %d", seq)
	}
	return fmt.Sprintf("Record %d of producer %d", seq, producer)
}

// acked adds the acknowledgement to a record's name, if there was one.
func (c *certificate) acked(i int32) string {
	if o := c.t.h.ops.at(i); o.outcome == histories.OK {
		return fmt.Sprintf(" (acknowledged at %s)", c.ended(i))
	}
	return ""
}

// claim says how an operation puts a record at an offset.
func (c *certificate) claim(i, record int32, where string) string {
	if c.t.h.ops.at(i).kind == histories.Append {
		return fmt.Sprintf("%s was acknowledged at %s at %s", c.record(record), where, c.ended(c.op("write", i)))
	}
	return fmt.Sprintf("The read at %s found %s at %s", c.ended(c.op("reader", i)), lower(c.record(record)), where)
}

func bound(k histories.Kind) string {
	if k == histories.EndOffset {
		return "visible end"
	}
	return "start"
}

func the(k histories.Kind) string {
	if k == histories.Append {
		return "an append"
	}
	return "a " + k.String()
}

// lower begins a name in the middle of a sentence.
func lower(s string) string {
	if len(s) > 1 && s[0] >= 'A' && s[0] <= 'Z' {
		return string(s[0]+'a'-'A') + s[1:]
	}
	return s
}

// stamp prints a time since the start of the run, to the microsecond; what is shorter, as it is.
func stamp(d time.Duration) string {
	if d < time.Millisecond {
		return d.String()
	}
	return d.Round(time.Microsecond).String()
}

// passing finds the last read of the drain that went past an offset.
func (h *history) passing(p *part, offset int64) int32 {
	found := none
	for i, o := range h.ops.of(&p.others, p.drain) {
		if p.final(o) && o.kind.IsRead() && o.count > 0 && o.offset <= offset && h.reach(o) > offset {
			if found == none || o.kind == histories.Fetch || h.ops.at(found).kind == histories.CopyRead {
				found = i
			}
		}
	}
	return found
}

// returning finds the last read, other than one, that returned a record at an offset.
func (h *history) returning(p *part, offset int64, record, but int32) int32 {
	found := none
	for i, o := range h.ops.of(&p.others, 0) {
		if i != but && o.kind.IsRead() && o.outcome == histories.OK && h.returned(o, offset, record) {
			found = i
		}
	}
	return found
}

// describe is one line about an operation, for people.
func (h *history) describe(o *operation) string {
	result := "no answer"
	switch o.outcome {
	case histories.OK:
		result = "ok"
	case histories.Fail:
		result = fmt.Sprintf("refused (%d)", o.code)
	case histories.Info:
		result = fmt.Sprintf("unknown outcome (%d)", o.code)
	}
	switch o.kind {
	case histories.Append:
		producer, seq := h.value(o.first)
		text := fmt.Sprintf("append of %d from record %d of producer %d to p%d: %s", o.count, seq, producer, o.partition, result)
		if producer < 0 {
			text = fmt.Sprintf("append of %d from value %d to p%d: %s", o.count, seq, o.partition, result)
		}
		if o.offset >= 0 {
			text += fmt.Sprintf(", offset %d", o.offset)
		}
		return text
	case histories.Fetch, histories.CopyRead:
		text := fmt.Sprintf("%s of p%d from %d", o.kind, o.partition, o.offset)
		if o.kind == histories.CopyRead {
			text += fmt.Sprintf(" on node %d", o.node)
		}
		text += ": " + result
		if o.outcome == histories.OK && o.count == 0 {
			text += ", empty"
		} else if o.count > 0 {
			runs := h.reply(o)
			text += fmt.Sprintf(", offsets %d to %d", runs[0].offset, h.reach(o)-1)
		}
		return text
	}
	text := fmt.Sprintf("%s of p%d: %s", o.kind, o.partition, result)
	if o.outcome == histories.OK {
		text += fmt.Sprintf(", %d", o.offset)
		if o.epoch >= 0 {
			text += fmt.Sprintf(" in epoch %d", o.epoch)
		}
	}
	return text
}
