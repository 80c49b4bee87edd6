package group

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"ackproof/histories"
	"ackproof/linearizability"
	"ackproof/model"
)

// judge gives the claims of the groups as the checkers of record see the history, and what the members made of it.
func (w *world) judge(drained bool) (claims map[model.Claim]model.ClaimResult, e linearizability.Effects) {
	w.t.Helper()
	o := linearizability.MonitorOptions{Drained: drained}
	groups, err := linearizability.CheckGroups(w.history(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	o.Claims = []model.Claim{model.CommitSafety}
	commits, err := linearizability.CheckCommits(w.history(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	claims = map[model.Claim]model.ClaimResult{}
	for _, r := range groups.Claims {
		claims[r.ID] = r
	}
	claims[model.CommitSafety] = linearizability.Either(claims[model.CommitSafety], commits.Claims[0])
	if e, err = linearizability.GroupEffects(w.history()); err != nil {
		w.t.Fatal(err)
	}
	return claims, e
}

func (w *world) wantHeld(claims map[model.Claim]model.ClaimResult) {
	w.t.Helper()
	for _, r := range claims {
		if r.Verdict != model.Held {
			w.t.Errorf("%s is %s (%s): %+v", r.ID, r.Verdict, r.Reason, r.Anomalies)
			for _, a := range r.Anomalies {
				w.t.Log(a.Proof.Sentence)
			}
		}
	}
}

// ofKind does something to each nth request of a kind.
func ofKind(key kmsg.Key, n int, fault fakeFault) func(string, kmsg.Request) fakeFault {
	count := 0
	return func(_ string, req kmsg.Request) fakeFault {
		if req != nil && req.Key() == key.Int16() {
			if count++; count%n == 0 {
				return fault
			}
		}
		return fakeFault{}
	}
}

func TestGroupsThatNobodyHarmsHold(t *testing.T) {
	w := newWorld(t, nil)
	w.load(12 * time.Second)
	if problems := w.drain(); len(problems) > 0 {
		t.Fatalf("the drain complains: %q", problems)
	}
	claims, e := w.judge(true)
	w.wantHeld(claims)
	evidence := claims[model.GroupDelivery].Evidence
	if evidence["commits"] < 100 || evidence["assignments"] < 40 || e.Rebalances < 10 || claims[model.CommitSafety].Evidence["reads"] < 500 {
		t.Errorf("evidence %v, %+v, expected many commits, assignments, rebalances and reads", evidence, e)
	}
	if e.Unprocessed != 0 || e.Repeats == 0 {
		t.Errorf("%+v, expected that everything is processed and that crashes repeat some: they commit afterwards", e)
	}
	if applied, repeats := w.workload.Sink().Counts(); applied != e.Processed || repeats != e.Repeats {
		t.Errorf("the sink counts %d records and %d repetitions, the history %d and %d", applied, repeats, e.Processed, e.Repeats)
	}
}

func TestWhoCommitsBeforeProcessingLosesWhatACrashLeaves(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Before = true })
	w.load(12 * time.Second)
	if problems := w.drain(); len(problems) > 0 {
		t.Fatalf("the drain complains: %q", problems)
	}
	claims, e := w.judge(true)
	w.wantHeld(claims) // the group was given everything: it is the members' doing
	if e.Unprocessed == 0 {
		t.Errorf("%+v, expected records that were committed and never processed", e)
	}
}

func TestTheSameSeedGivesTheSameRun(t *testing.T) {
	var before []byte
	for range 2 {
		w := newWorld(t, nil)
		w.load(2 * time.Second)
		if err := w.recorder.Flush(); err != nil {
			t.Fatal(err)
		}
		if before != nil && !slices.Equal(before, w.buffer.Bytes()) {
			t.Fatal("two runs of one seed differ")
		}
		before = w.buffer.Bytes()
	}
}

func TestACommitWhoseAnswerIsLostIsUnknownAndEndsTheMember(t *testing.T) {
	w := newWorld(t, nil)
	w.broker.fault = ofKind(kmsg.OffsetCommit, 9, fakeFault{lose: true})
	w.load(6 * time.Second)
	gone := map[int32]bool{}
	for ev, err := range w.history() {
		if err != nil {
			t.Fatal(err)
		}
		if gone[ev.Process] {
			t.Fatalf("process %d goes on after it left an operation open", ev.Process)
		}
		if ev.Type == histories.Info && ev.Kind == histories.Object {
			gone[ev.Process] = true
		}
	}
	if len(gone) < 5 {
		t.Errorf("%d unknown commits, expected one in nine", len(gone))
	}
	w.broker.fault = func(string, kmsg.Request) fakeFault { return fakeFault{} }
	if problems := w.drain(); len(problems) > 0 {
		t.Fatalf("the drain complains: %q", problems)
	}
	claims, _ := w.judge(true)
	w.wantHeld(claims)
}

func TestTheProtocolsSurviveWhatCoordinatorsAnswer(t *testing.T) {
	for _, key := range []kmsg.Key{kmsg.JoinGroup, kmsg.SyncGroup, kmsg.Heartbeat, kmsg.OffsetCommit, kmsg.OffsetFetch, kmsg.ConsumerGroupHeartbeat} {
		faults := []fakeFault{{code: 14}, {code: 15}, {code: 16}, {code: 25}, {lose: true}, {code: 22}, {code: 27}}
		if key == kmsg.JoinGroup || key == kmsg.ConsumerGroupHeartbeat {
			faults = faults[:5] // the others are no answers to these
		}
		w := newWorld(t, nil)
		count := 0
		w.broker.fault = func(_ string, req kmsg.Request) fakeFault {
			if req != nil && req.Key() == key.Int16() {
				if count++; count%3 == 0 {
					return faults[count/3%len(faults)]
				}
			}
			return fakeFault{}
		}
		w.load(5 * time.Second)
		w.broker.fault = func(string, kmsg.Request) fakeFault { return fakeFault{} }
		if problems := w.drain(); len(problems) > 0 {
			t.Errorf("%s: the drain complains: %q", key.Name(), problems)
		}
		claims, _ := w.judge(true)
		for _, r := range claims {
			if r.Verdict != model.Held {
				t.Errorf("%s: %s is %s (%s)", key.Name(), r.ID, r.Verdict, r.Reason)
			}
		}
		if count < 3*len(faults) {
			t.Errorf("%s: %d requests, expected enough of them for every fault", key.Name(), count)
		}
	}
}

func TestBrokenCoordinatorsAreFound(t *testing.T) {
	for _, c := range []struct {
		name   string
		breaks func(*fakeGroup)
		claim  model.Claim
		want   []model.Anomaly
	}{
		{"forgets commits that it acknowledged", func(g *fakeGroup) { g.forgets = true }, model.CommitSafety, []model.Anomaly{model.CommittedOffsetRegression}},
		{"accepts commits of anybody", func(g *fakeGroup) { g.unfenced = true }, model.GroupDelivery, []model.Anomaly{model.DoubleOwner}},
		{"gives away what another one still has", func(g *fakeGroup) { g.doubles = true }, model.GroupDelivery, []model.Anomaly{model.DoubleOwner}},
	} {
		w := newWorld(t, nil)
		for _, g := range w.broker.groups {
			c.breaks(g)
		}
		w.load(8 * time.Second)
		claims, _ := w.judge(false)
		if !slices.ContainsFunc(claims[c.claim].Anomalies, func(a model.AnomalyResult) bool { return slices.Contains(c.want, a.Kind) }) {
			t.Errorf("a coordinator that %s: %+v, expected %v under %s", c.name, claims[c.claim].Anomalies, c.want, c.claim)
		}
	}
}

func TestADrainThatCannotEndSaysWhy(t *testing.T) {
	w := newWorld(t, nil)
	w.load(2 * time.Second)
	w.broker.fault = ofKind(kmsg.OffsetCommit, 1, fakeFault{code: 14})
	if problems := w.drain(); len(problems) != len(w.cfg.Groups) {
		t.Errorf("nobody takes a commit, and the drain complains: %q", problems)
	}
}

// Any members with any claims: every partition goes to one member at most, and of two rounds the second one gives everything away, in fair shares.
func TestCooperativeAssignmentsMoveNothingThatIsOwned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		partitions := rapid.IntRange(1, 12).Draw(t, "partitions")
		ids := []string{"a", "b", "c", "d", "e"}[:rapid.IntRange(1, 5).Draw(t, "members")]
		known := map[string]metadata{}
		for _, id := range ids {
			known[id] = metadata{"t", rapid.SliceOfNDistinct(rapid.Int32Range(0, int32(partitions)), 0, partitions, rapid.ID).Draw(t, id), rapid.Int32Range(0, 3).Draw(t, "generation")}
		}
		first := sticky(ids, partitions, known)
		owner := map[int32]string{}
		for id, parts := range first {
			for _, p := range parts {
				if other, twice := owner[p]; twice {
					t.Fatalf("p%d goes to %s and %s", p, other, id)
				}
				owner[p] = id
				for _, other := range ids {
					if other != id && slices.Contains(known[other].owned, p) && known[other].generation > known[id].generation {
						t.Fatalf("p%d goes to %s, and %s has it by a newer generation", p, id, other)
					}
				}
			}
		}
		again := map[string]metadata{}
		for _, id := range ids {
			again[id] = metadata{"t", first[id], 4}
		}
		second := sticky(ids, partitions, again)
		total := 0
		for _, id := range ids {
			total += len(second[id])
			if n := len(second[id]); n < partitions/len(ids) || n > (partitions+len(ids)-1)/len(ids) {
				t.Fatalf("%s gets %d of %d partitions among %d members", id, n, partitions, len(ids))
			}
			if lost := dropped(first[id], second[id]); len(lost) > 0 {
				t.Fatalf("%s gave back %v although nothing was wrong", id, lost)
			}
		}
		if total != partitions {
			t.Fatalf("%d of %d partitions are given away", total, partitions)
		}
	})
}

func TestMetadataAndAssignmentsAreReadBack(t *testing.T) {
	d := decodeMetadata(metadata{"t", []int32{1, 4}, 3}.encode(), "t")
	if d.generation != 3 || !slices.Equal(d.owned, []int32{1, 4}) {
		t.Errorf("metadata %+v", d)
	}
	if got := decodeAssignment(encodeAssignment("t", []int32{5, 2}), "t"); !slices.Equal(got, []int32{2, 5}) {
		t.Errorf("assignment %v, expected 2 and 5", got)
	}
	rapid.Check(t, func(t *rapid.T) { // whatever somebody else sends
		raw := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes")
		decodeMetadata(raw, "t")
		decodeAssignment(raw, "t")
	})
	shares := ranges([]string{"a", "b"}, 3)
	if !maps.EqualFunc(shares, map[string][]int32{"a": {0, 1}, "b": {2}}, slices.Equal) {
		t.Errorf("ranges %v", shares)
	}
}
