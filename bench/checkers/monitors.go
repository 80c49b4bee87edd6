package main

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"time"

	"ackproof/histories"
	"ackproof/linearizability"
	"ackproof/model"
)

// worker is one client of a history of objects.
type worker struct {
	process int32
	number  int
	holds   int64 // message of a work queue that it has a lease of
	op      uint64
	asked   histories.Step
	seen    []histories.Step
	effect  func() histories.Step // what it is still to do; the step as it saw it
}

// fly has eight workers do n operations of one step each, several at once. next says what a worker does and what that does to the world; unknown, that its outcome will
// not be known.
func fly(j *journal, n int, next func(w *worker, unknown bool) (asked histories.Step, effect func() histories.Step)) {
	var workers [clients]worker
	for i := range workers {
		workers[i] = worker{process: int32(i), number: i}
	}
	for made, open := 0, 0; made < n || open > 0; {
		w := &workers[j.r.IntN(clients)]
		ev := histories.Event{Kind: histories.Object, Process: w.process}
		if w.op != 0 {
			if w.effect != nil {
				w.seen = append(w.seen[:0], w.effect())
			}
			ev.Op, ev.Type, ev.Steps = w.op, histories.OK, w.seen
			if w.op = 0; w.asked.Number < 0 { // marked by begin
				ev.Type, ev.Code, ev.Steps = histories.Info, histories.NoAnswer, nil
				w.process += clients
			}
			j.event(ev)
			open--
			continue
		}
		if made == n {
			continue
		}
		made++
		open++
		unknown := j.r.IntN(lostOne) == 0
		w.asked, w.effect = next(w, unknown)
		ev.Steps = []histories.Step{w.asked}
		w.op = j.event(ev)
		if j.r.IntN(2) == 0 {
			w.seen, w.effect = append(w.seen[:0], w.effect()), nil
		}
		if unknown {
			w.asked.Number = -1
		}
	}
}

// put is a send: what is lost of unknown outcome is so half of the time.
func put(r *rand.Rand, unknown bool, line *[]int64, key string, value int64) (histories.Step, func() histories.Step) {
	s := histories.Step{Do: histories.Enqueue, Key: key, Value: histories.IntDatum(value), Offset: -1}
	lost := unknown && r.IntN(2) == 0
	return s, func() histories.Step {
		if !lost {
			*line = append(*line, value)
		}
		return s
	}
}

// take hands out the first of a line, or nothing.
func take(s histories.Step, line *[]int64, unknown bool) histories.Step {
	if len(*line) > 0 && !unknown {
		s.Value, *line = histories.IntDatum((*line)[0]), (*line)[1:]
	}
	return s
}

// writeQueue is a work queue: messages are sent, received with a lease of 30 s, and deleted.
func writeQueue(j *journal, n int, _ bool) {
	var line []int64
	sent := int64(0)
	fly(j, n, func(w *worker, unknown bool) (histories.Step, func() histories.Step) {
		if w.holds > 0 {
			s := histories.Step{Do: histories.Ack, Key: "q", Value: histories.IntDatum(w.holds), Offset: -1}
			w.holds = 0
			return s, func() histories.Step { return s }
		}
		if j.r.IntN(2) == 0 {
			sent++
			return put(j.r, unknown, &line, "q", sent)
		}
		s := histories.Step{Do: histories.Receive, Key: "q", Offset: -1}
		return s, func() histories.Step {
			s := take(s, &line, unknown)
			if s.Value.Form != histories.Nil {
				w.holds, s.Number = s.Value.Int, int64(30*time.Second)
			}
			return s
		}
	})
}

// writeFIFO is a queue with four groups of messages.
func writeFIFO(j *journal, n int, _ bool) {
	keys := [...]string{"f0", "f1", "f2", "f3"}
	var lines [len(keys)][]int64
	sent := int64(0)
	fly(j, n, func(w *worker, unknown bool) (histories.Step, func() histories.Step) {
		k := j.r.IntN(len(keys))
		if j.r.IntN(2) == 0 {
			sent++
			return put(j.r, unknown, &lines[k], keys[k], sent)
		}
		s := histories.Step{Do: histories.Dequeue, Key: keys[k], Offset: -1}
		return s, func() histories.Step { return take(s, &lines[k], unknown) }
	})
}

// writeGroups is a group of eight members, each with a partition of its own: in turn ten records are acknowledged, given to the member, and committed.
func writeGroups(j *journal, n int, _ bool) {
	var ends [clients]int64
	for p := range int32(clients) {
		assigned := []histories.Step{{Do: histories.Assigned, Key: fmt.Sprintf("g/%d", p), Number: 1}}
		j.over(histories.Event{Kind: histories.Object, Process: p, Steps: assigned}, histories.Event{Type: histories.OK, Steps: assigned})
	}
	for made := 0; made < n; made += 3 {
		p := int32(j.r.IntN(clients))
		from := ends[p]
		ends[p] += 10
		j.over(histories.Event{Kind: histories.Append, Process: clients + p, Partition: p, Runs: []histories.Run{{Producer: p, Sequence: from, Count: 10}}},
			histories.Event{Type: histories.OK, Offset: from})
		key := fmt.Sprintf("g/%d", p)
		given := histories.Step{Do: histories.Delivered, Key: key, Offset: from, Number: 10}
		j.over(histories.Event{Kind: histories.Object, Process: p, Steps: []histories.Step{{Do: histories.Delivered, Key: key, Offset: -1}}}, histories.Event{Type: histories.OK, Steps: []histories.Step{given}})
		commit := []histories.Step{{Do: histories.Commit, Key: key, Offset: from + 10, Value: histories.IntDatum(int64(made)), Number: 1}}
		end := histories.Event{Type: histories.OK, Steps: commit}
		j.over(histories.Event{Kind: histories.Object, Process: p, Steps: commit}, end)
	}
}

// checkMonitored checks with one of the checkers that also run along with a test, for all that it decides by default.
func checkMonitored(check func(iter.Seq2[histories.Event, error], linearizability.MonitorOptions) (*linearizability.Answer, error)) func(iter.Seq2[histories.Event, error]) ([]model.ClaimResult, error) {
	return func(events iter.Seq2[histories.Event, error]) ([]model.ClaimResult, error) {
		a, err := check(events, linearizability.MonitorOptions{Floors: model.Floors{}})
		if err != nil {
			return nil, err
		}
		return a.Claims, nil
	}
}

// monitorFigures shows how the checkers of groups and queues grow.
func monitorFigures(b *bench) error {
	title("Group delivery, work queue with leases, FIFO per group (queues with 2 %% without a known outcome)")
	for _, kind := range []string{"groups", "queue", "fifo"} {
		for n := 10_000; n <= min(b.largest, 1_000_000); n *= 10 {
			path, _, err := b.history(kind, n, false, histories.Native)
			if err != nil {
				return err
			}
			read, check, err := b.checked(kind, path, model.Held)
			os.Remove(path)
			if err != nil {
				return err
			}
			row(fmt.Sprintf("%s, %d operations", kind, n), fmt.Sprintf("decode %6.3f + check %6.3f = %6.3f CPU-s (%5.0f ns/op)  peak %6.1f MB",
				read.CPU, check.CPU-read.CPU, check.CPU, check.CPU/float64(n)*1e9, check.PeakMB), "", false)
		}
	}
	return nil
}
