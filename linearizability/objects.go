package linearizability

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"ackproof/histories"
	"ackproof/model"
)

// ObjectOptions of CheckObjects. The zero value asks for what every such object promises.
type ObjectOptions struct {
	Claims []model.Claim   // what is asked for; nil: those that ObjectClaims calls promised
	Floors model.Floors    // nil: that anything was observed
	Facts  model.Facts     // what the harness knows besides
	Places int             // places listed per anomaly; 0: 20
	Budget time.Duration   // for all searches together; 0: 10 s
	Memory int64           // bytes that one search may take for its table of operations; 0: 256 MiB
	Start  histories.Datum // what a register or key holds at first; the zero Datum: nothing
}

func (o *ObjectOptions) fill() {
	if o.Places <= 0 {
		o.Places = 20
	}
	if o.Budget <= 0 {
		o.Budget = 10 * time.Second
	}
	if o.Memory <= 0 {
		o.Memory = 256 << 20
	}
}

// object is one kind of object that CheckObjects decides.
type object struct {
	name     string
	promised []model.Claim
	optIn    []model.Claim
	does     []histories.Do                                // what its steps may do
	single   bool                                          // an operation has one step only
	fault    func(s *histories.Step, answered bool) string // what is wrong with the values of a step, "" for nothing
	check    func(*objects, *ObjectOptions) ([]model.ClaimResult, error)
}

var (
	linearizable = []model.Claim{model.Linearizable}
	contents     = []model.Claim{model.NoLoss, model.NoPhantom}
)

// kinds are the objects, each as narrow as possible: the first that allows all that a history does is the guess.
var kinds = []object{
	{name: "register", promised: linearizable, does: []histories.Do{histories.Read, histories.Write}, single: true, fault: cellFault, check: (*objects).cells},
	{name: "cas-register", promised: linearizable, does: []histories.Do{histories.Read, histories.Write, histories.CompareAndSet}, single: true, fault: cellFault, check: (*objects).cells},
	{name: "multi-register", promised: linearizable, does: []histories.Do{histories.Read, histories.Write, histories.CompareAndSet}, fault: cellFault, check: (*objects).cells},
	{name: "mutex", promised: linearizable, does: []histories.Do{histories.Acquire, histories.Release}, single: true, fault: cellFault, check: (*objects).cells},
	{name: "set", promised: append(contents[:2:2], model.NoDirtyRead), optIn: []model.Claim{model.ReadAfterAck, model.NoDuplicate}, does: []histories.Do{histories.Add, histories.Read}, single: true,
		fault: setFault, check: (*objects).sets},
	{name: "total-queue", promised: contents, optIn: []model.Claim{model.NoDuplicate}, does: []histories.Do{histories.Enqueue, histories.Dequeue, histories.Drain}, single: true, fault: queueFault, check: (*objects).queues},
	{name: "kv", promised: linearizable, does: []histories.Do{histories.Read, histories.Write, histories.AppendTo}, single: true, fault: cellFault, check: (*objects).cells},
	{name: "stream", promised: linearizable, fault: streamFault, check: (*objects).streams,
		does: []histories.Do{histories.Read, histories.AppendTo, histories.CheckTail, histories.ExpectTail, histories.ExpectToken, histories.SetToken}},
}

// ObjectModels are the names that CheckObjects knows.
func ObjectModels() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return names
}

func kindOf(name string) *object {
	for i := range kinds {
		if kinds[i].name == name {
			return &kinds[i]
		}
	}
	return nil
}

// ObjectClaims are the claims of a model: those that are asked for by default, and those that one may ask for besides. Nothing for an unknown name.
func ObjectClaims(name string) (promised, optIn []model.Claim) {
	if k := kindOf(name); k != nil {
		return slices.Clone(k.promised), slices.Clone(k.optIn)
	}
	return nil, nil
}

// GuessObjects says which model a history is of: the narrowest that allows all that its operations do. It is "" where none does, or where the
// history has no operation on objects. The error is that of reading the events.
func GuessObjects(events iter.Seq2[histories.Event, error]) (string, error) {
	h, err := loadObjects(events)
	if err != nil {
		return "", err
	}
	return h.guess(), nil
}

