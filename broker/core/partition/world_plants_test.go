//go:build failpoints

package partition

import (
	"fmt"
	"strings"
	"testing"

	"ackproof/broker/fault"
)

// TestPlantsAreFound: the same runs that are clean without a planted bug must find each bug of a replica, and find it for the right reason.
func TestPlantsAreFound(t *testing.T) {
	for bug, want := range map[fault.Bug][]string{
		fault.AckBeforeISR:            {"is lost", "acknowledged at offset"},
		fault.MinISRAtAppendOnly:      {"is lost", "consumers"},
		fault.TruncateToHW:            {"is lost", "consumers"},
		fault.FetchAboveHW:            {"consumers", "read at offset"},
		fault.ProducerStateLeaderOnly: {"R28"},
	} {
		t.Run(bug.Name, func(t *testing.T) {
			if err := fault.Plant(bug); err != nil {
				t.Fatal(err)
			}
			defer fault.Uproot(bug)
			for seed := range uint64(2000) {
				found := ""
				func() {
					defer func() {
						if p := recover(); p != nil {
							found = fmt.Sprint(p)
						}
					}()
					w := newWorld(seed, false, func(f string, a ...any) { panic(fmt.Sprintf(f, a...)) })
					for range 12_000 {
						w.act(true)
					}
					w.heal()
					w.judge()
				}()
				for _, s := range want {
					if strings.Contains(found, s) {
						t.Logf("found by seed %d: %s", seed, found)
						return
					}
				}
			}
			t.Errorf("%s is not found in 2000 runs", bug.Name)
		})
	}
}
