package scenario

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ackproof/harness"
	"ackproof/model"
	"ackproof/nemesis"
	"ackproof/systems"
)

var someTimers = systems.Timers{Session: 4 * time.Second, Lag: 4 * time.Second, Fetch: 100 * time.Millisecond}

// Every card makes a test that is accepted, on every system that it is for, and its faults fit into its load.
func TestEveryCardMakesATest(t *testing.T) {
	names := map[string]bool{}
	for _, c := range Cards() {
		if names[c.Name] {
			t.Errorf("two cards are called %s", c.Name)
		}
		names[c.Name] = true
		if c.Question == "" || c.Allows == "" || len(c.Story) == 0 || len(c.On) == 0 {
			t.Errorf("%s: the card is not filled in", c.Name)
		}
		for _, on := range c.On {
			test, err := c.Test(on.System, 7)
			if err != nil {
				t.Fatal(err)
			}
			o := test.Options
			if err := o.Validate(); err != nil {
				t.Errorf("%s on %s: %v", c.Name, on.System, err)
			}
			if len(o.Nemesis) == 0 {
				t.Errorf("%s on %s takes no faults", c.Name, on.System)
			}
			if test.Draw == nil {
				continue
			}
			s := test.Draw(someTimers)
			if err := s.Validate(o.Nodes, o.Partitions, o.Clients); err != nil {
				t.Errorf("%s on %s: %v", c.Name, on.System, err)
			}
			if uses := s.Uses(); !slices.Equal(uses, o.Nemesis) {
				t.Errorf("%s on %s uses %v and asks for %v", c.Name, on.System, uses, o.Nemesis)
			}
			if s.Seed != 7 || s.Faults[0].Start.AckedMore == 0 {
				t.Errorf("%s on %s: the first fault waits for no record, or the seed is lost", c.Name, on.System)
			}
		}
		if !slices.ContainsFunc(contractOf(t, c).Promises, func(p model.Promise) bool { return p.Claim == c.Claim }) {
			t.Errorf("%s asks of %s, which its contract does not promise", c.Name, c.Claim)
		}
	}
}

func contractOf(t *testing.T, c Card) model.Contract {
	t.Helper()
	test, err := c.Test(c.On[0].System, 1)
	if err != nil {
		t.Fatal(err)
	}
	return test.Options.Contract()
}

// What is expected agrees with what the contract permits: by itself, or where the faults take power or disks.
func TestExpectationsAgreeWithTheContract(t *testing.T) {
	for _, c := range Cards() {
		contract := contractOf(t, c)
		permitted := contract.Permitted(c.Claim, c.Anomaly, false) != ""
		power := nemesis.MayExpose(c.Kinds(), contract.FlushEach)
		for _, on := range c.On {
			switch {
			case on.Expect == Permitted && !permitted && !power:
				t.Errorf("%s on %s is expected to be permitted, and nothing permits it", c.Name, on.System)
			case on.Expect == Held && permitted != c.Spared:
				t.Errorf("%s on %s is expected to hold, and the contract permits otherwise, or the other way round (Spared)", c.Name, on.System)
			}
		}
	}
}

func TestNamesThatThereAreNot(t *testing.T) {
	if _, err := Find("nothing"); err == nil || !strings.Contains(err.Error(), "acks-1-isolation") {
		t.Errorf("error %v, expected the names that there are", err)
	}
	c, err := Find("last-replica-power-loss")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Test("reference", 1); err == nil || !strings.Contains(err.Error(), "expected one of: kafka") {
		t.Errorf("error %v, expected the systems that the card is for", err)
	}
}

