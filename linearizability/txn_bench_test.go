package linearizability

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"ackproof/histories"
	"ackproof/model"
)

// busyTransactions is a strict serializable history of n transactions by 8 clients, of one to four steps on ten active lists that are replaced after 32
// appends. It is kept packed, since a million of them as events take a gigabyte; the events are unpacked one at a time into the same memory.
type busyTransactions struct {
	names  []string
	lists  [][]int64
	events []packedEvent
	steps  []packedStep
}

type packedEvent struct {
	op           uint64
	process      int32
	first, count int32
	ok           bool
}

// packedStep appends value, or reads that many elements.
type packedStep struct {
	key    int32
	value  int32
	append bool
}

func newBusyTransactions(n int) *busyTransactions {
	r := rand.New(rand.NewPCG(1, 2))
	b := &busyTransactions{}
	const active, clients = 10, 8
	var keys [active]int32
	fresh := func(i int) {
		keys[i] = int32(len(b.names))
		b.names = append(b.names, fmt.Sprintf("k%d", len(b.names)))
		b.lists = append(b.lists, nil)
	}
	for i := range active {
		fresh(i)
	}
	given := make(map[int32]int32) // values are given at invocation, so lists are not in the order of values
	type open struct {
		event packedEvent
		done  bool
	}
	var flying []open
	var free []int32
	for c := range int32(clients) {
		free = append(free, c)
	}
	for made := 0; made < n || len(flying) > 0; {
		if made < n && len(free) > 0 && r.IntN(3) > 0 {
			made++
			e := packedEvent{op: uint64(len(b.events) + 1), process: free[0], first: int32(len(b.steps)), count: 1 + r.Int32N(4)}
			free = free[1:]
			for range e.count {
				i := r.IntN(active)
				if given[keys[i]] == 32 {
					delete(given, keys[i])
					fresh(i)
				}
				s := packedStep{key: keys[i], append: r.IntN(2) == 0}
				if s.append {
					given[s.key]++
					s.value = given[s.key]
				}
				b.steps = append(b.steps, s)
			}
			b.events = append(b.events, e)
			flying = append(flying, open{event: e})
			continue
		}
		if len(flying) == 0 {
			continue
		}
		i := r.IntN(len(flying))
		f := &flying[i]
		if !f.done {
			f.done = true
			for j := f.event.first; j < f.event.first+f.event.count; j++ {
				if s := &b.steps[j]; s.append {
					b.lists[s.key] = append(b.lists[s.key], int64(s.value))
				} else {
					s.value = int32(len(b.lists[s.key]))
				}
			}
			continue
		}
		f.event.ok = r.IntN(50) > 0 // else its outcome is unknown
		b.events = append(b.events, f.event)
		free = append(free, f.event.process)
		if !f.event.ok {
			free[len(free)-1] += clients
		}
		flying[i] = flying[len(flying)-1]
		flying = flying[:len(flying)-1]
	}
	return b
}

func (b *busyTransactions) all() iter.Seq2[histories.Event, error] {
	return func(yield func(histories.Event, error) bool) {
		var steps []histories.Step
		for i, e := range b.events {
			ev := histories.Event{Seq: uint64(i + 1), Time: time.Duration(i) * time.Microsecond, Kind: histories.Object, Op: e.op, Process: e.process}
			if ev.Op != ev.Seq {
				ev.Type = histories.Info
			}
			if e.ok {
				ev.Type = histories.OK
			}
			steps = steps[:0]
			for j := e.first; j < e.first+e.count && ev.Type != histories.Info; j++ {
				p := &b.steps[j]
				steps = append(steps, histories.Step{Do: histories.AppendTo, Key: b.names[p.key], Value: histories.IntDatum(int64(p.value)), Offset: -1})
				if s := &steps[len(steps)-1]; !p.append {
					s.Do, s.Value = histories.Read, histories.Datum{}
					if e.ok {
						s.Value = histories.Datum{Form: histories.List, List: b.lists[p.key][:p.value]}
					}
				}
			}
			ev.Steps = steps
			if !yield(ev, nil) {
				return
			}
		}
	}
}

// cpuTime is what the process has used, on all cores.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// plant makes the last read that went through one of the first list, and of nothing: under strict serializability nearly everything is then one component.
func (b *busyTransactions) plant() {
	for i := len(b.events) - 1; i >= 0; i-- {
		for j := b.events[i].first; b.events[i].ok && j < b.events[i].first+b.events[i].count; j++ {
			if !b.steps[j].append {
				b.steps[j].key, b.steps[j].value = 0, 0
				return
			}
		}
	}
}

// BenchmarkCheckTransactions prints CPU seconds for each check, on all cores and with the collection of garbage, without the unpacking of the events.
func BenchmarkCheckTransactions(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		busy := newBusyTransactions(n)
		for _, level := range []Level{ReadCommitted, SnapshotIsolation, Serializable, StrictSerializable} {
			b.Run(fmt.Sprintf("%d/%v", n, level), func(b *testing.B) { busy.bench(b, n, level, model.Held) })
		}
		busy.plant()
		b.Run(fmt.Sprintf("%d/planted", n), func(b *testing.B) { busy.bench(b, n, StrictSerializable, model.Violated) })
	}
}

func (b *busyTransactions) bench(tb *testing.B, n int, level Level, want model.Verdict) {
	began := cpuTime()
	for range b.all() {
	}
	unpacking := cpuTime() - began
	began = cpuTime()
	for tb.Loop() {
		a, err := CheckTransactions(b.all(), TransactionOptions{Level: level})
		if err != nil {
			tb.Fatal(err)
		}
		if a.Verdict() != want {
			tb.Fatalf("%s, expected %s\n%s", a.Verdict(), want, proofsOf(a))
		}
	}
	tb.ReportMetric((cpuTime()-began).Seconds()/float64(tb.N)-unpacking.Seconds(), "cpu-s/op")
	tb.ReportMetric(float64(n)*float64(tb.N)/tb.Elapsed().Seconds()/1e6, "Mtxn/s")
}
