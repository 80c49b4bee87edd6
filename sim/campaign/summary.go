// Package campaign runs simulated cases by the thousand, in processes of their own, and says what they found together. It knows cases and verdicts and
// nothing of what happens inside a world.
//
// Start reading at Summary, then Pool, then Report.
package campaign

import (
	"encoding/json"
	"fmt"
	"runtime/debug"
	"syscall"
	"time"

	"ackproof/linearizability"
	"ackproof/model"
	"ackproof/sim"
)

// Summary is what one case came to, small enough to be sent between processes. JSON.
type Summary struct {
	Case      sim.Case                `json:"case"`
	Verdict   model.Verdict           `json:"verdict"`
	Anomalies []model.Anomaly         `json:"anomalies,omitempty"` // that clients saw, permitted ones left out
	Broken    []string                `json:"broken,omitempty"`    // invariants; the first one ends the run, and the anomalies are those of the same run if it goes on
	Open      []string                `json:"open,omitempty"`      // claims that are undecided or not tested, with the reason
	Permitted map[model.Anomaly]int64 `json:"permitted,omitempty"`
	Sighting  string                  `json:"sighting,omitempty"`   // what ended the load
	SightedMS int64                   `json:"sighted_ms,omitempty"` // how long the load had lasted then
	Events    uint64                  `json:"events"`
	VirtualMS int64                   `json:"virtual_ms"`
	CPU       float64                 `json:"cpu_seconds"` // of the whole process while the case ran
	Hash      string                  `json:"hash"`        // of the event log
	History   string                  `json:"history"`     // hash of the history
	Acked     int64                   `json:"acked"`
	Changes   int                     `json:"leader_changes"`
	Effective map[string]int          `json:"effective"` // faults with an effect, by kind
	Results   []model.FaultResult     `json:"results"`   // of the faults, in the order of the schedule
	// Failed says why there is no verdict at all: the simulator is at fault, or the cluster did not come up.
	Failed string `json:"failed,omitempty"`
}

// Seed is the seed of the case.
func (s Summary) Seed() int64 { return s.Case.Seed }

// Run lets a case happen, and once more if an invariant ended it: the result is that of the run that goes on to its end then, so that it also tells what clients come
// to see of it.
func Run(c sim.Case, o sim.Options) (*sim.Result, error) {
	r, err := sim.Run(c, o)
	if err != nil {
		return nil, err
	}
	return goOn(r, o)
}

// goOn repeats a run that an invariant ended, to its end.
func goOn(r *sim.Result, o sim.Options) (*sim.Result, error) {
	if len(r.Broken) == 0 {
		return r, nil
	}
	o.Blind, o.Trace = true, nil
	return sim.Run(r.Case, o)
}

// Execute runs a case in this process. Events and times are of the run up to where it ended at first.
func Execute(c sim.Case) (s Summary) {
	s = Summary{Case: c, Verdict: model.Undecided}
	before := cpu()
	defer func() {
		if p := recover(); p != nil {
			s.Failed = fmt.Sprintf("the simulator crashed: %v\n%s", p, debug.Stack())
		}
	}()
	floors := model.HistoryFloors()
	o := sim.Options{Floors: &floors}
	first, err := sim.Run(c, o)
	s.CPU = (cpu() - before).Seconds()
	if err != nil {
		s.Failed = err.Error()
		return s
	}
	whole, err := goOn(first, o)
	if err != nil {
		s.Failed = err.Error()
		return s
	}
	took := s.CPU
	s = Summarize(whole)
	f := Summarize(first)
	s.CPU, s.Broken, s.Events, s.VirtualMS, s.Hash, s.History = took, f.Broken, f.Events, f.VirtualMS, f.Hash, f.History
	return s
}

// Summarize is the summary of a result, without the time that it took.
func Summarize(r *sim.Result) Summary {
	s := Summary{Case: r.Case}
	s.Verdict, s.Anomalies, s.Broken, s.Sighting, s.SightedMS = r.Verdict(), r.Anomalies(), r.Broken, r.Sighting, r.SightedMS
	s.Events, s.VirtualMS, s.Hash, s.History = r.Events, r.Virtual.Milliseconds(), fmt.Sprintf("%016x", r.Hash), r.HistoryHash()
	s.Acked, s.Changes, s.Results = r.Answer.Records.Acked, r.Facts.LeaderChanges, r.Faults
	s.Effective, s.Permitted = map[string]int{}, map[model.Anomaly]int64{}
	for _, f := range r.Faults {
		if f.Effective {
			s.Effective[f.Kind]++
		}
	}
	for _, claim := range r.Answer.Claims {
		if claim.ID == model.GroupDelivery && r.Case.Groups.Storm && claim.Evidence["rebalances"] >= linearizability.StormRebalances {
			s.Effective[model.RebalanceStorm]++ // the members' own doing, and no fault of the schedule
		}
		for _, p := range claim.Permitted {
			s.Permitted[p.Kind] += p.Count
		}
		if claim.Verdict == model.Undecided || claim.Verdict == model.NotTested {
			s.Open = append(s.Open, fmt.Sprintf("%s is %s: %s", claim.ID, claim.Verdict, claim.Reason))
		}
	}
	return s
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func encode(c sim.Case) []byte {
	raw, err := json.Marshal(c)
	if err != nil { // numbers and strings always encode
		panic(err)
	}
	return raw
}
