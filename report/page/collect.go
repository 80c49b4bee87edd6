package page

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"ackproof/histories"
	"ackproof/report"
)

// maxOperations bounds what one page holds: a browser has to keep it in memory.
const maxOperations = 4_000_000

// maxRemarks bounds the different texts about operations; further ones are told as one.
const maxRemarks = 4000

// collection is what one pass over a history gathers.
type collection struct {
	ops        *columns
	limit      int   // of packed operations
	left       int64 // operations beyond it
	leftAt     time.Duration
	end        time.Duration // of the last event
	phases     []phase
	faults     map[int]*faultSpan // by index, from the marks of the history
	lasting    int                // faults that last now
	processes  []process
	byID       map[int32]int
	open       map[uint64]opened
	remarks    []string
	remarkOf   map[string]int
	leaders    map[int32]*leadership
	acks       map[int32]*acknowledged
	latencies  latencies
	lastInvoke map[int32]time.Duration // last append of each partition
	resumed    map[place]int64         // the offset at which a gap ended, by its end
}

type phase struct {
	Name string `json:"name"`
	At   int64  `json:"at"` // µs
}

// faultSpan is when a fault lasted, as the history marks it; −1: not marked.
type faultSpan struct{ from, to time.Duration }

// process is one logical client.
type process struct {
	id          int32
	partition   int32 // the first that it worked on
	role        role
	first, last time.Duration
	pipelined   bool
}

// role is what a client mostly does, and so where it is drawn.
type role uint8

const (
	writer role = iota
	reader
	poller
	copier
	client
)

var roleNames = [...]string{"writer", "reader", "poller", "copy reader", "client"}

func roleOf(k histories.Kind) role {
	switch k {
	case histories.Append:
		return writer
	case histories.Fetch:
		return reader
	case histories.EndOffset, histories.StartOffset:
		return poller
	case histories.CopyRead, histories.CopyEnd:
		return copier
	}
	return client
}

// opened is an operation without its end so far.
type opened struct {
	at        time.Duration
	process   int
	kind      histories.Kind
	partition int32
	node      int32
	offset    int64
	count     int64
	first     string // of an Object: what its first step does
}

func newCollection(limit int) *collection {
	return &collection{
		limit: limit,
		ops:   newColumns(), faults: make(map[int]*faultSpan), byID: make(map[int32]int), open: make(map[uint64]opened), remarks: []string{""},
		remarkOf: map[string]int{"": 0}, leaders: make(map[int32]*leadership), acks: make(map[int32]*acknowledged), lastInvoke: make(map[int32]time.Duration),
		resumed: make(map[place]int64),
	}
}

// collect reads a history and packs its first operations, up to the limit.
func collect(run *Run, limit int) (*collection, error) {
	c := newCollection(limit)
	join := histories.NewJoiner()
	for ev, err := range run.Events() {
		if err == nil {
			_, err = join.Join(&ev)
		}
		if err != nil {
			return nil, err
		}
		c.end = ev.Time
		switch {
		case ev.Kind == histories.Phase:
			c.phases = append(c.phases, phase{report.Visible(ev.Note), ev.Time.Microseconds()})
		case ev.Kind == histories.Fault:
			c.fault(&ev)
		case ev.Type == histories.Invoke:
			c.invoke(&ev)
		default:
			c.complete(&ev)
		}
	}
	c.neverEnded()
	return c, nil
}

// fault notes when a fault took effect and when it was healed; the notes begin with the step.
func (c *collection) fault(ev *histories.Event) {
	i := int(ev.Offset)
	f := c.faults[i]
	if f == nil {
		f = &faultSpan{-1, -1}
		c.faults[i] = f
	}
	switch {
	case f.from < 0 && hasStep(ev.Note, "began"):
		f.from = ev.Time
		c.lasting++
	case f.from >= 0 && f.to < 0 && hasStep(ev.Note, "healed"):
		f.to = ev.Time
		c.lasting--
	}
}

func hasStep(note, step string) bool {
	return len(note) > len(step) && note[:len(step)] == step && note[len(step)] == ':'
}

func (c *collection) process(ev *histories.Event) int {
	i, known := c.byID[ev.Process]
	if !known {
		i = len(c.processes)
		c.byID[ev.Process] = i
		partition := ev.Partition
		if ev.Kind == histories.Object {
			partition = -1
		}
		c.processes = append(c.processes, process{id: ev.Process, partition: partition, role: roleOf(ev.Kind), first: ev.Time, last: ev.Time})
	}
	p := &c.processes[i]
	p.last = ev.Time
	p.pipelined = p.pipelined || ev.Pipelined
	return i
}

