package linearizability

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ackproof/histories"
	"ackproof/model"
)

// start invokes an operation on objects in a process of its own. The returned function completes it: with steps, OK; without, as it was asked.
func (s *script) start(steps ...histories.Step) func(answer ...histories.Step) {
	end := s.begin(histories.Event{Kind: histories.Object, Steps: steps})
	return func(answer ...histories.Step) {
		if answer == nil {
			answer = steps
		}
		end(histories.Event{Steps: answer})
	}
}

// ends completes what start began without a result.
func (s *script) ended(t histories.Type, steps ...histories.Step) {
	s.begin(histories.Event{Kind: histories.Object, Steps: steps})(histories.Event{Type: t, Code: histories.NoAnswer})
}

func act(do histories.Do, key string, v ...any) histories.Step {
	s := histories.Step{Do: do, Key: key}
	set := func(d *histories.Datum, v any) {
		switch v := v.(type) {
		case int:
			*d = histories.IntDatum(int64(v))
		case string:
			*d = textDatum(v)
		case []int64:
			*d = histories.Datum{Form: histories.List, List: v}
		}
	}
	if len(v) > 0 {
		set(&s.Value, v[len(v)-1])
	}
	if len(v) > 1 {
		set(&s.Old, v[0])
	}
	return s
}

func (s *script) wrote(key string, v int) { s.start(act(histories.Write, key, v))() }
func (s *script) found(key string, v ...any) {
	s.start(act(histories.Read, key))(act(histories.Read, key, v...))
}
func (s *script) did(do histories.Do, v ...any) { s.start(act(do, "", v...))() }

// answered is an operation that asks for nothing and is given something.
func (s *script) answered(do histories.Do, v ...any) { s.start(act(do, ""))(act(do, "", v...)) }

// appended is an append to a stream under conditions, with the tail that it was told.
func (s *script) appended(tail int64, steps ...histories.Step) {
	answer := slices.Clone(steps)
	answer[len(answer)-1].Offset = tail
	s.start(steps...)(answer...)
}

func records(hashes ...int64) histories.Step { return act(histories.AppendTo, "", hashes) }

