package histories

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// randomLog is a history of a log as a recorder writes it, with all that EDN has a word for: batches of several producers, refused and unknown appends,
// acknowledgements without offsets, reads with defects and empty ones.
func randomLog(r *rand.Rand) []Event {
	var events []Event
	var next [4]int64
	add := func(ev Event) uint64 {
		ev.Seq = uint64(len(events) + 1)
		ev.Time = time.Duration(ev.Seq) * time.Millisecond
		if ev.Op == 0 {
			ev.Op = ev.Seq
		}
		events = append(events, ev)
		return ev.Op
	}
	for n := range int32(2 + r.IntN(8)) {
		partition := int32(r.IntN(2))
		if r.IntN(3) == 0 {
			var runs []Run
			at := int64(r.IntN(5))
			for range r.IntN(4) {
				run := Run{Offset: at, Producer: int32(r.IntN(4)), Sequence: int64(r.IntN(9)), Count: 1}
				if r.IntN(4) == 0 { // EDN says what is wrong, and not of which value
					run = Run{Offset: at, Defect: Corrupt + Defect(r.IntN(2)), Count: 1}
				}
				runs = AppendRecord(runs, at, Value{Producer: run.Producer, Sequence: run.Sequence}, run.Defect)
				at += 1 + int64(r.IntN(2))
			}
			from := int64(0)
			if len(runs) > 0 {
				from = runs[0].Offset
			}
			read := Event{Kind: Fetch, Process: 100 + n, Session: 1 + n, Partition: partition, Offset: from}
			read.Op = add(read)
			read.Type, read.HighWatermark, read.Runs = OK, int64(r.IntN(9))-1, runs
			add(read)
			continue
		}
		producer := r.IntN(4)
		write := Event{Kind: Append, Process: n, Partition: partition}
		for range 1 + r.IntN(2) {
			count := int32(1 + r.IntN(3))
			write.Runs = append(write.Runs, Run{Producer: int32(producer), Sequence: next[producer], Count: count})
			next[producer] += int64(count)
			producer = (producer + 1) % 4
		}
		write.Op = add(write)
		write.Runs = nil
		switch write.Type = OK + Type(r.IntN(3)); {
		case write.Type == Info:
			write.Code = NoAnswer
		case write.Type == Fail:
			write.Code = 19
		default:
			write.Offset = int64(r.IntN(9)) - 1
		}
		add(write)
	}
	return events
}

// TestEDNKeepsProducers: of a log EDN keeps which producer sent which record, so that order and duplicates can still be judged.
func TestEDNKeepsProducers(t *testing.T) {
	for i := range 500 {
		events := randomLog(rand.New(rand.NewPCG(7, uint64(i))))
		edn := encode(t, EDN, events)
		f, err := NewFile(bytes.NewReader(edn), "", EDN)
		if err != nil {
			t.Fatal(err)
		}
		after, err := f.ReadAll()
		if err != nil {
			t.Fatalf("history %d: %v\n%s", i, err, edn)
		}
		for _, list := range [][]Event{events, after} {
			for j := range list { // each session is a process of its own there
				list[j].Process, list[j].Session, list[j].Pipelined = 0, 0, false
			}
		}
		if d := cmp.Diff(events, after, sameEvents); d != "" {
			t.Fatalf("history %d:\n%s\n%s", i, d, edn)
		}
	}
}

// TestEDNRefusesMixedOrigins: values with and without a producer in one operation would become each other's.
func TestEDNRefusesMixedOrigins(t *testing.T) {
	w := NewEDNWriter(new(bytes.Buffer))
	err := w.Write(&Event{Seq: 1, Op: 1, Kind: Append, Runs: []Run{{Producer: 1, Count: 1}, {Producer: KeyProducer(0), Count: 1}}})
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		t.Fatal("written, want an error")
	}
}
