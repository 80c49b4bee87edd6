package linearizability

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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

// parts are the roles that certificates of each claim about objects give to operations, and the anomalies under it.
var parts = map[model.Claim]struct {
	anomalies []model.Anomaly
	roles     []string
}{
	model.Linearizable:    {[]model.Anomaly{model.Nonlinearizable}, []string{"first", "second", "by", "again"}},
	model.NoPhantom:       {[]model.Anomaly{model.Phantom, model.FutureRead}, []string{"write", "reader", "delivery", "send"}},
	model.NoLoss:          {[]model.Anomaly{model.LostAcked}, []string{"write", "end", "final", "send", "empty", "seen"}},
	model.NoDirtyRead:     {[]model.Anomaly{model.DirtyRead}, []string{"write", "seen", "final"}},
	model.ReadAfterAck:    {[]model.Anomaly{model.StaleRead}, []string{"write", "seen", "stale", "again"}},
	model.NoDuplicate:     {[]model.Anomaly{model.Duplicate}, []string{"write", "reader", "first", "second", "again", "ack", "send"}},
	model.CommitSafety:    {[]model.Anomaly{model.CommittedOffsetRegression, model.ZombieCommit, model.Phantom}, []string{"before", "newer", "known", "read", "commit", "begins", "zombie"}},
	model.GroupDelivery:   {[]model.Anomaly{model.GroupSkip, model.DoubleOwner}, []string{"skips", "begins", "reader", "newer", "zombie", "first", "second", "poll"}},
	model.Lease:           {[]model.Anomaly{model.EarlyRedelivery}, []string{"first", "extension", "received", "again"}},
	model.FIFO:            {[]model.Anomaly{model.FIFOInversion, model.FalseEmpty}, []string{"first-send", "second-send", "first", "second", "earlier", "later", "delivery", "empty"}},
	model.DedupWindow:     {[]model.Anomaly{model.DedupLeak}, []string{"first-send", "second-send", "first", "second"}},
	model.Serializability: {[]model.Anomaly{model.G0, model.G1a, model.G1b, model.G1c, model.GSingle, model.GNonadjacent, model.G2Item, model.IncompatibleOrder, model.InconsistentOffset, model.Duplicate, model.Phantom, model.Internal, model.LostUpdate}, nil},
	model.Atomicity:       {[]model.Anomaly{model.G1a, model.TornTxn, model.LostAcked, model.DirtyRead, model.PrecommittedRead}, nil},
}

// invent makes a certificate of a claim out of any operations of a history, each quoted rightly: all that can be wrong with it is that it proves nothing.
func invent(r *rand.Rand, claim model.Claim, events []histories.Event) model.Certificate {
	begins, ends := complete(events)
	of := make(map[uint64]histories.Event)
	for _, ev := range ends {
		of[ev.Op] = ev
	}
	begins = slices.DeleteFunc(begins, func(ev histories.Event) bool { return ev.Kind != histories.Object })
	p := parts[claim]
	c := model.Certificate{Version: 1, Claim: claim, Anomaly: p.anomalies[r.IntN(len(p.anomalies))], Partition: -1, Offset: -1, Operations: []model.ProofOp{}}
	var all []histories.Step
	for i := range 1 + r.IntN(4) {
		begin := begins[r.IntN(len(begins))]
		end, over := of[begin.Op]
		op := model.ProofOp{Op: begin.Op, Invoked: int64(begin.Time), Ended: -1, Process: begin.Process, What: "transaction", Role: fmt.Sprintf("T%d", i+1)}
		steps := begin.Steps
		if over {
			op.Ended, op.EndSeq = int64(end.Time), end.Seq
			if end.Type == histories.OK {
				steps = end.Steps
			}
		}
		all = append(all, steps...)
		if p.roles != nil && len(steps) > 0 {
			s := steps[r.IntN(len(steps))]
			op.Role, op.What, op.Steps = p.roles[r.IntN(len(p.roles))], s.Do.String(), []model.QuotedStep{quoteStep(s)}
		}
		c.Operations = append(c.Operations, op)
	}
	if s := all[r.IntN(len(all))]; len(all) > 0 {
		if c.Object = s.Key; r.IntN(3) > 0 {
			c.Offset = s.Offset
		}
		if c.Value = s.Value.String(); len(s.Value.List) > 0 {
			c.Value = fmt.Sprint(s.Value.List[r.IntN(len(s.Value.List))])
		} else if r.IntN(2) == 0 {
			c.Value = ""
		}
	}
	if p.roles == nil && r.IntN(2) == 0 {
		kinds, n := []string{"ww", "wr", "rw", "process", "realtime"}, len(c.Operations)
		for i := range n {
			s := all[r.IntN(len(all))]
			c.Relations = append(c.Relations, model.Relation{From: c.Operations[i].Role, To: c.Operations[(i+1)%n].Role, Kind: kinds[r.IntN(len(kinds))], Object: s.Key, Value: s.Value.Int})
		}
	}
	c.WithinNS = int64(r.IntN(20_000_000))
	c.Bind("history.bin", 7)
	return c
}

// TestVerifierAcceptsNothingOfLegal: where everything holds no certificate breaks it, whatever operations it cites in whatever part.
func TestVerifierAcceptsNothingOfLegal(t *testing.T) {
	tried := make(map[model.Claim]int)
	for n := range uint64(scaled(t, 30)) {
		r := rand.New(rand.NewPCG(22, n))
		for _, p := range randomProofs(t, n) {
			if model.WorstOf(p.claims) == model.Violated { // what breaks one claim may be left out under another
				continue
			}
			for _, claim := range p.claims {
				weaker := claim.ID == model.Serializability && !strings.HasSuffix(p.source, StrictSerializable.String())
				if claim.Verdict != model.Held || weaker || claim.ID == model.DedupWindow { // of any window
					continue
				}
				for range 20 {
					c := invent(r, claim.ID, p.events)
					tried[claim.ID]++
					if err := verify.Certificate(c, 7, histories.Events(p.events)); !errors.Is(err, verify.ErrRejected) {
						raw, _ := json.MarshalIndent(c, "", " ")
						t.Fatalf("%s: %v\n%s\n%s", p.source, err, raw, showObjects(p.events))
					}
				}
			}
		}
	}
	t.Logf("%v", tried)
}
