package sim

import (
	"fmt"

	"ackproof/broker/fault"
)

// plant plants the bug with that id or name in the broker; "" plants none. The function uproots it.
func plant(name string) (uproot func(), err error) {
	if name == "" {
		return func() {}, nil
	}
	bug, ok := fault.Find(name)
	if !ok {
		return nil, fmt.Errorf("plant %q: no such bug", name)
	}
	if err := fault.Plant(bug); err != nil {
		return nil, err
	}
	return func() { fault.Uproot(bug) }, nil
}
