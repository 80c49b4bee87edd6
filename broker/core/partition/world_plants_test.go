//go:build failpoints

package partition

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"ackproof/broker/fault"
)

var plantWorlds = flag.Int("plantworlds", 2000, "random runs in which TestPlantsAreFound looks for each bug")

// TestPlantsAreFound: the same runs that are clean without a planted bug must find each bug of a replica, and find it for the right reason. HWResetOnRestart
// stands in a test of its own: in this world a restarted broker leads again only after others have led.
func TestPlantsAreFound(t *testing.T) {
	const loss, read, acked, visible, start, sequence, state, differ, quiet = "is lost", "consumers", "acknowledged at offset", "R21: the visible end", "R25",
		"R28", "R29", "differ", "liveness"
	for bug, want := range map[fault.Bug][]string{
		fault.AckBeforeISR:              {loss, acked},
		fault.MinISRAtAppendOnly:        {loss, read},
		fault.ISRExpandTooEarly:         {loss, read, acked, visible},
		fault.ISRWidenAckGap:            {loss, read, acked, visible},
		fault.TruncateToHW:              {loss, read},
		fault.EpochEndWithoutEpoch:      {loss, read, acked, differ},
		fault.DivergingFetchCounts:      {loss, read, acked, visible, differ},
		fault.FetchAboveHW:              {read, "read at offset"},
		fault.EndOffsetBackwards:        {visible},
		fault.AckBeforeFsync:            {loss, acked, read},
		fault.ProducerStateLostOnRoll:   {sequence, state},
		fault.ProducerStateLeaderOnly:   {sequence},
		fault.DedupeBeforeAppend:        {loss, acked, sequence},
		fault.SequenceGapAccepted:       {sequence},
		fault.StartOffsetNotDurable:     {start},
		fault.AckOnDemotion:             {loss, acked},
		fault.DivergenceOffByOne:        {loss, read, acked, differ},
		fault.RepeatOfAnotherBatch:      {loss, acked},
		fault.AckOnTimeout:              {loss, acked},
		fault.ISRShrinkAtOnce:           {loss, read, acked, visible},
		fault.HWByMinISR:                {loss, read, acked, visible},
		fault.FollowersTakenForCaughtUp: {loss, read, acked, visible},
		fault.ProducerStateNotCut:       {loss, acked, state},
		fault.EpochStartsAtHW:           {loss, quiet},
	} {
		t.Run(bug.Name, func(t *testing.T) {
			if err := fault.Plant(bug); err != nil {
				t.Fatal(err)
			}
			defer fault.Uproot(bug)
			other := map[string]int{}
			for seed := range uint64(*plantWorlds) {
				found := ruin(seed)
				for _, s := range want {
					if strings.Contains(found, s) {
						t.Logf("found by seed %d: %.200s", seed, found)
						return
					}
				}
				if found != "" {
					other[found]++
				}
			}
			t.Errorf("%s is not found in %d runs; %d runs failed otherwise: %.2000v", bug.Name, *plantWorlds, len(other), other)
		})
	}
}

// ruin makes one run and tells how it failed, "" if it did not.
func ruin(seed uint64) (found string) {
	defer func() {
		if p := recover(); p != nil {
			found = fmt.Sprint(p)
		}
	}()
	w := newWorld(seed, seed%2 == 1, func(f string, a ...any) { panic(fmt.Sprintf(f, a...)) })
	for range 12_000 {
		w.act(true)
	}
	w.heal()
	w.judge()
	return ""
}
