package harness

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"ackproof/histories"
	"ackproof/linearizability"
	"ackproof/model"
	"ackproof/workloads/group"
	"ackproof/workloads/sockets"
)

// What a test of consumer groups has besides that of the log that they read.

// WorkloadGroup is the name of the workload of consumer groups.
const WorkloadGroup = "group"

const (
	groupMembers = 3
	// groupDrainBound bounds the reading of what is left by one member: its join has to outlast the sessions of those that are gone.
	groupDrainBound = 60 * time.Second
	// leastRebalances is how often a group must have been shared anew, for its promises to have been put to the test.
	leastRebalances = 2
)

// prepareGroups makes the clients of the groups.
func (r *run) prepareGroups() {
	if r.Options.Workload != WorkloadGroup {
		return
	}
	session := r.timers.GroupSession
	c := group.Config{
		Log: r.config, Groups: group.Groups(r.id), Members: groupMembers, Before: r.Options.Commit == model.CommitBefore,
		Session: session, Rebalance: session, Heartbeat: session / 8,
	}
	r.groups = group.New(c, r.workload, r.journal)
	r.certain.monitors = groupMonitors(r.contract)
	r.journal.Tap(r.watchGroups)
}

// groupMonitors are the online checkers of groups.
func groupMonitors(c model.Contract) []linearizability.Monitor {
	o := linearizability.MonitorOptions{Sparse: !c.Dense}
	return []linearizability.Monitor{linearizability.NewGroupMonitor(o), linearizability.NewCommitMonitor(o)}
}

// watchGroups is watchLog for the checkers of groups.
func (r *run) watchGroups(ev histories.Event) {
	c := &r.certain
	if c.proof != nil || c.monitors == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			c.monitors = nil
			r.died("the online checker of groups", p)
		}
	}()
	for _, m := range c.monitors {
		proof, err := m.Step(&ev)
		if err != nil {
			panic(err) // the recorder writes nothing of the kind
		}
		if proof == nil || c.proof != nil || !r.asked(proof.Claim) {
			continue
		}
		c.proof = proof
		r.note(fmt.Sprintf("a violation is certain %.1f s into the run: %s, %s in %s", ev.Time.Seconds(), proof.Claim, proof.Anomaly, proof.Object))
		r.reach()
	}
}

// asked tells whether a claim is asked for.
func (r *run) asked(c model.Claim) bool {
	return len(r.Options.Claims) == 0 || slices.Contains(r.Options.Claims, c)
}

// groupsAnswer demands that every group has a coordinator that tells its committed offsets; it returns what does not work when the bound has passed.
func (r *run) groupsAnswer(ctx context.Context, links map[int32]string, bound time.Duration) []string {
	return r.everyGroup(ctx, func(g group.Group, env *sockets.Env) string { return r.groups.Answers(g, env, links, bound) })
}

// drainGroups lets every group read on to the end.
func (r *run) drainGroups(ctx context.Context, links map[int32]string) {
	if r.groups == nil {
		return
	}
	reasons := r.everyGroup(ctx, func(g group.Group, env *sockets.Env) string { return r.groups.Drain(g, env, links, groupDrainBound) })
	r.facts.GroupsDrained, r.facts.GroupsReason = len(reasons) == 0, strings.Join(reasons, "; ")
	if r.facts.GroupsReason != "" {
		r.note("the groups did not read to the end: " + r.facts.GroupsReason)
	}
}

// everyGroup visits all groups at once and gives what they complain of, in their order.
func (r *run) everyGroup(ctx context.Context, do func(group.Group, *sockets.Env) string) (complaints []string) {
	if r.groups == nil {
		return nil
	}
	all := group.Groups(r.id)
	said := make([]string, len(all))
	var wg sync.WaitGroup
	for i, g := range all {
		wg.Go(func() {
			said[i] = "the visitor to " + g.Name + " died"
			r.guard("the visitor to "+g.Name, func() {
				said[i] = do(g, r.env(0, ctx, make(chan struct{}), 1<<41+uint64(i)))
			})
		})
	}
	wg.Wait()
	return slices.DeleteFunc(said, func(s string) bool { return s == "" })
}

