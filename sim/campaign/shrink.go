package campaign

import (
	"context"
	"slices"

	"ackproof/model"
	"ackproof/nemesis"
	"ackproof/sim"
)

// Shrunk is the smallest case that was found to fail as the first one did.
type Shrunk struct {
	Summary    Summary `json:"summary"`
	Executions int     `json:"executions"` // cases that were run for it
	From       int     `json:"from"`       // faults of the schedule that it began with
}

// Size orders cases that were made small: by faults, then by the length of the load.
func (s Shrunk) Size() int {
	return len(s.Summary.Case.Schedule.Faults)*1_000_000 + int(s.Summary.Case.LoadMS)
}

// Shrink makes a violated case small: first the schedule, one fault after the other; then the load, the cluster and the world, back to what is usual; then the
// times, to round ones. A step is taken if the smaller case is still violated with one of the same anomalies (or, if it showed none, with an invariant
// that does not hold). most bounds the cases that are run. The order of steps is fixed, so the same case and bound give the same result.
func Shrink(ctx context.Context, p Pool, first Summary, most int) (Shrunk, error) {
	s := &shrinking{ctx: ctx, pool: p, best: first, most: most, like: first.Anomalies}
	s.faults()
	s.ending()
	for s.configuration() || s.faults() {
	}
	s.times()
	return Shrunk{Summary: s.best, Executions: s.ran, From: len(first.Case.Schedule.Faults)}, s.err
}

type shrinking struct {
	ctx  context.Context
	pool Pool
	best Summary
	like []model.Anomaly
	most int
	ran  int
	err  error
}

// same tells whether a summary fails as the first one did.
func (s *shrinking) same(x Summary) bool {
	if x.Failed != "" || x.Verdict != model.Violated {
		return false
	}
	if len(s.like) == 0 {
		return len(x.Broken) > 0
	}
	return slices.ContainsFunc(x.Anomalies, func(a model.Anomaly) bool { return slices.Contains(s.like, a) })
}

// try runs candidates side by side and takes the first of them, in their order, that fails in the same way. Later ones are worth a run only while it is
// open whether earlier ones fail.
func (s *shrinking) try(candidates ...sim.Case) bool {
	candidates = candidates[:min(len(candidates), max(s.most-s.ran, 0))]
	if len(candidates) == 0 || s.err != nil || s.ctx.Err() != nil {
		return false
	}
	s.ran += len(candidates)
	found := make([]*Summary, len(candidates))
	i := 0
	order := map[string]int{} // looked up only
	cases := func(yield func(sim.Case) bool) {
		for ; i < len(candidates); i++ {
			order[key(candidates[i])] = i
			if !yield(candidates[i]) {
				return
			}
		}
	}
	s.err = s.pool.Each(s.ctx, cases, func(x Summary) bool {
		if s.same(x) {
			found[order[key(x.Case)]] = &x
		}
		return true
	})
	for _, x := range found {
		if x != nil {
			s.best = *x
			return true
		}
	}
	return false
}

// faults takes faults away: the later half, what began after the violation was certain, then each.
func (s *shrinking) faults() (smaller bool) {
	without := func(c sim.Case, r []model.FaultResult, from, to int) sim.Case {
		r = slices.Clone(r)
		for i := to - 1; i >= from; i-- {
			c.Schedule = c.Schedule.Without(i, r)
			r = slices.Delete(r, i, i+1)
		}
		return c
	}
	for size := (len(s.best.Case.Schedule.Faults) + 1) / 2; size > 0; size /= 2 {
		for again := true; again; {
			again = false
			n := len(s.best.Case.Schedule.Faults)
			var candidates []sim.Case
			for to := n; to > 0; to -= size {
				if from := max(to-size, 0); n > to-from || n > 1 {
					candidates = append(candidates, without(s.best.Case, s.best.Results, from, to))
				}
			}
			for len(candidates) > 0 && !again {
				batch := candidates[:min(len(candidates), max(s.pool.Size, 1))]
				candidates = candidates[len(batch):]
				if s.try(batch...) {
					again, smaller = true, true
				}
			}
		}
	}
	return smaller
}

