package histories

import (
	"fmt"
	"slices"
	"sort"
	"time"
)

// Joiner is the validator of histories, and joins completions to invocations on the way. It is fed every event in order and refuses
// what no recorder writes, as an EventError:
//
//   - sequence numbers rise, and so does time;
//   - a completion joins an open invocation of the same process, kind and partition;
//   - a process has one operation open at most, unless all that it has open are Pipelined;
//   - an Append names what it writes, in runs of at least one record, and no value is written twice;
//   - a read asks from an offset, and runs of a reply have at least one record each and offsets that are not negative;
//   - an Object that is invoked or went through has at least one step, and only known ones; nothing else has steps;
//   - offsets and sequence numbers are below 2⁶¹.
//
// Memory grows with the operations that are open and with the gaps in the producers' sequences, not with the length of the history.
type Joiner struct {
	seq     uint64
	time    int64
	ops     int
	clients [256]client       // by process modulo their number; one with nothing open makes room
	crowd   map[int32]*client // who found no room
	open    map[uint64]openOp // beside the first of each client
	written map[int32]*writes
	last    *openOp // the one invoked last, if it is the first of its client
}

// maxNumber bounds offsets and sequence numbers, so that sums of two of them, or of one and a count, are numbers still.
const maxNumber = 1 << 61

// openOp is an operation without a completion; the zero one is none.
type openOp struct {
	op        uint64
	index     int
	process   int32
	partition int32
	kind      Kind
}

// client is one process.
type client struct {
	process   int32
	open      int32
	exclusive bool   // one that is open was not declared Pipelined
	first     openOp // one of those that are open, none: all of them are in Joiner.open
	producer  int32  // whose values it wrote last
	writes    *writes
}

// writes are the values of one producer that were written, in order.
type writes struct{ spans []span }

// span is a stretch [from, to) of one producer's sequence numbers.
type span struct{ from, to int64 }

// NewJoiner is a Joiner before the first event.
func NewJoiner() *Joiner {
	return &Joiner{crowd: make(map[int32]*client), open: make(map[uint64]openOp), written: make(map[int32]*writes)}
}

// client finds the state of a process.
func (j *Joiner) client(process int32) *client {
	c := &j.clients[uint32(process)%uint32(len(j.clients))]
	if c.process == process {
		return c
	}
	if known := j.crowd[process]; known != nil {
		return known
	}
	if c.open > 0 {
		c = &client{}
		j.crowd[process] = c
	}
	*c = client{process: process}
	return c
}

// Join takes the next event. It returns the number of its operation, counted from 0 in the order of invocation; −1 for marks.
func (j *Joiner) Join(ev *Event) (index int, err error) {
	bad := func(format string, args ...any) (int, error) {
		return 0, &EventError{ev.Seq, fmt.Sprintf(format, args...)}
	}
	if ev.Seq <= j.seq {
		return bad("follows event %d, expected rising numbers", j.seq)
	}
	if int64(ev.Time) < j.time {
		return bad("its time %v lies before %v, that of the event before it, expected times that do not go back", ev.Time, time.Duration(j.time))
	}
	j.seq, j.time = ev.Seq, int64(ev.Time)
	if !ev.Kind.IsOperation() {
		if ev.Kind > Phase {
			return bad("is of unknown kind %d", ev.Kind)
		}
		return -1, nil
	}
	switch {
	case ev.Partition < 0:
		return bad("partition %d, expected 0 or more", ev.Partition)
	case ev.Offset > maxNumber || ev.HighWatermark > maxNumber:
		return bad("offset %d and high watermark %d, expected at most %d", ev.Offset, ev.HighWatermark, int64(maxNumber))
	case ev.Kind.IsRead() && ev.Offset < 0:
		return bad("reads from offset %d, expected 0 or more", ev.Offset)
	}
	if what := stepsFault(ev); what != "" {
		return bad("%s", what)
	}
	if ev.Type != Invoke {
		return j.complete(ev, bad)
	}
	if ev.Op != ev.Seq {
		return bad("an invocation of operation %d, expected its own number", ev.Op)
	}
	c := j.client(ev.Process)
	if c.open > 0 && (c.exclusive || !ev.Pipelined) {
		return bad("process %d invokes %v with an operation still open, expected one at a time or a pipelined process", ev.Process, ev.Kind)
	}
	if ev.Kind == Append {
		if len(ev.Runs) == 0 {
			return bad("an append of nothing, expected the values that it writes")
		}
		for _, r := range ev.Runs {
			if r.Count < 1 || r.Sequence < 0 || r.Sequence > maxNumber {
				return bad("an append of %d values from sequence %d, expected at least one, from 0 on", r.Count, r.Sequence)
			}
			if !j.writer(c, r.Producer).write(r) {
				return bad("producer %d writes a value of %d…%d a second time, expected unique values", r.Producer, r.Sequence, r.Sequence+int64(r.Count)-1)
			}
		}
	}
	c.open, c.exclusive = c.open+1, !ev.Pipelined
	if op := (openOp{ev.Op, j.ops, ev.Process, ev.Partition, ev.Kind}); c.first.op == 0 {
		c.first, j.last = op, &c.first
	} else {
		j.open[ev.Op], j.last = op, nil
	}
	j.ops++
	return j.ops - 1, nil
}

