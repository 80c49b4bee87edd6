package histories

import (
	"fmt"
	"math"
)

// s2Source reads the histories of S2's verification: one object a line, {"event": {"Start": …} or {"Finish": …}, "client_id": n, "op_id": n}.
// How the operations are kept is said at the step CheckTail. They have no times.
type s2Source struct {
	*forms
	tree tree
	seq  uint64
	open map[uint64]s2Operation // by op_id
}

type s2Operation struct {
	op      uint64
	process int32
	steps   []Step
}

func newS2Source(f *forms) *s2Source { return &s2Source{forms: f, open: map[uint64]s2Operation{}} }

func (s *s2Source) Next(ev *Event) error {
	form, line, err := s.forms.next()
	if err != nil {
		return err
	}
	if err = s.tree.parse(form, jsonSyntax); err == nil {
		err = s.event(ev)
	}
	if err != nil {
		return s.located(err, form, line)
	}
	return nil
}

func (s *s2Source) event(ev *Event) error {
	t := &s.tree
	f := jsonFields{tree: t}
	var id uint64
	var what int32
	s.seq++
	*ev = Event{Seq: s.seq, Kind: Object}
	err := f.each(0, func(name []byte, v int32) (i int, err error) {
		switch string(name) {
		case "event":
			what = v
			return 0, nil
		case "client_id":
			return 1, narrow(t, v, &ev.Process)
		case "op_id":
			id, err = t.unsigned(v)
			return 2, err
		}
		return -1, nil
	})
	switch {
	case err != nil:
		return err
	case f.seen != 7:
		return fmt.Errorf("%s, expected event, client_id and op_id", t.show(0))
	case t.nodes[what].kind != mapNode || t.nodes[what].count != 2:
		return fmt.Errorf("event %s, expected {\"Start\": …} or {\"Finish\": …}", t.show(what))
	}
	open, isOpen := s.open[id]
	value := t.child(what, 1)
	switch string(t.raw(t.child(what, 0))) {
	case "Start":
		if isOpen {
			return fmt.Errorf("op_id %d starts while it is open", id)
		}
		ev.Op = s.seq
		if ev.Steps, err = s.start(value); err != nil {
			return err
		}
		s.open[id] = s2Operation{s.seq, ev.Process, ev.Steps}
		return nil
	case "Finish":
		switch {
		case !isOpen:
			return fmt.Errorf("op_id %d finishes, but has not started", id)
		case open.process != ev.Process:
			return fmt.Errorf("client %d finishes op_id %d of client %d", ev.Process, id, open.process)
		}
		delete(s.open, id)
		ev.Op = open.op
		return s.finish(value, open.steps, ev)
	}
	return fmt.Errorf("event %s, expected Start or Finish", t.show(what))
}

// start reads what is asked.
func (s *s2Source) start(n int32) ([]Step, error) {
	t := &s.tree
	if t.nodes[n].kind == stringNode {
		switch string(t.raw(n)) {
		case "Read":
			return []Step{{Do: Read}}, nil
		case "CheckTail":
			return []Step{{Do: CheckTail}}, nil
		}
	}
	if t.nodes[n].kind != mapNode || t.nodes[n].count != 2 || string(t.raw(t.child(n, 0))) != "Append" {
		return nil, fmt.Errorf("start %s, expected \"Read\", \"CheckTail\" or {\"Append\": …}", t.show(n))
	}
	f := jsonFields{tree: t}
	var records uint64
	var conditions []Step
	step := Step{Do: AppendTo, Value: Datum{Form: List}}
	text := func(v int32, do Do) error {
		if t.nodes[v].kind == nilNode {
			return nil
		}
		token, err := jsonText(t, v)
		conditions = append(conditions, Step{Do: do, Value: Datum{Form: Text, Text: token}})
		return err
	}
	err := f.each(t.child(n, 1), func(name []byte, v int32) (i int, err error) {
		switch string(name) {
		case "num_records":
			records, err = t.unsigned(v)
			return 0, err
		case "record_hashes":
			if t.nodes[v].kind != vectorNode {
				return 1, fmt.Errorf("%s, expected a list of hashes", t.show(v))
			}
			for c := range t.children(v) {
				h, err := t.unsigned(c)
				if err != nil {
					return 1, err
				}
				step.Value.List = append(step.Value.List, int64(h))
			}
			return 1, nil
		case "set_fencing_token":
			return 2, text(v, SetToken)
		case "fencing_token":
			return 3, text(v, ExpectToken)
		case "match_seq_num":
			if t.nodes[v].kind == nilNode {
				return 4, nil
			}
			tail, err := s.tail(v)
			conditions = append(conditions, Step{Do: ExpectTail, Number: tail})
			return 4, err
		}
		return -1, nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("append: %w", err)
	case f.seen&3 != 3:
		return nil, fmt.Errorf("append %s, expected num_records and record_hashes", t.show(n))
	case records != uint64(len(step.Value.List)):
		return nil, fmt.Errorf("append with num_records %d and %d record_hashes, expected as many", records, len(step.Value.List))
	}
	return append(conditions, step), nil
}

func (s *s2Source) tail(n int32) (int64, error) {
	v, err := s.tree.unsigned(n)
	if err == nil && v > maxNumber {
		err = fmt.Errorf("%d, expected at most 2⁶¹", v)
	}
	return int64(min(v, math.MaxInt64)), err
}

// finish reads what was answered to steps.
func (s *s2Source) finish(n int32, asked []Step, ev *Event) error {
	t := &s.tree
	do := asked[len(asked)-1].Do
	name, value := "", int32(0)
	switch k := &t.nodes[n]; {
	case k.kind == stringNode:
		name = string(t.raw(n))
	case k.kind == mapNode && k.count == 2:
		name, value = string(t.raw(t.child(n, 0))), t.child(n, 1)
	}
	want, typ := AppendTo, OK
	switch name {
	case "AppendSuccess":
	case "AppendDefiniteFailure":
		typ = Fail
	case "AppendIndefiniteFailure":
		typ = Info
	case "ReadSuccess":
		want = Read
	case "ReadFailure":
		want, typ = Read, Fail
	case "CheckTailSuccess":
		want = CheckTail
	case "CheckTailFailure":
		want, typ = CheckTail, Fail
	default:
		name = ""
	}
	switch {
	case name == "" || (typ == OK) != (value != 0):
		return fmt.Errorf("finish %s, expected an outcome such as \"ReadFailure\" or {\"AppendSuccess\": {\"tail\": 3}}", t.show(n))
	case want != do:
		return fmt.Errorf("finish %s of an operation that is %v", name, do)
	}
	if ev.Type = typ; typ != OK {
		return nil
	}
	ev.Steps = append([]Step(nil), asked...)
	last := &ev.Steps[len(asked)-1]
	f := jsonFields{tree: t}
	err := f.each(value, func(name []byte, v int32) (i int, err error) {
		switch {
		case string(name) == "tail":
			last.Offset, err = s.tail(v)
			return 0, err
		case string(name) == "stream_hash" && do == Read:
			h, err := t.unsigned(v)
			last.Value = IntDatum(int64(h))
			return 1, err
		}
		return -1, nil
	})
	if err == nil && (f.seen&1 == 0 || do == Read && f.seen != 3) {
		err = fmt.Errorf("expected tail, and of a read stream_hash too")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
