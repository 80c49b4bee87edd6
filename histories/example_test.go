package histories_test

import (
	"bytes"
	"fmt"
	"time"

	"ackproof/histories"
)

// A history of one's own system: record every operation before it is sent and after it was answered, and read it again.
func Example() {
	var file bytes.Buffer
	clock := time.Duration(0)
	journal := histories.NewRecorderClock(&file, histories.Header{Run: 1}, func() time.Duration { clock += time.Millisecond; return clock })

	write := []histories.Step{{Do: histories.Write, Key: "x", Value: histories.IntDatum(3)}}
	op := journal.Invoke(histories.Event{Kind: histories.Object, Process: 1, Steps: write})
	// … the request is sent here, and its answer came:
	journal.Complete(histories.Event{Kind: histories.Object, Process: 1, Op: op, Type: histories.OK, Steps: write})
	if err := journal.Close(); err != nil {
		fmt.Println(err)
	}

	in, err := histories.NewFile(&file, "history.bin", "") // or OpenAny, for a file in any format
	if err != nil {
		fmt.Println(err)
		return
	}
	for ev, err := range in.All() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(ev.Time, ev.Type, ev.Steps[0].Do, ev.Steps[0].Key, ev.Steps[0].Value.Int)
	}
	// Output:
	// 1ms invoke write x 3
	// 2ms ok write x 3
}
