package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"

	"ackproof/histories"
)

// nativeFigures are those of the native format.
func nativeFigures(b *bench) error {
	title("Native format")
	const n = 2_000_000
	path, size, err := b.history("log", n, false, histories.Native)
	if err != nil {
		return err
	}
	defer os.Remove(path)
	read, err := b.measure("read", path)
	if err != nil {
		return err
	}
	rate := float64(read.Events) / read.CPU / 1e6
	row("decode", fmt.Sprintf("%.1f M events/CPU-s, %.1f M events/s by the clock", rate, float64(read.Events)/read.Wall/1e6), "≥ 10 M/s", rate >= 10)
	per := float64(size) / float64(read.Events)
	row("size", fmt.Sprintf("%.1f B/event", per), "≤ 20 B", per <= 20)
	recorded, err := b.measure("record", n)
	if err != nil {
		return err
	}
	rate = float64(recorded.Events) / recorded.Wall / 1e6
	row("record from 8 goroutines", fmt.Sprintf("%.1f M events/s by the clock, %.1f M events/CPU-s", rate, float64(recorded.Events)/recorded.CPU/1e6), "≥ 5 M/s", rate >= 5)
	return nil
}

// recordJob records so many events from eight goroutines: appends of one record, and their ends.
func recordJob(m *measured, args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	r := histories.NewRecorder(io.Discard, histories.Header{Run: 1})
	var group sync.WaitGroup
	for c := range int32(clients) {
		group.Go(func() {
			runs := []histories.Run{{Producer: c, Count: 1}}
			for i := range int64(n / clients / 2) {
				runs[0].Sequence = i
				op := r.Invoke(histories.Event{Kind: histories.Append, Process: c, Partition: c % partitions, Runs: runs})
				r.Complete(histories.Event{Op: op, Kind: histories.Append, Type: histories.OK, Process: c, Partition: c % partitions, Offset: i, LeaderEpoch: 1})
			}
		})
	}
	group.Wait()
	m.Events = int64(n / clients / 2 * clients * 2)
	return r.Close()
}

// ednFigures are those of the import of Jepsen's histories.
func ednFigures(b *bench) error {
	title("Import of EDN (Jepsen's kafka workload)")
	const n = 200_000
	path, size, err := b.history("log", n, false, histories.EDN)
	if err != nil {
		return err
	}
	defer os.Remove(path)
	read, err := b.measure("read", path)
	if err != nil {
		return err
	}
	rate := float64(read.Operations) / read.CPU
	row("import", fmt.Sprintf("%.0f operations/CPU-s, %.0f MB/CPU-s, peak %.0f MB", rate, float64(size)/read.CPU/1e6, read.PeakMB), "≥ 200000 operations/s", rate >= 200_000)
	return nil
}
