package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// Value is what a cell holds. The zero Value is nothing. Values are compared with ==.
type Value struct {
	Form ValueForm
	Int  int64
	Text string
}

// ValueForm is the form of a Value.
type ValueForm uint8

// The forms of a value.
const (
	NoValue ValueForm = iota
	IntValue
	TextValue
)

// String prints the value as a certificate does.
func (v Value) String() string {
	switch v.Form {
	case IntValue:
		return fmt.Sprint(v.Int)
	case TextValue:
		return fmt.Sprintf("%q", v.Text)
	}
	return "nothing"
}

// Verb is what an access does to its cell.
type Verb uint8

// The verbs. Each is one atomic step of the cell that it names.
const (
	Get    Verb = iota // finds Value there
	Put                // leaves Value there
	Swap               // finds Old there and leaves Value (compare-and-set; one that failed is no operation)
	Join               // puts the text Value behind the text that is there; nothing counts as the empty text
	Lock               // finds the mutex free and leaves it held. Who holds it is not asked
	Unlock             // finds the mutex held and leaves it free
)

// Access is one step of an operation on cells.
type Access struct {
	Verb  Verb
	Cell  string
	Value Value
	Old   Value // of a Swap
}

// Call is an operation on cells: its accesses in order, all at one instant. It is the input of the porcupine model; there is no output.
type Call struct {
	Accesses []Access
	// Unknown: it may or may not have taken effect. What it would have read is not known, so it has no Get.
	Unknown bool
}

// held is what a mutex holds.
var held = Value{Form: IntValue, Int: 1}

// cell is one cell of a state that is not as it was in the beginning.
type cell struct {
	name  string
	value Value
}

// Cells is the sequential specification of everything that is made of named cells: register, cas-register, multi-register, mutex and key-value
// store. They differ only in the verbs that their operations use. Every cell holds initial at first (a mutex: nothing, which is free).
//
// A call of unknown outcome leads to a set of two states, with its effect and without. That is not the same as a call that may be placed last: the
// search then need not guess which calls took effect at all, and legal histories with many of them are decided in time.
func Cells(initial Value) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{[]cell(nil)} },
		Step: func(state, input, _ any) []any {
			call := input.(Call)
			next, ok := call.apply(state.([]cell), initial)
			switch {
			case !call.Unknown && !ok:
				return nil
			case !call.Unknown:
				return []any{next}
			case !ok:
				return []any{state}
			}
			return []any{state, next}
		},
		Equal:             func(a, b any) bool { return slices.Equal(a.([]cell), b.([]cell)) },
		DescribeOperation: func(input, _ any) string { return input.(Call).String() },
		DescribeState: func(state any) string {
			var parts []string
			for _, c := range state.([]cell) {
				parts = append(parts, strings.TrimPrefix(c.name+"="+c.value.String(), "="))
			}
			return strings.Join(parts, " ")
		},
	}
	return m.ToModel()
}

// apply gives the state after the call; false if it cannot happen in this state. The state itself stays as it is.
func (c Call) apply(state []cell, initial Value) ([]cell, bool) {
	fresh := false
	for _, a := range c.Accesses {
		i, there := slices.BinarySearchFunc(state, a.Cell, func(c cell, name string) int { return cmp.Compare(c.name, name) })
		now := initial
		if a.Verb == Lock || a.Verb == Unlock {
			now = Value{}
		}
		if there {
			now = state[i].value
		}
		next, ok := a.step(now)
		if !ok {
			return nil, false
		}
		if next == now {
			continue
		}
		if !fresh {
			state, fresh = append(make([]cell, 0, len(state)+1), state...), true
		}
		if !there {
			state = slices.Insert(state, i, cell{name: a.Cell})
		}
		state[i].value = next
	}
	return state, true
}

// step gives what the cell holds after the access, and whether the access can happen at all.
func (a Access) step(now Value) (Value, bool) {
	switch a.Verb {
	case Get:
		return now, now == a.Value
	case Put:
		return a.Value, true
	case Swap:
		return a.Value, now == a.Old
	case Join:
		return Value{Form: TextValue, Text: now.Text + a.Value.Text}, now.Form != IntValue && a.Value.Form == TextValue
	case Lock:
		return held, now == Value{}
	case Unlock:
		return Value{}, now == held
	}
	return now, false
}

// String prints the access for people.
func (a Access) String() string {
	on := ""
	if a.Cell != "" {
		on = " " + a.Cell
	}
	switch a.Verb {
	case Get:
		return fmt.Sprintf("read%s: %v", on, a.Value)
	case Put:
		return fmt.Sprintf("write%s %v", on, a.Value)
	case Swap:
		return fmt.Sprintf("cas%s from %v to %v", on, a.Old, a.Value)
	case Join:
		return fmt.Sprintf("append%s %v", on, a.Value)
	case Lock:
		return "acquire" + on
	case Unlock:
		return "release" + on
	}
	return "unknown access"
}

// String prints the call for people.
func (c Call) String() string {
	parts := make([]string, len(c.Accesses))
	for i, a := range c.Accesses {
		parts[i] = a.String()
	}
	text := strings.Join(parts, ", ")
	if c.Unknown {
		text += " (unknown outcome)"
	}
	return text
}
