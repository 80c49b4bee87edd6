package linearizability

import (
	"fmt"
	"maps"
	"slices"
	"sort"

	"ackproof/histories"
	"ackproof/model"
)

// Online watches the log of a test while it runs, and tells of a violation at the event that makes it certain. It reports nothing that CheckLog would not
// find in the same history, and nothing that the contract permits; the proof is CheckLog's affair.
//
// It decides with certainty:
//
//   - no-phantom: a value that is read and was not sent before, was refused, is corrupt or belongs elsewhere;
//   - offset-agreement: two records at one offset, among acknowledgements and reads;
//   - real-time-order: what the sweep decides. lo-events carry past times and hi-events carry now, so a pair can only fail when the late operation
//     completes: each append keeps the largest offset that was known when it began, and must come to lie above it;
//   - order and no-duplicate, once every offset up to the one in question is known, or the history is at its end (Finish);
//   - session-reads and visible-end.
//
// It leaves to the end: loss, dirty reads, gaps and skipped records, for which the whole log must have been read, and whatever CheckLog finds by the knowledge
// that an earlier record did not stay. Where acknowledgements promise little (acks=0, acks=1) only reads say what the log holds, and under unclean election nothing does.
//
// Memory does not grow with the run but for a hash of 8 bytes per 1,024 offsets (about 20 KB per million with the table that it stands in). Per partition:
// 24 bytes for each of the last 16,384 offsets, and 16 for each leader epoch; per producer and partition: about 300 bytes and 16 for each gap in its sequence numbers; per
// open operation: about 200 bytes; per append that nobody has read: 24 bytes, of which the last 1,024 of each producer are kept; 64 bytes for
// each of the last 4,096 sessions. Offsets behind the last 16,384 are compared in whole blocks of 1,024 that one session reads through.
type Online struct {
	contract model.Contract
	acks     bool // acknowledgements say what the log holds
	reads    bool // reads do
	open     map[uint64]*begun
	parts    map[int32]*watched
	writers  map[writerKey]*writes
	latest   *writes // the one looked up last
	free     []*begun
	sessions generations
	found    *Sighting // the first of the event at hand
}

// Sighting is a violation that is certain while the test still runs.
type Sighting struct {
	Claim     model.Claim
	Anomaly   model.Anomaly
	Partition int32
	Offset    int64  // −1 if it is about none
	Op        uint64 // operation that brought it to light
	What      string // what was seen, for people
}

// String is one line for people.
func (s *Sighting) String() string {
	return fmt.Sprintf("%s, %s in p%d: %s (operation %d)", s.Claim, s.Anomaly, s.Partition, s.What, s.Op)
}

// begun is an open operation.
type begun struct {
	op           uint64
	kind         histories.Kind
	partition    int32
	process      int32
	session      int32
	offset       int64           // a read asks from
	runs         []histories.Run // an append sends
	reach        int64           // largest offset that was known when it began, −1 none
	ends, starts stairs
}

type writerKey struct{ producer, partition int32 }

// writes is what is known of one producer in one partition, by sequence numbers.
type writes struct {
	key                         writerKey
	sent, refused, seen, placed spans
	high                        int64     // largest that is placed
	unseen                      []unknown // sent, and not read yet; by sequence number
}

// unknown is one run that was sent: sequence numbers [from, to) must come to lie above reach.
type unknown struct{ from, to, reach int64 }

const unseenKept = 1024

// NewOnline watches under a contract.
func NewOnline(c model.Contract) *Online {
	return &Online{contract: c, acks: c.Acks == -1 && !c.MayForget(), reads: !c.MayForget(), open: make(map[uint64]*begun), parts: make(map[int32]*watched),
		writers: make(map[writerKey]*writes), sessions: newGenerations()}
}

