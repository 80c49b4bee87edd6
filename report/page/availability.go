package page

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"ackproof/model"
)

// gapLeast is the shortest time without an acknowledged record that is shown as a gap. The workload itself rests for a moment now and then.
const gapLeast = 300 * time.Millisecond

// maxSpans bounds the changes of leadership that are drawn of one partition.
const maxSpans = 5000

// leadership is who answered as the leader of a partition, as clients saw it.
type leadership struct {
	spans []leaderSpan
	more  int // changes beyond maxSpans
}

type leaderSpan struct {
	from, to time.Duration
	node     int32
}

// lead notes an answer that only a leader gives.
func (c *collection) lead(partition, node int32, at time.Duration) {
	l := c.leaders[partition]
	if l == nil {
		l = &leadership{}
		c.leaders[partition] = l
	}
	switch n := len(l.spans); {
	case n > 0 && l.spans[n-1].node == node:
		l.spans[n-1].to = at
	case n >= maxSpans:
		l.more++
	default:
		l.spans = append(l.spans, leaderSpan{at, at, node})
	}
}

// acknowledged are the acknowledgements of one partition, as the gaps between them.
type acknowledged struct {
	last time.Duration
	gaps []gap
	any  bool
}

// gap is a time of the load in which nothing was acknowledged.
type gap struct {
	partition int32
	from, to  time.Duration
	why       string
}

// ack notes that an append was acknowledged. Acknowledgements come in the order of time.
func (c *collection) ack(partition int32, at time.Duration, offset int64) {
	a := c.acks[partition]
	if a == nil {
		a = &acknowledged{}
		c.acks[partition] = a
	}
	from, ok := c.began("load")
	if !ok || c.over() {
		a.last = at
		return
	}
	if a.any {
		from = max(from, a.last)
	}
	if at-from >= gapLeast {
		a.gaps = append(a.gaps, gap{partition: partition, from: from, to: at})
		if offset >= 0 {
			c.resumed[place{partition, at}] = offset
		}
	}
	a.any, a.last = true, at
}

// began tells when a phase began.
func (c *collection) began(name string) (time.Duration, bool) {
	for _, p := range c.phases {
		if p.Name == name {
			return time.Duration(p.At) * time.Microsecond, true
		}
	}
	return 0, false
}

// over tells whether the load is over.
func (c *collection) over() bool {
	_, healing := c.began("heal")
	return healing
}

// availability is how one partition took writes during the load.
type availability struct {
	Partition int32
	Share     float64 // of the load in which no gap lasted
	Longest   time.Duration
	Total     time.Duration
	Gaps      []gap
}

// available sums up each partition that took a write, and finds for each gap the fault that explains it.
func (c *collection) available(faults []fault) (from, to time.Duration, all []availability) {
	from, ok := c.began("load")
	if to, _ = c.began("heal"); !ok || to <= from {
		to = c.end
	}
	if !ok || to <= from {
		return from, to, nil
	}
	for _, p := range slices.Sorted(maps.Keys(c.lastInvoke)) {
		a := availability{Partition: p}
		last := from
		if k := c.acks[p]; k != nil {
			a.Gaps = slices.Clone(k.gaps)
			if k.any {
				last = k.last
			}
		}
		// What was asked for after the last acknowledgement and never acknowledged.
		if end := min(to, c.lastInvoke[p]); end-last >= gapLeast {
			a.Gaps = append(a.Gaps, gap{partition: p, from: last, to: end})
		}
		for i := range a.Gaps {
			g := &a.Gaps[i]
			g.to = min(g.to, to)
			g.explain(faults, c.leaders[p])
			a.Total += g.to - g.from
			a.Longest = max(a.Longest, g.to-g.from)
		}
		a.Share = 1 - float64(a.Total)/float64(to-from)
		all = append(all, a)
	}
	return from, to, all
}

// explain finds the faults behind a gap among those that had an effect: of those that lasted when it began or soon after, the one that struck nearest to its beginning,
// and whatever struck while the gap lasted.
func (g *gap) explain(faults []fault, l *leadership) {
	led := ""
	if l != nil {
		for _, s := range l.spans {
			if s.from <= g.from {
				led = "n" + strconv.Itoa(int(s.node))
			}
		}
	}
	name := func(f fault) string {
		if slices.Contains(f.Targets, led) {
			return f.name() + " (" + led + " led the partition)"
		}
		return f.name()
	}
	first := -1
	for i, f := range faults {
		if !f.Effective || f.to < g.from-slack || f.from > g.from+gapLeast {
			continue
		}
		if first < 0 || (f.from-g.from).Abs() < (faults[first].from-g.from).Abs() {
			first = i
		}
	}
	if first < 0 {
		g.why = "no fault that had an effect lasted when it began"
	} else {
		g.why = name(faults[first])
	}
	for i, f := range faults {
		if i != first && f.Effective && f.from > g.from && f.from < g.to && (first < 0 || f.from >= faults[first].from) {
			g.why += ", then " + name(f)
		}
	}
}

// slack is how long after a fault was healed a gap may begin that is put down to it: clients have to find out.
const slack = 100 * time.Millisecond

// fault is a fault of the results with the times of the history.
type fault struct {
	model.FaultResult
	index    int
	from, to time.Duration
	started  bool
}

func (f fault) name() string {
	n := f.Kind
	for _, t := range f.Targets {
		n += " " + t
	}
	return n
}

// timed puts the results of the faults and the marks of the history together. Without a mark the results' own times count, from the beginning of the load.
func (c *collection) timed(results []model.FaultResult) []fault {
	load, _ := c.began("load")
	var out []fault
	for i, r := range results {
		f := fault{FaultResult: r, index: i, from: load + ms(r.FromMS), to: load + ms(r.ToMS), started: r.ToMS > r.FromMS}
		if m := c.faults[i]; m != nil && m.from >= 0 {
			f.started, f.from = true, m.from
			f.to = max(m.from, m.to)
			if m.to < 0 {
				f.to = c.end
			}
		}
		out = append(out, f)
	}
	return out
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// gaps lists the gaps of all partitions, the longest first.
func gapsOf(all []availability) []gap {
	var gaps []gap
	for _, a := range all {
		gaps = append(gaps, a.Gaps...)
	}
	slices.SortFunc(gaps, func(a, b gap) int {
		return cmp.Or(cmp.Compare(b.to-b.from, a.to-a.from), cmp.Compare(a.partition, b.partition), cmp.Compare(a.from, b.from))
	})
	return gaps
}

// Length of the gap.
func (g gap) Length() time.Duration { return g.to - g.from }

// From and To are moments of the run, Partition and Why what the page says of the gap.
func (g gap) From() time.Duration { return g.from }
func (g gap) To() time.Duration   { return g.to }
func (g gap) Partition() int32    { return g.partition }
func (g gap) Why() string         { return g.why }

// Seconds is the part of the run round the gap, as the script takes it from a link.
func (g gap) Seconds() string {
	room := (g.to - g.from) / 4
	return fmt.Sprintf("%.3f-%.3f", max(0, g.from-room).Seconds(), (g.to + room).Seconds())
}
