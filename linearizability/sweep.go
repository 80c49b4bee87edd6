package linearizability

import (
	"ackproof/histories"
	"ackproof/model"
)

// level is how much of the history's real time a log must keep; each includes the one before (package documentation).
type level uint8

const (
	appendOrder level = 1 // L1: appends take effect between invocation and acknowledgement
	noFuture    level = 2 // L2: a reader cannot have seen what was not yet written
	fullReads   level = 3 // L3: a reader sees everything that was there when it began
)

// bounds are the latest instants at which offsets can have come into being.
type bounds struct {
	by []instant // by[i] bounds T(base+j) for every j ≤ i… after the backward pass, min over k ≥ i
	op []int32   // the operation that set it
	of []int32   // the index k whose own bound it is
}

// upper computes D(i) = min over k ≥ i of hi(k), where hi(k) is the earliest instant by which offset k is known to have existed: the end of
// its own acknowledged append and, from L2 on, of reads that returned it and of answers that counted it.
func (h *history) upper(p *part, t *tally, l level) bounds {
	n := len(p.at)
	if cap(t.room.by) < n { // of the partition before
		t.room = bounds{make([]instant, n), make([]int32, n), make([]int32, n)}
	}
	b := bounds{t.room.by[:n], t.room.op[:n], t.room.of[:n]}
	for i := range b.by {
		b.by[i], b.op[i], b.of[i] = endless, none, int32(i)
	}
	lower := func(i int, by instant, op int32) {
		if i >= 0 && i < n && by < b.by[i] {
			b.by[i], b.op[i] = by, op
		}
	}
	for i, r := range p.at {
		if r == none || !p.trust(i, t.contract) || t.contract.Acks == 0 {
			continue
		}
		if w := h.writerOf(r); w.outcome == histories.OK &&
			(w.offset < 0 && int(h.records.at(r).position) == i || h.ackedAt(r) == p.base+int64(i)) {
			lower(i, w.end, h.records.at(r).writer)
		}
	}
	// An answer counts offsets without saying whose records they hold: where records did not stay it may have counted others.
	counted := func(end int64) int { return int(min(end-1-p.base, p.broken-1-p.base, int64(n)-1)) }
	if l >= noFuture {
		for op, o := range h.ops.of(&p.others, 0) {
			if o.outcome != histories.OK {
				continue
			}
			switch {
			case o.kind.IsRead():
				lower(int(o.last), o.end, op)
				if !t.contract.MayForget() {
					lower(counted(o.high), o.end, op)
				}
			case o.kind == histories.EndOffset && !t.contract.MayForget():
				lower(counted(o.offset), o.end, op)
			}
		}
	}
	for i := n - 2; i >= 0; i-- {
		if b.by[i+1] < b.by[i] {
			b.by[i], b.op[i], b.of[i] = b.by[i+1], b.op[i+1], b.of[i+1]
		}
	}
	return b
}

// sweep decides L2 for appends: every record must have been sent before the last instant at which its offset can have come into being. A
// failing pair is two operations: the one that was sent too late, and the one that had known a higher offset before.
func (h *history) sweep(p *part, t *tally, b bounds) {
	for i, r := range p.at {
		if r == none || !p.trust(i, t.contract) {
			continue
		}
		t.offsets++
		w := h.records.at(r).writer
		if h.ops.at(w).outcome == histories.OK {
			t.appends++
		}
		if h.ops.at(w).inv < b.by[i] {
			continue
		}
		by := h.ops.at(b.op[i])
		if int(b.of[i]) == i && by.kind.IsRead() && h.returned(by, p.base+int64(i), r) {
			continue // a future read, found where it was read
		}
		t.add(finding{claim: model.RealTimeOrder, anomaly: model.ReorderedRealtime, part: p, offset: p.base + int64(i), record: r, other: p.at[b.of[i]],
			a: w, b: b.op[i], seen: true, hidden: by.kind != histories.Append && (p.final(by) || by.kind != histories.Fetch || by.last < b.of[i])})
	}
}

