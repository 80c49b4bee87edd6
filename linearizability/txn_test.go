package linearizability

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ackproof/histories"
	"ackproof/model"
)

// transact writes a history of transactions from lines:
//
//	A: r x [1 2], a y 3     transaction A, begun and gone through at once; at its beginning the read's answer is not known
//	begin A: r x, a y 3     its beginning
//	ok A: r x [1 2], a y 3  its end
//	abort A, unknown A      its other ends
//	drain
//
// Over logs a record that was read is "r x 5@0" and an append with its offset "a x 5@0"; "r x -@3" found nothing at offset 3. A digit after the name of a
// transaction is its process, otherwise each has its own.
func transact(t testing.TB, text string) []histories.Event {
	t.Helper()
	var s script
	open := make(map[string]histories.Event)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if line == "drain" {
			s.phase(line)
			continue
		}
		head, tail, steps := strings.Cut(line, ":")
		verb, name, ok := strings.Cut(head, " ")
		if !ok {
			verb, name = "", head
		}
		ev := histories.Event{Kind: histories.Object}
		for step := range strings.SplitSeq(tail, ",") {
			if steps {
				ev.Steps = append(ev.Steps, parseStep(t, strings.TrimSpace(step)))
			}
		}
		if verb == "begin" || verb == "" {
			inv := ev
			inv.Process = int32(name[0])
			if len(name) > 1 {
				inv.Process = int32(name[1] - '0')
			}
			inv.Steps = slices.Clone(ev.Steps)
			for i := range inv.Steps {
				inv.Steps[i].Offset = -1
				if inv.Steps[i].Do == histories.Read {
					inv.Steps[i].Value = histories.Datum{}
				}
			}
			open[name] = s.event(inv)
		}
		switch verb {
		case "begin":
			continue
		case "abort":
			ev.Type = histories.Fail
		case "unknown":
			ev.Type = histories.Info
		default:
			ev.Type = histories.OK
		}
		ev.Op, ev.Process = open[name].Op, open[name].Process
		s.event(ev)
	}
	return s.events
}

func parseStep(t testing.TB, text string) histories.Step {
	t.Helper()
	do, rest, _ := strings.Cut(text, " ")
	key, value, _ := strings.Cut(rest, " ")
	s := histories.Step{Key: key, Offset: -1}
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatalf("step %q: %v", text, err)
		}
		return n
	}
	if v, at, ok := strings.Cut(value, "@"); ok {
		value, s.Offset = v, number(at)
	}
	switch {
	case do == "a":
		s.Do, s.Value = histories.AppendTo, histories.IntDatum(number(value))
	case strings.HasPrefix(value, "["):
		s.Value.Form = histories.List
		for v := range strings.FieldsSeq(strings.Trim(value, "[]")) {
			s.Value.List = append(s.Value.List, number(v))
		}
	case value != "" && value != "-":
		s.Value = histories.IntDatum(number(value))
	}
	return s
}

