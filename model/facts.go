package model

// Facts are what the harness knows about a run beside its history: without them a checker cannot tell a promise that was kept from one that
// was never put to the test. A run directory keeps them as facts.json.
type Facts struct {
	Faults        []FaultResult `json:"faults"`
	LeaderChanges int           `json:"leader_changes"`
	// DrainComplete: after healing all views agreed on leader and epoch, the in-sync sets were full and the visible end was the log end, and
	// everything was then read to an empty read at that end. Without it the tail of a log is undecided.
	DrainComplete bool     `json:"drain_complete"`
	DrainReason   string   `json:"drain_reason"`  // why it is not complete
	CopiesRead    int      `json:"copies_read"`   // copies of partitions that were read to their end, the leader's included
	CopiesWanted  int      `json:"copies_wanted"` // partitions × replication
	Liveness      Recovery `json:"liveness"`
	// GroupsDrained: after healing, when nothing was written any more, every consumer group read on to the end of every partition and committed it.
	GroupsDrained bool `json:"groups_drained,omitempty"`
	// GroupsReason is why they did not, "" if they did.
	GroupsReason string `json:"groups_reason,omitempty"`
	// GroupsStalledMS is the longest time of the load in which some consumer group processed nothing.
	GroupsStalledMS int64 `json:"groups_stalled_ms,omitempty"`
	// Broken tells which part of the harness died and why, "" if none: then no claim is held.
	Broken string `json:"broken"`
	// Notes are remarkable things of which no claim speaks, such as a node that ended by itself.
	Notes []string `json:"notes,omitempty"`
}

// Recovery is what was seen of the recovery after healing.
type Recovery struct {
	Checked bool     `json:"checked"`
	BoundMS int64    `json:"bound_ms"`
	TookMS  int64    `json:"took_ms"` // until everything worked again
	Unmet   []string `json:"unmet"`   // what did not work when the bound had passed: "p3 has no leader", "p1 accepts no write"
}