// Step takes the next event of the journal; the event's Runs are not kept. It returns the first violation that the event makes certain, nil if none. Events that
// contradict the rest of the history are passed over: the Joiner's errors belong to the check of the whole.
func (o *Online) Step(ev *histories.Event) *Sighting {
	o.found = nil
	if !ev.Kind.IsOperation() || ev.Kind == histories.Object {
		return nil
	}
	p := o.parts[ev.Partition]
	if p == nil {
		p = newWatched(ev.Partition)
		o.parts[ev.Partition] = p
	}
	if ev.Type == histories.Invoke {
		b := o.fresh()
		*b = begun{op: ev.Op, kind: ev.Kind, partition: ev.Partition, process: ev.Process, session: ev.Session, offset: ev.Offset, runs: b.runs[:0], reach: p.reach, ends: p.ends, starts: p.starts}
		if ev.Kind == histories.Append {
			b.runs = append(b.runs, ev.Runs...)
			o.sent(b)
		}
		o.open[ev.Op] = b
		return nil
	}
	b := o.open[ev.Op]
	if b == nil || b.kind != ev.Kind || b.partition != ev.Partition {
		return nil
	}
	delete(o.open, ev.Op)
	defer func() { o.free = append(o.free, b) }()
	switch {
	case ev.Kind == histories.Append && ev.Type == histories.Fail:
		o.refused(b)
	case ev.Type != histories.OK:
	case ev.Kind == histories.Append:
		o.acknowledged(p, b, ev.Offset)
	case ev.Kind.IsRead():
		o.read(p, b, ev)
	case ev.Kind == histories.EndOffset, ev.Kind == histories.StartOffset:
		o.answered(p, b, ev)
	}
	return o.found
}

// Finish ends the watch: offsets that nobody has told of hide nothing any more, and what lies behind them is judged. It returns the first violation of that, nil if
// there is none. Call it once, behind the last event.
func (o *Online) Finish() *Sighting {
	o.found = nil
	for _, n := range slices.Sorted(maps.Keys(o.parts)) {
		if p := o.parts[n]; p.slots != nil {
			o.placeRange(p, &begun{partition: p.number}, p.settled, p.base+onlineWindow)
		}
	}
	return o.found
}

// fresh gives the memory of an operation that has ended, or new one.
func (o *Online) fresh() *begun {
	n := len(o.free)
	if n == 0 {
		return &begun{}
	}
	b := o.free[n-1]
	o.free = o.free[:n-1]
	return b
}

// report notes a violation unless the contract permits it.
func (o *Online) report(claim model.Claim, a model.Anomaly, seen bool, b *begun, offset int64, format string, args ...any) {
	if o.found == nil && o.contract.Permitted(claim, a, seen) == "" {
		o.found = &Sighting{Claim: claim, Anomaly: a, Partition: b.partition, Offset: offset, Op: b.op, What: fmt.Sprintf(format, args...)}
	}
}

func (o *Online) writer(producer, partition int32) *writes {
	key := writerKey{producer, partition}
	if o.latest != nil && o.latest.key == key {
		return o.latest
	}
	w := o.writers[key]
	if w == nil {
		w = &writes{key: key, high: -1}
		o.writers[key] = w
	}
	o.latest = w
	return w
}

func (o *Online) sent(b *begun) {
	for _, r := range b.runs {
		w := o.writer(r.Producer, b.partition)
		w.sent.add(r.Sequence, r.Sequence+int64(r.Count))
		if len(w.unseen) == unseenKept {
			w.unseen = slices.Delete(w.unseen, 0, 1)
		}
		w.unseen = slices.Insert(w.unseen, w.unseenAt(r.Sequence), unknown{r.Sequence, r.Sequence + int64(r.Count), b.reach})
	}
}

// unseenAt is the place of the first unseen run that ends behind a sequence number.
func (w *writes) unseenAt(n int64) int {
	return sort.Search(len(w.unseen), func(i int) bool { return w.unseen[i].to > n })
}

func (o *Online) refused(b *begun) {
	for _, r := range b.runs {
		w := o.writer(r.Producer, b.partition)
		w.refused.add(r.Sequence, r.Sequence+int64(r.Count))
		if w.seen.meets(r.Sequence, r.Sequence+int64(r.Count)) {
			o.report(model.NoPhantom, model.Phantom, true, b, -1, "a record from %d to %d of producer %d was refused, and had been read", r.Sequence, r.Sequence+int64(r.Count)-1, r.Producer)
		}
	}
}

