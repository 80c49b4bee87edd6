package partition

import (
	"flag"
	"fmt"
	"testing"
)

var worlds = flag.Int("worlds", 300, "random runs of TestWorld")

// TestWorld runs the replica under kills, cuts, delays and re-elections and compares what clients were told with what the logs hold:
// R1-R5, R8-R22, R25, R28, R29, S1.
func TestWorld(t *testing.T) {
	total := map[string]int{}
	for seed := range uint64(*worlds) {
		func() {
			at := ""
			defer func() {
				if p := recover(); p != nil {
					t.Fatalf("seed %d %s: %v", seed, at, p)
				}
			}()
			w := newWorld(seed, seed%2 == 1, func(f string, a ...any) { panic(fmt.Sprintf(f, a...)) })
			for i := range 12_000 {
				at = fmt.Sprint("move ", i)
				w.act(true)
			}
			at = "heal"
			w.heal()
			at = "judge"
			w.judge()
			for k, v := range w.stats {
				total[k] += v
			}
		}()
	}
	for _, must := range []string{"acked", "read", "kill", "election", "isr", "truncate", "end", "deleted", "reset", "unflushed", "blackout"} {
		if total[must] == 0 {
			t.Errorf("no %s in %d runs: the test proves nothing", must, *worlds)
		}
	}
	t.Log(total)
}
