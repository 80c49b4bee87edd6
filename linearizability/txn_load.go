package linearizability

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"ackproof/histories"
	"ackproof/model"
)

// transaction is one transaction, packed. Its number is its place in transactions.all, which is the order of invocation.
type transaction struct {
	inv, end     instant // end 0: no completion
	first, steps int32   // in transactions.steps
	before       int32   // the last transaction of the same process that went through before this one began, −1 none
	process      int32
	outcome      histories.Type
	committed    bool // it went through, or its outcome is unknown and somebody read of it; known after place
}

// txnStep is one step of a transaction.
type txnStep struct {
	value int64 // of an append and a find
	// at is the place: of an append and a find the index of the version, −1 unknown; of a read the number of versions that were seen. While a
	// history of logs is being loaded it is the offset.
	at    int64
	key   int32
	txn   int32
	does  txnDoes
	again bool // of an append: the transaction appends to the same object later
}

type txnDoes uint8

const (
	appends txnDoes = iota // puts value at the end
	asks                   // a read whose answer is not known
	reads                  // of a whole list
	differs                // a read of a list that disagrees with an earlier one
	finds                  // of one record of a log
	nothing                // a read that found nothing: an empty list, or nothing at an offset
)

// txnObject is one object: a list or a log.
type txnObject struct {
	name string
	// order are the versions, as far as anybody saw them: the longest list that was read, or the records by offset.
	order   []int64
	offsets []int64    // of a log, of each version
	grown   []txnGrown // of a list: which reads made the order as long as it is
	base    int32      // of its versions in the arrays of transactions
	appends []int32    // steps that append to it, in the order of invocation

	// While transactions are walked through: the state of the one at hand.
	last     int32 // the last append step
	txn      int32
	seen     int64 // versions that its last read saw, −1 none yet
	own      int64 // appends since then
	ownFirst int64 // where the first of them stands, −1 nowhere
	straight bool  // and the others follow it
	odd      bool  // something about them was already found
	wrote    bool  // it has appended
	ownLast  int64 // where its latest append stands, −1 nowhere
}

type txnGrown struct {
	to   int64
	step int32
}

// transactions is a whole history in memory: 28 bytes a transaction, 3 an event, 32 a step, 24 a version, and the graph.
type transactions struct {
	options TransactionOptions
	all     []transaction
	steps   []txnStep
	objects []txnObject
	byName  map[string]int32
	moments moments
	ended   []int32           // transactions that went through, in the order in which they did
	odd     map[int32][]int64 // lists of reads that differ, by step
	writer  []int32           // of each version the transaction that counts for it, −1: aborted or nobody
	wrote   []int32           // of each version the append step, −1 nobody
	logs    bool              // lists otherwise
	lists   bool              // lists were read
	drain   instant           // final reads were invoked after it
	counts  model.Operations

	found                            map[model.Anomaly]*txnFinding
	committed, reads, versions       int64
	dependencies, readBack           int64
	unread, unreadTxns               int64
	firstUnread, repeated, unordered string
	hidden                           *txnObject // one with several committed appends that nobody saw
}

