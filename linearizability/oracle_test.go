package linearizability

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/anishathalye/porcupine"

	"ackproof/histories"
	"ackproof/model"
)

// The oracle searches all orders of a history's steps, with the log itself as the state and nothing of the sweep. It shares with the checkers
// only the history. Where there are few enough steps porcupine answers as well, with a power set for appends of unknown outcome.

// logOp is one step that the oracle has to place. Every record of an append is a step of its own: that the records of one append come into
// being together is promised by no claim.
type logOp struct {
	record  byte  // append: the record
	offset  int64 // append: where it was acknowledged, −1 unknown
	unknown bool  // append: it may not have happened
	from    int64 // read: first offset
	records string
	least   int64 // the log was at least this long
	most    int64 // and at most this long; −1: no bound
	read    bool
}

// apply places one step after a log and gives the log behind it.
func (in logOp) apply(log string) (string, bool) {
	if !in.read {
		return log + string([]byte{in.record}), in.offset < 0 || in.offset == int64(len(log))
	}
	if int64(len(log)) < in.least || in.most >= 0 && int64(len(log)) > in.most {
		return log, false
	}
	for i := range in.records {
		if log[in.from+int64(i)] != in.records[i] {
			return log, false
		}
	}
	return log, true
}

// search is the exhaustive oracle: depth first, over (steps placed, log).
func search(ops []porcupine.Operation) bool {
	type state struct {
		placed uint32
		log    string
	}
	been := make(map[state]bool)
	var from func(s state) bool
	from = func(s state) bool {
		if been[s] {
			return false
		}
		been[s] = true
		first, done := int64(math.MaxInt64), true // the earliest end among those that must still happen
		for i, o := range ops {
			if s.placed&(1<<i) == 0 && !o.Input.(logOp).unknown {
				first, done = min(first, o.Return), false
			}
		}
		if done {
			return true
		}
		for i, o := range ops {
			if s.placed&(1<<i) != 0 || o.Call > first {
				continue
			}
			if log, ok := o.Input.(logOp).apply(s.log); ok && from(state{s.placed | 1<<i, log}) {
				return true
			}
		}
		return false
	}
	return from(state{})
}

var power = func() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{""} },
		Step: func(state, input, _ any) (next []any) {
			in := input.(logOp)
			if log, ok := in.apply(state.(string)); ok {
				next = append(next, log)
			}
			if in.unknown {
				next = append(next, state)
			}
			return next
		},
		Equal: func(a, b any) bool { return a == b },
	}
	return m.ToModel()
}()

// feasible asks the oracle whether a log of some level explains the history of one partition. Record r of producer 1 is the byte r.
func feasible(events []histories.Event, l level) bool {
	var ops []porcupine.Operation
	invoked := make(map[uint64]histories.Event)
	last := int64(len(events) + 10)
	ended := make(map[uint64]histories.Event)
	for _, ev := range events {
		if ev.Type == histories.Invoke {
			invoked[ev.Op] = ev
		} else {
			ended[ev.Op] = ev
		}
	}
	for _, inv := range events {
		if inv.Type != histories.Invoke {
			continue
		}
		end, done := ended[inv.Op]
		ok := done && end.Type == histories.OK
		call, ret := int64(inv.Seq), last
		if ok {
			ret = int64(end.Seq)
		}
		add := func(in logOp) {
			if in.read && l == appendOrder { // only what was read counts, not when
				call, ret = 0, last
			}
			ops = append(ops, porcupine.Operation{Input: in, Call: call, Return: ret})
		}
		switch {
		case inv.Kind == histories.Append:
			if done && end.Type == histories.Fail {
				continue
			}
			for _, r := range inv.Runs {
				for i := range r.Count {
					in := logOp{record: byte(r.Sequence) + byte(i), offset: -1, unknown: !ok}
					if ok {
						in.offset = end.Offset + int64(i)
					}
					add(in)
				}
			}
		case !ok:
		case inv.Kind == histories.Fetch:
			in := logOp{read: true, from: inv.Offset, most: -1}
			for _, r := range end.Runs {
				for i := range r.Count {
					in.records += string([]byte{byte(r.Sequence) + byte(i)})
				}
			}
			if in.least = in.from + int64(len(in.records)); in.records == "" {
				in.least = 0
				if l == fullReads {
					in.most = in.from
				}
			}
			if l >= noFuture && end.HighWatermark >= 0 {
				in.least = max(in.least, end.HighWatermark)
			}
			if l == fullReads && end.HighWatermark >= 0 {
				if in.most < 0 || end.HighWatermark < in.most {
					in.most = end.HighWatermark
				}
			}
			add(in)
		case inv.Kind == histories.EndOffset:
			in := logOp{read: true, most: -1}
			if l >= noFuture {
				in.least = end.Offset
			}
			if l == fullReads {
				in.most = end.Offset
			}
			add(in)
		}
	}
	answer := search(ops)
	if len(ops) <= 5 {
		if p := porcupine.CheckOperations(power, ops); p != answer {
			panic("the search says " + strconv.FormatBool(answer) + ", porcupine " + strconv.FormatBool(p) + ":\n" + show(events))
		}
	}
	return answer
}

