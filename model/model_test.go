package model

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWorst(t *testing.T) {
	order := []Verdict{Held, NotTested, Undecided, Violated, "nonsense"}
	for i, a := range order {
		for j, b := range order {
			if got, want := Worst(a, b), order[max(i, j)]; got != want {
				t.Errorf("worst of %s and %s is %s, want %s", a, b, got, want)
			}
		}
	}
	if got := Worst(); got != NotTested {
		t.Errorf("worst of nothing is %s, want %s", got, NotTested)
	}
	for v, want := range map[Verdict]int{Held: 0, Violated: 1, Undecided: 2, NotTested: 2, "nonsense": 255} {
		if got := v.Exit(); got != want {
			t.Errorf("exit code of %s is %d, want %d", v, got, want)
		}
	}
}

// TestLogContract pins what each configuration permits: this table is the product's promise to its users.
func TestLogContract(t *testing.T) {
	const unclean = "unclean.leader.election.enable=true"
	type permits map[Claim]map[Anomaly]string
	both := func(a, b permits) permits {
		out := permits{}
		for _, p := range []permits{b, a} { // a wins
			for c, m := range p {
				if out[c] == nil {
					out[c] = map[Anomaly]string{}
				}
				for k, v := range m {
					out[c][k] = v
				}
			}
		}
		return out
	}
	weak := func(acks string) permits {
		return permits{NoLoss: {LostAcked: acks}, OffsetAgreement: {InconsistentOffset: acks}}
	}
	retries := permits{Order: {Reordered: "idempotence off"}, NoDuplicate: {Duplicate: "idempotence off"}}
	election := permits{NoLoss: {LostAcked: unclean}, AtLeastOnce: {Undelivered: unclean, PollSkip: unclean}, RealTimeOrder: {ReorderedRealtime: unclean},
		OffsetAgreement: {InconsistentOffset: unclean}, NoDirtyRead: {DirtyRead: unclean}, VisibleEnd: {StaleEndOffset: unclean, StartAboveHW: unclean, StartOffsetBackwards: unclean}}
	power := permits{NoLoss: {LostAcked: powerCause}, AtLeastOnce: {Undelivered: powerCause, PollSkip: powerCause}, RealTimeOrder: {ReorderedRealtime: powerCause},
		OffsetAgreement: {InconsistentOffset: powerCause}, NoDirtyRead: {DirtyRead: powerCause}, NoDuplicate: {Duplicate: powerCause},
		VisibleEnd: {StaleEndOffset: powerCause, StartAboveHW: powerCause, StartOffsetBackwards: powerCause}, Liveness: {UnavailableAfterHeal: powerCause}}
	for name, c := range map[string]struct {
		contract Contract
		want     permits
		text     string // part of the promise of no-loss
	}{
		"power of all":               {Contract{Acks: -1, MinISR: 2, Idempotent: true, PowerLoss: true}, power, "power"},
		"the strongest":              {Contract{Acks: -1, MinISR: 2, Idempotent: true, FlushEach: true}, permits{}, "loss of power."},
		"no flush":                   {Contract{Acks: -1, MinISR: 2, Idempotent: true}, permits{}, "power on all replicas at once is not covered"},
		"min ISR 1":                  {Contract{Acks: -1, MinISR: 1, Idempotent: true}, permits{}, "last in-sync replica"},
		"idempotence off":            {Contract{Acks: -1, MinISR: 2}, retries, "never lost"},
		"acks=1":                     {Contract{Acks: 1, MinISR: 2}, both(weak("acks=1"), retries), "change of leader may lose it"},
		"acks=1, idempotent in vain": {Contract{Acks: 1, MinISR: 2, Idempotent: true}, both(weak("acks=1"), retries), "acks=1"},
		"acks=0":                     {Contract{Acks: 0, MinISR: 2}, both(weak("acks=0"), retries), "Nothing is promised"},
		"unclean":                    {Contract{Acks: -1, MinISR: 2, Idempotent: true, Unclean: true}, election, "unclean election is on"},
		"acks=1, unclean":            {Contract{Acks: 1, MinISR: 2, Unclean: true}, both(permits{NoLoss: {LostAcked: "acks=1"}}, both(election, retries)), "acks=1"},
	} {
		got := LogContract(c.contract)
		permitted := permits{}
		for _, p := range got.Promises {
			if p.Text == "" || !strings.HasSuffix(p.Text, ".") {
				t.Errorf("%s: the promise of %s reads %q, want a sentence", name, p.Claim, p.Text)
			}
			if p.Permits != nil {
				permitted[p.Claim] = p.Permits
			}
			for a := range p.Permits {
				if a == ReplicaDivergence {
					t.Errorf("%s permits %s", name, a)
				}
			}
		}
		if d := cmp.Diff(c.want, permitted); d != "" {
			t.Errorf("%s permits (want −, got +):\n%s", name, d)
		}
		if p, ok := got.Promise(NoLoss); !ok || !strings.Contains(p.Text, c.text) {
			t.Errorf("%s: no-loss reads %q, want %q in it", name, p.Text, c.text)
		}
	}
}

