package page

import (
	"math"
	"testing"

	"ackproof/model"
)

// TestAProofIsDrawnToScale: bars in proportion, an idle time that would leave no room cut out, an arrow only where one operation had returned before the next began.
func TestAProofIsDrawnToScale(t *testing.T) {
	const ms = int64(1e6)
	d := draw(&model.Certificate{Operations: []model.ProofOp{
		{Role: "final", Op: 50, EndSeq: 60, Invoked: 10_000 * ms, Ended: 10_030 * ms},
		{Role: "write", Op: 1, EndSeq: 5, Invoked: 0, Ended: 10 * ms},
		{Role: "reader", Op: 4, EndSeq: 8, Invoked: 5 * ms, Ended: 20 * ms},
		{Role: "lost", Op: 61, Invoked: 10_020 * ms, Ended: -1},
	}})
	if len(d.Bars) != 4 || len(d.Breaks) != 1 || d.Breaks[0].Label != "≈ 9.98 s ≈" {
		t.Fatalf("%+v", d)
	}
	// 50 ms are busy, and the break takes its part of the width.
	perMS := (100 - float64(proofBreak)) / 50
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-6 {
			t.Errorf("%s: %v, expected %v", what, got, want)
		}
	}
	near("write begins", d.Bars[0].X, 0)
	near("write lasts", d.Bars[0].W, 10*perMS)
	near("reader begins", d.Bars[1].X, 5*perMS)
	near("final begins", d.Bars[2].X, 20*perMS+proofBreak)
	near("final lasts", d.Bars[2].W, 30*perMS)
	near("what never ended lasts to the end", d.Bars[3].X+d.Bars[3].W, 100)
	if !d.Bars[3].Open || d.Bars[2].Open {
		t.Error("the wrong bar is open")
	}
	// The reader began before the write had returned; the last began after the final read had.
	if len(d.Arrows) != 2 || d.Arrows[0].Y1 != d.Bars[1].Y+proofBar/2 || d.Arrows[1].Y1 != d.Bars[2].Y+proofBar/2 {
		t.Errorf("arrows %+v", d.Arrows)
	}
}

func TestNoProofIsTooOddToDraw(t *testing.T) {
	if d := draw(&model.Certificate{}); d != nil {
		t.Errorf("a proof without operations: %+v", d)
	}
	for _, ops := range [][]model.ProofOp{
		{{}}, {{Invoked: 5, Ended: 5}, {Invoked: 5, Ended: 5}}, {{Invoked: 9, Ended: 3}}, {{Ended: -1}}, {{Invoked: math.MinInt64, Ended: math.MaxInt64}}, {{Invoked: -5, Ended: -1}, {Invoked: 1 << 62, Ended: 1<<62 + 1}},
	} {
		d := draw(&model.Certificate{Operations: ops})
		for _, b := range d.Bars {
			if math.IsNaN(b.X) || math.IsNaN(b.W) || b.X < 0 || b.W <= 0 || b.X+b.W > 100+1e-6 {
				t.Errorf("%+v: a bar from %v, %v wide", ops, b.X, b.W)
			}
		}
	}
}
