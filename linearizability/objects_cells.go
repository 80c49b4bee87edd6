package linearizability

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"ackproof/histories"
	"ackproof/model"
)

// item is an operation as a search sees it: what it does, and the interval in which it took effect. An operation that certainly did not happen is none.
type item struct {
	op       int32 // in objects.ops
	call     any   // model.Call or model.StreamCall
	inv, ret uint64
	unknown  bool // may or may not have taken effect
	reader   bool // changes nothing: histories without it allow all that those with it do
}

// component is a set of objects that share operations, which are decided together and apart from all others.
type component struct {
	keys  []string
	items []item
	start model.Value
	text  bool // its values are texts
	model porcupine.Model
	// machine is the same as model.
	machine model.Machine
	kind    string // of object, for sentences
	// weaken gives the operation if nothing is known of its outcome; false if then nothing is left of it.
	weaken func(item) (item, bool)
	// unseen drops operations of unknown outcome that nobody can have seen. It may change what it is given.
	unseen func([]item) []item
}

// name is the objects for people.
func (c *component) name() string { return objectName(c.kind, c.keys) }

func objectName(kind string, keys []string) string {
	if len(keys) > 3 {
		keys = append(keys[:3:3], "…")
	}
	return strings.TrimSpace("the " + kind + " " + strings.Join(keys, ", "))
}

// cells decides everything that is made of cells: registers with unique values as they are, the others by search.
func (h *objects) cells(o *ObjectOptions) ([]model.ClaimResult, error) {
	start, err := cellValue(o.Start)
	if err != nil {
		return nil, fmt.Errorf("what the cells hold at first: %w", err)
	}
	kind, text, single := "register", false, true
	for i := range h.ops {
		single = single && h.ops[i].n == 1
	}
	for i := range h.steps {
		switch h.steps[i].Do {
		case histories.AppendTo:
			kind, text = "key", true
		case histories.Acquire, histories.Release:
			kind = "mutex"
		}
	}
	if text && start.Form == model.NoValue {
		start = model.Value{Form: model.TextValue} // a key that nobody put holds the empty text
	}
	blank := component{start: start, text: text, model: model.Cells(start), machine: model.CellMachine(start), kind: kind, weaken: weakenCells, unseen: unseenCells}
	d := &decision{h: h, result: newResult(model.Linearizable)}
	if !single {
		all := make([]int32, len(h.ops))
		for i := range all {
			all[i] = int32(i)
		}
		components, err := h.components(all, blank)
		if err != nil {
			return nil, err
		}
		return []model.ClaimResult{d.search(components, o)}, nil
	}
	var components []*component
	keys, ops := h.byKey()
	for i, key := range keys {
		if u := newUnique(h, key, ops[i], &blank); u != nil {
			d.exact(u)
			continue
		}
		more, err := h.components(ops[i], blank)
		if err != nil {
			return nil, err
		}
		components = append(components, more...)
	}
	return []model.ClaimResult{d.search(components, o)}, nil
}

// decision is the answer to the claim linearizable in the making.
type decision struct {
	h         *objects
	result    model.ClaimResult
	found     objectFindings
	undecided []string
}

// exact takes in a register that needs no search.
func (d *decision) exact(u *unique) {
	e := d.result.Evidence
	e["objects"]++
	e["exact"]++
	for _, i := range u.ops {
		switch op := &d.h.ops[i]; {
		case op.outcome == histories.OK:
			e["operations"]++
			if d.h.tells(op) {
				e["telling"]++
			}
		case op.indeterminate():
			e["operations"]++
			e["unknown"]++
		}
	}
	d.found.add(u.check()...)
}

// search goes through the components, the small ones first: what they leave of the budget is the others'.
func (d *decision) search(components []*component, o *ObjectOptions) model.ClaimResult {
	slices.SortStableFunc(components, func(a, b *component) int { return cmp.Compare(len(a.items), len(b.items)) })
	r := &d.result
	for i, c := range components {
		r.Evidence["objects"] += int64(len(c.keys))
		r.Evidence["searched"]++
		for _, it := range c.items {
			r.Evidence["operations"]++
			if it.unknown {
				r.Evidence["unknown"]++
			} else if d.h.tells(&d.h.ops[it.op]) {
				r.Evidence["telling"]++
			}
		}
		verdict, why := c.search(time.Until(d.h.deadline)/time.Duration(len(components)-i), o.Memory)
		switch verdict {
		case porcupine.Illegal:
			d.found.add(d.h.shrink(c))
		case porcupine.Unknown:
			d.undecided = append(d.undecided, why)
		}
	}
	d.found.into(r, model.Nonlinearizable, o.Places)
	switch {
	case len(r.Anomalies) > 0:
		r.Verdict = model.Violated
	case len(d.undecided) > 0:
		r.Verdict, r.Reason = model.Undecided, d.undecided[0]
		if n := len(d.undecided) - 1; n > 0 {
			r.Reason += "; and " + several(n, "more object")
		}
	case r.Evidence["telling"] == 0:
		r.Verdict, r.Reason = model.NotTested, "no answer says anything of what the object held"
	default:
		r.Verdict = model.Held
	}
	return *r
}

// tells tells whether the success of an operation says something of what the object held.
func (h *objects) tells(op *action) bool {
	return slices.ContainsFunc(h.of(op), func(s histories.Step) bool {
		return s.Do != histories.Write && (s.Do != histories.AppendTo || h.kind.name == "stream")
	})
}

func newResult(claim model.Claim) model.ClaimResult {
	return model.ClaimResult{ID: claim, Evidence: map[string]int64{}, Anomalies: []model.AnomalyResult{}, Permitted: []model.PermittedLoss{}}
}

