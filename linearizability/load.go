package linearizability

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"sort"
	"time"

	"ackproof/histories"
	"ackproof/model"
)

// operation is one client operation, packed into 64 bytes. Numbers of operations rise within a partition in the order of invocation, for appends and for all
// others.
type operation struct {
	inv, end           instant // end 0: no completion
	offset             int64   // append: base offset, −1 without a position; read: position asked for; end and start: the answer
	high               int64   // high watermark that came with a read, −1 unknown
	partition, process int32
	session, node      int32
	epoch              int32
	first, count       int32 // append: its records; read: its runs
	last               int32 // read: the largest index of a record that it returned as the lasting log has it, −1 none; found by settle
	code               int16
	kind               histories.Kind
	follower           bool           // a fetch that asked for one node's copy, whoever leads (KIP-392)
	outcome            histories.Type // Invoke: never completed
	suspect            suspicion
}

// suspicion is what the exact checkers hold against an operation; the second opinion must agree.
type suspicion uint8

const (
	mayFail  suspicion = 1 << iota // some anomaly: porcupine may find its window illegal
	mustFail                       // an anomaly that porcupine's model can express: it must
)

// indeterminate tells that the operation may or may not have taken effect.
func (o *operation) indeterminate() bool {
	return o.outcome == histories.Info || o.outcome == histories.Invoke
}

// record is one written record.
type record struct {
	writer int32 // the append
	// position is the index in its partition's log, −1 if it is not there. While a partition is being settled it is the place in the final log.
	position int32
}

// run is a stretch of offsets that a read returned.
type run struct {
	offset int64
	// first is the record at offset; the others follow it by number. Where that is not so, or was not known when the read ended, ^first is the place of the
	// run in history.strange.
	first int32
	count int32
}

// history is a whole history in memory: about 70 bytes an operation, 12 a written record and 16 a run that was read.
type history struct {
	ops       blocks[operation]
	runs      blocks[run]
	strange   []histories.Run
	records   blocks[record]
	owners    []*part // of each block of records
	moments   moments
	producers table[producer]
	byNumber  table[part]
	parts     []*part // by number, once loaded
	counts    model.Operations
	load      time.Duration // beginning of the load
	drain     instant       // the drain's beginning, 0 if the history does not say
	tally     *tally        // of the last check
}

// producer knows which record has which of its sequence numbers.
type producer struct {
	spans   []span  // by sequence number, once loaded
	records []int32 // in the order in which they were written
	hint    int     // span of the last look-up: reads go forward
}

// span says that the values from…from+count−1 of a producer are its records first….
type span struct {
	from         int64
	first, count int32
}

func load(events iter.Seq2[histories.Event, error]) (*history, error) {
	h := &history{}
	join := histories.NewJoiner()
	started := int64(0)
	for ev, err := range events {
		if err != nil {
			return nil, err
		}
		number, err := join.Join(&ev)
		if err != nil {
			return nil, err
		}
		if h.moments.n == endless-1 {
			return nil, tooMany(&ev, int64(endless-1), "events")
		}
		now := h.moments.add(ev.Seq, ev.Time)
		switch {
		case number < 0:
			h.mark(&ev, now)
		case ev.Type == histories.Invoke:
			started++
			op, err := h.invoke(&ev, now)
			if err != nil {
				return nil, err
			}
			join.Rename(int(op))
		default:
			if err := h.complete(int32(number), &ev, now); err != nil {
				return nil, err
			}
		}
	}
	h.moments.close()
	h.counts.Info = started - h.counts.OK - h.counts.Fail
	for _, id := range h.producers.keys {
		p := h.producers.find(id)
		byNumber := func(a, b span) int { return cmpInt(a.from, b.from) }
		if !slices.IsSortedFunc(p.spans, byNumber) {
			slices.SortFunc(p.spans, byNumber)
		}
	}
	slices.SortFunc(h.parts, func(a, b *part) int { return int(a.number) - int(b.number) })
	for i, p := range h.parts {
		p.place = i
	}
	return h, nil
}

func tooMany(ev *histories.Event, most int64, what string) error {
	return fmt.Errorf("%w: event %d: more than %d %s", histories.ErrMalformed, ev.Seq, most, what)
}