// miscountedEffects says that the check has not seen what the sink was given, "" if it has.
func (r *run) miscountedEffects(a *linearizability.Answer) string {
	if r.groups == nil {
		return ""
	}
	applied, repeats := r.groups.Sink().Counts()
	for _, c := range a.Claims {
		if e := c.Evidence; c.ID == model.GroupDelivery && (e["processed"] != applied || e["processed_again"] != repeats) {
			return fmt.Sprintf("the sink took %d records and %d again, the check knows of %d and %d", applied, repeats, e["processed"], e["processed_again"])
		}
	}
	return ""
}

// CheckGroupRun decides all claims of a run of the workload group: those of the log by the log's operations, those of the groups by all of them. events gives the history each time it
// is called. The error is that of reading it; disagreement is that of porcupine and the exact checkers, nil if they agree.
func CheckGroupRun(events func() iter.Seq2[histories.Event, error], contract model.Contract, facts model.Facts, claims []model.Claim) (a *linearizability.Answer, opinion linearizability.Opinion, disagreement, err error) {
	ofLog, ofGroups := []model.Claim{}, []model.Claim{}
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
	if a, err = linearizability.CheckLog(ofTheLog(events()), contract, facts, linearizability.Options{Claims: ofLog}); err != nil {
		return nil, opinion, nil, err
	}
	opinion, disagreement = linearizability.SecondOpinion(a, linearizability.OpinionOptions{})
	o := linearizability.MonitorOptions{Claims: ofGroups, Floors: model.TestFloors(), Facts: facts, Sparse: !contract.Dense, Drained: facts.GroupsDrained}
	groups, err := linearizability.CheckGroups(events(), o)
	if err != nil {
		return nil, opinion, nil, err
	}
	o.Claims = []model.Claim{model.CommitSafety}
	commits, err := linearizability.CheckCommits(events(), o)
	if err != nil {
		return nil, opinion, nil, err
	}
	effects, err := linearizability.GroupEffects(events())
	if err != nil {
		return nil, opinion, nil, err
	}
	for _, r := range groups.Claims {
		switch r.ID {
		case model.CommitSafety:
			r = linearizability.Either(r, commits.Claims[0])
		case model.GroupDelivery:
			r = withEffects(r, contract, facts, effects)
		}
		a.Claims = append(a.Claims, r)
	}
	a.Operations.OK += groups.Operations.OK
	a.Operations.Fail += groups.Operations.Fail
	a.Operations.Info += groups.Operations.Info
	return a, opinion, disagreement, nil
}

// ofTheLog leaves out what the groups did.
func ofTheLog(events iter.Seq2[histories.Event, error]) iter.Seq2[histories.Event, error] {
	return func(yield func(histories.Event, error) bool) {
		for ev, err := range events {
			if (err != nil || ev.Kind != histories.Object) && !yield(ev, err) {
				return
			}
		}
	}
}

// withEffects adds to group-delivery what became of the records, and asks for rebalances.
func withEffects(r model.ClaimResult, c model.Contract, facts model.Facts, e linearizability.Effects) model.ClaimResult {
	r.Evidence["rebalances"], r.Evidence["processed"], r.Evidence["processed_again"] = e.Rebalances, e.Processed, e.Repeats
	if e.Rebalances < leastRebalances && r.Verdict == model.Held {
		r.Verdict, r.Reason = model.NotTested, fmt.Sprintf("rebalances %d of at least %d", e.Rebalances, leastRebalances)
	}
	p, _ := c.Promise(model.GroupDelivery)
	for _, found := range []model.PermittedLoss{{Kind: model.Unprocessed, Count: e.Unprocessed}, {Kind: model.Reprocessed, Count: e.Repeats}} {
		if found.Because = p.Permits[found.Kind]; found.Count > 0 && found.Because != "" && (found.Kind != model.Unprocessed || facts.GroupsDrained) {
			r.Permitted = append(r.Permitted, found)
		}
	}
	if c.Commit == model.CommitAfter && facts.GroupsDrained && e.Unprocessed > 0 && r.Verdict == model.Held {
		// The group was given it, and committed beyond it: the members of this test have not kept their own order.
		r.Verdict, r.Reason = model.Undecided, fmt.Sprintf("%d acknowledged records were given to members that never processed them, although they commit only what they processed", e.Unprocessed)
	}
	return r
}
