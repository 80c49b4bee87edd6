package linearizability

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"ackproof/histories"
	"ackproof/model"
)

// asLogs tells a history of lists as one of logs that are read from their start to their end. It is false for histories in which a transaction reads a list
// twice or after its own append to it: of logs nothing is promised then.
func asLogs(r *rand.Rand, events []histories.Event) ([]histories.Event, bool) {
	out := make([]histories.Event, 0, len(events))
	for _, ev := range events {
		used := make(map[string]bool)
		var steps []histories.Step
		for _, s := range ev.Steps {
			if s.Do == histories.Read && used[s.Key] {
				return nil, false
			}
			used[s.Key] = true
			if s.Do == histories.AppendTo || ev.Type != histories.OK {
				steps = append(steps, s)
				continue
			}
			if r.IntN(3) == 0 {
				steps = append(steps, histories.Step{Key: s.Key, Value: s.Value, Offset: 0})
				continue
			}
			for i, v := range s.Value.List {
				steps = append(steps, histories.Step{Key: s.Key, Value: histories.IntDatum(v), Offset: int64(i)})
			}
			if n := len(s.Value.List); n == 0 || r.IntN(2) == 0 {
				steps = append(steps, histories.Step{Key: s.Key, Offset: int64(n)})
			}
		}
		ev.Steps = steps
		out = append(out, ev)
	}
	return out, true
}

// txnLogsDuel asks the oracles of lists about logs that are read as a whole.
var txnLogsDuel = duel{name: "logs", n: 4000, open: 50, fight: func(t testing.TB, r *rand.Rand, s *score) error {
	lists := randomTransactions(r)
	logs, ok := asLogs(r, lists)
	if !ok {
		return nil
	}
	for _, q := range txnSettings {
		if q.sessions {
			continue
		}
		want := oracle(lists, q.level, false)
		a, err := CheckTransactions(histories.Events(logs), TransactionOptions{Level: q.level, Versions: Logs, WholeReads: true, AtomicReads: true})
		if err != nil {
			t.Fatalf("%v\n%s", err, showTransactions(logs))
		}
		verdict := a.Claims[0].Verdict
		for _, x := range a.Claims[1].Anomalies {
			if x.Kind == model.PrecommittedRead && q.level != ReadCommitted { // of lists it is internal
				verdict = model.Violated
			}
		}
		s.asked(q.name, want, verdict == model.Undecided)
		if got := verdict != model.Violated; got != want && verdict != model.Undecided {
			return fmt.Errorf("%s: the checker says %s, the oracle %v:\n%s%s", q.name, verdict, want, showTransactions(logs), proofsOf(a))
		}
	}
	return nil
}}

func TestTransactionLogsOracle(t *testing.T) { txnLogsDuel.test(t) }
func FuzzTransactionLogs(f *testing.F)       { txnLogsDuel.fuzz(f) }
