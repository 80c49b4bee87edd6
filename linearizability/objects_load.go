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
	first            int32 // of its steps as asked, in objects.steps
	answer           int32 // first of its steps as completed; those asked if it has no answer
	asks, answers    int32 // how many
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
		switch {
		case i < 0:
		case ev.Kind != histories.Object:
			return nil, &histories.EventError{Seq: ev.Seq, What: fmt.Sprintf("%v in a history of objects, expected operations on objects only", ev.Kind)}
		case ev.Type == histories.Invoke:
			if len(h.ops) == math.MaxInt32 {
				return nil, fmt.Errorf("%w: more than %d operations", histories.ErrMalformed, math.MaxInt32)
			}
			a := action{inv: ev.Seq, invTime: ev.Time, endTime: -1, process: ev.Process, outcome: histories.Invoke}
			if a.first, a.asks, err = h.keep(&ev); err != nil {
				return nil, err
			}
			a.answer, a.answers = a.first, a.asks
			h.ops = push(h.ops, a)
		default:
			a := &h.ops[i]
			a.end, a.endTime, a.outcome, a.code = ev.Seq, ev.Time, ev.Type, ev.Code
			if len(ev.Steps) > 0 && ev.Type == histories.OK {
				if a.answer, a.answers, err = h.keep(&ev); err != nil {
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

// asked gives the steps of the invocation.
func (h *objects) asked(a *action) []histories.Step { return h.steps[a.first : a.first+a.asks] }

// seen gives the steps as completed; of an operation without an answer, those asked.
func (h *objects) seen(a *action) []histories.Step { return h.steps[a.answer : a.answer+a.answers] }

// byKey groups single-step operations by the object that they name, in the order in which the objects first appear.
func (h *objects) byKey() (keys []string, ops map[string][]int32) {
	ops = make(map[string][]int32)
	for i := range h.ops {
		key := h.asked(&h.ops[i])[0].Key
		if _, known := ops[key]; !known {
			keys = append(keys, key)
		}
		ops[key] = push(ops[key], int32(i))
	}
	return keys, ops
}