var plantedTransactions = []struct {
	name    string
	options TransactionOptions
	history string
	want    map[model.Anomaly]int64 // those that break the level that was asked for
	holds   []Level                 // weaker levels that hold
}{
	{"all is well", TransactionOptions{}, `
		A: a x 1, r y []
		begin B: a x 2, r x
		C: r x [1]
		ok B: a x 2, r x [1 2]
		D: r x [1 2], r y []`, nil, nil},
	{"write cycle", TransactionOptions{}, `
		begin A: a x 1, a y 1
		begin B: a x 2, a y 2
		ok A: a x 1, a y 1
		ok B: a x 2, a y 2
		C: r x [1 2], r y [2 1]`, map[model.Anomaly]int64{model.G0: 1}, nil},
	{"writes against real time", TransactionOptions{}, `
		A: a x 1
		B: a x 2
		C: r x [2 1]`, map[model.Anomaly]int64{model.G0: 1}, []Level{Serializable, SnapshotIsolation, ReadCommitted}},
	{"aborted read", TransactionOptions{}, `
		begin A: a x 1
		B: r x [1]
		abort A`, map[model.Anomaly]int64{model.G1a: 1}, nil},
	{"intermediate read", TransactionOptions{}, `
		begin A: a x 1, a x 2
		B: r x [1]
		ok A: a x 1, a x 2
		C: r x [1 2]`, map[model.Anomaly]int64{model.G1b: 1, model.GSingle: 1}, nil},
	{"circular information", TransactionOptions{}, `
		begin A: a x 1, r y
		begin B: a y 1, r x
		ok A: a x 1, r y [1]
		ok B: a y 1, r x [1]`, map[model.Anomaly]int64{model.G1c: 1}, nil},
	{"a short circle beside a long one", TransactionOptions{}, `
		begin A: a x 1, r z
		begin B: r x, a y 1, r z
		begin C: r y, a z 1
		ok A: a x 1, r z [1]
		ok B: r x [1], a y 1, r z [1]
		ok C: r y [1], a z 1`, map[model.Anomaly]int64{model.G1c: 1}, nil},
	{"read before it was begun", TransactionOptions{}, `
		A: r x [1]
		B: a x 1`, map[model.Anomaly]int64{model.G1c: 1}, []Level{Serializable, SnapshotIsolation, ReadCommitted}},
	{"read skew", TransactionOptions{}, `
		begin A: r x, r y
		B: a x 1, a y 1
		ok A: r x [], r y [1]`, map[model.Anomaly]int64{model.GSingle: 1}, []Level{ReadCommitted}},
	{"stale read", TransactionOptions{}, `
		A: a x 1
		B: r x []
		C: r x [1]`, map[model.Anomaly]int64{model.GSingle: 1}, []Level{Serializable, SnapshotIsolation, ReadCommitted}},
	{"stale read of what nobody ever saw", TransactionOptions{}, `
		A: a x 1
		B: r x []`, map[model.Anomaly]int64{model.GSingle: 1}, []Level{Serializable, SnapshotIsolation, ReadCommitted}},
	{"stale read, with others that began and ended in between", TransactionOptions{}, `
		begin B: a y 1
		A: a x 1
		begin C: a z 1
		ok B: a y 1
		D: r x []
		ok C: a z 1`, map[model.Anomaly]int64{model.GSingle: 1}, []Level{Serializable, SnapshotIsolation, ReadCommitted}},
	{"a process goes on with an unknown outcome", TransactionOptions{Level: Serializable, Sessions: true}, `
		A1: a x 1
		begin B1: a x 2
		unknown B1
		C: r x [2 1]`, map[model.Anomaly]int64{model.G0: 1}, nil},
	{"a process forgets", TransactionOptions{Level: Serializable, Sessions: true}, `
		A1: a x 1
		B1: r x []
		C2: r x [1]`, map[model.Anomaly]int64{model.GSingle: 1}, []Level{ReadCommitted}},
	{"lost update", TransactionOptions{}, `
		begin A: r x, a x 1
		begin B: r x, a x 2
		ok A: r x [], a x 1
		ok B: r x [], a x 2
		C: r x [1 2]`, map[model.Anomaly]int64{model.LostUpdate: 1, model.GSingle: 1}, []Level{ReadCommitted}},
	{"lost update that nobody saw", TransactionOptions{Level: SnapshotIsolation}, `
		begin A: r x, a x 1
		begin B: r x, a x 2
		ok A: r x [], a x 1
		ok B: r x [], a x 2`, map[model.Anomaly]int64{model.LostUpdate: 1}, []Level{ReadCommitted}},
	{"three lost updates that nobody saw", TransactionOptions{}, `
		begin A: r x, a x 1
		begin B: r x, a x 2
		begin C: r x, a x 3
		ok A: r x [], a x 1
		ok B: r x [], a x 2
		ok C: r x [], a x 3`, map[model.Anomaly]int64{model.LostUpdate: 2, model.G2Item: 1}, []Level{ReadCommitted}},
	{"a lost update beside a plain append", TransactionOptions{}, `
		A: a x 1
		begin B: r x, a x 2
		begin C: r x, a x 3
		begin D: a x 4
		ok B: r x [1], a x 2
		ok C: r x [1], a x 3
		ok D: a x 4
		E: r x [1]`, map[model.Anomaly]int64{model.LostUpdate: 1, model.G2Item: 1}, []Level{ReadCommitted}},
	{"its own append, which nobody saw, is no cycle", TransactionOptions{}, `
		A: a x 1
		B: r x [1], a x 2
		C: a y 1`, nil, nil},
	{"long fork", TransactionOptions{}, `
		begin A: a x 1
		begin B: a y 1
		begin C: r x, r y
		begin D: r x, r y
		ok A: a x 1
		ok B: a y 1
		ok C: r x [1], r y []
		ok D: r x [], r y [1]`, map[model.Anomaly]int64{model.GNonadjacent: 1}, []Level{ReadCommitted}},
	{"write skew", TransactionOptions{}, `
		begin A: r x, a y 1
		begin B: r y, a x 1
		ok A: r x [], a y 1
		ok B: r y [], a x 1
		C: r x [1], r y [1]`, map[model.Anomaly]int64{model.G2Item: 1}, []Level{SnapshotIsolation, ReadCommitted}},
	{"not its own append", TransactionOptions{}, `
		A: a x 1, r x []
		B: r x [1]`, map[model.Anomaly]int64{model.Internal: 1}, []Level{ReadCommitted}},
	{"not what it read before", TransactionOptions{}, `
		begin A: r x, r x
		B: a x 1
		ok A: r x [], r x [1]`, map[model.Anomaly]int64{model.Internal: 1, model.GSingle: 1}, []Level{ReadCommitted}},
	{"two orders", TransactionOptions{}, `
		begin A: a x 1
		begin B: a x 2
		ok A: a x 1
		ok B: a x 2
		C: r x [1 2]
		D: r x [2 1]`, map[model.Anomaly]int64{model.IncompatibleOrder: 1}, nil},
	{"half of what another appended", TransactionOptions{}, `
		A: a x 1, a x 2
		B: r x [2]`, map[model.Anomaly]int64{model.IncompatibleOrder: 1, model.GSingle: 1}, nil},
	{"twice", TransactionOptions{}, `
		A: a x 1
		B: r x [1 1]`, map[model.Anomaly]int64{model.Duplicate: 1}, nil},
	{"from nowhere", TransactionOptions{}, `
		A: a x 1
		B: r x [1 7]`, map[model.Anomaly]int64{model.Phantom: 1}, nil},
	{"unknown, and seen", TransactionOptions{}, `
		begin A: a x 1, a y 1
		unknown A
		B: r x [1]
		C: r y []`, map[model.Anomaly]int64{model.GSingle: 1}, []Level{Serializable, SnapshotIsolation, ReadCommitted}},
	{"unknown, and not seen", TransactionOptions{}, `
		begin A: a x 1, a y 1
		unknown A
		B: r x []
		C: r y []`, nil, nil},

	{"logs: all is well", TransactionOptions{}, `
		A: a p 1@0, a q 1@0
		B: r p 1@0, a q 2@2
		begin C: a p 9
		abort C
		drain
		D: r p 1@0, r p -@2
		E: r q 1@0, r q 2@2, r q -@3`, nil, nil},
	{"logs: stretches of records", TransactionOptions{Versions: Logs}, `
		A: a p 1@0, a p 2@1
		B: r p [1 2]@0, r p []@2, r q []
		begin C: a p 3
		D: r p [2 3]@1
		abort C`, map[model.Anomaly]int64{model.G1a: 2}, nil},
	{"logs: torn", TransactionOptions{}, `
		A: a p 1@0, a q 1@0
		B: a q 2@1
		drain
		C: r p 1@0, r p -@1
		D: r q 2@1, r q -@2`, map[model.Anomaly]int64{model.TornTxn: 1}, nil},
	{"logs: torn, of unknown outcome", TransactionOptions{}, `
		begin A: a p 1, a q 1
		unknown A
		drain
		C: r p 1@0, r p -@1
		D: r q -@0`, map[model.Anomaly]int64{model.TornTxn: 1}, nil},
	{"logs: a whole transaction is lost", TransactionOptions{}, `
		A: a p 1@0, a q 1@0
		B: a p 2@1, a q 2@1
		drain
		C: r p 1@0, r p -@1
		D: r q 1@0, r q -@1`, map[model.Anomaly]int64{model.LostAcked: 1, model.GSingle: 1}, nil},
	{"logs: read and gone", TransactionOptions{Level: ReadCommitted}, `
		begin A: a p 1, a q 1
		B: r p 1@0
		unknown A
		drain
		C: r p -@1
		D: r q -@1`, map[model.Anomaly]int64{model.DirtyRead: 1}, nil},
	{"logs: aborted", TransactionOptions{}, `
		begin A: a p 1
		abort A
		B: r p 1@0, r p -@1`, map[model.Anomaly]int64{model.G1a: 2}, nil}, // under both claims
	{"logs: its own record", TransactionOptions{}, `
		A: a p 1@0, r p 1@0
		B: r p 1@0, r p -@1`, map[model.Anomaly]int64{model.PrecommittedRead: 1}, nil},
	{"logs: two records at one offset", TransactionOptions{}, `
		A: a p 1@0
		begin B: a p 2
		C: r p 1@0, r p -@1
		D: r p 2@0, r p -@1
		ok B: a p 2
		drain
		E: r p 1@0, r p -@1`, map[model.Anomaly]int64{model.InconsistentOffset: 1, model.LostAcked: 1}, nil},
	{"logs: records in between are no cycle if that is allowed", TransactionOptions{Interleaved: true}, `
		begin A: a p 1, a q 1
		begin B: a p 2, a q 2
		ok A: a p 1@0, a q 1@1
		ok B: a p 2@1, a q 2@0
		C: r p 1@0, r p 2@1, r p -@2, r q 2@0, r q 1@1, r q -@2`, nil, nil},
	{"logs: and are one if it is not", TransactionOptions{}, `
		begin A: a p 1, a q 1
		begin B: a p 2, a q 2
		ok A: a p 1@0, a q 1@1
		ok B: a p 2@1, a q 2@0
		C: r p 1@0, r p 2@1, r p -@2, r q 2@0, r q 1@1, r q -@2`, map[model.Anomaly]int64{model.G0: 1}, nil},
	{"logs: circular information", TransactionOptions{Interleaved: true, Level: ReadCommitted}, `
		begin A: a p 1, r q
		begin B: a q 1, r p
		ok A: a p 1@0, r q 1@0
		ok B: a q 1@0, r p 1@0
		C: r p 1@0, r p -@1, r q 1@0, r q -@1`, map[model.Anomaly]int64{model.G1c: 1}, nil},
	{"logs: half a transaction", TransactionOptions{AtomicReads: true}, `
		begin A: a p 1, a p 2
		begin B: r p
		ok A: a p 1@0, a p 2@1
		ok B: r p 1@0
		C: r p 1@0, r p 2@1, r p -@2`, map[model.Anomaly]int64{model.G1b: 1}, nil},
}

