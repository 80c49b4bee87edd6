package sim

import (
	"fmt"
	"slices"
	"time"

	"ackproof/model"
	"ackproof/nemesis"
	"ackproof/sim/cluster"
	"ackproof/systems"
)

// Case is everything that decides a simulated run: the same case gives the same run, bit for bit. It is what a corpus keeps and what shrinking shrinks. JSON.
type Case struct {
	Seed        int64   `json:"seed"`
	Nodes       int     `json:"nodes"`
	Partitions  int     `json:"partitions"`
	Replication int     `json:"replication"`
	MinISR      int     `json:"min_insync"`
	Acks        int     `json:"acks"` // 0, 1, −1 (all)
	Idempotent  bool    `json:"idempotent"`
	Unclean     bool    `json:"unclean_election"`
	FlushEach   bool    `json:"flush_each"`
	Clients     int     `json:"clients"`
	Rate        int     `json:"rate"`                // records per second of all producers; 0: as fast as they can
	LoadMS      int64   `json:"load_ms"`             // virtual
	InFlight    bool    `json:"in_flight,omitempty"` // some producers have several writes under way
	Deletes     bool    `json:"deletes,omitempty"`   // the older part of the log is deleted now and then
	Recreated   bool    `json:"recreated,omitempty"` // the topic is the second one of its name; the first was deleted while a node was down that had a copy
	Store       string  `json:"store"`               // "memory", or "segment": the broker's own, on a simulated disk
	Plant       string  `json:"plant,omitempty"`
	Groups      *Groups `json:"groups,omitempty"` // nil: the log's own readers
	Timers      Timers  `json:"timers"`
	Net         Net     `json:"net"`

	Schedule nemesis.Schedule `json:"schedule"`
}

// Timers are a broker's time-outs, in ms; see cluster.Timers.
type Timers struct {
	Session    int64 `json:"session_ms"`
	Heartbeat  int64 `json:"heartbeat_ms"`
	Lag        int64 `json:"lag_ms"`
	FetchWait  int64 `json:"fetch_wait_ms"`
	RaftTick   int64 `json:"raft_tick_ms"`
	Election   int64 `json:"election_ms"`
	Rebalance  int64 `json:"rebalance_ms"`
	Checkpoint int64 `json:"checkpoint_ms"`
}

// Net is how long messages and flushes take, in µs.
type Net struct {
	Least      int64 `json:"least_us"`
	Most       int64 `json:"most_us"`
	Slow       int64 `json:"slow_us"`
	SlowEvery  int   `json:"slow_every"`
	Link       int64 `json:"link_us,omitempty"`   // the most that one link takes longer than others, always
	DriftPPM   int64 `json:"drift_ppm,omitempty"` // the most, in millionths, that a node's clock goes faster or slower than the world's
	FlushLeast int64 `json:"flush_least_us"`
	FlushMost  int64 `json:"flush_most_us"`
}