func (o *Online) acknowledged(p *watched, b *begun, offset int64) {
	if offset < 0 || !o.acks {
		return
	}
	base := offset
	for _, r := range b.runs {
		for i := range int64(r.Count) {
			o.claim(p, b, offset, stamped{r.Producer, r.Sequence + i}, model.InconsistentOffset, false)
			offset++
		}
	}
	if base <= b.reach {
		o.report(model.RealTimeOrder, model.ReorderedRealtime, true, b, base, "an append was acknowledged at offset %d, and offset %d was known before it began", base, b.reach)
	}
	p.reach = max(p.reach, offset-1)
	o.place(p, b)
}

// claim compares what an operation says of an offset with what is known of it.
func (o *Online) claim(p *watched, b *begun, offset int64, v stamped, a model.Anomaly, seen bool) {
	p.reachTo(offset, func(from, to int64) { o.placeRange(p, b, from, to) })
	if known, other := p.put(offset, v, seen); known {
		o.report(model.OffsetAgreement, a, seen && other.seen, b, offset, "offset %d holds record %d of producer %d, and record %d of producer %d", offset, other.sequence, other.producer, v.sequence, v.producer)
	}
}

// place takes the offsets that are known without a gap.
func (o *Online) place(p *watched, b *begun) {
	for p.slots != nil && p.settled < p.base+onlineWindow && p.slot(p.settled).state != unheard {
		o.placeRange(p, b, p.settled, p.settled+1)
	}
}

// placeRange judges order and uniqueness of what stands at [from, to), the offsets after the last that were judged.
func (o *Online) placeRange(p *watched, b *begun, from, to int64) {
	for k := max(from, p.settled); k < to; k++ {
		s := p.slot(k)
		p.settled = k + 1
		if s.state != held {
			continue
		}
		w := o.writer(s.producer, p.number)
		switch {
		case w.placed.meets(s.sequence, s.sequence+1):
			o.report(model.NoDuplicate, model.Duplicate, true, b, k, "record %d of producer %d stands at offset %d and at a lower one", s.sequence, s.producer, k)
		case s.producer < 0: // sequence numbers that are names
		case s.sequence < w.high:
			o.report(model.Order, model.Reordered, true, b, k, "record %d of producer %d stands at offset %d, behind record %d", s.sequence, s.producer, k, w.high)
		}
		w.placed.add(s.sequence, s.sequence+1)
		w.high = max(w.high, s.sequence)
	}
}

func (o *Online) read(p *watched, b *begun, ev *histories.Event) {
	anomaly := model.InconsistentOffset
	if ev.Kind == histories.CopyRead {
		anomaly = model.ReplicaDivergence
	}
	s := o.session(p, b)
	back := s != nil && b.op >= s.end // two reads of one session at once have no order between them
	if back && s.next < 0 && len(ev.Runs) > 0 {
		s.next = b.offset
	}
	position := b.offset
	for _, r := range ev.Runs {
		if back {
			if r.Offset < s.next {
				o.report(model.SessionReads, model.NonmonotonicPoll, true, b, r.Offset, "a session that stood at offset %d was given offset %d", s.next, r.Offset)
			}
			s.next = max(s.next, r.Offset+int64(r.Count))
		}
		if o.reads && r.Offset > position {
			p.void(position, r.Offset)
		}
		position = max(position, r.Offset+int64(r.Count))
		if !o.genuine(b, r) || !o.reads {
			if s != nil {
				s.block.active = false
			}
			continue
		}
		for i := range int64(r.Count) {
			v := stamped{r.Producer, r.Sequence + i}
			o.claim(p, b, r.Offset+i, v, anomaly, true)
			if s != nil {
				if whole, sum := s.block.take(r.Offset+i, v); whole && !p.agrees(r.Offset+i, sum) {
					o.report(model.OffsetAgreement, anomaly, true, b, r.Offset+i-onlineBlock+1, "one of the offsets %d to %d was read before and held another record", r.Offset+i-onlineBlock+1, r.Offset+i)
				}
			}
		}
		o.late(b, r)
		p.reach = max(p.reach, r.Offset+int64(r.Count)-1)
	}
	if back {
		s.end = ev.Seq
	}
	if o.acks {
		p.reach = max(p.reach, ev.HighWatermark-1)
	}
	if o.reads {
		o.place(p, b)
	}
}

