package linearizability

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"

	"ackproof/histories"
	"ackproof/model"
	"ackproof/verify"
)

// certificates are the bound certificates of everything that is planted.
func certificates(t *testing.T, each func(t *testing.T, c model.Certificate, events []histories.Event)) {
	for _, planted := range planted {
		s := &script{}
		planted.write(s)
		a := decide(t, s, strong(), whole(), planted.claims...)
		for _, claim := range a.Claims {
			for _, x := range claim.Anomalies {
				t.Run(planted.name+"/"+string(x.Kind), func(t *testing.T) {
					c := *x.Proof
					c.Bind("../history.bin", 7)
					each(t, c, s.events)
				})
			}
		}
	}
}

// TestVerifierAccepts: what the checkers prove is proven.
func TestVerifierAccepts(t *testing.T) {
	certificates(t, func(t *testing.T, c model.Certificate, events []histories.Event) {
		if err := verify.Certificate(c, 7, histories.Events(events)); err != nil {
			raw, _ := json.MarshalIndent(c, "", " ")
			t.Errorf("%v\n%s", err, raw)
		}
	})
}

// TestVerifierRejects: with any one digit changed anywhere, a certificate is rejected; and one of the facts is even if it was sealed anew.
func TestVerifierRejects(t *testing.T) {
	certificates(t, func(t *testing.T, c model.Certificate, events []histories.Event) {
		prose := func(c *model.Certificate) {
			c.Sentence, c.History, c.Seal = "", "", ""
			for i := range c.Operations {
				c.Operations[i].Text = ""
			}
		}
		raw, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		for i, b := range raw {
			if b < '0' || b > '9' {
				continue
			}
			changed := bytes.Clone(raw)
			changed[i] = '0' + (b-'0'+1)%10
			var d model.Certificate
			if json.Unmarshal(changed, &d) != nil {
				continue // no number any more: malformed
			}
			if err := verify.Certificate(d, 7, histories.Events(events)); !errors.Is(err, verify.ErrRejected) {
				t.Errorf("with byte %d changed: %v\n%s", i, err, changed)
			}
			facts, same := d, c
			facts.Operations, same.Operations = append([]model.ProofOp(nil), d.Operations...), append([]model.ProofOp(nil), c.Operations...)
			prose(&facts)
			prose(&same)
			if facts.Sum() == same.Sum() || d.Run != c.Run {
				continue
			}
			d.Bind(d.History, 7)
			if err := verify.Certificate(d, 7, histories.Events(events)); !errors.Is(err, verify.ErrRejected) {
				t.Errorf("with byte %d changed and sealed anew: %v\n%s", i, err, changed)
			}
		}
	})
}

// TestVerifierAcceptsSpoiled: so it is for whatever the checkers find in damaged histories.
func TestVerifierAcceptsSpoiled(t *testing.T) {
	kinds := make(map[model.Anomaly]int)
	for i := range scaled(t, 1500) {
		r := rand.New(rand.NewPCG(12, uint64(i)))
		s := newCluster(r, configuration(i))
		s.run(200)
		if r.IntN(3) == 0 {
			rewrite(r, s)
		} else {
			for range 1 + r.IntN(3) {
				spoil(r, s)
			}
		}
		for _, claim := range decide(t, &s.script, s.c, whole(), model.ReadAfterAck).Claims {
			for _, x := range claim.Anomalies {
				c := *x.Proof
				c.Bind("../history.bin", 7)
				kinds[x.Kind]++
				if err := verify.Certificate(c, 7, histories.Events(s.events)); err != nil {
					raw, _ := json.MarshalIndent(c, "", " ")
					t.Errorf("history %d: %v\n%s", i, err, raw)
				}
			}
		}
		if t.Failed() {
			return
		}
	}
	if len(kinds) < 14 {
		t.Errorf("certificates of %v only: they prove little", kinds)
	}
}

// logParts are the anomalies under each claim of a log, and the parts that operations play in their certificates.
var logParts = map[model.Claim][]model.Anomaly{
	model.NoLoss: {model.LostAcked}, model.AtLeastOnce: {model.Undelivered, model.PollSkip}, model.SessionReads: {model.NonmonotonicPoll}, model.Order: {model.Reordered},
	model.RealTimeOrder: {model.ReorderedRealtime}, model.OffsetAgreement: {model.InconsistentOffset, model.ReplicaDivergence, model.UnfillableGap},
	model.NoPhantom: {model.Phantom, model.FutureRead, model.CorruptValue, model.ForeignRecord}, model.NoDirtyRead: {model.DirtyRead}, model.NoDuplicate: {model.Duplicate},
	model.VisibleEnd: {model.StaleEndOffset, model.StartOffsetBackwards, model.StartAboveHW}, model.ReadAfterAck: {model.StaleRead},
}

// TestVerifierAcceptsNothingOfLegalLogs: where everything holds no certificate breaks it, whatever operations it quotes in whatever part.
func TestVerifierAcceptsNothingOfLegalLogs(t *testing.T) {
	roles := []string{"write", "final", "end", "reader", "before", "after", "later", "earlier", "late", "known", "copy", "other", "stale", "witness", "first", "second"}
	tried := make(map[model.Claim]int)
	for n := range scaled(t, 60) {
		r := rand.New(rand.NewPCG(23, uint64(n)))
		s := newCluster(r, configuration(n))
		s.run(100)
		a := decide(t, &s.script, s.c, whole(), model.ReadAfterAck)
		if s.c.Acks != -1 || !s.c.Idempotent || s.c.Unclean || a.Verdict() == model.Violated || len(a.log.parts) == 0 { // what a contract permits can be proven all the same
			continue
		}
		for _, claim := range a.Claims {
			for range 10 {
				anomalies, p := logParts[claim.ID], a.log.parts[r.IntN(len(a.log.parts))]
				if claim.Verdict != model.Held || anomalies == nil || len(p.at) == 0 {
					continue
				}
				f := finding{claim: claim.ID, anomaly: anomalies[r.IntN(len(anomalies))], part: p, offset: p.base + r.Int64N(int64(len(p.at))+1), record: none, other: none}
				if i := f.offset - p.base; i < int64(len(p.at)) && r.IntN(2) == 0 {
					f.record = p.at[i]
				}
				c := &certificate{t: a.log.tally, f: f, Certificate: model.Certificate{Version: 1, Claim: f.claim, Anomaly: f.anomaly, Partition: p.number, Offset: f.offset}}
				for range 1 + r.IntN(4) {
					of := &p.appends
					if of.size() == 0 || p.others.size() > 0 && r.IntN(2) == 0 {
						of = &p.others
					}
					c.op(roles[r.IntN(len(roles))], of.number(r.IntN(of.size())))
				}
				c.Bind("history.bin", 7)
				tried[claim.ID]++
				if err := verify.Certificate(c.Certificate, 7, histories.Events(s.events)); !errors.Is(err, verify.ErrRejected) {
					raw, _ := json.MarshalIndent(c.Certificate, "", " ")
					t.Fatalf("history %d: %v\n%s", n, err, raw)
				}
			}
		}
	}
	t.Logf("%v", tried)
	if len(tried) < len(logParts)-2 {
		t.Errorf("certificates of %v only: they prove little", tried)
	}
}
