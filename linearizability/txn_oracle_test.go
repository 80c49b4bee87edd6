package linearizability

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ackproof/histories"
	"ackproof/model"
)

// The oracles of transactions try all orders of the transactions, with the lists themselves as the state and nothing of the graph. They share with the
// checker only the history.

// trial is one transaction that an oracle has to place.
type trial struct {
	inv, end uint64 // 0: never ended
	process  int32
	must     bool // it went through; else it may have happened
	steps    []histories.Step
}

func trials(events []histories.Event) []trial {
	var all []trial
	number := make(map[uint64]int)
	for _, ev := range events {
		switch {
		case ev.Kind != histories.Object:
		case ev.Type == histories.Invoke:
			number[ev.Op] = len(all)
			x := trial{inv: ev.Seq, process: ev.Process}
			for _, s := range ev.Steps {
				if s.Do == histories.AppendTo {
					x.steps = append(x.steps, s)
				}
			}
			all = append(all, x)
		case ev.Type == histories.OK:
			x := &all[number[ev.Op]]
			x.end, x.must, x.steps = ev.Seq, true, ev.Steps
		case ev.Type == histories.Fail:
			all[number[ev.Op]].steps = nil
		}
	}
	return slices.DeleteFunc(all, func(x trial) bool { return len(x.steps) == 0 })
}

// lists is the state.
type lists map[string][]int64

func (l lists) key(placed uint32) string {
	var b strings.Builder
	fmt.Fprint(&b, placed)
	for _, k := range slices.Sorted(maps.Keys(l)) {
		fmt.Fprint(&b, k, l[k])
	}
	return b.String()
}

func (l lists) clone() lists {
	c := make(lists, len(l))
	for k, v := range l {
		c[k] = slices.Clone(v)
	}
	return c
}

// run runs the steps of a transaction on the state, false if a read says something else.
func (l lists) run(steps []histories.Step) bool {
	for _, s := range steps {
		if s.Do == histories.AppendTo {
			l[s.Key] = append(l[s.Key], s.Value.Int)
		} else if !slices.Equal(l[s.Key], s.Value.List) {
			return false
		}
	}
	return true
}

// follows tells which transactions must come before i, as a set.
func follows(all []trial, i int, level Level, sessions bool) (set uint32) {
	for j, x := range all {
		if x.must && x.end < all[i].inv && (level == StrictSerializable || sessions && x.process == all[i].process) {
			set |= 1 << j
		}
	}
	return set
}

// serialOracle: is there an order in which the transactions, one after the other, read what they read?
func serialOracle(all []trial, level Level, sessions bool) bool {
	been := make(map[string]bool)
	var from func(placed uint32, state lists) bool
	from = func(placed uint32, state lists) bool {
		key := state.key(placed)
		if been[key] {
			return false
		}
		been[key] = true
		done := true
		for i := range all {
			done = done && (placed&(1<<i) != 0 || !all[i].must)
		}
		if done {
			return true
		}
		for i := range all {
			before := follows(all, i, level, sessions)
			if placed&(1<<i) != 0 || before&^placed != 0 {
				continue
			}
			if next := state.clone(); next.run(all[i].steps) && from(placed|1<<i, next) {
				return true
			}
		}
		return false
	}
	return from(0, lists{})
}

// snapshotOracle: is there an order of the beginnings and ends in which each transaction reads the state at its beginning, with its own appends, and nobody else
// appended to what it appends to until it ends?
func snapshotOracle(all []trial, sessions bool) bool {
	been := make(map[string]bool)
	var from func(begun, ended uint32, state lists, lengths []map[string]int) bool
	from = func(begun, ended uint32, state lists, lengths []map[string]int) bool {
		key := fmt.Sprint(begun, ended, lengths) + state.key(0)
		if been[key] {
			return false
		}
		been[key] = true
		done := true
		for i := range all {
			done = done && (ended&(1<<i) != 0 || !all[i].must)
		}
		if done {
			return true
		}
		for i := range all {
			bit := uint32(1) << i
			switch {
			case ended&bit != 0:
			case begun&bit == 0:
				if follows(all, i, SnapshotIsolation, sessions)&^ended != 0 || !state.clone().run(all[i].steps) {
					continue
				}
				l := slices.Clone(lengths)
				l[i] = make(map[string]int)
				for _, s := range all[i].steps {
					if s.Do == histories.AppendTo {
						l[i][s.Key] = len(state[s.Key])
					}
				}
				if from(begun|bit, ended, state, l) {
					return true
				}
			default:
				next, free := state.clone(), true
				for _, s := range all[i].steps {
					if s.Do == histories.AppendTo {
						free = free && len(state[s.Key]) == lengths[i][s.Key]
						next[s.Key] = append(next[s.Key], s.Value.Int)
					}
				}
				if !free {
					continue
				}
				l := slices.Clone(lengths)
				l[i] = nil
				if from(begun, ended|bit, next, l) {
					return true
				}
			}
		}
		return false
	}
	return from(0, 0, lists{}, make([]map[string]int, len(all)))
}

