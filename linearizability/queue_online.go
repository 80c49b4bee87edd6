package linearizability

import (
	"slices"
	"time"

	"ackproof/histories"
	"ackproof/model"
)

// QueueMonitor is CheckWorkQueue while the test runs; both give the same verdict.
//
// Nobody knows which message an open receive will return, nor therefore whether what has ended on a message meanwhile came before or after it. So of each
// message the states are kept as they were when the oldest receive that is still open began, and the operations since. With the end of each operation on a
// message these are searched again: whatever has to be placed grows only then, or when a nack or an ack that might have happened is refused.
//
// Memory per queue: about 300 bytes, 250 per open operation; per message from its send until it is deleted, all receives that were open then are over, and so is a lease
// that somebody else than who deleted it held, 400 bytes,
// 40 per state (one, but for overlaps), and 250 per operation since the oldest open receive began and for the last lease; 16 per stretch of consecutive
// numbers in the names of those that are done with (see CommitMonitor). A receive that never ends holds on to everything since.
type QueueMonitor struct {
	queueRules
	options MonitorOptions
	keys    map[string]*workNow
}

// workNow is what is still needed of one queue.
type workNow struct {
	by       map[string]*itemNow
	done     names
	ended    []*itemNow // deleted, in the order of their deletion, and not forgotten yet
	open     []*stepped // receives, by inv
	empty    *stepped   // the empty reply of the drain that began last
	lost     []*stepped // receives of unknown outcome: the one that ended last, and one that never did
	longest  time.Duration
	void     uint64     // an extension that ended later may be void, for receives of unknown outcome
	doubtful []*itemNow // with extensions that may be void for receives that are open
}

// itemNow is what is still needed of one message.
type itemNow struct {
	send     *stepped
	received bool
	acked    *stepped // its deletion, the first that was acknowledged
	states   []leaseState
	recent   []*leaseOp          // behind the states
	past     []*leaseOp          // before them, for proofs
	last     map[int32]*stepped  // by process: the receive that it completed last
	early    map[uint64]*stepped // phantom: receives that found it before its send was refused
	free     time.Duration       // when its lease is over at the earliest, −1: to be found out
}

// NewQueueMonitor begins with empty queues.
func NewQueueMonitor(o MonitorOptions) *QueueMonitor {
	o.fill(model.Lease, model.NoPhantom)
	return &QueueMonitor{queueRules: queueRules{drift: o.Drift}, options: o, keys: make(map[string]*workNow)}
}

// Step takes the next event; see Monitor.
func (m *QueueMonitor) Step(ev *histories.Event) (*model.Certificate, error) {
	m.phase(ev)
	err := m.step(ev, m)
	return m.take(), err
}

// Finish answers; see Monitor.
func (m *QueueMonitor) Finish(facts model.Facts) *Answer {
	m.options.Facts = facts
	m.counts.Info += int64(len(m.open))
	for _, name := range sortedKeys(m.keys) {
		k := m.keys[name]
		k.lost = append(k.lost, k.open...)
		open := int64(0)
		var first *stepped
		for _, value := range sortedKeys(k.by) {
			i := k.by[value]
			if i.received || i.send == nil || i.send.outcome != histories.OK {
				continue
			}
			if m.proves(k.empty, i.send, k.lost, k.longest) {
				m.vanished(i.send, k.empty)
				continue
			}
			open++
			if first == nil || i.send.inv < first.inv {
				first = i.send
			}
		}
		m.unproved(name, open, first)
	}
	return m.answer(&m.options, m.counts, queueDecides...)
}

func (m *QueueMonitor) begin(s *stepped) any {
	k := m.keys[s.Key]
	if k == nil {
		k = &workNow{by: make(map[string]*itemNow), done: make(names), void: forever}
		m.keys[s.Key] = k
	}
	switch s.Do {
	case histories.Receive:
		k.open = append(k.open, s)
		return s
	case histories.Enqueue:
		i := k.by[datum(s.Value)]
		switch {
		case i == nil && k.done.has(s.Value):
			m.sentTwice(s, s)
			return nil
		case i == nil || i.send == nil:
			i = k.item(s.Value)
			i.send = s
		default:
			m.sentTwice(i.send, s)
			return nil
		}
		return s
	case histories.Ack, histories.Nack, histories.Extend:
		i := k.by[datum(s.Value)]
		if i == nil || i.last[s.process] == nil {
			return nil
		}
		op := &leaseOp{s, i.last[s.process].inv}
		i.recent = append(i.recent, op) // it may take effect at any time from now on
		return op
	}
	return nil
}

