//go:build failpoints

package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"ackproof/broker/fault"
)

// The switches of the bugs in what entries do are flags of the entry; each bug sets its own.
func TestPlantsSetTheirFlag(t *testing.T) {
	seen := map[flags]bool{0: true}
	for _, bug := range []fault.Bug{fault.UncleanElection, fault.RestartedStaysInSync, fault.ELRNotEmptied, fault.UncleanStopStaysEligible} {
		if err := fault.Plant(bug); err != nil {
			t.Fatal(err)
		}
		f := planted()
		fault.Uproot(bug)
		if seen[f] || f&^allFlags != 0 {
			t.Errorf("%s sets the flags %b, expected one of its own", bug.Name, f)
		}
		seen[f] = true
	}
}

// A voter that has voted votes for nobody else in that term, also after a restart; with B17 it does.
func TestR26PlantVoteNotDurable(t *testing.T) {
	second := func() (granted bool) {
		snapshot, err := (&Controller{cfg: testConfig(0, 3)}).firstSnapshot()
		if err != nil {
			t.Fatal(err)
		}
		c, _, err := New(testConfig(0, 3), Stored{Snapshot: snapshot, HardState: &raftpb.HardState{Term: new(uint64(7)), Vote: new(raftID(1)), Commit: new(uint64(1))}}, time.Unix(1_000_000, 0))
		if err != nil {
			t.Fatal(err)
		}
		typ := raftpb.MsgVote
		for _, e := range c.Step(time.Unix(1_000_000, 0), Message{&raftpb.Message{Type: &typ, From: new(raftID(2)), To: new(raftID(0)), Term: new(uint64(7)), Index: new(uint64(1)), LogTerm: new(uint64(1))}}) {
			if s, ok := e.(Send); ok && s.Message.GetType() == raftpb.MsgVoteResp && s.To == 2 {
				granted = !s.Message.GetReject()
			}
		}
		return granted
	}
	if second() {
		t.Error("without the bug: a second vote in one term")
	}
	if err := fault.Plant(fault.VoteNotDurable); err != nil {
		t.Fatal(err)
	}
	defer fault.Uproot(fault.VoteNotDurable)
	if !second() {
		t.Error("with the bug: no second vote in one term")
	}
}

// TestPlantsAreFound: the clusters that are sound without a bug show B17, two leaders of a term or what follows from them.
func TestPlantsAreFound(t *testing.T) {
	if err := fault.Plant(fault.VoteNotDurable); err != nil {
		t.Fatal(err)
	}
	defer fault.Uproot(fault.VoteNotDurable)
	for seed := range uint64(200) {
		found := ""
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			defer func() {
				if p := recover(); p != nil {
					found = fmt.Sprint(p)
				}
			}()
			w := newWorld(t, 3, seed, nil)
			w.fail = func(text string) { panic(text) }
			w.faults = true
			w.run(1000)
			w.heal()
		})
		for _, want := range []string{"is led by", "elsewhere it is", "failed", "was acknowledged", "go back"} {
			if strings.Contains(found, want) {
				t.Logf("found by seed %d: %.300s", seed, found)
				return
			}
		}
		if found != "" {
			t.Fatalf("seed %d: %s", seed, found)
		}
	}
	t.Error("not found in 200 runs")
}