// ending ends the load soon after the violation was certain.
func (s *shrinking) ending() {
	for _, slack := range []int64{50, 500} {
		c := s.best.Case
		if end := s.best.SightedMS + slack; s.best.SightedMS > 0 && end < c.LoadMS {
			c.LoadMS = end
			if s.try(c) {
				return
			}
		}
	}
}

// configuration takes the case back to what is usual, a step at a time; a step that changes what happens is tried with a few seeds.
func (s *shrinking) configuration() (smaller bool) {
	usual := sim.Default(s.best.Case.Seed)
	for _, change := range []func(*sim.Case){
		func(c *sim.Case) { c.Timers, c.Net = usual.Timers, usual.Net },
		func(c *sim.Case) { c.InFlight, c.Deletes, c.Recreated = false, false, false },
		func(c *sim.Case) { c.Nodes = 3 },
		func(c *sim.Case) { c.Partitions = 1 },
		func(c *sim.Case) { c.Store = usual.Store },
		func(c *sim.Case) { c.Net = usual.Net },
		func(c *sim.Case) { c.Timers = usual.Timers },
		func(c *sim.Case) { c.FlushEach = false },
		func(c *sim.Case) { c.Clients = 2 },
		func(c *sim.Case) { c.Rate = max(c.Rate/4, 25) },
		ofGroups(func(g *sim.Groups) { g.Protocols = g.Protocols[:1] }),
		ofGroups(func(g *sim.Groups) { g.Protocols = g.Protocols[len(g.Protocols)-1:] }),
		ofGroups(func(g *sim.Groups) { g.Members, g.Before, g.CompactBytes = 2, false, 0 }),
		ofGroups(func(g *sim.Groups) { g.Partitions = 1 }),
		ofGroups(func(g *sim.Groups) { g.SessionMS = sim.DefaultGroups().SessionMS }),
	} {
		c := s.best.Case
		change(&c)
		if key(c) == key(s.best.Case) || c.Validate() != nil {
			continue
		}
		candidates := []sim.Case{c}
		for i := range int64(2) {
			other := c
			other.Seed += (i + 1) * 1_000_003
			candidates = append(candidates, other)
		}
		if s.try(candidates[0]) || s.try(candidates[1:]...) {
			smaller = true
		}
	}
	return smaller
}

// ofGroups is a change of the load of groups, if there is one.
func ofGroups(change func(*sim.Groups)) func(*sim.Case) {
	return func(c *sim.Case) {
		if c.Groups != nil {
			g := *c.Groups
			change(&g)
			c.Groups = &g
		}
	}
}

// times makes times round and short.
func (s *shrinking) times() {
	for i := range s.best.Case.Schedule.Faults {
		for _, change := range []func(*nemesis.Fault) bool{
			func(f *nemesis.Fault) bool { return shorten(&f.Start.AfterMS, 1000) },
			func(f *nemesis.Fault) bool { return round(&f.Start.AfterMS) },
			func(f *nemesis.Fault) bool { return round(&f.ForMS) },
		} {
			c := s.best.Case
			c.Schedule.Faults = slices.Clone(c.Schedule.Faults)
			if change(&c.Schedule.Faults[i]) {
				s.try(c)
			}
		}
	}
}

func shorten(v *int64, to int64) bool {
	if *v <= to {
		return false
	}
	*v = to
	return true
}

// round to the nearest number of two digits, or of one below 100.
func round(v *int64) bool {
	unit := int64(1)
	for *v/unit >= 100 {
		unit *= 10
	}
	if *v < 100 {
		unit = 10
	}
	r := (*v + unit/2) / unit * unit
	if r == *v || r == 0 {
		return false
	}
	*v = r
	return true
}

// key tells cases apart.
func key(c sim.Case) string { return string(encode(c)) }
