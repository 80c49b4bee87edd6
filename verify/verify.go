// Package verify judges one certificate against the history that it is about: the operations must stand there exactly as they are quoted, and together
// they must prove the anomaly by the rule for its kind. It shares no code with the checkers, so that a mistake of theirs cannot hide here. It does not look for
// anomalies and does not ask what a contract permits; what the contract alone says (the length of a window, that a log is dense) it believes.
//
// Start reading at Certificate. To judge one kind of certificate by hand takes this file, which finds and compares the operations, and the rule in rules.go
// (logs), objects.go and queues.go (sets, queues, groups, commits), search.go (objects that must have one order) or transactions.go: a page or two. All of them
// together are longer, for there are some fifty kinds, and most say that something is nowhere in the history, which no quoted operations can show.
package verify

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"ackproof/histories"
	"ackproof/model"
)

// ErrRejected is the class of certificates that are not borne out by their history.
var ErrRejected = errors.New("rejected")

// ErrNoRule says that no history alone proves what the certificate claims: see Recovery.
var ErrNoRule = errors.New("no rule")

// value is what a record says about itself; offset tells where an operation puts it, −1 unknown.
type value struct {
	producer int32
	sequence int64
	defect   histories.Defect
}

// operation is an invocation and its completion; done is false if it has none.
type operation struct {
	begin, end histories.Event
	done       bool
}

func (o *operation) ok() bool { return o.done && o.end.Type == histories.OK }

// before tells real-time order.
func (o *operation) before(p *operation) bool { return o.done && o.end.Seq < p.begin.Seq }

// base is the offset of an append's first record, −1 if it was not told.
func (o *operation) base() int64 {
	if o.begin.Kind == histories.Append && o.ok() {
		return o.end.Offset
	}
	return -1
}

// records gives every record that the operation wrote or returned.
func (o *operation) records() iter.Seq2[int64, value] {
	runs, at := o.end.Runs, int64(-1)
	if o.begin.Kind == histories.Append {
		runs, at = o.begin.Runs, o.base()
	}
	return func(yield func(int64, value) bool) {
		for _, r := range runs {
			if o.begin.Kind != histories.Append {
				at = r.Offset
			}
			for i := range int64(r.Count) {
				if !yield(at, value{r.Producer, r.Sequence + i, r.Defect}) {
					return
				}
				if at >= 0 {
					at++
				}
			}
		}
	}
}

// at are the records that the operation puts at an offset: one, unless the reply is damaged.
func (o *operation) at(offset int64) (all []value) {
	for k, v := range o.records() {
		if k == offset && o.ok() {
			all = append(all, v)
		}
	}
	return all
}

// differs tells whether any two of a and b differ, or only one of them is empty.
func differs(a, b []value) bool {
	return len(a) > 0 != (len(b) > 0) || slices.ContainsFunc(a, func(v value) bool { return slices.ContainsFunc(b, func(w value) bool { return v != w }) })
}

func (o *operation) has(v value) bool {
	for _, w := range o.records() {
		if v == w {
			return true
		}
	}
	return false
}

// next is a reader's position after the reply.
func (o *operation) next() int64 {
	if !o.begin.Kind.IsRead() {
		return -1
	}
	to := o.begin.Offset
	for _, r := range o.end.Runs {
		to = max(to, r.Offset+int64(r.Count))
	}
	return to
}

// quote is what a certificate has to say of the operation, but for its records.
func (o *operation) quote() model.Quote {
	q := model.Quote{Outcome: histories.Invoke.String(), Partition: o.begin.Partition, Node: o.begin.Node, Session: o.begin.Session, Epoch: -1, Offset: o.begin.Offset, HighWatermark: -1, Next: o.next()}
	if o.begin.Kind == histories.Append {
		q.Offset = o.base()
	}
	if !o.done {
		return q
	}
	q.Outcome, q.Code = o.end.Type.String(), o.end.Code
	if o.end.Node != 0 {
		q.Node = o.end.Node
	}
	if !o.ok() {
		return q
	}
	q.Epoch = o.end.LeaderEpoch
	switch {
	case o.begin.Kind.IsRead():
		q.HighWatermark = o.end.HighWatermark
	case o.begin.Kind == histories.CopyEnd:
		q.Offset, q.HighWatermark = o.end.Offset, o.end.HighWatermark
	case o.begin.Kind != histories.Append:
		q.Offset = o.end.Offset
	}
	return q
}

