package linearizability_test

import (
	"fmt"

	"ackproof/histories"
	"ackproof/linearizability"
)

// Two clients read the empty list x and then append to it, each without the other's append.
func ExampleCheckTransactions() {
	var events []histories.Event
	add := func(typ histories.Type, op uint64, process int32, read []int64, value int64) uint64 {
		seq := uint64(len(events) + 1)
		if typ == histories.Invoke {
			op = seq
		}
		events = append(events, histories.Event{Seq: seq, Op: op, Type: typ, Kind: histories.Object, Process: process, Steps: []histories.Step{
			{Do: histories.Read, Key: "x", Value: histories.Datum{Form: histories.List, List: read}},
			{Do: histories.AppendTo, Key: "x", Value: histories.IntDatum(value)},
		}})
		return op
	}
	a := add(histories.Invoke, 0, 1, nil, 10)
	b := add(histories.Invoke, 0, 2, nil, 20)
	add(histories.OK, a, 1, nil, 10)
	add(histories.OK, b, 2, nil, 20)

	answer, err := linearizability.CheckTransactions(histories.Events(events), linearizability.TransactionOptions{Level: linearizability.SnapshotIsolation})
	if err != nil {
		panic(err)
	}
	found := answer.Claims[0].Anomalies[0]
	fmt.Println(answer.Verdict(), found.Kind)
	fmt.Println(found.Proof.Sentence)
	// Output:
	// violated lost-update
	// T1 and T2 both read the empty list of x and then appended to it, so the one that came later did not see the other.
}
