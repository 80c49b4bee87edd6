package main

import (
	"fmt"
	"strings"
)

// Checker is a part of the code that decides something, with the edits that its tests have to notice.
type Checker struct {
	Name     string
	Packages []string // folders whose tests are its tests, the quickest first; a mutant is killed by the first that fails
	First    string   // regexp of the tests that are tried before all of them, since they kill most; "": none
	Mutants  []Mutant
}

// Mutant is one wrong edit.
type Mutant struct {
	File  string // path from the root of the module
	Old   string // stands in the file exactly once
	New   string // what stands there instead
	Means string // the mistake that this would be
}

// String names the mutant in messages.
func (m Mutant) String() string { return fmt.Sprintf("%s (%s)", m.File, m.Means) }

// apply makes the edit in the text of the file.
func (m Mutant) apply(text string) (string, error) {
	switch n := strings.Count(text, m.Old); {
	case m.Old == m.New:
		return "", fmt.Errorf("%s: it changes nothing", m)
	case n != 1:
		return "", fmt.Errorf("%s: the old text stands there %d times, expected once; the list is stale:\n%s", m, n, m.Old)
	}
	return strings.Replace(text, m.Old, m.New, 1), nil
}

// catalogue is the whole list, from the codec up to the broker's rules.
func catalogue() []Checker {
	return []Checker{
		validator,
		codec,
		importers,
		logChecker,
		secondOpinion,
		onlineChecker,
		commitChecker,
		fifoChecker,
		queueChecker,
		groupChecker,
		setChecker,
		totalQueueChecker,
		objectChecker,
		txnChecker,
		replica,
		control,
	}
}