// proof is a certificate with what the history says of it.
type proof struct {
	model.Certificate
	ops     []*operation       // of the partition or the objects, in the order of invocation
	cited   []*operation       // as the certificate lists them
	said    [][]histories.Step // the steps that it quotes of each
	drain   uint64             // sequence number at which the drain began, 0 if the history does not say
	wrote   map[value]bool     // quoted values that anybody wrote
	keys    []string           // the objects, if it is about such
	number  int64              // its value, if that is a number
	logs    bool               // its objects are logs: reads name offsets
	placed  bool               // the certificate's offset has been checked
	appends []*operation       // on the log that a consumer group reads
	wrong   string             // the first reason to reject
}

// Certificate judges c against its history: nil accepts; ErrRejected, ErrNoRule, histories.ErrMalformed, or the error of reading. Memory grows
// with the operations on the certificate's partition or objects.
func Certificate(c model.Certificate, run uint64, events iter.Seq2[histories.Event, error]) error {
	if c.Claim == model.Liveness {
		return fmt.Errorf("%w for the claim %s: that something did not work again in time is what the harness knows, not the history", ErrNoRule, c.Claim)
	}
	p := &proof{Certificate: c, wrote: make(map[value]bool)}
	p.head(run)
	prove := objectRules[c.Claim][c.Anomaly]
	if rule := rules[c.Anomaly]; c.Partition >= 0 {
		p.need(c.Claim == rule.claim, "%s breaks the claim %s, not %s", c.Anomaly, rule.claim, c.Claim)
		prove = rule.prove
	} else {
		p.keys = append(strings.Split(c.Object, ","), c.Object)
		p.number, _ = strconv.ParseInt(c.Value, 10, 64)
		p.need(c.Partition == -1, "it is about partition %d, expected one from 0 on, or −1 for none", c.Partition)
	}
	p.need(prove != nil, "the claim %q is not broken by %q", c.Claim, c.Anomaly)
	if err := p.load(events); err != nil {
		return err
	}
	for i := range c.Operations {
		p.compare(&c.Operations[i])
	}
	if p.wrong == "" {
		prove(p)
	}
	if c.Partition < 0 && !p.placed {
		p.need(c.Offset == -1, "it names the offset %d, and no offset plays a part", c.Offset)
	}
	return p.verdict()
}

// Recovery judges a certificate of the claim liveness by what the harness saw of the recovery (facts.json): nil, or ErrRejected.
func Recovery(c model.Certificate, run uint64, seen model.Recovery) error {
	p := &proof{Certificate: c}
	p.head(run)
	p.need(c.Claim == model.Liveness && c.Anomaly == model.UnavailableAfterHeal, "the claim %s is not broken by %s", c.Claim, c.Anomaly)
	p.need(c.Partition == -1 && c.Offset == -1 && c.Object == "" && len(c.Operations) == 0 && len(c.Relations) == 0, "it names operations, and none plays a part")
	p.need(seen.Checked && len(seen.Unmet) > 0, "everything worked within the bound, or nobody looked")
	p.need(len(seen.Unmet) > 0 && c.Value == seen.Unmet[0], "what did not work is %q, not %q", seen.Unmet, c.Value)
	p.need(c.WithinNS == seen.BoundMS*int64(time.Millisecond), "the bound is %d ms, not %d ns", seen.BoundMS, c.WithinNS)
	return p.verdict()
}