func (h *history) mark(ev *histories.Event, now instant) {
	switch {
	case ev.Kind != histories.Phase:
	case ev.Note == "load":
		h.load = ev.Time
		for _, p := range h.parts { // what was before does not count
			p.outage = outage{since: ev.Time, last: p.outage.last}
		}
	case ev.Note == "drain":
		h.drain = now
	}
}

func (h *history) invoke(ev *histories.Event, now instant) (number int32, err error) {
	p := h.byNumber.find(ev.Partition)
	if p == nil {
		p = &part{number: ev.Partition, outage: outage{since: h.load, last: -1}, told: told{low: math.MaxInt64, high: -1, least: math.MaxInt64}}
		h.byNumber.add(ev.Partition, p)
		h.parts = append(h.parts, p)
	}
	l := &p.others
	if ev.Kind == histories.Append {
		l = &p.appends
	}
	number, ok := h.ops.take(l, 1)
	if !ok {
		return 0, tooMany(ev, math.MaxInt32, "operations")
	}
	o := h.ops.at(number)
	*o = operation{inv: now, offset: ev.Offset, high: -1, last: none, partition: ev.Partition, process: ev.Process, session: ev.Session, node: ev.Node,
		epoch: -1, kind: ev.Kind, follower: ev.Kind == histories.Fetch && ev.Node != 0, outcome: histories.Invoke}
	if ev.Kind != histories.Append {
		return number, nil
	}
	o.offset = -1
	p.outage.last = ev.Time
	n := int64(0)
	for _, r := range ev.Runs {
		n += int64(r.Count)
	}
	if n <= math.MaxInt32-blockSize {
		o.count = int32(n)
		o.first, ok = h.records.take(&p.records, o.count)
	}
	if n > math.MaxInt32-blockSize || !ok {
		return 0, tooMany(ev, math.MaxInt32, "records written")
	}
	for len(h.owners) < len(h.records.all) {
		h.owners = append(h.owners, p)
	}
	records := h.records.span(o.first, o.count)
	for i := range records {
		records[i] = record{writer: number, position: none}
	}
	next := o.first
	for _, r := range ev.Runs {
		h.written(r, next)
		next += r.Count
	}
	return number, nil
}

// written notes which records the values of a run are.
func (h *history) written(r histories.Run, first int32) {
	p := h.producers.find(r.Producer)
	if p == nil {
		p = &producer{}
		h.producers.add(r.Producer, p)
	}
	if n := len(p.spans); n > 0 && p.spans[n-1].from+int64(p.spans[n-1].count) == r.Sequence {
		p.spans[n-1].count += r.Count
	} else {
		p.spans = append(p.spans, span{r.Sequence, int32(len(p.records)), r.Count})
	}
	for i := range r.Count {
		p.records = push(p.records, first+i)
	}
}

// push is append that doubles the capacity: large slices are copied half as often, and a history is mostly a few large slices.
func push[T any](s []T, v T) []T {
	if len(s) == cap(s) {
		s = slices.Grow(s, max(16, len(s)))
	}
	return append(s, v)
}

func (h *history) complete(number int32, ev *histories.Event, now instant) error {
	o := h.ops.at(number)
	o.end, o.outcome, o.code = now, ev.Type, ev.Code
	if ev.Node != 0 {
		o.node = ev.Node
	}
	p := h.byNumber.find(ev.Partition)
	if ev.Kind == histories.Append {
		p.outage.last = ev.Time
	}
	switch ev.Type {
	case histories.Fail:
		h.counts.Fail++
		return nil
	case histories.Info:
		return nil
	}
	h.counts.OK++
	o.epoch = ev.LeaderEpoch
	switch {
	case ev.Kind.IsRead():
		o.high = ev.HighWatermark
		p.told.end(o.high)
		if len(ev.Runs) == 0 {
			return nil
		}
		first, ok := int32(0), len(ev.Runs) <= math.MaxInt32-blockSize
		if ok {
			first, ok = h.runs.take(&p.runs, int32(len(ev.Runs)))
		}
		if !ok {
			return tooMany(ev, math.MaxInt32, "runs read")
		}
		o.first, o.count = first, int32(len(ev.Runs))
		for i, r := range ev.Runs {
			h.reply(o)[i] = h.resolve(r)
			p.told.records(r.Offset, int64(r.Count))
		}
		return nil
	case ev.Kind == histories.CopyEnd:
		o.high = ev.HighWatermark
	case ev.Kind == histories.Append:
		p.outage.acked(ev.Time)
		p.acked = now
		p.told.records(ev.Offset, int64(o.count))
	case ev.Kind == histories.StartOffset:
		p.start = max(p.start, ev.Offset)
	case ev.Kind == histories.EndOffset:
		p.told.end(ev.Offset)
	}
	o.offset = ev.Offset
	if (ev.Kind == histories.EndOffset || ev.Kind == histories.StartOffset) && o.epoch >= 0 && o.offset >= 0 {
		p.answers = append(p.answers, number)
	}
	return nil
}

