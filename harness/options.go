// Package harness carries out one test of one system: plan, set up, probe, load with faults, heal, demand progress, drain, check, save. It
// knows systems and workloads by their interfaces and decides nothing by itself: verdicts come from package linearizability. Start reading
// at Test.
package harness

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"ackproof/model"
	"ackproof/nemesis"
)

// Duration is a time.Duration that JSON shows as "30s".
type Duration time.Duration

// MarshalJSON writes "30s".
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON reads "30s".
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("a duration is a string like \"30s\": %w", err)
	}
	v, err := time.ParseDuration(s)
	*d = Duration(v)
	return err
}

// Options is what a test was asked to do; run.json keeps it.
type Options struct {
	System      string         `json:"system"`
	Workload    string         `json:"workload"`
	Nodes       int            `json:"nodes"`
	Partitions  int            `json:"partitions"`
	Replication int            `json:"replication"`
	MinISR      int            `json:"min_insync"`
	Acks        int            `json:"acks"` // 0, 1, −1 (all)
	Idempotent  bool           `json:"idempotent"`
	Unclean     bool           `json:"unclean_election"`
	FlushEach   bool           `json:"flush_each"`
	Time        Duration       `json:"time"` // of load
	Rate        int            `json:"rate"` // records per second, 0: as many as the system takes
	Clients     int            `json:"clients"`
	Nemesis     []nemesis.Kind `json:"nemesis"` // kinds of faults; none: no faults
	// Backend is what the run stands on, by its name; "" is proxies.
	Backend string `json:"backend,omitempty"`
	// Require: the run does not begin if a fault that it wants cannot be injected.
	Require   bool          `json:"require,omitempty"`
	Seed      int64         `json:"seed"`
	Plant     string        `json:"plant,omitempty"`
	Commit    string        `json:"commit,omitempty"`  // of the workload group: model.CommitAfter, CommitBefore
	Members   int           `json:"members,omitempty"` // of each group; 0: 3
	Storm     bool          `json:"storm,omitempty"`   // members of groups live for moments only
	KeepGoing bool          `json:"keep_going"`        // do not end the load when a violation is certain
	Claims    []model.Claim `json:"claims,omitempty"`
	// Settings are what only the system under test knows, by name; see its package.
	Settings map[string]string `json:"settings,omitempty"`
}

// UsageError is a senseless request: one line that says what was expected.
type UsageError struct{ text string }

func (e UsageError) Error() string { return e.text }

func usage(format string, args ...any) error { return UsageError{fmt.Sprintf(format, args...)} }

// Systems and workloads that there are.
var (
	Systems   = []string{"reference", "kafka"}
	Workloads = []string{"log", WorkloadGroup}
	Backends  = []string{BackendProxies, BackendSandbox}
)

// The back ends by their names.
const (
	BackendProxies = "proxies" // nemesis.Proxies
	BackendSandbox = "sandbox" // package nemesis/sandbox
)

// Bounds of what one machine can carry.
const (
	maxNodes      = 15
	maxPartitions = 256
	maxClients    = 128
	maxTime       = 24 * time.Hour
	maxMembers    = 200
)