// head demands what every certificate has.
func (p *proof) head(run uint64) {
	p.need(p.Version == 1, "its version is %d, expected 1", p.Version)
	p.need(p.Seal == p.Sum(), "its seal does not fit: something in it was changed")
	p.need(p.Run == fmt.Sprintf("%016x", run), "it is about run %q, the history is of run %016x", p.Run, run)
}

func (p *proof) verdict() error {
	if p.wrong != "" {
		return fmt.Errorf("%w: %s", ErrRejected, p.wrong)
	}
	return nil
}

func (p *proof) need(holds bool, format string, args ...any) bool {
	if !holds && p.wrong == "" {
		p.wrong = fmt.Sprintf(format, args...)
	}
	return holds
}

// load keeps the operations of the partition and those that are cited, and notes which of the quoted values anybody wrote.
func (p *proof) load(events iter.Seq2[histories.Event, error]) error {
	var quoted []value
	for _, op := range p.Operations {
		if op.Quote != nil {
			for _, r := range op.Quote.Records {
				quoted = append(quoted, value{producer: r.Producer, sequence: r.Sequence})
			}
		}
	}
	join, kept := histories.NewJoiner(), make(map[uint64]*operation)
	for ev, err := range events {
		if err == nil {
			_, err = join.Join(&ev)
		}
		if err != nil {
			return err
		}
		if ev.Kind == histories.Phase && ev.Note == "drain" {
			p.drain = ev.Seq
		}
		if !ev.Kind.IsOperation() {
			continue
		}
		if ev.Kind != histories.Object && p.Partition < 0 && !p.feeds(&ev) {
			continue
		}
		ev.Runs, ev.Steps = slices.Clone(ev.Runs), cloneSteps(ev.Steps) // the reader uses their memory again
		o := kept[ev.Op]
		switch {
		case o != nil:
			o.end, o.done = ev, true
		case ev.Type == histories.Invoke && (p.concerns(&ev) || slices.ContainsFunc(p.Operations, func(c model.ProofOp) bool { return c.Op == ev.Op })):
			o = &operation{begin: ev}
			kept[ev.Op], p.ops = o, append(p.ops, o)
		}
		if ev.Kind == histories.Append && ev.Type == histories.Invoke {
			for _, v := range quoted {
				for _, r := range ev.Runs {
					p.wrote[v] = p.wrote[v] || r.Producer == v.producer && r.Sequence <= v.sequence && v.sequence < r.Sequence+int64(r.Count)
				}
			}
		}
	}
	for _, c := range p.Operations {
		p.cited = append(p.cited, kept[c.Op])
	}
	for _, o := range p.ops {
		if o.begin.Kind != histories.Object && p.Partition < 0 {
			p.appends = append(p.appends, o)
		}
		for _, s := range o.end.Steps {
			p.logs = p.logs || s.Do == histories.Read && s.Value.Form == histories.Int || s.Offset > 0
		}
	}
	p.ops = slices.DeleteFunc(p.ops, func(o *operation) bool {
		return p.Partition >= 0 && o.begin.Partition != p.Partition || p.Partition < 0 && o.begin.Kind != histories.Object
	})
	return nil
}

// concerns tells whether an operation is one of the certificate's partition or objects.
func (p *proof) concerns(ev *histories.Event) bool {
	switch {
	case p.Partition >= 0:
		return ev.Kind != histories.Object && ev.Partition == p.Partition
	case ev.Kind != histories.Object || p.Claim == model.Serializability || p.Claim == model.Atomicity: // whether one committed may show anywhere
		return true
	}
	return slices.ContainsFunc(ev.Steps, func(s histories.Step) bool { return p.isAbout(s.Key) })
}

func (p *proof) isAbout(key string) bool { return slices.Contains(p.keys, key) }

// feeds tells whether an event is about the log that the certificate's consumer group reads: the object is "group/partition".
func (p *proof) feeds(ev *histories.Event) bool {
	partition, err := strconv.Atoi(p.Object[strings.LastIndexByte(p.Object, '/')+1:])
	return err == nil && int(ev.Partition) == partition && (ev.Kind == histories.Append || ev.Kind == histories.StartOffset)
}

