package sim

import (
	"testing"

	"ackproof/sim/world"
)

// Two voters that are elected in one term break an invariant; one that is told twice, or another in a later term, does not.
func TestOneControllerInATerm(t *testing.T) {
	c := short(1)
	v := newInvariants(c, world.New(1, nil), func() bool { return false }, func(int32, string, ...any) {})
	v.elected(1, 4)
	v.elected(1, 4)
	v.elected(2, 5)
	if len(v.broken) > 0 {
		t.Fatalf("broken: %q", v.broken)
	}
	v.elected(3, 5)
	if len(v.broken) != 1 {
		t.Errorf("two of one term: broken are %q", v.broken)
	}
}
