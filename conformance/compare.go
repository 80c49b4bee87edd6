package main

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"ackproof/conformance/program"
)

// complete checks that records holds each of the values from to from+n−1, and none else; exactly once if once.
func complete(what string, records []program.Event, from, n int, once bool) error {
	index := make(map[string]int, n)
	for i := from; i < from+n; i++ {
		index[program.Value(i)] = i
	}
	times := make(map[int]int, n)
	for _, r := range records {
		i, ok := index[r.Value]
		if !ok {
			return fmt.Errorf("%s: %.40q at offset %d of partition %d, which was not sent", what, r.Value, r.Offset, r.Partition)
		}
		if times[i]++; once && times[i] > 1 {
			return fmt.Errorf("%s twice: record %d, again at offset %d of partition %d", what, i, r.Offset, r.Partition)
		}
	}
	if len(times) == n {
		return nil
	}
	for i := from; i < from+n; i++ {
		if times[i] == 0 {
			return fmt.Errorf("%s: %d of %d records; the first that is missing is %d", what, len(times), n, i)
		}
	}
	return nil
}

// acknowledged checks that every record was acknowledged once. Programs whose library does not tell which one it was leave the value empty; then they
// are counted.
func acknowledged(acked []program.Event, n int) error {
	if len(acked) > 0 && acked[0].Value != "" {
		return complete("acknowledged", acked, 0, n, true)
	}
	if len(acked) != n {
		return fmt.Errorf("%d of %d records were acknowledged", len(acked), n)
	}
	return nil
}

func events(log []*kgo.Record) []program.Event {
	all := make([]program.Event, len(log))
	for i, r := range log {
		all[i] = program.Event{Partition: r.Partition, Offset: r.Offset, Value: string(r.Value)}
	}
	return all
}

// acksAgree checks that each record lies where its acknowledgement said. Programs whose library does not tell say offset −1.
func acksAgree(acked []program.Event, log []*kgo.Record) error {
	type place struct {
		partition int32
		offset    int64
	}
	at := make(map[place]string, len(log))
	for _, r := range log {
		at[place{r.Partition, r.Offset}] = string(r.Value)
	}
	for _, a := range acked {
		if a.Offset < 0 {
			continue
		}
		got, there := at[place{a.Partition, a.Offset}]
		if !there || a.Value != "" && got != a.Value {
			return fmt.Errorf("acknowledged at offset %d of partition %d: %.20q, but there lies %.20q", a.Offset, a.Partition, a.Value, got)
		}
	}
	return nil
}
