package page

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ackproof/histories"
)

// packed is one operation as it comes out of a page.
type packed struct {
	op, endSeq    uint64
	end, took     int64 // µs
	process       int32
	kind          histories.Kind
	outcome       histories.Type
	partition     int32
	offset, count int64
	node          int32
	remark        string
}

// unpackAll reads the operations of a page as its script does.
func unpackAll(t failer, page string) (all []packed, pic pictureData) {
	t.Helper()
	if err := json.Unmarshal(dataOf(t, page, "picture"), &pic); err != nil {
		t.Fatalf("%v", err)
	}
	var columns [columnCount][]uint64
	for i, name := range columnNames {
		if columns[i] = unpack(t, page, name); len(columns[i]) != pic.Operations {
			t.Fatalf("column %s has %d numbers, expected %d", name, len(columns[i]), pic.Operations)
		}
	}
	var end int64
	var endSeq uint64
	high := map[int32]int64{}
	for i := range pic.Operations {
		at := func(column int) uint64 { return columns[column][i] }
		p := packed{took: int64(at(colTook)), process: pic.Processes[at(colProcess)], kind: histories.Kind(at(colKind) >> 2), outcome: histories.Type(at(colKind) & 3),
			partition: int32(uint32(at(colPartition))), offset: -1, count: int64(at(colCount)), node: int32(uint32(at(colNode))), remark: pic.Remarks[at(colRemark)], op: at(colOpSeq)}
		end += int64(at(colEnd))
		p.end = end
		if d := at(colEndSeq); d > 0 {
			endSeq += d
			p.endSeq, p.op = endSeq, endSeq-p.op
		}
		if z := at(colOffset); z > 0 {
			p.offset = high[p.partition] + (int64((z-1)>>1) ^ -int64((z-1)&1))
			high[p.partition] = max(high[p.partition], p.offset+p.count)
		}
		all = append(all, p)
	}
	return all, pic
}

// anyHistory draws a history that the validator accepts: clients with one operation at a time, which end, fail, or never end.
func anyHistory(t *rapid.T) []histories.Event {
	var events []histories.Event
	open := map[int32]histories.Event{}
	sequence := map[int32]int64{}
	at := time.Duration(0)
	text := rapid.StringOf(rapid.RuneFrom([]rune("ab<>&\"'\x1b\x00\u202e\ufffd")))
	for range rapid.IntRange(0, 60).Draw(t, "events") {
		at += time.Duration(rapid.Int64Range(0, 1<<33).Draw(t, "pause"))
		ev := histories.Event{Seq: uint64(len(events) + 1), Time: at}
		process := rapid.Int32Range(-2, 6).Draw(t, "process")
		begun, busy := open[process]
		switch {
		case rapid.IntRange(0, 9).Draw(t, "mark") == 0:
			ev.Kind, ev.Note = rapid.SampledFrom([]histories.Kind{histories.Phase, histories.Fault}).Draw(t, "kind"), rapid.SampledFrom([]string{"load", "heal", "drain", "began: x", "healed: x"}).Draw(t, "note")
			ev.Op, ev.Offset = ev.Seq, rapid.Int64Range(-1, 3).Draw(t, "index")
		case busy:
			ev.Kind, ev.Op, ev.Process, ev.Partition, ev.Session, ev.Runs = begun.Kind, begun.Op, process, begun.Partition, begun.Session, begun.Runs
			ev.Type = rapid.SampledFrom([]histories.Type{histories.OK, histories.Fail, histories.Info}).Draw(t, "outcome")
			ev.Offset, ev.Node = rapid.Int64Range(-1, 1<<40).Draw(t, "offset"), rapid.Int32Range(0, 3).Draw(t, "node")
			if ev.Type != histories.OK {
				ev.Code, ev.Note = rapid.Int16().Draw(t, "code"), text.Draw(t, "why")
			}
			if ev.Kind.IsRead() {
				ev.Offset, ev.Runs = begun.Offset, nil
				if rapid.Bool().Draw(t, "full") {
					ev.Runs = []histories.Run{{Offset: ev.Offset, Producer: process, Count: rapid.Int32Range(1, 1000).Draw(t, "count"), Defect: histories.Defect(rapid.IntRange(0, 2).Draw(t, "defect"))}}
				}
			}
			delete(open, process)
		default:
			ev.Op, ev.Process, ev.Partition = ev.Seq, process, rapid.Int32Range(0, 3).Draw(t, "partition")
			ev.Kind = histories.Kind(rapid.IntRange(0, int(histories.Fault)-1).Draw(t, "kind"))
			switch {
			case ev.Kind == histories.Append:
				n := rapid.Int32Range(1, 50).Draw(t, "records")
				ev.Runs = []histories.Run{{Producer: process, Sequence: sequence[process], Count: n}}
				sequence[process] += int64(n)
			case ev.Kind == histories.Object:
				ev.Steps = []histories.Step{{Do: histories.Enqueue, Key: text.Draw(t, "key"), Value: histories.IntDatum(1)}}
			case ev.Kind.IsRead():
				ev.Offset = rapid.Int64Range(0, 1<<40).Draw(t, "from")
			}
			open[process] = ev
		}
		if ev.Kind == histories.Object && ev.Type == histories.OK {
			ev.Steps = begun.Steps
		}
		if ev.Kind == histories.Object {
			ev.Runs = nil
		}
		events = append(events, ev)
	}
	return events
}

