//go:build failpoints

package campaign

import (
	"context"
	"slices"
	"strings"
	"testing"

	"ackproof/model"
	"ackproof/sim"
)

func TestAViolationShrinksToWhatItTakes(t *testing.T) {
	c := sim.Swarm(3, nil, 0)
	c.Plant = "B01"
	first := Execute(c)
	if first.Verdict != model.Violated {
		t.Fatalf("B01 with seed 3: %s %s, expected a violation to shrink", first.Verdict, first.Failed)
	}
	s, err := Shrink(context.Background(), Pool{}, first, 100)
	if err != nil {
		t.Fatal(err)
	}
	n := len(s.Summary.Case.Schedule.Faults)
	if n > 3 || n == 0 || s.Executions > 100 || !slices.ContainsFunc(s.Summary.Anomalies, func(a model.Anomaly) bool { return slices.Contains(first.Anomalies, a) }) {
		t.Errorf("%d faults in %d executions with %v, expected at most 3 in at most 100 with one of %v", n, s.Executions, s.Summary.Anomalies, first.Anomalies)
	}
	r, err := sim.Run(s.Summary.Case, sim.Options{})
	if err != nil || r.Verdict() != model.Violated {
		t.Fatalf("the shrunk case: %v, expected it to be violated again", err)
	}
	story := Story(r)
	for _, want := range []string{"1.", "took effect", "leads p", "lost-acked"} {
		if !strings.Contains(story, want) {
			t.Errorf("the story has no %q:\n%s", want, story)
		}
	}
	s.Summary.Case.Plant = ""
	if control := Execute(s.Summary.Case); control.Verdict != model.Held {
		t.Errorf("without the bug the shrunk case is %s %v, expected it to hold", control.Verdict, control.Open)
	}
}