func TestPermitted(t *testing.T) {
	acks1 := LogContract(Contract{Acks: 1})
	if got := acks1.Permitted(OffsetAgreement, InconsistentOffset, false); got != "acks=1" {
		t.Errorf("an acknowledgement that disagrees under acks=1: %q, want it permitted", got)
	}
	if got := acks1.Permitted(OffsetAgreement, InconsistentOffset, true); got != "" {
		t.Errorf("readers that disagree under acks=1: permitted by %q, want a violation", got)
	}
	both := LogContract(Contract{Acks: 1, Unclean: true})
	if got := both.Permitted(OffsetAgreement, InconsistentOffset, true); got == "" {
		t.Error("readers that disagree under unclean election: want it permitted")
	}
	if got := acks1.Permitted(ReadAfterAck, StaleRead, true); got != "" {
		t.Errorf("a claim that the contract does not make permits by %q", got)
	}
}

func TestValidate(t *testing.T) {
	good := Contract{Partitions: 6, Replication: 3, MinISR: 2, Acks: -1}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Contract){
		"acks=2": func(c *Contract) { c.Acks = 2 }, "0 partitions": func(c *Contract) { c.Partitions = 0 },
		"replication 0": func(c *Contract) { c.Replication = 0 }, "min.insync.replicas=4": func(c *Contract) { c.MinISR = 4 },
	} {
		c := good
		spoil(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want an error that says so", name, err)
		}
	}
}

// TestFloorsOfATest: every claim has floors, a run below any of them is not tested, and one that reaches them all is.
func TestFloorsOfATest(t *testing.T) {
	c := LogContract(Contract{Acks: -1, Replication: 3, MinISR: 2})
	claims := []Claim{ReadAfterAck, CommitSafety, GroupDelivery, Lease, FIFO, DedupWindow, Atomicity, Serializability, Linearizable}
	for _, p := range c.Promises {
		claims = append(claims, p.Claim)
	}
	for _, claim := range claims {
		floorsOfATest(t, TestFloors(), claim, c)
		floorsOfATest(t, TestQueueFloors(), claim, c)
	}
	if got := (Floors{NoLoss: {}}).Missing(Order, nil, c, Facts{}); got == "" {
		t.Error("a claim without a floor lacks nothing: want it not tested")
	}
	if got := (Floors{}).Missing(Order, nil, c, Facts{}); got != "" {
		t.Errorf("without floors a claim lacks %q", got)
	}
}

func floorsOfATest(t *testing.T, floors Floors, claim Claim, c Contract) {
	t.Helper()
	killed := FaultResult{Kind: "kill", Effective: true}
	floor, ok := floors[claim]
	if !ok || len(floor.Evidence) == 0 && claim != Liveness {
		t.Errorf("%s has no floor", claim)
	}
	enough := map[string]int64{}
	for k, v := range floor.Evidence {
		enough[k] = v
	}
	facts := Facts{Faults: []FaultResult{{Kind: "pause"}, killed}, LeaderChanges: 1}
	missing := func(evidence map[string]int64, facts Facts) string {
		return floors.Missing(claim, evidence, c, facts)
	}
	if got := missing(enough, facts); got != "" {
		t.Errorf("%s at its floors lacks %s", claim, got)
	}
	for k := range floor.Evidence {
		enough[k]--
		if got := missing(enough, facts); !strings.Contains(got, k) {
			t.Errorf("%s with too little %s lacks %q", claim, k, got)
		}
		enough[k]++
	}
	for name, faults := range map[string][]FaultResult{"none": nil, "without effect": {{Kind: "kill"}}, "of a kind that breaks nothing": {{Kind: "noise", Effective: true}}} {
		if got := missing(enough, Facts{Faults: faults, LeaderChanges: 1}); !strings.Contains(got, "no fault that could break it had an effect") {
			t.Errorf("%s with faults %s lacks %q", claim, name, got)
		}
	}
	if got := missing(enough, Facts{Faults: facts.Faults}); (floor.LeaderChanges > 0) != strings.Contains(got, "leader changes 0 of at least 1") {
		t.Errorf("%s without a change of leader lacks %q", claim, got)
	}
	one := c
	one.Replication = 1
	if got := floors.Missing(claim, enough, one, Facts{Faults: facts.Faults}); got != "" {
		t.Errorf("%s of a single copy lacks %s", claim, got)
	}
}
