package histories

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// jepsen turns Jepsen's operations, whichever syntax they came in, into events. It understands the workloads register, cas-register,
// multi-register, mutex, key-value, list-append, write-read register, queue and set as Object events, the kafka workload as events of
// logs (see kafka.go), and independent keys around any of them: such a key is the Key of the step, or stands with a slash before the keys of
// a transaction. Operations of processes that are no integers, such as :nemesis, are Fault marks. What it does not understand is an error;
// the keys of an operation that it has no use for are kept in the Note, as EDN.
//
// It holds the operations that are open, the processes that an :info has closed, and what was read behind the invocation of a poll that
// is still open: only the completion of a poll says which partitions it read.
type jepsen struct {
	tree  tree
	whole bool // keep operations of the kafka workload whole, as transactions

	open   map[int32]*jepsenOp
	closed map[int32]bool
	kafka  kafkaReaders
	keys   [2]string // a numeric key that was a number, and one that was a text

	spare []*jepsenOp
	micro []int32 // memory of microOps
	queue []queued
	head  int
	nextI int64  // least :index that may come next
	last  int64  // the last :time
	ids   uint64 // internal numbers of operations
	seq   uint64
	seqs  map[uint64]uint64 // internal number of an open operation → Seq of its invocation
}

// jepsenOp is the operation that a process has open.
type jepsenOp struct {
	f           string
	id          uint64
	independent bool
	key         string // of an independent operation
	steps       []Step // as invoked
	whole       bool   // of the kafka workload, but kept whole
	kafka       bool   // it became events of logs: the fields below
	sends       []kafkaSend
	batch       bool // its sends are one append
	polls       int  // place in the queue of what its polls read, −1 none
}

// queued is an event on its way out. Its Op is an internal number.
type queued struct {
	ev      Event
	waiting bool    // for the completion of a poll
	more    []Event // further invocations of its fetches, behind ev
}

// nothing is the Kind of a queued event that has been sent or never was one.
const nothing = Phase + 1

func newJepsen(whole bool) *jepsen {
	return &jepsen{whole: whole, open: map[int32]*jepsenOp{}, closed: map[int32]bool{}, kafka: kafkaReaders{byProcess: map[int32]*kafkaReader{}}, seqs: map[uint64]uint64{}}
}

// next gives the next event that is ready.
func (j *jepsen) next(ev *Event) bool {
	for j.head < len(j.queue) {
		q := &j.queue[j.head]
		switch {
		case q.waiting:
			return false
		case q.ev.Kind <= Phase:
			*ev = q.ev
			if q.ev.Kind = nothing; len(q.more) == 0 {
				j.pop()
			}
		case len(q.more) > 0:
			*ev = q.more[0]
			q.more = q.more[1:]
		default:
			j.pop()
			continue
		}
		j.stamp(ev)
		return true
	}
	return false
}

func (j *jepsen) pop() {
	j.queue[j.head] = queued{}
	if j.head++; j.head == len(j.queue) {
		j.queue, j.head = j.queue[:0], 0
	}
}

// compact moves the queue to the beginning of its memory once a half of it is spent. Places in the queue change by what it returns.
func (j *jepsen) compact() {
	if j.head < 1024 || j.head < len(j.queue)/2 {
		return
	}
	n := copy(j.queue, j.queue[j.head:])
	clear(j.queue[n:])
	for _, op := range j.open {
		op.polls -= j.head
	}
	j.queue, j.head = j.queue[:n], 0
}

// stamp gives an event its number, and its operation's number.
func (j *jepsen) stamp(ev *Event) {
	j.seq++
	ev.Seq = j.seq
	switch id := ev.Op; {
	case !ev.Kind.IsOperation():
		ev.Op = ev.Seq
	case ev.Type == Invoke:
		j.seqs[id] = ev.Seq
		ev.Op = ev.Seq
	default:
		ev.Op = j.seqs[id]
		delete(j.seqs, id)
	}
}

// finish ends the stream: polls that were never completed have read nothing.
func (j *jepsen) finish() {
	for i := j.head; i < len(j.queue); i++ {
		if q := &j.queue[i]; q.waiting {
			q.waiting, q.ev.Kind = false, nothing
		}
	}
}

