package harness

import (
	"testing"
	"time"
)

func TestThePaceIsThatOfTheLastSecond(t *testing.T) {
	var p pace
	for i, c := range []struct {
		at    time.Duration
		total int64
		want  float64
	}{
		{0, 0, 0},
		{250 * time.Millisecond, 100, 400},
		{500 * time.Millisecond, 200, 400},
		{1250 * time.Millisecond, 1200, 1100}, // since 250 ms
		{2250 * time.Millisecond, 1200, 0},
		{2250 * time.Millisecond, 1200, 0}, // twice at the same time
		{10 * time.Second, 2000, 800 / 7.75},
	} {
		if got := p.at(c.at, c.total); got != c.want {
			t.Errorf("%d: %v per second, expected %v", i, got, c.want)
		}
	}
}
