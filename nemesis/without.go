package nemesis

import (
	"slices"
	"strconv"
	"strings"

	"ackproof/model"
)

// Without is the schedule without one of its faults, as a run showed it to be: those that began, ended or chose their targets by that fault do so by the
// moment and the nodes that the run's results have for them. The results are in the order of the schedule.
func (s Schedule) Without(gone int, results []model.FaultResult) Schedule {
	out := Schedule{Version: s.Version, Seed: s.Seed, Faults: []Fault{}}
	for i, f := range s.Faults {
		if i == gone {
			continue
		}
		if f.Start.Fault != nil && *f.Start.Fault == gone {
			f.Start = Trigger{AfterMS: results[i].FromMS}
			if f.Target.Role == RoleSame {
				f.Target = Target{Role: RoleNode, Nodes: nodesOf(results[i])}
			}
		}
		if f.UntilFault != nil && *f.UntilFault == gone {
			f.UntilFault, f.ForMS = nil, max(results[i].ToMS-results[i].FromMS, 1)
		}
		f.Start.Fault = shifted(f.Start.Fault, gone)
		f.UntilFault = shifted(f.UntilFault, gone)
		out.Faults = append(out.Faults, f)
	}
	return out
}

// shifted is the index of a fault after one before it is gone.
func shifted(index *int, gone int) *int {
	if index == nil {
		return nil
	}
	n := *index
	if n > gone {
		n--
	}
	return &n
}

// nodesOf reads the names of a result's targets.
func nodesOf(r model.FaultResult) []int {
	var out []int
	for _, name := range r.Targets {
		if n, err := strconv.Atoi(strings.TrimPrefix(name, "n")); err == nil {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}