func (j *jepsen) push(ev Event) { j.queue = append(j.queue, queued{ev: ev}) }

// fields are the keys of one operation, as nodes of the tree; 0, the operation itself, where one is missing.
type fields struct {
	index, time, typ, process, f, value, key      int32
	seek, seekTo                                  int32  // of an assign: :seek-to-beginning?, and our :seek {key offset}
	offset, number, node, code, high, epoch, note int32  // what our own export adds
	batch, packed                                 int32  // so do these
	extras                                        []byte // what else there is, as EDN
}

func (j *jepsen) fields(root int32) (f fields, err error) {
	t := &j.tree
	if t.nodes[root].kind != mapNode {
		return f, fmt.Errorf("%s, expected an operation: a map with :type, :process and :f", t.show(root))
	}
	for k := root + 1; k < t.nodes[root].next; {
		v := t.nodes[k].next
		var field *int32
		switch string(t.name(k)) {
		case "index":
			field = &f.index
		case "time":
			field = &f.time
		case "type":
			field = &f.typ
		case "process":
			field = &f.process
		case "f":
			field = &f.f
		case "value":
			field = &f.value
		case "key":
			field = &f.key
		case "seek-to-beginning?":
			field = &f.seek
		case "offset":
			field = &f.offset
		case "number":
			field = &f.number
		case "seek":
			field = &f.seekTo
		case "note":
			if t.nodes[v].kind == stringNode && f.note == 0 {
				f.note, k = v, t.nodes[v].next
				continue
			}
		case "node":
			field = number(t, v, &f.node)
		case "batch":
			field = &f.batch
		case "packed":
			field = &f.packed
		case "code":
			field = number(t, v, &f.code)
		case "high-watermark":
			field = number(t, v, &f.high)
		case "leader-epoch":
			field = number(t, v, &f.epoch)
		}
		switch {
		case field != nil && *field != 0:
			return f, fmt.Errorf(":%s stands twice in one operation", t.name(k))
		case field != nil:
			*field = v
		default:
			if len(f.extras) > 0 {
				f.extras = append(f.extras, ", "...)
			}
			if name := ":" + string(t.name(k)); t.nodes[k].kind == stringNode && isKeyword(name) {
				f.extras = append(f.extras, name...)
			} else {
				f.extras = t.appendEDN(f.extras, k)
			}
			f.extras = append(f.extras, ' ')
			f.extras = t.appendEDN(f.extras, v)
		}
		k = t.nodes[v].next
	}
	missing := ""
	switch 0 {
	case int(f.typ):
		missing = ":type"
	case int(f.f):
		missing = ":f"
	case int(f.process):
		missing = ":process"
	default:
		return f, nil
	}
	return f, fmt.Errorf("an operation without %s: %s", missing, t.show(root))
}

// number takes a key as one of ours only if its value is a number: others may use the name otherwise.
func number(t *tree, v int32, field *int32) *int32 {
	if t.nodes[v].kind != intNode {
		return nil
	}
	return field
}

// ours reads what our own export adds to an operation.
func (j *jepsen) ours(ev *Event, f *fields) (err error) {
	t := &j.tree
	if f.node != 0 && err == nil {
		err = narrow(t, f.node, &ev.Node)
	}
	if f.code != 0 && err == nil {
		err = narrow(t, f.code, &ev.Code)
	}
	if f.high != 0 && err == nil {
		err = wide(t, f.high, &ev.HighWatermark)
	}
	if f.epoch != 0 && err == nil {
		err = narrow(t, f.epoch, &ev.LeaderEpoch)
	}
	if f.note != 0 && err == nil {
		ev.Note, err = t.text(f.note)
		if len(f.extras) > 0 {
			ev.Note = joinNotes(string(f.extras), ":note "+string(t.appendEDN(nil, f.note)))
		}
	}
	return err
}

