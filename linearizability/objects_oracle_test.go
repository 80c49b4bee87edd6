package linearizability

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"

	"ackproof/histories"
	"ackproof/model"
)

// toy is a real object, small enough for exhaustive search: it makes random histories and is what the oracle steps through. Its state is a string.
type toy struct {
	name  string // of the model
	label string
	// ask draws an operation; serial rises with every one.
	ask func(r *rand.Rand, serial int64) []histories.Step
	// do answers an operation and gives the next state; false: it cannot happen.
	do func(state string, steps []histories.Step) (string, []histories.Step, bool)
}

func one(do histories.Do, key string, v histories.Datum) []histories.Step {
	return []histories.Step{{Do: do, Key: key, Value: v}}
}

func textDatum(s string) histories.Datum { return histories.Datum{Form: histories.Text, Text: s} }

// cellsOf and joinCells read and write a state of several cells: "x=1;y=2;".
func cellsOf(state string) map[string]string {
	m := make(map[string]string)
	for part := range strings.SplitSeq(state, ";") {
		if k, v, ok := strings.Cut(part, "="); ok {
			m[k] = v
		}
	}
	return m
}

func joinCells(m map[string]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "%s=%s;", k, m[k])
	}
	return b.String()
}

// code and decode keep a Datum in a state.
func code(d histories.Datum) string {
	switch d.Form {
	case histories.Int:
		return fmt.Sprintf("i%d", d.Int)
	case histories.Text:
		return "t" + d.Text
	}
	return ""
}

func decode(s string) histories.Datum {
	switch {
	case strings.HasPrefix(s, "i"):
		n, err := strconv.ParseInt(s[1:], 10, 64)
		if err != nil {
			panic(err)
		}
		return histories.IntDatum(n)
	case strings.HasPrefix(s, "t"):
		return textDatum(s[1:])
	}
	return histories.Datum{}
}

// doCells is a store of cells with every verb that one may have.
func doCells(state string, steps []histories.Step) (string, []histories.Step, bool) {
	cells := cellsOf(state)
	out := slices.Clone(steps)
	for i, s := range steps {
		now := cells[s.Key]
		switch s.Do {
		case histories.Read:
			out[i].Value = decode(now)
		case histories.Write:
			cells[s.Key] = code(s.Value)
		case histories.CompareAndSet:
			if now != code(s.Old) {
				return state, nil, false
			}
			cells[s.Key] = code(s.Value)
		case histories.AppendTo:
			cells[s.Key] = "t" + strings.TrimPrefix(now, "t") + s.Value.Text
		case histories.Acquire:
			if now != "" {
				return state, nil, false
			}
			cells[s.Key] = "held"
		case histories.Release:
			if now != "held" {
				return state, nil, false
			}
			delete(cells, s.Key)
		}
		if cells[s.Key] == "" {
			delete(cells, s.Key)
		}
	}
	return joinCells(cells), out, true
}

// doStream is a stream; its state is the records, then the token.
func doStream(state string, steps []histories.Step) (string, []histories.Step, bool) {
	records, token, fenced := strings.Cut(state, "|")
	tail := int64(strings.Count(records, ","))
	out := slices.Clone(steps)
	last := &out[len(out)-1]
	for _, s := range steps[:len(steps)-1] {
		switch s.Do {
		case histories.ExpectTail:
			if s.Number != tail {
				return state, nil, false
			}
		case histories.ExpectToken:
			if !fenced || s.Value.Text != token {
				return state, nil, false
			}
		}
	}
	switch last.Do {
	case histories.Read:
		var hash uint64
		for r := range strings.SplitSeq(records, ",") {
			if n, err := strconv.ParseUint(r, 10, 64); err == nil {
				hash = model.StreamHash(hash, n)
			}
		}
		last.Value, last.Offset = histories.IntDatum(int64(hash)), tail
	case histories.CheckTail:
		last.Offset = tail
	case histories.AppendTo:
		for _, r := range last.Value.List {
			records += fmt.Sprintf("%d,", r)
			tail++
		}
		last.Offset = tail
		for _, s := range steps {
			if s.Do == histories.SetToken {
				fenced, token = true, s.Value.Text
			}
		}
		state = records
		if fenced {
			state += "|" + token
		}
	}
	return state, out, true
}

