package harness

import (
	"bytes"
	"iter"
	"slices"
	"strings"
	"testing"

	"ackproof/histories"
	"ackproof/model"
)

// told is a journal in memory.
type told struct {
	*histories.Recorder
	buffer bytes.Buffer
}

func newTold() *told {
	t := &told{}
	t.Recorder = histories.NewRecorder(&t.buffer, histories.Header{Run: 1})
	return t
}

// does records a whole operation on groups; what is found is what was asked for.
func (j *told) does(process int32, steps ...histories.Step) { does(j.Recorder, process, steps...) }

func does(j *histories.Recorder, process int32, steps ...histories.Step) {
	event := histories.Event{Kind: histories.Object, Process: process, Steps: steps}
	event.Op = j.Invoke(event)
	event.Type = histories.OK
	j.Complete(event)
}

func (j *told) appended(n int32) {
	event := histories.Event{Kind: histories.Append, Process: 1, Runs: []histories.Run{{Producer: 1, Count: n}}}
	event.Op = j.Invoke(event)
	event.Type, event.Offset = histories.OK, 0
	j.Complete(event)
}

func (j *told) events(t *testing.T) func() iter.Seq2[histories.Event, error] {
	t.Helper()
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	return func() iter.Seq2[histories.Event, error] {
		in, err := histories.NewReader(bytes.NewReader(j.buffer.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		return in.All()
	}
}

func step(do histories.Do, offset, number int64) histories.Step {
	return histories.Step{Do: do, Key: "g/0", Offset: offset, Number: number}
}

func groupContract(commit string) model.Contract {
	return model.GroupContract(model.LogContract(model.Contract{Partitions: 1, Replication: 3, MinISR: 2, Acks: -1, Idempotent: true, Dense: true}), commit)
}

// faulty are the facts of a run whose faults had an effect.
func faulty(drained bool) model.Facts {
	return model.Facts{Faults: []model.FaultResult{{Kind: "kill", Effective: true}}, LeaderChanges: 3, GroupsDrained: drained}
}

// shared is a history in which a group is shared anew so often, and of which the last ten records are given and committed but not processed.
func shared(generations int64) *told {
	j := newTold()
	j.appended(200)
	process := int32(10)
	for g := range generations {
		process++
		j.does(process, step(histories.Assigned, g*10, g+1))
		j.does(process, step(histories.Delivered, g*10, 10))
		j.does(process, step(histories.Processed, g*10, 10))
		j.does(process, step(histories.Commit, g*10+10, g+1))
		j.does(process, step(histories.Revoked, 0, g+1))
	}
	process++
	j.does(process, step(histories.Assigned, generations*10, generations+1))
	j.does(process, step(histories.Delivered, generations*10, 200-generations*10))
	j.does(process, step(histories.Processed, generations*10, 190-generations*10))
	j.does(process, step(histories.Commit, 200, generations+1))
	return j
}

func judgeGroups(t *testing.T, j *told, c model.Contract, f model.Facts, claims ...model.Claim) (found []model.ClaimResult) {
	t.Helper()
	a, _, disagreement, err := CheckGroupRun(j.events(t), c, f, claims)
	if err != nil || disagreement != nil {
		t.Fatal(err, disagreement)
	}
	return a.Claims
}

func TestARunOfGroupsIsAskedForAllOfItsContract(t *testing.T) {
	c := groupContract(model.CommitBefore)
	found := judgeGroups(t, shared(6), c, faulty(true))
	if len(found) != len(c.Promises) || len(found) != 13 {
		t.Fatalf("%d claims, expected those of the log and of groups", len(found))
	}
	delivery := found[12]
	if delivery.ID != model.GroupDelivery || delivery.Verdict != model.Held || delivery.Evidence["rebalances"] != 6 || delivery.Evidence["processed"] != 190 {
		t.Errorf("%+v, expected group-delivery to hold with 6 rebalances and 190 records processed", delivery)
	}
	if want := []model.PermittedLoss{{Kind: model.Unprocessed, Count: 10, Because: c.Promises[12].Permits[model.Unprocessed]}}; !slices.Equal(delivery.Permitted, want) {
		t.Errorf("permitted %+v, expected %+v", delivery.Permitted, want)
	}
	one := judgeGroups(t, shared(6), c, faulty(true), model.CommitSafety)
	if len(one) != 1 || one[0].ID != model.CommitSafety {
		t.Errorf("%+v, expected the claim that was asked for", one)
	}
}

func TestAGroupThatWasNotSharedAnewIsNotTested(t *testing.T) {
	for _, c := range []struct {
		generations int64
		facts       model.Facts
		reason      string
	}{
		{1, faulty(true), "commits 2 of at least 5"},
		{6, model.Facts{GroupsDrained: true}, "no fault that could break it had an effect"},
	} {
		found := judgeGroups(t, shared(c.generations), groupContract(model.CommitBefore), c.facts, model.GroupDelivery)
		if found[0].Verdict != model.NotTested || !strings.Contains(found[0].Reason, c.reason) {
			t.Errorf("%s (%s), expected not tested: %s", found[0].Verdict, found[0].Reason, c.reason)
		}
	}
}

// Members that commit what they processed leave nothing out. If something is missing nevertheless it is this test's own fault, and no proof of anything.
func TestWhatIsNotProcessedAtLeastOnceIsUndecided(t *testing.T) {
	found := judgeGroups(t, shared(6), groupContract(model.CommitAfter), faulty(true), model.GroupDelivery)
	if found[0].Verdict != model.Undecided || !strings.Contains(found[0].Reason, "10 acknowledged records") {
		t.Errorf("%s (%s), expected undecided for 10 records", found[0].Verdict, found[0].Reason)
	}
}

func TestRecordsThatTheGroupWasNotGivenAreMissedOnlyAfterItsDrain(t *testing.T) {
	j := shared(6)
	event := histories.Event{Kind: histories.Append, Process: 2, Runs: []histories.Run{{Producer: 2, Count: 5}}}
	event.Op = j.Invoke(event)
	event.Type, event.Offset = histories.OK, 200
	j.Complete(event)
	for drained, want := range map[bool]model.Verdict{true: model.Violated, false: model.Undecided} {
		if found := judgeGroups(t, j, groupContract(model.CommitBefore), faulty(drained), model.GroupDelivery); found[0].Verdict != want {
			t.Errorf("drained %t: %s (%s), expected %s", drained, found[0].Verdict, found[0].Reason, want)
		}
	}
}

func TestACommitThatIsUndoneEndsTheLoad(t *testing.T) {
	for _, c := range []struct {
		asked []model.Claim
		ends  bool
	}{{nil, true}, {[]model.Claim{model.CommitSafety}, true}, {[]model.Claim{model.NoLoss}, false}} {
		r, q := watching(c.asked...)
		r.certain.monitors = groupMonitors(r.contract)
		r.journal.Tap(r.watchGroups)
		commit := func(offset int64, metadata string) histories.Step {
			return histories.Step{Do: histories.Commit, Key: "g/0", Offset: offset, Number: 1, Value: histories.Datum{Form: histories.Text, Text: metadata}}
		}
		does(r.journal, 1, commit(10, "p1-1"))
		does(r.journal, 1, commit(20, "p1-2"))
		if ended(r) {
			t.Fatal("the load ends after two commits")
		}
		back := commit(10, "p1-1")
		back.Do, back.Number = histories.Committed, 0
		does(r.journal, 2, back)
		if ended(r) != c.ends || (len(q.notes) == 1) != c.ends {
			t.Errorf("asked for %v: ended %t, notes %q", c.asked, ended(r), q.notes)
		}
		if bug := r.unconfirmed(model.Held); strings.Contains(bug, "committed-offset-regression in g/0") != c.ends {
			t.Errorf("asked for %v: not confirmed by the check: %q", c.asked, bug)
		}
	}
}

func TestAGroupCanBeGivenOnlyWhatTheLogKeeps(t *testing.T) {
	group := func(change func(*Options)) Options {
		o := sound()
		o.Workload, o.Commit = WorkloadGroup, model.CommitAfter
		change(&o)
		return o
	}
	if err := group(func(*Options) {}).Validate(); err != nil {
		t.Errorf("sound options: %v", err)
	}
	for want, o := range map[string]Options{
		"--acks all":       group(func(o *Options) { o.Acks, o.Idempotent = 1, false }),
		"clean elections":  group(func(o *Options) { o.Unclean = true }),
		"after or before":  group(func(o *Options) { o.Commit = "never" }),
		"--workload group": group(func(o *Options) { o.Workload = "log" }),
		"--commit is":      group(func(o *Options) { o.Workload = "log" }),
		"them with --work": group(func(o *Options) { o.Workload, o.Commit, o.Storm = "log", "", true }),
		"--members is 201": group(func(o *Options) { o.Members = 201 }),
	} {
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, expected an error with %q", o, err, want)
		}
	}
}

// A commit that goes back is a violation, unless the faults have left no copy of the groups' log whole.
func TestACommitThatGoesWithThePowerIsPermitted(t *testing.T) {
	undone := shared(6)
	undone.does(99, step(histories.Committed, 10, 0))
	for _, exposed := range []bool{false, true} {
		log := model.LogContract(model.Contract{Partitions: 1, Replication: 3, MinISR: 2, Acks: -1, Idempotent: true, Dense: true, PowerLoss: exposed})
		found := judgeGroups(t, undone, model.GroupContract(log, model.CommitAfter), faulty(true), model.CommitSafety)[0]
		permitted := slices.ContainsFunc(found.Permitted, func(p model.PermittedLoss) bool {
			return p.Kind == model.CommittedOffsetRegression && p.Count > 0 && p.Because != ""
		})
		if broken := len(found.Anomalies) > 0 || found.Verdict == model.Violated; broken == exposed || permitted != exposed {
			t.Errorf("no copy whole: %t: %s, anomalies %v, permitted %v", exposed, found.Verdict, found.Anomalies, found.Permitted)
		}
	}
}
