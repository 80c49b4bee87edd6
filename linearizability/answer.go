package linearizability

import (
	"iter"

	"ackproof/histories"
	"ackproof/model"
)

// Options of a check. The zero value asks for what the contract promises, by the floors of a test.
type Options struct {
	Claims []model.Claim // what is asked for; nil: every promise of the contract
	Floors model.Floors  // nil: model.TestFloors
	Places int           // places listed per anomaly; 0: 20
}

// Answer is everything that the history says about the contract.
type Answer struct {
	Claims        []model.ClaimResult // in the order of the contract, opt-in claims last
	Operations    model.Operations
	Records       model.Records
	Drain         model.Drain
	UnavailableMS map[string]int64 // "max" and one per partition: longest time of the load without an acknowledged record

	log *history // for the second opinion
}

// Verdict is the worst of the claims.
func (a *Answer) Verdict() model.Verdict { return model.WorstOf(a.Claims) }

// CheckLog decides the claims of a log from its history. The error is an histories.ErrMalformed, or that of reading the events; it is
// never a verdict.
func CheckLog(events iter.Seq2[histories.Event, error], contract model.Contract, facts model.Facts, o Options) (*Answer, error) {
	h, err := load(events)
	if err != nil {
		return nil, err
	}
	return h.check(contract, facts, o)
}