func loadTransactions(events iter.Seq2[histories.Event, error], o TransactionOptions) (*transactions, error) {
	t := &transactions{options: o, logs: o.Versions == Logs, byName: make(map[string]int32), odd: make(map[int32][]int64), found: make(map[model.Anomaly]*txnFinding)}
	join := histories.NewJoiner()
	var last table[int32] // by process
	for ev, err := range events {
		if err != nil {
			return nil, err
		}
		i, err := join.Join(&ev)
		if err != nil {
			return nil, err
		}
		if t.moments.n == endless-1 {
			return nil, tooMany(&ev, int64(endless-1), "events")
		}
		now := t.moments.add(ev.Seq, ev.Time)
		if ev.Kind != histories.Object {
			if ev.Kind == histories.Phase && ev.Note == "drain" {
				t.drain = now
			}
			continue
		}
		if err := t.validate(&ev); err != nil {
			return nil, err
		}
		if t.logs && ev.Type == histories.OK {
			ev.Steps = singleRecords(ev.Steps)
		}
		if ev.Type == histories.Invoke {
			if len(t.steps) > math.MaxInt32-len(ev.Steps) {
				return nil, fmt.Errorf("%w: more than %d steps", histories.ErrMalformed, math.MaxInt32)
			}
			if len(t.all) == maxTransactions {
				return nil, fmt.Errorf("%w: more than %d transactions", histories.ErrMalformed, maxTransactions)
			}
			n := int32(len(t.all))
			join.Rename(int(n))
			x := transaction{inv: now, process: ev.Process, before: none, outcome: histories.Invoke}
			if before := last.find(ev.Process); before != nil {
				x.before = *before
			}
			t.all = push(t.all, x)
			t.ask(n, ev.Steps)
			continue
		}
		n := int32(i)
		if len(t.steps) > math.MaxInt32-len(ev.Steps) {
			return nil, fmt.Errorf("%w: more than %d steps", histories.ErrMalformed, math.MaxInt32)
		}
		if err := t.complete(n, &ev, now); err != nil {
			return nil, err
		}
		if ev.Type == histories.OK {
			if before := last.find(ev.Process); before != nil {
				*before = n
			} else {
				last.add(ev.Process, &n)
			}
		}
	}
	t.moments.close()
	for i := range t.all {
		if t.all[i].outcome == histories.Invoke {
			t.counts.Info++
		}
	}
	return t, nil
}

// op is the sequence number of a transaction's invocation, which names it; stamp is the time of an event, for people.
func (t *transactions) op(n int32) uint64       { return t.moments.at(t.all[n].inv).seq }
func (t *transactions) stamp(at instant) string { return stamp(t.moments.at(at).time) }

// Bounds of what is accepted: offsets of which sums with a length are numbers still, and as many transactions and versions as the graph has room for.
const (
	maxOffset       = 1 << 61
	maxTransactions = 1 << 27
)

// validate refuses what is no transaction over lists or logs, and finds out which of the two they are if nobody said so.
func (t *transactions) validate(ev *histories.Event) error {
	bad := func(format string, args ...any) error {
		return &histories.EventError{Seq: ev.Seq, What: fmt.Sprintf(format, args...)}
	}
	for j := range ev.Steps {
		s := &ev.Steps[j]
		form := s.Value.Form
		switch {
		case s.Do != histories.Read && s.Do != histories.AppendTo:
			return bad("a transaction with the step %v, expected reads and appends", s.Do)
		case s.Do == histories.AppendTo && form != histories.Int:
			return bad("an append to %q of something else than a number, expected a number", s.Key)
		case form == histories.Text:
			return bad("a read of %q with a text, expected a list, a number or nothing", s.Key)
		case s.Offset > maxOffset:
			return bad("offset %d of %q, expected at most %d", s.Offset, s.Key, int64(maxOffset))
		case ev.Type != histories.OK:
			continue
		case s.Do == histories.Read && form == histories.Int && s.Offset < 0,
			s.Do == histories.Read && form == histories.List && len(s.Value.List) > 0 && s.Offset < 0 && t.logs:
			return bad("records of log %q without an offset, expected one", s.Key)
		}
		if t.options.Versions == AnyVersions {
			switch {
			case s.Do == histories.Read && form == histories.Int || s.Offset > 0:
				t.logs = true
			case s.Do == histories.Read && form == histories.List && !t.logs:
				t.lists = true
			}
			if t.lists && t.logs {
				return bad("%q has an offset or a single record, like a log, but lists were read before; expected one of the two throughout, or to be told which", s.Key)
			}
		} else if form == histories.Int && s.Do == histories.Read && !t.logs {
			return bad("a read of %q with a single record, expected a list", s.Key)
		}
	}
	return nil
}

// singleRecords turns stretches of records that reads of logs found into one step for each record.
func singleRecords(steps []histories.Step) []histories.Step {
	if !slices.ContainsFunc(steps, func(s histories.Step) bool { return s.Value.Form == histories.List }) {
		return steps
	}
	var out []histories.Step
	for _, s := range steps {
		list := s.Value.List
		if s.Value.Form == histories.List {
			s.Value = histories.Datum{}
		}
		if len(list) == 0 {
			out = append(out, s)
			continue
		}
		for i, v := range list {
			out = append(out, histories.Step{Key: s.Key, Value: histories.IntDatum(v), Offset: s.Offset + int64(i)})
		}
	}
	return out
}

