package model

// Facts are what the harness knows about a run beside its history: without them a checker cannot tell a promise that was kept from one that
// was never put to the test.
type Facts struct {
	Faults        []FaultResult
	LeaderChanges int
	// DrainComplete: after healing all views agreed on leader and epoch, the in-sync sets were full and the visible end was the log end, and
	// everything was then read to an empty read at that end. Without it the tail of a log is undecided.
	DrainComplete bool
	DrainReason   string // why it is not complete
	CopiesRead    int    // copies of partitions that were read to their end, the leader's included
	CopiesWanted  int    // partitions × replication
	Liveness      Recovery
	// Broken tells which part of the harness died and why, "" if none: then no claim is held.
	Broken string
}

// Recovery is what was seen of the recovery after healing.
type Recovery struct {
	Checked bool
	BoundMS int64
	TookMS  int64    // until everything worked again
	Unmet   []string // what did not work when the bound had passed: "p3 has no leader", "p1 accepts no write"
}