func TestTransactions(t *testing.T) {
	var golden strings.Builder
	for _, c := range plantedTransactions {
		events := transact(t, c.history)
		a, err := CheckTransactions(histories.Events(events), c.options)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := make(map[model.Anomaly]int64)
		fmt.Fprintf(&golden, "%s, %v\n", c.name, a.Level)
		for _, claim := range a.Claims {
			if claim.Verdict != model.Held && claim.Verdict != model.Violated {
				t.Errorf("%s: %s is %s (%s)", c.name, claim.ID, claim.Verdict, claim.Reason)
			}
			for _, x := range claim.Anomalies {
				got[x.Kind] += x.Count
				if x.Proof == nil || len(x.Proof.Operations) == 0 || x.Proof.Claim != claim.ID {
					t.Fatalf("%s: %s has the proof %+v, want operations and the claim", c.name, x.Kind, x.Proof)
				}
				if strings.HasPrefix(string(x.Kind), "G") && x.Kind != model.G1a && len(x.Proof.Operations) < 2 {
					t.Errorf("%s: a circle of one transaction: %s", c.name, x.Proof.Sentence)
				}
				for _, op := range x.Proof.Operations {
					if !strings.Contains(x.Proof.Sentence, op.Role) {
						t.Errorf("%s: %s plays no part in %q", c.name, op.Role, x.Proof.Sentence)
					}
				}
				fmt.Fprintf(&golden, "  %s: %s at %v: %s\n", claim.ID, x.Kind, x.Where, x.Proof.Sentence)
				for _, op := range x.Proof.Operations {
					fmt.Fprintf(&golden, "    %-4s %3d–%-3d %s\n", op.Role, op.Op, op.EndSeq, op.Text)
				}
			}
		}
		want := c.want
		if want == nil {
			want = map[model.Anomaly]int64{}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: anomalies (want −, got +):\n%s%s", c.name, d, proofsOf(a))
		}
		for level := c.options.Level + 1; level <= ReadCommitted && len(want) > 0 && !a.logs(); level++ {
			o := c.options
			o.Level = level
			weaker, err := CheckTransactions(histories.Events(events), o)
			if err != nil {
				t.Fatal(err)
			}
			if held := weaker.Verdict() == model.Held; held != slices.Contains(c.holds, level) {
				t.Errorf("%s: at %v the verdict is %s\n%s", c.name, level, weaker.Verdict(), proofsOf(weaker))
			}
		}
	}
	file := filepath.Join("testdata", "transactions.golden")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, []byte(golden.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), golden.String()); d != "" {
		t.Errorf("certificates differ from %s (UPDATE_GOLDEN=1 rewrites it):\n%s", file, d)
	}
}

