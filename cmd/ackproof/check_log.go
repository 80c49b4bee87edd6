package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"ackproof/harness"
	"ackproof/histories"
	"ackproof/linearizability"
	"ackproof/model"
)

// checkLog judges a log: by the contract of its run, by the one that was given, or as one of a strong configuration.
func checkLog(s *surveyed, f checkFlags) (*checked, error) {
	out := &checked{}
	o := linearizability.Options{Claims: claims(f.claims)}
	for _, c := range o.Claims {
		if known := claims("all"); !slices.Contains(known, c) {
			return nil, usagef("--claims: there is no claim %q of a log, expected all or some of: %s", c, join(known))
		}
	}
	contract, facts, err := contractOf(s, f, &o, out)
	if err != nil {
		return nil, err
	}
	in, err := open(s.path, f.format)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if out.answer, err = linearizability.CheckLog(in.All(), contract, facts, o); err != nil {
		return nil, named(s.path, err)
	}
	opinion, disagreement := linearizability.SecondOpinion(out.answer, linearizability.OpinionOptions{})
	out.Results.SecondOpinion, out.disagreement = opinion.SecondOpinion, disagreement
	if opinion.Skipped > 0 {
		out.Opinion = fmt.Sprintf("%d windows not decided (%s)", opinion.Skipped, opinion.Reason)
	}
	return out, nil
}

// contractOf finds what is demanded of a log and what is known of it beside the history.
func contractOf(s *surveyed, f checkFlags, o *linearizability.Options, out *checked) (c model.Contract, facts model.Facts, err error) {
	plan, facts, ofRun, err := runOf(s)
	if err != nil {
		return c, facts, err
	}
	if ofRun {
		c = plan.Contract
		out.Basis = "the contract and the facts of the run"
		out.Results.System, out.Results.LeaderChanges = plan.Versions.System, facts.LeaderChanges
		if o.Claims == nil {
			o.Claims = plan.Options.Claims
		}
	} else {
		c = model.Contract{System: "unknown", Workload: "log", Partitions: max(1, s.partitions), Replication: 3, MinISR: 2, Acks: -1, Idempotent: true, Dense: f.claims == "all"}
		c = promised(model.LogContract(c), s)
		if facts.DrainComplete = s.drained || f.drained; !facts.DrainComplete {
			facts.DrainReason = "the history does not mark where its drain begins, and --drained was not given"
		}
		o.Floors = model.HistoryFloors()
		out.Basis = "a strong contract: acks=all, idempotence, clean elections"
	}
	if f.contract != "" {
		if c, err = readContract(f.contract); err != nil {
			return c, facts, err
		}
		out.Basis = "the contract " + f.contract
	}
	if f.claims == "all" && !facts.Liveness.Checked {
		o.Claims = nil
		for _, p := range c.Promises {
			o.Claims = append(o.Claims, p.Claim)
		}
		o.Claims = append(o.Claims, model.ReadAfterAck)
	}
	if broken := s.facts().Broken; broken != "" {
		facts.Broken = broken
	}
	return c, facts, nil
}

// runOf reads the plan and the facts of the run whose history.bin this is; ofRun is false for any other history.
func runOf(s *surveyed) (plan harness.Plan, facts model.Facts, ofRun bool, err error) {
	dir := filepath.Dir(s.path)
	if _, err := os.Stat(filepath.Join(dir, "run.json")); err != nil || filepath.Base(s.path) != "history.bin" {
		return plan, facts, false, nil
	}
	if plan, err = harness.LoadPlan(dir); err != nil {
		return plan, facts, true, err
	}
	if plan.Run != fmt.Sprintf("%016x", s.header.Run) {
		return plan, facts, true, fmt.Errorf("%s is of run %016x, expected run %s as the run.json beside it says", s.path, s.header.Run, plan.Run)
	}
	facts, err = harness.LoadFacts(dir)
	return plan, facts, true, err
}

// promised leaves out what no history shows (liveness) and what this one cannot: ends that nobody asked for, and the order of producers that it does not
// tell apart.
func promised(c model.Contract, s *surveyed) model.Contract {
	var kept []model.Promise
	for _, p := range c.Promises {
		switch {
		case p.Claim == model.Liveness:
		case p.Claim == model.VisibleEnd && s.kinds[histories.EndOffset]+s.kinds[histories.StartOffset] == 0:
		case p.Claim == model.Order && !s.ordered && s.operations > 0:
		default:
			kept = append(kept, p)
		}
	}
	c.Promises = kept
	return c
}

// readContract reads a contract; without promises it has those of a log of its configuration.
func readContract(path string) (c model.Contract, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("--contract: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf("--contract %s: byte %d: %w, expected a contract as in run.json", path, d.InputOffset(), err)
	}
	if err := c.Validate(); err != nil {
		return c, fmt.Errorf("--contract %s: %w", path, err)
	}
	if len(c.Promises) == 0 {
		c = model.LogContract(c)
	}
	return c, nil
}
