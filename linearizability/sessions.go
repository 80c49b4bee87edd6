package linearizability

import (
	"ackproof/histories"
	"ackproof/model"
)

// session is what one assignment of a reader has seen so far.
type session struct {
	next    int64   // position after what it was given, −1 before the first read
	last    int32   // the read that gave it
	end     instant // when that read ended
	first   int64   // position of its first read
	reached bool    // an empty read at the end of the log, or the end itself
	skipped []skip
}

// skip is a stretch of offsets that a session went past without being given what is there.
type skip struct {
	from, to int64
	op       int32
}

// readSessions checks each assignment by itself: it only moves forward, and what it passes it was given.
func (h *history) readSessions(p *part, t *tally) {
	// A history that names no sessions has one for each process.
	type key struct{ session, process int32 }
	sessions := make(map[key]*session)
	var order []key
	for i, o := range h.ops.of(&p.others, 0) {
		if o.kind != histories.Fetch || o.outcome != histories.OK {
			continue
		}
		t.reads++
		id := key{session: o.session}
		if o.session == 0 {
			id.process = o.process
		}
		s := sessions[id]
		if s == nil {
			s = &session{next: -1, last: none, first: o.offset}
			sessions[id] = s
			order = append(order, id)
		}
		if o.inv < s.end { // two reads of one session at once have no order between them
			continue
		}
		h.sessionRead(p, t, s, i)
	}
	t.sessions += int64(len(sessions))
	drained := false
	for _, id := range order {
		s := sessions[id]
		whole := s.first <= p.start && p.complete && s.reached
		if whole {
			t.readers++
			drained = true
		}
		for _, k := range s.skipped {
			for offset := max(k.from, p.base); offset < min(k.to, p.base+int64(len(p.at))); offset++ {
				at := offset - p.base
				if p.known[at+1] == p.known[at] {
					continue
				}
				f := finding{claim: model.AtLeastOnce, anomaly: model.PollSkip, part: p, offset: offset, record: p.at[at], other: none, a: h.records.at(p.at[at]).writer, b: k.op, seen: true}
				if whole && h.writerOf(p.at[at]).outcome == histories.OK {
					f.anomaly = model.Undelivered
				}
				t.add(f)
			}
		}
	}
	if !drained && p.acked > 0 {
		t.readerless = append(t.readerless, p)
	}
}

func (h *history) sessionRead(p *part, t *tally, s *session, op int32) {
	o := h.ops.at(op)
	s.end = o.end
	position := o.offset
	if s.next >= 0 {
		// A reader that asks again further on has skipped what lies between, whoever made it do so: a seek is a new session.
		position = s.next
	}
	for _, r := range h.reply(o) {
		t.seen += int64(r.count)
		floor := max(position, s.next)
		if r.offset < floor {
			t.add(finding{claim: model.SessionReads, anomaly: model.NonmonotonicPoll, part: p, offset: r.offset, record: none, other: none, a: s.last, b: op, seen: true})
		} else if r.offset > position {
			h.skip(p, s, skip{position, r.offset, op})
		}
		position = max(position, r.offset+int64(r.count))
		s.next = position
	}
	if o.count > 0 {
		s.last = op
	}
	if p.complete && (o.count == 0 && o.offset >= p.end || position >= p.end) {
		s.reached = true
		if o.count == 0 && o.offset > s.next && s.next >= 0 {
			h.skip(p, s, skip{s.next, o.offset, op})
			s.next = o.offset
		}
	}
}

// skip notes a stretch if anything is known to be there.
func (h *history) skip(p *part, s *session, k skip) {
	k.from = max(k.from, p.start)
	from, to := min(max(k.from-p.base, 0), int64(len(p.at))), min(max(k.to-p.base, 0), int64(len(p.at)))
	if from < to && p.known[to] > p.known[from] {
		s.skipped = append(s.skipped, k)
	}
}
