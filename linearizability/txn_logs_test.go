package linearizability

import (
	"math/rand/v2"
	"slices"
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

// TestTransactionLogsOracle asks the oracles of lists about logs that are read as a whole.
func TestTransactionLogsOracle(t *testing.T) {
	n := scaled(t, 4000)
	levels := []Level{StrictSerializable, Serializable, SnapshotIsolation, ReadCommitted}
	legal, bad, open := make([]int, len(levels)), make([]int, len(levels)), make([]int, len(levels))
	for i := range n {
		r := rand.New(rand.NewPCG(4, uint64(i)))
		lists := randomTransactions(r)
		logs, ok := asLogs(r, lists)
		if !ok {
			continue
		}
		for j, level := range levels {
			want := oracle(lists, level, false)
			a, err := CheckTransactions(histories.Events(logs), TransactionOptions{Level: level, Versions: Logs, WholeReads: true, AtomicReads: true})
			if err != nil {
				t.Fatalf("history %d: %v\n%s", i, err, showTransactions(logs))
			}
			if want {
				legal[j]++
			} else {
				bad[j]++
			}
			verdict := a.Claims[0].Verdict
			for _, x := range a.Claims[1].Anomalies {
				if x.Kind == model.PrecommittedRead && level != ReadCommitted { // of lists it is internal
					verdict = model.Violated
				}
			}
			if verdict == model.Undecided {
				open[j]++
				continue
			}
			if got := verdict != model.Violated; got != want {
				t.Fatalf("history %d at %v: the checker says %s, the oracle %v:\n%s%s", i, level, verdict, want, showTransactions(logs), proofsOf(a))
			}
		}
	}
	t.Logf("of %d histories, at %v: legal %v, not legal %v, undecided %v", n, levels, legal, bad, open)
	if least := slices.Min(slices.Concat(legal, bad)); least < n/20 || slices.Max(open) > n/50 {
		t.Errorf("%d histories of one kind, of %d: too few to prove anything", least, n)
	}
}
