package linearizability

import (
	"fmt"
	"iter"
	"slices"

	"ackproof/histories"
	"ackproof/model"
)

// MonitorOptions are those of the checkers of groups and work queues. The zero value asks for what each of them can decide by default.
type MonitorOptions struct {
	Claims []model.Claim // what is asked for; nil: the claims that the checker names as its default
	Floors model.Floors  // nil: model.GroupFloors
	Facts  model.Facts   // what the harness knows besides
	Places int           // places listed per anomaly; 0: 20

	Drift  float64 // work queues: a lease may last shorter, a deduplication window too, by this part of its length (0.01: one per cent)
	Window int64   // FIFO: length of the deduplication window in ns; 0: none is promised
	// Sparse, of groups: offsets may have no record (transactions, compaction), so only those are due that were acknowledged or delivered.
	// Drained: after all was acknowledged the group read on until it was given nothing more, so that what it has not been given by the end it never is.
	Sparse, Drained bool
}

func (o *MonitorOptions) fill(claims ...model.Claim) {
	if o.Places <= 0 {
		o.Places = 20
	}
	if o.Floors == nil {
		o.Floors = model.GroupFloors()
	}
	if o.Claims == nil {
		o.Claims = claims
	}
}

// Monitor is a checker that runs along with a test: one call per event, in the order of the journal, from one goroutine.
type Monitor interface {
	// Step takes the next event. The certificate is the first of its kind of anomaly, nil if the event brought none. The error is an
	// histories.ErrMalformed, never a verdict.
	Step(ev *histories.Event) (*model.Certificate, error)
	// Finish answers for all that was seen. Nothing may be stepped after it.
	Finish(facts model.Facts) *Answer
}

// replay feeds a whole history to a monitor, behind the validator.
func replay(events iter.Seq2[histories.Event, error], step func(*histories.Event) error) error {
	join := histories.NewJoiner()
	for ev, err := range events {
		if err != nil {
			return err
		}
		if _, err := join.Join(&ev); err != nil {
			return err
		}
		if err := step(&ev); err != nil {
			return err
		}
	}
	return nil
}

// ledger collects what a monitor finds.
type ledger struct {
	found     map[charge]*charges
	evidence  map[model.Claim]map[string]int64
	unsettled map[model.Claim][]string // why a claim is undecided
	fresh     *model.Certificate       // the first of its kind, since the last look
}

type charge struct {
	claim   model.Claim
	anomaly model.Anomaly
}

type charges struct {
	count int64
	where []string
	proof *model.Certificate
}

// role is one operation of a proof and what it does there.
type role struct {
	name string
	op   *stepped
}

// add notes one anomaly. The first of its kind in the order of the journal is the one that is proved.
func (l *ledger) add(claim model.Claim, anomaly model.Anomaly, key string, offset int64, sentence func() string, roles ...role) {
	if l.found == nil {
		l.found = make(map[charge]*charges)
	}
	c := l.found[charge{claim, anomaly}]
	if c == nil {
		c = &charges{proof: &model.Certificate{Version: 1, Claim: claim, Anomaly: anomaly, Partition: -1, Offset: offset, Object: key, Sentence: sentence(), Operations: []model.ProofOp{}}}
		for _, r := range roles {
			if r.op != nil && !slices.ContainsFunc(c.proof.Operations, func(p model.ProofOp) bool { return p.Op == r.op.inv && p.Steps[0] == quoteStep(r.op.Step) }) {
				c.proof.Operations = append(c.proof.Operations, r.op.proof(r.name))
			}
		}
		l.found[charge{claim, anomaly}] = c
		if l.fresh == nil {
			l.fresh = c.proof
		}
	}
	c.count++
	if len(c.where) < placesKept {
		where := named(key)
		if offset >= 0 {
			where = fmt.Sprintf("%s@%d", where, offset)
		}
		c.where = append(c.where, where)
	}
}

// named names an object in a sentence.
func named(key string) string {
	if key == "" {
		return "the queue"
	}
	return key
}

// take gives the certificate that the last event brought.
func (l *ledger) take() *model.Certificate {
	c := l.fresh
	l.fresh = nil
	return c
}

func (l *ledger) count(claim model.Claim, what string, n int64) {
	if l.evidence == nil {
		l.evidence = make(map[model.Claim]map[string]int64)
	}
	if l.evidence[claim] == nil {
		l.evidence[claim] = make(map[string]int64)
	}
	l.evidence[claim][what] += n
}