// reply gives the runs that a read returned.
func (h *history) reply(o *operation) []run { return h.runs.span(o.first, o.count) }

// resolve finds the records of a run: most were written a moment ago, and are still at hand.
func (h *history) resolve(r histories.Run) run {
	if r.Defect == histories.Sound {
		if record, follow := h.find(r.Producer, r.Sequence, r.Count); follow == r.Count {
			return run{r.Offset, record, r.Count}
		}
	}
	h.strange = push(h.strange, r)
	return run{r.Offset, ^int32(len(h.strange) - 1), r.Count}
}

// after is the place in a lane of the first operation that began after a moment.
func (h *history) after(l *lane, at instant) int {
	return sort.Search(l.size(), func(i int) bool { return h.ops.at(l.number(i)).inv > at })
}

// seq is the sequence number of an event.
func (h *history) seq(n instant) uint64 {
	if n == endless {
		return math.MaxInt64
	}
	return h.moments.at(n).seq
}

// writerOf is the append that wrote a record.
func (h *history) writerOf(record int32) *operation { return h.ops.at(h.records.at(record).writer) }

// find finds the number of the record that a producer wrote under a sequence number, −1 if nobody wrote it, and how many values from it on, at most so many, are
// the records that follow it by number. While a history is loaded it may miss some.
func (h *history) find(id int32, seq int64, most int32) (record, follow int32) {
	p := h.producers.find(id)
	if p == nil {
		return none, 0
	}
	i := p.find(seq)
	if i == len(p.spans) || p.spans[i].from > seq {
		return none, 0
	}
	p.hint = i
	s := p.spans[i]
	d := int32(seq - s.from)
	records := p.records[s.first+d:][:min(s.count-d, most)]
	for follow = 1; int(follow) < len(records) && records[follow] == records[0]+follow; {
		follow++
	}
	return records[0], follow
}

// find gives the first span that ends behind a sequence number. It gallops from the hint in ever longer steps, then halves.
func (p *producer) find(seq int64) int {
	behind := func(i int) bool { return p.spans[i].from+int64(p.spans[i].count) > seq }
	lo, hi := 0, len(p.spans)
	for i, step := p.hint, 1; i < hi; i, step = i+step, step*2 {
		if behind(i) {
			hi = i
			break
		}
		lo = i + 1
	}
	for i, step := hi-1, 1; i >= lo; i, step = i-step, step*2 {
		if !behind(i) {
			lo = i + 1
			break
		}
		hi = i
	}
	for lo < hi {
		if mid := (lo + hi) / 2; behind(mid) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// value finds producer and sequence number of a record.
func (h *history) value(record int32) (producer int32, seq int64) {
	for _, id := range h.producers.keys {
		p := h.producers.find(id)
		if i := slices.Index(p.records, record); i >= 0 {
			for _, s := range p.spans {
				if d := int32(i) - s.first; d >= 0 && d < s.count {
					return id, s.from + int64(d)
				}
			}
		}
	}
	return -1, -1
}

// ackedAt is the offset under which a record was acknowledged, −1 if it was not or without a position.
func (h *history) ackedAt(record int32) int64 {
	o := h.writerOf(record)
	if o.outcome != histories.OK || o.offset < 0 {
		return -1
	}
	return o.offset + int64(record-o.first)
}

func cmpInt[T int32 | int64 | uint64 | instant](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
