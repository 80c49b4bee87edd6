package linearizability

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ackproof/histories"
	"ackproof/model"
)

// txnFinding is all anomalies of one kind.
type txnFinding struct {
	count int64
	where []string
	size  int
	prove func(*txnCertificate) // writes the certificate of the smallest
}

// note counts an anomaly; the first of its kind is proved in the end.
func (t *transactions) note(a model.Anomaly, where string, prove func(*txnCertificate)) {
	t.noteSized(a, where, 0, prove)
}

// noteSized counts an anomaly; the smallest of its kind is proved in the end.
func (t *transactions) noteSized(a model.Anomaly, where string, size int, prove func(*txnCertificate)) {
	f := t.found[a]
	if f == nil {
		f = &txnFinding{size: size + 1}
		t.found[a] = f
	}
	f.count++
	if len(f.where) < t.options.Places {
		f.where = append(f.where, where)
	}
	if size < f.size {
		f.size, f.prove = size, prove
	}
}

// certificate proves a finding under a claim.
func (t *transactions) certificate(claim model.Claim, a model.Anomaly, f *txnFinding) *model.Certificate {
	c := &txnCertificate{t: t, Certificate: model.Certificate{Version: 1, Claim: claim, Anomaly: a, Partition: -1, Offset: -1, Operations: []model.ProofOp{}}}
	f.prove(c)
	return &c.Certificate
}

// txnCertificate is a certificate in the making. Its transactions are called T1, T2, … in the order in which the sentence brings them up.
type txnCertificate struct {
	model.Certificate
	t    *transactions
	txns []int32
}

// about says which object, and which of its values, the finding is about.
func (c *txnCertificate) about(x *txnObject, value int64) {
	c.Object, c.Value = x.name, strconv.FormatInt(value, 10)
}

// relate notes a relation. The objects of a circle are those of its relations.
func (c *txnCertificate) relate(a, b int32, kind dependency, x *txnObject, value int64) {
	r := model.Relation{From: c.op(a), To: c.op(b), Kind: relationNames[kind], Value: value}
	if x != nil {
		r.Object = x.name
		if names := strings.Split(c.Object, ","); c.Value == "" && !slices.Contains(names, x.name) {
			c.Object = strings.TrimPrefix(c.Object+","+x.name, ",")
		}
	}
	c.Relations = append(c.Relations, r)
}

var relationNames = map[dependency]string{writeWrite: "ww", writeRead: "wr", readWrite: "rw", inProcess: "process", inTime: "realtime"}

// op gives the name of a transaction, and makes it one of the operations.
func (c *txnCertificate) op(n int32) string {
	if n == none {
		return "nobody"
	}
	if i := slices.Index(c.txns, n); i >= 0 {
		return c.Operations[i].Role
	}
	x := &c.t.all[n]
	c.txns = append(c.txns, n)
	begin, end := c.t.moments.at(x.inv), c.t.moments.at(x.end)
	p := model.ProofOp{Role: fmt.Sprintf("T%d", len(c.txns)), Op: begin.seq, Invoked: int64(begin.time), Ended: -1, EndSeq: end.seq, Process: x.process,
		What: "transaction", Text: c.t.describeTransaction(n)}
	if x.end != 0 {
		p.Ended = int64(end.time)
	}
	c.Operations = append(c.Operations, p)
	return p.Role
}

// put says how a step puts a record at an offset.
func (c *txnCertificate) put(step int32) string {
	s := &c.t.steps[step]
	if s.does == appends {
		return fmt.Sprintf("%s was told that its %d stands there", c.op(s.txn), s.value)
	}
	return fmt.Sprintf("%s read %d", c.op(s.txn), s.value)
}

