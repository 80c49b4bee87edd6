package campaign

import (
	"strings"
	"testing"

	"ackproof/broker/fault"
	"ackproof/model"
	"ackproof/sim"
)

func quarry(t *testing.T, id string) Quarry {
	t.Helper()
	for _, q := range fault.Catalogue() {
		if q.ID == id {
			return q
		}
	}
	t.Fatalf("no bug %s in the catalogue", id)
	return Quarry{}
}

func TestABugThatMostCampaignsMissIsNotFound(t *testing.T) {
	q := quarry(t, "B09")
	found := Finding{Found: true, Anomalies: []string{"phantom", "dirty-read"}, Seeds: 3, Seconds: 1, VirtualMS: 10_000}
	missed := Finding{Seeds: 150, Seconds: 40}
	for _, c := range []struct {
		findings []Finding
		found    bool
		seeds    int
	}{
		{nil, false, 0}, {[]Finding{missed}, false, 0}, {[]Finding{found}, true, 3}, {[]Finding{found, missed, missed}, false, 0}, {[]Finding{missed, found, found}, true, 3},
		{[]Finding{found, missed}, true, 3},
	} {
		p := NewPlantScore(q, "sim", c.findings)
		if p.Found != c.found || p.Seeds != c.seeds {
			t.Errorf("%v: found %t after %d seeds, expected %t after %d", c.findings, p.Found, p.Seeds, c.found, c.seeds)
		}
		if c.found && (p.Anomaly != "dirty-read" || p.AsExpected != p.FoundBy) {
			t.Errorf("anomaly %q, %d of %d as expected; expected dirty-read each time", p.Anomaly, p.AsExpected, p.FoundBy)
		}
		s := Score{Plants: []PlantScore{p}}
		if missing := len(s.Missing()) == 1; missing == c.found || strings.Contains(s.Text(), "not B09") != missing {
			t.Errorf("missing %t, expected %t; the table says:\n%s", missing, !c.found, s.Text())
		}
	}
	if p := NewPlantScore(q, "sim", []Finding{{Found: true}}); p.Anomaly != Inside || p.AsExpected != 0 {
		t.Errorf("a finding without anomaly: %q, %d as expected, expected %q and none", p.Anomaly, p.AsExpected, Inside)
	}
}

func TestADrawnCaseHasWhatTheBugNeedsAndIsAControlWithoutIt(t *testing.T) {
	for _, q := range fault.Catalogue() {
		for seed := int64(1); seed <= 20; seed++ {
			c := Draw(seed, q)
			if err := c.Validate(); err != nil {
				t.Fatalf("%s, seed %d: %v", q.ID, seed, err)
			}
			if c.Plant != q.ID || c.Acks != -1 || c.Unclean || q.Needs.Flush && !c.FlushEach || q.Needs.Idempotent && !c.Idempotent {
				t.Errorf("%s, seed %d: acks %d, unclean %t, flush %t, idempotent %t, plant %q; the catalogue needs %+v", q.ID, seed, c.Acks, c.Unclean, c.FlushEach, c.Idempotent, c.Plant, q.Needs)
			}
			other := q
			other.ID = "B00"
			d := Draw(seed, other)
			if d.Plant = c.Plant; key(d) != key(c) {
				t.Errorf("%s, seed %d: the case depends on which bug it is, not on its needs alone", q.ID, seed)
			}
		}
	}
}

// The order in which cases come back must not decide what a campaign found.
func TestACampaignEndsWithItsFirstFinding(t *testing.T) {
	bad := Summary{Verdict: model.Violated, Case: sim.Case{Seed: 12}, CPU: 1}
	good := Summary{Verdict: model.Held, CPU: 1}
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 3, 0, 1}} {
		c := chase{from: 10, most: 4}
		for _, n := range order {
			s := good
			if n >= 2 {
				s = bad
			}
			c.take(n, s)
		}
		if got := c.trail(); got.Seeds != 3 || got.Found == nil || got.CPU != 3 || c.open() {
			t.Errorf("order %v: %d seeds, found %v, %v s, expected 3 seeds with a finding in 3 s", order, got.Seeds, got.Found, got.CPU)
		}
	}
	c := chase{from: 10, most: 2}
	c.take(0, Summary{Verdict: model.Violated, Failed: "the worker died"})
	if c.take(1, good); c.found() != nil || c.open() || len(c.trail().Failed) != 1 {
		t.Error("a case that failed counts as a finding, or is forgotten")
	}
}
