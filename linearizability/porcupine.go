package linearizability

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"

	"ackproof/histories"
	"ackproof/model"
)

// PorcupineWindow is a piece of a history as porcupine takes it: for its own checker, and for its visualizer.
type PorcupineWindow struct {
	Name string // the partition with its offsets, or the object
	// Dense, of a log: no offset may be left out. From is the log's length when the window begins.
	Dense bool
	From  int64
	Model porcupine.Model
	// Operations are in the order of their calls. Times are those of the journal, as numbers of events. ClientId is a lane for drawing: operations of
	// one lane do not overlap. One of unknown outcome returns never.
	Operations []porcupine.Operation
}

// PorcupineLog gives the windows of one partition that touch the offsets [from, to), of the log that a has judged by CheckLog; in the same form as the second
// opinion sees them, see window.go. Windows of which not every record is known are left out: porcupine would have nothing to go by.
func PorcupineLog(a *Answer, partition int32, from, to int64) ([]PorcupineWindow, error) {
	i := slices.IndexFunc(a.log.parts, func(p *part) bool { return p.number == partition })
	if i < 0 {
		return nil, fmt.Errorf("the history has no partition %d, expected one of its %d", partition, len(a.log.parts))
	}
	var out []PorcupineWindow
	windows := a.log.windows(a.log.parts[i])
	for i := range windows {
		w := &windows[i]
		if w.from >= to || w.to <= from && w.to > w.from {
			continue
		}
		if w.build(); !w.unread && len(w.ops) > 1 {
			for i := range w.ops { // what never ends does so behind everything
				o := &w.ops[i]
				if o.Call >= int64(endless) {
					o.Call = math.MaxInt64 - 1
				}
				if o.Return >= int64(endless)-1 {
					o.Return = math.MaxInt64 - 2 + o.Return - int64(endless) + 1
				}
			}
			out = append(out, PorcupineWindow{fmt.Sprintf("%s[%d,%d)", w.part.name(), w.from, w.to), a.log.tally.contract.Dense, w.from, w.model(), lanes(w.ops)})
		}
	}
	return out, nil
}

// PorcupineObjects gives one window for each object, or set of objects that share operations, of a history that CheckObjects decides by porcupine's
// models: name is register, cas-register, multi-register, mutex, kv or stream.
func PorcupineObjects(events iter.Seq2[histories.Event, error], name string) ([]PorcupineWindow, error) {
	h, err := loadObjects(events)
	if err != nil {
		return nil, err
	}
	k := kindOf(name)
	if k == nil || k.promised[0] != model.Linearizable {
		return nil, fmt.Errorf("%q has no model of porcupine, expected register, cas-register, multi-register, mutex, kv or stream", name)
	}
	if err := h.allow(k); err != nil {
		return nil, err
	}
	h.kind = k
	var components []*component
	if name == "stream" {
		components, err = h.streamComponents()
	} else {
		blank := component{model: model.Cells(model.Value{}), kind: name, unseen: func(items []item) []item { return items }}
		if blank.text = name == "kv"; blank.text {
			blank.model = model.Cells(model.Value{Form: model.TextValue})
		}
		all := make([]int32, len(h.ops))
		for i := range all {
			all[i] = int32(i)
		}
		components, err = h.components(all, blank)
	}
	if err != nil {
		return nil, err
	}
	out := make([]PorcupineWindow, len(components))
	for i, c := range components {
		out[i] = PorcupineWindow{Name: c.name(), Model: c.model, Operations: lanes(operations(c.items))}
	}
	return out, nil
}

// lanes sorts operations by their calls and gives each the first lane that is free.
func lanes(ops []porcupine.Operation) []porcupine.Operation {
	ops = slices.Clone(ops)
	slices.SortStableFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var busy []int64 // until when
	for i := range ops {
		n := slices.IndexFunc(busy, func(until int64) bool { return until < ops[i].Call })
		if n < 0 {
			n, busy = len(busy), append(busy, 0)
		}
		busy[n], ops[i].ClientId = ops[i].Return, n
	}
	return ops
}

// Events gives the same as porcupine's list of events: of each operation a call with its input, and a return. At one moment calls come first, since
// porcupine's intervals are closed.
func (w PorcupineWindow) Events() []porcupine.Event {
	type moment struct {
		at    int64
		event porcupine.Event
	}
	var all []moment
	for id, op := range w.Operations {
		all = append(all, moment{op.Call, porcupine.Event{ClientId: op.ClientId, Kind: porcupine.CallEvent, Value: op.Input, Id: id}},
			moment{op.Return, porcupine.Event{ClientId: op.ClientId, Kind: porcupine.ReturnEvent, Value: op.Output, Id: id}})
	}
	slices.SortStableFunc(all, func(a, b moment) int {
		if a.at != b.at {
			return cmp.Compare(a.at, b.at)
		}
		return cmp.Compare(kindOrder(a.event), kindOrder(b.event))
	})
	events := make([]porcupine.Event, len(all))
	for i := range all {
		events[i] = all[i].event
	}
	return events
}

func kindOrder(e porcupine.Event) int {
	if e.Kind == porcupine.CallEvent {
		return 0
	}
	return 1
}

// MarshalJSON writes the window for programs that have porcupine but not these models: its operations with their times, in words and as data. A return that never
// comes is null.
func (w PorcupineWindow) MarshalJSON() ([]byte, error) {
	type operation struct {
		Client int    `json:"client"`
		Call   int64  `json:"call"`
		Return *int64 `json:"return"`
		Text   string `json:"text"`
		Input  any    `json:"input"`
	}
	out := struct {
		Name       string      `json:"name"`
		From       int64       `json:"from"`
		Dense      bool        `json:"dense"`
		Operations []operation `json:"operations"`
	}{w.Name, w.From, w.Dense, []operation{}}
	for _, op := range w.Operations {
		o := operation{Client: op.ClientId, Call: op.Call, Text: w.Model.DescribeOperation(op.Input, op.Output), Input: op.Input}
		if op.Return < math.MaxInt64-2 {
			o.Return = &op.Return
		}
		switch in := op.Input.(type) {
		case put:
			o.Input = map[string]any{"append": in.offset, "records": in.n, "lasting": in.lasting}
		case look:
			o.Input = map[string]any{"read_needs": in.length, "sound": in.sound}
		case closing:
			o.Input = map[string]any{"end": in.length, "sound": in.sound}
		}
		out.Operations = append(out.Operations, o)
	}
	return json.Marshal(out)
}

// describe says in words what an operation of the log's model is.
func describe(input any) string {
	switch in := input.(type) {
	case put:
		if !in.lasting {
			return fmt.Sprintf("append of %d at %d, which the log does not have", in.n, in.offset)
		}
		return fmt.Sprintf("append of %d at %d", in.n, in.offset)
	case look:
		if !in.sound {
			return "read of what the log does not have"
		}
		return fmt.Sprintf("read of a log that was %d long", in.length)
	case closing:
		return fmt.Sprintf("log end at %d", in.length)
	}
	return fmt.Sprint(input)
}
