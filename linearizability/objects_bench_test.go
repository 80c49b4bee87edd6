package linearizability

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"ackproof/histories"
	"ackproof/model"
)

// busyObjects is a history of n operations by eight clients that always have one open each. 2 % have no known outcome.
func busyObjects(n int, ask func(i int) histories.Step, answer func(s histories.Step) histories.Step) []histories.Event {
	r := rand.New(rand.NewPCG(7, 7))
	s := script{events: make([]histories.Event, 0, 2*n)}
	var open []histories.Event
	finish := func() {
		i := r.IntN(len(open))
		s.event(open[i])
		open[i] = open[len(open)-1]
		open = open[:len(open)-1]
	}
	for i := range n {
		asked := ask(i)
		inv := s.event(histories.Event{Kind: histories.Object, Process: int32(i), Steps: []histories.Step{asked}})
		end := histories.Event{Kind: histories.Object, Type: histories.OK, Op: inv.Op, Process: int32(i)}
		end.Steps = []histories.Step{answer(asked)}
		if r.IntN(50) == 0 {
			end.Type, end.Steps = histories.Info, nil
		}
		if open = append(open, end); len(open) == 8 {
			finish()
		}
	}
	for len(open) > 0 {
		finish()
	}
	return s.events
}

// busyRegister writes every value once; a third of the operations write.
func busyRegister(n int) []histories.Event {
	var now histories.Datum
	return busyObjects(n, func(i int) histories.Step {
		if i%3 == 0 {
			return histories.Step{Do: histories.Write, Value: histories.IntDatum(int64(i))}
		}
		return histories.Step{Do: histories.Read}
	}, func(s histories.Step) histories.Step {
		if s.Do == histories.Write {
			now = s.Value
		}
		s.Value = now
		return s
	})
}

// BenchmarkObjects gives nanoseconds an operation for histories in memory, of 10⁴ to 10⁶ operations.
func BenchmarkObjects(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		queue := []int64{}
		made := map[string][]histories.Event{
			"register": busyRegister(n),
			"total-queue": busyObjects(n, func(i int) histories.Step {
				if i%2 == 0 {
					return histories.Step{Do: histories.Enqueue, Value: histories.IntDatum(int64(i))}
				}
				return histories.Step{Do: histories.Dequeue}
			}, func(s histories.Step) histories.Step {
				if s.Do == histories.Enqueue {
					queue = append(queue, s.Value.Int)
				} else if len(queue) > 0 {
					s.Value, queue = histories.IntDatum(queue[0]), queue[1:]
				}
				return s
			}),
			"set": busyObjects(n, func(i int) histories.Step {
				if i == n-1 {
					return histories.Step{Do: histories.Read}
				}
				return histories.Step{Do: histories.Add, Value: histories.IntDatum(int64(i))}
			}, func(s histories.Step) histories.Step {
				if s.Do == histories.Read {
					s.Value = histories.Datum{Form: histories.List}
					for i := range int64(n - 1) {
						s.Value.List = append(s.Value.List, i)
					}
				}
				return s
			}),
		}
		for _, name := range []string{"register", "set", "total-queue"} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					a, err := CheckObjects(histories.Events(made[name]), name, ObjectOptions{})
					if err != nil {
						b.Fatal(err)
					}
					if v := a.Verdict(); v == model.Violated {
						b.Fatal(objectProofs(a))
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/op-of-history")
			})
		}
	}
}

// BenchmarkObjectsPorcupine gives the same for porcupine on the same register, as far as it goes.
func BenchmarkObjectsPorcupine(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("register/%d", n), func(b *testing.B) {
			h, err := loadObjects(histories.Events(busyRegister(n)))
			if err != nil {
				b.Fatal(err)
			}
			_, ops := h.byKey()
			components, err := h.components(ops[0], component{model: model.Cells(model.Value{}), unseen: unseenCells})
			if err != nil {
				b.Fatal(err)
			}
			calls := operations(components[0].items)
			b.ReportAllocs()
			for b.Loop() {
				if v := porcupine.CheckOperationsTimeout(components[0].model, calls, 20*time.Second); v != porcupine.Ok {
					b.Skipf("porcupine's answer: %s", v)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/op-of-history")
		})
	}
}