// operation takes the operation in the tree.
func (j *jepsen) operation() error {
	j.compact()
	t := &j.tree
	f, err := j.fields(0)
	if err != nil {
		return err
	}
	ev := Event{Kind: Object, Type: Info + 1}
	if i := slices.Index(typeNames[:], string(t.name(f.typ))); i >= 0 {
		ev.Type = Type(i)
	}
	if ev.Type > Info {
		return fmt.Errorf(":type %s, expected :invoke, :ok, :fail or :info", t.show(f.typ))
	}
	if f.index != 0 && t.nodes[f.index].kind != nilNode {
		index, err := t.integer(f.index)
		switch {
		case err != nil:
			return fmt.Errorf(":index %w", err)
		case index < j.nextI || index == math.MaxInt64:
			return fmt.Errorf(":index %d, expected %d or more: they rise", index, j.nextI)
		}
		j.nextI = index + 1
	}
	if f.time != 0 && t.nodes[f.time].kind != nilNode {
		at, err := t.integer(f.time)
		switch {
		case err != nil:
			return fmt.Errorf(":time %w", err)
		case at < j.last:
			return fmt.Errorf(":time %d lies before that of the operation before it, %d", at, j.last)
		}
		j.last = at
	}
	ev.Time = time.Duration(j.last)
	name := string(t.name(f.f))
	if name == "" {
		return fmt.Errorf(":f %s, expected a keyword", t.show(f.f))
	}
	if t.nodes[f.process].kind != intNode {
		j.mark(ev, &f)
		return nil
	}
	process, err := t.integer(f.process)
	if err != nil || process < math.MinInt32 || process > math.MaxInt32 {
		return fmt.Errorf(":process %s, expected a number of 32 bits", t.show(f.process))
	}
	ev.Process, ev.Note = int32(process), string(f.extras)
	if err := j.ours(&ev, &f); err != nil {
		return err
	}
	if ev.Type == Invoke {
		return j.invoke(ev, name, &f)
	}
	return j.complete(ev, name, &f)
}

// mark takes an operation of somebody who is no client.
func (j *jepsen) mark(ev Event, f *fields) {
	t := &j.tree
	ev.Kind, ev.Type = Fault, Info
	if name := string(t.name(f.f)); (name == "phase" || name == "fault") && f.value != 0 && t.nodes[f.value].kind == stringNode && len(f.extras) == 0 {
		if note, err := t.text(f.value); err == nil { // a mark of our own
			if ev.Note = note; name == "phase" {
				ev.Kind = Phase
			}
			if f.offset != 0 {
				ev.Offset, _ = t.integer(f.offset)
			}
			j.push(ev)
			return
		}
	}
	var note []byte
	if string(t.name(f.process)) != "nemesis" {
		note = append(t.appendEDN(append(note, ":process "...), f.process), ", "...)
	}
	if name := ":" + string(t.name(f.f)); isKeyword(name) { // a string in JSON
		note = append(append(note, ":f "...), name...)
	} else {
		note = t.appendEDN(append(note, ":f "...), f.f)
	}
	if f.value != 0 {
		note = t.appendEDN(append(note, ", :value "...), f.value)
	}
	if len(f.extras) > 0 {
		note = append(append(note, ", "...), f.extras...)
	}
	ev.Note = string(note)
	j.push(ev)
}

// newOp is an operation without anything, in the memory of one that is over if there is one.
func (j *jepsen) newOp() *jepsenOp {
	n := len(j.spare)
	if n == 0 {
		return new(jepsenOp)
	}
	op := j.spare[n-1]
	j.spare = j.spare[:n-1]
	*op = jepsenOp{sends: op.sends[:0]}
	return op
}

func (j *jepsen) invoke(ev Event, name string, f *fields) error {
	switch {
	case j.open[ev.Process] != nil:
		return fmt.Errorf("process %d invokes :%s with its :%s still open, expected one operation at a time", ev.Process, name, j.open[ev.Process].f)
	case j.closed[ev.Process]:
		return fmt.Errorf("process %d invokes :%s after an :info, which ends a process; expected a new number", ev.Process, name)
	}
	j.ids++
	op := j.newOp()
	op.f, op.id, op.polls = name, j.ids, -1
	var err error
	switch isLog := j.isKafka(name, f); {
	case isLog && (!j.whole || isControl(name)):
		op.kafka = true
		err = j.invokeKafka(op, ev, f)
	case logEnd(name) != 0:
		ev.Kind, ev.Op = logEnd(name), op.id
		err = j.logEnd(&ev, f)
		j.push(ev)
	case isLog:
		ev.Op = op.id
		op.whole = true
		ev.Steps, err = j.kafkaSteps(f, Invoke)
		op.steps = ev.Steps
		j.push(ev)
	default:
		op.independent = j.isIndependent(name, f)
		ev.Op = op.id
		ev.Steps, err = j.steps(op, f, Invoke)
		op.steps = ev.Steps
		j.push(ev)
	}
	if err != nil {
		return err
	}
	j.open[ev.Process] = op
	return nil
}

