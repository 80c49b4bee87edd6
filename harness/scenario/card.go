// Package scenario has cards: a question that people ask of a broker, the configuration and the faults that put it to the test, what the contract allows, and the answer that is
// expected. A card is run as a test like any other; it knows of systems no more than their names and settings. Start reading at Card, then cards.go.
package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ackproof/harness"
	"ackproof/model"
	"ackproof/nemesis"
	"ackproof/systems"
)

// Answer is what a run says to the question of a card.
type Answer string

// The answers. The last two say that nothing was shown.
const (
	Held      Answer = "held"      // the claim held, and the anomaly in question did not occur
	Permitted Answer = "permitted" // the anomaly occurred, and the configuration permits it
	Violated  Answer = "violated"
	Undecided Answer = "undecided"
	NotTested Answer = "not-tested"
)

// Card is one scenario.
type Card struct {
	Name     string
	Question string // of whoever runs a broker
	// Claim and Anomaly are what the question is about. Or, if not nil, is what may come of it instead, where a system does now the one and now the other.
	Claim   model.Claim
	Anomaly model.Anomaly
	Or      *Alternative
	Allows  string   // what the contract allows, in a sentence
	Story   []string // what is done to the system, step by step, for people
	// Spared: the contract permits the anomaly, and these faults do not bring it about.
	Spared bool
	On     []Setup

	configure func(*harness.Options)
	// faults makes the schedule from the system's time-outs; nil: drawn from the seed, of kinds.
	faults func(systems.Timers) []nemesis.Fault
	kinds  []nemesis.Kind
}

// Alternative is another anomaly that a card may end with, and the claim that it is an anomaly of.
type Alternative struct {
	Claim   model.Claim   `json:"claim"`
	Anomaly model.Anomaly `json:"anomaly"`
}

// Setup is a card on one system.
type Setup struct {
	System   string
	Expect   Answer
	Nodes    int
	Settings map[string]string
	Time     time.Duration // of load
}

// Find finds a card by its name. The error lists all names.
func Find(name string) (Card, error) {
	var names []string
	for _, c := range Cards() {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	return Card{}, fmt.Errorf("there is no scenario %q, expected one of: %s", name, strings.Join(names, ", "))
}

// Systems are the names of the systems that the card is for.
func (c Card) Systems() []string {
	var out []string
	for _, s := range c.On {
		out = append(out, s.System)
	}
	return out
}

// Setup gives the card's setup on the system. The error says which systems it has one for.
func (c Card) Setup(system string) (Setup, error) {
	i := slices.IndexFunc(c.On, func(s Setup) bool { return s.System == system })
	if i < 0 {
		return Setup{}, fmt.Errorf("scenario %s is not for %s, expected one of: %s", c.Name, system, strings.Join(c.Systems(), ", "))
	}
	return c.On[i], nil
}

// Kinds are the kinds of faults that the card takes.
func (c Card) Kinds() []nemesis.Kind {
	if c.faults == nil {
		return slices.Clone(c.kinds)
	}
	return nemesis.Schedule{Faults: c.faults(systems.Timers{Session: time.Second, Lag: time.Second, Fetch: time.Millisecond})}.Uses()
}

// Test makes the test of the card on the system: its options and its schedule. Who runs it adds where it stands and who watches.
func (c Card) Test(system string, seed int64) (harness.Test, error) {
	on, err := c.Setup(system)
	if err != nil {
		return harness.Test{}, err
	}
	o := harness.Options{
		System: system, Workload: "log", Nodes: on.Nodes, Partitions: 1, Replication: 3, MinISR: 2, Acks: -1, Idempotent: true, Time: harness.Duration(on.Time),
		Rate: rate, Clients: clients, Nemesis: c.Kinds(), Seed: seed, KeepGoing: true, Settings: on.Settings,
	}
	c.configure(&o)
	t := harness.Test{Options: o}
	if c.faults != nil {
		t.Draw = func(timers systems.Timers) nemesis.Schedule {
			return nemesis.Schedule{Version: nemesis.ScheduleVersion, Seed: seed, Faults: c.faults(timers)}
		}
	}
	return t, nil
}

const (
	clients = 8
	// rate of all producers together, in records per second: enough for every step to meet some, and little enough for a machine that has other things to do.
	rate = 400
)

// Finding is what a run of a card found.
type Finding struct {
	Scenario string           `json:"scenario"`
	System   model.SystemInfo `json:"system"`
	Expected Answer           `json:"expected"`
	Found    Answer           `json:"found"`
	// AsExpected: the answer is the expected one, and no other claim is violated.
	AsExpected bool          `json:"as_expected"`
	Claim      model.Claim   `json:"claim"`
	Acked      int64         `json:"acked"`
	Anomaly    model.Anomaly `json:"anomaly"`
	Count      int64         `json:"count"`             // of the anomaly
	Because    string        `json:"because,omitempty"` // why it is permitted, or why nothing was shown
	Verdict    model.Verdict `json:"verdict"`           // of all claims
	Exit       int           `json:"exit"`
	Faults     int           `json:"faults"` // that had an effect
	Planned    int           `json:"planned"`
	Violated   []model.Claim `json:"violated,omitempty"`
	Run        string        `json:"run"` // its directory
}

// Judge reads the answer to the card's question out of a run.
func (c Card) Judge(expect Answer, out *harness.Outcome) Finding {
	r := out.Results
	f := Finding{Scenario: c.Name, System: r.System, Expected: expect, Found: NotTested, Claim: c.Claim, Anomaly: c.Anomaly, Acked: r.Records.Acked, Verdict: r.Verdict, Exit: r.Exit,
		Planned: len(r.Faults), Run: out.Dir}
	for _, fault := range r.Faults {
		if fault.Effective {
			f.Faults++
		}
	}
	for _, claim := range r.Claims {
		if claim.Verdict == model.Violated {
			f.Violated = append(f.Violated, claim.ID)
		}
		if claim.ID == c.Claim {
			f.Found, f.Count, f.Because = answer(claim, c.Anomaly)
		}
	}
	c.instead(r.Claims, &f)
	f.AsExpected = f.Found == expect && (len(f.Violated) == 0 || expect == Violated)
	return f
}

// instead puts the alternative into the finding, if that is what came.
func (c Card) instead(claims []model.ClaimResult, f *Finding) {
	if c.Or == nil || f.Found == Violated || f.Found == Permitted {
		return
	}
	for _, claim := range claims {
		if claim.ID != c.Or.Claim {
			continue
		}
		if a, count, because := answer(claim, c.Or.Anomaly); a == Violated || a == Permitted {
			f.Found, f.Count, f.Because, f.Claim, f.Anomaly = a, count, because, c.Or.Claim, c.Or.Anomaly
		}
	}
}

// answer is what the result of a claim says of the anomaly.
func answer(r model.ClaimResult, anomaly model.Anomaly) (a Answer, count int64, because string) {
	if r.Verdict == model.Violated {
		for _, a := range r.Anomalies {
			count += a.Count
		}
		return Violated, count, ""
	}
	for _, p := range r.Permitted { // it was seen, whatever else was not
		if p.Kind == anomaly && p.Count > 0 {
			return Permitted, p.Count, p.Because
		}
	}
	switch r.Verdict {
	case model.Held:
		return Held, 0, ""
	case model.Undecided:
		return Undecided, 0, r.Reason
	}
	return NotTested, 0, r.Reason
}