// Rename gives the operation of the Invoke that was joined last another number, which Join returns for its completion.
func (j *Joiner) Rename(index int) {
	if j.last != nil {
		j.last.index = index
	} else if op, ok := j.open[j.seq]; ok {
		op.index = index
		j.open[j.seq] = op
	}
}

func (j *Joiner) complete(ev *Event, bad func(string, ...any) (int, error)) (int, error) {
	c := j.client(ev.Process)
	op := c.first
	if op.op != ev.Op {
		op = j.other(ev.Op)
	}
	switch {
	case ev.Type > Info:
		return bad("is of unknown type %d", ev.Type)
	case op.op == 0:
		return bad("completes operation %d, which is not open, expected one that was invoked and has not ended", ev.Op)
	case op.process != ev.Process:
		return bad("process %d completes operation %d of process %d", ev.Process, ev.Op, op.process)
	case op.kind != ev.Kind || op.partition != ev.Partition:
		return bad("%v of partition %d completes operation %d, which is %v of partition %d", ev.Kind, ev.Partition, ev.Op, op.kind, op.partition)
	case ev.Type == OK && ev.Offset < -1:
		return bad("offset %d, expected −1 or more", ev.Offset)
	}
	if ev.Kind.IsRead() {
		for _, r := range ev.Runs {
			if r.Count < 1 || r.Offset < 0 || r.Offset > maxNumber {
				return bad("%d records from offset %d, expected at least one, from 0 on", r.Count, r.Offset)
			}
		}
	}
	if c.first.op == ev.Op {
		c.first = openOp{}
	} else {
		delete(j.open, ev.Op)
	}
	if c.open--; c.open == 0 {
		delete(j.crowd, ev.Process)
	}
	return op.index, nil
}

// other finds an open operation that is not the first of the client that completes it; zero if it is not open.
func (j *Joiner) other(number uint64) openOp {
	if op, ok := j.open[number]; ok {
		return op
	}
	for i := range j.clients { // somebody else's: an error
		if j.clients[i].first.op == number {
			return j.clients[i].first
		}
	}
	for _, c := range j.crowd {
		if c.first.op == number {
			return c.first
		}
	}
	return openOp{}
}

// stepsFault says what is wrong with the steps of an operation, "" for nothing.
func stepsFault(ev *Event) string {
	switch {
	case ev.Kind != Object && len(ev.Steps) > 0:
		return fmt.Sprintf("%v with %d steps, expected none", ev.Kind, len(ev.Steps))
	case ev.Kind != Object:
		return ""
	case len(ev.Runs) > 0:
		return fmt.Sprintf("an object with %d runs, expected none", len(ev.Runs))
	case len(ev.Steps) == 0 && (ev.Type == Invoke || ev.Type == OK):
		return "an operation on objects without steps, expected at least one step"
	}
	for i := range ev.Steps {
		switch s := &ev.Steps[i]; {
		case int(s.Do) >= len(doNames):
			return fmt.Sprintf("unknown step %d", s.Do)
		case s.Value.Form > List || s.Old.Form > List:
			return fmt.Sprintf("a value of unknown form %d", max(s.Value.Form, s.Old.Form))
		}
	}
	return ""
}

// writer finds what a producer has written; c is who writes now.
func (j *Joiner) writer(c *client, producer int32) *writes {
	if c.writes == nil || c.producer != producer {
		w := j.written[producer]
		if w == nil {
			w = &writes{}
			j.written[producer] = w
		}
		c.producer, c.writes = producer, w
	}
	return c.writes
}

// write notes the values of a run as written; false if one of them was written before.
func (w *writes) write(r Run) bool {
	from, to := r.Sequence, r.Sequence+int64(r.Count)
	spans := w.spans
	n := len(spans)
	switch {
	case n > 0 && spans[n-1].to == from: // the usual case: a producer counts on
		spans[n-1].to = to
		return true
	case n == 0 || spans[n-1].to < from:
		w.spans = append(spans, span{from, to})
		return true
	}
	i := sort.Search(n, func(i int) bool { return spans[i].to > from }) // the first that could overlap
	if i < n && spans[i].from < to {
		return false
	}
	w.spans = slices.Insert(spans, i, span{from, to})
	return true
}
