package model

import (
	"testing"

	"github.com/anishathalye/porcupine"
)

func number(n int64) Value { return Value{Form: IntValue, Int: n} }
func text(s string) Value  { return Value{Form: TextValue, Text: s} }

// TestCells: which calls, one after the other, each kind of cell allows; by porcupine and by the machine.
func TestCells(t *testing.T) {
	one := func(a Access) Call { return Call{Accesses: []Access{a}} }
	perhaps := func(a Access) Call { return Call{Accesses: []Access{a}, Unknown: true} }
	for _, c := range []struct {
		name  string
		start Value
		legal bool
		calls []Call
	}{
		{"nothing at first", Value{}, true, []Call{one(Access{Verb: Get})}},
		{"a start", number(7), true, []Call{one(Access{Verb: Get, Value: number(7)}), one(Access{Verb: Get, Cell: "other", Value: number(7)})}},
		{"what was written", Value{}, true, []Call{one(Access{Verb: Put, Value: number(1)}), one(Access{Verb: Get, Value: number(1)})}},
		{"another cell", Value{}, false, []Call{one(Access{Verb: Put, Cell: "a", Value: number(1)}), one(Access{Verb: Get, Cell: "b", Value: number(1)})}},
		{"number and text differ", Value{}, false, []Call{one(Access{Verb: Put, Value: number(1)}), one(Access{Verb: Get, Value: text("1")})}},
		{"swap", number(1), true, []Call{one(Access{Verb: Swap, Old: number(1), Value: number(2)}), one(Access{Verb: Get, Value: number(2)})}},
		{"swap of something else", number(1), false, []Call{one(Access{Verb: Swap, Old: number(2), Value: number(2)})}},
		{"swap that perhaps was", number(1), true, []Call{perhaps(Access{Verb: Swap, Old: number(1), Value: number(2)}), one(Access{Verb: Get, Value: number(2)})}},
		{"swap that perhaps was not", number(1), true, []Call{perhaps(Access{Verb: Swap, Old: number(1), Value: number(2)}), one(Access{Verb: Get, Value: number(1)})}},
		{"swap that cannot have been", number(1), false, []Call{perhaps(Access{Verb: Swap, Old: number(3), Value: number(2)}), one(Access{Verb: Get, Value: number(2)})}},
		{"join", text(""), true, []Call{one(Access{Verb: Join, Value: text("a")}), one(Access{Verb: Join, Value: text("b")}), one(Access{Verb: Get, Value: text("ab")})}},
		{"lock, unlock, lock", Value{}, true, []Call{one(Access{Verb: Lock}), one(Access{Verb: Unlock}), one(Access{Verb: Lock})}},
		{"a mutex is free at first", number(1), true, []Call{one(Access{Verb: Lock})}},
		{"two locks", Value{}, false, []Call{one(Access{Verb: Lock}), one(Access{Verb: Lock})}},
		{"unlock of a free one", Value{}, false, []Call{one(Access{Verb: Unlock})}},
		{"all or nothing", Value{}, false, []Call{
			{Accesses: []Access{{Verb: Put, Cell: "a", Value: number(1)}, {Verb: Put, Cell: "b", Value: number(1)}}, Unknown: true},
			{Accesses: []Access{{Verb: Get, Cell: "a", Value: number(1)}, {Verb: Get, Cell: "b"}}}}},
		{"a transaction sees its own writes", Value{}, true, []Call{
			{Accesses: []Access{{Verb: Put, Cell: "a", Value: number(1)}, {Verb: Get, Cell: "a", Value: number(1)}}}}},
	} {
		var inputs []any
		for _, call := range c.calls {
			inputs = append(inputs, call)
		}
		run(t, c.name, Cells(c.start), CellMachine(c.start), inputs, c.legal)
	}
}

