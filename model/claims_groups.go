package model

// The claims of consumer groups and work queues.
const (
	CommitSafety  Claim = "commit-safety"  // an acknowledged offset commit is not lost or undone
	GroupDelivery Claim = "group-delivery" // the group is given each record at least once between commits; one owner at a time
	Lease         Claim = "lease"          // no second delivery inside a valid lease
	FIFO          Claim = "fifo"           // order per group of messages
	DedupWindow   Claim = "dedup-window"   // no second delivery of one deduplication id inside the window
)

// The anomalies of consumer groups and work queues.
const (
	CommittedOffsetRegression Anomaly = "committed-offset-regression"
	ZombieCommit              Anomaly = "zombie-commit" // a commit of an older generation was accepted after one of a newer (commit-safety)
	GroupSkip                 Anomaly = "group-skip"
	DoubleOwner               Anomaly = "double-owner"
	EarlyRedelivery           Anomaly = "early-redelivery"
	FIFOInversion             Anomaly = "fifo-inversion"
	FalseEmpty                Anomaly = "false-empty" // a queue was said to be empty while something was in it all the time (fifo)
	DedupLeak                 Anomaly = "dedup-leak"
)

// GroupFloors are the floors of the claims of groups and work queues, for a history of which nothing else is known.
func GroupFloors() Floors {
	return Floors{
		CommitSafety:  {Evidence: counts("commits", 1, "reads", 1)},
		GroupDelivery: {Evidence: counts("assignments", 1, "delivered", 1)},
		Lease:         {Evidence: counts("receives", 1)},
		FIFO:          {Evidence: counts("dequeued", 1)},
		DedupWindow:   {Evidence: counts("identified", 1)},
		NoLoss:        {Evidence: counts("acked", 1)},
		NoPhantom:     {Evidence: counts("received", 1)},
		NoDuplicate:   {Evidence: counts("received", 1)},
		AtLeastOnce:   {Evidence: counts("acked", 1)},
	}
}
