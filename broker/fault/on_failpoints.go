//go:build failpoints

package fault

import (
	"fmt"

	"github.com/pingcap/failpoint"
)

// Built tells whether this binary can carry planted bugs.
const Built = true

// point is the name under which a bug stands in failpoint's registry.
func point(b Bug) string { return "ackproof/" + b.ID }

// On tells whether the bug is planted in this process.
func On(b Bug) bool {
	v, err := failpoint.Eval(point(b))
	return err == nil && v != nil
}

// Plant switches the bug on for the rest of this process's life.
func Plant(b Bug) error {
	if err := failpoint.Enable(point(b), "return(true)"); err != nil {
		return fmt.Errorf("plant %s (%s): %w", b.ID, b.Name, err)
	}
	return nil
}

// Uproot switches the bug off again; tests use it.
func Uproot(b Bug) { _ = failpoint.Disable(point(b)) }
