package linearizability

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"ackproof/histories"
	"ackproof/model"
	"ackproof/verify"
)

// proven is what a checker found in a history.
type proven struct {
	source string
	events []histories.Event
	claims []model.ClaimResult
}

// plantedProofs are the findings in everything that is planted in objects, groups, queues and transactions.
func plantedProofs(t *testing.T) (all []proven) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range objectsPlanted {
		s := &script{}
		c.write(s)
		promised, optIn := ObjectClaims(c.model)
		a, err := CheckObjects(histories.Events(s.events), "auto", ObjectOptions{Claims: append(promised, optIn...)})
		must(err)
		all = append(all, proven{c.name, s.events, a.Claims})
	}
	for _, f := range groupFixtures {
		s := &script{}
		f.write(s)
		c := groupCheckers[f.checker]
		o := f.options
		o.Floors, o.Claims = model.Floors{}, c.all
		offline, err := c.check(histories.Events(s.events), o)
		must(err)
		all = append(all, proven{f.checker + ", " + f.name, s.events, offline.Claims}, proven{f.checker + " online, " + f.name, s.events, along(t, c.monitor(o), s.events).Claims})
	}
	for _, c := range plantedTransactions {
		events := transact(t, c.history)
		a, err := CheckTransactions(histories.Events(events), c.options)
		must(err)
		all = append(all, proven{c.name, events, a.Claims})
	}
	return all
}

// randomProofs are the findings in the n-th random history of each kind.
func randomProofs(t *testing.T, n uint64) (all []proven) {
	t.Helper()
	r := rand.New(rand.NewPCG(21, n))
	objects := func(name string, events []histories.Event, claims ...model.Claim) {
		a, err := CheckObjects(histories.Events(events), name, ObjectOptions{Claims: claims})
		if err != nil {
			t.Fatalf("%s %d: %v", name, n, err)
		}
		all = append(all, proven{fmt.Sprintf("%s %d", name, n), events, a.Claims})
	}
	monitored := func(name string, events []histories.Event, o MonitorOptions) {
		c := groupCheckers[name]
		o.Floors, o.Claims = model.Floors{}, c.all
		a, err := c.check(histories.Events(events), o)
		if err != nil {
			t.Fatalf("%s %d: %v", name, n, err)
		}
		all = append(all, proven{fmt.Sprintf("%s %d", name, n), events, a.Claims}, proven{fmt.Sprintf("%s %d online", name, n), events, along(t, c.monitor(o), events).Claims})
	}
	transactions := func(name string, events []histories.Event, o TransactionOptions) {
		a, err := CheckTransactions(histories.Events(events), o)
		if err != nil {
			t.Fatalf("%s %d: %v", name, n, err)
		}
		all = append(all, proven{fmt.Sprintf("%s %d %v", name, n, o.Level), events, a.Claims})
	}
	for i := range toys {
		objects(toys[i].name, toys[i].random(r))
	}
	objects("set", randomSet(r), setClaims...)
	objects("total-queue", randomQueue(r), model.NoLoss, model.NoPhantom, model.NoDuplicate)
	monitored("commits", randomCommits(r, n%4 == 3), MonitorOptions{})
	monitored("groups", randomGroup(r), MonitorOptions{})
	monitored("queue", randomWork(r, 1+int(n%2)), MonitorOptions{})
	monitored("fifo", randomFIFO(r, n%2 == 1, n%4 >= 2), MonitorOptions{Window: 12_000_000})
	lists := randomTransactions(r)
	for level := StrictSerializable; level <= ReadCommitted; level++ {
		transactions("lists", lists, TransactionOptions{Level: level, Versions: Lists})
	}
	logs, _, _ := randomLogs(r)
	transactions("logs", logs, TransactionOptions{Versions: Logs, Claims: []model.Claim{model.Atomicity}})
	return all
}

// TestVerifierAcceptsObjects: what the checkers prove of objects, groups, queues and transactions is proven.
func TestVerifierAcceptsObjects(t *testing.T) {
	accepted, wrong := make(map[string]int), make(map[string]int)
	accept := func(all []proven) {
		for _, p := range all {
			for _, claim := range p.claims {
				for _, x := range claim.Anomalies {
					c := *x.Proof
					c.Bind("history.bin", 7)
					kind := string(claim.ID) + "/" + string(x.Kind)
					err := verify.Certificate(c, 7, histories.Events(p.events))
					if err == nil {
						accepted[kind]++
						continue
					}
					if wrong[kind]++; wrong[kind] < 3 {
						raw, _ := json.MarshalIndent(c, "", " ")
						t.Errorf("%s: %s: %v\n%s\n%s", p.source, kind, err, raw, showObjects(p.events))
					}
				}
			}
		}
	}
	accept(plantedProofs(t))
	for n := range uint64(scaled(t, 600)) {
		accept(randomProofs(t, n))
	}
	t.Logf("accepted %v, not %v", accepted, wrong)
}

// TestVerifierRejectsObjects: with any one digit changed anywhere, a certificate is rejected; and one of the facts is even if it was sealed anew.
func TestVerifierRejectsObjects(t *testing.T) {
	tried := 0
	for _, p := range plantedProofs(t) {
		for _, claim := range p.claims {
			for _, x := range claim.Anomalies {
				c := *x.Proof
				c.Bind("../history.bin", 7)
				raw, err := json.Marshal(c)
				if err != nil {
					t.Fatal(err)
				}
				for i, b := range raw {
					if b < '0' || b > '9' {
						continue
					}
					changed := bytes.Clone(raw)
					changed[i] = '0' + (b-'0'+1)%10
					var d model.Certificate
					if json.Unmarshal(changed, &d) != nil {
						continue // no number any more: malformed
					}
					tried++
					refused := func(how string) {
						if err := verify.Certificate(d, 7, histories.Events(p.events)); !errors.Is(err, verify.ErrRejected) {
							t.Errorf("%s: %s: with byte %d changed%s: %v\n%s", p.source, x.Kind, i, how, err, changed[max(0, i-60):min(len(changed), i+20)])
						}
					}
					refused("")
					// As true as before: the next offset was left out as well, or it is about another value that the same is wrong with.
					other := x.Kind == model.GroupSkip && d.Offset == c.Offset+1 || d.Value != c.Value && x.Count > 1
					if facts(d) != facts(c) && d.Run == c.Run && !other {
						d.Bind(d.History, 7)
						refused(" and sealed anew")
					}
				}
			}
		}
	}
	t.Logf("%d changes of one digit", tried)
}

// facts is the certificate without prose, and without what the contract says.
func facts(c model.Certificate) string {
	c.Sentence, c.History, c.Seal, c.WithinNS = "", "", "", 0
	c.Operations = append([]model.ProofOp(nil), c.Operations...)
	for i := range c.Operations {
		c.Operations[i].Text = ""
	}
	return c.Sum()
}
