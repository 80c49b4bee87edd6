package group

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

var worlds = flag.Int("worlds", 150, "random runs of TestWorld")

// moves is the length of a run.
const moves = 600

// TestWorld runs both protocols under lost answers, failovers, refused appends and zombies: R38, R40-R43, and that a replay of the log, compacted or not, is the state.
func TestWorld(t *testing.T) {
	total := map[string]int{}
	for seed := range uint64(*worlds) {
		w, err := runWorld(seed)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for k, v := range w.stats {
			total[k] += v
		}
	}
	for _, must := range []string{"joined", "synced", "beaten", "given", "commit", "fetch", "crash", "failed", "trim"} {
		if total[must] == 0 {
			t.Errorf("no %s in %d runs: the test proves nothing", must, *worlds)
		}
	}
	t.Log(total)
}

func runWorld(seed uint64) (w *world, err error) {
	at := -1
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("move %d: %v", at, p)
		}
	}()
	rng := rand.New(rand.NewPCG(seed, 7))
	w = newWorld(rng.IntN, func(f string, a ...any) { panic(fmt.Sprintf(f, a...)) })
	for at = range moves {
		w.act()
	}
	w.finish()
	return w, nil
}

// TestWorldShrinks runs the same world from rapid's choices, so that a failure comes as the shortest run that shows it.
func TestWorldShrinks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "") }, t.Fatalf)
		for range rapid.IntRange(0, 150).Draw(t, "moves") {
			w.act()
		}
		w.finish()
	})
}