// genuine tells whether a run may be read at all.
func (o *Online) genuine(b *begun, r histories.Run) bool {
	from, to := r.Sequence, r.Sequence+int64(r.Count)
	switch r.Defect {
	case histories.Corrupt:
		o.report(model.NoPhantom, model.CorruptValue, true, b, r.Offset, "the value at offset %d is corrupt", r.Offset)
		return false
	case histories.Foreign:
		o.report(model.NoPhantom, model.ForeignRecord, true, b, r.Offset, "the value at offset %d belongs elsewhere", r.Offset)
		return false
	}
	w := o.writers[writerKey{r.Producer, b.partition}]
	if w == nil || !w.sent.covers(from, to) {
		o.report(model.NoPhantom, model.Phantom, true, b, r.Offset, "of records %d to %d of producer %d, read from offset %d on, not all had been sent to this partition", from, to-1, r.Producer, r.Offset)
		return false
	}
	if w.refused.meets(from, to) {
		o.report(model.NoPhantom, model.Phantom, true, b, r.Offset, "of records %d to %d of producer %d, read from offset %d on, one had been refused", from, to-1, r.Producer, r.Offset)
		return false
	}
	w.seen.add(from, to)
	return true
}

// late demands of records whose place was not known that they lie above what had been known when they were sent.
func (o *Online) late(b *begun, r histories.Run) {
	from, to := r.Sequence, r.Sequence+int64(r.Count)
	w := o.writer(r.Producer, b.partition)
	i := w.unseenAt(from)
	j := i
	for ; j < len(w.unseen) && w.unseen[j].from < to; j++ {
		u := w.unseen[j]
		first := max(u.from, from)
		if at := r.Offset + first - from; at <= u.reach {
			o.report(model.RealTimeOrder, model.ReorderedRealtime, true, b, at, "record %d of producer %d lies at offset %d, and offset %d was known before it was sent", first, r.Producer, at, u.reach)
		}
	}
	if i < j && w.unseen[j-1].to > to { // the rest of it is to come
		w.unseen[j-1].from = to
		j--
	}
	w.unseen = slices.Delete(w.unseen, i, j)
}

func (o *Online) answered(p *watched, b *begun, ev *histories.Event) {
	if ev.Offset < 0 {
		return
	}
	end := ev.Kind == histories.EndOffset
	if end && o.acks {
		p.reach = max(p.reach, ev.Offset-1)
	}
	if ev.LeaderEpoch < 0 {
		return
	}
	compare := func(before stairs, a model.Anomaly) {
		if s, ok := before.upTo(ev.LeaderEpoch); ok && s.offset > ev.Offset {
			o.report(model.VisibleEnd, a, true, b, ev.Offset, "%d was answered before in epoch %d, and now %d in epoch %d", s.offset, s.epoch, ev.Offset, ev.LeaderEpoch)
		}
	}
	n := step{ev.LeaderEpoch, ev.Offset, none}
	if end {
		compare(b.ends, model.StaleEndOffset)
		compare(b.starts, model.StartAboveHW)
		p.ends = slices.Clone(p.ends).add(n) // open operations keep the old one
	} else {
		compare(b.starts, model.StartOffsetBackwards)
		p.starts = slices.Clone(p.starts).add(n)
	}
}

// session finds the session of a fetch.
func (o *Online) session(p *watched, b *begun) *reader {
	if b.kind != histories.Fetch {
		return nil
	}
	key := readerKey{p.number, b.session, 0}
	if key.session == 0 {
		key.process = b.process
	}
	return o.sessions.get(key)
}
