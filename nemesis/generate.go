package nemesis

import (
	"math/rand/v2"
	"slices"
	"time"

	"ackproof/systems"
)

// GenerateOptions is what a generated schedule must fit.
type GenerateOptions struct {
	Kinds      []Kind // faults of other kinds are left out; empty = those of ProcessKinds
	Nodes      int
	Partitions int
	Clients    int
	Load       time.Duration  // how long the load lasts
	Timers     systems.Timers // what gaps and lengths are scaled by; zero ones become 1.5 s, 2 s, 100 ms and 1 s
	// Unlinked: nodes reach each other past the network of the run (systems.Unlinked). Partitions are of the links of clients alone.
	Unlinked bool
	// Shuffle draws every sequence from the whole catalogue, Machines and, thrice as often, Long, as a campaign of many short runs wants it, instead of giving each seed the core.
	Shuffle bool
	// Groups: consumer groups are at work. The presets OfGroups come by turns with the others.
	Groups bool
}

// How sequences are laid out in the load.
const (
	leadIn = 600 * time.Millisecond // load without faults at the start
	// leadOut is load without faults at the end, in which the last sequence can still be seen to be healed.
	leadOut  = 800 * time.Millisecond
	leastGap = 50 * time.Millisecond // between the recovery from a sequence and the next one
	// recoveryInSessions is how long a cluster takes, roughly, from the heal to full in-sync sets; only the layout depends on it, because
	// the next sequence waits for the state itself.
	recoveryInSessions = 0.6
	recoveryGiveUp     = 6 * time.Second // unless the system's nodes take longer to start
)

// Generate draws a schedule from the catalogue. The same seed and options give the same schedule. Every schedule holds the core presets as
// far as the load is long enough for them, then its hand of the deck, then whatever else of the deck has room; as many seeds in a row as there
// are hands hold every preset of the catalogue that fits the cluster, if the load is 30 s with the default timers.
func Generate(seed int64, o GenerateOptions) Schedule {
	o = o.withDefaults()
	g := generator{o: o, pick: rand.New(rand.NewPCG(uint64(seed), 0x6e656d65736973)), s: Schedule{Version: ScheduleVersion, Seed: seed, Faults: []Fault{}}}
	var drawn []sequence
	room := o.Load - leadIn - leadOut + g.recovery() // the heal after the load takes care of the last one
	for more := true; more; {                        // a long load goes through the deck again
		more = false
		for _, p := range g.deck() {
			if !p.fits(o) {
				continue
			}
			q := g.draw(p)
			if need := q.length + g.recovery() + leastGap; need <= room {
				room -= need
				drawn = append(drawn, q)
				more = true
			}
		}
	}
	for _, q := range drawn {
		g.place(q, room/time.Duration(len(drawn)))
	}
	return g.s
}

