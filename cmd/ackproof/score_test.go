package main

import (
	"encoding/json"
	"strings"
	"testing"

	"ackproof/broker/fault"
	"ackproof/model"
	"ackproof/sim/campaign"
)

func TestScoreNeedsAProgramWithPlantedBugs(t *testing.T) {
	if fault.Built {
		t.Skip("this one has them")
	}
	code, out, errs := outcome(t, command(t, "score"))
	if code != model.ExitUsage || out != "" || !strings.Contains(errs, "go build -tags failpoints") {
		t.Errorf("exit %d, expected %d and how to build such a program\n%s%s", code, model.ExitUsage, out, errs)
	}
}

func TestScoreFindsAPlantedBug(t *testing.T) {
	if !fault.Built {
		t.Skip("needs -tags failpoints")
	}
	code, out, errs := outcome(t, command(t, "score", "--plants", "B09", "--campaigns", "1", "--from", "1", "--shrink", "0", "--json", "--quiet"))
	var s campaign.Score
	if err := json.Unmarshal([]byte(out), &s); err != nil || code != model.ExitHeld {
		t.Fatalf("exit %d, %v\n%s%s", code, err, out, errs)
	}
	if len(s.Plants) != 1 || !s.Plants[0].Found || s.Plants[0].Anomaly != "dirty-read" || s.FalseAlarms != 0 || s.Controls != s.Plants[0].Seeds {
		t.Errorf("%+v, expected B09 found by a dirty read and a control for each of its seeds", s)
	}
	for _, args := range [][]string{{"--plants", "B99"}, {"--campaigns", "0"}, {"--json", "--markdown"}, {"--nonsense"}} {
		if code, _, errs := outcome(t, command(t, append([]string{"score"}, args...)...)); code != model.ExitUsage || strings.Count(errs, "\n") != 1 {
			t.Errorf("score %v: exit %d, expected %d and one line:\n%s", args, code, model.ExitUsage, errs)
		}
	}
}
