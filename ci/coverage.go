package ci

import (
	"slices"
	"strings"

	"ackproof/model"
)

// Moment says what the system was going through when a fault took effect. Most losses need two faults in a row, so a mix that never hits a system that is still
// recovering has shown little.
type Moment string

// The moments.
const (
	Calm       Moment = "calm"       // no other fault for a while
	Overlap    Moment = "overlap"    // another fault lasted
	Recovering Moment = "recovering" // another fault had ended within the last two seconds
)

// recoveryMS is how long after a fault the system counts as recovering, in ms.
const recoveryMS = 2000

// Moments are all of them, in the order of the report.
func Moments() []Moment { return []Moment{Calm, Recovering, Overlap} }

// Cover counts the faults of one kind against one role by the moment that they hit.
type Cover struct {
	Kind      string         `json:"kind"`
	Role      string         `json:"role"`      // "leader", "followers", …, without the partition
	Planned   int            `json:"planned"`   // all, whether they had an effect or could not even begin
	Effective map[Moment]int `json:"effective"` // those that had an effect
}

// coverage adds up what hit the system, in the order of kinds and roles.
func coverage(runs []model.Results) []Cover {
	var out []Cover
	for _, run := range runs {
		for i, f := range run.Faults {
			role, _, _ := strings.Cut(f.Role, " of p")
			at := slices.IndexFunc(out, func(c Cover) bool { return c.Kind == f.Kind && c.Role == role })
			if at < 0 {
				out = append(out, Cover{Kind: f.Kind, Role: role, Effective: map[Moment]int{}})
				at = len(out) - 1
			}
			out[at].Planned++
			if f.Effective {
				out[at].Effective[momentOf(run.Faults, i)]++
			}
		}
	}
	slices.SortFunc(out, func(a, b Cover) int {
		return strings.Compare(a.Kind+"\x00"+a.Role, b.Kind+"\x00"+b.Role)
	})
	return out
}

// momentOf looks at the faults that had an effect beside fault i.
func momentOf(all []model.FaultResult, i int) Moment {
	moment, from := Calm, all[i].FromMS
	for j, o := range all {
		switch {
		case j == i || !o.Effective || o.FromMS > from || o.FromMS == from && j > i:
		case from < o.ToMS:
			return Overlap
		case from < o.ToMS+recoveryMS:
			moment = Recovering
		}
	}
	return moment
}