func (j *jepsen) complete(ev Event, name string, f *fields) error {
	op := j.open[ev.Process]
	switch {
	case op == nil:
		return fmt.Errorf("process %d completes :%s, which it has not invoked", ev.Process, name)
	case op.f != name:
		return fmt.Errorf("process %d completes :%s with its :%s open", ev.Process, name, op.f)
	}
	delete(j.open, ev.Process)
	defer func() { j.spare = append(j.spare, op) }()
	if ev.Type == Info {
		j.closed[ev.Process] = true
	}
	if op.kafka {
		return j.completeKafka(op, ev, f)
	}
	ev.Op = op.id
	var err error
	if ev.Kind = logEnd(name); ev.Kind != 0 {
		if err = j.logEnd(&ev, f); err == nil {
			j.push(ev)
		}
		return err
	}
	ev.Kind = Object
	if op.whole {
		if ev.Steps, err = j.kafkaSteps(f, ev.Type); err == nil && ev.Steps != nil {
			err = sameKafkaSteps(op.steps, ev.Steps, ev.Type)
		}
	} else {
		ev.Steps, err = j.steps(op, f, ev.Type)
	}
	if err != nil {
		return err
	}
	if ev.Type != OK && f.value != 0 && len(ev.Steps) == 0 && j.tree.nodes[f.value].kind != nilNode {
		ev.Note = joinNotes(ev.Note, ":error "+string(j.tree.appendEDN(nil, f.value))) // such as :timed-out
	}
	j.push(ev)
	return nil
}

func joinNotes(a, b string) string {
	if a == "" {
		return b
	}
	return a + ", " + b
}

// isIndependent tells, at its invocation, whether an operation's value is a pair of an independent key and the value proper.
func (j *jepsen) isIndependent(name string, f *fields) bool {
	t := &j.tree
	if f.value == 0 || f.key != 0 || !t.isVector(f.value, 2) {
		return false
	}
	first, second := t.child(f.value, 0), t.child(f.value, 1)
	if k := t.nodes[first].kind; k != intNode && k != stringNode && k != keywordNode {
		return false
	}
	switch name {
	case "txn":
		return t.isVector(second, -1)
	case "cas":
		return t.isVector(second, 2)
	case "append":
		return false // the pair of a key and a value already
	case "read":
		return t.nodes[second].kind == nilNode || t.isVector(second, -1)
	}
	return true
}

