package linearizability

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"ackproof/histories"
	"ackproof/model"
)

// operation is one client operation, packed. Its number is its place in history.ops, which is the order of invocation.
type operation struct {
	inv, end           uint64 // sequence numbers; end 0: no completion
	invTime, endTime   time.Duration
	offset             int64 // append: base offset, −1 without a position; read: position asked for; end and start: the answer
	high               int64 // high watermark that came with a read, −1 unknown
	partition, process int32
	session, node      int32
	epoch              int32
	records            int32 // append: how many it writes
	first              int32 // append: number of its first record; read: its first run in history.runs
	runs               int32 // read: how many runs
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

// history is a whole history in memory, about 110 bytes an operation and 4 a written record.
type history struct {
	ops       []operation
	runs      []histories.Run
	writer    []int32 // record number → operation
	producers map[int32]*producer
	latest    *producer // the one looked up last
	parts     []*part   // by partition number
	counts    model.Operations
	load      time.Duration // beginning of the load
	drain     uint64        // sequence number of the drain's beginning, 0 if the history does not say
	tally     *tally        // of the last check
}

// producer knows which record has which of its sequence numbers.
type producer struct {
	id    int32
	spans []sequence // by sequence number, once loaded
	hint  int        // span of the last look-up: reads go forward
}

// sequence says that values from…from+count−1 of a producer are the records first….
type sequence struct {
	from  int64
	count int32
	first int32
}

func load(events iter.Seq2[histories.Event, error]) (*history, error) {
	h := &history{producers: make(map[int32]*producer)}
	join := histories.NewJoiner()
	byNumber := make(map[int32]*part)
	for ev, err := range events {
		if err != nil {
			return nil, err
		}
		i, err := join.Join(&ev)
		if err != nil {
			return nil, err
		}
		switch {
		case i < 0:
			if ev.Kind == histories.Phase {
				h.phase(&ev)
			}
		case ev.Type == histories.Invoke:
			if len(h.ops) == math.MaxInt32 {
				return nil, fmt.Errorf("%w: more than %d operations", histories.ErrMalformed, math.MaxInt32)
			}
			p := byNumber[ev.Partition]
			if p == nil {
				p = &part{number: ev.Partition}
				byNumber[ev.Partition] = p
				h.parts = append(h.parts, p)
			}
			p.ops = push(p.ops, int32(i))
			if err := h.invoke(&ev); err != nil {
				return nil, err
			}
		default:
			if err := h.complete(&h.ops[i], &ev); err != nil {
				return nil, err
			}
		}
	}
	for _, o := range h.ops {
		if o.outcome == histories.Invoke {
			h.counts.Info++
		}
	}
	for _, p := range h.producers {
		byNumber := func(a, b sequence) int { return cmpInt(a.from, b.from) }
		if !slices.IsSortedFunc(p.spans, byNumber) {
			slices.SortFunc(p.spans, byNumber)
		}
	}
	slices.SortFunc(h.parts, func(a, b *part) int { return int(a.number) - int(b.number) })
	return h, nil
}

func (h *history) phase(ev *histories.Event) {
	switch ev.Note {
	case "load":
		h.load = ev.Time
	case "drain":
		h.drain = ev.Seq
	}
}

func (h *history) invoke(ev *histories.Event) error {
	o := operation{inv: ev.Seq, invTime: ev.Time, endTime: -1, offset: ev.Offset, high: -1, last: none, partition: ev.Partition, process: ev.Process,
		session: ev.Session, node: ev.Node, epoch: -1, kind: ev.Kind, follower: ev.Kind == histories.Fetch && ev.Node != 0, outcome: histories.Invoke}
	if ev.Kind == histories.Append {
		o.offset = -1
		o.first = int32(len(h.writer))
		for _, r := range ev.Runs {
			if int64(len(h.writer))+int64(r.Count) > math.MaxInt32 {
				return fmt.Errorf("%w: event %d: more than %d records written", histories.ErrMalformed, ev.Seq, math.MaxInt32)
			}
			h.written(r, int32(len(h.writer)))
			for range r.Count {
				h.writer = push(h.writer, int32(len(h.ops)))
			}
			o.records += r.Count
		}
	}
	h.ops = push(h.ops, o)
	return nil
}

func (h *history) written(r histories.Run, first int32) {
	p := h.producer(r.Producer)
	if p == nil {
		p = &producer{id: r.Producer}
		h.producers[r.Producer] = p
	}
	if n := len(p.spans); n > 0 && p.spans[n-1].from+int64(p.spans[n-1].count) == r.Sequence && p.spans[n-1].first+p.spans[n-1].count == first {
		p.spans[n-1].count += r.Count
		return
	}
	p.spans = push(p.spans, sequence{r.Sequence, r.Count, first})
}

// push is append that doubles the capacity: large slices are copied half as often, and a history is mostly a few large slices.
func push[T any](s []T, v T) []T {
	if len(s) == cap(s) {
		s = slices.Grow(s, max(16, len(s)))
	}
	return append(s, v)
}

func (h *history) producer(id int32) *producer {
	if h.latest == nil || h.latest.id != id {
		p := h.producers[id]
		if p == nil {
			return nil
		}
		h.latest = p
	}
	return h.latest
}

func (h *history) complete(o *operation, ev *histories.Event) error {
	o.end, o.endTime, o.outcome, o.code = ev.Seq, ev.Time, ev.Type, ev.Code
	if ev.Node != 0 {
		o.node = ev.Node
	}
	switch ev.Type {
	case histories.Fail:
		h.counts.Fail++
		return nil
	case histories.Info:
		h.counts.Info++
		return nil
	}
	h.counts.OK++
	o.epoch = ev.LeaderEpoch
	switch {
	case ev.Kind.IsRead():
		o.high = ev.HighWatermark
		if int64(len(h.runs))+int64(len(ev.Runs)) > math.MaxInt32 {
			return fmt.Errorf("%w: event %d: more than %d runs read", histories.ErrMalformed, ev.Seq, math.MaxInt32)
		}
		o.first, o.runs = int32(len(h.runs)), int32(len(ev.Runs))
		for _, r := range ev.Runs {
			h.runs = push(h.runs, r)
		}
	case ev.Kind == histories.CopyEnd:
		o.offset, o.high = ev.Offset, ev.HighWatermark
	default:
		o.offset = ev.Offset
	}
	return nil
}

// reply gives the runs that a read returned.
func (h *history) reply(o *operation) []histories.Run { return h.runs[o.first : o.first+o.runs] }

// record finds the number of the record that a producer wrote under a sequence number, and how many of the following values follow it
// there; −1 if nobody wrote it.
func (h *history) record(id int32, seq int64) (record, follow int32) {
	p := h.producer(id)
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
	return s.first + d, s.count - d
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
	for id, p := range h.producers {
		for _, s := range p.spans {
			if record >= s.first && record < s.first+s.count {
				return id, s.from + int64(record-s.first)
			}
		}
	}
	return -1, -1
}

// ackedAt is the offset under which a record was acknowledged, −1 if it was not or without a position.
func (h *history) ackedAt(record int32) int64 {
	o := &h.ops[h.writer[record]]
	if o.outcome != histories.OK || o.offset < 0 {
		return -1
	}
	return o.offset + int64(record-o.first)
}

func cmpInt[T int32 | int64 | uint64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
