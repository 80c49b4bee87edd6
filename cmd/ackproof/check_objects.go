package main

import (
	"fmt"
	"iter"
	"slices"

	"ackproof/harness"
	"ackproof/histories"
	"ackproof/linearizability"
	"ackproof/model"
)

// checkObjects judges objects other than a partitioned log, by the sequential specification of the model.
func checkObjects(name string) func(s *surveyed, f checkFlags) (*checked, error) {
	return func(s *surveyed, f checkFlags) (*checked, error) {
		promised, optIn := linearizability.ObjectClaims(name)
		asked, err := askedOf(name, f.claims, promised, optIn)
		if err != nil {
			return nil, err
		}
		in, err := open(s.path, f.format)
		if err != nil {
			return nil, err
		}
		defer in.Close()
		out := &checked{}
		out.Basis = "what a " + name + " is"
		if out.answer, err = linearizability.CheckObjects(in.All(), name, linearizability.ObjectOptions{Claims: asked, Facts: s.facts()}); err != nil {
			return nil, named(s.path, err)
		}
		return out, nil
	}
}

// checkTransactions judges lists or logs that transactions append to and read, at the level that was asked for.
func checkTransactions(s *surveyed, f checkFlags) (*checked, error) {
	level, err := linearizability.ParseLevel(f.isolation)
	if err != nil {
		return nil, usagef("--isolation: %v", err)
	}
	o := linearizability.TransactionOptions{Level: level, Interleaved: f.interleaved, Facts: s.facts()}
	if f.claims != "" && f.claims != "all" { // else what such objects promise: of lists that is less than of logs
		if o.Claims, err = askedOf("list-append", f.claims, []model.Claim{model.Serializability, model.Atomicity}, nil); err != nil {
			return nil, err
		}
	}
	in, err := open(s.path, f.format)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	a, err := linearizability.CheckTransactions(in.All(), o)
	if err != nil {
		return nil, named(s.path, err)
	}
	out := &checked{answer: &linearizability.Answer{Claims: a.Claims, Operations: a.Operations}}
	out.Basis = "a promise of transactions that are " + a.Level.String()
	return out, nil
}

// monitored judges by one of the checkers that take MonitorOptions.
func monitored(s *surveyed, f checkFlags, basis string, check func(iter.Seq2[histories.Event, error], linearizability.MonitorOptions) (*linearizability.Answer, error), o linearizability.MonitorOptions) (*checked, error) {
	in, err := open(s.path, f.format)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	o.Facts = s.facts()
	out := &checked{}
	out.Basis = basis
	if out.answer, err = check(in.All(), o); err != nil {
		return nil, named(s.path, err)
	}
	return out, nil
}

// queueClaims are what is asked of queues by default, and what one may ask for besides.
var queueClaims = map[string][2][]model.Claim{
	"queue": {{model.Lease, model.NoPhantom}, {model.NoLoss, model.NoDuplicate}},
	"fifo":  {{model.FIFO, model.NoPhantom, model.NoDuplicate}, {model.NoLoss}},
}

// checkQueue judges queues whose messages have leases or an order.
func checkQueue(name string, check func(iter.Seq2[histories.Event, error], linearizability.MonitorOptions) (*linearizability.Answer, error)) func(s *surveyed, f checkFlags) (*checked, error) {
	return func(s *surveyed, f checkFlags) (*checked, error) {
		promised, basis := queueClaims[name][0], "a queue that hands out with leases, at least once"
		if name == "fifo" {
			basis = "a queue that hands out first what came in first"
		}
		if f.dedupWindow > 0 {
			promised = append(slices.Clone(promised), model.DedupWindow)
			basis += fmt.Sprintf(", and knows an id again for %v", f.dedupWindow)
		}
		asked, err := askedOf(name, f.claims, promised, queueClaims[name][1])
		if err != nil {
			return nil, err
		}
		return monitored(s, f, basis, check, linearizability.MonitorOptions{Claims: asked, Drift: f.drift, Window: int64(f.dedupWindow)})
	}
}

// checkCommits judges committed offsets by what was committed and read back.
func checkCommits(s *surveyed, f checkFlags) (*checked, error) {
	asked, err := askedOf("commits", f.claims, []model.Claim{model.CommitSafety}, nil)
	if err != nil {
		return nil, err
	}
	return monitored(s, f, "a committed offset is a register", linearizability.CheckCommits, linearizability.MonitorOptions{Claims: asked})
}

