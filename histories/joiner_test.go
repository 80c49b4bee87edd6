package histories

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestJoinerRefuses(t *testing.T) {
	write := func(seq int64, n int32) []Run { return []Run{{Producer: 1, Sequence: seq, Count: n}} }
	inv := Event{Seq: 1, Op: 1, Kind: Append, Process: 1, Runs: write(5, 5)}
	object := Event{Seq: 1, Op: 1, Kind: Object, Steps: []Step{{Do: Write, Value: IntDatum(1)}}}
	cases := []struct {
		want   string // part of the error; "" = accepted
		events []Event
	}{
		{"", []Event{inv, {Seq: 2, Op: 1, Type: OK, Kind: Append, Process: 1}, {Seq: 3, Op: 3, Kind: Fetch, Process: 1}}},
		{"", []Event{inv, {Seq: 2, Op: 2, Kind: Append, Process: 2, Runs: write(0, 5)}, {Seq: 3, Op: 3, Kind: Append, Process: 3, Runs: write(10, 2)}}},
		{"", []Event{{Seq: 1, Op: 1, Kind: Fetch, Pipelined: true}, {Seq: 2, Op: 2, Kind: Fetch, Pipelined: true}}},
		{"", []Event{{Seq: 1, Kind: Phase, Type: Info, Note: "load"}, {Seq: 9, Kind: Fault}}},
		{"rising numbers", []Event{inv, {Seq: 1, Kind: Phase}}},
		{"lies before", []Event{{Seq: 1, Time: 5, Kind: Phase}, {Seq: 2, Time: 4, Kind: Phase}}},
		{"", []Event{object, {Seq: 2, Op: 1, Type: Fail, Kind: Object}, {Seq: 3, Op: 3, Kind: Object, Steps: object.Steps}}},
		{"at least one step", []Event{{Seq: 1, Op: 1, Kind: Object}}},
		{"at least one step", []Event{object, {Seq: 2, Op: 1, Type: OK, Kind: Object}}},
		{"unknown step", []Event{{Seq: 1, Op: 1, Kind: Object, Steps: []Step{{Do: 200}}}}},
		{"unknown form", []Event{{Seq: 1, Op: 1, Kind: Object, Steps: []Step{{Old: Datum{Form: 5}}}}}},
		{"1 steps, expected none", []Event{{Seq: 1, Op: 1, Kind: Fetch, Steps: object.Steps}}},
		{"1 runs, expected none", []Event{{Seq: 1, Op: 1, Kind: Object, Steps: object.Steps, Runs: write(0, 1)}}},
		{"unknown kind", []Event{{Seq: 1, Kind: 9}}},
		{"unknown type", []Event{inv, {Seq: 2, Op: 1, Type: 7, Kind: Append, Process: 1}}},
		{"partition -1", []Event{{Seq: 1, Op: 1, Kind: Fetch, Partition: -1}}},
		{"expected its own number", []Event{{Seq: 2, Op: 1, Kind: Fetch}}},
		{"still open", []Event{inv, {Seq: 2, Op: 2, Kind: Fetch, Process: 1}}},
		{"still open", []Event{inv, {Seq: 2, Op: 2, Kind: Fetch, Process: 1, Pipelined: true}}},
		{"still open", []Event{{Seq: 1, Op: 1, Kind: Fetch, Pipelined: true}, {Seq: 2, Op: 2, Kind: Fetch}}},
		{"expected at most", []Event{inv, {Seq: 2, Op: 1, Type: OK, Kind: Append, Process: 1, Offset: 1 << 62}}},
		{"expected at most", []Event{{Seq: 1, Op: 1, Kind: Fetch, HighWatermark: 1 << 62}}},
		{"reads from offset -1", []Event{{Seq: 1, Op: 1, Kind: CopyRead, Offset: -1}}},
		{"append of nothing", []Event{{Seq: 1, Op: 1, Kind: Append}}},
		{"at least one", []Event{{Seq: 1, Op: 1, Kind: Append, Runs: write(0, 0)}}},
		{"at least one", []Event{{Seq: 1, Op: 1, Kind: Append, Runs: write(-1, 1)}}},
		{"a second time", []Event{inv, {Seq: 2, Op: 2, Kind: Append, Process: 2, Runs: write(9, 1)}}},
		{"a second time", []Event{inv, {Seq: 2, Op: 2, Kind: Append, Process: 2, Runs: write(4, 2)}}},
		{"a second time", []Event{inv, {Seq: 2, Op: 2, Kind: Append, Process: 2, Runs: write(0, 20)}}},
		{"not open", []Event{inv, {Seq: 2, Op: 1, Type: OK, Kind: Append, Process: 1}, {Seq: 3, Op: 1, Type: OK, Kind: Append, Process: 1}}},
		{"not open", []Event{{Seq: 2, Op: 1, Type: OK, Kind: Append}}},
		{"of process 1", []Event{inv, {Seq: 2, Op: 1, Type: OK, Kind: Append, Process: 2}}},
		{"completes operation", []Event{inv, {Seq: 2, Op: 1, Type: OK, Kind: Fetch, Process: 1}}},
		{"completes operation", []Event{inv, {Seq: 2, Op: 1, Type: OK, Kind: Append, Process: 1, Partition: 4}}},
		{"expected −1 or more", []Event{inv, {Seq: 2, Op: 1, Type: OK, Kind: Append, Process: 1, Offset: -2}}},
		{"from 0 on", []Event{{Seq: 1, Op: 1, Kind: Fetch}, {Seq: 2, Op: 1, Type: OK, Kind: Fetch, Runs: []Run{{Offset: -1, Count: 1}}}}},
		{"at least one", []Event{{Seq: 1, Op: 1, Kind: Fetch}, {Seq: 2, Op: 1, Type: OK, Kind: Fetch, Runs: []Run{{Count: 0}}}}},
	}
	for i, c := range cases {
		join := NewJoiner()
		var err error
		for j := range c.events {
			if _, err = join.Join(&c.events[j]); err != nil {
				if j != len(c.events)-1 {
					t.Errorf("case %d: event %d is refused already: %v", i, j, err)
				}
				break
			}
		}
		switch {
		case c.want == "" && err != nil:
			t.Errorf("case %d: %v, want it accepted", i, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("case %d: %v, want an error with %q", i, err, c.want)
		case err != nil && !errors.Is(err, ErrMalformed):
			t.Errorf("case %d: %v is no ErrMalformed", i, err)
		}
	}
}

// TestJoinerCrowd: processes that share a place, and operations that are open side by side, are joined as a plain map of operations would join them.
func TestJoinerCrowd(t *testing.T) {
	type open struct {
		op        uint64
		process   int32
		pipelined bool
		number    int
	}
	refused := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(9, seed))
		join := NewJoiner()
		var all []open
		var sequence [4]int64
		place := int32(len(join.clients))
		for seq, made := uint64(1), 0; seq < 200; seq++ {
			if len(all) > 0 && r.IntN(2) == 0 {
				i := r.IntN(len(all))
				o := all[i]
				end := Event{Seq: seq, Op: o.op, Kind: Append, Type: Type(1 + r.IntN(3)), Process: o.process}
				if r.IntN(30) == 0 { // of another process, or over already
					end.Process += place
				}
				number, err := join.Join(&end)
				if end.Process != o.process {
					if err == nil {
						t.Fatalf("seed %d: process %d completed operation %d of process %d", seed, end.Process, o.op, o.process)
					}
					refused++
					break
				}
				if err != nil || number != o.number {
					t.Fatalf("seed %d: operation %d is completed as %d (%v), want %d", seed, o.op, number, err, o.number)
				}
				all = slices.Delete(all, i, i+1)
				seq++
				if _, err := join.Join(&Event{Seq: seq, Op: o.op, Kind: Append, Type: OK, Process: o.process}); err == nil {
					t.Fatalf("seed %d: operation %d is completed twice", seed, o.op)
				}
				continue
			}
			ev := Event{Seq: seq, Op: seq, Kind: Append, Process: r.Int32N(4) * place, Pipelined: r.IntN(3) > 0}
			producer := r.IntN(len(sequence))
			ev.Runs = []Run{{Producer: int32(producer), Sequence: sequence[producer], Count: 1}}
			sequence[producer]++
			legal := !slices.ContainsFunc(all, func(o open) bool { return o.process == ev.Process && (!o.pipelined || !ev.Pipelined) })
			number, err := join.Join(&ev)
			if legal != (err == nil) {
				t.Fatalf("seed %d: event %d: %v, want it accepted: %v", seed, seq, err, legal)
			}
			if !legal {
				refused++
				break
			}
			if number != made {
				t.Fatalf("seed %d: event %d begins operation %d, want %d", seed, seq, number, made)
			}
			if made++; r.IntN(3) == 0 {
				number += 1000
				join.Rename(number)
			}
			all = append(all, open{seq, ev.Process, ev.Pipelined, number})
		}
	}
	if refused < 50 {
		t.Errorf("%d histories were refused: too few to prove anything", refused)
	}
}
