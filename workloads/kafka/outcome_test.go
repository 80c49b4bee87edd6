package kafka

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

// A code that is wrongly taken for a definite failure makes false phantoms; one that is wrongly taken for unknown only costs strength.
func TestCodesThatMayHaveBeenAppliedAreUnknown(t *testing.T) {
	for _, code := range []int16{-1, 3, 5, 6, 7, 8, 9, 13, 20, 56, 74, 75, 77, 89, 100, 133, 999, -77} {
		if got := ProduceOutcome(code); got != Unknown {
			t.Errorf("code %d is %v, expected unknown", code, got)
		}
	}
}

// A commit that was appended and is taken for refused would make a regression of what is none.
func TestCodesAfterWhichACommitMayStandAreUnknown(t *testing.T) {
	for _, code := range []int16{-1, 5, 6, 7, 15, 16, 19, 20, 56, 999, NoAnswer} {
		if got := CommitOutcome(code); got != Unknown {
			t.Errorf("code %d is %v, expected unknown", code, got)
		}
	}
	for _, code := range []int16{14, 22, 25, 27, 82, 110, 113} {
		if got := CommitOutcome(code); got != NotApplied {
			t.Errorf("code %d is %v, expected that it was not applied: members go on after it", code, got)
		}
	}
}

func TestTheTablesNameKafkasCodesAndSayWhy(t *testing.T) {
	namesAndReasons(t, produceCodes)
	namesAndReasons(t, commitCodes)
}

func namesAndReasons(t *testing.T, table []codeMeaning) {
	t.Helper()
	seen := map[int16]bool{}
	for _, c := range table {
		if seen[c.code] {
			t.Errorf("code %d stands twice in the table", c.code)
		}
		seen[c.code] = true
		if c.why == "" {
			t.Errorf("code %d has no reason", c.code)
		}
		if c.code == 0 {
			continue
		}
		err := kerr.TypedErrorForCode(c.code)
		if err == nil || err.Message != c.name {
			// kerr keeps the older name of code 6, which says the same.
			if c.code == 6 && err != nil && err.Message == "NOT_LEADER_FOR_PARTITION" {
				continue
			}
			t.Errorf("code %d is called %s, expected what Kafka calls it: %v", c.code, c.name, err)
		}
	}
}
