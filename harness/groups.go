package harness

import (
	"cmp"
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
	// stormBound is how long a group may go without progress in a storm of rebalances: several rounds that wait for members which are gone, with the sessions of the systems' tests.
	stormBound = 15 * time.Second
	// groupDrainBound bounds the reading of what is left by one member: its join has to outlast the sessions of those that are gone.
	groupDrainBound = 60 * time.Second
)

// prepareGroups makes the clients of the groups.
func (r *run) prepareGroups() {
	if r.Options.Workload != WorkloadGroup {
		return
	}
	session := r.timers.GroupSession
	members := cmp.Or(r.Options.Members, groupMembers)
	c := group.Config{
		Log: r.config, Groups: group.Groups(r.id), Members: members, Static: members / 3, Storm: r.Options.Storm, Before: r.Options.Commit == model.CommitBefore,
		Session: session, Rebalance: session, Heartbeat: session / 8,
	}
	r.groups = group.New(c, r.workload, r.journal)
	if !r.watchedContract().PowerLoss { // else nothing is certain before the end
		r.certain.monitors = groupMonitors(r.contract)
	}
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
	complaints := r.everyGroup(ctx, func(g group.Group, env *sockets.Env) string { return r.groups.Answers(g, env, links, bound) })
	return append(complaints, r.stalls()...)
}

// stalls says which groups went without progress for too long in a storm that no fault disturbed.
func (r *run) stalls() []string {
	if r.groups == nil {
		return nil
	}
	longest, complaints := r.groups.Stalls(time.Duration(r.contract.GroupBoundMS) * time.Millisecond)
	r.facts.GroupsStalledMS = longest.Milliseconds()
	if !r.Options.Storm || len(r.schedule.Faults) > 0 {
		return nil
	}
	return complaints
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

// CheckGroupRun decides all claims of a run of the workload group and has porcupine look at the log. events gives the history each time it is called; the error is that of reading it.
// disagreement is that of porcupine and the exact checkers, nil if they agree.
func CheckGroupRun(events func() iter.Seq2[histories.Event, error], contract model.Contract, facts model.Facts, claims []model.Claim) (a *linearizability.Answer, opinion linearizability.Opinion, disagreement, err error) {
	if a, err = linearizability.CheckGroupRun(events, contract, facts, linearizability.Options{Claims: claims}); err != nil {
		return nil, opinion, nil, err
	}
	opinion, disagreement = linearizability.SecondOpinion(a, linearizability.OpinionOptions{})
	return a, opinion, disagreement, nil
}
