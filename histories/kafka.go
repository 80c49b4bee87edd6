package histories

import (
	"fmt"
	"math"
	"slices"
)

// Jepsen's kafka workload as events of logs:
//
//   - a key is a partition. A value is unique within its key, not over the run, so that it becomes sequence number v of the producer
//     KeyProducer(key): the identity of the value is kept, and says nothing of the order of sending. In an operation of our own export
//     with :packed true it is producer·2⁴⁰ + sequence number;
//   - an operation with several micro-operations becomes several operations at once (Pipelined). A transaction is thus taken apart; the
//     format EDNTransactions keeps it whole;
//   - a poll becomes one Fetch for each partition that it returned. Where it began is not written down. It is derived from the assign with
//     seek-to-beginning and the polls before it, or, where that says nothing, taken to be the first offset that came. Under a subscribe the
//     group may have moved on, so each poll is a session of its own;
//   - a partition that a poll does not name was not read: that poll says nothing of it. A partition with an empty list was read and empty;
//   - polled records are evidence whatever became of the operation around them: such a Fetch is OK even in an operation that failed. The
//     position after it is unknown.

// KeyProducer is the producer of values that have no producer of their own, but are unique within one partition. It is negative: the
// sequence numbers of a negative producer are names and no order of sending.
func KeyProducer(partition int32) int32 { return -2 - partition }

// packedBits is the length of the sequence number in a value of our own export.
const packedBits = 40

// origin says whose value it is that was sent to, or found in, a partition, and which.
func (j *jepsen) origin(f *fields, partition int32, value int64) Value {
	if f.packed != 0 {
		return Value{Producer: int32(value >> packedBits), Sequence: value & (1<<packedBits - 1)}
	}
	return Value{Producer: KeyProducer(partition), Sequence: value}
}

// kafkaSend is a send micro-operation that is open.
type kafkaSend struct {
	id    uint64
	key   int32
	value int64
}

// kafkaReaders knows where each process goes on reading.
type kafkaReaders struct {
	byProcess map[int32]*kafkaReader
	sessions  int32
}

type kafkaReader struct {
	subscribed bool
	at         map[int32]kafkaPosition // by partition
}

type kafkaPosition struct {
	next    int64 // −1 unknown
	session int32
}

// isControl tells the operations of the workload that neither send nor poll.
func isControl(name string) bool {
	switch name {
	case "assign", "subscribe", "crash", "debug-topic-partitions":
		return true
	}
	return false
}

// isKafka tells an invocation of the kafka workload.
func (j *jepsen) isKafka(name string, f *fields) bool {
	switch {
	case name == "send" || name == "poll" || isControl(name):
		return true
	case name != "txn" || f.value == 0 || !j.tree.isVector(f.value, -1) || j.tree.nodes[f.value].count == 0:
		return false
	}
	return j.isKafkaOp(j.tree.child(f.value, 0))
}

func (j *jepsen) isKafkaOp(m int32) bool {
	t := &j.tree
	if !t.isVector(m, -1) || t.nodes[m].count == 0 {
		return false
	}
	name := string(t.name(t.child(m, 0)))
	return name == "send" || name == "poll"
}

// logEnd is the kind of an operation of our own export that asks for an end of a log, 0 for others.
func logEnd(name string) Kind {
	for _, k := range [...]Kind{EndOffset, StartOffset, CopyEnd} {
		if kindNames[k] == name {
			return k
		}
	}
	return 0
}

// logEnd reads its value, [key offset].
func (j *jepsen) logEnd(ev *Event, f *fields) (err error) {
	t := &j.tree
	if f.value == 0 || !t.isVector(f.value, 2) {
		return fmt.Errorf("%v with :value %s, expected [key offset]", ev.Kind, t.show(f.value))
	}
	if ev.Partition, err = j.partition(t.child(f.value, 0)); err != nil {
		return err
	}
	if o := t.child(f.value, 1); t.nodes[o].kind != nilNode {
		ev.Offset, err = t.integer(o)
	}
	return err
}