// components turns operations into calls on cells and sorts them by what they share. Each component is otherwise like blank.
func (h *objects) components(ops []int32, blank component) ([]*component, error) {
	parent := make(map[string]string)
	var find func(string) string
	find = func(k string) string {
		p, known := parent[k]
		if !known {
			parent[k] = k
			return k
		}
		if p == k {
			return k
		}
		root := find(p)
		parent[k] = root
		return root
	}
	items := make([]item, 0, len(ops))
	first := make([]string, 0, len(ops)) // one key of each item
	for _, i := range ops {
		op := &h.ops[i]
		if op.outcome == histories.Fail {
			continue
		}
		it := item{op: i, inv: op.inv, ret: op.ret(), unknown: op.indeterminate(), reader: true}
		call := model.Call{Unknown: it.unknown}
		steps := h.of(op)
		for _, s := range steps {
			a, err := access(s, blank.text)
			if err != nil {
				return nil, &histories.EventError{Seq: op.inv, What: err.Error()}
			}
			if root := find(s.Key); root != find(steps[0].Key) {
				parent[root] = find(steps[0].Key)
			}
			if a.Verb == model.Get && it.unknown {
				continue
			}
			it.reader = it.reader && a.Verb == model.Get
			call.Accesses = append(call.Accesses, a)
		}
		if len(call.Accesses) == 0 {
			continue
		}
		it.call = call
		items = append(items, it)
		first = append(first, steps[0].Key)
	}
	byRoot := make(map[string]*component)
	var out []*component
	for i, it := range items {
		root := find(first[i])
		c := byRoot[root]
		if c == nil {
			copied := blank
			c = &copied
			byRoot[root] = c
			out = append(out, c)
		}
		c.items = append(c.items, it)
	}
	for k := range parent {
		if c := byRoot[find(k)]; c != nil {
			c.keys = append(c.keys, k)
		}
	}
	for _, c := range out {
		slices.Sort(c.keys)
		c.items = c.unseen(c.items)
	}
	return out, nil
}

// access turns a step into an access. In a key-value store (text) nothing, numbers and texts are all texts, as its append makes them.
func access(s histories.Step, text bool) (model.Access, error) {
	a := model.Access{Cell: s.Key}
	var err error
	if a.Value, err = cellValue(s.Value); err != nil {
		return a, err
	}
	if a.Old, err = cellValue(s.Old); err != nil {
		return a, err
	}
	if text {
		a.Value = asText(a.Value)
		a.Old = asText(a.Old)
	}
	switch s.Do {
	case histories.Read:
		a.Verb = model.Get
	case histories.Write:
		a.Verb = model.Put
	case histories.CompareAndSet:
		a.Verb = model.Swap
	case histories.AppendTo:
		a.Verb = model.Join
	case histories.Acquire:
		a.Verb, a.Value = model.Lock, model.Value{}
	case histories.Release:
		a.Verb, a.Value = model.Unlock, model.Value{}
	default:
		return a, fmt.Errorf("%v is not known of a cell", s.Do)
	}
	return a, nil
}

func cellValue(d histories.Datum) (model.Value, error) {
	switch d.Form {
	case histories.Nil:
		return model.Value{}, nil
	case histories.Int:
		return model.Value{Form: model.IntValue, Int: d.Int}, nil
	case histories.Text:
		return model.Value{Form: model.TextValue, Text: d.Text}, nil
	}
	return model.Value{}, fmt.Errorf("a value is a list, expected nothing, a number or a text")
}

func asText(v model.Value) model.Value {
	if v.Form == model.IntValue {
		v.Text = strconv.FormatInt(v.Int, 10)
	}
	return model.Value{Form: model.TextValue, Text: v.Text}
}

func weakenCells(it item) (item, bool) {
	call := model.Call{Unknown: true}
	for _, a := range it.call.(model.Call).Accesses {
		if a.Verb != model.Get {
			call.Accesses = append(call.Accesses, a)
		}
	}
	it.call, it.unknown, it.ret = call, true, forever
	return it, len(call.Accesses) > 0
}

// unseenCells drops calls of unknown outcome whose values nobody found. That changes no verdict: in a run where such a call took effect nobody looked at
// its cell until somebody else wrote it, so that the run goes as well without. What a dropped cas had found may in turn be unseen then.
func unseenCells(items []item) []item {
	type content struct {
		cell  string
		value model.Value
	}
	for {
		unknown, joins := 0, false
		found := make(map[content]bool)
		var texts []string
		for _, it := range items {
			if it.unknown {
				unknown++
			}
			for _, a := range it.call.(model.Call).Accesses {
				switch a.Verb {
				case model.Get:
					if at := (content{a.Cell, a.Value}); !found[at] {
						found[at] = true
						texts = append(texts, a.Value.Text)
					}
				case model.Swap:
					found[content{a.Cell, a.Old}] = true
				case model.Lock, model.Unlock:
					return items // each finds what others left
				case model.Join:
					joins = true
				}
			}
		}
		if unknown == 0 || joins && unknown*len(texts) > 1<<22 {
			return items
		}
		// A text stays the beginning of what its key holds, or a part of it, until somebody writes the key anew.
		seen := func(a model.Access) bool {
			switch {
			case a.Verb == model.Join:
				return a.Value.Text == "" || slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, a.Value.Text) })
			case joins:
				return slices.ContainsFunc(texts, func(s string) bool { return strings.HasPrefix(s, a.Value.Text) })
			}
			return found[content{a.Cell, a.Value}]
		}
		n := len(items)
		items = slices.DeleteFunc(items, func(it item) bool {
			return it.unknown && !slices.ContainsFunc(it.call.(model.Call).Accesses, seen)
		})
		if len(items) == n {
			return items
		}
	}
}
