package page

import (
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"ackproof/histories"
	"ackproof/model"
)

func gridOf(t *testing.T, events []histories.Event, s *stretch) grid {
	t.Helper()
	run := &Run{Events: func() iter.Seq2[histories.Event, error] { return histories.Events(events) }}
	if err := look(run, []*stretch{s}); err != nil {
		t.Fatal(err)
	}
	return s.grid()
}

// texts are the records of a row at an offset, with the look of each.
func (g grid) texts(t *testing.T, row string, offset int64) string {
	t.Helper()
	i := slices.IndexFunc(g.Rows, func(r gridRow) bool { return r.Name == row })
	if i < 0 {
		t.Fatalf("no row %q", row)
	}
	c := g.Rows[i].Cells[offset-g.Offsets[0].Offset]
	var all []string
	for _, x := range c.Texts {
		all = append(all, strings.TrimSpace(x.Text+" "+x.Class))
	}
	if c.Empty != "" {
		all = append(all, c.Empty)
	}
	return strings.Join(all, ", ")
}

// TestTheLogRoundALoss: what was acknowledged and read, and is not there in the end, is marked in each row.
func TestTheLogRoundALoss(t *testing.T) {
	g := gridOf(t, script("no answer"), newStretch(0, 1, "lost"))
	for _, want := range []struct {
		row    string
		offset int64
		texts  string
	}{
		{"acknowledged", 0, "1·0"}, {"acknowledged", 1, "1·1 differs, 2·0"}, {"read", 0, "1·0"}, {"read", 1, "1·1 differs"},
		{"final read", 1, "2·0"}, {"final read", 2, "end"}, {"copy on n1", 1, "2·0"}, {"acknowledged", 2, ""},
	} {
		if got := g.texts(t, want.row, want.offset); got != want.texts {
			t.Errorf("%s at %d: %q, expected %q", want.row, want.offset, got, want.texts)
		}
	}
	if !g.Offsets[1].Marked || g.Offsets[0].Marked {
		t.Errorf("marked: %+v", g.Offsets[:2])
	}
}

// TestTheLogRoundALostEnd: a record beyond the end of the log differs although nothing is in its place; an append of unknown outcome that was found is dashed.
func TestTheLogRoundALostEnd(t *testing.T) {
	runs := func(n, offset int64) []histories.Run {
		return []histories.Run{{Offset: offset, Producer: 1, Sequence: n, Count: 1}}
	}
	events := []histories.Event{
		{Seq: 1, Kind: histories.Append, Op: 1, Process: 1, Runs: runs(0, 0)},
		{Seq: 2, Type: histories.Info, Kind: histories.Append, Op: 1, Process: 1},
		{Seq: 3, Kind: histories.Append, Op: 3, Process: 2, Runs: runs(1, 0)},
		{Seq: 4, Type: histories.OK, Kind: histories.Append, Op: 3, Process: 2, Offset: 1},
		{Seq: 5, Kind: histories.Phase, Note: "drain"},
		{Seq: 6, Kind: histories.Fetch, Op: 6, Process: 3},
		{Seq: 7, Type: histories.OK, Kind: histories.Fetch, Op: 6, Process: 3, Runs: runs(0, 0)},
		{Seq: 8, Kind: histories.CopyRead, Op: 8, Process: 3, Node: 2},
		{Seq: 9, Type: histories.OK, Kind: histories.CopyRead, Op: 8, Process: 3, Node: 2, Runs: []histories.Run{{Count: 1, Defect: histories.Corrupt}}},
	}
	g := gridOf(t, events, newStretch(0, 1, "lost"))
	for row, want := range map[string][2]string{"acknowledged": {"", "1·1 differs"}, "final read": {"1·0 doubtful", "end"}, "copy on n2": {"corrupt differs", ""}} {
		for offset, w := range want {
			if got := g.texts(t, row, int64(offset)); got != w {
				t.Errorf("%s at %d: %q, expected %q", row, offset, got, w)
			}
		}
	}
}

func TestAStretchIsRoundEachAnomalyOnce(t *testing.T) {
	proof := func(partition int32, offset int64, claim model.Claim) Proof {
		return Proof{Certificate: model.Certificate{Claim: claim, Partition: partition, Offset: offset, Operations: []model.ProofOp{{}}}}
	}
	run := &Run{Proofs: []Proof{proof(1, 100, "a"), proof(1, 103, "b"), proof(1, 500, "c"), proof(2, 100, "d"), proof(-1, -1, "e")}}
	all := stretchesOf(run, newCollection(0), nil)
	if len(all) != 3 || all[0].from != 96 || !all[0].marked[100] || !all[0].marked[103] || all[1].partition != 1 || all[2].partition != 2 || all[0].calm {
		t.Errorf("%d stretches: %+v", len(all), all)
	}
	c := newCollection(0)
	c.resumed[place{4, 3 * time.Second}] = 77
	all = stretchesOf(&Run{}, c, []gap{{partition: 4, from: time.Second, to: 3 * time.Second}})
	if len(all) != 1 || all[0].partition != 4 || !all[0].marked[77] || !all[0].calm {
		t.Errorf("without a proof: %+v", all)
	}
}
