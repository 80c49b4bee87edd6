package page

import (
	"testing"
	"time"

	"ackproof/model"
)

func TestAGapIsPutDownToTheFaultsThatExplainIt(t *testing.T) {
	at := func(from, to float64) (time.Duration, time.Duration) {
		return time.Duration(from * float64(time.Second)), time.Duration(to * float64(time.Second))
	}
	made := func(kind, target string, from, to float64, effective bool) fault {
		f := fault{FaultResult: model.FaultResult{Kind: kind, Targets: []string{target}, Effective: effective}, started: true}
		f.from, f.to = at(from, to)
		return f
	}
	faults := []fault{made("partition", "n3", 1, 4, true), made("pause", "n2", 4.9, 6, false), made("kill", "n1", 5.01, 7, true), made("kill", "n2", 6, 8, true), made("pause", "n1", 20, 21, true)}
	leaders := &leadership{spans: []leaderSpan{{0, 3 * time.Second, 3}, {3 * time.Second, 9 * time.Second, 2}}}
	for _, c := range []struct {
		from, to float64
		why      string
	}{
		{1.2, 2, "partition n3 (n3 led the partition)"},
		{5, 5.5, "kill n1"},
		{5, 7.5, "kill n1, then kill n2 (n2 led the partition)"},
		{4.05, 4.8, "partition n3"}, // clients find out a little later that it is over
		{10, 11, "no fault that had an effect lasted when it began"},
		{19.9, 20.5, "pause n1"},
	} {
		g := gap{}
		g.from, g.to = at(c.from, c.to)
		if g.explain(faults, leaders); g.why != c.why {
			t.Errorf("a gap from %v to %v: %q, expected %q", c.from, c.to, g.why, c.why)
		}
	}
}

// TestAvailabilityIsTheTimeWithoutGaps: the script's partition has one gap of two seconds, from the last acknowledgement before the kill to the first after it.
func TestAvailabilityIsTheTimeWithoutGaps(t *testing.T) {
	run := violated("plain")
	c, err := collect(run, maxOperations)
	if err != nil {
		t.Fatal(err)
	}
	from, to, all := c.available(c.timed(run.Results.Faults))
	if from != time.Millisecond || to != 2014*time.Millisecond || len(all) != 1 {
		t.Fatalf("%v to %v, %+v", from, to, all)
	}
	a := all[0]
	if len(a.Gaps) != 1 || a.Longest != 2008*time.Millisecond || a.Total != a.Longest || a.Gaps[0].from != 5*time.Millisecond || a.Gaps[0].to != 2013*time.Millisecond {
		t.Errorf("%+v", a)
	}
	if want := 1 - 2008.0/2013; a.Share < want-1e-9 || a.Share > want+1e-9 {
		t.Errorf("available for %v of the load, expected %v", a.Share, want)
	}
	if offset := c.resumed[place{0, 2013 * time.Millisecond}]; offset != 1 {
		t.Errorf("writing went on at offset %d, expected 1", offset)
	}
}
