package model

import (
	"encoding/binary"
	"strconv"
)

// Machine is a sequential specification as a search of one's own wants it: without sets of states, so that it is up to the search whether a call of
// unknown outcome took effect.
type Machine struct {
	Init any
	// Apply gives the state after a call took effect; false if it cannot have had the answer that it had, or cannot have happened. The state itself stays as
	// it is.
	Apply func(state, call any) (next any, ok bool)
	// Key is the same for two states iff they are the same.
	Key func(state any) string
}

// CellMachine is the specification of Cells; its calls are of type Call.
func CellMachine(initial Value) Machine {
	return Machine{
		Init:  []cell(nil),
		Apply: func(state, call any) (any, bool) { return call.(Call).apply(state.([]cell), initial) },
		Key: func(state any) string {
			var b []byte
			for _, c := range state.([]cell) {
				b = strconv.AppendQuote(b, c.name)
				b = append(b, byte('0'+c.value.Form))
				b = strconv.AppendInt(b, c.value.Int, 10)
				b = strconv.AppendQuote(b, c.value.Text)
			}
			return string(b)
		},
	}
}

// StreamMachine is the specification of Stream; its calls are of type StreamCall.
func StreamMachine() Machine {
	return Machine{
		Init:  stream{},
		Apply: func(state, call any) (any, bool) { return call.(StreamCall).apply(state.(stream)) },
		Key: func(state any) string {
			s := state.(stream)
			b := binary.LittleEndian.AppendUint64(nil, uint64(s.tail))
			b = binary.LittleEndian.AppendUint64(b, s.hash)
			if s.fenced {
				b = append(append(b, 1), s.token...)
			}
			return string(b)
		},
	}
}
