package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"ackproof/histories"
	"ackproof/linearizability"
	"ackproof/model"
)

// disagreementFile holds both verdicts when porcupine and the exact checkers differ, which is a bug of ackproof.
const disagreementFile = "disagreement.json"

// check stops the system and the journal, decides the claims from the file on the disk, and saves everything: what was judged is what is kept.
func (r *run) check(ctx context.Context) error {
	begin := time.Now()
	r.Observer.Phase("check", 0)
	r.endWatch()
	r.facts.Liveness.Unmet = append(r.endings(), r.facts.Liveness.Unmet...)
	// The ground goes with the system: disks that it holds give the nodes' files back.
	if err := errors.Join(r.system.Stop(), r.backend.Close()); err != nil {
		r.note("stop the system: " + err.Error())
	}
	if err := r.closeHistory(); err != nil {
		return infra("write the history", err)
	}
	r.finishOnline()
	if err := r.settleContract(); err != nil {
		return err
	}
	r.facts.Faults = r.faults
	r.facts.LeaderChanges = r.runner.LeaderChanges()
	if text := noise(r.facts.LeaderChanges, r.faults); text != "" {
		r.note(text)
	}
	r.facts.Broken = strings.Join(r.broken, "; ")

	j, err := r.judge()
	if err != nil {
		return err
	}
	r.seconds.Check = time.Since(begin).Seconds()
	r.assemble(j)
	err = r.save(j)
	if err != nil && r.results.Exit == model.ExitViolated { // a violation outranks it
		r.note(err.Error())
		return nil
	}
	return err
}

// settleContract says what the contract came to by what the faults have done, which only the end tells.
func (r *run) settleContract() error {
	if !r.runner.Exposed() {
		return nil
	}
	r.note("the faults took power or disks while no other copy was whole: what was lost by that is permitted")
	r.contract = r.exposedContract()
	if !r.rescued { // an unclean election takes what it takes
		r.contract.PowerLossUntil = r.runner.ExposedUntil()
	}
	if n := r.contract.PowerLossUntil; n > 0 {
		r.note(fmt.Sprintf("from event %d of the history on all copies were whole again: a record that was sent later and lost is a violation", n))
	}
	return r.savePlan()
}

// exposedContract is what is promised if the faults leave no copy whole.
func (r *run) exposedContract() model.Contract {
	c := r.contract
	c.PowerLoss = true
	return r.Options.extended(model.LogContract(c))
}

// noise tells of elections that no fault can have caused, "" if there was a cause.
func noise(changes int, faults []model.FaultResult) string {
	if changes == 0 || slices.ContainsFunc(faults, func(f model.FaultResult) bool { return f.Effective }) {
		return ""
	}
	return fmt.Sprintf("noise: leaders changed %d times although no fault had an effect; the time-outs of the system may be too short for this machine", changes)
}

// judgement is what both checkers say.
type judgement struct {
	answer       *linearizability.Answer
	opinion      linearizability.Opinion
	disagreement error // nil if they agree
}

// judge reads the history back and decides.
func (r *run) judge() (judgement, error) {
	fail := func(err error) (judgement, error) { return judgement{}, infra("read the history back", err) }
	if r.groups != nil {
		whole := func() iter.Seq2[histories.Event, error] { return gapless(eventsOf(r.dir.file(historyFile))()) }
		answer, opinion, disagreement, err := CheckGroupRun(whole, r.contract, r.facts, r.Options.Claims)
		if err != nil {
			return fail(err)
		}
		return judgement{answer, opinion, disagreement}, nil
	}
	in, err := histories.Open(r.dir.file(historyFile))
	if err != nil {
		return fail(err)
	}
	defer in.Close()
	answer, err := linearizability.CheckLog(gapless(in.All()), r.contract, r.facts, linearizability.Options{Claims: r.Options.Claims})
	if err != nil {
		return fail(err)
	}
	if at, cut := in.Truncated(); cut {
		return fail(fmt.Errorf("%s is cut off at byte %d", r.dir.file(historyFile), at))
	}
	opinion, disagreement := linearizability.SecondOpinion(answer, linearizability.OpinionOptions{})
	return judgement{answer, opinion, disagreement}, nil
}

// assemble fills in the results.
func (r *run) assemble(j judgement) {
	faults := slices.Clone(r.faults)
	if faults == nil {
		faults = []model.FaultResult{}
	}
	a := j.answer
	r.results = model.Results{
		Version: 1, Seed: r.Options.Seed, System: r.system.Info(), Workload: r.Options.Workload, Verdict: a.Verdict(),
		Operations: a.Operations, Records: a.Records, Faults: faults, LeaderChanges: r.facts.LeaderChanges, UnavailableMS: a.UnavailableMS,
		Claims: a.Claims, SecondOpinion: j.opinion.SecondOpinion, Drain: a.Drain, Seconds: r.seconds,
	}
	r.results.Exit = exit(r.results.Verdict, j.disagreement == nil)
	if j.disagreement != nil {
		r.note("a bug of ackproof: " + j.disagreement.Error())
	}
	for _, bug := range []string{r.unconfirmed(a.Verdict()), r.miscounted(a), r.miscountedEffects(a)} {
		if bug != "" {
			r.results.Exit = model.ExitCrash
			r.note("a bug of ackproof: " + bug)
		}
	}
	if j.opinion.Skipped > 0 {
		r.opinion = fmt.Sprintf("%d windows not decided (%s)", j.opinion.Skipped, j.opinion.Reason)
	}
}

// exit is the exit code: a violation outranks a disagreement of the checkers, which is a crash of ackproof, and that outranks everything else.
func exit(v model.Verdict, agreed bool) int {
	if v != model.Violated && !agreed {
		return model.ExitCrash
	}
	return v.Exit()
}

// save writes certificates and results, and keeps of the nodes what a failed run needs. The history is there already.
func (r *run) save(j judgement) error {
	if err := r.dir.saveCertificates(r.results.Claims, r.id); err != nil {
		return infra("save the certificates", err)
	}
	r.facts.Notes = r.allNotes()
	if err := r.dir.writeJSON(factsFile, r.facts); err != nil {
		return infra("save the facts", err)
	}
	if err := r.dir.writeJSON(resultsFile, r.results); err != nil {
		return infra("save the results", err)
	}
	if j.disagreement != nil {
		both := map[string]any{"where": j.disagreement, "exact": j.answer.Claims, "porcupine": j.opinion}
		if err := r.dir.writeJSON(disagreementFile, both); err != nil {
			return infra("save the disagreement", err)
		}
	}
	r.writePage()
	failed := r.results.Exit != model.ExitHeld
	if err := r.dir.keepNodes(r.system.Nodes(), failed); err != nil {
		return infra("keep the logs of the nodes", err)
	}
	return nil
}

// writePage writes report.html. The verdict stands whatever becomes of it.
func (r *run) writePage() {
	defer func() {
		if p := recover(); p != nil {
			r.note(fmt.Sprintf("a bug of ackproof: the page of the run could not be written: %v", p))
		}
	}()
	if _, err := WriteReport(r.dir.path); err != nil {
		r.note("the page of the run could not be written: " + err.Error())
	}
}

// JSON is results.json.
func (o *Outcome) JSON() ([]byte, error) {
	raw, err := json.MarshalIndent(o.Results, "", "  ")
	return append(raw, '\n'), err
}
