package nemesis

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ackproof/systems"
)

var defaultRun = GenerateOptions{Nodes: 3, Partitions: 6, Clients: 8, Load: 30 * time.Second,
	Timers: systems.Timers{Session: 1500 * time.Millisecond, Lag: 700 * time.Millisecond, Fetch: 50 * time.Millisecond}}

const seeds = 1000

// presets of a schedule, in their order.
func presetsOf(s Schedule) []string {
	var out []string
	for _, f := range s.Faults {
		if len(out) == 0 || out[len(out)-1] != f.Preset {
			out = append(out, f.Preset)
		}
	}
	return out
}

func TestSameSeedSameSchedule(t *testing.T) {
	other := 0
	for seed := range int64(100) {
		a, b := Generate(seed, defaultRun), Generate(seed, defaultRun)
		if d := cmp.Diff(a, b); d != "" {
			t.Fatal(d)
		}
		if cmp.Diff(a.Faults, Generate(seed+3, defaultRun).Faults) != "" {
			other++
		}
	}
	if other < 100 {
		t.Errorf("only %d of 100 seeds give another schedule than the seed three further", other)
	}
}

// A default run of 30 s has enough of everything, whatever the seed.
func TestEveryDefaultScheduleHasItsShare(t *testing.T) {
	for seed := range int64(seeds) {
		s := Generate(seed, defaultRun)
		if err := s.Validate(3, 6, 8); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		count := map[Kind]int{}
		shape := map[Shape]int{}
		leaders := 0
		for _, f := range s.Faults {
			count[f.Kind]++
			shape[f.Cut.Shape]++
			if f.Kind == Kill && f.Target.Role != RoleFollower {
				leaders++
			}
		}
		oneWay := shape[OneWayIn] + shape[OneWayOut]
		if len(s.Faults) < 10 || count[Kill] < 4 || count[Pause] < 2 || count[Partition] < 2 || oneWay < 1 || shape[ClientLink] < 1 || leaders < 4 {
			t.Fatalf("seed %d: %d faults, kinds %v, shapes %v, %d kills of leaders", seed, len(s.Faults), count, shape, leaders)
		}
		for _, name := range []string{LostAckFailover.Name, LagThenKill.Name, DeafFollower.Name, ShrinkThenKill.Name, UncleanElectorate.Name, KillAll.Name} {
			if !slices.Contains(presetsOf(s), name) {
				t.Fatalf("seed %d lacks %s", seed, name)
			}
		}
	}
}

// A few runs with seeds in a row see the whole catalogue.
func TestSeedsInARowCoverTheCatalogue(t *testing.T) {
	for seed := int64(-10); seed < seeds; seed++ {
		var have []string
		for i := range int64(len(hands)) {
			have = append(have, presetsOf(Generate(seed+i, defaultRun))...)
		}
		for _, p := range Catalogue() {
			if p.fits(defaultRun.withDefaults()) && !slices.Contains(have, p.Name) {
				t.Fatalf("seeds %d to %d lack %s", seed, seed+int64(len(hands))-1, p.Name)
			}
		}
	}
}

// nominal plays a schedule with every state reached when the catalogue expects it, and gives the end of the last heal.
func nominal(s Schedule, o GenerateOptions) time.Duration {
	took, healed := make([]time.Duration, len(s.Faults)), make([]time.Duration, len(s.Faults))
	var end time.Duration
	for i, f := range s.Faults {
		at := ms(f.Start.AfterMS)
		if f.Start.Fault != nil {
			if at += took[*f.Start.Fault]; f.Start.Healed {
				at = ms(f.Start.AfterMS) + healed[*f.Start.Fault]
			}
		}
		switch {
		case f.Start.Recovered:
			at += time.Duration(recoveryInSessions * float64(o.Timers.Session))
		case f.Start.ISRAtMost > 0:
			at += o.Timers.Lag
		}
		took[i], healed[i] = at, at+ms(f.ForMS)+ms(f.StaggerMS)
	}
	for i, f := range s.Faults {
		if f.UntilFault != nil {
			healed[i] = min(healed[i], took[*f.UntilFault])
		}
		end = max(end, healed[i])
	}
	return end
}

