package linearizability

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"ackproof/histories"
	"ackproof/model"
)

// load of n operations on six partitions: half are appends of one record, half are fetches of two, as many clients as a test has.
func busy(n int) []histories.Event {
	r := rand.New(rand.NewPCG(1, 2))
	var s script
	const partitions, clients = 6, 8
	var next, read [partitions]int64
	var sequence [clients]int64
	var log [partitions][]entry
	type open struct {
		inv, end histories.Event
	}
	var flying []open
	emit := func() {
		i := r.IntN(len(flying))
		s.event(flying[i].end)
		flying[i] = flying[len(flying)-1]
		flying = flying[:len(flying)-1]
	}
	for i := range n {
		c := int32(i % clients)
		p := int32(r.IntN(partitions))
		ev := histories.Event{Process: int32(i + 1), Partition: p}
		end := histories.Event{Type: histories.OK, Process: ev.Process, Partition: p, HighWatermark: -1}
		if i%2 == 0 || read[p] == next[p] {
			ev.Kind, ev.Runs = histories.Append, values(c, sequence[c], 1)
			end.Offset = next[p]
			log[p] = append(log[p], entry{c, sequence[c]})
			sequence[c]++
			next[p]++
		} else {
			ev.Kind, ev.Session, ev.Offset = histories.Fetch, p+1, read[p]
			for range min(2, next[p]-read[p]) {
				v := log[p][read[p]]
				end.Runs = histories.AppendRecord(end.Runs, read[p], histories.Value{Producer: v.producer, Sequence: v.sequence}, histories.Sound)
				read[p]++
			}
		}
		end.Kind = ev.Kind
		ev = s.event(ev)
		end.Op = ev.Op
		flying = append(flying, open{ev, end})
		for len(flying) >= clients || ev.Kind == histories.Fetch && len(flying) > 0 {
			emit()
		}
	}
	for len(flying) > 0 {
		emit()
	}
	s.phase("drain")
	for p := range int32(partitions) {
		for at := int64(0); ; {
			var runs []histories.Run
			to := min(next[p], at+1000)
			for k := at; k < to; k++ {
				runs = histories.AppendRecord(runs, k, histories.Value{Producer: log[p][k].producer, Sequence: log[p][k].sequence}, histories.Sound)
			}
			end := s.begin(histories.Event{Kind: histories.Fetch, Partition: p, Session: 100 + p, Offset: at})
			end(histories.Event{Runs: runs, Offset: at, HighWatermark: -1})
			if at = to; len(runs) == 0 {
				break
			}
		}
	}
	return s.events
}

func BenchmarkCheckLog(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			events := busy(n)
			var a *Answer
			for b.Loop() {
				var err error
				if a, err = CheckLog(histories.Events(events), strong(), whole(), Options{Floors: model.HistoryFloors()}); err != nil {
					b.Fatal(err)
				}
			}
			if v := a.Verdict(); v == model.Violated || v == model.Undecided {
				b.Fatalf("%s\n%s", v, proofs(a))
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds()/1e6, "Mops/s")
			began := time.Now()
			o, err := SecondOpinion(a, OpinionOptions{})
			b.Logf("second opinion in %v: %+v, %v", time.Since(began).Round(time.Millisecond), o, err)
		})
	}
}
