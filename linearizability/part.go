package linearizability

import (
	"fmt"
	"math"

	"ackproof/histories"
	"ackproof/model"
)

// none is the record number of an offset whose record is not known.
const none int32 = -1

// part is one partition's log as the history tells it. Offsets are kept relative to base.
type part struct {
	number int32
	place  int // in history.parts

	// What it has of the history's blocks. Operations are in the order of invocation.
	appends, others lane
	runs, records   lane
	outage          outage
	told            told
	acked           instant // when the last append was acknowledged
	answers         []int32 // starts and ends of the log that a leader of a known epoch answered, in the order in which they ended

	base  int64   // lowest offset that anything is known of
	at    []int32 // record at base+i
	marks []mark
	start int64 // largest start of the log that was ever answered; nothing below is required

	// The final log, as the reads of the drain found it.
	finalFrom instant // reads invoked later belong to the drain
	drain     int     // the first of others that was
	end       int64   // where the log ends
	endOp     int32   // the last operation that says so, −1 if none does
	broken    int64   // from here on some record that was acknowledged or read did not stay: what was known of the log's length there is void
	complete  bool    // the final log was read from start to end, so what is not in it is gone
	why       string  // why it is not complete

	known []int32 // known[i]: trusted offsets below base+i
}

// mark is what is known about one offset.
type mark uint8

const (
	seenEarly mark = 1 << iota // a read before the drain returned its record
	seenFinal                  // a read of the drain returned its record
	passed                     // a read of the drain went past it
	defective                  // some read returned a value there that nobody may have written
)

// told is what answers say of the offsets of a partition.
type told struct {
	low, high   int64 // of the offsets of records
	known       int64 // so many records
	most, least int64 // largest end of the log, and smallest above 0
}

// records notes records from an offset on, −1 unknown.
func (t *told) records(from, n int64) {
	if t.known += n; from >= 0 {
		t.low, t.high = min(t.low, from), max(t.high, from+n-1)
	}
}

// end notes an end of the log.
func (t *told) end(offset int64) {
	if t.most = max(t.most, offset); offset > 0 {
		t.least = min(t.least, offset)
	}
}

// index of an offset; ok is false outside of what is known.
func (p *part) index(offset int64) (i int, ok bool) {
	d := offset - p.base
	return int(d), d >= 0 && d < int64(len(p.at))
}

// name is "p3".
func (p *part) name() string { return fmt.Sprintf("p%d", p.number) }

// extent finds the base, the number of offsets, and where the drain begins for this partition.
func (h *history) extent(p *part) error {
	low, high, known := p.told.low, p.told.high, p.told.known
	p.finalFrom, p.endOp, p.end, p.broken = h.drain, none, -1, math.MaxInt64
	if h.drain == 0 {
		p.finalFrom = p.acked
	}
	p.drain = h.after(&p.others, p.finalFrom)
	// Arrays are as long as the offsets reach: far more offsets than records is damage, or not a log that this checker is for.
	room := 64*known + 1<<20
	if high >= 0 && high-low >= room {
		return fmt.Errorf("%w: partition %d: %d records spread over %d offsets from %d on, expected at most 64 offsets a record",
			histories.ErrMalformed, p.number, known, high-low+1, low)
	}
	// A log begins at its start. One whose first known record lies far above began before the history did.
	// Below the start lie the ends that were told of before it rose.
	p.base = min(low, p.start, p.told.least-1)
	if high >= 0 && high-p.base >= room {
		p.base = low
	}
	// Offsets that an answer counted exist, even if nobody saw their records.
	high = max(high, min(p.told.most-1, p.base+room-1))
	p.at = make([]int32, max(0, high-p.base+1))
	for i := range p.at {
		p.at[i] = none
	}
	p.marks = make([]mark, len(p.at))
	return nil
}

