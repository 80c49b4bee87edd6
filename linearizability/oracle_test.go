package linearizability

import (
	"fmt"
	"math"
	"math/rand/v2"
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

// trimmed stands for a record below the start of the log, of which nothing is known.
const trimmed = "\xff"

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

// search is the exhaustive oracle: depth first, over (steps placed, log). Below start the log may hold records that nobody in the history wrote.
// It gives up (wide) after oracleStates: many records of unknown outcome that nobody saw.
func search(ops []porcupine.Operation, start int64) (legal, wide bool) {
	type state struct {
		placed uint64
		log    string
	}
	due := make(map[int64]byte) // what a read returned stays, so no other record may come to stand there
	for _, o := range ops {
		in := o.Input.(logOp)
		for i := range in.records {
			k := in.from + int64(i)
			if r, ok := due[k]; ok && r != in.records[i] {
				return false, false
			}
			due[k] = in.records[i]
		}
	}
	been := make(map[state]bool)
	var from func(s state) bool
	from = func(s state) bool {
		first, done := int64(0), false // the earliest end among those that must still happen
		for again := true; again; {
			again = false
			first, done = math.MaxInt64, true
			for i, o := range ops {
				if s.placed&(1<<i) == 0 && !o.Input.(logOp).unknown {
					first, done = min(first, o.Return), false
				}
			}
			for i, o := range ops { // a read changes nothing: where one can be placed it may be
				if in := o.Input.(logOp); in.read && s.placed&(1<<i) == 0 && o.Call <= first {
					if _, ok := in.apply(s.log); ok {
						s.placed |= 1 << i
						again = true
					}
				}
			}
		}
		if done {
			return true
		}
		if wide = wide || len(been) > oracleStates; wide || been[s] {
			return false
		}
		been[s] = true
		next, known := due[int64(len(s.log))]
		if !known && int64(len(s.log)) < start && from(state{s.placed, s.log + trimmed}) {
			return true
		}
		for i, o := range ops {
			in := o.Input.(logOp)
			if in.read || s.placed&(1<<i) != 0 || o.Call > first || known && in.record != next {
				continue
			}
			if log, ok := in.apply(s.log); ok && from(state{s.placed | 1<<i, log}) {
				return true
			}
		}
		return false
	}
	return from(state{}), wide
}

const oracleStates = 20_000

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

// oneLog is the level of real time that is none: there is one log, and each reader was given a part of it.
const oneLog level = 0

// finalEnd reads what the drain says of the log: it ends at end, and the read that shows this was asked for at proof. Without a drain that read everything,
// from the start of the log to an empty read, proof is 0.
func finalEnd(events []histories.Event, start int64) (end int64, proof uint64) {
	phase, end := uint64(0), int64(-1)
	read := make(map[int64]bool)
	asked := make(map[uint64]histories.Event)
	for _, ev := range events {
		switch {
		case ev.Kind == histories.Phase:
			phase = ev.Seq
		case ev.Type == histories.Invoke:
			asked[ev.Op] = ev
		case ev.Type == histories.OK && phase > 0 && ev.Op > phase && (ev.Kind == histories.Fetch || ev.Kind == histories.EndOffset):
			from := asked[ev.Op].Offset
			to := from
			for _, run := range ev.Runs {
				to = run.Offset + int64(run.Count)
			}
			for k := from; k < to; k++ {
				read[k] = true
			}
			if ev.Kind == histories.EndOffset {
				to = ev.Offset
			}
			if to > end {
				end, proof = to, 0
			}
			if to == end && len(ev.Runs) == 0 {
				proof = max(proof, ev.Op)
			}
		}
	}
	for k := start; k < end; k++ {
		if !read[k] {
			return end, 0
		}
	}
	return end, proof
}

// feasible asks the oracle whether a log of some level explains the history of one partition. Record r of producer 1 is the byte r.
func feasible(events []histories.Event, l level) (legal, wide bool) {
	var ops []porcupine.Operation
	last := int64(len(events) + 10)
	start := int64(0)
	ended := make(map[uint64]histories.Event)
	for _, ev := range events {
		if ev.Type != histories.Invoke {
			ended[ev.Op] = ev
		}
		if ev.Type == histories.OK && ev.Kind == histories.StartOffset {
			start = max(start, ev.Offset)
		}
	}
	final, proof := finalEnd(events, start)
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
			exact := inv.Seq == proof // at every level the drain tells how the log is at the end
			before := ok && end.Seq < proof
			if exact && in.most < 0 { // a start above the end is for visible-end to find
				in.most = max(final, start)
			}
			if l == oneLog || in.read && l == appendOrder { // only what was read counts, not when, but for the end
				if ret = last; before {
					ret = int64(proof) - 1
				}
				if !exact {
					call = 0
				}
			}
			if l < fullReads && before {
				shown := int64(0)
				if in.records != "" {
					shown = in.from + int64(len(in.records))
				}
				in.least = min(in.least, max(final, shown)) // an end that went back is for visible-end to find
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
					if ok && end.Offset >= 0 {
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
	legal, wide = search(ops, start)
	if len(ops) <= 5 && start == 0 {
		if p := porcupine.CheckOperations(power, ops); p != legal {
			panic("the search says " + strconv.FormatBool(legal) + ", porcupine " + strconv.FormatBool(p) + ":\n" + show(events))
		}
	}
	return legal, wide
}

// decided asks the checkers the same. open: some acknowledgements named no offset and were found nowhere, which leaves no-loss undecided.
func decided(t testing.TB, events []histories.Event, l level) (legal, open bool) {
	h, err := load(histories.Events(events))
	if err != nil {
		t.Fatal(err)
	}
	y := newTally(h, strong())
	for _, p := range h.parts {
		if err := h.extent(p); err != nil {
			t.Fatal(err)
		}
		h.settle(p, y, h.drain > 0, "there was no drain")
		b := h.upper(p, y, max(l, appendOrder))
		for i := range b.by { // without real time a bound says that the offset exists, and no more
			if l == oneLog && b.by[i] != endless {
				b.by[i] = endless - 1
			}
		}
		h.sweep(p, y, b)
		h.fill(p, y, b)
		if l == fullReads {
			h.stale(p, y, b)
		}
	}
	for _, ev := range events {
		open = open || y.openAcks > 0 && ev.Kind == histories.Append && ev.Type == histories.OK && ev.Offset < 0
	}
	for k := range y.found {
		if k.anomaly == model.FutureRead && l <= appendOrder {
			continue
		}
		return false, false
	}
	return true, open
}

// randomHistory runs a real log under a random schedule of a few operations, and then damages what was recorded, or not. Some logs are trimmed, some
// acknowledge without an offset, and some are drained.
func randomHistory(r *rand.Rand) []histories.Event {
	type flying struct {
		inv     histories.Event
		applied bool
		end     histories.Event
	}
	var (
		s       script
		log     []byte
		start   int64
		open    []*flying
		record  int64
		process int32
	)
	blind, trims, drains := r.IntN(5) == 0, r.IntN(3) == 0, r.IntN(3) == 0
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
				ev.Kind, ev.Offset = histories.Fetch, start+int64(r.IntN(len(log)-int(start)+2))
			case 3:
				ev.Kind = histories.EndOffset
				if trims && !blind && r.IntN(2) == 0 {
					ev.Kind = histories.StartOffset
				}
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
				switch {
				case f.end.Type != histories.OK:
					f.end.Offset = 0
				case blind:
					f.end.Offset = -1
				}
			case histories.Fetch:
				f.end.Offset = f.inv.Offset
				to := int64(len(log))
				if f.inv.Offset < start { // trimmed meanwhile
					f.end.Type = histories.Fail
					break
				}
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
			case histories.StartOffset:
				start += r.Int64N(min(3, int64(len(log))-start) + 1)
				f.end.Offset = start
			}
			continue
		}
		open = slices.Delete(open, i, i+1)
		if r.IntN(12) > 0 { // else the client died
			s.event(f.end)
		}
	}
	if drains || blind && r.IntN(3) > 0 {
		s.process = process
		s.phase("drain")
		var runs []histories.Run
		for k := start; k < int64(len(log)); k++ {
			runs = append(runs, at(k, 1, int64(log[k]), 1))
		}
		s.fetch(0, start)(runs...)
		s.fetch(0, int64(len(log)))()
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
			if ev.Offset >= 0 {
				ev.Offset = max(0, ev.Offset+r.Int64N(3)-1)
			}
		case histories.EndOffset, histories.StartOffset:
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

// logDuel compares the checkers of a log at every level: what a history says of records and offsets, with real time left out, then with more and more of it.
var logDuel = duel{name: "log", n: 4000, open: 20, fight: func(t testing.TB, r *rand.Rand, s *score) error {
	events := randomHistory(r)
	for l := oneLog; l <= fullReads; l++ {
		want, wide := feasible(events, l)
		if wide && !want {
			s.notes["too wide for the oracle"]++
			continue
		}
		got, open := decided(t, events, l)
		s.asked([...]string{"L0", "L1", "L2", "L3"}[l], want, got && open)
		if got != want && !(got && open) {
			return fmt.Errorf("at level %d the checkers say %v, the oracle %v:\n%s", l, got, want, show(events))
		}
	}
	return nil
}}

func TestOracle(t *testing.T) { logDuel.test(t) }
func FuzzLog(f *testing.F)    { logDuel.fuzz(f) }

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
