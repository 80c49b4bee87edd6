package crash

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// runsEnv asks for a long campaign: so many random runs beside the written one.
const runsEnv = "ACKPROOF_CRASH_RUNS"

func report(t *testing.T, tally Tally) {
	t.Helper()
	t.Log(tally)
	for i, f := range tally.Findings {
		if i == 20 {
			t.Errorf("… and %d more", len(tally.Findings)-i)
			break
		}
		t.Error(f)
	}
}

// TestCampaign: crash and loss of power at every change of the written run, failures of the disk, flipped bits. With ACKPROOF_CRASH_RUNS=n also of n random runs.
func TestCampaign(t *testing.T) {
	random := 0
	if text := os.Getenv(runsEnv); text != "" {
		var err error
		if random, err = strconv.Atoi(text); err != nil || random < 1 {
			t.Fatalf("%s = %q, expected a number of runs", runsEnv, text)
		}
	}
	report(t, Campaign(1, random, false))
}

// TestSecondCrash also crashes the recoveries, of a shorter run. Among them is the one that a long campaign found: a process is killed when it has named a state that
// tells of a cut, and not flushed the name; the next one does the cut; a loss of power brings the old state back, and the files are gone.
func TestSecondCrash(t *testing.T) {
	run := Run{open(), appended(2, 2, 1, 60), flushed(), appended(4, 2, 1, 200), saved(1), trimmed(2, 3), appended(3, 1, 2, 200), truncated(3, 2), appended(1, 1, 3, 50), closed(true)}
	var tally Tally
	tally.CrashEverywhere(run, rand.New(rand.NewPCG(3, 0)), 1, true)
	report(t, tally)
}

// TestTheModelCanFail: what is compared with another run's model is found to be wrong, so the comparison is one.
func TestTheModelCanFail(t *testing.T) {
	run := Written()
	run[1].next = appended(2, 2, 1, 61).next // one byte more than is written
	var tally Tally
	tally.CrashEverywhere(run[:4], rand.New(rand.NewPCG(1, 0)), 0, false)
	if len(tally.Findings) == 0 {
		t.Errorf("no finding in %v", tally)
	}
}

// TestEveryCrashState leaves nothing to chance: a short run, and at each of its changes each state that a loss of power can leave.
func TestEveryCrashState(t *testing.T) {
	run := Run{
		open(), appended(1, 1, 1, 100), flushed(), appended(2, 1, 2, 250), saved(1), appended(1, 1, 2, 100), truncated(2, 2), appended(1, 1, 3, 120), flushed(), trimmed(3, 1), closed(true),
	}
	var tally Tally
	cut := tally.Exhaust(run, rand.New(rand.NewPCG(7, 0)), 2000)
	t.Logf("%d of %d changes had more states than were tried", cut, tally.Changes)
	report(t, tally)
}
