// Package fault names the planted bugs of the reference broker. Product code asks On(fault.AckBeforeISR) where the bug would
// be; in a normal build On is the constant false and the compiler removes the branch, so a planted bug cannot be in a binary
// by accident. Under the build tag `failpoints` the answer comes from pingcap/failpoint's registry (see on_failpoints.go).
//
// The package knows names only: what a bug does stands beside the rule that it breaks. Ids: planted-bug catalogue B01-B30,
// described in docs/architecture.md.
package fault

// Bug is one planted bug.
type Bug struct {
	ID   string // "B01"
	Name string // "ack-before-isr"
}

// The bugs that this broker carries, each with the rule that it breaks.
var (
	AckBeforeISR            = Bug{"B01", "ack-before-isr"}                  // R1, R4
	MinISRAtAppendOnly      = Bug{"B02", "min-isr-checked-at-append-only"}  // R3, R4
	UncleanElection         = Bug{"B05", "unclean-election-despite-off"}    // R17
	TruncateToHW            = Bug{"B06", "truncate-to-hw"}                  // R8, R11
	FetchAboveHW            = Bug{"B09", "fetch-above-hw"}                  // R1
	HWResetOnRestart        = Bug{"B10", "hw-reset-on-restart"}             // R21, R22
	ProducerStateLeaderOnly = Bug{"B19", "producer-state-not-on-followers"} // R29
)

// All lists every bug of this broker, in the order of the ids.
func All() []Bug {
	return []Bug{AckBeforeISR, MinISRAtAppendOnly, UncleanElection, TruncateToHW, FetchAboveHW, HWResetOnRestart, ProducerStateLeaderOnly}
}

// Find returns the bug with that id or name.
func Find(idOrName string) (Bug, bool) {
	for _, b := range All() {
		if b.ID == idOrName || b.Name == idOrName {
			return b, true
		}
	}
	return Bug{}, false
}
