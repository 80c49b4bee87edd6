package nemesis

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ackproof/model"
)

func TestWithoutAFaultTheOthersStayWhereTheyWere(t *testing.T) {
	index := func(n int) *int { return &n }
	s := Schedule{Version: ScheduleVersion, Seed: 5, Faults: []Fault{
		{Kind: Pause, Start: Trigger{AfterMS: 100}, ForMS: 900, UntilFault: index(1), Target: Target{Role: RoleFollower, Partition: AnyPartition}},
		{Kind: Kill, Start: Trigger{Fault: index(0), AfterMS: 50}, ForMS: 10, Target: Target{Role: RoleSame}},
		{Kind: Kill, Start: Trigger{Fault: index(1), Healed: true, AckedMore: 3}, ForMS: 20, Target: Target{Role: RoleLeader}},
	}}
	results := []model.FaultResult{
		{FromMS: 100, ToMS: 400, Targets: []string{"n2"}}, {FromMS: 400, ToMS: 410, Targets: []string{"n3", "n1"}}, {FromMS: 700, ToMS: 720, Targets: []string{"n2"}},
	}
	for _, c := range []struct {
		gone int
		want []Fault
	}{
		{0, []Fault{
			{Kind: Kill, Start: Trigger{AfterMS: 400}, ForMS: 10, Target: Target{Role: RoleNode, Nodes: []int{1, 3}}},
			{Kind: Kill, Start: Trigger{Fault: index(0), Healed: true, AckedMore: 3}, ForMS: 20, Target: Target{Role: RoleLeader}},
		}},
		{1, []Fault{
			{Kind: Pause, Start: Trigger{AfterMS: 100}, ForMS: 300, Target: Target{Role: RoleFollower, Partition: AnyPartition}},
			{Kind: Kill, Start: Trigger{AfterMS: 700}, ForMS: 20, Target: Target{Role: RoleLeader}},
		}},
		{2, s.Faults[:2]},
	} {
		got := s.Without(c.gone, results)
		if diff := cmp.Diff(c.want, got.Faults); diff != "" {
			t.Errorf("without fault %d (-want +got):\n%s", c.gone, diff)
		}
		if err := got.Validate(3, 1, 1); err != nil {
			t.Errorf("without fault %d: %v", c.gone, err)
		}
	}
}