// CheckObjects decides the claims of objects other than a partitioned log. Every key is an object of its own, since linearizability is local (Herlihy and
// Wing); the keys of a multi-register that share an operation go together. name is one of ObjectModels, or "auto" for GuessObjects.
//
// What decides, and at what cost for n operations:
//
//   - register, with every value written once: exact, O(n log n); see unique. A proof has at most four operations.
//   - registers otherwise, mutex, kv, stream: a search over the specifications in package model; see frontier. Its cost is n times a number that is exponential
//     in the writers that overlap at worst. Where that is too much, porcupine has the other half of the budget, and n²/8 bytes. If it cannot tell either, the
//     claim is undecided, and the reason says which operations make it hard.
//   - set and total-queue: exact, O(n log n) in operations and elements of replies; see sets and queues.
//
// Not promised: that a Fail was right (it is believed, and a failed cas counts as no operation, so one that should have succeeded is not noticed); who
// holds a mutex; the order of a queue. The error is a histories.ErrMalformed, or that of reading the events; it is never a verdict.
func CheckObjects(events iter.Seq2[histories.Event, error], name string, o ObjectOptions) (*Answer, error) {
	h, err := loadObjects(events)
	if err != nil {
		return nil, err
	}
	if name == "" || name == "auto" {
		name = h.guess()
	}
	k := kindOf(name)
	if k == nil && name == "" {
		return nil, fmt.Errorf("the history has no operation, or what it does is not what one of %s does", strings.Join(ObjectModels(), ", "))
	}
	if k == nil {
		return nil, fmt.Errorf("there is no object %q, expected one of %s", name, strings.Join(ObjectModels(), ", "))
	}
	if err := h.allow(k); err != nil {
		return nil, err
	}
	o.fill()
	if o.Claims == nil {
		o.Claims = k.promised
	}
	h.kind, h.deadline = k, time.Now().Add(o.Budget)
	all, err := k.check(h, &o)
	if err != nil {
		return nil, err
	}
	a := &Answer{Operations: h.counts, log: &history{}}
	for _, c := range o.Claims {
		i := slices.IndexFunc(all, func(r model.ClaimResult) bool { return r.ID == c })
		switch {
		case i < 0:
			a.Claims = append(a.Claims, model.ClaimResult{ID: c, Verdict: model.Undecided, Reason: "a " + name + " does not make this claim", Evidence: map[string]int64{},
				Anomalies: []model.AnomalyResult{}, Permitted: []model.PermittedLoss{}})
		default:
			r := &all[i]
			if r.Verdict == model.Held || r.Verdict == model.NotTested {
				missing := r.Reason
				if missing == "" {
					missing = o.Floors.Missing(c, r.Evidence, model.Contract{}, o.Facts)
				}
				judge(r, "", o.Facts, missing)
			}
			a.Claims = append(a.Claims, *r)
		}
	}
	return a, nil
}

// guess is the narrowest kind that allows everything.
func (h *objects) guess() string {
	if len(h.ops) == 0 {
		return ""
	}
	for i := range kinds {
		if h.allow(&kinds[i]) == nil {
			return kinds[i].name
		}
	}
	return ""
}

// allow says what a history has that the object does not know.
func (h *objects) allow(k *object) error {
	for i := range h.ops {
		op := &h.ops[i]
		steps := h.of(op)
		if len(steps) == 0 {
			return &histories.EventError{Seq: op.inv, What: "an operation without a step, expected what it does"}
		}
		if k.single && len(steps) > 1 {
			return &histories.EventError{Seq: op.inv, What: fmt.Sprintf("an operation of %d steps, expected one step on a %s", len(steps), k.name)}
		}
		for i := range steps {
			if s := &steps[i]; !slices.Contains(k.does, s.Do) {
				return &histories.EventError{Seq: op.inv, What: fmt.Sprintf("%v, which a %s does not know", s.Do, k.name)}
			} else if what := k.fault(s, op.outcome == histories.OK); what != "" {
				return &histories.EventError{Seq: max(op.inv, op.end), What: what}
			}
		}
	}
	return nil
}

func cellFault(s *histories.Step, _ bool) string {
	if s.Value.Form == histories.List || s.Old.Form == histories.List {
		return "a value is a list, expected nothing, a number or a text"
	}
	return ""
}

func setFault(s *histories.Step, answered bool) string {
	switch {
	case s.Do == histories.Add && s.Value.Form != histories.Int:
		return fmt.Sprintf("an element is %s, expected a number", datum(s.Value))
	case s.Do == histories.Read && answered && s.Value.Form != histories.List:
		return fmt.Sprintf("a read found %s, expected a list of elements", datum(s.Value))
	}
	return ""
}

func queueFault(s *histories.Step, answered bool) string {
	switch {
	case s.Do == histories.Enqueue && s.Value.Form != histories.Int && s.Value.Form != histories.Text:
		return fmt.Sprintf("%s is enqueued, expected a value", datum(s.Value))
	case s.Do == histories.Dequeue && s.Value.Form == histories.List:
		return "a list was dequeued, expected nothing, a number or a text"
	case s.Do == histories.Drain && answered && s.Value.Form != histories.List:
		return fmt.Sprintf("a drain found %s, expected a list", datum(s.Value))
	}
	return ""
}

func streamFault(s *histories.Step, answered bool) string {
	switch {
	case s.Do == histories.AppendTo && s.Value.Form != histories.List:
		return fmt.Sprintf("an append of %s, expected the list of the records' hashes", datum(s.Value))
	case s.Do == histories.Read && answered && s.Value.Form != histories.Int:
		return fmt.Sprintf("a read found %s, expected the stream's hash", datum(s.Value))
	case (s.Do == histories.ExpectToken || s.Do == histories.SetToken) && s.Value.Form != histories.Text:
		return fmt.Sprintf("the fencing token is %s, expected a text", datum(s.Value))
	}
	return ""
}
