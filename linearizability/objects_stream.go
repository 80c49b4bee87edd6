package linearizability

import (
	"fmt"

	"ackproof/histories"
	"ackproof/model"
)

// streams decides S2's streams, each key by itself.
func (h *objects) streams(o *ObjectOptions) ([]model.ClaimResult, error) {
	components, err := h.streamComponents()
	if err != nil {
		return nil, err
	}
	d := &decision{h: h, result: newResult(model.Linearizable)}
	return []model.ClaimResult{d.search(components, o)}, nil
}

// streamComponents turns the history into calls on streams.
func (h *objects) streamComponents() ([]*component, error) {
	keys, ops := h.byKey()
	var components []*component
	for n, key := range keys {
		c := &component{keys: []string{key}, model: model.Stream(), machine: model.StreamMachine(), kind: "stream", weaken: weakenStream, unseen: func(items []item) []item { return items }}
		for _, i := range ops[n] {
			op := &h.ops[i]
			if op.outcome == histories.Fail {
				continue
			}
			call, err := streamCall(h.of(op))
			if err != nil {
				return nil, &histories.EventError{Seq: op.inv, What: err.Error()}
			}
			call.Unknown = op.indeterminate()
			it := item{op: i, call: call, inv: op.inv, ret: op.ret(), unknown: call.Unknown, reader: call.Verb != model.StreamAppend}
			if !(it.reader && it.unknown) {
				c.items = append(c.items, it)
			}
		}
		components = append(components, c)
	}
	return components, nil
}

// streamCall takes the last step, which is the one that does something, and the conditions before it.
func streamCall(steps []histories.Step) (model.StreamCall, error) {
	last := steps[len(steps)-1]
	call := model.StreamCall{Tail: last.Offset}
	switch last.Do {
	case histories.CheckTail:
		call.Verb = model.StreamTail
	case histories.Read:
		call.Verb, call.Hash = model.StreamRead, uint64(last.Value.Int)
	case histories.AppendTo:
		for _, r := range last.Value.List {
			call.Records = append(call.Records, uint64(r))
		}
	default:
		return call, fmt.Errorf("%v is its last step, expected append, read or check-tail", last.Do)
	}
	for _, s := range steps[:len(steps)-1] {
		switch {
		case call.Verb != model.StreamAppend:
			return call, fmt.Errorf("a condition on %v, expected conditions on appends only", last.Do)
		case s.Do == histories.ExpectTail:
			call.Match = &s.Number
		case s.Do == histories.ExpectToken:
			call.Token = &s.Value.Text
		case s.Do == histories.SetToken:
			call.SetToken = &s.Value.Text
		default:
			return call, fmt.Errorf("%v is not its last step, expected conditions before it", s.Do)
		}
	}
	return call, nil
}

func weakenStream(it item) (item, bool) {
	call := it.call.(model.StreamCall)
	call.Unknown = true
	it.call, it.unknown, it.ret = call, true, forever
	return it, !it.reader
}

// streamDeed is what an operation on a stream did, for the middle of a sentence.
func (h *objects) streamDeed(op *action) string {
	call, err := streamCall(h.of(op))
	if err != nil {
		return err.Error()
	}
	if op.outcome != histories.OK {
		call.Unknown = true
	}
	return call.String()
}
