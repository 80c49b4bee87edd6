package log

import (
	"fmt"
	"strings"
	"time"
)

// rescueTime bounds one request for an election.
const rescueTime = 5 * time.Second

// Rescue does what an operator does for a partition that nobody leads and that nobody who has every record can lead any more: it asks for an unclean election, so
// that what there is can be read. It tells whether there was one. Whatever is lost by that was lost before; it is for partitions of which the contract permits that.
func (v *Visitor) Rescue(nodes []int32) bool {
	for _, node := range nodes {
		if view, err := v.View(node); err == nil && view.Partitions[v.c.partition].Node > 0 {
			return false
		}
	}
	return v.c.kafka.ElectUncleanly(v.c.partition, rescueTime) == 0
}

// Rescued is a line for people about the partitions that were, by index.
func Rescued(which []bool) string {
	var names []string
	for p, yes := range which {
		if yes {
			names = append(names, fmt.Sprintf("p%d", p))
		}
	}
	return fmt.Sprintf("nobody led %s, and nobody could who is known to have every record: an unclean election was asked for by hand, and what follows was read after it", strings.Join(names, ", "))
}