func (k *workNow) item(value histories.Datum) *itemNow {
	i := k.by[datum(value)]
	if i == nil {
		i = &itemNow{states: []leaseState{{}}, last: make(map[int32]*stepped)}
		k.by[datum(value)] = i
	}
	return i
}

func (m *QueueMonitor) finish(s *stepped, remembered any) {
	k := m.keys[s.Key]
	switch s.Do {
	case histories.Receive:
		begun := remembered.(*stepped)
		k.open = slices.DeleteFunc(k.open, func(o *stepped) bool { return o == begun })
		m.received(k, s)
		again := k.doubtful
		k.doubtful = nil
		for _, i := range again {
			if len(i.recent) > 0 {
				m.judge(k, i, i.recent[len(i.recent)-1])
			}
		}
		m.forget(k, s.endTime)
	case histories.Enqueue:
		m.posted(s)
		begun, _ := remembered.(*stepped)
		if begun == nil {
			return
		}
		*begun = *s
		i := k.by[datum(s.Value)]
		if s.outcome != histories.Fail || i == nil || i.send != begun {
			return
		}
		for range i.early {
			m.phantom(firstOf(i.early), s)
		}
		if len(i.early) == 0 {
			delete(k.by, datum(s.Value))
		}
	case histories.Ack, histories.Nack, histories.Extend:
		op, _ := remembered.(*leaseOp)
		if op != nil {
			m.changed(k, s, op)
		} else if i := k.by[datum(s.Value)]; i != nil { // of a lease that is not held any more
			i.deleted(k, s)
		}
		m.forget(k, s.endTime)
	}
}

// firstOf is the receive that ended first.
func firstOf(all map[uint64]*stepped) (first *stepped) {
	for _, s := range all {
		if first == nil || s.end < first.end {
			first = s
		}
	}
	return first
}

// received takes the end of a receive.
func (m *QueueMonitor) received(k *workNow, s *stepped) {
	switch {
	case s.outcome == histories.Fail:
		return
	case s.outcome != histories.OK: // of lost replies the one that ended last excuses most
		k.lost = append(k.lost[:0], s)
		k.void = min(k.void, s.inv)
		return
	case s.Value.Form == histories.Nil:
		if m.drain != 0 && s.inv > m.drain && (k.empty == nil || s.inv > k.empty.inv) {
			k.empty = s
		}
		return
	}
	m.handed(s)
	k.longest = max(k.longest, time.Duration(s.Number))
	i := k.by[datum(s.Value)]
	switch {
	case i == nil && k.done.has(s.Value): // deleted before this receive, and all others that were open then
		m.afterAck(nil, s)
		i = k.item(s.Value)
		i.send, i.acked = s, s // nothing more is asked of them
	case i == nil || i.send == nil:
		m.phantom(s, nil)
		i = k.item(s.Value)
	case i.send.outcome == histories.Fail:
		m.phantom(s, i.send)
	case i.acked != nil && i.acked.end < s.inv:
		m.afterAck(i.acked, s)
	}
	if i.send != nil && i.send.outcome == histories.Invoke && i.send.end == 0 {
		if i.early == nil {
			i.early = make(map[uint64]*stepped)
		}
		i.early[s.inv] = s
	}
	i.received, i.free = true, -1
	m.fold(k, i, s.inv)
	i.recent = append(i.recent, &leaseOp{s, s.inv})
	i.last[s.process] = s
	m.judge(k, i, i.recent[len(i.recent)-1])
}

// changed takes the end of a nack, an ack or an extension.
func (m *QueueMonitor) changed(k *workNow, s *stepped, op *leaseOp) {
	i := k.by[datum(s.Value)]
	if i == nil {
		return
	}
	*op.stepped = *s
	i.free = -1
	i.deleted(k, s)
	switch {
	case s.outcome == histories.Fail:
		i.recent = slices.DeleteFunc(i.recent, func(o *leaseOp) bool { return o == op })
	case s.Do == histories.Extend && s.outcome == histories.OK:
		k.longest = max(k.longest, time.Duration(s.Number))
	}
	m.judge(k, i, op)
}