func (t *transactions) object(name string) int32 {
	k, ok := t.byName[name]
	if !ok {
		k = int32(len(t.objects))
		t.byName[name] = k
		t.objects = append(t.objects, txnObject{name: name, last: none, txn: none})
	}
	return k
}

// ask notes what a transaction asks for: its appends, whatever becomes of it, and places for its reads.
func (t *transactions) ask(n int32, steps []histories.Step) {
	x := &t.all[n]
	x.first, x.steps = int32(len(t.steps)), int32(len(steps))
	for j := range steps {
		s := &steps[j]
		i, k := int32(len(t.steps)), t.object(s.Key)
		step := txnStep{key: k, txn: n, at: -1, does: asks}
		if s.Do == histories.AppendTo {
			step.does, step.value = appends, s.Value.Int
			if last := t.objects[k].last; last >= x.first && t.steps[last].txn == n {
				t.steps[last].again = true
			}
			t.objects[k].last = i
		}
		t.steps = push(t.steps, step)
	}
}

// complete notes the end of transaction n. Only one that went through says what it read.
func (t *transactions) complete(n int32, ev *histories.Event, now instant) error {
	x := &t.all[n]
	x.end, x.outcome = now, ev.Type
	switch ev.Type {
	case histories.Fail:
		t.counts.Fail++
		return nil
	case histories.Info:
		t.counts.Info++
		return nil
	}
	t.counts.OK++
	t.ended = push(t.ended, n)
	asked := t.steps[x.first : x.first+x.steps]
	same, j := len(asked) == len(ev.Steps), 0
	for i := range ev.Steps {
		s := &ev.Steps[i]
		if s.Do != histories.AppendTo {
			same = same && asked[i].does == asks
			continue
		}
		for j < len(asked) && asked[j].does != appends {
			j++
		}
		if j == len(asked) || asked[j].value != s.Value.Int || t.objects[asked[j].key].name != s.Key {
			return &histories.EventError{Seq: ev.Seq, What: fmt.Sprintf("appends %d to %q, expected the appends of its invocation in their order", s.Value.Int, s.Key)}
		}
		same = same && i == j
		j++
	}
	for ; j < len(asked); j++ {
		if asked[j].does == appends {
			return &histories.EventError{Seq: ev.Seq, What: fmt.Sprintf("is without the append of %d to %q, expected the appends of its invocation in their order", asked[j].value, t.objects[asked[j].key].name)}
		}
	}
	if !same { // a poll that found several records: the steps get a new place
		for i := range asked {
			asked[i].does = asks
		}
		t.ask(n, ev.Steps)
	}
	for i := range ev.Steps {
		t.see(x.first+int32(i), &ev.Steps[i])
	}
	if t.versions > math.MaxInt32 {
		return fmt.Errorf("%w: lists of more than %d elements together", histories.ErrMalformed, math.MaxInt32)
	}
	return nil
}

// see notes the answer to step i.
func (t *transactions) see(i int32, s *histories.Step) {
	step := &t.steps[i]
	if s.Do == histories.AppendTo {
		step.at = s.Offset
		return
	}
	if t.objects[step.key].name != s.Key {
		step.key = t.object(s.Key)
	}
	x := &t.objects[step.key]
	switch s.Value.Form {
	case histories.List:
		list := s.Value.List
		step.does, step.at = reads, int64(len(list))
		common := min(len(x.order), len(list))
		switch {
		case !slices.Equal(x.order[:common], list[:common]):
			step.does = differs
			t.odd[i] = slices.Clone(list)
		case len(list) > common:
			t.versions += int64(len(list) - common)
			x.order = append(x.order, list[common:]...)
			x.grown = append(x.grown, txnGrown{step.at, i})
		}
	case histories.Int:
		step.does, step.value, step.at = finds, s.Value.Int, s.Offset
	default:
		step.does, step.at = nothing, s.Offset
	}
}
