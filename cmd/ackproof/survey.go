package main

import (
	"fmt"
	"iter"

	"ackproof/histories"
)

// source is a history in any format.
type source interface {
	Header() histories.Header
	All() iter.Seq2[histories.Event, error]
	Close() error
}

// formats are the names that --format takes beside auto.
func formats() []string { return []string{"native"} }

// open opens a history.
func open(path, format string) (source, error) {
	switch format {
	case "auto", "native":
		return histories.Open(path)
	}
	return nil, usagef("--format is %q, expected auto or one of: %v", format, formats())
}

// surveyed is what a first reading of a history shows: enough to choose model and contract.
type surveyed struct {
	path       string
	header     histories.Header
	operations int64 // invocations
	kinds      [histories.Phase + 1]int64
	partitions int   // one more than the largest number
	drained    bool  // the history marks where its drain begins
	cut        bool  // the file ends inside a block
	cutAt      int64 // byte
}

// survey reads a history once.
func survey(path, format string) (*surveyed, error) {
	in, err := open(path, format)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	s := &surveyed{path: path, header: in.Header()}
	for ev, err := range in.All() {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if ev.Kind > histories.Phase {
			return nil, fmt.Errorf("%s: event %d is of unknown kind %d: %w", path, ev.Seq, ev.Kind, histories.ErrMalformed)
		}
		if ev.Kind == histories.Phase && ev.Note == "drain" {
			s.drained = true
		}
		if ev.Type == histories.Invoke && ev.Kind.IsOperation() {
			s.operations++
			s.kinds[ev.Kind]++
			s.partitions = max(s.partitions, int(ev.Partition)+1)
		}
	}
	if cut, ok := in.(interface{ Truncated() (int64, bool) }); ok {
		s.cutAt, s.cut = cut.Truncated()
	}
	return s, nil
}