// chunks splits a reply into stretches of records that were written one after the other. record is none for values that nobody wrote; then
// n is 1 and r says what the value is.
func (h *history) chunks(o *operation, f func(offset int64, record, n int32, r histories.Run)) {
	for _, known := range h.reply(o) {
		if known.first >= 0 {
			f(known.offset, known.first, known.count, histories.Run{})
			continue
		}
		for r := h.strange[^known.first]; r.Count > 0; {
			record, n := none, int32(1)
			if r.Defect == histories.Sound {
				if rec, follow := h.find(r.Producer, r.Sequence, r.Count); rec >= 0 {
					record, n = rec, follow
				}
			}
			f(r.Offset, record, n, r)
			r.Offset += int64(n)
			r.Sequence += int64(n)
			r.Count -= n
		}
	}
}

// reach is the position after a reply: one more than its largest offset, or what was asked for if that is more.
func (h *history) reach(o *operation) int64 {
	to := o.offset
	for _, r := range h.reply(o) {
		to = max(to, r.offset+int64(r.count))
	}
	return to
}

// final tells whether an operation belongs to the drain and has an answer.
func (p *part) final(o *operation) bool { return o.outcome == histories.OK && o.inv > p.finalFrom }

// settle finds the log of a partition: from the reads of the drain first, then from earlier reads, then from acknowledgements; whatever
// disagrees with it is a finding.
func (h *history) settle(p *part, t *tally, drained bool, whyNot string) {
	h.findEnd(p)
	for _, kind := range [...]histories.Kind{histories.Fetch, histories.CopyRead} {
		for op, o := range h.ops.of(&p.others, p.drain) {
			if o.kind == kind && p.final(o) {
				h.finalRead(p, t, op)
			}
		}
	}
	h.judgeComplete(p, drained, whyNot)
	for i, r := range p.at {
		if r != none && h.records.at(r).position < 0 {
			h.records.at(r).position = int32(i)
		}
	}
	h.compareCopies(p, t)
	for op, o := range h.ops.of(&p.others, 0) {
		if o.kind.IsRead() && o.outcome == histories.OK && !p.final(o) {
			h.earlyRead(p, t, op)
		}
	}
	for _, m := range p.marks {
		if m&seenEarly != 0 {
			t.readEarly++
		}
	}
	for op, o := range h.ops.of(&p.appends, 0) {
		switch {
		case o.outcome == histories.OK:
			h.acknowledged(p, t, op)
		case o.indeterminate():
			t.records.Indeterminate += int64(o.count)
		}
	}
	p.known = make([]int32, len(p.at)+1)
	for i, r := range p.at {
		p.known[i+1] = p.known[i]
		if r == none {
			continue
		}
		if p.trust(i, t.contract) {
			p.known[i+1]++
		}
		if at := &h.records.at(r).position; *at < 0 {
			*at = int32(i)
		} else if int(*at) != i {
			t.add(finding{claim: model.NoDuplicate, anomaly: model.Duplicate, part: p, offset: p.base + int64(i), record: r, other: none, a: none, b: none})
		}
	}
}

// findEnd finds where the drain saw the log end: at the largest end or position that any of its operations knew.
func (h *history) findEnd(p *part) {
	for op, o := range h.ops.of(&p.others, p.drain) {
		if !p.final(o) || o.kind == histories.StartOffset {
			continue
		}
		end, proves := o.offset, true
		if o.kind.IsRead() {
			end, proves = h.reach(o), o.count == 0
		}
		if end > p.end {
			p.end, p.endOp = end, none
		}
		if end == p.end && proves {
			p.endOp = op
		}
	}
}

// finalRead takes one reply of the drain for what the log holds.
func (h *history) finalRead(p *part, t *tally, op int32) {
	o := h.ops.at(op)
	if o.count > 0 {
		to := min(h.reach(o)-p.base, int64(len(p.at)))
		for i := max(o.offset-p.base, 0); i < to; i++ {
			p.marks[i] |= passed
		}
	}
	h.chunks(o, func(offset int64, record, n int32, r histories.Run) {
		t.records.Read += int64(n)
		for ; n > 0; n, offset, record = n-1, offset+1, record+1 {
			i := offset - p.base
			if record == none || !h.genuine(p, t, op, offset, record) {
				if record == none {
					h.notWritten(p, t, op, offset, r)
				}
				p.marks[i] |= defective
				continue
			}
			p.marks[i] |= seenFinal
			switch known := p.at[i]; {
			case known == none:
				p.at[i] = record
				o.last = max(o.last, int32(i))
			case known == record:
				t.compared++
				o.last = max(o.last, int32(i))
			default:
				f := finding{part: p, offset: offset, record: known, other: record, a: none, b: op, seen: true,
					claim: model.OffsetAgreement, anomaly: model.InconsistentOffset}
				if o.kind == histories.CopyRead {
					f.anomaly = model.ReplicaDivergence
				}
				t.add(f)
			}
		}
	})
}

