package linearizability_test

import (
	"bytes"
	"fmt"

	"ackproof/histories"
	"ackproof/linearizability"
)

// A register of one's own, here one with a cache that goes stale, is recorded and checked.
func ExampleCheckObjects() {
	var file bytes.Buffer
	journal := histories.NewRecorder(&file, histories.Header{Run: 1})
	do := func(process int32, step histories.Step, call func(*histories.Step)) {
		ev := histories.Event{Kind: histories.Object, Process: process, Steps: []histories.Step{step}}
		ev.Op = journal.Invoke(ev)
		call(&step)
		ev.Type, ev.Steps = histories.OK, []histories.Step{step}
		journal.Complete(ev)
	}
	var register, cache histories.Datum
	write := func(s *histories.Step) { cache, register = register, s.Value }
	do(1, histories.Step{Do: histories.Write, Value: histories.IntDatum(1)}, write)
	do(1, histories.Step{Do: histories.Write, Value: histories.IntDatum(2)}, write)
	do(2, histories.Step{Do: histories.Read}, func(s *histories.Step) { s.Value = cache })
	journal.Close()

	history, _ := histories.NewReader(&file)
	answer, err := linearizability.CheckObjects(history.All(), "register", linearizability.ObjectOptions{})
	fmt.Println(err, answer.Verdict())
	for _, op := range answer.Claims[0].Anomalies[0].Proof.Operations {
		fmt.Println(op.Role, op.Process, op.Text)
	}
	// Output:
	// <nil> violated
	// first 1 write of 1: ok
	// second 1 write of 2: ok
	// again 2 read that found 1: ok
}
