// Package fault names the planted bugs of the reference broker. Product code asks On(fault.AckBeforeISR) where the bug would
// be; in a normal build On is the constant false and the compiler removes the branch, so a planted bug cannot be in a binary
// by accident. Under the build tag `failpoints` the answer comes from pingcap/failpoint's registry (see on_failpoints.go).
//
// The package knows what is to be expected of a bug (see Catalogue); what it does stands beside the rule that it breaks. It must
// not know the broker or the harness. Start reading at Catalogue.
package fault

// Bug is one planted bug.
type Bug struct {
	ID   string // "B01"
	Name string // "ack-before-isr"
}

// The bugs that this broker carries; Catalogue says more of each.
var (
	AckBeforeISR            = Bug{"B01", "ack-before-isr"}
	MinISRAtAppendOnly      = Bug{"B02", "min-isr-checked-at-append-only"}
	ISRExpandTooEarly       = Bug{"B03", "isr-expand-before-caught-up"}
	ISRWidenAckGap          = Bug{"B04", "isr-widen-ack-gap"}
	UncleanElection         = Bug{"B05", "unclean-election-despite-off"}
	TruncateToHW            = Bug{"B06", "truncate-to-hw"}
	EpochEndWithoutEpoch    = Bug{"B07", "epoch-end-without-epoch"}
	DivergingFetchCounts    = Bug{"B08", "diverging-fetch-counts"}
	FetchAboveHW            = Bug{"B09", "fetch-above-hw"}
	HWResetOnRestart        = Bug{"B10", "hw-reset-on-restart"}
	EndOffsetBackwards      = Bug{"B11", "end-offset-backwards"}
	AckBeforeFsync          = Bug{"B12", "ack-before-fsync"}
	SwallowWriteError       = Bug{"B13", "swallow-write-error"}
	RestartedStaysInSync    = Bug{"B16", "wiped-disk-rejoins-isr"}
	VoteNotDurable          = Bug{"B17", "vote-not-durable"}
	ProducerStateLostOnRoll = Bug{"B18", "producer-state-lost-on-roll"}
	ProducerStateLeaderOnly = Bug{"B19", "producer-state-not-on-followers"}
	DedupeBeforeAppend      = Bug{"B20", "dedupe-before-append"}
	SequenceGapAccepted     = Bug{"B21", "sequence-gap-accepted"}
	StartOffsetNotDurable   = Bug{"B28", "start-offset-not-durable"}
	RecreateReusesLog       = Bug{"B30", "topic-recreate-reuses-log"}

	AckOnDemotion             = Bug{"B31", "pending-ack-succeeds-on-demotion"}
	UncleanStopStaysEligible  = Bug{"B32", "last-replica-elected-after-power-loss"}
	DivergenceOffByOne        = Bug{"B33", "divergence-off-by-one"}
	RepeatOfAnotherBatch      = Bug{"B34", "repeat-answered-with-another-batch"}
	AckOnTimeout              = Bug{"B35", "timeout-answered-as-success"}
	ISRShrinkAtOnce           = Bug{"B36", "isr-shrink-counts-before-answer"}
	HWByMinISR                = Bug{"B37", "hw-by-min-isr-members"}
	FollowersTakenForCaughtUp = Bug{"B38", "followers-taken-for-caught-up"}
	ProducerStateNotCut       = Bug{"B39", "producer-state-not-cut"}
	EpochStartsAtHW           = Bug{"B40", "epoch-starts-at-hw"}
	ELRNotEmptied             = Bug{"B41", "elr-not-emptied"}
	FlushErrorForgotten       = Bug{"B42", "fsync-error-then-retry-ok"}
)
