package linearizability

import (
	"fmt"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"

	"ackproof/histories"
)

const (
	windowLeast = 64   // operations, if quiet moments allow
	windowMax   = 8000 // porcupine takes n²/8 bytes
)

// window is a stretch of one partition's history between two quiet moments: no append that was acknowledged is in progress, and the log's
// length is known. Its log begins at from and is to long at its end. An append of unknown outcome belongs to the window of the offset at which it
// was found, and one that was found nowhere to none.
type window struct {
	part           *part
	h              *history
	from, to       int64
	fromSeq, toSeq uint64
	ops            []porcupine.Operation
	suspect        suspicion
	unread         bool // some offset's record is not known, so that porcupine has nothing to go by
}

// The model's operations. Its state is the length of the log. Content is checked against the settled log, so that two operations that want
// different records at one offset cannot both be legal.
type (
	// put appends n records at a known offset; lasting tells that the log still holds them there.
	put struct {
		offset, n int64
		lasting   bool
	}
	// look needs a log of at least length; sound tells that all it returned is in the log.
	look struct {
		length int64
		sound  bool
	}
	// closing is the window's end: exactly length, with every record of the window known and written.
	closing struct {
		length int64
		sound  bool
	}
)

// model is an append-only log in Kafka's terms: appends in real time at the offsets given, reads never from the future and never of anything
// else than what lasts, but not necessarily fresh (L1 and L2).
func (w *window) model() porcupine.Model {
	dense := w.h.tally.contract.Dense
	return porcupine.Model{
		Init: func() any { return w.from },
		Step: func(state, input, _ any) (bool, any) {
			length := state.(int64)
			switch in := input.(type) {
			case put:
				next := in.offset == length || !dense && in.offset > length
				return in.lasting && next, in.offset + in.n
			case look:
				return in.sound && length >= in.length, length
			case closing:
				return in.sound && length == in.length, length
			}
			return false, state
		},
		DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%T%+v", input, input) },
	}
}

// windows cuts a partition's history.
func (h *history) windows(p *part) []*window {
	if len(p.at) == 0 {
		return nil
	}
	cuts := h.cuts(p)
	var out []*window
	for i := 1; i < len(cuts); i++ {
		a, b := cuts[i-1], cuts[i]
		out = append(out, &window{part: p, h: h, from: a.length, to: b.length, fromSeq: a.seq, toSeq: b.seq})
	}
	// Appends that were acknowledged belong to the window of their time; reads to the window in which they ended.
	byTime := func(seq uint64) *window {
		i, _ := slices.BinarySearchFunc(out, seq, func(w *window, s uint64) int { return cmpInt(w.toSeq, s) })
		if i == len(out) {
			return nil
		}
		return out[i]
	}
	for _, i := range p.ops {
		o := &h.ops[i]
		if o.outcome != histories.OK {
			continue
		}
		w := byTime(o.end)
		if w == nil {
			continue
		}
		switch {
		case o.kind == histories.Append:
			w.append(i)
		case o.kind == histories.Fetch && o.runs > 0 && !p.final(o):
			w.read(i)
		}
	}
	for _, w := range out {
		w.settled()
	}
	return slices.DeleteFunc(out, func(w *window) bool { return len(w.ops) <= 1 })
}

// cut is a quiet moment: just after event seq the log was length long, as far as is known.
type cut struct {
	seq    uint64
	length int64
}

// cuts finds quiet moments, at least windowLeast operations apart. The first is the beginning and the last the end of everything.
func (h *history) cuts(p *part) []cut {
	type event struct {
		seq  uint64
		op   int32
		done bool
	}
	var events []event
	for _, i := range p.ops {
		o := &h.ops[i]
		if o.outcome == histories.OK && (o.kind == histories.Append || o.kind == histories.Fetch && !p.final(o)) {
			events = append(events, event{o.inv, i, false}, event{o.end, i, true})
		}
	}
	slices.SortFunc(events, func(a, b event) int { return cmpInt(a.seq, b.seq) })
	cuts := []cut{{0, p.base}}
	length, open, since := p.base, 0, 0
	for _, e := range events {
		o := &h.ops[e.op]
		if o.kind == histories.Append {
			if !e.done {
				open++
				continue
			}
			open--
		} else if !e.done {
			continue
		}
		since++
		length = max(length, h.knownLength(p, h.tally, e.op))
		if open == 0 && since >= windowLeast {
			cuts = append(cuts, cut{e.seq, length})
			since = 0
		}
	}
	// What nobody acknowledged or read in time is in the log all the same: it came into being in the last window.
	last := p.base
	for i, r := range p.at {
		if r != none && p.trust(i, h.tally.contract) {
			last = p.base + int64(i) + 1
		}
	}
	return append(cuts, cut{math.MaxInt64, max(length, last)})
}