var toys = []toy{
	{"register", "register, every value once", func(r *rand.Rand, serial int64) []histories.Step {
		if r.IntN(5) < 2 {
			return one(histories.Write, "", histories.IntDatum(serial))
		}
		return one(histories.Read, "", histories.Datum{})
	}, doCells},
	{"register", "register, values again", func(r *rand.Rand, _ int64) []histories.Step {
		if r.IntN(2) == 0 {
			return one(histories.Write, "", histories.IntDatum(r.Int64N(3)))
		}
		return one(histories.Read, "", histories.Datum{})
	}, doCells},
	{"register", "two registers", func(r *rand.Rand, serial int64) []histories.Step {
		key := string("xy"[r.IntN(2)])
		if r.IntN(2) == 0 {
			return one(histories.Write, key, histories.IntDatum(serial))
		}
		return one(histories.Read, key, histories.Datum{})
	}, doCells},
	{"cas-register", "cas-register", func(r *rand.Rand, _ int64) []histories.Step {
		switch r.IntN(4) {
		case 0:
			return one(histories.Write, "", histories.IntDatum(r.Int64N(3)))
		case 1:
			return one(histories.Read, "", histories.Datum{})
		}
		s := one(histories.CompareAndSet, "", histories.IntDatum(r.Int64N(3)))
		if s[0].Old = histories.IntDatum(r.Int64N(3)); r.IntN(4) == 0 {
			s[0].Old = histories.Datum{}
		}
		return s
	}, doCells},
	{"multi-register", "multi-register", func(r *rand.Rand, _ int64) []histories.Step {
		var s []histories.Step
		for _, key := range []string{"x", "y", "z"} {
			switch r.IntN(4) {
			case 0:
				s = append(s, one(histories.Write, key, histories.IntDatum(r.Int64N(2)))...)
			case 1, 2:
				s = append(s, one(histories.Read, key, histories.Datum{})...)
			}
		}
		if s == nil {
			s = one(histories.Read, "x", histories.Datum{})
		}
		return s
	}, doCells},
	{"mutex", "mutex", func(r *rand.Rand, _ int64) []histories.Step {
		return one(histories.Acquire+histories.Do(r.IntN(2)), "", histories.Datum{})
	}, doCells},
	{"kv", "key-value store", func(r *rand.Rand, serial int64) []histories.Step {
		switch r.IntN(5) {
		case 0:
			return one(histories.Write, "k", textDatum(string("ab"[r.IntN(2)])))
		case 1, 2:
			return one(histories.AppendTo, "k", textDatum(string("abc"[r.IntN(3)])))
		}
		return one(histories.Read, "k", histories.Datum{})
	}, doCells},
	{"stream", "stream", func(r *rand.Rand, serial int64) []histories.Step {
		switch r.IntN(6) {
		case 0:
			return one(histories.Read, "", histories.Datum{})
		case 1:
			return one(histories.CheckTail, "", histories.Datum{})
		}
		var s []histories.Step
		if r.IntN(3) == 0 {
			s = append(s, histories.Step{Do: histories.ExpectTail, Number: r.Int64N(4)})
		}
		if r.IntN(4) == 0 {
			s = append(s, histories.Step{Do: histories.ExpectToken, Value: textDatum(string("pq"[r.IntN(2)]))})
		}
		if r.IntN(3) == 0 {
			s = append(s, histories.Step{Do: histories.SetToken, Value: textDatum(string("pq"[r.IntN(2)]))})
		}
		list := histories.Datum{Form: histories.List, List: []int64{serial*2 + 1}}
		if r.IntN(3) == 0 {
			list.List = append(list.List, serial*2+2)
		}
		return append(s, histories.Step{Do: histories.AppendTo, Value: list})
	}, doStream},
}