// deleted notes the first acknowledged deletion of a message.
func (i *itemNow) deleted(k *workNow, s *stepped) {
	if s.Do == histories.Ack && s.outcome == histories.OK && i.acked == nil {
		i.acked = s
		k.ended = append(k.ended, i)
	}
}

// judge searches a message again. A receive that is open may turn out to be of this message, and to have made an extension void; then it is searched again.
func (m *QueueMonitor) judge(k *workNow, i *itemNow, culprit *leaseOp) {
	void, ops := k.void, slices.Clone(i.recent)
	if len(k.open) > 0 {
		void = min(void, k.open[0].inv)
	}
	for n, op := range ops {
		if op.Do == histories.Extend && op.outcome == histories.OK && op.end > void {
			ops[n] = op.maybe()
			if op.end <= k.void && !slices.Contains(k.doubtful, i) {
				k.doubtful = append(k.doubtful, i)
			}
		}
	}
	switch _, v := m.search(i.states, ops); v {
	case model.Undecided:
		m.tooWide(datum(culprit.Value), ops)
	case model.Violated:
		m.early(culprit.Key, append(slices.Clone(i.past), ops...), culprit)
	default:
		return
	}
	i.keep(i.recent)
	i.states, i.recent = []leaseState{{}}, nil
}

// keep remembers operations for proofs.
func (i *itemNow) keep(ops []*leaseOp) {
	i.past = append(i.past, ops...)
	i.past = slices.Clone(i.past[max(0, len(i.past)-proofOps):])
}

// fold moves the states of a message forward, if every operation that is to come, now or later, begins behind all of its recent ones.
func (m *QueueMonitor) fold(k *workNow, i *itemNow, inv uint64) {
	if len(k.open) > 0 {
		inv = min(inv, k.open[0].inv)
	}
	if slices.ContainsFunc(i.recent, func(op *leaseOp) bool { return op.ret() > inv && op.outcome != histories.Info }) {
		return
	}
	ops := slices.Clone(i.recent)
	for n, op := range ops {
		if op.Do == histories.Extend && op.outcome == histories.OK && op.end > k.void {
			ops[n] = op.maybe()
		}
	}
	after, v := m.search(i.states, ops)
	if v != model.Held {
		return
	}
	i.keep(slices.DeleteFunc(slices.Clone(i.recent), func(op *leaseOp) bool { return op.outcome != histories.OK }))
	i.states = after
	// A nack or an ack of unknown outcome may still come, as long as its lease may be held.
	i.recent = slices.DeleteFunc(i.recent, func(op *leaseOp) bool {
		return op.outcome == histories.OK || !slices.ContainsFunc(after, func(s leaseState) bool { return s.holder == op.of })
	})
	for process, r := range i.last { // what is not held any more cannot be changed
		if process != 0 && !slices.ContainsFunc(after, func(s leaseState) bool { return s.holder == r.inv }) && r.end < inv {
			delete(i.last, process)
		}
	}
}

// leaseOver is when no lease of a message need be held any more: deletion by somebody else does not end it.
func (m *QueueMonitor) leaseOver(k *workNow, i *itemNow) time.Duration {
	ops := slices.Clone(i.recent)
	for n, op := range ops {
		if op.Do == histories.Extend && op.outcome == histories.OK && op.end > k.void {
			ops[n] = op.maybe()
		}
	}
	after, _ := m.search(i.states, ops)
	over := time.Duration(0)
	for n, s := range after {
		switch {
		case s.holder == 0:
			return 0
		case n == 0 || s.until < over:
			over = s.until
		}
	}
	return over
}

// forget lets go of messages that were deleted before every receive that is open began, about which nothing is open, and whose lease is over.
func (m *QueueMonitor) forget(k *workNow, now time.Duration) {
	k.ended = slices.DeleteFunc(k.ended, func(i *itemNow) bool {
		if len(k.open) > 0 && k.open[0].inv < i.acked.end || slices.ContainsFunc(i.recent, func(op *leaseOp) bool { return op.outcome == histories.Invoke }) {
			return false
		}
		if i.free < 0 {
			i.free = m.leaseOver(k, i)
		}
		if i.free > now {
			return false
		}
		k.done.add(i.acked.Value)
		delete(k.by, datum(i.acked.Value))
		return true
	})
}