// committedOracle: is there an order in which each transaction comes after all whose appends it read, so that all reads are beginnings of the lists
// that come out, and none ends inside what another transaction appended?
func committedOracle(all []trial, sessions bool) bool {
	been := make(map[string]bool)
	var from func(placed uint32, state lists) bool
	from = func(placed uint32, state lists) bool {
		key := state.key(placed)
		if been[key] {
			return false
		}
		been[key] = true
		done := true
		for i := range all {
			done = done && (placed&(1<<i) != 0 || !all[i].must)
		}
		if done {
			for i, x := range all {
				for _, s := range x.steps {
					if s.Do != histories.Read {
						continue
					}
					read, final := s.Value.List, state[s.Key]
					if len(read) > len(final) || !slices.Equal(read, final[:len(read)]) || placed&(1<<i) == 0 {
						return false
					}
				}
			}
			return true
		}
		for i, x := range all {
			if placed&(1<<i) != 0 || follows(all, i, ReadCommitted, sessions)&^placed != 0 {
				continue
			}
			next, fine := state.clone(), true
			own := make(map[string][]int64)
			for _, s := range x.steps {
				if s.Do == histories.AppendTo {
					next[s.Key] = append(next[s.Key], s.Value.Int)
					own[s.Key] = append(own[s.Key], s.Value.Int)
				}
			}
			for _, s := range x.steps {
				if s.Do == histories.AppendTo {
					continue
				}
				others := slices.DeleteFunc(slices.Clone(s.Value.List), func(v int64) bool { return slices.Contains(own[s.Key], v) })
				for _, v := range others {
					fine = fine && slices.Contains(state[s.Key], v)
				}
				if n := len(others); n > 0 && fine { // the last append of its transaction
					for _, y := range all {
						for j, a := range y.steps {
							if a.Do == histories.AppendTo && a.Key == s.Key && a.Value.Int == others[n-1] {
								fine = fine && !slices.ContainsFunc(y.steps[j+1:], func(b histories.Step) bool { return b.Do == histories.AppendTo && b.Key == s.Key })
							}
						}
					}
				}
			}
			if fine && from(placed|1<<i, next) {
				return true
			}
		}
		return false
	}
	return from(0, lists{})
}

func oracle(events []histories.Event, level Level, sessions bool) bool {
	all := trials(events)
	switch level {
	case SnapshotIsolation:
		return snapshotOracle(all, sessions)
	case ReadCommitted:
		return committedOracle(all, sessions)
	}
	return serialOracle(all, level, sessions)
}

