package main

import (
	"bufio"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"ackproof/histories"
	"ackproof/linearizability"
	"ackproof/model"
)

// workload is a kind of history with its checker. A history of n operations is always the same. A planted one holds one violation, in the middle.
type workload struct {
	write func(j *journal, n int, planted bool)
	check func(events iter.Seq2[histories.Event, error]) ([]model.ClaimResult, error)
}

var workloads = map[string]workload{
	"log": {writeLog, checkLog}, "log-known": {writeKnownLog, checkLog},
	"transactions": {writeTransactions, nil}, "groups": {writeGroups, checkMonitored(linearizability.CheckGroups)},
	"queue": {writeQueue, checkMonitored(linearizability.CheckWorkQueue)}, "fifo": {writeFIFO, checkMonitored(linearizability.CheckFIFO)},
}

func init() {
	for level := linearizability.StrictSerializable; level <= linearizability.ReadCommitted; level++ {
		workloads["transactions-"+level.String()] = workload{nil, checkTransactions(level)}
	}
}

// journal stamps events as a recorder does, with a clock of its own.
type journal struct {
	w   histories.EventWriter
	r   *rand.Rand
	seq uint64
	now time.Duration
	err error
}

// event writes an event and returns its number. What has no Op is an invocation or a mark.
func (j *journal) event(ev histories.Event) uint64 {
	j.seq++
	j.now += time.Duration(500 + j.r.IntN(3000))
	ev.Seq, ev.Time = j.seq, j.now
	if ev.Op == 0 {
		ev.Op = ev.Seq
	}
	if j.err == nil {
		j.err = j.w.Write(&ev)
	}
	return ev.Seq
}

// over writes a whole operation with nothing else in between.
func (j *journal) over(ev histories.Event, end histories.Event) {
	end.Op = j.event(ev)
	end.Kind, end.Process, end.Partition, end.Session = ev.Kind, ev.Process, ev.Partition, ev.Session
	j.event(end)
}

func (j *journal) phase(name string) {
	j.event(histories.Event{Kind: histories.Phase, Type: histories.Info, Note: name})
}

// writeJob makes a history: kind, operations, whether planted, format, path.
func writeJob(m *measured, args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	f, err := os.Create(args[4])
	if err != nil {
		return fmt.Errorf("make a history: %w", err)
	}
	defer f.Close()
	out := bufio.NewWriterSize(f, 256<<10)
	w, err := histories.NewEventWriter(out, histories.Format(args[3]), histories.Header{Run: 1})
	if err != nil {
		return err
	}
	j := &journal{w: w, r: rand.New(rand.NewPCG(1, 2))}
	workloads[args[0]].write(j, n, args[2] == "true")
	if j.err == nil {
		j.err = w.Flush()
	}
	if j.err == nil {
		j.err = out.Flush()
	}
	m.Events = int64(j.seq)
	return j.err
}

// readJob decodes a history and does nothing with it.
func readJob(m *measured, args []string) error {
	in, err := histories.OpenAny(args[0], "")
	if err != nil {
		return err
	}
	defer in.Close()
	for ev, err := range in.All() {
		if err != nil {
			return err
		}
		m.Events++
		if ev.Type == histories.Invoke && ev.Kind.IsOperation() {
			m.Operations++
		}
	}
	return nil
}

// checkJob decodes and checks a history: kind and path.
func checkJob(m *measured, args []string) error {
	in, err := histories.OpenAny(args[1], "")
	if err != nil {
		return err
	}
	defer in.Close()
	claims, err := workloads[args[0]].check(in.All())
	if err != nil {
		return err
	}
	m.Verdict = string(model.WorstOf(claims))
	for _, c := range claims {
		for _, a := range c.Anomalies {
			if a.Proof != nil {
				m.Anomalies = append(m.Anomalies, string(a.Kind))
			}
		}
		if c.Reason != "" {
			m.Note = fmt.Sprintf("%s: %s", c.ID, c.Reason)
		}
	}
	return nil
}

// history makes a history in a process of its own and returns its path and size.
func (b *bench) history(kind string, n int, planted bool, format histories.Format) (path string, bytes int64, err error) {
	path = b.path(fmt.Sprintf("%s-%d-%t.%s", kind, n, planted, format))
	if _, err := b.measure("write", kind, n, planted, format, path); err != nil {
		return "", 0, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", 0, err
	}
	return path, info.Size(), nil
}

// checked measures reading a history, and reading and checking it. want is the verdict that it has to give.
func (b *bench) checked(kind, path string, want model.Verdict) (read, check measured, err error) {
	if read, err = b.measure("read", path); err != nil {
		return read, check, err
	}
	if check, err = b.measure("check", kind, path); err != nil {
		return read, check, err
	}
	if check.Verdict != string(want) {
		err = fmt.Errorf("a history of %s with %d operations is %s (%s %v), expected %s", kind, read.Operations, check.Verdict, check.Note, check.Anomalies, want)
	}
	return read, check, err
}
