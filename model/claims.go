// Package model says what can be promised and what breaks a promise: claims, anomalies, contracts, verdicts, certificates, results, and
// the sequential specifications (porcupine models) of small objects. It knows nothing of how histories are recorded or checked, and of no
// particular system. Start reading at Claim and Contract.
package model

// Claim is the stable id of one promise. Scripts of users depend on these names.
type Claim string

// The claims of a log.
const (
	NoLoss          Claim = "no-loss"
	AtLeastOnce     Claim = "at-least-once"
	SessionReads    Claim = "session-reads"
	Order           Claim = "order"
	RealTimeOrder   Claim = "real-time-order"
	OffsetAgreement Claim = "offset-agreement"
	NoPhantom       Claim = "no-phantom"
	NoDirtyRead     Claim = "no-dirty-read"
	NoDuplicate     Claim = "no-duplicate"
	VisibleEnd      Claim = "visible-end"
	ReadAfterAck    Claim = "read-after-ack" // opt-in: Kafka does not promise it right after a leader change
	Liveness        Claim = "liveness"
)

// Anomaly is the stable id of one way to break a claim.
type Anomaly string

// The anomalies of a log, under the claim that each breaks.
const (
	LostAcked            Anomaly = "lost-acked"
	Undelivered          Anomaly = "undelivered"
	PollSkip             Anomaly = "poll-skip"
	NonmonotonicPoll     Anomaly = "nonmonotonic-poll"
	Reordered            Anomaly = "reordered"
	ReorderedRealtime    Anomaly = "reordered-realtime"
	InconsistentOffset   Anomaly = "inconsistent-offset"
	ReplicaDivergence    Anomaly = "replica-divergence"
	UnfillableGap        Anomaly = "unfillable-gap"
	Phantom              Anomaly = "phantom"
	FutureRead           Anomaly = "future-read"
	CorruptValue         Anomaly = "corrupt-value"
	ForeignRecord        Anomaly = "foreign-record"
	DirtyRead            Anomaly = "dirty-read"
	Duplicate            Anomaly = "duplicate"
	StaleEndOffset       Anomaly = "stale-end-offset"
	StartOffsetBackwards Anomaly = "start-offset-backwards"
	StartAboveHW         Anomaly = "start-above-hw"
	StaleRead            Anomaly = "stale-read"
	UnavailableAfterHeal Anomaly = "unavailable-after-heal"
)

// Verdict is the answer to one claim, or to all.
type Verdict string

// The verdicts; Worst orders them violated > undecided > not-tested > held.
const (
	Held      Verdict = "held"
	NotTested Verdict = "not-tested"
	Undecided Verdict = "undecided"
	Violated  Verdict = "violated"
)