func TestSchedulesFitTheLoad(t *testing.T) {
	for _, load := range []time.Duration{3, 5, 10, 20, 30, 60, 300} {
		o := defaultRun
		o.Load = load * time.Second
		for seed := range int64(100) {
			s := Generate(seed, o)
			if end := nominal(s, o); end > o.Load {
				t.Fatalf("%v, seed %d: the last fault is healed after %v", o.Load, seed, end)
			}
			if len(s.Faults) < int(load)/4 {
				t.Fatalf("%v, seed %d: only %d faults", o.Load, seed, len(s.Faults))
			}
		}
	}
}

func TestTwentySecondsHaveAllKinds(t *testing.T) {
	o := defaultRun
	o.Load = 20 * time.Second
	for seed := range int64(seeds) {
		count := map[Kind]int{}
		for _, f := range Generate(seed, o).Faults {
			count[f.Kind]++
		}
		if len(count) < 3 {
			t.Fatalf("seed %d has only %v", seed, count)
		}
	}
}

func TestOnlyTheKindsAskedFor(t *testing.T) {
	for _, only := range [][]Kind{{Kill}, {Pause}, {Partition}, {Kill, Pause}, {MachineDeath}, {PacketDelay}, {PacketLoss}, {PacketDuplicate},
		{PacketReorder}, {PacketCorrupt}, {LinkRate}, {LinkClog}} {
		o := defaultRun
		o.Kinds = only
		for seed := range int64(50) {
			s := Generate(seed, o)
			if len(s.Faults) < 3 {
				t.Fatalf("%v, seed %d: only %d faults", only, seed, len(s.Faults))
			}
			for _, f := range s.Faults {
				if !slices.Contains(only, f.Kind) {
					t.Fatalf("%v, seed %d: a %s", only, seed, f.Kind)
				}
			}
			if err := s.Validate(o.Nodes, o.Partitions, o.Clients); err != nil {
				t.Fatalf("%v, seed %d: %v", only, seed, err)
			}
		}
	}
}

func TestClustersOfOtherSizes(t *testing.T) {
	for _, nodes := range []int{1, 2, 4, 5, 7} {
		o := defaultRun
		o.Nodes, o.Clients = nodes, 0
		names := map[string]bool{}
		for seed := range int64(30) {
			s := Generate(seed, o)
			if err := s.Validate(nodes, o.Partitions, 0); err != nil || len(s.Faults) == 0 {
				t.Fatalf("%d nodes, seed %d: %d faults, %v", nodes, seed, len(s.Faults), err)
			}
			for _, n := range presetsOf(s) {
				names[n] = true
			}
		}
		if names[MajorityRing.Name] != (nodes >= 4) {
			t.Errorf("%d nodes: ring %v", nodes, names[MajorityRing.Name])
		}
	}
}

func TestCatalogueIsSound(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range slices.Concat(Catalogue(), Machines(), Processes(), Networks()) {
		if seen[p.Name] {
			continue
		}
		seen[p.Name] = true
		if p.Name == "" || p.Why == "" {
			t.Errorf("preset %q is without a name or a reason", p.Name)
		}
		if len(p.Steps) < 1 || len(p.Steps) > 3 {
			t.Errorf("%s has %d steps", p.Name, len(p.Steps))
		}
		for i, s := range p.Steps {
			if i > 0 && s.Follows >= i || s.Until >= len(p.Steps) {
				t.Errorf("%s: step %d refers to a step that is not there yet", p.Name, i)
			}
		}
	}
}

func TestWhereNodesAreUnlinkedOnlyClientsAreCutOff(t *testing.T) {
	for seed := range int64(20) {
		s := Generate(seed, GenerateOptions{Nodes: 3, Partitions: 2, Clients: 4, Load: 30 * time.Second, Unlinked: true})
		cuts := 0
		for _, f := range s.Faults {
			if f.Kind != Partition {
				continue
			}
			cuts++
			if f.Cut.Shape != ClientLink {
				t.Errorf("seed %d: %s cuts links of nodes", seed, f.Cut.Shape)
			}
		}
		if cuts == 0 {
			t.Errorf("seed %d: no client is cut off in 30 s", seed)
		}
		if err := s.Validate(3, 2, 4); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}