// deck is the presets in the order in which they get their chance.
func (g *generator) deck() []Preset {
	all := weave(g.beyond(), order(g.s.Seed))
	if g.o.Shuffle {
		all = slices.Concat(Catalogue(), Machines(), Long(), Long(), Long()) // thrice: most of their tries miss the window
		g.pick.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	if g.o.Unlinked {
		all = weave(OfClients(), all)
	}
	if !g.o.Groups {
		return all
	}
	own := OfGroups()
	g.pick.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
	return weave(own, all)
}

// beyond is the presets of machines, single processes and networks that hold a fault beyond ProcessKinds which was asked for, beginning with the seed's own.
func (g *generator) beyond() []Preset {
	var out []Preset
	for _, p := range slices.Concat(Machines(), OfDisks(), Processes(), Networks()) {
		if p.fits(g.o) && slices.ContainsFunc(p.Steps, func(s PresetStep) bool { return !slices.Contains(ProcessKinds(), s.Kind) }) {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return nil
	}
	first := turn(g.s.Seed, len(out))
	return slices.Concat(out[first:], out[:first])
}

// weave takes from both by turns, as long as both last.
func weave(a, b []Preset) []Preset {
	var out []Preset
	for i := range max(len(a), len(b)) {
		out = append(append(out, a[min(i, len(a)):min(i+1, len(a))]...), b[min(i, len(b)):min(i+1, len(b))]...)
	}
	return out
}

// turn is whose turn of n it is for the seed.
func turn(seed int64, n int) int { return int(((seed % int64(n)) + int64(n)) % int64(n)) }

// order is the order in which a seed's presets get their chance: the core, the seed's own hand, then the other hands.
func order(seed int64) []Preset {
	out := []Preset{}
	for _, slot := range core {
		out = append(out, slot[turn(seed, len(slot))])
	}
	first := turn(seed, len(hands))
	for i := range hands {
		out = append(out, hands[(first+i)%len(hands)]...)
	}
	return out
}

func (o GenerateOptions) withDefaults() GenerateOptions {
	if len(o.Kinds) == 0 {
		o.Kinds = ProcessKinds()
	}
	for _, t := range []struct {
		at  *time.Duration
		def time.Duration
	}{{&o.Timers.Session, 1500 * time.Millisecond}, {&o.Timers.Lag, 2 * time.Second}, {&o.Timers.Fetch, 100 * time.Millisecond}, {&o.Timers.Election, time.Second}} {
		if *t.at <= 0 {
			*t.at = t.def
		}
	}
	return o
}

func (p Preset) fits(o GenerateOptions) bool {
	if o.Nodes < max(1, p.Nodes) {
		return false
	}
	for _, s := range p.Steps {
		if !slices.Contains(o.Kinds, s.Kind) || o.Unlinked && s.Kind == Partition && s.Shape != ClientLink || s.Shape == ClientLink && o.Clients == 0 {
			return false
		}
	}
	return true
}

type generator struct {
	o    GenerateOptions
	pick *rand.Rand
	s    Schedule
	last int // the fault whose heal ended the last sequence
}

// sequence is a preset with all its times drawn.
type sequence struct {
	faults []Fault // indices in Start.Fault and UntilFault count from the sequence's own first fault
	last   int     // which one is healed last
	length time.Duration
}

func (g *generator) recovery() time.Duration {
	return time.Duration(recoveryInSessions * float64(g.o.Timers.Session))
}

// draw fixes the times of a preset and estimates its length.
func (g *generator) draw(p Preset) sequence {
	var q sequence
	var took, heals []time.Duration
	for i, s := range p.Steps {
		f := Fault{Kind: s.Kind, ForMS: g.span(s.For), StaggerMS: g.span(s.Stagger), Preset: p.Name,
			Target: Target{Role: s.Role, Partition: AnyPartition, Aside: s.Aside}, Cut: Cut{Shape: s.Shape, Against: s.Against, Reset: s.Reset}, AmountMS: g.span(s.Amount),
			Percent: s.Percent, BytesPerSecond: s.Rate, Shuffle: s.Shuffle}
		if s.Nth > 0 {
			f.Call, f.Nth = s.Call, 1+g.pick.IntN(s.Nth)
		}
		if s.Kind.ofClock() && g.pick.IntN(2) == 0 {
			f.AmountMS = -f.AmountMS
		}
		if s.HalfClients {
			for c := 2; c <= g.o.Clients; c += 2 {
				f.Cut.Clients = append(f.Cut.Clients, c)
			}
		}
		at := ms(g.span(s.Expect))
		if i > 0 {
			follows := s.Follows
			f.Start = Trigger{Fault: &follows, Healed: s.Healed, AfterMS: g.span(s.After), LeaderMoved: s.LeaderMoved, ControllerMoved: s.NewController, ISRAtMost: s.ISRAtMost, ISRAtLeast: s.ISRAtLeast, AckedMore: s.AckedMore}
			if f.Start.aboutPartition() {
				f.Start.Partition = AnyPartition
			}
			if f.Start.WaitsForState() {
				f.Start.GiveUpMS = max(3*g.o.Timers.Lag, 2*g.o.Timers.Session+g.o.Timers.Lag).Milliseconds()
			}
			if at += ms(f.Start.AfterMS); s.Healed {
				at += heals[follows]
			} else {
				at += took[follows]
			}
		}
		if s.Until > 0 {
			until := s.Until
			f.UntilFault = &until
		}
		took = append(took, at)
		heals = append(heals, at+ms(f.ForMS)+ms(f.StaggerMS)*time.Duration(s.Staggered))
		q.faults = append(q.faults, f)
	}
	for i, s := range p.Steps {
		if s.Until > 0 {
			heals[i] = min(heals[i], took[s.Until])
		}
		if heals[i] >= q.length {
			q.length, q.last = heals[i], i
		}
	}
	return q
}

// place appends the sequence. It begins when the cluster has recovered from the one before, and a drawn part of the spare time later.
func (g *generator) place(q sequence, spare time.Duration) {
	base := len(g.s.Faults)
	gap := leastGap.Milliseconds() + g.pick.Int64N(max(1, min(spare, time.Second).Milliseconds()))
	for i, f := range q.faults {
		switch {
		case i > 0:
			f.Start.Fault = at(base + *f.Start.Fault)
		case base == 0:
			f.Start = Trigger{AfterMS: leadIn.Milliseconds() + gap}
		default:
			f.Start = Trigger{Fault: at(g.last), Healed: true, AfterMS: gap, Recovered: true, GiveUpMS: max(recoveryGiveUp, g.o.Timers.Start).Milliseconds()}
		}
		if f.UntilFault != nil {
			f.UntilFault = at(base + *f.UntilFault)
		}
		g.s.Faults = append(g.s.Faults, f)
	}
	g.last = base + q.last
}

// span draws from the span, in whole milliseconds.
func (g *generator) span(s Span) int64 {
	low, high := s.Low.of(g.o.Timers), s.High.of(g.o.Timers)
	if high <= low {
		return low.Milliseconds()
	}
	return (low + time.Duration(g.pick.Int64N(int64(high-low)))).Milliseconds()
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func at(i int) *int { return &i }
