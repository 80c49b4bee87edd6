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

// action is one operation on objects. Its number is its place in objects.ops, which is the order of invocation.
type action struct {
	inv, end         uint64 // sequence numbers; end 0: no completion
	invTime, endTime time.Duration
	process          int32
	first, n         int32 // its steps in objects.steps: as completed, or as asked if it has no answer
	code             int16
	outcome          histories.Type // Invoke: never completed
}

// forever is the end of an operation whose end is not known.
const forever = uint64(math.MaxInt64)

// ret is the last moment at which the operation can have taken effect.
func (a *action) ret() uint64 {
	if a.outcome == histories.OK {
		return a.end
	}
	return forever
}

// indeterminate tells that the operation may or may not have taken effect.
func (a *action) indeterminate() bool {
	return a.outcome == histories.Info || a.outcome == histories.Invoke
}

// objects is a whole history of operations on objects in memory.
type objects struct {
	ops      []action
	steps    []histories.Step
	counts   model.Operations
	timed    bool      // events have times
	kind     *object   // what they are taken for
	deadline time.Time // of all searches
}

func loadObjects(events iter.Seq2[histories.Event, error]) (*objects, error) {
	h := &objects{}
	join := histories.NewJoiner()
	for ev, err := range events {
		if err != nil {
			return nil, err
		}
		i, err := join.Join(&ev)
		if err != nil {
			return nil, err
		}
		h.timed = h.timed || ev.Time > 0
		switch {
		case i < 0:
		case ev.Kind != histories.Object:
			return nil, &histories.EventError{Seq: ev.Seq, What: fmt.Sprintf("%v in a history of objects, expected operations on objects only", ev.Kind)}
		case ev.Type == histories.Invoke:
			if len(h.ops) == math.MaxInt32 {
				return nil, fmt.Errorf("%w: more than %d operations", histories.ErrMalformed, math.MaxInt32)
			}
			a := action{inv: ev.Seq, invTime: ev.Time, endTime: -1, process: ev.Process, outcome: histories.Invoke}
			if a.first, a.n, err = h.keep(&ev); err != nil {
				return nil, err
			}
			h.ops = push(h.ops, a)
		default:
			a := &h.ops[i]
			a.end, a.endTime, a.outcome, a.code = ev.Seq, ev.Time, ev.Type, ev.Code
			if ev.Type == histories.OK {
				if err := h.answer(a, &ev); err != nil {
					return nil, err
				}
			}
			switch ev.Type {
			case histories.OK:
				h.counts.OK++
			case histories.Fail:
				h.counts.Fail++
			default:
				h.counts.Info++
			}
		}
	}
	for i := range h.ops {
		if h.ops[i].outcome == histories.Invoke {
			h.counts.Info++
		}
	}
	return h, nil
}

// keep copies the steps of an event, whose memory is its reader's.
func (h *objects) keep(ev *histories.Event) (first, n int32, err error) {
	if len(h.steps)+len(ev.Steps) > math.MaxInt32 {
		return 0, 0, fmt.Errorf("%w: event %d: more than %d steps", histories.ErrMalformed, ev.Seq, math.MaxInt32)
	}
	first = int32(len(h.steps))
	for _, s := range ev.Steps {
		s.Value.List = slices.Clone(s.Value.List)
		h.steps = push(h.steps, s)
	}
	return first, int32(len(ev.Steps)), nil
}

// answer puts what was seen into the steps that were asked. A completion may leave out the value that the operation brought with it, but not change it.
func (h *objects) answer(a *action, ev *histories.Event) error {
	steps := h.of(a)
	if len(ev.Steps) != len(steps) {
		return &histories.EventError{Seq: ev.Seq, What: fmt.Sprintf("%d steps complete an operation of %d", len(ev.Steps), len(steps))}
	}
	for i, seen := range ev.Steps {
		s := &steps[i]
		if seen.Do != s.Do || seen.Key != s.Key {
			return &histories.EventError{Seq: ev.Seq, What: fmt.Sprintf("%v of %q completes %v of %q", seen.Do, seen.Key, s.Do, s.Key)}
		}
		switch s.Do {
		case histories.Read, histories.Dequeue, histories.Drain:
			s.Value = seen.Value
			s.Value.List = slices.Clone(s.Value.List)
		default:
			if seen.Value.Form != histories.Nil && !sameDatum(seen.Value, s.Value) || seen.Old.Form != histories.Nil && !sameDatum(seen.Old, s.Old) {
				return &histories.EventError{Seq: ev.Seq, What: fmt.Sprintf("%s completes a %s", stepDeed(seen), stepDeed(*s))}
			}
		}
		s.Offset = seen.Offset
	}
	return nil
}

func sameDatum(a, b histories.Datum) bool {
	return a.Form == b.Form && a.Int == b.Int && a.Text == b.Text && slices.Equal(a.List, b.List)
}

// of gives the steps of an operation.
func (h *objects) of(a *action) []histories.Step { return h.steps[a.first : a.first+a.n] }

// byKey groups single-step operations by the object that they name, in the order in which the objects first appear.
func (h *objects) byKey() (keys []string, ops [][]int32) {
	number := make(map[string]int)
	last := -1
	for i := range h.ops {
		key := h.steps[h.ops[i].first].Key
		if last < 0 || keys[last] != key {
			n, known := number[key]
			if !known {
				n = len(keys)
				number[key] = n
				keys, ops = append(keys, key), append(ops, nil)
			}
			last = n
		}
		ops[last] = push(ops[last], int32(i))
	}
	return keys, ops
}