// steps reads the steps of an operation on objects.
func (j *jepsen) steps(op *jepsenOp, f *fields, typ Type) ([]Step, error) {
	t := &j.tree
	value := f.value
	prefix := ""
	if op.independent {
		switch {
		case value == 0 || t.nodes[value].kind == nilNode:
			value = 0
		case !t.isVector(value, 2):
			if typ == Fail || typ == Info {
				return nil, nil
			}
			return nil, fmt.Errorf(":value %s, expected the key and a value", t.show(value))
		default:
			key, err := j.key(t.child(value, 0))
			if err != nil {
				return nil, err
			}
			if typ == Invoke {
				op.key = key
			} else if key != op.key {
				return nil, fmt.Errorf("key %s, expected that of the invocation, %s", key, op.key)
			}
			value = t.child(value, 1)
		}
		prefix = op.key
	}
	empty := value == 0 || t.nodes[value].kind == nilNode
	if (typ == Fail || typ == Info) && (empty || t.nodes[value].kind == keywordNode || t.nodes[value].kind == stringNode) {
		return nil, nil
	}
	if !empty && t.isVector(value, -1) && t.nodes[value].count > 0 && j.isMicroOp(t.child(value, 0)) {
		steps := make([]Step, 0, t.nodes[value].count)
		for m := range t.children(value) {
			s, err := j.microOp(m)
			if err != nil {
				return nil, err
			}
			if prefix != "" {
				s.Key = prefix + "/" + s.Key
			}
			steps = append(steps, s)
		}
		return steps, sameSteps(op.steps, steps, typ)
	}
	if op.f == "txn" {
		return nil, fmt.Errorf("a transaction with :value %s, expected at least one micro-operation such as [:r 3 nil]", t.show(max(value, 0)))
	}
	s := Step{Key: prefix}
	if f.key != 0 {
		key, err := j.key(f.key)
		if err != nil {
			return nil, err
		}
		s.Key = key
	}
	var err error
	if s.Do, err = doOf(op.f); err != nil {
		return nil, fmt.Errorf("operation :%s, expected one of a known workload", op.f)
	}
	if f.offset != 0 {
		if s.Offset, err = t.integer(f.offset); err != nil {
			return nil, fmt.Errorf(":offset %w", err)
		}
	}
	switch {
	case f.number != 0:
		if s.Number, err = t.integer(f.number); err != nil {
			return nil, fmt.Errorf(":number %w", err)
		}
	case s.Do == Enqueue:
		s.Number = -1
	}
	switch {
	case s.Do == CompareAndSet && !empty:
		if !t.isVector(value, 2) {
			return nil, fmt.Errorf("a compare-and-set with :value %s, expected [old new]", t.show(value))
		}
		if s.Old, err = j.datum(t.child(value, 0)); err == nil {
			s.Value, err = j.datum(t.child(value, 1))
		}
	case s.Do == CompareAndSet && typ == Invoke:
		return nil, fmt.Errorf("a compare-and-set without values, expected [old new]")
	case s.Do == AppendTo && f.key == 0 && !empty && t.isVector(value, 2):
		if s.Key, err = j.key(t.child(value, 0)); err == nil {
			s.Value, err = j.datum(t.child(value, 1))
		}
	case !empty:
		s.Value, err = j.datum(value)
	case typ == OK && (s.Do == Write || s.Do == CompareAndSet || s.Do == AppendTo || s.Do == Enqueue || s.Do == Add) && len(op.steps) == 1:
		s.Value, s.Old, s.Key = op.steps[0].Value, op.steps[0].Old, op.steps[0].Key // the answer does not repeat what was asked
	}
	if err != nil {
		return nil, err
	}
	if f.key == 0 && typ != Invoke && s.Key == "" && len(op.steps) == 1 {
		s.Key = op.steps[0].Key
	}
	steps := []Step{s}
	return steps, sameSteps(op.steps, steps, typ)
}

// sameSteps refuses a completion that speaks of something else than its invocation.
func sameSteps(asked, got []Step, typ Type) error {
	if typ == Invoke {
		return nil
	}
	if len(asked) != len(got) {
		return fmt.Errorf("%d steps, expected the %d of the invocation", len(got), len(asked))
	}
	for i := range got {
		a, g := &asked[i], &got[i]
		if a.Do != g.Do || a.Key != g.Key {
			return fmt.Errorf("step %d is %v of %q, expected that of the invocation, %v of %q", i+1, g.Do, g.Key, a.Do, a.Key)
		}
		if g.Do.puts() && !(sameDatum(&a.Value, &g.Value) && sameDatum(&a.Old, &g.Old)) {
			return fmt.Errorf("step %d (%v of %q) has another value than its invocation", i+1, g.Do, g.Key)
		}
	}
	return nil
}

// puts tells whether a step's value is what is asked, not what is found.
func (d Do) puts() bool {
	return d == Write || d == CompareAndSet || d == AppendTo || d == Enqueue || d == Add
}

func sameDatum(a, b *Datum) bool {
	return a.Form == b.Form && a.Int == b.Int && a.Text == b.Text && slices.Equal(a.List, b.List)
}

var doAliases = map[string]Do{"r": Read, "get": Read, "w": Write, "put": Write}

func doOf(name string) (Do, error) {
	if d, ok := doAliases[name]; ok {
		return d, nil
	}
	if i := slices.Index(doNames[:], name); i >= 0 {
		return Do(i), nil
	}
	return 0, fmt.Errorf("unknown step :%s", name)
}

// isMicroOp tells a vector that begins with the name of a step.
func (j *jepsen) isMicroOp(n int32) bool {
	t := &j.tree
	if !t.isVector(n, -1) || t.nodes[n].count < 2 {
		return false
	}
	k := t.nodes[t.child(n, 0)].kind
	return k == keywordNode || k == stringNode
}