func cloneSteps(steps []histories.Step) []histories.Step {
	steps = slices.Clone(steps)
	for i := range steps {
		steps[i].Value.List = slices.Clone(steps[i].Value.List)
	}
	return steps
}

func quoteOf(s histories.Step) model.QuotedStep {
	return model.QuotedStep{Does: s.Do.String(), Object: s.Key, Value: s.Value.String(), Old: s.Old.String(), Offset: s.Offset, Number: s.Number}
}

// compareObject demands that an operation on objects stands in the history as it is quoted.
func (p *proof) compareObject(c *model.ProofOp, o *operation) {
	all, does := append(slices.Clone(o.end.Steps), o.begin.Steps...), "transaction"
	var said []histories.Step
	for _, q := range c.Steps {
		i := slices.IndexFunc(all, func(s histories.Step) bool { return quoteOf(s) == q })
		if p.need(i >= 0 && p.isAbout(q.Object), "operation %d has no step %+v on the certificate's object", c.Op, q) {
			said = append(said, all[i])
		}
	}
	if len(said) == 1 {
		does = said[0].Do.String()
	} else if len(said) > 1 {
		does = "txn"
	}
	if does == "transaction" {
		p.need(c.Role == "T"+strconv.Itoa(len(p.said)+1), "transaction %d is called %q", len(p.said)+1, c.Role)
		p.need(slices.IndexFunc(p.Operations, func(d model.ProofOp) bool { return d.Op == c.Op }) == len(p.said), "operation %d plays two parts", c.Op)
	}
	p.need(c.What == does, "operation %d is %s, not %s", c.Op, does, c.What)
	p.said = append(p.said, said)
}

// compare demands that an operation stands in the history as it is quoted.
func (p *proof) compare(c *model.ProofOp) {
	o := p.cited[slices.IndexFunc(p.Operations, func(d model.ProofOp) bool { return d.Op == c.Op })]
	if !p.need(o != nil, "the history has no operation %d", c.Op) {
		return
	}
	ended, over := int64(-1), o.end.Seq
	if o.done {
		ended = int64(o.end.Time)
	}
	if c.EndSeq == 0 && !slices.ContainsFunc(p.cited, func(d *operation) bool { return d != o && d.end.Seq > over }) { // judged before it ended
		ended, over = -1, 0
	}
	p.need(c.Process == o.begin.Process && c.Invoked == int64(o.begin.Time) && c.EndSeq == over && c.Ended == ended,
		"operation %d is %s of process %d, from %d ns to %d ns and event %d, not %+v", c.Op, o.begin.Kind, o.begin.Process, int64(o.begin.Time), ended, o.end.Seq, *c)
	if p.Partition < 0 {
		p.compareObject(c, o)
		return
	}
	if !p.need(c.Quote != nil && c.What == o.begin.Kind.String(), "operation %d is %s, and not quoted as such", c.Op, o.begin.Kind) {
		return
	}
	said, want := *c.Quote, o.quote()
	said.Records = nil
	p.need(fmt.Sprint(said) == fmt.Sprint(want), "operation %d is %+v in the history, not %+v", c.Op, want, said)
	// The quoted records in the order of the operation, and each that it puts at the certificate's offset.
	rest := c.Quote.Records
	for k, v := range o.records() {
		r := model.QuotedRecord{Offset: k, Producer: v.producer, Sequence: v.sequence}
		if v.defect != histories.Sound {
			r.Defect = v.defect.String()
		}
		if len(rest) > 0 && rest[0] == r {
			rest = rest[1:]
		} else {
			p.need(k < 0 || k != p.Offset, "operation %d has the record %+v, which is not quoted", c.Op, r)
		}
	}
	p.need(len(rest) == 0, "operation %d has not the records %+v", c.Op, rest)
}