func (a *TransactionAnswer) logs() bool { return a.Versions == Logs }

func TestTransactionsUndecided(t *testing.T) {
	for name, c := range map[string]struct {
		history string
		options TransactionOptions
		verdict model.Verdict
		reason  string
	}{
		"nothing":               {"", TransactionOptions{}, model.NotTested, "transactions 0 of at least 1"},
		"no read":               {"A: a x 1", TransactionOptions{}, model.NotTested, "reads 0 of at least 1"},
		"a value twice":         {"A: a x 1\nB: a x 1\nC: r x [1]", TransactionOptions{}, model.Undecided, `value 1 is appended to "x" twice, by the operations 1 and 3`},
		"tail not read":         {"A: a p 1@0, a q 1@0\nB: r p 1@0, r p -@1", TransactionOptions{}, model.Undecided, "1 records of 1 transactions were neither found nor ruled out"},
		"atomicity of lists":    {"A: a x 1\nB: r x [1]", TransactionOptions{Claims: []model.Claim{model.Atomicity}}, model.Undecided, "atomicity is decided over logs"},
		"a claim of others":     {"A: a x 1\nB: r x [1]", TransactionOptions{Claims: []model.Claim{model.Order}}, model.Undecided, "does not decide the claim"},
		"hidden order under SI": {hiddenOrder, TransactionOptions{Level: SnapshotIsolation}, model.Undecided, `several committed appends to "z" were read by nobody`},
	} {
		a, err := CheckTransactions(histories.Events(transact(t, c.history)), c.options)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := a.Claims[len(a.Claims)-1]
		if got.Verdict != c.verdict || !strings.Contains(got.Reason, c.reason) {
			t.Errorf("%s: %s (%s), want %s (%s)", name, got.Verdict, got.Reason, c.verdict, c.reason)
		}
	}
}