// microOp reads [:append k v], [:r k v], [:w k v], or any step by its name; a fourth element holds :old, :offset and :number.
func (j *jepsen) microOp(n int32) (s Step, err error) {
	t := &j.tree
	count := t.nodes[n].count
	if !j.isMicroOp(n) || count < 2 || count > 4 {
		return s, fmt.Errorf("micro-operation %s, expected one such as [:append 3 1] or [:r 3 nil]", t.show(n))
	}
	if s.Do, err = doOf(string(t.name(t.child(n, 0)))); err != nil {
		return s, fmt.Errorf("micro-operation %s: %w", t.show(n), err)
	}
	if k := t.child(n, 1); t.nodes[k].kind != nilNode {
		if s.Key, err = j.key(k); err != nil {
			return s, err
		}
	}
	if count > 2 {
		if s.Do == CompareAndSet && t.isVector(t.child(n, 2), 2) {
			if s.Old, err = j.datum(t.child(t.child(n, 2), 0)); err != nil {
				return s, err
			}
			s.Value, err = j.datum(t.child(t.child(n, 2), 1))
			return s, err
		}
		if s.Value, err = j.datum(t.child(n, 2)); err != nil {
			return s, err
		}
	}
	if count == 4 {
		return s, j.more(t.child(n, 3), &s)
	}
	return s, nil
}

func (j *jepsen) more(n int32, s *Step) (err error) {
	t := &j.tree
	if t.nodes[n].kind != mapNode {
		return fmt.Errorf("%s, expected a map with :old, :offset or :number", t.show(n))
	}
	for k := n + 1; k < t.nodes[n].next && err == nil; {
		v := t.nodes[k].next
		switch string(t.name(k)) {
		case "old":
			s.Old, err = j.datum(v)
		case "offset":
			s.Offset, err = t.integer(v)
		case "number":
			s.Number, err = t.integer(v)
		default:
			return fmt.Errorf("%s in a micro-operation, expected :old, :offset or :number", t.show(k))
		}
		k = t.nodes[v].next
	}
	return err
}

// key reads the name of an object. A number and a text of the same digits would be one key to us: a history that has both is refused.
func (j *jepsen) key(n int32) (string, error) {
	t := &j.tree
	switch t.nodes[n].kind {
	case intNode:
		v, err := t.integer(n)
		if err != nil {
			return "", err
		}
		s := strconv.FormatInt(v, 10)
		if j.keys[1] != "" {
			return "", fmt.Errorf("key %s is a number, expected texts: %q was one", s, j.keys[1])
		}
		j.keys[0] = s
		return s, nil
	case keywordNode, symbolNode:
		return string(t.raw(n)), nil
	case stringNode:
		s, err := t.text(n)
		if err != nil {
			return "", err
		}
		if _, err := strconv.ParseInt(s, 10, 64); err == nil {
			if j.keys[0] != "" {
				return "", fmt.Errorf("key %q is a text, expected numbers: %s was one", s, j.keys[0])
			}
			j.keys[1] = s
		}
		return s, nil
	}
	return "", fmt.Errorf("key %s, expected a number, a text or a keyword", t.show(n))
}

// datum reads a value.
func (j *jepsen) datum(n int32) (d Datum, err error) {
	t := &j.tree
	switch k := &t.nodes[n]; k.kind {
	case nilNode:
		return d, nil
	case intNode:
		v, err := t.integer(n)
		return IntDatum(v), err
	case stringNode:
		s, err := t.text(n)
		return Datum{Form: Text, Text: s}, err
	case keywordNode:
		return Datum{Form: Text, Text: ":" + string(t.raw(n))}, nil
	case boolNode, symbolNode, charNode:
		return Datum{Form: Text, Text: string(t.raw(n))}, nil
	case vectorNode, listNode, setNode:
		d.Form, d.List = List, make([]int64, 0, k.count)
		for c := range t.children(n) {
			v, err := t.integer(c)
			if err != nil {
				return d, fmt.Errorf("in the list %s: %w", t.show(n), err)
			}
			d.List = append(d.List, v)
		}
		return d, nil
	}
	return d, fmt.Errorf("value %s, expected nil, an integer, a text or a list of integers", t.show(n))
}