// checkGroupRun judges the history of a run of the workload group, by its contract and facts.
func checkGroupRun(s *surveyed, f checkFlags, plan harness.Plan, facts model.Facts) (*checked, error) {
	var promised []model.Claim
	for _, p := range plan.Contract.Promises {
		promised = append(promised, p.Claim)
	}
	asked, err := askedOf("groups", f.claims, promised, []model.Claim{model.ReadAfterAck})
	if err != nil {
		return nil, err
	}
	if f.claims == "" && plan.Options.Claims != nil {
		asked = plan.Options.Claims
	}
	if broken := s.facts().Broken; broken != "" {
		facts.Broken = broken
	}
	out := &checked{}
	out.Basis = "the contract and the facts of the run"
	out.Results.System, out.Results.LeaderChanges = plan.Versions.System, facts.LeaderChanges
	var opinion linearizability.Opinion
	if out.answer, opinion, out.disagreement, err = harness.CheckGroupRun(func() iter.Seq2[histories.Event, error] { return eventsOf(s, f) }, plan.Contract, facts, asked); err != nil {
		return nil, named(s.path, err)
	}
	out.Results.SecondOpinion = opinion.SecondOpinion
	if opinion.Skipped > 0 {
		out.Opinion = fmt.Sprintf("%d windows not decided (%s)", opinion.Skipped, opinion.Reason)
	}
	return out, nil
}

// eventsOf reads a history each time it is called.
func eventsOf(s *surveyed, f checkFlags) iter.Seq2[histories.Event, error] {
	return func(yield func(histories.Event, error) bool) {
		in, err := open(s.path, f.format)
		if err != nil {
			yield(histories.Event{}, err)
			return
		}
		defer in.Close()
		in.All()(yield)
	}
}

// checkGroups judges what consumer groups were given and where their members began, and what was read back of their commits.
func checkGroups(s *surveyed, f checkFlags) (*checked, error) {
	plan, facts, ofRun, err := runOf(s)
	if err != nil {
		return nil, err
	}
	if ofRun && plan.Options.Workload == harness.WorkloadGroup && f.contract == "" && !f.drained {
		return checkGroupRun(s, f, plan, facts)
	}
	asked, err := askedOf("groups", f.claims, []model.Claim{model.GroupDelivery, model.CommitSafety}, nil)
	if err != nil {
		return nil, err
	}
	dense := f.claims == "all"
	if f.contract != "" {
		c, err := readContract(f.contract)
		if err != nil {
			return nil, usagef("%v", err)
		}
		dense = c.Dense
	}
	basis := "a group that is given each acknowledged record at least once between commits"
	if dense {
		basis = "a group that is given every offset at least once between commits"
	}
	o := linearizability.MonitorOptions{Claims: asked, Sparse: !dense, Drained: f.drained}
	out, err := monitored(s, f, basis, linearizability.CheckGroups, o)
	if err != nil || !s.does[histories.Committed] || !slices.Contains(asked, model.CommitSafety) {
		return out, err
	}
	o.Claims = []model.Claim{model.CommitSafety}
	commits, err := monitored(s, f, "", linearizability.CheckCommits, o)
	if err != nil {
		return nil, err
	}
	for i := range out.answer.Claims {
		if r := &out.answer.Claims[i]; r.ID == model.CommitSafety {
			*r = linearizability.Either(*r, commits.answer.Claims[0])
		}
	}
	return out, nil
}

// askedOf reads the flag --claims for a model: nothing asks for what is promised, "all" for the rest too.
func askedOf(name, flag string, promised, optIn []model.Claim) ([]model.Claim, error) {
	known := slices.Concat(promised, optIn)
	var asked []model.Claim
	for _, c := range list(flag) {
		switch {
		case c == "all":
			asked = append(asked, known...)
		case slices.Contains(known, model.Claim(c)):
			asked = append(asked, model.Claim(c))
		default:
			return nil, usagef("--claims: there is no claim %q of the model %s, expected all or some of: %s", c, name, join(known))
		}
	}
	if asked == nil {
		return promised, nil
	}
	slices.Sort(asked)
	return slices.Compact(asked), nil
}
