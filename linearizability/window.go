package linearizability

import (
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
	part         *part
	h            *history
	from, to     int64
	after, until instant // it has what ended in this time
	reading      instant // no read that ended in it began before
	suspect      suspicion
	unread       bool                  // some offset's record is not known, so that porcupine has nothing to go by
	ops          []porcupine.Operation // once built
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
		DescribeOperation: func(input, _ any) string { return describe(input) },
	}
}

// windows cuts a partition's history at quiet moments, at least windowLeast operations apart. They are yet to be built; suspect is not sure to be complete.
func (h *history) windows(p *part) []window {
	if len(p.at) == 0 {
		return nil
	}
	var (
		out         []window
		now         = window{part: p, h: h, from: p.base}
		length      = p.base
		open, since = 0, 0
		pending     []*operation // by end
		numbers     []int32
	)
	cut := func(at instant) {
		now.to, now.until = length, at
		for offset := now.from; offset < now.to; offset++ {
			if i, ok := p.index(offset); ok && p.at[i] != none {
				now.suspect |= h.writerOf(p.at[i]).suspect
			}
		}
		out = append(out, now)
		now, since = window{part: p, h: h, from: length, after: at, reading: at}, 0
		for _, o := range pending {
			now.reading = min(now.reading, o.inv)
		}
	}
	end := func() {
		o, number := pending[0], numbers[0]
		pending, numbers = pending[1:], numbers[1:]
		if o.kind == histories.Append {
			open--
		}
		since++
		now.suspect |= o.suspect
		if length = max(length, h.knownLength(p, h.tally, number)); open == 0 && since >= windowLeast {
			cut(o.end)
		}
	}
	for i, j := 0, 0; i < p.appends.size() || j < p.others.size(); {
		var number int32
		if j == p.others.size() || i < p.appends.size() && h.ops.at(p.appends.number(i)).inv < h.ops.at(p.others.number(j)).inv {
			number, i = p.appends.number(i), i+1
		} else {
			number, j = p.others.number(j), j+1
		}
		o := h.ops.at(number)
		if o.outcome != histories.OK || o.kind != histories.Append && (o.kind != histories.Fetch || p.final(o)) {
			continue
		}
		for len(pending) > 0 && pending[0].end < o.inv {
			end()
		}
		if o.kind == histories.Append {
			open++
		}
		at := len(pending)
		for at > 0 && pending[at-1].end > o.end {
			at--
		}
		pending, numbers = slices.Insert(pending, at, o), slices.Insert(numbers, at, number)
	}
	for len(pending) > 0 {
		end()
	}
	// What nobody acknowledged or read in time is in the log all the same: it came into being in the last window.
	for i, r := range p.at {
		if r != none && p.trust(i, h.tally.contract) {
			length = max(length, p.base+int64(i)+1)
		}
	}
	cut(endless)
	return out
}

// build gives the window its operations. Appends that were acknowledged belong to the window of their time; reads to the window in which they ended.
func (w *window) build() {
	h, p := w.h, w.part
	w.suspect = 0
	for i, o := range h.ops.of(&p.appends, h.after(&p.appends, w.after)) {
		if o.inv > w.until {
			break
		}
		if o.outcome == histories.OK {
			w.append(i)
		}
	}
	for i, o := range h.ops.of(&p.others, h.after(&p.others, max(w.reading, 1)-1)) {
		if o.inv > w.until {
			break
		}
		if o.kind == histories.Fetch && o.outcome == histories.OK && o.count > 0 && !p.final(o) && w.inside(o) {
			w.read(i)
		}
	}
	w.settled()
}

// knownLength is the length of the lasting log that an operation proves.
func (h *history) knownLength(p *part, t *tally, op int32) (length int64) {
	o := h.ops.at(op)
	lasting := func(offset int64, record int32) bool {
		i, ok := p.index(offset)
		return ok && p.at[i] == record && p.trust(i, t.contract)
	}
	if o.kind == histories.Append {
		for j := range o.count {
			record := o.first + j
			if at := h.records.at(record).position; at >= 0 && t.contract.Acks != 0 && (o.offset < 0 || lasting(o.offset+int64(j), record)) {
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

func (w *window) add(input any, inv, ret instant, suspect suspicion) {
	w.ops = append(w.ops, porcupine.Operation{ClientId: 0, Input: input, Call: int64(inv), Return: int64(ret)})
	w.suspect |= suspect
}

// append adds an acknowledged append as its client saw it. One without an offset is left to settled.
func (w *window) append(op int32) {
	o := w.h.ops.at(op)
	if o.offset < 0 || w.h.tally.contract.Acks == 0 {
		w.suspect |= o.suspect &^ mustFail
		return
	}
	in := put{o.offset, int64(o.count), true}
	for j := range o.count {
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
	o, p := w.h.ops.at(op), w.part
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
		o := h.writerOf(record)
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
		ret := endless - 1
		if o.outcome == histories.OK && h.ackedAt(record) < 0 && h.tally.contract.Acks != 0 && p.base+int64(h.records.at(record).position) == offset {
			ret = o.end
		}
		w.add(put{offset, 1, true}, o.inv, min(ret, w.until), suspect)
	}
	// The closing read is the window's last operation and lies behind everything that ends inside it.
	w.add(closing{w.to, sound || !h.tally.contract.Dense}, w.until, w.until, 0)
}

// inside tells whether an acknowledged append ended in the window.
func (w *window) inside(o *operation) bool { return o.end > w.after && o.end <= w.until }
