package linearizability

import (
	"fmt"
	"slices"
	"time"

	"ackproof/histories"
	"ackproof/model"
)

func (h *history) check(c model.Contract, facts model.Facts, o Options) (*Answer, error) {
	if o.Floors == nil {
		o.Floors = model.TestFloors()
	}
	if o.Places <= 0 {
		o.Places = 20
	}
	if o.Claims == nil {
		for _, p := range c.Promises {
			o.Claims = append(o.Claims, p.Claim)
		}
	}
	t := newTally(h, c)
	a := &Answer{Operations: h.counts, UnavailableMS: h.unavailable(), log: h}
	copies := make(map[place]bool)
	for _, p := range h.parts {
		if err := h.extent(p); err != nil {
			return nil, err
		}
		h.settle(p, t, facts.DrainComplete, facts.DrainReason)
		h.readSessions(p, t)
		b := h.upper(p, t, noFuture)
		h.sweep(p, t, b)
		h.fill(p, t, b)
		if slices.Contains(o.Claims, model.ReadAfterAck) {
			h.stale(p, t, b)
		}
		h.ends(p, t)
		if p.complete {
			a.Drain.Partitions++
		}
		for _, q := range h.ops.of(&p.others, p.drain) {
			if q.kind == histories.CopyRead && p.final(q) && h.reach(q) >= p.end {
				copies[place{p.number, int64(q.node)}] = true
			}
		}
	}
	ordered, unordered := h.producerOrder(t)
	a.Records = t.records
	a.Drain.ReplicasRead = max(facts.CopiesRead, len(copies))
	a.Drain.Complete = facts.DrainComplete && a.Drain.Partitions == len(h.parts) && len(h.parts) > 0
	for _, claim := range o.Claims {
		r := model.ClaimResult{ID: claim, Evidence: map[string]int64{}, Anomalies: []model.AnomalyResult{}, Permitted: []model.PermittedLoss{}}
		undecided := t.evidence(&r, facts, ordered, unordered)
		t.anomalies(&r, o.Places)
		judge(&r, undecided, facts, o.Floors.Missing(claim, r.Evidence, c, facts))
		a.Claims = append(a.Claims, r)
	}
	a.log.tally = t
	return a, nil
}

// judge gives the verdict: violated > undecided > not tested > held.
func judge(r *model.ClaimResult, undecided string, facts model.Facts, missing string) {
	switch {
	case len(r.Anomalies) > 0:
		r.Verdict = model.Violated
	case facts.Broken != "":
		r.Verdict, r.Reason = model.Undecided, "the harness broke: "+facts.Broken
	case undecided != "":
		r.Verdict, r.Reason = model.Undecided, undecided
	case missing != "":
		r.Verdict, r.Reason = model.NotTested, missing
	default:
		r.Verdict = model.Held
	}
}

// evidence fills in what was looked at for a claim, and says what stays undecided.
func (t *tally) evidence(r *model.ClaimResult, facts model.Facts, ordered, unordered int64) (undecided string) {
	e := r.Evidence
	switch r.ID {
	case model.NoLoss:
		e["acked"], e["read_back"], e["trimmed"] = t.records.Acked, t.readBack, t.trimmed
		if t.openAcks > 0 {
			undecided = t.whyUnread(t.openAcks, "acknowledged")
		}
	case model.AtLeastOnce:
		e["acked"], e["readers"], e["records"] = t.records.Acked, t.readers, t.seen
		if n := len(t.readerless); n > 0 {
			p := t.readerless[0]
			undecided = fmt.Sprintf("%d partitions have no reader that went from start to end, the first is %s", n, p.name())
			if !p.complete {
				undecided += " (" + p.why + ")"
			}
		}
	case model.SessionReads:
		e["sessions"], e["reads"], e["records"] = t.sessions, t.reads, t.seen
	case model.Order:
		e["producers"], e["records"] = int64(len(t.h.producers.keys)), ordered
	case model.RealTimeOrder:
		e["appends"], e["offsets"] = t.appends, t.offsets
	case model.OffsetAgreement:
		e["acked"], e["compared"], e["copies"] = t.records.Acked, t.compared, int64(facts.CopiesRead)
		switch {
		case facts.CopiesRead < facts.CopiesWanted:
			undecided = fmt.Sprintf("%d of %d copies were read to their end", facts.CopiesRead, facts.CopiesWanted)
			if facts.DrainReason != "" {
				undecided += " (" + facts.DrainReason + ")"
			}
		case t.holes > 0:
			undecided = fmt.Sprintf("%d unread offsets, which only batches of unknown outcome could fill", t.holes)
		}
	case model.NoPhantom:
		e["records"] = t.records.Read
	case model.NoDirtyRead:
		e["read_early"] = t.readEarly
		if t.openReads > 0 {
			undecided = t.whyUnread(t.openReads, "read")
		}
	case model.NoDuplicate:
		e["records"] = ordered + unordered
	case model.VisibleEnd:
		e["answers"] = t.answers
	case model.ReadAfterAck:
		e["appends"], e["reads"] = t.appends, t.staleReads
	case model.Liveness:
		e["bound_ms"], e["took_ms"] = facts.Liveness.BoundMS, facts.Liveness.TookMS
		if !facts.Liveness.Checked {
			undecided = "progress after healing was not watched"
		}
		for range facts.Liveness.Unmet {
			e["unmet"]++
		}
		n := e["unmet"]
		switch because := t.contract.Permitted(model.Liveness, model.UnavailableAfterHeal, true); {
		case n > 0 && because != "":
			r.Permitted = append(r.Permitted, model.PermittedLoss{Kind: model.UnavailableAfterHeal, Count: n, Because: because})
		case n > 0:
			r.Anomalies = append(r.Anomalies, unavailable(facts.Liveness, n))
		}
	default:
		undecided = "this checker does not decide the claim"
	}
	return undecided
}