// microOps gives the micro-operations of a send, a poll or a transaction.
func (j *jepsen) microOps(f *fields) ([]int32, error) {
	t := &j.tree
	if f.value == 0 || !t.isVector(f.value, -1) || t.nodes[f.value].count == 0 {
		return nil, fmt.Errorf("%s without micro-operations, expected a :value such as [[:send 0 1] [:poll]]", t.show(f.f))
	}
	ops := j.micro[:0]
	for m := range t.children(f.value) {
		if !j.isKafkaOp(m) {
			return nil, fmt.Errorf("micro-operation %s, expected [:send k v] or [:poll]", t.show(m))
		}
		ops = append(ops, m)
	}
	j.micro = ops
	return ops, nil
}

// partition reads a key of the workload.
func (j *jepsen) partition(n int32) (int32, error) {
	t := &j.tree
	v, err := int64(0), error(nil)
	if k := t.nodes[n].kind; (k == stringNode || k == keywordNode) && !t.nodes[n].escaped { // keys of maps in JSON, and Maelstrom's keys
		b := t.name(n)
		if len(b) == 0 || len(b) > 10 {
			return 0, fmt.Errorf("key %s, expected a number", t.show(n))
		}
		for _, c := range b {
			if c < '0' || c > '9' {
				return 0, fmt.Errorf("key %s, expected a number", t.show(n))
			}
			v = v*10 + int64(c-'0')
		}
	} else if v, err = t.integer(n); err != nil {
		return 0, fmt.Errorf("key %w", err)
	}
	if v < 0 || v > math.MaxInt32-2 {
		return 0, fmt.Errorf("key %d, expected 0 to %d", v, math.MaxInt32-2)
	}
	return int32(v), nil
}

// send reads [:send k v] or [:send k [offset v]]; offset −1 is unknown.
func (j *jepsen) send(m int32) (key int32, value, offset int64, err error) {
	t := &j.tree
	bad := func(err error) (int32, int64, int64, error) {
		return 0, 0, 0, fmt.Errorf("micro-operation %s: %w", t.show(m), err)
	}
	if t.nodes[m].count != 3 {
		return bad(fmt.Errorf("expected [:send k v] or [:send k [offset v]]"))
	}
	if key, err = j.partition(t.child(m, 1)); err != nil {
		return bad(err)
	}
	v := t.child(m, 2)
	offset = -1
	if t.isVector(v, 2) {
		if o := t.child(v, 0); t.nodes[o].kind != nilNode {
			if offset, err = j.offset(o); err != nil {
				return bad(err)
			}
		}
		v = t.child(v, 1)
	}
	if value, err = j.value(v); err != nil {
		return bad(err)
	}
	return key, value, offset, nil
}

func (j *jepsen) offset(n int32) (int64, error) {
	v, err := j.tree.integer(n)
	switch {
	case err != nil:
		return 0, fmt.Errorf("offset %w", err)
	case v < 0 || v > maxNumber:
		return 0, fmt.Errorf("offset %d, expected 0 to 2⁶¹", v)
	}
	return v, nil
}

func (j *jepsen) value(n int32) (int64, error) {
	v, err := j.tree.integer(n)
	switch {
	case err != nil:
		return 0, fmt.Errorf("value %w", err)
	case v < 0 || v > maxNumber:
		return 0, fmt.Errorf("value %d, expected 0 to 2⁶¹", v)
	}
	return v, nil
}

// pollRead is what one operation read of one partition, in the order of reading.
type pollRead struct {
	key  int32
	runs []Run
}