// decided asks the checkers the same.
func decided(t testing.TB, events []histories.Event, l level) bool {
	h, err := load(histories.Events(events))
	if err != nil {
		t.Fatal(err)
	}
	c := strong()
	y := &tally{h: h, contract: c, position: slices.Repeat([]int32{none}, len(h.writer)), found: make(map[findingKey]*bucket), unread: make(map[*part]int64)}
	for _, p := range h.parts {
		if err := h.extent(p); err != nil {
			t.Fatal(err)
		}
		h.settle(p, y, false, "")
		b := h.upper(p, y, l)
		h.sweep(p, y, b)
		h.fill(p, y, b)
		if l == fullReads {
			h.stale(p, y, b)
		}
	}
	for k := range y.found {
		if k.anomaly == model.FutureRead && l == appendOrder {
			continue
		}
		return false
	}
	return true
}

// randomHistory runs a real log under a random schedule of a few operations, and then damages what was recorded, or not.
func randomHistory(r *rand.Rand) []histories.Event {
	type flying struct {
		inv     histories.Event
		applied bool
		end     histories.Event
	}
	var (
		s       script
		log     []byte
		open    []*flying
		record  int64
		process int32
	)
	budget := 4 + r.IntN(7)
	for budget > 0 || len(open) > 0 {
		if budget > 0 && (len(open) == 0 || r.IntN(3) == 0) {
			budget--
			process++
			ev := histories.Event{Process: process}
			switch r.IntN(8) {
			default:
				n := int32(1)
				if r.IntN(4) == 0 {
					n += r.Int32N(2)
				}
				ev.Kind, ev.Runs = histories.Append, values(1, record, n)
				record += int64(n)
			case 0, 1, 2:
				ev.Kind, ev.Offset = histories.Fetch, int64(r.IntN(len(log)+2))
			case 3:
				ev.Kind = histories.EndOffset
			}
			open = append(open, &flying{inv: s.event(ev)})
			continue
		}
		i := r.IntN(len(open))
		f := open[i]
		if !f.applied {
			f.applied = true
			f.end = histories.Event{Type: histories.OK, Kind: f.inv.Kind, Op: f.inv.Op, Process: f.inv.Process, HighWatermark: -1}
			switch f.inv.Kind {
			case histories.Append:
				switch r.IntN(8) {
				case 0: // refused
					f.end.Type = histories.Fail
				case 1: // unknown, and it did not happen
					f.end.Type = histories.Info
				case 2: // unknown, and it did
					f.end.Type = histories.Info
					fallthrough
				default:
					f.end.Offset = int64(len(log))
					for j := range f.inv.Runs[0].Count {
						log = append(log, byte(f.inv.Runs[0].Sequence)+byte(j))
					}
				}
				if f.end.Type != histories.OK {
					f.end.Offset = 0
				}
			case histories.Fetch:
				f.end.Offset = f.inv.Offset
				to := int64(len(log))
				if r.IntN(3) == 0 {
					f.end.HighWatermark = max(to, f.inv.Offset)
					if to < f.inv.Offset {
						f.end.HighWatermark = to
					}
				}
				if to > f.inv.Offset {
					to = f.inv.Offset + 1 + r.Int64N(to-f.inv.Offset)
				}
				for k := f.inv.Offset; k < to; k++ {
					f.end.Runs = append(f.end.Runs, at(k, 1, int64(log[k]), 1))
				}
			case histories.EndOffset:
				f.end.Offset = int64(len(log))
			}
			continue
		}
		open = slices.Delete(open, i, i+1)
		if r.IntN(12) > 0 { // else the client died
			s.event(f.end)
		}
	}
	for range r.IntN(5) {
		damage(r, s.events, record)
	}
	return s.events
}

