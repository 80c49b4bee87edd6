//go:build !failpoints

package fault

import "errors"

// Built tells whether this binary can carry planted bugs.
const Built = false

// On tells whether the bug is planted in this process: never, in a normal build.
func On(Bug) bool { return false }

// Plant fails: this binary was built without the tag.
func Plant(Bug) error {
	return errors.New("planted bugs need a binary built with -tags failpoints")
}

// Uproot switches the bug off again: there is nothing to switch.
func Uproot(Bug) {}
