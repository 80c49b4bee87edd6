package model

// Results is results.json, version 1: see the interface description in the documentation. Fields are never renamed or removed within a version.
type Results struct {
	Version       int              `json:"version"`
	Seed          int64            `json:"seed"`
	System        SystemInfo       `json:"system"`
	Workload      string           `json:"workload"`
	Verdict       Verdict          `json:"verdict"`
	Exit          int              `json:"exit"`
	Operations    Operations       `json:"operations"`
	Records       Records          `json:"records"`
	Faults        []FaultResult    `json:"faults"`
	LeaderChanges int              `json:"leader_changes"`
	UnavailableMS map[string]int64 `json:"unavailable_ms"` // "max", and "p0", "p1", …: longest time without an acknowledged record
	Claims        []ClaimResult    `json:"claims"`
	SecondOpinion SecondOpinion    `json:"second_opinion"`
	Drain         Drain            `json:"drain"`
	Seconds       Seconds          `json:"seconds"`
}

// SystemInfo names the system under test.
type SystemInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Operations counts clients' operations by outcome.
type Operations struct {
	OK   int64 `json:"ok"`
	Fail int64 `json:"fail"`
	Info int64 `json:"info"`
}

// Records counts records: acknowledged, with unknown outcome, and returned by reads (re-reads count again).
type Records struct {
	Acked         int64 `json:"acked"`
	Indeterminate int64 `json:"indeterminate"`
	Read          int64 `json:"read"`
}

// FaultResult is what became of one fault of the schedule.
type FaultResult struct {
	Kind      string   `json:"kind"`
	Targets   []string `json:"targets"`
	Role      string   `json:"role"`
	FromMS    int64    `json:"from_ms"` // since the load began
	ToMS      int64    `json:"to_ms"`
	Effective bool     `json:"effective"`
	Proof     string   `json:"proof"` // what was seen before, during and after; or why it had no effect
}

// ClaimResult is the answer to one claim.
type ClaimResult struct {
	ID        Claim            `json:"id"`
	Verdict   Verdict          `json:"verdict"`
	Reason    string           `json:"reason"` // of undecided and not-tested
	Evidence  map[string]int64 `json:"evidence"`
	Anomalies []AnomalyResult  `json:"anomalies"`
	Permitted []PermittedLoss  `json:"permitted"`
}

// AnomalyResult counts the anomalies of one kind and points to the proof of the smallest.
type AnomalyResult struct {
	Kind        Anomaly `json:"kind"`
	Count       int64   `json:"count"`
	Certificate string  `json:"certificate"` // path in the run directory
	// Proof is the certificate itself; it is written to its own file and left out of results.json.
	Proof *Certificate `json:"-"`
	// Where lists places ("p3@1042"), the smallest first, up to a limit.
	Where []string `json:"where,omitempty"`
}

// PermittedLoss is an anomaly that the contract allows.
type PermittedLoss struct {
	Kind    Anomaly `json:"kind"`
	Count   int64   `json:"count"`
	Because string  `json:"because"`
}

// SecondOpinion is what porcupine confirmed.
type SecondOpinion struct {
	By         string `json:"by"`
	Windows    int    `json:"windows"`
	Operations int    `json:"operations"`
	Agreed     bool   `json:"agreed"`
}

// Drain tells how much of the final state was read back.
type Drain struct {
	Partitions   int  `json:"partitions"`
	ReplicasRead int  `json:"replicas_read"`
	Complete     bool `json:"complete"`
}

// Seconds are the durations of the run's phases.
type Seconds struct {
	Setup float64 `json:"setup"`
	Load  float64 `json:"load"`
	Heal  float64 `json:"heal"`
	Drain float64 `json:"drain"`
	Check float64 `json:"check"`
}