// returned tells whether a read returned the record at the offset.
func (h *history) returned(o *operation, offset int64, record int32) (found bool) {
	h.chunks(o, func(from int64, first, n int32, _ histories.Run) {
		found = found || first != none && offset >= from && offset < from+int64(n) && first+int32(offset-from) == record
	})
	return found
}

// stale finds reads that L3 forbids: the reader began when an offset was known to exist, and yet found the log to end before it.
func (h *history) stale(p *part, t *tally, b bounds) {
	for op, o := range h.ops.of(&p.others, 0) {
		if o.outcome != histories.OK || o.follower { // a follower's copy trails by design
			continue
		}
		end := int64(-1) // the log's length as this operation saw it
		switch {
		case o.kind == histories.EndOffset:
			end = o.offset
		case o.kind == histories.Fetch && o.count == 0:
			end = o.offset
			if o.high >= 0 {
				end = min(end, o.high)
			}
		case o.kind == histories.Fetch:
			end = o.high
		}
		if end < 0 {
			continue
		}
		t.staleReads++
		i := max(end-p.base, 0)
		if i >= int64(len(p.at)) || b.by[i] >= o.inv {
			continue
		}
		t.add(finding{claim: model.ReadAfterAck, anomaly: model.StaleRead, part: p, offset: end, record: p.at[b.of[i]], other: none, above: p.base + int64(b.of[i]), a: op, b: b.op[i], seen: true})
	}
}

// unseen gives the appends that have records that nobody saw and that may have been written, once for each record, in the order of invocation.
func (h *history) unseen(p *part) (free []int32) {
	for op, o := range h.ops.of(&p.appends, 0) {
		if !(o.indeterminate() || o.outcome == histories.OK && o.offset < 0) {
			continue
		}
		for j := range o.count {
			if h.records.at(o.first+j).position < 0 {
				free = append(free, op)
			}
		}
	}
	return free
}

// fill decides, in a dense log, whether the offsets that nobody saw can have been filled. An append of unknown outcome that nobody saw fits a
// hole if it was sent before the hole's bound; bounds rise with offsets, so giving the earliest append to the lowest hole is a maximum matching.
func (h *history) fill(p *part, t *tally, b bounds) {
	if !t.contract.Dense {
		return
	}
	// Where acknowledged records may go, holes below them may have been filled in a log that is gone: only the final log counts.
	oneLog := t.contract.Acks == -1 && !t.contract.MayForget()
	var free []int32 // operations with unseen records, once for each, in the order of invocation; found when first asked for
	batches, unread := false, int64(0)
	hole := func(i int, certain bool) {
		if !certain {
			if unread++; unread == 1 {
				free = h.unseen(p)
			}
			if len(free) > 0 && h.ops.at(free[0]).inv < b.by[i] {
				batches = batches || h.ops.at(free[0]).count > 1
				free = free[1:]
				return
			}
		}
		t.add(finding{claim: model.OffsetAgreement, anomaly: model.UnfillableGap, part: p, offset: p.base + int64(i), record: p.at[b.of[i]], other: none, above: p.base + int64(b.of[i]), a: none, b: b.op[i], seen: true})
	}
	limit := len(p.at)
	if p.complete { // what lay behind the end of the final log is gone, and judged as such
		limit = min(limit, int(max(p.end-p.base, 0)))
	}
	for i := max(int(p.start-p.base), 0); i < limit; i++ {
		// Without a bound nobody knows of an offset as high as this.
		if p.at[i] != none || p.marks[i]&defective != 0 || b.by[i] == endless {
			continue
		}
		if p.marks[i]&passed != 0 {
			hole(i, true)
		} else if oneLog {
			hole(i, false)
		}
	}
	if batches {
		t.holes += unread
	}
}
