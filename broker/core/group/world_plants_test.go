//go:build failpoints

package group

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/fault"
)

// TestPlantsAreFound: the runs that are clean without a planted bug find each one, for the right reason.
func TestPlantsAreFound(t *testing.T) {
	for bug, want := range map[fault.Bug]string{
		fault.CommitBeforeReplicated: "is acknowledged and not in the committed log",
		fault.CommitWithoutFence:     "is accepted",
		fault.DoubleAssignment:       "R42",
	} {
		t.Run(bug.Name, func(t *testing.T) {
			plant(t, bug)
			for seed := range uint64(500) {
				if _, err := runWorld(seed); err != nil && strings.Contains(err.Error(), want) {
					t.Logf("found by seed %d: %v", seed, err)
					return
				}
			}
			t.Errorf("%s is not found in 500 runs", bug.Name)
		})
	}
}

func plant(t *testing.T, bug fault.Bug) {
	t.Helper()
	if err := fault.Plant(bug); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fault.Uproot(bug) })
}

// B22: the commit is answered before it is in the log.
func TestPlantCommitBeforeReplicated(t *testing.T) {
	plant(t, fault.CommitBeforeReplicated)
	b := newBench(t)
	ids, generation := b.stable(1)
	b.hold = true
	b.code(nil, b.commitAs(ids[0], generation, "a", 0, 5), "commit that is not in the log")
	b.log, b.hold = b.log[:len(b.log)-1], false // the leader dies with it
	b.boot()
	if o := b.committed("a", 0); o != -1 {
		t.Errorf("offset %d, expected that the acknowledged commit is lost", o)
	}
}

// B23: a member of an older generation commits.
func TestPlantCommitWithoutFence(t *testing.T) {
	plant(t, fault.CommitWithoutFence)
	b := newBench(t)
	ids, generation := b.stable(2)
	b.code(nil, b.commitAs(ids[0], generation, "a", 0, 100), "commit")
	b.code(nil, b.commitAs("long gone", generation-1, "a", 0, 12), "commit of a zombie")
	if o := b.committed("a", 0); o != 12 {
		t.Errorf("offset %d, expected that it went back to 12", o)
	}
}

// B24: offsets are told while the log is being loaded.
func TestPlantServeBeforeLoaded(t *testing.T) {
	ask := func(c *Coordinator) *kmsg.OffsetFetchResponse {
		q := kmsg.NewPtrOffsetFetchRequest()
		q.Version = 8
		q.Groups = []kmsg.OffsetFetchRequestGroup{{Group: "g", Topics: []kmsg.OffsetFetchRequestGroupTopic{{Topic: "a", Partitions: []int32{0}}}}}
		return c.Step(began, Request{Token: 0, Body: q})[0].(Reply).Body.(*kmsg.OffsetFetchResponse)
	}
	if r := ask(New(testConfig())); r.Groups[0].ErrorCode != kerr.CoordinatorLoadInProgress.Code {
		t.Fatalf("without the bug: %+v", r)
	}
	plant(t, fault.ServeBeforeLoaded)
	if r := ask(New(testConfig())); r.Groups[0].ErrorCode != 0 || r.Groups[0].Topics[0].Partitions[0].Offset != -1 {
		t.Errorf("%+v, expected \"no offset\"", r)
	}
}

// B25: a partition is given to its new owner while the old one still has it.
func TestPlantDoubleAssignment(t *testing.T) {
	plant(t, fault.DoubleAssignment)
	b := newBench(t)
	all, _ := given(do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m1", 0)))
	ps, _ := given(do[*kmsg.ConsumerGroupHeartbeatResponse](b, beat("m2", 0)))
	if len(ps.and(all)) == 0 {
		t.Errorf("the new one has %v, the old one still %v", ps, all)
	}
}