// polled adds what a poll micro-operation returned to the reads of its operation. [:poll] alone returned nothing.
func (j *jepsen) polled(f *fields, reads []pollRead, m int32) ([]pollRead, error) {
	t := &j.tree
	switch {
	case t.nodes[m].count == 1:
		return reads, nil
	case t.nodes[m].count != 2:
		return nil, fmt.Errorf("micro-operation %s, expected [:poll] or [:poll {k [[offset v] …]}]", t.show(m))
	}
	found := t.child(m, 1)
	if t.nodes[found].kind == nilNode {
		return reads, nil
	}
	if t.nodes[found].kind != mapNode {
		return nil, fmt.Errorf("micro-operation %s, expected a map of keys to records", t.show(m))
	}
	for k := found + 1; k < t.nodes[found].next; {
		v := t.nodes[k].next
		key, err := j.partition(k)
		if err != nil {
			return nil, err
		}
		if !t.isVector(v, -1) {
			return nil, fmt.Errorf("records %s of key %d, expected [[offset v] …]", t.show(v), key)
		}
		at := -1
		for i := range reads {
			if reads[i].key == key {
				at = i
			}
		}
		if at < 0 {
			reads = append(reads, pollRead{key: key})
			at = len(reads) - 1
		}
		for r := range t.children(v) {
			if !t.isVector(r, 2) {
				return nil, fmt.Errorf("record %s of key %d, expected [offset v]", t.show(r), key)
			}
			offset, err := j.offset(t.child(r, 0))
			if err != nil {
				return nil, fmt.Errorf("record %s of key %d: %w", t.show(r), key, err)
			}
			defect, value := Sound, int64(0)
			if n := t.child(r, 1); t.nodes[n].kind == keywordNode && slices.Contains(defectNames[Corrupt:], string(t.raw(n))) {
				defect = Defect(slices.Index(defectNames[:], string(t.raw(n))))
			} else if value, err = j.value(n); err != nil {
				return nil, fmt.Errorf("record %s of key %d: %w", t.show(r), key, err)
			}
			v := j.origin(f, key, value)
			if defect != Sound {
				v = Value{}
			}
			reads[at].runs = AppendRecord(reads[at].runs, offset, v, defect)
		}
		k = t.nodes[v].next
	}
	return reads, nil
}

func (j *jepsen) invokeKafka(op *jepsenOp, ev Event, f *fields) error {
	if isControl(op.f) {
		return nil
	}
	ops, err := j.microOps(f)
	if err != nil {
		return err
	}
	for _, m := range ops {
		if string(j.tree.name(j.tree.child(m, 0))) == "poll" {
			op.polls = -2
			continue
		}
		key, value, _, err := j.send(m)
		if err != nil {
			return err
		}
		j.ids++
		op.sends = append(op.sends, kafkaSend{j.ids, key, value})
	}
	if f.batch != 0 && op.polls == -1 && len(op.sends) > 0 {
		return j.batch(op, ev, f)
	}
	pipelined := len(ops) > 1
	for _, s := range op.sends {
		j.push(Event{Kind: Append, Time: ev.Time, Op: s.id, Process: ev.Process, Node: ev.Node, Partition: s.key, Pipelined: pipelined, Note: ev.Note,
			Runs: appendWritten(nil, j.origin(f, s.key, s.value))})
		ev.Note = ""
	}
	if op.polls == -2 {
		op.polls = len(j.queue)
		j.queue = append(j.queue, queued{ev: Event{Time: ev.Time, Process: ev.Process, Node: ev.Node, Pipelined: pipelined}, waiting: true})
	}
	return nil
}

// batch invokes sends of our own export that were one append.
func (j *jepsen) batch(op *jepsenOp, ev Event, f *fields) error {
	op.batch = true
	ev.Kind, ev.Op, ev.Partition = Append, op.id, op.sends[0].key
	for _, s := range op.sends {
		if s.key != ev.Partition {
			return fmt.Errorf("a batch for the keys %d and %d, expected one", ev.Partition, s.key)
		}
		ev.Runs = appendWritten(ev.Runs, j.origin(f, s.key, s.value))
	}
	j.push(ev)
	return nil
}

// appendWritten adds a value to the runs of an append, which have no offsets.
func appendWritten(runs []Run, v Value) []Run {
	if n := len(runs); n > 0 && runs[n-1].Producer == v.Producer && runs[n-1].Sequence+int64(runs[n-1].Count) == v.Sequence && runs[n-1].Count < 1<<30 {
		runs[n-1].Count++
		return runs
	}
	return append(runs, Run{Producer: v.Producer, Sequence: v.Sequence, Count: 1})
}

