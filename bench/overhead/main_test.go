package main

import (
	"strings"
	"testing"
)

func TestRatiosAreToTheFirstGround(t *testing.T) {
	var out strings.Builder
	err := print(&out, []ground{
		{name: "bare", throughput: []float64{100, 300, 200}, middle: []float64{1}, late: []float64{2, 4}, cpu: []float64{5}},
		{name: "other", throughput: []float64{50, 50, 50}, middle: []float64{4}, late: []float64{6, 6}, cpu: []float64{10}},
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range map[int]string{1: "bare 200.00 1.00 1.00 1.00 3.00 1.00 5.00 1.00", 2: "other 50.00 0.25 4.00 4.00 6.00 2.00 10.00 2.00"} {
		if got := strings.Join(strings.Fields(lines[i]), " "); got != want {
			t.Errorf("%q, expected %q", got, want)
		}
	}
}
