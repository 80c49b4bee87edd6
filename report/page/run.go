// Package page makes report.html: one self-contained file that says what was promised, what held, what broke with its smallest proof, and what was never
// tested, and that holds every operation of the run to look at. The file asks nobody for anything: text is escaped, data is base64, and a content
// security policy forbids the rest. The package knows results, certificates and events; it knows nothing of how a run is made, and decides nothing.
//
// Start reading at Run and Write. The text of the page is template.html, filled in by view.go; what a picture needs is collected from the history in one pass
// (collect.go) and, for the neighbourhood of an offset, in a second one (window.go); columns.go packs the operations, assets/ draws them.
package page

import (
	"iter"
	"time"

	"ackproof/histories"
	"ackproof/model"
)

// Run is what the page tells about.
type Run struct {
	Results  model.Results
	Facts    model.Facts
	Contract model.Contract
	Proofs   []Proof // of the anomalies, in the order of the results
	Dir      string  // the run directory, as people name it
	Started  time.Time
	Replay   string // the command that repeats the run
	Command  string // the command that made it, "" if unknown
	Planted  string // the bug that was planted in the system on purpose, "" if none
	Schedule string // the planned faults as JSON, "" if unknown
	// Facts of the run in words: versions, machine, options.
	Environment []Pair
	// FaultsNotAsked are kinds of faults that there are and that this run was not asked for.
	FaultsNotAsked []string
	Series         Series
	// Events gives the history from its beginning, each time it is called.
	Events func() iter.Seq2[histories.Event, error]
}

// Pair is a fact and its name.
type Pair struct{ Name, Value string }

// Proof is one certificate of the run.
type Proof struct {
	Path string // of the certificate, in the run directory
	model.Certificate
	// Porcupine is the path of porcupine's view of the window round it, relative to the page, "" if there is none; NoPorcupine says why.
	Porcupine   string
	NoPorcupine string
}

// Series is what is known of other runs of the same test.
type Series struct {
	Runs     int // decided runs of the same test in the store, this one and earlier ones
	Violated int // of these
	Previous *Earlier
}

// Earlier is an earlier run to compare with.
type Earlier struct {
	Name    string // as people name it
	Results model.Results
	Differs []string // what differs between the tests: "seed 7, was 6"
}