func (j *jepsen) completeKafka(op *jepsenOp, ev Event, f *fields) error {
	if isControl(op.f) {
		return j.control(op.f, &ev, f)
	}
	if f.high == 0 {
		ev.HighWatermark = -1
	}
	var reads []pollRead
	var offsets []int64
	if t := &j.tree; f.value != 0 && t.nodes[f.value].kind != nilNode || ev.Type == OK {
		ops, err := j.microOps(f)
		if err != nil {
			return err
		}
		for _, m := range ops {
			if string(t.name(t.child(m, 0))) == "poll" {
				if op.polls < 0 {
					return fmt.Errorf("a poll in the completion of :%s, which did not ask for one", op.f)
				}
				if reads, err = j.polled(f, reads, m); err != nil {
					return err
				}
				continue
			}
			key, value, offset, err := j.send(m)
			if err != nil {
				return err
			}
			if n := len(offsets); n == len(op.sends) || op.sends[n].key != key || op.sends[n].value != value {
				return fmt.Errorf("micro-operation %s, which the invocation does not have at this place", t.show(m))
			}
			offsets = append(offsets, offset)
		}
	}
	if ev.Type == OK && len(offsets) != len(op.sends) {
		return fmt.Errorf("%d sends are completed, expected the %d of the invocation", len(offsets), len(op.sends))
	}
	if ev.Type == Info && ev.Code == 0 {
		ev.Code = NoAnswer
	}
	if op.batch {
		ev.Kind, ev.Op, ev.Partition, ev.HighWatermark = Append, op.id, op.sends[0].key, 0
		if ev.Type == OK {
			ev.Offset = offsets[0]
			for i, o := range offsets {
				if o != offsets[0]+int64(i) && (o >= 0 || offsets[0] >= 0) {
					return fmt.Errorf("a batch with offset %d at place %d, expected consecutive offsets from %d on", o, i+1, offsets[0])
				}
			}
		}
		j.push(ev)
		if ev.Type == Info {
			delete(j.kafka.byProcess, ev.Process)
		}
		return nil
	}
	for i, s := range op.sends {
		done := Event{Kind: Append, Type: ev.Type, Time: ev.Time, Op: s.id, Process: ev.Process, Node: ev.Node, Partition: s.key, Code: ev.Code, Note: ev.Note}
		if ev.Type == OK {
			done.Offset = offsets[i]
		}
		ev.Note = ""
		j.push(done)
	}
	if op.polls >= 0 {
		j.fetched(op, &ev, reads)
	}
	if ev.Type == Info {
		delete(j.kafka.byProcess, ev.Process)
	}
	return nil
}

// control takes the end of an assign, a subscribe or another operation that moves no records.
func (j *jepsen) control(name string, ev *Event, f *fields) error {
	t := &j.tree
	if name == "debug-topic-partitions" || name == "crash" || ev.Type == Info {
		if ev.Type == Info {
			delete(j.kafka.byProcess, ev.Process)
		}
		return nil
	}
	before := j.kafka.byProcess[ev.Process]
	now := &kafkaReader{subscribed: name == "subscribe", at: map[int32]kafkaPosition{}}
	j.kafka.byProcess[ev.Process] = now
	if now.subscribed || ev.Type == Fail {
		return nil
	}
	if f.value == 0 || !t.isVector(f.value, -1) && t.nodes[f.value].kind != setNode {
		return fmt.Errorf("an assign without keys, expected a :value such as [0 1]")
	}
	from := map[int32]int64{}
	if f.seekTo != 0 && t.nodes[f.seekTo].kind == mapNode {
		for k := f.seekTo + 1; k < t.nodes[f.seekTo].next; k = t.nodes[t.nodes[k].next].next {
			key, err := j.partition(k)
			if err != nil {
				return fmt.Errorf(":seek: %w", err)
			}
			if from[key], err = j.offset(t.nodes[k].next); err != nil {
				return fmt.Errorf(":seek: %w", err)
			}
		}
	}
	seek := f.seek != 0 && string(t.raw(f.seek)) == "true"
	for k := range t.children(f.value) {
		key, err := j.partition(k)
		if err != nil {
			return err
		}
		position, kept := kafkaPosition{}, false
		if before != nil && !before.subscribed {
			position, kept = before.at[key]
		}
		if !kept || seek {
			position = kafkaPosition{next: -1, session: j.session()}
			if seek {
				position.next = 0
			}
		}
		if next, given := from[key]; given {
			position.next = next
		}
		now.at[key] = position
	}
	return nil
}

func (j *jepsen) session() int32 {
	j.kafka.sessions++
	return j.kafka.sessions
}