// judgeComplete decides whether the final log is known from start to end.
func (h *history) judgeComplete(p *part, drained bool, whyNot string) {
	p.complete = false
	switch {
	case !drained:
		p.why = whyNot
		if p.why == "" {
			p.why = "the drain was not completed"
		}
		return
	case p.endOp == none:
		p.why = fmt.Sprintf("no read of the drain reached the end of %s", p.name())
		return
	case p.end > p.base+int64(len(p.at)):
		p.why = fmt.Sprintf("%s ends at %d, but nothing was read there", p.name(), p.end)
		return
	}
	covered := p.start // a prefix [start, covered) of the log was passed
	for covered < p.end {
		if i, ok := p.index(covered); !ok || p.marks[i]&passed == 0 {
			break
		}
		covered++
	}
	if covered < p.end {
		p.why = fmt.Sprintf("%s was not read from offset %d to its end %d", p.name(), covered, p.end)
		return
	}
	ends := make(map[int32]int64)
	for _, o := range h.ops.of(&p.others, p.drain) {
		if p.final(o) && o.kind == histories.CopyEnd {
			ends[o.node] = o.offset
		}
	}
	for _, end := range ends {
		if end != p.end {
			p.why = fmt.Sprintf("the copies of %s do not agree on its end: one ends at %d, another at %d", p.name(), min(end, p.end), max(end, p.end))
			return
		}
	}
	p.complete = true
}

// compareCopies finds records that the drain found, but not on a copy whose read went past them.
func (h *history) compareCopies(p *part, t *tally) {
	for op, o := range h.ops.of(&p.others, p.drain) {
		if o.kind != histories.CopyRead || !p.final(o) || o.count == 0 {
			continue
		}
		h.gaps(o, o.offset, func(from, to int64) {
			for k := max(from, p.base, p.start); k < to; k++ {
				if at, ok := p.index(k); ok && p.at[at] != none {
					t.add(finding{claim: model.OffsetAgreement, anomaly: model.ReplicaDivergence, part: p, offset: k, record: p.at[at], other: none, a: none, b: op, seen: true})
				}
			}
		})
	}
}

// gaps gives the stretches [from, to) that a reply went past without a record, from position on.
func (h *history) gaps(o *operation, position int64, f func(from, to int64)) {
	for _, r := range h.reply(o) {
		if r.offset > position {
			f(position, r.offset)
		}
		position = max(position, r.offset+int64(r.count))
	}
}

// genuine tells whether a written record may be read at all by this operation; if not, that is a finding.
func (h *history) genuine(p *part, t *tally, op int32, offset int64, record int32) bool {
	w := h.writerOf(record)
	var anomaly model.Anomaly
	switch {
	case w.partition != p.number:
		anomaly = model.ForeignRecord
	case w.outcome == histories.Fail:
		anomaly = model.Phantom
	case w.inv > h.ops.at(op).end:
		anomaly = model.FutureRead
	default:
		return true
	}
	t.add(finding{claim: model.NoPhantom, anomaly: anomaly, part: p, offset: offset, record: record, other: none, a: h.records.at(record).writer, b: op, seen: true})
	return anomaly == model.FutureRead // it is the record of that offset all the same
}

// notWritten is the finding about a value that no operation wrote.
func (h *history) notWritten(p *part, t *tally, op int32, offset int64, r histories.Run) {
	f := finding{claim: model.NoPhantom, anomaly: model.Phantom, part: p, offset: offset, record: none, other: none, a: none, b: op, seen: true}
	switch r.Defect {
	case histories.Corrupt:
		f.anomaly = model.CorruptValue
	case histories.Foreign:
		f.anomaly = model.ForeignRecord
	}
	t.add(f)
}

