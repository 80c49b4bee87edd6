package process

import (
	"errors"
	"fmt"
	"sync"

	"ackproof/systems"
)

// Explain adds to an error what a node that ended says, or the end of the log of the first node if none did.
func Explain[N systems.Node](err error, nodes []N) error {
	for _, n := range nodes {
		if alive, reason := n.Alive(); !alive {
			return fmt.Errorf("%w; %s ended: %v; its log ends with:\n%s", err, n.Name(), reason, n.LogTail(20))
		}
	}
	return fmt.Errorf("%w; the log of %s ends with:\n%s", err, nodes[0].Name(), nodes[0].LogTail(20))
}

// StopAll ends all nodes for good, side by side.
func StopAll[N interface{ Stop() error }](nodes []N) error {
	errs := make([]error, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() { errs[i] = n.Stop() })
	}
	all.Wait()
	return errors.Join(errs...)
}
