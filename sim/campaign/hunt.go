package campaign

import (
	"cmp"
	"context"
	"slices"

	"ackproof/broker/fault"
	"ackproof/model"
	"ackproof/nemesis"
	"ackproof/sim"
)

// Quarry is a bug that a campaign looks for, and what is known of it beforehand.
type Quarry = fault.Entry

// Draw draws the case of a seed for a bug: a case of the swarm whose configuration and load have what the bug needs to show at all, as the catalogue has it, and
// nothing else that is aimed at the bug. The control is the same case without the plant.
func Draw(seed int64, q Quarry) sim.Case {
	kinds := Kinds(q)
	c := sim.Swarm(seed, kinds, 0)
	if q.Needs.Groups {
		c = sim.SwarmGroups(seed, kinds, 0, false)
	}
	c.Acks, c.Unclean = -1, false
	if q.Needs.MinISR > 0 {
		c.MinISR = min(q.Needs.MinISR, c.Replication)
	}
	if slices.Contains(q.Needs.Faults, "wipe") {
		c.MinISR = max(c.MinISR, 2)
	}
	c.FlushEach = c.FlushEach || q.Needs.Flush
	c.Idempotent = c.Idempotent || q.Needs.Idempotent
	c.Deletes = c.Deletes || slices.Contains(q.Needs.Admin, "delete-records")
	c.Recreated = c.Recreated || slices.Contains(q.Needs.Admin, "recreate-topic")
	c.InFlight = c.InFlight || q.Needs.InFlight
	c.Plant = q.ID
	return c
}

// Kinds are the kinds of faults that a bug needs beyond those of every run, with them; none if it needs no others.
func Kinds(q Quarry) []nemesis.Kind {
	if len(q.Needs.Faults) == 0 {
		return nil
	}
	kinds := nemesis.ProcessKinds()
	for _, f := range q.Needs.Faults {
		kinds = append(kinds, kindsOf[f]...)
	}
	return kinds
}

// kindsOf are the kinds of faults by the catalogue's words.
var kindsOf = map[string][]nemesis.Kind{
	"power": {nemesis.PowerLoss, nemesis.DiskSlow}, // a flush that takes long is what a loss of power needs
	"slow":  {nemesis.DiskSlow},
	"wipe":  {nemesis.DiskWipe},
	"disk":  {nemesis.DiskError, nemesis.FlushError, nemesis.DiskFull, nemesis.DiskSlow},
}

// Hunt says how bugs are looked for: so many campaigns for each, which run fresh seeds one after the other until one is violated.
type Hunt struct {
	From      int64 // first seed
	Campaigns int   // for each bug
	Most      int   // seeds of one campaign
}

// Trail is what one campaign came to.
type Trail struct {
	Quarry Quarry
	From   int64 // its first seed
	// Seeds that were run, up to and with the one that found the bug.
	Seeds     int
	Found     *Summary // nil: none of them was violated
	Failed    []Summary
	CPU       float64 // seconds
	Events    uint64
	VirtualMS int64
}

// Run hunts the bugs side by side. The trails come in the order of the bugs, a bug's in the order of their seeds; what they say depends on the seeds alone,
// but for the CPU time. told, if not nil, is called after each case.
func (h Hunt) Run(ctx context.Context, p Pool, bugs []Quarry, told func(ran int, open int)) ([]Trail, error) {
	var all []*chase
	for i, q := range bugs {
		for n := range h.Campaigns {
			all = append(all, &chase{quarry: q, from: h.From + int64(i*h.Campaigns+n)*int64(h.Most), most: h.Most})
		}
	}
	ran := 0
	// The campaign that is least far goes on, so that a worker is idle only when no campaign is open; what runs ahead of a finding is not counted.
	next := func(yield func(sim.Case) bool) {
		for {
			var best *chase
			for _, c := range all {
				if c.open() && c.begun < c.most && (best == nil || c.begun-c.ended < best.begun-best.ended) {
					best = c
				}
			}
			if best == nil {
				return
			}
			best.begun++
			if !yield(Draw(best.from+int64(best.begun)-1, best.quarry)) {
				return
			}
		}
	}
	err := p.Each(ctx, next, func(s Summary) bool {
		ran++
		open := 0
		for _, c := range all {
			if n := s.Seed() - c.from; n >= 0 && n < int64(c.most) {
				c.take(int(n), s)
			}
			if c.open() {
				open++
			}
		}
		if told != nil {
			told(ran, open)
		}
		return open > 0
	})
	var out []Trail
	for _, c := range all {
		out = append(out, c.trail())
	}
	if err == nil {
		err = ctx.Err()
	}
	return out, err
}

// Controls runs every case of the trails without its bug.
func Controls(ctx context.Context, p Pool, trails []Trail, told func(ran int)) (*Report, error) {
	r, ran := NewReport(), 0
	cases := func(yield func(sim.Case) bool) {
		for _, t := range trails {
			for n := range t.Seeds {
				c := Draw(t.From+int64(n), t.Quarry)
				c.Plant = ""
				if !yield(c) {
					return
				}
			}
		}
	}
	err := p.Each(ctx, cases, func(s Summary) bool {
		r.Add(s)
		ran++
		if told != nil {
			told(ran)
		}
		return true
	})
	r.Close(0)
	return r, cmp.Or(err, ctx.Err())
}

// chase is one campaign under way.
type chase struct {
	quarry Quarry
	from   int64
	most   int
	begun  int        // seeds that were given out
	ended  int        // seeds without a gap, from the first on, that have come back
	back   []*Summary // by number; nil: not yet
}

// open tells whether it is still to be seen what comes first.
func (c *chase) open() bool { return c.found() == nil && c.ended < c.most }

func (c *chase) found() *Summary {
	if c.ended > 0 && violated(c.back[c.ended-1]) {
		return c.back[c.ended-1]
	}
	return nil
}

func violated(s *Summary) bool { return s.Failed == "" && s.Verdict == model.Violated }

func (c *chase) take(n int, s Summary) {
	for len(c.back) <= n {
		c.back = append(c.back, nil)
	}
	c.back[n] = &s
	for c.found() == nil && c.ended < len(c.back) && c.back[c.ended] != nil {
		c.ended++
	}
}

func (c *chase) trail() Trail {
	t := Trail{Quarry: c.quarry, From: c.from, Seeds: c.ended, Found: c.found()}
	for _, s := range c.back[:c.ended] {
		t.CPU += s.CPU
		t.Events += s.Events
		t.VirtualMS += s.VirtualMS
		if s.Failed != "" {
			t.Failed = append(t.Failed, *s)
		}
	}
	return t
}
