package linearizability

import (
	"fmt"
	"iter"
	"slices"

	"ackproof/histories"
	"ackproof/model"
)

// StormRebalances is how often groups must have been shared anew for that to be called a storm.
const StormRebalances = 10

// leastRebalances is how often a group must have been shared anew, for its promises to have been put to the test.
const leastRebalances = 2

// CheckGroupRun decides all claims of a run of consumer groups on a log: those of the log by the log's operations, those of the groups by all of them. events gives the history each
// time it is called; the error is that of reading it. The answer is one that SecondOpinion takes. By floors that ask for faults group-delivery is not tested unless
// the groups were shared anew twice.
func CheckGroupRun(events func() iter.Seq2[histories.Event, error], contract model.Contract, facts model.Facts, o Options) (*Answer, error) {
	ofLog, ofGroups := []model.Claim{}, []model.Claim{}
	claims := o.Claims
	if len(claims) == 0 {
		for _, p := range contract.Promises {
			claims = append(claims, p.Claim)
		}
	}
	for _, c := range claims {
		if c == model.CommitSafety || c == model.GroupDelivery {
			ofGroups = append(ofGroups, c)
		} else {
			ofLog = append(ofLog, c)
		}
	}
	if o.Floors == nil {
		o.Floors = model.TestFloors()
	}
	effects, err := GroupEffects(events())
	if err != nil {
		return nil, err
	}
	if contract.GroupBoundMS > 0 {
		facts.Faults = append(slices.Clone(facts.Faults), model.FaultResult{Kind: model.RebalanceStorm, Effective: effects.Rebalances >= StormRebalances})
	}
	o.Claims = ofLog
	a, err := CheckLog(OfTheLog(events()), contract, facts, o)
	if err != nil {
		return nil, err
	}
	m := MonitorOptions{Claims: ofGroups, Floors: o.Floors, Facts: facts, Places: o.Places, Sparse: !contract.Dense, Drained: facts.GroupsDrained}
	groups, err := CheckGroups(events(), m)
	if err != nil {
		return nil, err
	}
	m.Claims = []model.Claim{model.CommitSafety}
	commits, err := CheckCommits(events(), m)
	if err != nil {
		return nil, err
	}
	ofTest := len(o.Floors[model.GroupDelivery].Faults) > 0
	for _, r := range groups.Claims {
		switch r.ID {
		case model.CommitSafety:
			r = excused(Either(r, commits.Claims[0]), contract, facts, o.Floors)
		case model.GroupDelivery:
			r = withEffects(excused(r, contract, facts, o.Floors), contract, facts, effects)
			if ofTest && effects.Rebalances < leastRebalances && r.Verdict == model.Held {
				r.Verdict, r.Reason = model.NotTested, fmt.Sprintf("rebalances %d of at least %d", effects.Rebalances, leastRebalances)
			}
		}
		a.Claims = append(a.Claims, r)
	}
	a.Operations.OK += groups.Operations.OK
	a.Operations.Fail += groups.Operations.Fail
	a.Operations.Info += groups.Operations.Info
	return a, nil
}

// OfTheLog leaves out what the groups did.
func OfTheLog(events iter.Seq2[histories.Event, error]) iter.Seq2[histories.Event, error] {
	return func(yield func(histories.Event, error) bool) {
		for ev, err := range events {
			if (err != nil || ev.Kind != histories.Object) && !yield(ev, err) {
				return
			}
		}
	}
}

// excused puts what the contract permits of a claim of groups apart from what breaks it; without anything that does, the claim is judged by what was put to the test.
func excused(r model.ClaimResult, c model.Contract, facts model.Facts, floors model.Floors) model.ClaimResult {
	p, _ := c.Promise(r.ID)
	var broken []model.AnomalyResult
	for _, a := range r.Anomalies {
		if because := p.Permits[a.Kind]; because != "" {
			r.Permitted = append(r.Permitted, model.PermittedLoss{Kind: a.Kind, Count: a.Count, Because: because})
			continue
		}
		broken = append(broken, a)
	}
	if r.Verdict == model.Violated && len(broken) == 0 {
		r.Anomalies = broken
		judge(&r, "", facts, floors.Missing(r.ID, r.Evidence, model.Contract{}, facts))
	}
	r.Anomalies = broken
	return r
}

// withEffects adds to group-delivery what became of the records.
func withEffects(r model.ClaimResult, c model.Contract, facts model.Facts, e Effects) model.ClaimResult {
	r.Evidence["rebalances"], r.Evidence["processed"], r.Evidence["processed_again"] = e.Rebalances, e.Processed, e.Repeats
	r.Evidence["stalled_ms"] = facts.GroupsStalledMS
	p, _ := c.Promise(model.GroupDelivery)
	for _, found := range []model.PermittedLoss{{Kind: model.Unprocessed, Count: e.Unprocessed}, {Kind: model.Reprocessed, Count: e.Repeats}} {
		if found.Because = p.Permits[found.Kind]; found.Count > 0 && found.Because != "" && (found.Kind != model.Unprocessed || facts.GroupsDrained) {
			r.Permitted = append(r.Permitted, found)
		}
	}
	if c.Commit == model.CommitAfter && facts.GroupsDrained && e.Unprocessed > 0 && p.Permits[model.Unprocessed] == "" && r.Verdict == model.Held {
		// The group was given it, and committed beyond it: the members of this test have not kept their own order.
		r.Verdict, r.Reason = model.Undecided, fmt.Sprintf("%d acknowledged records were given to members that never processed them, although they commit only what they processed", e.Unprocessed)
	}
	return r
}