// undecided notes why a claim cannot be decided: the first few reasons are told.
func (l *ledger) undecided(claim model.Claim, why string) {
	if l.unsettled == nil {
		l.unsettled = make(map[model.Claim][]string)
	}
	if len(l.unsettled[claim]) < placesKept {
		l.unsettled[claim] = append(l.unsettled[claim], why)
	}
}

// answer judges the claims that were asked for; can are those that the checker decides.
func (l *ledger) answer(o *MonitorOptions, counts model.Operations, can ...model.Claim) *Answer {
	a := &Answer{Operations: counts, log: &history{}}
	for _, claim := range o.Claims {
		r := model.ClaimResult{ID: claim, Evidence: map[string]int64{}, Anomalies: []model.AnomalyResult{}, Permitted: []model.PermittedLoss{}}
		for what, n := range l.evidence[claim] {
			r.Evidence[what] = n
		}
		for key, c := range l.found {
			if key.claim == claim {
				where := slices.Compact(slices.Clone(c.where))
				r.Anomalies = append(r.Anomalies, model.AnomalyResult{Kind: key.anomaly, Count: c.count, Proof: c.proof, Where: where[:min(o.Places, len(where))]})
			}
		}
		slices.SortFunc(r.Anomalies, func(a, b model.AnomalyResult) int { return cmpString(string(a.Kind), string(b.Kind)) })
		why := ""
		switch n := len(l.unsettled[claim]); {
		case !slices.Contains(can, claim):
			why = "this checker does not decide the claim"
		case n == 1:
			why = l.unsettled[claim][0]
		case n > 1:
			why = fmt.Sprintf("%s; and %d more of the kind", l.unsettled[claim][0], n-1)
		}
		judge(&r, why, o.Facts, o.Floors.Missing(claim, r.Evidence, model.Contract{}, o.Facts))
		a.Claims = append(a.Claims, r)
	}
	return a
}

// stretches is a set of numbers, kept as closed intervals: dense sets cost next to nothing.
type stretches struct{ from, to []int64 }

func (s *stretches) find(n int64) (i int, has bool) {
	i, _ = slices.BinarySearch(s.to, n) // the first that ends at n or behind it
	return i, i < len(s.to) && s.from[i] <= n
}

func (s *stretches) has(n int64) bool {
	_, has := s.find(n)
	return has
}

// add puts [from, to] into the set.
func (s *stretches) add(from, to int64) {
	if from > to {
		return
	}
	i, _ := slices.BinarySearch(s.to, from-1) // the first that touches or lies behind
	j := i
	for j < len(s.to) && s.from[j] <= to+1 {
		from, to = min(from, s.from[j]), max(to, s.to[j])
		j++
	}
	s.from = slices.Replace(s.from, i, j, from)
	s.to = slices.Replace(s.to, i, j, to)
}

// missing gives the first stretch within [from, to] that the set lacks.
func (s *stretches) missing(from, to int64) (first, last int64, any bool) {
	for i, _ := s.find(from); from <= to; i++ {
		if i >= len(s.to) || s.from[i] > from {
			last = to
			if i < len(s.to) {
				last = min(to, s.from[i]-1)
			}
			return from, last, true
		}
		from = s.to[i] + 1
	}
	return 0, 0, false
}

// names is a set of unique values that end in a number ("c3-17", 17): each prefix has its numbers in stretches.
type names map[string]*stretches

// split cuts a name before its trailing digits. A name without a number, or with leading zeros in it, is its own prefix.
func split(d histories.Datum) (prefix string, n int64) {
	if d.Form == histories.Int {
		return "", d.Int
	}
	text := datum(d)
	if d.Form == histories.Text {
		text = d.Text
	}
	i := len(text)
	for i > 0 && text[i-1] >= '0' && text[i-1] <= '9' {
		i--
	}
	if i == len(text) || text[i] == '0' && len(text)-i > 1 || len(text)-i > 18 {
		return "=" + text, 0
	}
	for _, digit := range []byte(text[i:]) {
		n = n*10 + int64(digit-'0')
	}
	return "-" + text[:i], n
}

func (s names) add(d histories.Datum) {
	prefix, n := split(d)
	if s[prefix] == nil {
		s[prefix] = &stretches{}
	}
	s[prefix].add(n, n)
}

func (s names) has(d histories.Datum) bool {
	prefix, n := split(d)
	return s[prefix] != nil && s[prefix].has(n)
}
