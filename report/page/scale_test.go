package page

import (
	"bytes"
	"iter"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"ackproof/histories"
	"ackproof/model"
)

// long makes up a run of n operations: six partitions with eight clients each, whose work is like that of the workload log.
func long(n int) *Run {
	run := violated("made up")
	run.Proofs = nil
	run.Results.Verdict, run.Results.Exit = model.Held, 0
	run.Events = func() iter.Seq2[histories.Event, error] { return longHistory(n) }
	return run
}

func longHistory(n int) iter.Seq2[histories.Event, error] {
	const partitions, clients = 6, 8
	type state struct {
		op       histories.Event
		until    time.Duration
		sequence int64
	}
	return func(yield func(histories.Event, error) bool) {
		rnd := rand.New(rand.NewPCG(1, 2))
		var all [partitions * clients]state
		var logEnd [partitions]int64
		seq, now := uint64(0), time.Duration(0)
		emit := func(ev histories.Event) bool {
			seq++
			ev.Seq, ev.Time = seq, now
			if ev.Op == 0 {
				ev.Op = seq
			}
			return yield(ev, nil)
		}
		if !emit(histories.Event{Kind: histories.Phase, Note: "load"}) {
			return
		}
		begin := func(i int) bool {
			s, p := &all[i], int32(i/clients)
			ev := histories.Event{Kind: histories.Append, Process: int32(i + 1), Partition: p, Session: int32(i + 1)}
			took := time.Duration((2 + rnd.ExpFloat64()*3) * float64(time.Millisecond))
			switch i % clients {
			case 0, 1, 2:
				ev.Runs = []histories.Run{{Producer: ev.Process, Sequence: s.sequence, Count: int32(1 + rnd.IntN(24))}}
				s.sequence += int64(ev.Runs[0].Count)
			case 6, 7:
				ev.Kind = histories.EndOffset
				took /= 10
			default:
				ev.Kind, ev.Offset = histories.Fetch, logEnd[p]
			}
			if !emit(ev) {
				return false
			}
			ev.Op = seq
			s.op, s.until = ev, now+took
			return true
		}
		for i := range all {
			if !begin(i) {
				return
			}
		}
		for done := 0; done < n; done++ {
			next := 0
			for i := range all {
				if all[i].until < all[next].until {
					next = i
				}
			}
			s := &all[next]
			now = max(now, s.until)
			ev := s.op
			ev.Type, ev.Node = histories.OK, ev.Partition%3+1
			switch {
			case rnd.IntN(500) == 0:
				ev.Type, ev.Code = histories.Fail, 6
			case ev.Kind == histories.Append:
				ev.Offset = logEnd[ev.Partition]
				logEnd[ev.Partition] += int64(ev.Runs[0].Count)
			case ev.Kind == histories.Fetch && logEnd[ev.Partition] > ev.Offset:
				ev.Runs = []histories.Run{{Offset: ev.Offset, Producer: 1, Count: int32(logEnd[ev.Partition] - ev.Offset)}}
			case ev.Kind == histories.EndOffset:
				ev.Offset = logEnd[ev.Partition]
			}
			if !emit(ev) || done < n-len(all) && !begin(next) {
				return
			}
			if done >= n-len(all) {
				s.until = 1 << 62
			}
		}
		for _, name := range []string{"heal", "drain", "end"} {
			if !emit(histories.Event{Kind: histories.Phase, Note: name}) {
				return
			}
		}
	}
}

// TestAnOperationTakesFewBytes holds the page to its size: at most 12 bytes for each operation, everything counted.
func TestAnOperationTakesFewBytes(t *testing.T) {
	const n = 50_000
	page := written(t, long(n))
	if per := float64(len(page)) / n; per > 12 {
		t.Errorf("%.1f bytes for each operation, expected at most 12", per)
	}
}

// BenchmarkAMillionOperations writes the page of a long run; with ACKPROOF_PAGE set, into that file.
func BenchmarkAMillionOperations(b *testing.B) {
	for b.Loop() {
		var out bytes.Buffer
		if err := Write(&out, long(1_000_000)); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(out.Len())/1e6, "B/operation")
		if path := os.Getenv("ACKPROOF_PAGE"); path != "" {
			if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
}