// hiddenOrder is write skew between two transactions that both append to z, which nobody reads: under snapshot isolation the later one would have seen the other.
const hiddenOrder = `
	begin A: r x, a y 1, a z 1
	begin B: r y, a x 1, a z 2
	ok A: r x [], a y 1, a z 1
	ok B: r y [], a x 1, a z 2
	C: r x [1], r y [1]`

func TestTransactionsMalformed(t *testing.T) {
	for name, c := range map[string]struct {
		history string
		options TransactionOptions
		want    string
	}{
		"logs among lists":     {"A: r x [1]\nB: r x 1@0", TransactionOptions{}, "lists were read before"},
		"lists among logs":     {"A: r x 1@0\nB: r x [1]", TransactionOptions{}, "without an offset"},
		"lists asked for":      {"A: r x 1@0", TransactionOptions{Versions: Lists}, "with a single record, expected a list"},
		"logs asked for":       {"A: r x [1]", TransactionOptions{Versions: Logs}, "without an offset"},
		"no offset":            {"A: r x 1", TransactionOptions{}, "without an offset"},
		"other append":         {"begin A: a x 1\nok A: a x 2", TransactionOptions{}, `appends 2 to "x", expected the appends of its invocation`},
		"append to other":      {"begin A: a x 1\nok A: a y 1", TransactionOptions{}, `appends 1 to "y", expected the appends of its invocation`},
		"append that vanished": {"begin A: a x 1, r x\nok A: r x []", TransactionOptions{}, `without the append of 1 to "x"`},
	} {
		_, err := CheckTransactions(histories.Events(transact(t, c.history)), c.options)
		if !errors.Is(err, histories.ErrMalformed) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want a malformed history: %s", name, err, c.want)
		}
	}
	if _, err := CheckTransactions(histories.Events(nil), TransactionOptions{Level: 9}); err == nil {
		t.Error("level 9 was accepted")
	}
}