func unavailable(l model.Recovery, n int64) model.AnomalyResult {
	return model.AnomalyResult{Kind: model.UnavailableAfterHeal, Count: n, Where: l.Unmet, Proof: &model.Certificate{
		Version: 1, Claim: model.Liveness, Anomaly: model.UnavailableAfterHeal, Partition: -1, Offset: -1, Value: l.Unmet[0], WithinNS: l.BoundMS * int64(time.Millisecond), Operations: []model.ProofOp{},
		Sentence: fmt.Sprintf("%d ms after everything was healed %s.", l.BoundMS, l.Unmet[0]),
	}}
}

// whyUnread says for how many records, and in which partition first, the final log is not known far enough.
func (t *tally) whyUnread(n int64, what string) string {
	var first *part
	for p := range t.unread {
		if first == nil || p.number < first.number {
			first = p
		}
	}
	why := first.why
	if why == "" {
		why = fmt.Sprintf("the final read of %s began before they were %s", first.name(), what)
	}
	return fmt.Sprintf("%d %s records in %d partitions were neither found nor ruled out: %s", n, what, len(t.unread), why)
}

// anomalies turns the findings under a claim into results, violations and permitted ones apart, in the order of their names.
func (t *tally) anomalies(r *model.ClaimResult, places int) {
	var keys []findingKey
	for k := range t.found {
		if k.claim == r.ID {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b findingKey) int {
		if a.anomaly != b.anomaly {
			return cmpString(string(a.anomaly), string(b.anomaly))
		}
		return cmpString(a.because, b.because)
	})
	for _, k := range keys {
		b := t.found[k]
		if k.because != "" {
			r.Permitted = append(r.Permitted, model.PermittedLoss{Kind: k.anomaly, Count: b.count, Because: k.because})
			continue
		}
		slices.SortFunc(b.places, place.compare)
		result := model.AnomalyResult{Kind: k.anomaly, Count: b.count, Proof: t.prove(b.first)}
		for _, at := range b.places[:min(places, len(b.places))] {
			where := fmt.Sprintf("p%d@%d", at.partition, at.offset)
			if at.offset < 0 {
				where = fmt.Sprintf("p%d", at.partition)
			}
			result.Where = append(result.Where, where)
		}
		r.Anomalies = append(r.Anomalies, result)
	}
}

func cmpString(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// outage is the longest time without an acknowledged record, as it is found while the history is read.
type outage struct {
	since   time.Duration // the last acknowledgement, or the beginning of the load
	longest time.Duration
	last    time.Duration // anything of an append, −1: there was none
}

func (u *outage) acked(at time.Duration) {
	u.longest = max(u.longest, at-u.since)
	u.since = max(u.since, at)
}

// unavailable gives, for each partition, the longest time without an acknowledged record, from the beginning of the load to the last append.
func (h *history) unavailable() map[string]int64 {
	out := map[string]int64{"max": 0}
	for _, p := range h.parts {
		if p.outage.last < 0 {
			continue
		}
		ms := max(p.outage.longest, p.outage.last-p.outage.since).Milliseconds()
		out[p.name()] = ms
		out["max"] = max(out["max"], ms)
	}
	return out
}