// knownLength is the length of the lasting log that an operation proves.
func (h *history) knownLength(p *part, t *tally, op int32) (length int64) {
	o := &h.ops[op]
	lasting := func(offset int64, record int32) bool {
		i, ok := p.index(offset)
		return ok && p.at[i] == record && p.trust(i, t.contract)
	}
	if o.kind == histories.Append {
		for j := range o.records {
			record := o.first + j
			if at := t.position[record]; at >= 0 && t.contract.Acks != 0 && (o.offset < 0 || lasting(o.offset+int64(j), record)) {
				offset := p.base + int64(at)
				if o.offset >= 0 {
					offset = o.offset + int64(j)
				}
				if lasting(offset, record) {
					length = max(length, offset+1)
				}
			}
		}
		return length
	}
	return p.base + int64(o.last) + 1
}

func (w *window) add(input any, inv, ret uint64, suspect suspicion) {
	// The closing read is the window's last operation and lies behind everything that ends inside it.
	w.ops = append(w.ops, porcupine.Operation{ClientId: 0, Input: input, Call: clamp(inv), Return: clamp(ret)})
	w.suspect |= suspect
}

func clamp(seq uint64) int64 { return int64(min(seq, math.MaxInt64-2)) }

// append adds an acknowledged append as its client saw it. One without an offset is left to settled.
func (w *window) append(op int32) {
	o := &w.h.ops[op]
	if o.offset < 0 || w.h.tally.contract.Acks == 0 {
		w.suspect |= o.suspect &^ mustFail
		return
	}
	in := put{o.offset, int64(o.records), true}
	for j := range o.records {
		i, ok := w.part.index(o.offset + int64(j))
		if !ok || w.part.at[i] != o.first+j {
			in.lasting = false
			w.unread = w.unread || o.offset+int64(j) < w.part.start // trimmed: nobody can tell any more
		} else if !w.part.trust(i, w.h.tally.contract) {
			w.unread = true
		}
	}
	w.add(in, o.inv, o.end, o.suspect)
}

// read adds a read by what it proves of the log's length and content.
func (w *window) read(op int32) {
	o, p := &w.h.ops[op], w.part
	in := look{sound: true}
	w.h.chunks(o, func(offset int64, record, n int32, _ histories.Run) {
		for ; n > 0; n, offset, record = n-1, offset+1, record+1 {
			i, ok := p.index(offset)
			switch {
			case record == none || !ok:
				in.sound = false
				return
			case p.at[i] != record:
				in.sound = false
				w.unread = w.unread || offset < p.start
			case p.trust(i, w.h.tally.contract):
				in.length = max(in.length, offset+1)
			}
		}
	})
	w.add(in, o.inv, o.end, o.suspect)
}

// settled adds what the acknowledged appends do not account for, from the lasting log: records of appends whose outcome is unknown or whose
// position was not told, and second copies; and closes the window.
func (w *window) settled() {
	h, p := w.h, w.part
	sound := true
	for offset := w.from; offset < w.to; offset++ {
		i, ok := p.index(offset)
		if !ok || p.at[i] == none || !p.trust(i, h.tally.contract) {
			if ok && (p.marks[i]&(passed|defective) != 0) {
				sound = false // known to hold nothing that was written, which is a finding of its own
				w.suspect |= mayFail
				continue
			}
			w.unread = true
			return
		}
		record := p.at[i]
		o := &h.ops[h.writer[record]]
		suspect := o.suspect
		if o.outcome == histories.OK && o.offset >= 0 { // it must fail where its own put is
			suspect &= mayFail
		}
		if h.ackedAt(record) == offset && h.tally.contract.Acks != 0 {
			if w.inside(o) {
				continue // its put is here
			}
			// It was acknowledged in another window: its offset says that it came into being here.
			w.add(put{offset, 1, true}, o.inv, o.end, suspect)
			continue
		}
		ret := uint64(math.MaxUint64)
		if o.outcome == histories.OK && h.ackedAt(record) < 0 && h.tally.contract.Acks != 0 && p.base+int64(h.tally.position[record]) == offset {
			ret = o.end
		}
		w.add(put{offset, 1, true}, o.inv, min(ret, w.toSeq), suspect)
	}
	w.add(closing{w.to, sound || !h.tally.contract.Dense}, clampSeq(w.toSeq), clampSeq(w.toSeq), 0)
}

// inside tells whether an acknowledged append ended in the window.
func (w *window) inside(o *operation) bool { return o.end > w.fromSeq && o.end <= w.toSeq }

func clampSeq(seq uint64) uint64 { return min(seq, math.MaxInt64-1) }
