package linearizability_test

import (
	"bytes"
	"fmt"

	"ackproof/histories"
	"ackproof/linearizability"
	"ackproof/model"
)

// A system of one's own, here a log that forgets its last record, is recorded and checked.
func ExampleCheckLog() {
	var log []histories.Run
	var file bytes.Buffer
	journal := histories.NewRecorder(&file, histories.Header{Run: 1})
	for n := range int64(3) { // one producer sends three records, one after the other
		record := histories.Run{Producer: 1, Sequence: n, Count: 1}
		op := journal.Invoke(histories.Event{Kind: histories.Append, Process: 1, Runs: []histories.Run{record}})
		record.Offset = n
		log = append(log, record)
		journal.Complete(histories.Event{Kind: histories.Append, Type: histories.OK, Op: op, Process: 1, Offset: n})
	}
	log = log[:2] // a crash
	journal.Mark(histories.Event{Kind: histories.Phase, Note: "drain"})
	for at := int64(0); at <= 2; at++ { // one reader reads from the start until there is nothing
		op := journal.Invoke(histories.Event{Kind: histories.Fetch, Process: 2, Session: 1, Offset: at})
		journal.Complete(histories.Event{Kind: histories.Fetch, Type: histories.OK, Op: op, Process: 2, Session: 1, HighWatermark: -1, Runs: log[at:min(at+1, 2)]})
	}
	journal.Close()

	history, _ := histories.NewReader(&file)
	contract := model.LogContract(model.Contract{Partitions: 1, Replication: 3, MinISR: 2, Acks: -1, Idempotent: true, Dense: true})
	answer, err := linearizability.CheckLog(history.All(), contract, model.Facts{DrainComplete: true}, linearizability.Options{Floors: model.HistoryFloors()})
	fmt.Println(err, answer.Claims[0].ID, answer.Claims[0].Verdict, answer.Claims[0].Anomalies[0].Where)
	// Output: <nil> no-loss violated [p0@2]
}