var objectsPlanted = []struct {
	name, model string
	want        map[model.Anomaly]int64
	write       func(s *script)
}{
	{"register, legal", "register", nil, func(s *script) {
		s.found("", nil)
		end := s.start(act(histories.Write, "", 1))
		s.found("", 1)
		end()
		s.ended(histories.Fail, act(histories.Write, "", 2))
		s.ended(histories.Info, act(histories.Write, "", 3))
		s.found("", 1)
		s.found("", 3)
	}},
	{"register, stale read", "register", map[model.Anomaly]int64{model.Nonlinearizable: 1}, func(s *script) {
		s.wrote("x", 1)
		s.wrote("x", 2)
		s.found("x", 1)
		s.wrote("y", 1)
	}},
	{"register, back to the beginning", "register", map[model.Anomaly]int64{model.Nonlinearizable: 1}, func(s *script) {
		s.wrote("", 1)
		s.found("", nil)
	}},
	{"register, read twice around another", "register", map[model.Anomaly]int64{model.Nonlinearizable: 1}, func(s *script) {
		one, two := s.start(act(histories.Write, "", 1)), s.start(act(histories.Write, "", 2))
		s.found("", 1)
		s.found("", 2)
		s.found("", 1)
		one()
		two()
	}},
	{"register, nobody's value", "register", map[model.Anomaly]int64{model.Nonlinearizable: 1}, func(s *script) {
		s.wrote("", 1)
		s.found("", 7)
	}},
	{"register, refused value", "register", map[model.Anomaly]int64{model.Nonlinearizable: 1}, func(s *script) {
		s.ended(histories.Fail, act(histories.Write, "", 1))
		s.found("", 1)
	}},
	{"register, from the future", "register", map[model.Anomaly]int64{model.Nonlinearizable: 1}, func(s *script) {
		s.found("", 1)
		s.wrote("", 1)
	}},
	{"register with repeated values, stale read", "register", map[model.Anomaly]int64{model.Nonlinearizable: 1}, func(s *script) {
		s.wrote("", 1)
		s.wrote("", 1)
		s.wrote("", 2)
		s.found("", 2)
		s.found("", 1)
		s.found("", 2)
	}},
	{"cas-register, two winners", "cas-register", map[model.Anomaly]int64{model.Nonlinearizable: 1}, func(s *script) {
		s.wrote("", 0)
		one, two := s.start(act(histories.CompareAndSet, "", 0, 1)), s.start(act(histories.CompareAndSet, "", 0, 2))
		one()
		two()
		s.found("", 2)
	}},
	{"cas-register, legal", "cas-register", nil, func(s *script) {
		s.wrote("", 0)
		s.did(histories.CompareAndSet, 0, 1)
		s.ended(histories.Fail, act(histories.CompareAndSet, "", 0, 2))
		s.ended(histories.Info, act(histories.CompareAndSet, "", 1, 0))
		s.found("", 0)
	}},
	{"multi-register, torn", "multi-register", map[model.Anomaly]int64{model.Nonlinearizable: 1}, func(s *script) {
		s.start(act(histories.Write, "x", 1), act(histories.Write, "y", 1))()
		s.start(act(histories.Write, "x", 2), act(histories.Write, "y", 2))()
		s.start(act(histories.Read, "x"), act(histories.Read, "y"))(act(histories.Read, "x", 2), act(histories.Read, "y", 1))
	}},
	{"mutex, two holders", "mutex", map[model.Anomaly]int64{model.Nonlinearizable: 1}, func(s *script) {
		s.did(histories.Acquire)
		s.did(histories.Release)
		s.did(histories.Acquire)
		s.did(histories.Acquire)
	}},
	{"kv, lost append", "kv", map[model.Anomaly]int64{model.Nonlinearizable: 1}, func(s *script) {
		s.start(act(histories.Write, "k", "a"))()
		s.start(act(histories.AppendTo, "k", "b"))()
		s.start(act(histories.AppendTo, "k", "c"))()
		s.found("k", "ac")
		s.start(act(histories.AppendTo, "other", "c"))()
		s.found("other", "c")
	}},
	{"stream, legal", "stream", nil, func(s *script) {
		s.appended(2, act(histories.SetToken, "", "a"), records(11, 12))
		s.ended(histories.Fail, act(histories.ExpectToken, "", "b"), records(13))
		s.ended(histories.Info, histories.Step{Do: histories.ExpectTail, Number: 2}, records(14))
		s.appended(4, act(histories.ExpectToken, "", "a"), records(15))
		hash := model.StreamHash(model.StreamHash(model.StreamHash(model.StreamHash(0, 11), 12), 14), 15)
		s.start(act(histories.Read, ""))(histories.Step{Do: histories.Read, Value: histories.IntDatum(int64(hash)), Offset: 4})
		s.start(act(histories.CheckTail, ""))(histories.Step{Do: histories.CheckTail, Offset: 4})
	}},
	{"stream, appended under an old token", "stream", map[model.Anomaly]int64{model.Nonlinearizable: 1}, func(s *script) {
		s.appended(1, act(histories.SetToken, "", "a"), records(11))
		s.appended(2, act(histories.SetToken, "", "b"), records(12))
		s.appended(3, act(histories.ExpectToken, "", "a"), records(13))
	}},
	{"stream, tail goes back", "stream", map[model.Anomaly]int64{model.Nonlinearizable: 1}, func(s *script) {
		s.appended(2, records(11, 12))
		s.start(act(histories.CheckTail, ""))(histories.Step{Do: histories.CheckTail, Offset: 1})
	}},
	{"set, legal", "set", nil, func(s *script) {
		s.did(histories.Add, 1)
		s.ended(histories.Info, act(histories.Add, "", 2))
		s.ended(histories.Fail, act(histories.Add, "", 3))
		s.answered(histories.Read, []int64{1, 2})
	}},
	{"set, lost", "set", map[model.Anomaly]int64{model.LostAcked: 1}, func(s *script) {
		s.did(histories.Add, 1)
		s.did(histories.Add, 2)
		s.answered(histories.Read, []int64{1, 2})
		s.answered(histories.Read, []int64{2})
	}},
	{"set, seen and gone", "set", map[model.Anomaly]int64{model.DirtyRead: 1}, func(s *script) {
		s.ended(histories.Info, act(histories.Add, "", 1))
		s.answered(histories.Read, []int64{1})
		s.answered(histories.Read, []int64{})
	}},
	{"set, stale, phantom, from the future and twice", "set", map[model.Anomaly]int64{model.StaleRead: 1, model.Phantom: 2, model.FutureRead: 1, model.Duplicate: 1}, func(s *script) {
		s.did(histories.Add, 1)
		s.answered(histories.Read, []int64{})
		s.ended(histories.Fail, act(histories.Add, "", 3))
		s.answered(histories.Read, []int64{1, 2, 3, 4, 1})
		s.did(histories.Add, 4)
		s.answered(histories.Read, []int64{1, 2, 3, 4})
	}},
	{"total queue, legal", "total-queue", nil, func(s *script) {
		s.did(histories.Enqueue, 1)
		s.ended(histories.Info, act(histories.Enqueue, "", 2))
		s.ended(histories.Fail, act(histories.Enqueue, "", 3))
		s.answered(histories.Dequeue, 2)
		s.answered(histories.Drain, []int64{1})
	}},
	{"total queue, lost to a drain", "total-queue", map[model.Anomaly]int64{model.LostAcked: 1}, func(s *script) {
		s.did(histories.Enqueue, 1)
		s.did(histories.Enqueue, 2)
		s.did(histories.Enqueue, 3)
		s.ended(histories.Info, act(histories.Dequeue, ""))
		s.answered(histories.Drain, []int64{1})
	}},
	{"total queue, lost and found empty", "total-queue", map[model.Anomaly]int64{model.LostAcked: 1}, func(s *script) {
		s.did(histories.Enqueue, "a")
		s.answered(histories.Dequeue, nil)
	}},
	{"total queue, phantom, refused, from the future and twice", "total-queue", map[model.Anomaly]int64{model.Phantom: 2, model.FutureRead: 1, model.Duplicate: 1}, func(s *script) {
		s.did(histories.Enqueue, 1)
		s.ended(histories.Fail, act(histories.Enqueue, "", 2))
		s.answered(histories.Dequeue, 4)
		s.did(histories.Enqueue, 4)
		s.answered(histories.Dequeue, 3)
		s.answered(histories.Dequeue, 2)
		s.answered(histories.Dequeue, 1)
		s.answered(histories.Drain, []int64{1})
	}},
}