// Default is the case that `ackproof test` runs by default, in the simulator's terms: the same cluster and timers, fewer partitions and a gentler load, since
// virtual time is cheap and events are not.
func Default(seed int64) Case {
	return Case{
		Seed: seed, Nodes: 3, Partitions: 2, Replication: 3, MinISR: 2, Acks: -1, Idempotent: true, Clients: 8, Rate: 400, LoadMS: 20_000, Store: "memory",
		Timers: Timers{Session: 1500, Heartbeat: 200, Lag: 700, FetchWait: 200, RaftTick: 50, Election: 1200, Rebalance: 2000, Checkpoint: 5000},
		Net:    Net{Least: 100, Most: 600, Slow: 8000, SlowEvery: 64, FlushLeast: 300, FlushMost: 4000},
	}
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
func us(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// Load is the virtual time of load.
func (c Case) Load() time.Duration { return ms(c.LoadMS) }

// Scale is what gaps and lengths of faults are scaled by.
func (c Case) Scale() systems.Timers {
	return systems.Timers{Session: ms(c.Timers.Session), Lag: ms(c.Timers.Lag), Fetch: 50 * time.Millisecond, Election: ms(c.Timers.Election)}
}

// WithSchedule is the case with a schedule drawn from its seed, as `ackproof test` draws it; kinds as in nemesis.GenerateOptions.
func (c Case) WithSchedule(kinds []nemesis.Kind) Case {
	c.Schedule = c.generate(kinds, false)
	return c
}

func (c Case) generate(kinds []nemesis.Kind, shuffle bool) nemesis.Schedule {
	return nemesis.Generate(c.Seed, nemesis.GenerateOptions{
		Kinds: kinds, Nodes: c.Nodes, Partitions: c.Partitions, Clients: c.Clients, Load: c.Load(), Timers: c.Scale(), Shuffle: shuffle, Groups: c.Groups != nil,
	})
}

// livenessBound is what the contract allows from the heal to full service.
const livenessBound = 20 * time.Second

// Contract is what the case promises if its faults leave some copy whole at any time (exposed is false).
func (c Case) Contract(exposed bool) model.Contract {
	contract := model.LogContract(model.Contract{
		System: "simulated", Workload: "log", Partitions: c.Partitions, Replication: c.Replication, MinISR: c.MinISR, Acks: c.Acks, Idempotent: c.Idempotent,
		Unclean: c.Unclean, FlushEach: c.FlushEach, PowerLoss: exposed, Dense: true, LivenessBoundMS: livenessBound.Milliseconds(),
	})
	if c.Groups != nil {
		if c.Groups.Storm {
			contract.GroupBoundMS = c.Groups.load().StallBound().Milliseconds()
		}
		return model.GroupContract(contract, c.Groups.commit())
	}
	return contract
}

// mayExpose tells whether the faults can do what nemesis.Exposure decides at the end of the run.
func (c Case) mayExpose() bool {
	return nemesis.MayExpose(c.Schedule.Uses(), c.FlushEach)
}

// Validate tells what makes no sense.
func (c Case) Validate() error {
	bad := func(what string, got any, want string) error {
		return fmt.Errorf("simulated case: %s is %v, expected %s", what, got, want)
	}
	t := c.Timers
	switch {
	case c.Nodes < 1 || c.Nodes > 15:
		return bad("nodes", c.Nodes, "1 to 15")
	case c.Partitions < 1 || c.Partitions > 64:
		return bad("partitions", c.Partitions, "1 to 64")
	case c.Replication < 1 || c.Replication > c.Nodes:
		return bad("replication", c.Replication, "at least 1 and at most one copy per node")
	case c.MinISR < 1 || c.MinISR > c.Replication:
		return bad("min_insync", c.MinISR, "1 to the replication factor")
	case c.Acks < -1 || c.Acks > 1:
		return bad("acks", c.Acks, "0, 1 or −1 (all)")
	case c.Idempotent && c.Acks != -1:
		return bad("idempotent", c.Idempotent, "false unless acks is −1")
	case c.InFlight && !c.Idempotent:
		return bad("in_flight", c.InFlight, "false unless producers are idempotent")
	case c.Recreated && c.Nodes < 3:
		return bad("recreated", c.Recreated, "false, unless there are 3 nodes or more: one of them is down meanwhile")
	case c.Clients < 1 || c.Clients > 128:
		return bad("clients", c.Clients, "1 to 128")
	case c.Rate < 0:
		return bad("rate", c.Rate, "0 or more")
	case c.LoadMS < 100 || c.LoadMS > 24*3600*1000:
		return bad("load_ms", c.LoadMS, "100 to a day")
	case c.Net.DriftPPM < 0 || c.Net.DriftPPM > 500_000 || c.Net.Link < 0:
		return bad("net", fmt.Sprintf("%+v", c.Net), "drift_ppm from 0 to 500000, and link_us of at least 0")
	case c.disk() == nil:
		return bad("store", fmt.Sprintf("%q", c.Store), "memory or segment")
	case t.Session <= 0 || t.Heartbeat <= 0 || t.Lag <= 0 || t.FetchWait < 0 || t.FetchWait >= t.Lag || t.RaftTick <= 0 || t.Election < 3*t.RaftTick || t.Rebalance < 0 || t.Checkpoint < 0:
		return bad("timers", fmt.Sprintf("%+v", t), "positive times, fetch_wait below lag, the election time-out at least three ticks")
	}
	if c.Groups != nil {
		if err := c.Groups.validate(c); err != nil {
			return err
		}
	}
	for i, f := range c.Schedule.Faults {
		if f.Cut.Plane != "" {
			return bad(fmt.Sprintf("schedule: faults[%d].cut.plane", i), f.Cut.Plane, "nothing: simulated nodes have one listener each")
		}
		if !slices.Contains(nemesis.SimulatedKinds(), f.Kind) && slices.Contains(nemesis.AllKinds(), f.Kind) {
			return bad(fmt.Sprintf("schedule: faults[%d].kind", i), f.Kind, fmt.Sprintf("one that the simulator has: %v", nemesis.SimulatedKinds()))
		}
	}
	return c.Schedule.Validate(c.Nodes, c.Partitions, c.Clients)
}

func (c Case) disk() func(int) cluster.Disk {
	switch c.Store {
	case "memory":
		return cluster.Memory
	case "segment":
		return cluster.Segments(segmentBytes)
	}
	return nil
}

func (c Case) cluster() cluster.Config {
	t := c.Timers
	config := cluster.Config{
		Nodes: c.Nodes, Topic: topic, Partitions: c.Partitions, Replication: c.Replication, MinISR: c.MinISR, Unclean: c.Unclean, FlushEach: c.FlushEach,
		Timers: cluster.Timers{
			Session: ms(t.Session), Heartbeat: ms(t.Heartbeat), Lag: ms(t.Lag), FetchWait: ms(t.FetchWait), RaftTick: ms(t.RaftTick), Election: ms(t.Election),
			Rebalance: ms(t.Rebalance), Checkpoint: ms(t.Checkpoint),
		},
		FlushLeast: us(c.Net.FlushLeast), FlushMost: us(c.Net.FlushMost), Disk: c.disk(),
	}
	if c.Groups != nil {
		config.Groups = c.Groups.cluster(c.Replication)
	}
	return config
}

// segmentBytes is small, so that logs of the length that a run gives them have several segments.
const segmentBytes = 16 << 10

// topic is the topic of every simulated run.
const topic = "t"