// TestStream does the same for streams.
func TestStream(t *testing.T) {
	a, b, zero, one := "a", "b", int64(0), int64(1)
	two := StreamHash(StreamHash(0, 11), 12)
	for _, c := range []struct {
		name  string
		legal bool
		calls []any
	}{
		{"append, read, tail", true, []any{StreamCall{Records: []uint64{11, 12}, Tail: 2}, StreamCall{Verb: StreamRead, Tail: 2, Hash: two}, StreamCall{Verb: StreamTail, Tail: 2}}},
		{"other content", false, []any{StreamCall{Records: []uint64{12, 11}, Tail: 2}, StreamCall{Verb: StreamRead, Tail: 2, Hash: two}}},
		{"wrong tail of an append", false, []any{StreamCall{Records: []uint64{11}, Tail: 2}}},
		{"token", true, []any{StreamCall{Records: []uint64{1}, SetToken: &a, Tail: 1}, StreamCall{Records: []uint64{2}, Token: &a, SetToken: &b, Tail: 2}, StreamCall{Records: []uint64{3}, Token: &b, Tail: 3}}},
		{"old token", false, []any{StreamCall{Records: []uint64{1}, SetToken: &a, Tail: 1}, StreamCall{Records: []uint64{2}, SetToken: &b, Tail: 2}, StreamCall{Records: []uint64{3}, Token: &a, Tail: 3}}},
		{"token of a stream that has none", false, []any{StreamCall{Records: []uint64{1}, Token: &a, Tail: 1}}},
		{"no token asked for", true, []any{StreamCall{Records: []uint64{1}, SetToken: &a, Tail: 1}, StreamCall{Records: []uint64{2}, Tail: 2}}},
		{"match", true, []any{StreamCall{Records: []uint64{1}, Match: &zero, Tail: 1}, StreamCall{Records: []uint64{2}, Match: &one, Tail: 2}}},
		{"no match", false, []any{StreamCall{Records: []uint64{1}, Match: &one, Tail: 1}}},
		{"perhaps, and it was", true, []any{StreamCall{Records: []uint64{11, 12}, Unknown: true}, StreamCall{Verb: StreamRead, Tail: 2, Hash: two}}},
		{"perhaps, and it was not", true, []any{StreamCall{Records: []uint64{11, 12}, Unknown: true}, StreamCall{Verb: StreamTail}}},
		{"perhaps, but it cannot have been", false, []any{StreamCall{Records: []uint64{11, 12}, Match: &one, Unknown: true}, StreamCall{Verb: StreamTail, Tail: 2}}},
	} {
		run(t, c.name, Stream(), StreamMachine(), c.calls, c.legal)
	}
}

// run asks porcupine and the machine whether calls may follow each other.
func run(t *testing.T, name string, m porcupine.Model, machine Machine, calls []any, legal bool) {
	t.Helper()
	var ops []porcupine.Operation
	states := []any{machine.Init}
	for i, call := range calls {
		ops = append(ops, porcupine.Operation{Input: call, Call: int64(2 * i), Return: int64(2*i + 1)})
		if m.DescribeOperation(call, nil) == "" {
			t.Errorf("%s: call %d has no description", name, i)
		}
		var next []any
		for _, s := range states {
			key := machine.Key(s)
			if after, ok := machine.Apply(s, call); ok {
				next = append(next, after)
			}
			if machine.Key(s) != key {
				t.Errorf("%s: call %d changed the state that it was given", name, i)
			}
			if unknown(call) {
				next = append(next, s)
			}
		}
		states = next
	}
	if got := porcupine.CheckOperations(m, ops); got != legal {
		t.Errorf("%s: porcupine says %v, want %v", name, got, legal)
	}
	if got := len(states) > 0; got != legal {
		t.Errorf("%s: the machine says %v, want %v", name, got, legal)
	}
}

func unknown(call any) bool {
	switch call := call.(type) {
	case Call:
		return call.Unknown
	case StreamCall:
		return call.Unknown
	}
	return false
}

// TestStreamHash compares with the reference implementation of xxh3-64.
func TestStreamHash(t *testing.T) {
	hash := uint64(0)
	for i, want := range []uint64{0x2abb136b5b23df0c, 0xd6b46d94690d5a78, 0xb242cf9af031e183} {
		if hash = StreamHash(hash, []uint64{11, 12, 1<<64 - 1}[i]); hash != want {
			t.Errorf("after %d records the hash is %016x, want %016x", i+1, hash, want)
		}
	}
}