// TestObjectsPlanted: each anomaly planted into a small history is found and nothing else, auto guesses the object, and the proofs are those on file.
func TestObjectsPlanted(t *testing.T) {
	var golden strings.Builder
	for _, c := range objectsPlanted {
		s := &script{}
		c.write(s)
		promised, optIn := ObjectClaims(c.model)
		o := ObjectOptions{Claims: append(promised, optIn...)}
		a, err := CheckObjects(histories.Events(s.events), "auto", o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if guess, err := GuessObjects(histories.Events(s.events)); err != nil || guess != c.model {
			t.Errorf("%s: guessed %q (%v), want %s", c.name, guess, err, c.model)
		}
		want := c.want
		if want == nil {
			want = map[model.Anomaly]int64{}
		}
		if d := cmp.Diff(want, bad(a)); d != "" {
			t.Errorf("%s: anomalies (want −, got +):\n%s", c.name, d)
		}
		for _, claim := range a.Claims {
			if len(want) == 0 && claim.Verdict != model.Held || (len(claim.Anomalies) > 0) != (claim.Verdict == model.Violated) {
				t.Errorf("%s: %s is %s (%s) with %d anomalies", c.name, claim.ID, claim.Verdict, claim.Reason, len(claim.Anomalies))
			}
			for _, x := range claim.Anomalies {
				if x.Proof == nil || len(x.Proof.Operations) == 0 || len(x.Proof.Operations) > 4 {
					t.Fatalf("%s: %s has the proof %+v, want one to four operations", c.name, x.Kind, x.Proof)
				}
			}
		}
		if proofs := objectProofs(a); proofs != "" {
			fmt.Fprintf(&golden, "%s\n%s", c.name, proofs)
		}
	}
	file := filepath.Join("testdata", "objects.golden")
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

// TestObjectsUndecided: what cannot be told is said to be so, and what would settle it.
func TestObjectsUndecided(t *testing.T) {
	hard := func(s *script) { // appends that may each have happened, in any order, and a text that holds them all in none
		all := ""
		for i := range 24 {
			letter := string(rune('a' + i))
			s.start(act(histories.AppendTo, "", letter))
			all = letter + all
		}
		s.found("", all+"b"+all)
	}
	for _, c := range []struct {
		name, model string
		claim       model.Claim
		o           ObjectOptions
		verdict     model.Verdict
		reason      string // a part of it
		write       func(s *script)
	}{
		{"out of time", "kv", model.Linearizable, ObjectOptions{Budget: time.Millisecond}, model.Undecided, "a larger budget would settle it", hard},
		{"out of memory", "kv", model.Linearizable, ObjectOptions{Memory: 50}, model.Undecided, "more memory would settle it", hard},
		{"nothing answered", "register", model.Linearizable, ObjectOptions{}, model.NotTested, "no answer says anything of what the object held", func(s *script) { s.start(act(histories.Write, "", 1)) }},
		{"no final read", "set", model.NoLoss, ObjectOptions{}, model.Undecided, "element 1, acknowledged to process 1 at 2ms, was in no read", func(s *script) { s.did(histories.Add, 1) }},
		{"read before the add", "set", model.NoLoss, ObjectOptions{}, model.Undecided, "a read at the end would settle it", func(s *script) {
			read := s.start(act(histories.Read, ""))
			s.did(histories.Add, 1)
			read(act(histories.Read, "", []int64{}))
		}},
		{"no add", "set", model.NoLoss, ObjectOptions{}, model.NotTested, "no add was acknowledged", func(s *script) { s.answered(histories.Read, []int64{}) }},
		{"no drain", "total-queue", model.NoLoss, ObjectOptions{}, model.Undecided, "a drain would settle it", func(s *script) { s.did(histories.Enqueue, 1) }},
		{"an early empty reply is no drain", "total-queue", model.NoLoss, ObjectOptions{}, model.Undecided, "a drain would settle it", func(s *script) {
			s.did(histories.Enqueue, 1)
			s.answered(histories.Dequeue, nil)
			s.did(histories.Enqueue, 2)
			s.answered(histories.Dequeue, 2)
		}},
		{"a dequeue without an answer", "total-queue", model.NoLoss, ObjectOptions{}, model.Undecided, "one operation of unknown outcome (the first is operation 3 of process 2)", func(s *script) {
			s.did(histories.Enqueue, 1)
			s.ended(histories.Info, act(histories.Dequeue, ""))
			s.answered(histories.Drain, []int64{})
		}},
		{"not asked of a mutex", "mutex", model.NoLoss, ObjectOptions{}, model.Undecided, "does not make this claim", func(s *script) { s.did(histories.Acquire) }},
	} {
		s := &script{}
		c.write(s)
		c.o.Claims = []model.Claim{c.claim}
		a, err := CheckObjects(histories.Events(s.events), c.model, c.o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if r := a.Claims[0]; r.Verdict != c.verdict || !strings.Contains(r.Reason, c.reason) {
			t.Errorf("%s: %s (%s), want %s (… %s …)", c.name, r.Verdict, r.Reason, c.verdict, c.reason)
		}
	}
}

// TestObjectsRefused: what is no history of the object is an error, never a verdict.
func TestObjectsRefused(t *testing.T) {
	for _, c := range []struct {
		name, model, want string
		malformed         bool
		write             func(s *script)
	}{
		{"unknown model", "bank", "expected one of register, cas-register", false, func(s *script) { s.wrote("", 1) }},
		{"cas on a register", "register", "cas, which a register does not know", true, func(s *script) { s.did(histories.CompareAndSet, 1, 2) }},
		{"transaction on a mutex", "mutex", "expected one step", true, func(s *script) { s.start(act(histories.Acquire, ""), act(histories.Release, ""))() }},
		{"answer of other length", "multi-register", "2 steps complete an operation of 1", true, func(s *script) {
			s.start(act(histories.Read, "x"))(act(histories.Read, "x"), act(histories.Read, "y"))
		}},
		{"operation on a log", "register", "append in a history of objects", true, func(s *script) { s.acked(0, 1, 0, 1) }},
		{"list in a register", "register", "a value is a list", true, func(s *script) { s.answered(histories.Read, []int64{1}) }},
		{"text in a set", "set", "expected a number", true, func(s *script) { s.did(histories.Add, "a") }},
		{"nothing enqueued", "total-queue", "expected a value", true, func(s *script) { s.did(histories.Enqueue) }},
		{"condition without an append", "stream", "expected append, read or check-tail", true, func(s *script) { s.start(histories.Step{Do: histories.ExpectTail})() }},
		{"empty", "auto", "no operation", false, func(*script) {}},
	} {
		s := &script{}
		c.write(s)
		_, err := CheckObjects(histories.Events(s.events), c.model, ObjectOptions{})
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, histories.ErrMalformed) != c.malformed {
			t.Errorf("%s: %v, want … %s … (malformed: %v)", c.name, err, c.want, c.malformed)
		}
	}
}