func (c *collection) invoke(ev *histories.Event) {
	o := opened{at: ev.Time, process: c.process(ev), kind: ev.Kind, partition: ev.Partition, node: ev.Node, offset: -1, count: records(ev.Runs)}
	if ev.Kind.IsRead() {
		o.offset, o.count = ev.Offset, 0
	}
	if len(ev.Steps) > 0 {
		o.count, o.first = int64(len(ev.Steps)), ev.Steps[0].Do.String()+" "+ev.Steps[0].Key
	}
	if ev.Kind == histories.Append {
		c.lastInvoke[ev.Partition] = ev.Time
	}
	c.open[ev.Op] = o
}

func records(runs []histories.Run) (n int64) {
	for _, r := range runs {
		n += int64(r.Count)
	}
	return n
}

func (c *collection) complete(ev *histories.Event) {
	o, ok := c.open[ev.Op]
	if !ok { // Join has refused it already
		return
	}
	delete(c.open, ev.Op)
	c.processes[o.process].last = ev.Time
	if ev.Node != 0 {
		o.node = ev.Node
	}
	if ev.Type == histories.OK {
		switch {
		case ev.Kind == histories.Append:
			o.offset = ev.Offset
			c.ack(o.partition, ev.Time, ev.Offset)
		case ev.Kind.IsRead():
			o.count = records(ev.Runs)
		case ev.Kind == histories.EndOffset || ev.Kind == histories.StartOffset || ev.Kind == histories.CopyEnd:
			o.offset = ev.Offset
		}
		if o.node != 0 && (ev.Kind == histories.Append || ev.Kind == histories.EndOffset) {
			c.lead(o.partition, o.node, ev.Time)
		}
		c.latencies.add(ev.Kind, ev.Time-o.at, c.lasting == 0)
	}
	c.row(o, ev.Op, ev.Seq, ev.Type, ev.Time, c.remark(o, ev))
}

// neverEnded adds the operations whose clients never learned anything, in the order of invocation.
func (c *collection) neverEnded() {
	ids := make([]uint64, 0, len(c.open))
	for id := range c.open {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		c.row(c.open[id], id, 0, histories.Invoke, c.end, 0)
	}
}

func (c *collection) row(o opened, op, endSeq uint64, outcome histories.Type, end time.Duration, remark int) {
	if c.ops.n >= c.limit {
		if c.left == 0 {
			c.leftAt = end
		}
		c.left++
		return
	}
	c.ops.add(row{end: end.Microseconds(), took: (end - o.at).Microseconds(), op: op, endSeq: endSeq, process: o.process, kind: uint64(o.kind)*4 + uint64(outcome),
		partition: o.partition, offset: o.offset, count: o.count, node: o.node, remark: remark})
}

// remark numbers what there is to say of an operation beside numbers.
func (c *collection) remark(o opened, ev *histories.Event) int {
	text := o.first
	if ev.Code != 0 {
		text = join(text, codeName(ev.Code))
	}
	text = report.Visible(join(text, ev.Note))
	i, known := c.remarkOf[text]
	switch {
	case known:
		return i
	case len(c.remarks) >= maxRemarks:
		text = "…"
		if i, known = c.remarkOf[text]; known {
			return i
		}
	}
	c.remarks = append(c.remarks, text)
	c.remarkOf[text] = len(c.remarks) - 1
	return len(c.remarks) - 1
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ": " + b
}

// codeName is Kafka's name of an error code, where it has one.
func codeName(code int16) string {
	if code == histories.NoAnswer {
		return "no answer"
	}
	if e, ok := kerr.ErrorForCode(code).(*kerr.Error); ok && e.Code == code {
		return e.Message
	}
	return fmt.Sprintf("code %d", code)
}

// lanes gives each process a row; a process that goes on where another of the same partition and role has ended shares its row. It returns the row of each
// process, and the rows in the order in which they are drawn.
func (c *collection) lanes() (of []int, lanes []lane) {
	order := make([]int, len(c.processes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		p, q := &c.processes[a], &c.processes[b]
		return cmp.Or(cmp.Compare(p.partition, q.partition), cmp.Compare(p.role, q.role), cmp.Compare(p.first, q.first))
	})
	of = make([]int, len(c.processes))
	begin := 0 // of the lanes of this partition and role
	for _, i := range order {
		p := &c.processes[i]
		if n := len(lanes); n > 0 && (lanes[n-1].Partition != p.partition || lanes[n-1].role != p.role) {
			begin = n
		}
		at := -1
		for j := begin; j < len(lanes); j++ {
			if lanes[j].last <= p.first && (at < 0 || lanes[j].last > lanes[at].last) {
				at = j
			}
		}
		if at < 0 {
			at = len(lanes)
			lanes = append(lanes, lane{Partition: p.partition, Role: roleNames[p.role], role: p.role})
		}
		l := &lanes[at]
		l.last = p.last
		l.Processes = append(l.Processes, p.id)
		of[i] = at
	}
	return of, lanes
}

// lane is one row of the picture of the whole run.
type lane struct {
	Partition int32   `json:"partition"`
	Role      string  `json:"role"`
	Processes []int32 `json:"processes"`
	role      role
	last      time.Duration
}