// random runs the toy under a random schedule of a few operations, and then damages what was recorded, or not.
func (y *toy) random(r *rand.Rand) []histories.Event {
	type flying struct {
		inv     histories.Event
		applied bool
		end     histories.Event
	}
	var (
		s      script
		state  string
		open   []*flying
		serial int64
	)
	budget := 4 + r.IntN(7)
	for budget > 0 || len(open) > 0 {
		if budget > 0 && (len(open) == 0 || r.IntN(3) == 0) {
			budget--
			serial++
			ev := s.event(histories.Event{Kind: histories.Object, Process: int32(serial), Steps: y.ask(r, serial)})
			open = append(open, &flying{inv: ev})
			continue
		}
		i := r.IntN(len(open))
		f := open[i]
		if !f.applied {
			f.applied = true
			f.end = histories.Event{Type: histories.OK, Kind: histories.Object, Op: f.inv.Op, Process: f.inv.Process}
			next, answer, ok := y.do(state, f.inv.Steps)
			luck := r.IntN(8)
			switch {
			case !ok || luck == 0:
				f.end.Type = histories.Fail
			case luck == 1: // unknown, and it did not happen
				f.end.Type = histories.Info
			case luck == 2: // unknown, and it did
				f.end.Type = histories.Info
				state = next
			default:
				state, f.end.Steps = next, answer
			}
			if !ok && r.IntN(2) == 0 {
				f.end.Type = histories.Info
			}
			continue
		}
		open = slices.Delete(open, i, i+1)
		if r.IntN(12) > 0 { // else the client died
			s.event(f.end)
		}
	}
	for range r.IntN(5) {
		if r.IntN(3) == 0 {
			damage(r, s.events, 0) // in time
			continue
		}
		ev := &s.events[r.IntN(len(s.events))]
		for range 8 { // an answer, more likely than not
			if ev.Type != histories.Invoke && ev.Type != histories.Info {
				break
			}
			ev = &s.events[r.IntN(len(s.events))]
		}
		if ev.Type == histories.Fail { // it did not happen, and is said to have
			if i := slices.IndexFunc(s.events, func(inv histories.Event) bool { return inv.Seq == ev.Op }); s.events[i].Steps[0].Do != histories.Read {
				ev.Type, ev.Steps = histories.OK, slices.Clone(s.events[i].Steps)
			}
			continue
		}
		if ev.Type != histories.OK {
			continue
		}
		other := &s.events[r.IntN(len(s.events))]
		step := &ev.Steps[r.IntN(len(ev.Steps))]
		switch {
		case step.Do == histories.CheckTail || step.Value.Form == histories.List:
			step.Offset = max(0, step.Offset+r.Int64N(3)-1)
		case step.Do == histories.Read && len(other.Steps) > 0: // an answer of another moment
			if from := other.Steps[len(other.Steps)-1]; from.Value.Form != histories.List && (y.name != "stream" || from.Value.Form == histories.Int) {
				step.Value, step.Offset = from.Value, from.Offset
			}
		}
	}
	return s.events
}

// attempt is an operation for the exhaustive search. Free: it may happen at any time, or not at all, whatever its answer.
type attempt struct {
	steps    []histories.Step
	inv, ret uint64
	optional bool
}

// attempts reads a history. firm, if not nil, are the operations of a certificate: of all others only what they asked is taken as known.
func attempts(events []histories.Event, firm map[uint64]string) []attempt {
	ends := make(map[uint64]histories.Event)
	for _, ev := range events {
		if ev.Type != histories.Invoke {
			ends[ev.Op] = ev
		}
	}
	var out []attempt
	over := uint64(math.MaxUint64) // what began when all of the certificate was over plays no part
	if firm != nil {
		over = 0
		for op, role := range firm {
			if role != "began" {
				over = max(over, ends[op].Seq)
			}
		}
	}
	for _, ev := range events {
		end, ended := ends[ev.Op]
		role, known := firm[ev.Op]
		if ev.Seq > over && !known {
			continue
		}
		if ev.Type != histories.Invoke || ended && end.Type == histories.Fail {
			continue
		}
		a := attempt{steps: ev.Steps, inv: ev.Seq, ret: math.MaxUint64, optional: true}
		switch {
		case firm != nil && !known:
			a.inv = 0
		case role == "began":
		case ended && end.Type == histories.OK:
			a.steps, a.ret, a.optional = end.Steps, end.Seq, false
		}
		if a.optional {
			a.steps = slices.DeleteFunc(slices.Clone(a.steps), func(s histories.Step) bool { return s.Do == histories.Read || s.Do == histories.CheckTail })
		}
		if len(a.steps) > 0 {
			out = append(out, a)
		}
	}
	return out
}

// explains searches all orders of the attempts, depth first, over (attempts placed, state).
func (y *toy) explains(ops []attempt) bool {
	type point struct {
		placed uint32
		state  string
	}
	been := make(map[point]bool)
	var from func(p point) bool
	from = func(p point) bool {
		if been[p] {
			return false
		}
		been[p] = true
		first, done := uint64(math.MaxUint64), true
		for i, o := range ops {
			if p.placed&(1<<i) == 0 && !o.optional {
				first, done = min(first, o.ret), false
			}
		}
		if done {
			return true
		}
		for i, o := range ops {
			if p.placed&(1<<i) != 0 || o.inv > first {
				continue
			}
			next, answer, ok := y.do(p.state, o.steps)
			if !ok || !o.optional && !sameAnswer(answer, o.steps) {
				continue
			}
			if from(point{p.placed | 1<<i, next}) {
				return true
			}
		}
		return false
	}
	return from(point{})
}