// fetched turns the polls of an operation into fetches: their invocations go to where the operation began.
func (j *jepsen) fetched(op *jepsenOp, ev *Event, reads []pollRead) {
	q := &j.queue[op.polls]
	q.waiting = false
	begin := q.ev
	q.ev = Event{Kind: nothing}
	reader := j.kafka.byProcess[ev.Process]
	if reader == nil {
		reader = &kafkaReader{at: map[int32]kafkaPosition{}}
		j.kafka.byProcess[ev.Process] = reader
	}
	for _, r := range reads {
		at, known := reader.at[r.key]
		if !known || reader.subscribed {
			at = kafkaPosition{next: -1, session: j.session()}
		}
		from := at.next
		for i := range r.runs {
			if i == 0 && from < 0 || r.runs[i].Offset < from {
				from = r.runs[i].Offset
			}
		}
		if from < 0 { // an empty read from somewhere
			reader.at[r.key] = at
			continue
		}
		if n := len(r.runs); n > 0 {
			at.next = r.runs[n-1].Offset + int64(r.runs[n-1].Count)
		}
		j.ids++
		fetch := begin
		fetch.Kind, fetch.Op, fetch.Partition, fetch.Offset, fetch.Session = Fetch, j.ids, r.key, from, at.session
		fetch.Pipelined = begin.Pipelined || len(reads) > 1
		if q := &j.queue[op.polls]; q.ev.Kind == nothing {
			q.ev = fetch
		} else {
			q.more = append(q.more, fetch)
		}
		done := fetch
		done.Type, done.Time, done.Node, done.Pipelined, done.Runs, done.HighWatermark, done.Note = OK, ev.Time, ev.Node, false, r.runs, -1, ev.Note
		if len(reads) == 1 {
			done.HighWatermark = ev.HighWatermark
		}
		ev.Note = ""
		j.push(done)
		reader.at[r.key] = at
	}
	if ev.Type != OK { // where it goes on is anybody's guess
		clear(reader.at)
	}
}

// kafkaSteps reads an operation of the kafka workload as steps of a transaction. A send is an AppendTo with its Offset, −1 unknown. A poll
// is a Read: of no Key in an invocation or if nothing came, else one for each stretch of consecutive offsets, with the first of them.
func (j *jepsen) kafkaSteps(f *fields, typ Type) ([]Step, error) {
	t := &j.tree
	if typ != OK && typ != Invoke && (f.value == 0 || t.nodes[f.value].kind == nilNode) {
		return nil, nil
	}
	ops, err := j.microOps(f)
	if err != nil {
		return nil, err
	}
	var steps []Step
	for _, m := range ops {
		if string(t.name(t.child(m, 0))) == "send" {
			key, value, offset, err := j.send(m)
			if err != nil {
				return nil, err
			}
			steps = append(steps, Step{Do: AppendTo, Key: itoa(uint64(key)), Value: IntDatum(value), Offset: offset})
			continue
		}
		reads, err := j.polled(&fields{}, nil, m) // values stay as they are: a transaction names no producers
		if err != nil {
			return nil, err
		}
		n := len(steps)
		for _, r := range reads {
			var step *Step
			for _, run := range r.runs {
				for i := range int64(run.Count) {
					if step == nil || step.Offset+int64(len(step.Value.List)) != run.Offset+i {
						steps = append(steps, Step{Do: Read, Key: itoa(uint64(r.key)), Value: Datum{Form: List}, Offset: run.Offset + i})
						step = &steps[len(steps)-1]
					}
					if run.Defect != Sound {
						return nil, fmt.Errorf("micro-operation %s has a corrupt record, which a transaction cannot carry", t.show(m))
					}
					step.Value.List = append(step.Value.List, run.Sequence+i)
				}
			}
			if step == nil {
				steps = append(steps, Step{Do: Read, Key: itoa(uint64(r.key)), Value: Datum{Form: List}, Offset: -1})
			}
		}
		if n == len(steps) {
			steps = append(steps, Step{Do: Read, Offset: -1})
		}
	}
	return steps, nil
}

// sameKafkaSteps is sameSteps for an operation that was read whole: how many steps a poll becomes is only known when it is over.
func sameKafkaSteps(asked, got []Step, typ Type) error {
	isRead := func(s Step) bool { return s.Do == Read }
	if slices.ContainsFunc(got, isRead) && !slices.ContainsFunc(asked, isRead) {
		return fmt.Errorf("a poll, which the invocation did not ask for")
	}
	sends := func(steps []Step) []Step { return slices.DeleteFunc(slices.Clone(steps), isRead) }
	return sameSteps(sends(asked), sends(got), typ)
}