// damage changes one thing that a broken log, or a broken recorder, could have changed.
func damage(r *rand.Rand, events []histories.Event, records int64) {
	i := r.IntN(len(events))
	for range 8 { // an answer, more likely than not
		if events[i].Type == histories.OK {
			break
		}
		i = r.IntN(len(events))
	}
	ev := &events[i]
	if ev.Type == histories.OK && r.IntN(2) == 0 {
		switch ev.Kind {
		case histories.Append:
			ev.Offset = max(0, ev.Offset+r.Int64N(3)-1)
		case histories.EndOffset:
			ev.Offset = max(0, ev.Offset+r.Int64N(3)-1)
		case histories.Fetch:
			switch n := len(ev.Runs); {
			case n > 0 && r.IntN(2) == 0:
				ev.Runs = slices.Clone(ev.Runs)
				ev.Runs[r.IntN(n)].Sequence = r.Int64N(records + 2)
			case n > 0 && ev.HighWatermark < 0:
				ev.Runs = ev.Runs[:r.IntN(n)]
			}
		}
		return
	}
	// Two neighbours change places in time.
	if i+1 < len(events) && events[i+1].Op != ev.Op {
		a, b := events[i], events[i+1]
		a.Seq, b.Seq, a.Time, b.Time = b.Seq, a.Seq, b.Time, a.Time
		rename := func(ev *histories.Event) {
			if ev.Type == histories.Invoke {
				old := ev.Op
				ev.Op = ev.Seq
				for j := i + 2; j < len(events); j++ {
					if events[j].Type != histories.Invoke && events[j].Op == old && events[j].Process == ev.Process {
						events[j].Op = ev.Seq
					}
				}
			}
		}
		rename(&a)
		rename(&b)
		events[i], events[i+1] = b, a
	}
}

// scaled is how many random histories a test looks at; HISTORIES=100 makes it a hundred times as many.
func scaled(t *testing.T, n int) int {
	if s := os.Getenv("HISTORIES"); s != "" {
		times, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		n *= times
	}
	return n
}

// TestOracle compares the checkers with the oracle on random histories, legal and damaged, at every level.
func TestOracle(t *testing.T) {
	n := scaled(t, 4000)
	var legal, bad [4]int
	for i := range n {
		events := randomHistory(rand.New(rand.NewPCG(1, uint64(i))))
		for l := appendOrder; l <= fullReads; l++ {
			want := feasible(events, l)
			if want {
				legal[l]++
			} else {
				bad[l]++
			}
			if got := decided(t, events, l); got != want {
				t.Fatalf("history %d at level %d: the checkers say %v, the oracle %v:\n%s", i, l, got, want, show(events))
			}
		}
	}
	t.Logf("%d histories; legal %v, not legal %v at levels 1, 2, 3", n, legal[1:], bad[1:])
	for l := appendOrder; l <= fullReads; l++ {
		if legal[l] < n/10 || bad[l] < n/20 {
			t.Errorf("level %d: %d legal and %d other histories of %d: too few of one kind to prove anything", l, legal[l], bad[l], n)
		}
	}
}

func show(events []histories.Event) string {
	var out []byte
	for _, ev := range events {
		out = append(out, strconv.FormatUint(ev.Seq, 10)+" op "+strconv.FormatUint(ev.Op, 10)+" "+ev.Kind.String()+" "+ev.Type.String()+" offset "+strconv.FormatInt(ev.Offset, 10)+" high "+strconv.FormatInt(ev.HighWatermark, 10)...)
		for _, r := range ev.Runs {
			out = append(out, " "+strconv.FormatInt(r.Offset, 10)+":"+strconv.FormatInt(r.Sequence, 10)+"×"+strconv.Itoa(int(r.Count))...)
		}
		out = append(out, '\n')
	}
	return string(out)
}