// randomTransactions runs a store of lists under a random schedule: serial, with snapshots, or without any isolation; and then damages what was
// recorded, or not.
func randomTransactions(r *rand.Rand) []histories.Event {
	type flying struct {
		inv      histories.Event
		steps    []histories.Step
		snapshot lists
		at       int // the next step
		begun    bool
		over     bool
		outcome  histories.Type
	}
	const (
		serial = iota
		snapshots
		loose
	)
	var (
		s       script
		state   = lists{}
		next    = map[string]int64{}
		open    []*flying
		free    = []int32{1, 2, 3, 4}
		process = int32(4)
		eager   = 1 + r.IntN(4)
		mode    = min(r.IntN(4), loose)
		keys    = []string{"x", "y", "z"}[:1+r.IntN(3)]
		budget  = 2 + r.IntN(5)
		plain   = r.IntN(2) == 0 // a transaction uses an object once
	)
	final := r.IntN(2) == 0
	invoke := func(steps []histories.Step) {
		i := r.IntN(len(free))
		ev := s.event(histories.Event{Kind: histories.Object, Process: free[i], Steps: steps})
		free = slices.Delete(free, i, i+1)
		open = append(open, &flying{inv: ev, steps: slices.Clone(steps)})
	}
	for budget > 0 || len(open) > 0 || final {
		if budget == 0 && len(open) == 0 {
			final = false
			var steps []histories.Step
			for _, k := range keys {
				steps = append(steps, histories.Step{Key: k, Offset: -1})
			}
			invoke(steps)
		}
		if budget > 0 && len(free) > 0 && (len(open) == 0 || r.IntN(eager) == 0) {
			budget--
			var steps []histories.Step
			for range 1 + r.IntN(4) {
				k := keys[r.IntN(len(keys))]
				if plain && slices.ContainsFunc(steps, func(s histories.Step) bool { return s.Key == k }) {
					continue
				}
				if r.IntN(2) == 0 {
					steps = append(steps, histories.Step{Key: k, Offset: -1})
					continue
				}
				next[k]++
				steps = append(steps, histories.Step{Do: histories.AppendTo, Key: k, Value: histories.IntDatum(next[k]), Offset: -1})
			}
			invoke(steps)
			continue
		}
		i := r.IntN(len(open))
		f := open[i]
		read := func(j int, from lists) {
			f.steps[j].Value = histories.Datum{Form: histories.List, List: slices.Clone(from[f.steps[j].Key])}
		}
		switch {
		case !f.begun:
			f.begun = true
			f.snapshot = state.clone()
			f.outcome = histories.OK
			switch r.IntN(10) {
			case 0:
				f.outcome = histories.Fail
			case 1, 2:
				f.outcome = histories.Info
			}
		case f.over:
			open = slices.Delete(open, i, i+1)
			free = append(free, f.inv.Process)
			if f.outcome == histories.Info {
				process++
				free[len(free)-1] = process
			}
			if f.outcome == histories.Info && r.IntN(2) == 0 {
				continue // the client died
			}
			end := histories.Event{Kind: histories.Object, Type: f.outcome, Op: f.inv.Op, Process: f.inv.Process}
			if f.outcome == histories.OK {
				end.Steps = f.steps
			}
			s.event(end)
		case mode == loose && f.at < len(f.steps):
			if f.steps[f.at].Do == histories.Read {
				read(f.at, state)
			} else {
				k := f.steps[f.at].Key
				state[k] = append(state[k], f.steps[f.at].Value.Int)
			}
			f.at++
		default:
			f.over = true
			if mode == loose {
				continue
			}
			from := f.snapshot
			if mode == serial {
				from = state.clone()
			}
			conflict := false
			for j := range f.steps {
				k := f.steps[j].Key
				if f.steps[j].Do == histories.Read {
					read(j, from)
					continue
				}
				conflict = conflict || len(f.snapshot[k]) != len(state[k]) && mode == snapshots && from[k] != nil
				from[k] = append(from[k], f.steps[j].Value.Int)
			}
			if mode == snapshots {
				conflict = false
				for _, st := range f.inv.Steps {
					if st.Do == histories.AppendTo && len(state[st.Key]) > 0 && !slices.Contains(from[st.Key], state[st.Key][len(state[st.Key])-1]) {
						conflict = true
					}
				}
			}
			if conflict && r.IntN(8) > 0 {
				f.outcome = histories.Fail
			}
			if f.outcome == histories.Fail || f.outcome == histories.Info && r.IntN(2) == 0 {
				continue
			}
			for _, st := range f.inv.Steps {
				if st.Do == histories.AppendTo {
					state[st.Key] = append(state[st.Key], st.Value.Int)
				}
			}
		}
	}
	for range max(0, r.IntN(5)-2) {
		damageTransactions(r, s.events)
	}
	return s.events
}