// TestEveryOperationIsInThePage holds a page to its history: whatever the validator accepts is there again, in the order of its ends.
func TestEveryOperationIsInThePage(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		events := anyHistory(rt)
		run := violated("plain")
		run.Events = func() iter.Seq2[histories.Event, error] { return histories.Events(events) }
		var out bytes.Buffer
		if err := Write(&out, run); err != nil {
			rt.Fatalf("%v", err)
		}
		got, pic := unpackAll(rt, out.String())
		begun := map[uint64]histories.Event{}
		n := 0
		last := time.Duration(0)
		compare := func(b histories.Event, op, endSeq uint64, outcome histories.Type, end time.Duration) *packed {
			if n == len(got) {
				rt.Fatalf("operation %d is not in the page", op)
			}
			p := &got[n]
			n++
			if p.op != op || p.endSeq != endSeq || p.outcome != outcome || p.kind != b.Kind || p.process != b.Process || p.partition != b.Partition ||
				p.end != end.Microseconds() || p.took != (end-b.Time).Microseconds() {
				rt.Fatalf("%+v, expected operation %d of %+v, ended %d at %v as %v", *p, op, b, endSeq, end, outcome)
			}
			return p
		}
		for _, ev := range events {
			last = ev.Time
			switch {
			case !ev.Kind.IsOperation():
			case ev.Type == histories.Invoke:
				begun[ev.Op] = ev
			default:
				b := begun[ev.Op]
				delete(begun, ev.Op)
				p := compare(b, ev.Op, ev.Seq, ev.Type, ev.Time)
				switch {
				case ev.Kind == histories.Append && (p.count != int64(b.Runs[0].Count) || ev.Type == histories.OK && p.offset != ev.Offset):
					rt.Fatalf("%+v, expected the append %+v that ended as %+v", *p, b, ev)
				case ev.Kind.IsRead() && (p.offset != b.Offset || ev.Type == histories.OK && p.count != records(ev.Runs)):
					rt.Fatalf("%+v, expected the read %+v that ended as %+v", *p, b, ev)
				}
			}
		}
		var never []uint64
		for op := range begun {
			never = append(never, op)
		}
		slices.Sort(never)
		for _, op := range never {
			compare(begun[op], op, 0, histories.Invoke, last)
		}
		if n != len(got) {
			rt.Fatalf("%d operations in the page, expected %d", len(got), n)
		}
		for _, l := range pic.Lanes { // a row is one client's, or those of clients one after another
			if len(l.Processes) == 0 {
				rt.Fatal("a lane of nobody")
			}
		}
	})
}

// TestBeyondTheLimitOperationsAreOnlyCounted: a page that cannot hold a run says so.
func TestBeyondTheLimitOperationsAreOnlyCounted(t *testing.T) {
	run := violated("plain")
	c, err := collect(run, 3)
	if err != nil {
		t.Fatal(err)
	}
	v := newView(run, c, c.ops.close())
	if c.ops.n != 3 || c.left != 5 || v.NotDrawn == "" || len(v.Latencies) == 0 {
		t.Errorf("%d packed, %d left, %q", c.ops.n, c.left, v.NotDrawn)
	}
}