func TestSomethingElseMayComeOfIt(t *testing.T) {
	card := Card{Claim: model.NoLoss, Anomaly: model.LostAcked, Or: &Alternative{model.Liveness, model.UnavailableAfterHeal}}
	permitted := func(id model.Claim, a model.Anomaly, v model.Verdict) model.ClaimResult {
		return model.ClaimResult{ID: id, Verdict: v, Permitted: []model.PermittedLoss{{Kind: a, Count: 1, Because: "power"}}}
	}
	unread := model.ClaimResult{ID: model.NoLoss, Verdict: model.Undecided, Reason: "p0 has no leader"}
	for _, c := range []struct {
		name   string
		claims []model.ClaimResult
		found  Answer
		claim  model.Claim
	}{
		{"the first", []model.ClaimResult{permitted(model.NoLoss, model.LostAcked, model.Held), permitted(model.Liveness, model.UnavailableAfterHeal, model.Held)}, Permitted, model.NoLoss},
		{"the other", []model.ClaimResult{unread, permitted(model.Liveness, model.UnavailableAfterHeal, model.Held)}, Permitted, model.Liveness},
		{"the other, as a violation", []model.ClaimResult{unread, {ID: model.Liveness, Verdict: model.Violated}}, Violated, model.Liveness},
		{"neither", []model.ClaimResult{{ID: model.NoLoss, Verdict: model.Held}, {ID: model.Liveness, Verdict: model.Held}}, Held, model.NoLoss},
		{"nothing shown", []model.ClaimResult{unread, {ID: model.Liveness, Verdict: model.Held}}, Undecided, model.NoLoss},
	} {
		f := card.Judge(Permitted, &harness.Outcome{Results: model.Results{Claims: c.claims}})
		if f.Found != c.found || f.Claim != c.claim || f.AsExpected != (c.found == Permitted) {
			t.Errorf("%s: finding %+v", c.name, f)
		}
	}
}

func TestTheAnswerIsReadOutOfTheRun(t *testing.T) {
	card := Card{Name: "c", Claim: model.NoLoss, Anomaly: model.LostAcked}
	other := model.ClaimResult{ID: model.Order, Verdict: model.Violated}
	for _, c := range []struct {
		name   string
		expect Answer
		claims []model.ClaimResult
		found  Answer
		count  int64
		as     bool
	}{
		{"held", Held, []model.ClaimResult{{ID: model.NoLoss, Verdict: model.Held}}, Held, 0, true},
		{"permitted", Permitted, []model.ClaimResult{{ID: model.NoLoss, Verdict: model.Held, Permitted: []model.PermittedLoss{{Kind: model.LostAcked, Count: 5, Because: "acks=1"}}}}, Permitted, 5, true},
		{"permitted, of another kind", Held, []model.ClaimResult{{ID: model.NoLoss, Verdict: model.Held, Permitted: []model.PermittedLoss{{Kind: model.DirtyRead, Count: 5}}}}, Held, 0, true},
		{"permitted where it should hold", Held, []model.ClaimResult{{ID: model.NoLoss, Verdict: model.Held, Permitted: []model.PermittedLoss{{Kind: model.LostAcked, Count: 1}}}}, Permitted, 1, false},
		{"permitted, and then nothing was put to the test", Permitted, []model.ClaimResult{{ID: model.NoLoss, Verdict: model.NotTested, Permitted: []model.PermittedLoss{{Kind: model.LostAcked, Count: 2}}}}, Permitted, 2, true},
		{"violated", Permitted, []model.ClaimResult{{ID: model.NoLoss, Verdict: model.Violated, Anomalies: []model.AnomalyResult{{Kind: model.LostAcked, Count: 3}}}}, Violated, 3, false},
		{"undecided", Held, []model.ClaimResult{{ID: model.NoLoss, Verdict: model.Undecided, Reason: "why"}}, Undecided, 0, false},
		{"not asked", Held, nil, NotTested, 0, false},
		{"another claim is violated", Held, []model.ClaimResult{{ID: model.NoLoss, Verdict: model.Held}, other}, Held, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := card.Judge(c.expect, &harness.Outcome{Results: model.Results{Claims: c.claims, Faults: []model.FaultResult{{Effective: true}, {}}}, Dir: "d"})
			if f.Found != c.found || f.Count != c.count || f.AsExpected != c.as || f.Faults != 1 || f.Planned != 2 || f.Run != "d" {
				t.Errorf("finding %+v", f)
			}
		})
	}
}