// why says in what way a has to come before b.
func (c *txnCertificate) why(a, b int32, kind dependency) string {
	t, first, second := c.t, c.op(a), c.op(b)
	switch kind {
	case inProcess:
		c.relate(a, b, kind, nil, 0)
		return fmt.Sprintf("process %d went on from %s to %s", t.all[a].process, first, second)
	case inTime:
		c.relate(a, b, kind, nil, 0)
		return fmt.Sprintf("%s ended at %s, before %s began at %s", first, t.stamp(t.all[a].end), second, t.stamp(t.all[b].inv))
	}
	doer := b // whose step on the object it is
	if kind == readWrite {
		doer = a
	}
	for _, s := range t.of(doer) {
		x := &t.objects[s.key]
		switch {
		case kind == writeWrite && s.does == appends && s.at > 0:
			if w := t.below(x, s.at); w != none && t.steps[w].txn == a {
				c.relate(a, b, kind, x, s.value)
				return fmt.Sprintf("in %s the %d of %s comes after the %d of %s (ww)", x.name, s.value, second, t.steps[w].value, first)
			}
		case kind == writeWrite && s.does == appends && s.at < 0:
			if w := t.below(x, int64(len(x.order))); w != none && t.steps[w].txn == a {
				c.relate(a, b, kind, x, s.value)
				return fmt.Sprintf("in %s the %d of %s, which nobody saw, comes after the %d of %s, which was seen (ww)", x.name, s.value, second, t.steps[w].value, first)
			}
		case kind == writeRead && s.does == reads && s.at > 0:
			if w := t.below(x, s.at); w != none && t.steps[w].txn == a {
				c.relate(a, b, kind, x, t.steps[w].value)
				return fmt.Sprintf("%s read the %d that %s appended to %s (wr)", second, t.steps[w].value, first, x.name)
			}
		case kind == writeRead && s.does == finds:
			if w := t.wrote[int64(x.base)+s.at]; w != none && t.steps[w].txn == a {
				c.relate(a, b, kind, x, t.steps[w].value)
				return fmt.Sprintf("%s read the %d that %s appended to %s (wr)", second, t.steps[w].value, first, x.name)
			}
		case kind == readWrite && s.does != appends && s.does != differs && s.does != asks:
			seen := s.at
			if s.does == finds {
				seen++
			}
			for _, w := range t.of(b) {
				if w.does == appends && w.key == s.key && (w.at < 0 || w.at >= seen) {
					c.relate(a, b, kind, x, w.value)
					return fmt.Sprintf("%s read %s without the %d that %s appended (rw)", first, x.name, w.value, second)
				}
			}
		}
	}
	c.relate(a, b, kind, nil, 0)
	return fmt.Sprintf("%s comes before %s", first, second)
}

// below is the step that wrote the version before the place at, as far as it counts; −1 if there is none.
func (t *transactions) below(x *txnObject, at int64) int32 {
	for at--; at >= 0; at-- {
		if t.writer[int64(x.base)+at] != none {
			return t.wrote[int64(x.base)+at]
		}
	}
	return none
}

// shownSteps is how many elements of a list, and how many steps of a transaction, a line for people shows.
const shownSteps = 8

// describeTransaction is one line about a transaction, for people.
func (t *transactions) describeTransaction(n int32) string {
	var parts []string
	steps := t.of(n)
	for i := range steps {
		s := &steps[i]
		x := &t.objects[s.key]
		if i == shownSteps && len(steps) > shownSteps+1 {
			parts = append(parts, fmt.Sprintf("and %d more", len(steps)-shownSteps))
			break
		}
		switch s.does {
		case appends:
			text := fmt.Sprintf("append %d to %s", s.value, x.name)
			if x.offsets != nil && s.at >= 0 {
				text += fmt.Sprintf(" at %d", x.offsets[s.at])
			}
			parts = append(parts, text)
		case asks:
			parts = append(parts, "read "+x.name)
		case reads:
			parts = append(parts, fmt.Sprintf("read %s: %s", x.name, list(x.order[:s.at])))
		case differs:
			parts = append(parts, fmt.Sprintf("read %s: %s", x.name, list(t.odd[t.all[n].first+int32(i)])))
		case finds:
			parts = append(parts, fmt.Sprintf("read %d of %s at %d", s.value, x.name, x.offsets[s.at]))
		case nothing:
			parts = append(parts, fmt.Sprintf("read nothing of %s", x.name))
		}
	}
	result := "no answer"
	switch t.all[n].outcome {
	case histories.OK:
		result = "ok"
	case histories.Fail:
		result = "aborted"
	case histories.Info:
		result = "unknown outcome"
	}
	return strings.Join(parts, ", ") + ": " + result
}

func list(v []int64) string {
	if len(v) > shownSteps {
		return fmt.Sprintf("%d elements up to %s", len(v), strings.Trim(fmt.Sprint(v[len(v)-shownSteps:]), "[]"))
	}
	return fmt.Sprint(v)
}
