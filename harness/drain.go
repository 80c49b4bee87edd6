package harness

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ackproof/workloads/log"
)

// drain reads everything back: each log from its start to an empty read at its end under a fresh assignment, and each copy of it. It begins
// only when the views agree, the in-sync sets are full and what is visible is all that there is: a drain during an election takes what is
// late for lost. What is not reached makes the drain incomplete, with the reason; it is never a loss.
func (r *run) drain(ctx context.Context) error {
	begin := time.Now()
	r.Observer.Phase("drain", 0)
	r.mark("drain")
	links, _, err := r.links(0)
	if err != nil {
		return infra("open the links of the harness", err)
	}
	r.facts.CopiesWanted = r.Options.Partitions * r.Options.Replication
	reasons := r.rescue(ctx, links, r.await(ctx, links, log.SettleBound))
	partial := make([]string, r.Options.Partitions)
	copies := make([]int, r.Options.Partitions)
	r.everyPartition(ctx, links, func(p int32, v *log.Visitor) {
		copies[p], partial[p] = v.Drain(len(reasons) == 0)
	})
	for p, reason := range partial {
		r.facts.CopiesRead += copies[p]
		if reason != "" {
			reasons = append(reasons, fmt.Sprintf("p%d: %s", p, reason))
		}
	}
	r.drainGroups(ctx, links)
	r.facts.DrainComplete = len(reasons) == 0
	r.facts.DrainReason = strings.Join(reasons, "; ")
	r.mark(endMark)
	r.seconds.Drain = time.Since(begin).Seconds()
	return nil
}

// rescue has leaders elected uncleanly for partitions that stay without one, if the faults have done what permits that: else nothing could be read, and nothing said. It returns what is then
// still to complain of.
func (r *run) rescue(ctx context.Context, links map[int32]string, complaints []string) []string {
	if len(complaints) == 0 || !r.runner.Exposed() {
		return complaints
	}
	nodes := slices.Sorted(maps.Keys(links))
	rescued := make([]bool, r.Options.Partitions)
	r.everyPartition(ctx, links, func(p int32, v *log.Visitor) { rescued[p] = v.Rescue(nodes) })
	if !slices.Contains(rescued, true) {
		return complaints
	}
	r.rescued = true
	r.note(log.Rescued(rescued))
	return r.await(ctx, links, time.Duration(r.contract.LivenessBoundMS)*time.Millisecond)
}
