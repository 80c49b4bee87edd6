package sim

import (
	"math/rand/v2"

	"ackproof/nemesis"
)

// Swarm draws a case from its seed: which features of the configuration, the load and the nemesis are on, and how everything is timed. Testing with many
// different small selections of features finds what testing with all of them at once hides (Groce et al., "Swarm Testing", ISSTA 2012). kinds are the
// kinds of faults to draw from, all if empty; loadMS is the length of the load, 0 to draw that too.
func Swarm(seed int64, kinds []nemesis.Kind, loadMS int64) Case {
	c := Default(seed)
	r := rand.New(rand.NewPCG(uint64(seed), 0x737761726d))
	often := func(percent int) bool { return r.IntN(100) < percent }
	if often(30) {
		c.Nodes = 4 + r.IntN(2)
	}
	c.Partitions = 1 + r.IntN(3)
	if often(15) {
		c.Replication = 2
	}
	switch {
	case often(15):
		c.MinISR = 1
	case often(15):
		c.MinISR = c.Replication
	default:
		c.MinISR = min(2, c.Replication)
	}
	switch {
	case often(8):
		c.Acks = 1
	case often(4):
		c.Acks = 0
	}
	c.Idempotent = c.Acks == -1 && often(75)
	c.Unclean = often(8)
	c.FlushEach = often(30)
	c.Clients = 4 + r.IntN(5)
	c.Rate = pick(r, 100, 200, 400, 800)
	c.LoadMS = pick[int64](r, 6_000, 9_000, 12_000, 18_000)
	if loadMS > 0 {
		c.LoadMS = loadMS
	}

	t := &c.Timers
	t.Session = pick[int64](r, 700, 1000, 1500, 2500)
	t.Heartbeat = max(t.Session/pick[int64](r, 5, 8, 12), 50)
	t.Lag = pick[int64](r, 400, 700, 1500)
	t.FetchWait = min(pick[int64](r, 50, 200, 500), t.Lag/2) // an idle follower is heard of by its fetches alone
	t.RaftTick = pick[int64](r, 20, 50)
	t.Election = t.RaftTick * pick[int64](r, 12, 24)
	t.Rebalance = pick[int64](r, 0, 2000, 5000)
	t.Checkpoint = pick[int64](r, 500, 5000)

	n := &c.Net
	n.Least, n.Most = 50, pick[int64](r, 300, 600, 3000)
	n.Slow, n.SlowEvery = pick[int64](r, 0, 8_000, 40_000), pick(r, 16, 64, 256)
	n.Link, n.DriftPPM = pick[int64](r, 0, 0, 400, 5_000), pick[int64](r, 0, 0, 200, 50_000)
	n.FlushLeast, n.FlushMost = 100, pick[int64](r, 500, 4_000, 20_000)

	if len(kinds) == 0 {
		for _, k := range nemesis.ProcessKinds() {
			if often(85) {
				kinds = append(kinds, k)
			}
		}
		if often(50) {
			for _, k := range nemesis.SimulatedKinds()[len(nemesis.ProcessKinds()):] {
				if often(60) && (k != nemesis.DiskWipe || c.MinISR > 1) { // where one copy is enough, a wiped one may have been all that there was
					kinds = append(kinds, k)
				}
			}
		}
	}
	if len(kinds) == 0 {
		kinds = []nemesis.Kind{nemesis.Kill}
	}
	if often(50) {
		c.Store = "segment"
	}
	c.Deletes = often(15)
	c.InFlight = often(30) && c.Idempotent
	c.Schedule = c.generate(kinds, true)
	c.Recreated = often(10)
	return c
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }
