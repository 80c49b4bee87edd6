package group

import (
	"fmt"
	"sync"
	"time"
)

// progress is when each group processed something last, and how long it went without at most, from the beginning of its first member until the first worker is asked to stop. Safe for
// concurrent use.
type progress struct {
	mu     sync.Mutex
	groups map[string]*gap
}

// gap is the longest stretch of time without progress.
type gap struct {
	last          time.Duration // when something was processed last
	longest, from time.Duration
	over          bool
}

func (g *gap) reach(now time.Duration) {
	if now-g.last > g.longest {
		g.longest, g.from = now-g.last, g.last
	}
	g.last = now
}

func (p *progress) of(group string, do func(*gap)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := p.groups[group]; g != nil && !g.over {
		do(g)
	}
}

func (p *progress) begin(group string, now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.groups[group] == nil {
		p.groups[group] = &gap{last: now}
	}
}

func (p *progress) made(group string, now time.Duration) {
	p.of(group, func(g *gap) { g.reach(now) })
}

func (p *progress) end(group string, now time.Duration) {
	p.of(group, func(g *gap) { g.reach(now); g.over = true })
}

// Stalls tells the longest time that some group went without progress during the load, and what there is to complain of: who did for longer than the bound. Producers write all the time,
// so that there always is something to process.
func (w *Workload) Stalls(bound time.Duration) (longest time.Duration, complaints []string) {
	p := &w.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range w.cfg.Groups {
		g := p.groups[one.Name]
		if g == nil {
			continue
		}
		longest = max(longest, g.longest)
		if g.longest > bound {
			complaints = append(complaints, fmt.Sprintf("group %s had processed nothing for %d ms from %d ms on, while no more than %d ms are allowed",
				one.Name, g.longest.Milliseconds(), g.from.Milliseconds(), bound.Milliseconds()))
		}
	}
	return longest, complaints
}