func TestParseLevel(t *testing.T) {
	for l := StrictSerializable; l <= ReadCommitted; l++ {
		if got, err := ParseLevel(l.String()); err != nil || got != l {
			t.Errorf("level %v reads back as %v, %v", l, got, err)
		}
	}
	if _, err := ParseLevel("chaos"); err == nil || !strings.Contains(err.Error(), "serializable") {
		t.Errorf("level chaos: %v, want the names there are", err)
	}
}

// TestTransactionsSimpleCycle: of two loops at a transaction the one is kept in which write-after-reads keep apart.
func TestTransactionsSimpleCycle(t *testing.T) {
	for name, c := range map[string]struct{ walk, want cycle }{
		"the outer loop": {cycle{[]int32{0, 1, 2, 3, 1}, []dependency{writeRead, readWrite, writeRead, readWrite, writeWrite}}, cycle{[]int32{0, 1}, []dependency{writeRead, writeWrite}}},
		"the inner loop": {cycle{[]int32{0, 1, 2, 1}, []dependency{readWrite, writeRead, writeWrite, readWrite}}, cycle{[]int32{1, 2}, []dependency{writeRead, writeWrite}}},
		"no loop":        {cycle{[]int32{0, 1}, []dependency{writeRead, readWrite}}, cycle{[]int32{0, 1}, []dependency{writeRead, readWrite}}},
	} {
		if got := c.walk.simple(); !slices.Equal(got.txns, c.want.txns) || !slices.Equal(got.kinds, c.want.kinds) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestComponentsAreApart: each component has a cycle of its own.
func TestComponentsAreApart(t *testing.T) {
	events := transact(t, `
		A: a x 1, r y [1]
		B: a y 1, r x [1]
		C: a z 1, r w [1]
		D: a w 1, r z [1]
	`)
	a, err := CheckTransactions(histories.Events(events), TransactionOptions{Level: Serializable, Versions: Lists})
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Claims[0].Anomalies; len(got) != 1 || got[0].Kind != model.G1c || got[0].Count != 2 {
		t.Errorf("%+v, want %s twice", got, model.G1c)
	}
}

// TestSkewHidesNothing: a shorter cycle that snapshot isolation allows, through appends that nobody saw, does not hide one that it forbids.
func TestSkewHidesNothing(t *testing.T) {
	events := transact(t, `
		begin A: r x, r u, r w, a y 1
		begin B: r y, a x 1
		begin C: a u 1, a v 1
		begin D: r v, r u, a w 1
		ok C: a u 1, a v 1
		ok D: r v [1], r u [1], a w 1
		ok A: r x [], r u [], r w [1], a y 1
		ok B: r y [], a x 1
	`)
	a, err := CheckTransactions(histories.Events(events), TransactionOptions{Level: SnapshotIsolation, Versions: Lists})
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Claims[0].Anomalies; len(got) != 1 || got[0].Kind != model.GSingle {
		t.Errorf("%s with %+v, want one %s", a.Claims[0].Verdict, got, model.GSingle)
	}
}
