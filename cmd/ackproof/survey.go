package main

import (
	"fmt"
	"slices"

	"github.com/dustin/go-humanize"

	"ackproof/histories"
	"ackproof/model"
)

// formats are the names that --format takes beside auto.
func formats() []string {
	var names []string
	for _, f := range histories.Formats() {
		names = append(names, string(f))
	}
	return names
}

// open opens a history; "auto" lets its first bytes decide.
func open(path, format string) (*histories.File, error) {
	switch {
	case format == "auto":
		format = ""
	case !slices.Contains(formats(), format):
		return nil, usagef("--format is %q, expected auto or one of: %v", format, formats())
	}
	return histories.OpenAny(path, histories.Format(format))
}

// surveyed is what a first reading of a history shows: enough to choose model and contract.
type surveyed struct {
	path       string
	header     histories.Header
	operations int64 // invocations
	kinds      [histories.Phase + 1]int64
	partitions int                   // one more than the largest number
	does       map[histories.Do]bool // what steps of objects do
	numbers    bool                  // some AppendTo puts a number, as on lists
	ordered    bool                  // some producer's sequence numbers are an order of sending
	drained    bool                  // the history marks where its drain begins
	cut        bool                  // the file ends inside a block
	cutAt      int64                 // byte
	noise      int64                 // lines that are no operations
}

// survey reads a history once.
func survey(path, format string) (*surveyed, error) {
	in, err := open(path, format)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	s := &surveyed{path: path, does: make(map[histories.Do]bool)}
	for ev, err := range in.All() {
		if err != nil {
			return nil, err
		}
		if ev.Kind > histories.Phase {
			return nil, fmt.Errorf("%w: %s: event %d is of unknown kind %d", histories.ErrMalformed, path, ev.Seq, ev.Kind)
		}
		if ev.Kind == histories.Phase && ev.Note == "drain" {
			s.drained = true
		}
		if ev.Type == histories.Invoke && ev.Kind.IsOperation() {
			s.operations++
			s.kinds[ev.Kind]++
			s.partitions = max(s.partitions, int(ev.Partition)+1)
		}
		if ev.Kind == histories.Append {
			s.ordered = s.ordered || slices.ContainsFunc(ev.Runs, func(r histories.Run) bool { return r.Producer >= 0 })
		}
		for _, step := range ev.Steps {
			s.does[step.Do] = true
			s.numbers = s.numbers || step.Do == histories.AppendTo && step.Value.Form == histories.Int
		}
	}
	s.header = in.Header()
	s.cutAt, s.cut = in.Truncated()
	s.noise = in.Noise()
	return s, nil
}

// facts are what the file itself says of the run: what is cut off may have been anything.
func (s *surveyed) facts() (f model.Facts) {
	if s.cut {
		f.Broken = fmt.Sprintf("the history is cut off at byte %d", s.cutAt)
	}
	return f
}

// notes are what its reader has to know of the file besides.
func (s *surveyed) notes() (notes []string) {
	if s.cut {
		notes = append(notes, fmt.Sprintf("%s is cut off inside the block at byte %d; what stands before it was judged", s.path, s.cutAt))
	}
	if s.noise > 0 {
		notes = append(notes, fmt.Sprintf("%s lines of %s are no operations", humanize.Comma(s.noise), s.path))
	}
	return notes
}

// only tells whether steps do nothing but what is listed.
func (s *surveyed) only(list ...histories.Do) bool {
	for do := range s.does {
		if !slices.Contains(list, do) {
			return false
		}
	}
	return true
}

// grouped tells whether all that is done to objects is what consumer groups do.
func (s *surveyed) grouped() bool {
	return len(s.does) > 0 && s.only(histories.Commit, histories.Committed, histories.Assigned, histories.Revoked, histories.Delivered, histories.Processed)
}
