package main

import (
	"fmt"
	"iter"
	"os"
	"strings"

	"ackproof/histories"
	"ackproof/linearizability"
	"ackproof/model"
)

// The history of transactions is strict serializable: eight clients with one to four steps each, reads and appends, on ten active lists that are replaced after 32 appends.
// 2 % have no known outcome, and all of those took effect. Planted, the last transaction of all reads the first list and finds nothing, so that under strict
// serializability nearly everything is one component.
const (
	activeLists = 10
	fullList    = 32 // appends
)

// listStep is a step of an open transaction.
type listStep struct {
	list   int
	append bool
	value  int64
	seen   int // elements that a read found
}

type openTransaction struct {
	op      uint64
	process int32
	steps   []listStep
	done    bool
}

type listMaker struct {
	*journal
	names  []string
	lists  [][]int64
	given  []int64 // values, at invocation, so lists are not in the order of values
	active [activeLists]int
	out    []histories.Step
}

func (m *listMaker) fresh(i int) {
	m.active[i] = len(m.names)
	m.names, m.lists, m.given = append(m.names, fmt.Sprintf("k%d", len(m.names))), append(m.lists, nil), append(m.given, 0)
}

// write writes the steps of a transaction, as asked or with what they saw.
func (m *listMaker) write(ev histories.Event, steps []listStep) uint64 {
	m.out = m.out[:0]
	for _, s := range steps {
		step := histories.Step{Do: histories.Read, Key: m.names[s.list], Offset: -1}
		switch {
		case s.append:
			step.Do, step.Value = histories.AppendTo, histories.IntDatum(s.value)
		case ev.Type == histories.OK:
			step.Value = histories.Datum{Form: histories.List, List: m.lists[s.list][:s.seen]}
		}
		m.out = append(m.out, step)
	}
	ev.Kind, ev.Steps = histories.Object, m.out
	return m.event(ev)
}

func writeTransactions(j *journal, n int, planted bool) {
	m := &listMaker{journal: j}
	for i := range m.active {
		m.fresh(i)
	}
	var flying []openTransaction
	var free []int32
	for c := range int32(clients) {
		free = append(free, c)
	}
	for made := 0; made < n || len(flying) > 0; {
		if made < n && len(free) > 0 && j.r.IntN(3) > 0 {
			made++
			flying = append(flying, m.begin(free[0]))
			free = free[1:]
			continue
		}
		if len(flying) == 0 {
			continue
		}
		i := j.r.IntN(len(flying))
		if f := &flying[i]; !f.done {
			f.done = true
			m.apply(f.steps)
			continue
		}
		f := flying[i]
		end := histories.Event{Op: f.op, Type: histories.OK, Process: f.process}
		if j.r.IntN(lostOne) == 0 {
			end.Type, f.steps = histories.Info, nil
			f.process += clients
		}
		m.write(end, f.steps)
		free = append(free, f.process)
		flying[i] = flying[len(flying)-1]
		flying = flying[:len(flying)-1]
	}
	if planted {
		stale := []listStep{{list: 0}}
		op := m.write(histories.Event{Process: -1}, stale)
		m.write(histories.Event{Op: op, Type: histories.OK, Process: -1}, stale)
	}
}

func (m *listMaker) begin(process int32) openTransaction {
	f := openTransaction{process: process}
	for range 1 + m.r.IntN(4) {
		i := m.r.IntN(activeLists)
		if m.given[m.active[i]] == fullList {
			m.fresh(i)
		}
		s := listStep{list: m.active[i], append: m.r.IntN(2) == 0}
		if s.append {
			m.given[s.list]++
			s.value = m.given[s.list]
		}
		f.steps = append(f.steps, s)
	}
	f.op = m.write(histories.Event{Process: process}, f.steps)
	return f
}

func (m *listMaker) apply(steps []listStep) {
	for i := range steps {
		if s := &steps[i]; s.append {
			m.lists[s.list] = append(m.lists[s.list], s.value)
		} else {
			s.seen = len(m.lists[s.list])
		}
	}
}

// checkTransactions at a level.
func checkTransactions(level linearizability.Level) func(iter.Seq2[histories.Event, error]) ([]model.ClaimResult, error) {
	return func(events iter.Seq2[histories.Event, error]) ([]model.ClaimResult, error) {
		a, err := linearizability.CheckTransactions(events, linearizability.TransactionOptions{Level: level, Versions: linearizability.Lists})
		if err != nil {
			return nil, err
		}
		return a.Claims, nil
	}
}

// transactionFigures shows how the checker of transactions grows, at each level, and what one large component costs.
func transactionFigures(b *bench) error {
	title("Transactions over lists, 2 %% without a known outcome (1 to 4 steps; check = decode and check, less decoding alone)")
	for n := 10_000; n <= min(b.largest, 1_000_000); n *= 10 {
		for _, planted := range []bool{false, true} {
			if err := transactionFigure(b, n, planted); err != nil {
				return err
			}
		}
	}
	return nil
}

func transactionFigure(b *bench, n int, planted bool) error {
	path, _, err := b.history("transactions", n, planted, histories.Native)
	if err != nil {
		return err
	}
	defer os.Remove(path)
	levels, want := []linearizability.Level{linearizability.ReadCommitted, linearizability.SnapshotIsolation, linearizability.Serializable, linearizability.StrictSerializable}, model.Held
	if planted {
		levels, want = levels[3:], model.Violated
	}
	for _, level := range levels {
		read, check, err := b.checked("transactions-"+level.String(), path, want)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("%d, %v", n, level)
		if planted {
			what = fmt.Sprintf("%d, one component", n)
		}
		figures := fmt.Sprintf("decode %6.3f + check %6.3f = %6.3f CPU-s (%5.0f ns/txn)  peak %6.1f MB", read.CPU, check.CPU-read.CPU, check.CPU, check.CPU/float64(n)*1e9, check.PeakMB)
		if planted {
			figures += "  certificates: " + strings.Join(check.Anomalies, ", ")
		}
		goal := ""
		if n == 1_000_000 {
			goal = "check ≤ 1.5 CPU-s"
		}
		row(what, figures, goal, check.CPU-read.CPU <= 1.5)
	}
	return nil
}
