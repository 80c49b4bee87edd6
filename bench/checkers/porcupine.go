package main

import (
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"ackproof/histories"
	"ackproof/model"
)

// porcupineTime is how long porcupine may search one history.
const porcupineTime = 10 * time.Second

// logCall is an append of one record, offset −1 where that is not known, or a read of some from an offset on.
type logCall struct {
	partition int32
	record    kept
	offset    int64
	read      bool
	found     []kept
}

// logModel is the log as one would write it down for porcupine: the state is the log. An append of unknown outcome never ends.
var logModel = porcupine.Model{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		out := make([][]porcupine.Operation, partitions)
		for _, o := range all {
			p := o.Input.(logCall).partition
			out[p] = append(out[p], o)
		}
		return out
	},
	Init: func() any { return []kept(nil) },
	Step: func(state, input, _ any) (bool, any) {
		log, in := state.([]kept), input.(logCall)
		if in.read {
			to := in.offset + int64(len(in.found))
			return to <= int64(len(log)) && slices.Equal(log[min(in.offset, to):to], in.found), state
		}
		if in.offset >= 0 && in.offset != int64(len(log)) {
			return false, state
		}
		return true, append(slices.Clone(log), in.record)
	},
	Equal: func(a, b any) bool { return slices.Equal(a.([]kept), b.([]kept)) },
}

// logCalls turns a log history into porcupine's form.
func logCalls(path string) (calls []porcupine.Operation, err error) {
	in, err := histories.OpenAny(path, "")
	if err != nil {
		return nil, err
	}
	defer in.Close()
	open := make(map[uint64]int)
	for ev, err := range in.All() {
		if err != nil {
			return nil, err
		}
		switch {
		case ev.Kind != histories.Append && ev.Kind != histories.Fetch:
		case ev.Type == histories.Invoke:
			call := logCall{partition: ev.Partition, offset: ev.Offset, read: ev.Kind == histories.Fetch}
			if !call.read {
				call.record, call.offset = kept{ev.Runs[0].Producer, int32(ev.Runs[0].Sequence)}, -1
			}
			open[ev.Op] = len(calls)
			calls = append(calls, porcupine.Operation{ClientId: int(ev.Process), Input: call, Call: int64(ev.Seq), Return: math.MaxInt64})
		case ev.Type == histories.OK:
			c := &calls[open[ev.Op]]
			call := c.Input.(logCall)
			if !call.read {
				call.offset = ev.Offset
			}
			for _, r := range ev.Runs {
				for i := range r.Count {
					call.found = append(call.found, kept{r.Producer, int32(r.Sequence) + i})
				}
			}
			c.Input, c.Return = call, int64(ev.Seq)
		}
	}
	// A read of unknown outcome says nothing.
	return slices.DeleteFunc(calls, func(o porcupine.Operation) bool { return o.Return == math.MaxInt64 && o.Input.(logCall).read }), nil
}

// porcupineJob has porcupine decide a log history.
func porcupineJob(m *measured, args []string) error {
	calls, err := logCalls(args[0])
	if err != nil {
		return err
	}
	m.Operations = int64(len(calls))
	m.Verdict = string(porcupine.CheckOperationsTimeout(logModel, calls, porcupineTime))
	return nil
}

// porcupineFigures compares on the same histories.
func porcupineFigures(b *bench) error {
	title("porcupine on the same log histories (%v at most)", porcupineTime)
	for _, c := range []struct {
		kind string
		n    int
	}{{"log-known", 500}, {"log-known", 2000}, {"log-known", 8000}, {"log", 500}, {"log", 2000}, {"log", 8000}} {
		path, _, err := b.history(c.kind, c.n, false, histories.Native)
		if err != nil {
			return err
		}
		_, ours, err := b.checked(c.kind, path, model.Held)
		if err != nil {
			return err
		}
		theirs, err := b.measure("porcupine", path)
		os.Remove(path)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("%d operations, all known", c.n)
		if c.kind == "log" {
			what = fmt.Sprintf("%d operations, 2 %% unknown", c.n)
		}
		verdict := theirs.Verdict
		if verdict == string(porcupine.Unknown) {
			verdict = "no verdict"
		}
		row(what, fmt.Sprintf("porcupine %7.3f CPU-s, %s; here %.3f CPU-s: × %.0f", theirs.CPU, verdict, ours.CPU, theirs.CPU/ours.CPU), "", false)
	}
	return nil
}