func sameAnswer(a, b []histories.Step) bool {
	return slices.EqualFunc(a, b, func(a, b histories.Step) bool {
		return code(a.Value) == code(b.Value) && a.Offset == b.Offset && slices.Equal(a.Value.List, b.Value.List)
	})
}

// duel compares CheckObjects with an exhaustive search, and now and then with porcupine; and has the search confirm that each certificate is a proof: with
// nothing known of the other operations but what they asked, there still is no order.
func (y *toy) duel() *duel {
	return &duel{name: y.label, n: 1500, fight: func(t testing.TB, r *rand.Rand, s *score) error {
		events := y.random(r)
		a, err := CheckObjects(histories.Events(events), y.name, ObjectOptions{})
		if err != nil {
			t.Fatalf("%v\n%s", err, showObjects(events))
		}
		result := a.Claims[0]
		s.notes["decided without search"] += int(min(result.Evidence["exact"], 1))
		want := y.explains(attempts(events, nil))
		s.asked("", want, false)
		if got := result.Verdict != model.Violated; got != want || result.Verdict == model.Undecided {
			return fmt.Errorf("the verdict is %s (%s), the oracle says %v:\n%s%s", result.Verdict, result.Reason, want, showObjects(events), objectProofs(a))
		}
		if r.IntN(4) == 0 {
			if got := porcupineAgrees(t, y.name, events); got != want {
				return fmt.Errorf("porcupine says %v, the oracle %v:\n%s", got, want, showObjects(events))
			}
		}
		if want {
			return nil
		}
		firm := make(map[uint64]string)
		for _, op := range result.Anomalies[0].Proof.Operations {
			firm[op.Op] = op.Role
		}
		s.notes["operations of certificates"] += len(firm)
		if y.explains(attempts(events, firm)) {
			return fmt.Errorf("the certificate proves nothing:\n%s%s", showObjects(events), objectProofs(a))
		}
		return nil
	}}
}

func TestObjectsOracle(t *testing.T) {
	for i := range toys {
		t.Run(toys[i].label, toys[i].duel().test)
	}
}

func FuzzRegister(f *testing.F)      { toys[0].duel().fuzz(f) }
func FuzzRegisterAgain(f *testing.F) { toys[1].duel().fuzz(f) }
func FuzzRegisters(f *testing.F)     { toys[2].duel().fuzz(f) }
func FuzzCAS(f *testing.F)           { toys[3].duel().fuzz(f) }
func FuzzMultiRegister(f *testing.F) { toys[4].duel().fuzz(f) }
func FuzzMutex(f *testing.F)         { toys[5].duel().fuzz(f) }
func FuzzKeyValue(f *testing.F)      { toys[6].duel().fuzz(f) }
func FuzzStream(f *testing.F)        { toys[7].duel().fuzz(f) }

// porcupineAgrees asks porcupine alone, with the models of package model.
func porcupineAgrees(t testing.TB, name string, events []histories.Event) bool {
	h, err := loadObjects(histories.Events(events))
	if err != nil {
		t.Fatal(err)
	}
	all := make([]int32, len(h.ops))
	for i := range all {
		all[i] = int32(i)
	}
	var components []*component
	if name == "stream" {
		components, err = h.streamComponents()
	} else {
		like := component{model: model.Cells(model.Value{}), unseen: unseenCells}
		if name == "kv" {
			like = component{text: true, model: model.Cells(model.Value{Form: model.TextValue}), unseen: unseenCells}
		}
		components, err = h.components(all, like)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range components {
		if !porcupine.CheckOperations(c.model, operations(c.items)) {
			return false
		}
	}
	return true
}

func showObjects(events []histories.Event) string {
	var b strings.Builder
	for _, ev := range events {
		fmt.Fprintf(&b, "%3d op %d process %d %v", ev.Seq, ev.Op, ev.Process, ev.Type)
		for _, s := range ev.Steps {
			fmt.Fprintf(&b, " [%v %s %s old %s offset %d number %d]", s.Do, s.Key, datum(s.Value), datum(s.Old), s.Offset, s.Number)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func objectProofs(a *Answer) string {
	var b strings.Builder
	for _, c := range a.Claims {
		for _, x := range c.Anomalies {
			fmt.Fprintf(&b, "%s at %v: %s\n", x.Kind, x.Where, x.Proof.Sentence)
			for _, op := range x.Proof.Operations {
				fmt.Fprintf(&b, "    %-11s %3d–%-3d %s\n", op.Role, op.Op, op.EndSeq, op.Text)
			}
		}
	}
	return b.String()
}
