package linearizability

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"ackproof/histories"
	"ackproof/model"
)

// objectFinding is one violation with its proof.
type objectFinding struct {
	h     *objects
	where string // place for lists: the object's key, and the operation
	seq   uint64 // of the operation that it came to light with
	proof model.Certificate
}

// finding begins a proof that comes to light with an operation.
func (h *objects) finding(claim model.Claim, anomaly model.Anomaly, key string, at *action) *objectFinding {
	return &objectFinding{h: h, where: key + "@" + strconv.FormatUint(at.inv, 10), seq: at.inv, proof: model.Certificate{Version: 1, Claim: claim, Anomaly: anomaly, Partition: -1, Offset: -1,
		Object: key, Operations: []model.ProofOp{}}}
}

// op adds an operation with its part in the sentence, unless it is there already.
func (f *objectFinding) op(role string, a *action) {
	if slices.ContainsFunc(f.proof.Operations, func(p model.ProofOp) bool { return p.Op == a.inv }) {
		return
	}
	p := model.ProofOp{Role: role, Op: a.inv, Invoked: int64(a.invTime), Ended: -1, EndSeq: a.end, Process: a.process, What: f.h.of(a)[0].Do.String(), Text: f.h.describe(a)}
	if a.n > 1 {
		p.What = "txn"
	}
	for _, s := range f.h.of(a) {
		p.Steps = append(p.Steps, quoteStep(s))
	}
	if a.end != 0 {
		p.Ended = int64(a.endTime)
	}
	f.proof.Operations = append(f.proof.Operations, p)
}

// about says which value the finding is about.
func (f *objectFinding) about(value string) *objectFinding {
	f.proof.Value = value
	return f
}

// began tells people when an operation began: by the clock, or by the number of the event where the history has no times.
func (h *objects) began(a *action) string { return h.moment(a.invTime, a.inv) }

// over tells when it ended.
func (h *objects) over(a *action) string { return h.moment(a.endTime, a.end) }

func (h *objects) moment(t time.Duration, seq uint64) string {
	if h.timed {
		return stamp(t)
	}
	return "event " + strconv.FormatUint(seq, 10)
}

// describe is one line about an operation, for people.
func (h *objects) describe(a *action) string {
	result := "no answer"
	switch a.outcome {
	case histories.OK:
		return h.deed(a) + ": ok"
	case histories.Fail:
		result = "refused"
	case histories.Info:
		result = "unknown outcome"
	}
	if a.code != 0 {
		result += " (" + strconv.Itoa(int(a.code)) + ")"
	}
	return h.deed(a) + ": " + result
}

// objectFindings collects violations of one kind and keeps the smallest.
type objectFindings struct {
	count int64
	best  *objectFinding
	where []placeOf
}

type placeOf struct {
	seq  uint64
	text string
}

func (fs *objectFindings) add(found ...*objectFinding) {
	for _, f := range found {
		fs.count++
		fs.where = append(fs.where, placeOf{f.seq, f.where})
		if fs.best == nil || cmp.Or(cmp.Compare(len(f.proof.Operations), len(fs.best.proof.Operations)), cmp.Compare(f.seq, fs.best.seq)) < 0 {
			fs.best = f
		}
	}
}

// into puts the findings into a result: all are counted, the smallest is proved, the first are listed.
func (fs *objectFindings) into(r *model.ClaimResult, kind model.Anomaly, places int) {
	if fs.count == 0 {
		return
	}
	slices.SortFunc(fs.where, func(a, b placeOf) int { return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.text, b.text)) })
	a := model.AnomalyResult{Kind: kind, Count: fs.count, Proof: &fs.best.proof}
	for _, w := range fs.where[:min(places, len(fs.where))] {
		a.Where = append(a.Where, w.text)
	}
	r.Anomalies = append(r.Anomalies, a)
}
