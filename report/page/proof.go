package page

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ackproof/model"
)

// Measures of a drawing, in pixels; along the time axis everything is in percent of the width.
const (
	proofRow   = 46 // one operation: a line of text and a bar
	proofBar   = 14
	proofText  = 14
	proofLeast = 0.8 // width of the shortest bar
	proofBreak = 12  // width of a stretch that was cut out of the axis
)

// drawing is a proof on a time axis.
type drawing struct {
	Height int
	Bars   []bar
	Arrows []arrow
	Breaks []axisBreak
}

type bar struct {
	X, W         float64
	Y, TextY     int
	Height       int
	Label, Times string
	Class        string
	Open         bool // it never ended
}

type arrow struct {
	X1, X2      float64
	Y1, Y2      int
	Label       string
	LabelX      float64
	LabelY      int
	LabelAnchor string
}

type axisBreak struct {
	X     float64
	Label string
	Y     int
}

// axis maps times of the run to percent. Long stretches in which nothing happened are cut out.
type axis struct {
	at []int64   // ns, rising
	x  []float64 // percent
}

func (a *axis) of(t int64) float64 {
	i, found := slices.BinarySearch(a.at, t)
	if found || len(a.at) == 0 {
		return a.x[min(i, len(a.x)-1)]
	}
	return a.x[max(0, min(i-1, len(a.x)-1))]
}

// draw lays a certificate out, the earliest operation on top.
func draw(c *model.Certificate) *drawing {
	if len(c.Operations) == 0 {
		return nil
	}
	ops := slices.Clone(c.Operations)
	slices.SortStableFunc(ops, func(a, b model.ProofOp) int { return cmp.Compare(a.Invoked, b.Invoked) })
	var times []int64
	for _, o := range ops {
		times = append(times, o.Invoked)
		if o.Ended >= 0 {
			times = append(times, o.Ended)
		}
	}
	slices.Sort(times)
	times = slices.Compact(times)
	a, breaks := newAxis(times, ops)
	d := &drawing{Height: proofRow*len(ops) + 22}
	for i, o := range ops {
		x := a.of(o.Invoked)
		b := bar{X: x, W: proofLeast, Y: i*proofRow + proofText + 6, TextY: i*proofRow + proofText, Height: proofBar, Class: o.What}
		if o.Ended >= 0 {
			b.W = max(proofLeast, a.of(o.Ended)-x)
		} else {
			b.Open, b.W = true, 100-x
		}
		b.X = min(b.X, 100-b.W)
		b.Label = fmt.Sprintf("%s: %s by process %d", o.Role, o.What, o.Process)
		b.Times = timesOf(o)
		d.Bars = append(d.Bars, b)
		if i > 0 {
			d.arrow(&ops[i-1], &o, i)
		}
	}
	for _, b := range breaks {
		b.Y = proofRow*len(ops) + 12
		d.Breaks = append(d.Breaks, b)
	}
	return d
}

// arrow joins an operation to the next if it had returned before the next began.
func (d *drawing) arrow(a, b *model.ProofOp, i int) {
	if a.EndSeq == 0 || a.EndSeq >= b.Op {
		return
	}
	from, to := d.Bars[i-1], d.Bars[i]
	w := arrow{X1: from.X + from.W, Y1: from.Y + proofBar/2, X2: to.X, Y2: to.Y + proofBar/2, Label: "returned before"}
	// Beside the end of the earlier bar, or before the later one: one of them has room.
	w.LabelX, w.LabelY, w.LabelAnchor = w.X1+2, w.Y1+4, "start"
	if w.X1 > 60 {
		w.LabelX, w.LabelY, w.LabelAnchor = w.X2-2, w.Y2+4, "end"
	}
	d.Arrows = append(d.Arrows, w)
}

// newAxis gives every stretch between two times its width: in proportion, but for idle ones that would leave no room for the rest.
func newAxis(times []int64, ops []model.ProofOp) (*axis, []axisBreak) {
	a := &axis{at: times, x: make([]float64, len(times))}
	if len(times) < 2 {
		return a, nil
	}
	busy := int64(0)
	idle := make([]bool, len(times)-1)
	for i := range idle {
		idle[i] = !slices.ContainsFunc(ops, func(o model.ProofOp) bool {
			return o.Invoked <= times[i] && (o.Ended < 0 || o.Ended >= times[i+1])
		})
		if !idle[i] {
			busy += times[i+1] - times[i]
		}
	}
	total, cuts := busy, 0
	cut := make([]bool, len(idle))
	for i := range idle {
		length := times[i+1] - times[i]
		switch {
		case idle[i] && length > 2*busy:
			cut[i] = true
			cuts++
		case idle[i]:
			total += length
		}
	}
	room := 100 - float64(cuts)*proofBreak
	var breaks []axisBreak
	for i := range idle {
		length := times[i+1] - times[i]
		width := float64(proofBreak)
		if !cut[i] {
			width = room * float64(length) / float64(max(total, 1))
		} else {
			breaks = append(breaks, axisBreak{X: a.x[i] + proofBreak/2, Label: "≈ " + span(time.Duration(length)) + " ≈"})
		}
		a.x[i+1] = a.x[i] + width
	}
	return a, breaks
}

// timesOf says when an operation was under way.
func timesOf(o model.ProofOp) string {
	if o.Ended < 0 {
		return precise(o.Invoked) + ", never ended"
	}
	return precise(o.Invoked) + " to " + precise(o.Ended)
}

func precise(ns int64) string { return fmt.Sprintf("%.6f s", time.Duration(ns).Seconds()) }
