package model

// Contract is what a configuration promises. It is derived before the run and printed; checkers judge by it, so loss that the
// configuration permits is reported as permitted and never as a violation.
type Contract struct {
	System      string `json:"system"`
	Workload    string `json:"workload"`
	Partitions  int    `json:"partitions"`
	Replication int    `json:"replication"`
	MinISR      int    `json:"min_insync"`
	Acks        int    `json:"acks"` // 0, 1 or −1 (all)
	Idempotent  bool   `json:"idempotent"`
	Unclean     bool   `json:"unclean_election"`
	FlushEach   bool   `json:"flush_each"` // a batch is flushed before it is acknowledged
	// PowerLoss: the faults took the power (without a flush before the ack) or the disk of a copy while no other was whole; see LogContract.
	PowerLoss bool `json:"power_loss,omitempty"`
	// PowerLossUntil is the number of an event of the history, after the last such loss, at which every copy was whole again: a record that was sent later rested on whole copies. 0: there is none.
	PowerLossUntil uint64 `json:"power_loss_until,omitempty"`
	Dense          bool   `json:"dense"` // offsets have no holes (no transactions, no compaction)
	// Commit says when members of consumer groups commit what they were given: CommitAfter or CommitBefore they process it; "" where there are none.
	Commit string `json:"commit,omitempty"`
	// GroupBoundMS: consumer groups go through a storm of rebalances, and while no fault is injected each of them processes something at least that often. 0: there is no storm.
	GroupBoundMS int64 `json:"group_bound_ms,omitempty"`
	// LivenessBound is how long after healing the system may take until it works again, in ms.
	LivenessBoundMS int64 `json:"liveness_bound_ms"`
	// Promises in the order in which they are reported.
	Promises []Promise `json:"promises"`
}

// Promise is one claim of a contract.
type Promise struct {
	Claim Claim  `json:"claim"`
	Text  string `json:"text"` // one plain sentence for people
	// Permits are the anomalies that this configuration allows although the claim names them, each with its cause ("acks=1").
	Permits map[Anomaly]string `json:"permits,omitempty"`
}