// earlyRead compares a read before the drain with the log; what it returned must stay.
func (h *history) earlyRead(p *part, t *tally, op int32) {
	o := h.ops.at(op)
	h.chunks(o, func(offset int64, record, n int32, r histories.Run) {
		t.records.Read += int64(n)
		for ; n > 0; n, offset, record = n-1, offset+1, record+1 {
			i := offset - p.base
			if record == none {
				h.notWritten(p, t, op, offset, r)
				p.marks[i] |= defective
				continue
			}
			if !h.genuine(p, t, op, offset, record) {
				p.marks[i] |= defective
				continue
			}
			known := p.at[i]
			p.marks[i] |= seenEarly
			if known == record {
				t.compared++
				if p.trust(int(i), t.contract) {
					o.last = max(o.last, int32(i))
				}
				continue
			}
			final := h.records.at(record).position // where the final log has the record
			conflict := finding{claim: model.OffsetAgreement, anomaly: model.InconsistentOffset, part: p, offset: offset, record: record, other: known, a: op, b: none, seen: true}
			gone := p.marks[i]&passed != 0 || p.complete && offset >= p.end && o.end < h.ops.at(p.endOp).inv
			switch {
			case known == none && !gone && !(p.complete && offset >= p.end):
				p.at[i] = record
				if p.trust(int(i), t.contract) {
					o.last = max(o.last, int32(i))
				}
			case known != none, final >= 0:
				t.add(conflict)
			}
			switch {
			case offset < p.start || final >= 0 && !gone:
			case gone: // also if the record came to stand elsewhere: whoever read it holds an offset that is another's
				t.add(finding{claim: model.NoDirtyRead, anomaly: model.DirtyRead, part: p, offset: offset, record: record, other: known, a: op, b: none, seen: true})
			default:
				t.openReads++
				t.unread[p]++
			}
		}
	})
}

// acknowledged compares an acknowledged append with the log.
func (h *history) acknowledged(p *part, t *tally, op int32) {
	o := h.ops.at(op)
	t.records.Acked += int64(o.count)
	for j := range o.count {
		record := o.first + j
		final := h.records.at(record).position
		if o.offset < 0 {
			switch {
			case final >= 0:
				t.readBack++
			case p.start > 0:
				t.trimmed++
			case p.complete && o.end < p.finalFrom:
				t.add(finding{claim: model.NoLoss, anomaly: model.LostAcked, part: p, offset: -1, record: record, other: none, a: op, b: none})
			default:
				t.openAcks++
				t.unread[p]++
			}
			continue
		}
		offset := o.offset + int64(j)
		i := offset - p.base
		known := p.at[i]
		if known == record {
			switch {
			case p.marks[i]&seenFinal != 0:
				t.readBack++
			case offset < p.start:
				t.trimmed++
			default:
				t.openAcks++
				t.unread[p]++
			}
			continue
		}
		gone := p.marks[i]&passed != 0 || p.complete && offset >= p.end && o.end < h.ops.at(p.endOp).inv
		if known != none || final >= 0 {
			t.add(finding{claim: model.OffsetAgreement, anomaly: model.InconsistentOffset, part: p, offset: offset, record: record, other: known, a: op, b: none})
		}
		switch {
		case final >= 0:
			t.readBack++
		case gone && offset >= p.start:
			t.add(finding{claim: model.NoLoss, anomaly: model.LostAcked, part: p, offset: offset, record: record, other: known, a: op, b: none})
		case offset < p.start:
			t.trimmed++
		default:
			t.openAcks++
			t.unread[p]++
		}
		if known == none && final < 0 && (!gone || offset < p.start) {
			p.at[i] = record
		}
	}
}

// trust tells whether what is known of an offset is known of the one log that lasts: under a contract that lets a leader take acknowledged
// records with it, an acknowledgement alone says nothing, and under unclean election only the final log does.
func (p *part) trust(i int, c model.Contract) bool {
	switch {
	case p.at[i] == none:
		return false
	case p.marks[i]&seenFinal != 0:
		return true
	case c.MayForget():
		return false
	case p.marks[i]&seenEarly != 0:
		return true
	}
	return c.Acks == -1
}