// Validate returns a UsageError for the first thing that makes no sense.
func (o Options) Validate() error {
	within := func(flag string, v, from, to int) error {
		if v < from || v > to {
			return usage("--%s is %d, expected %d to %d", flag, v, from, to)
		}
		return nil
	}
	if !slices.Contains(Systems, o.System) {
		return usage("--system is %q, expected one of: %s", o.System, strings.Join(Systems, ", "))
	}
	if !slices.Contains(Workloads, o.Workload) {
		return usage("--workload is %q, expected one of: %s", o.Workload, strings.Join(Workloads, ", "))
	}
	for _, err := range []error{
		within("nodes", o.Nodes, 1, maxNodes),
		within("partitions", o.Partitions, 1, maxPartitions),
		within("clients", o.Clients, 1, maxClients),
	} {
		if err != nil {
			return err
		}
	}
	switch {
	case o.Replication < 2:
		return usage("--replication is %d, expected 2 or more: a single copy promises nothing that this test could put to the proof", o.Replication)
	case o.Replication > o.Nodes:
		return usage("--replication is %d with %d nodes, expected at most one copy per node", o.Replication, o.Nodes)
	case o.MinISR < 1 || o.MinISR > o.Replication:
		return usage("--min-insync is %d, expected 1 to the replication factor %d", o.MinISR, o.Replication)
	case o.Acks < -1 || o.Acks > 1:
		return usage("--acks is %d, expected 0, 1 or all", o.Acks)
	case o.Idempotent && o.Acks != -1:
		return usage("--idempotent needs --acks all, expected one or the other to be changed")
	case time.Duration(o.Time) < time.Second || time.Duration(o.Time) > maxTime:
		return usage("--time is %v, expected 1s to %v", time.Duration(o.Time), maxTime)
	case o.Workload != WorkloadGroup && o.Commit != "":
		return usage("--commit is %q with --workload %s, expected it with --workload %s only", o.Commit, o.Workload, WorkloadGroup)
	case o.Workload == WorkloadGroup && o.Commit != model.CommitAfter && o.Commit != model.CommitBefore:
		return usage("--commit is %q, expected %s or %s", o.Commit, model.CommitAfter, model.CommitBefore)
	case o.Workload != WorkloadGroup && (o.Members != 0 || o.Storm):
		return usage("--members is %d and --storm %t with --workload %s, expected them with --workload %s only", o.Members, o.Storm, o.Workload, WorkloadGroup)
	case o.Members < 0 || o.Members > maxMembers:
		return usage("--members is %d, expected 1 to %d", o.Members, maxMembers)
	case o.Workload == WorkloadGroup && (o.Acks != -1 || o.Unclean):
		return usage("--workload %s with --acks %d and unclean election %t, expected --acks all and clean elections: a group can be given only what the log keeps", WorkloadGroup, o.Acks, o.Unclean)
	case o.System == "reference" && len(o.Settings) > 0:
		return usage("settings of the system are %v with --system reference, expected none: it has none", o.Settings)
	case o.System != "reference" && o.Plant != "":
		return usage("--plant %s with --system %s, expected --system reference: only the reference broker has planted bugs", o.Plant, o.System)
	case o.Rate < 0:
		return usage("--rate is %d, expected 0 (as fast as the system takes it) or more records per second", o.Rate)
	}
	if o.Backend != "" && !slices.Contains(Backends, o.Backend) {
		return usage("--backend is %q, expected auto or one of: %s", o.Backend, strings.Join(Backends, ", "))
	}
	for _, k := range o.Nemesis {
		if !slices.Contains(nemesis.AllKinds(), k) {
			return usage("--nemesis has %q, expected none or a list of: %s", k, strings.ReplaceAll(strings.Trim(fmt.Sprint(nemesis.AllKinds()), "[]"), " ", ", "))
		}
	}
	return o.validateClaims()
}

func (o Options) validateClaims() error {
	if len(o.Claims) == 0 {
		return nil
	}
	known := []model.Claim{model.ReadAfterAck}
	for _, p := range o.Contract().Promises {
		known = append(known, p.Claim)
	}
	for _, c := range o.Claims {
		if !slices.Contains(known, c) {
			return usage("--claims has %q, expected all or a list of: %s", c, strings.Trim(fmt.Sprint(known), "[]"))
		}
	}
	return nil
}

// Contract is what the options promise of any system; the system's own contract is the one that counts.
func (o Options) Contract() model.Contract {
	return o.extended(model.LogContract(model.Contract{
		System: o.System, Workload: o.Workload, Partitions: o.Partitions, Replication: o.Replication, MinISR: o.MinISR, Acks: o.Acks,
		Idempotent: o.Idempotent, Unclean: o.Unclean, FlushEach: o.FlushEach, Dense: true,
	}))
}

// extended adds to the contract of a log what the workload can observe besides.
func (o Options) extended(c model.Contract) model.Contract {
	if o.Workload == WorkloadGroup {
		if o.Storm {
			c.GroupBoundMS = stormBound.Milliseconds()
		}
		return model.GroupContract(c, o.Commit)
	}
	return c
}