// damageTransactions changes one thing that a broken store, or a broken recorder, could have changed.
func damageTransactions(r *rand.Rand, events []histories.Event) {
	i := r.IntN(len(events))
	ev := &events[i]
	if ev.Type != histories.OK || r.IntN(4) == 0 {
		if i+1 < len(events) && events[i+1].Op != ev.Op && events[i+1].Process != ev.Process {
			swapEvents(events, i)
		}
		return
	}
	j := r.IntN(len(ev.Steps))
	if ev.Steps[j].Do != histories.Read {
		return
	}
	ev.Steps = slices.Clone(ev.Steps)
	list := slices.Clone(ev.Steps[j].Value.List)
	switch n := len(list); r.IntN(5) {
	case 0:
		if n > 0 {
			list = list[:n-1]
		}
	case 1:
		list = append(list, 1+r.Int64N(5))
	case 2:
		if n > 1 {
			k := r.IntN(n - 1)
			list[k], list[k+1] = list[k+1], list[k]
		}
	case 3:
		if n > 0 {
			k := r.IntN(n)
			list = slices.Delete(list, k, k+1)
		}
	case 4:
		if n > 0 {
			list[r.IntN(n)] = 1 + r.Int64N(6)
		}
	}
	ev.Steps[j].Value.List = list
}

// swapEvents lets two neighbours change places in time.
func swapEvents(events []histories.Event, i int) {
	a, b := events[i], events[i+1]
	a.Seq, b.Seq, a.Time, b.Time = b.Seq, a.Seq, b.Time, a.Time
	for _, ev := range []*histories.Event{&a, &b} {
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
	events[i], events[i+1] = b, a
}

// txnSettings are what the lists are asked for.
var txnSettings = []struct {
	name     string
	level    Level
	sessions bool
}{
	{"strict serializable", StrictSerializable, false}, {"serializable", Serializable, false}, {"serializable, sessions", Serializable, true},
	{"snapshot isolation", SnapshotIsolation, false}, {"snapshot isolation, sessions", SnapshotIsolation, true}, {"read committed", ReadCommitted, false},
}

// txnDuel tries all orders of the transactions, at each level.
var txnDuel = duel{name: "lists", n: 3000, open: 50, fight: func(t testing.TB, r *rand.Rand, s *score) error {
	events := randomTransactions(r)
	for _, q := range txnSettings {
		want := oracle(events, q.level, q.sessions)
		a, err := CheckTransactions(histories.Events(events), TransactionOptions{Level: q.level, Sessions: q.sessions, Versions: Lists})
		if err != nil {
			t.Fatalf("%v\n%s", err, showTransactions(events))
		}
		verdict := a.Claims[0].Verdict
		s.asked(q.name, want, verdict == model.Undecided)
		for _, x := range a.Claims[0].Anomalies {
			s.kinds[x.Kind]++
			if strings.Contains(x.Proof.Sentence, " comes before ") || strings.Contains(x.Proof.Sentence, "nobody read") {
				return fmt.Errorf("%s: the sentence %q does not say why:\n%s", q.name, x.Proof.Sentence, showTransactions(events))
			}
		}
		if got := verdict != model.Violated; got != want && verdict != model.Undecided {
			return fmt.Errorf("%s: the checker says %s, the oracle %v:\n%s%s", q.name, verdict, want, showTransactions(events), proofsOf(a))
		}
	}
	return nil
}}

func TestTransactionsOracle(t *testing.T) { txnDuel.test(t) }
func FuzzTransactions(f *testing.F)       { txnDuel.fuzz(f) }

func showTransactions(events []histories.Event) string {
	var b strings.Builder
	for _, ev := range events {
		fmt.Fprintf(&b, "%d op %d process %d %v", ev.Seq, ev.Op, ev.Process, ev.Type)
		for _, s := range ev.Steps {
			fmt.Fprintf(&b, " [%v %s", s.Do, s.Key)
			if s.Do == histories.AppendTo || s.Value.Form == histories.Int {
				fmt.Fprintf(&b, " %d", s.Value.Int)
			} else if ev.Type == histories.OK {
				fmt.Fprintf(&b, " %v", s.Value.List)
			}
			if s.Offset >= 0 {
				fmt.Fprintf(&b, " at %d", s.Offset)
			}
			b.WriteString("]")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func proofsOf(a *TransactionAnswer) string {
	var b strings.Builder
	for _, c := range a.Claims {
		fmt.Fprintf(&b, "%s: %s %s\n", c.ID, c.Verdict, c.Reason)
		for _, x := range c.Anomalies {
			fmt.Fprintf(&b, "  %s ×%d at %v: %s\n", x.Kind, x.Count, x.Where, x.Proof.Sentence)
			for _, op := range x.Proof.Operations {
				fmt.Fprintf(&b, "    %-4s %3d–%-3d %s\n", op.Role, op.Op, op.EndSeq, op.Text)
			}
		}
	}
	return b.String()
}
