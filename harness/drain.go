package harness

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"ackproof/workloads/log"
)

// Bounds of the drain. Reading takes long when there is much to read, not when something is wrong.
const (
	settleBound = 10 * time.Second // until all copies have the same end
	readBound   = 60 * time.Second // for one log, the longest that is read
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
	reasons := r.await(ctx, links, settleBound, fullViews)
	partial := make([]string, r.Options.Partitions)
	copies := make([]int, r.Options.Partitions)
	r.everyPartition(ctx, links, func(p int32, v *log.Visitor) {
		copies[p], partial[p] = r.drainOne(ctx, p, v, len(reasons) == 0)
	})
	for p, reason := range partial {
		r.facts.CopiesRead += copies[p]
		if reason != "" {
			reasons = append(reasons, fmt.Sprintf("p%d: %s", p, reason))
		}
	}
	r.facts.DrainComplete = len(reasons) == 0
	r.facts.DrainReason = strings.Join(reasons, "; ")
	r.mark("end")
	r.seconds.Drain = time.Since(begin).Seconds()
	return nil
}

// drainOne reads one partition. Without settled views it reads what it can reach, for evidence, and does not wait long.
func (r *run) drainOne(ctx context.Context, p int32, v *log.Visitor, settled bool) (copies int, reason string) {
	settle, read := settleBound, readBound
	if !settled {
		settle, read = time.Second, 5*time.Second
	}
	replicas, reason := r.settle(ctx, p, v, settle)
	got := v.ReadAll(read)
	if got.Code != 0 {
		return 0, fmt.Sprintf("the end was not reached: after offset %d n%d answered with code %d", got.Next, got.Node, got.Code)
	}
	for _, node := range replicas {
		one := v.Copy(node, got.Next, read)
		if one.Code != 0 {
			reason = fmt.Sprintf("the end of the copy on n%d was not reached: it answered with code %d at offset %d, the leader's log ends at %d", node, one.Code, one.Next, got.Next)
			continue
		}
		copies++
	}
	return copies, reason
}

// settle waits until the visible end is the end of every copy; it returns the replicas and, if they did not settle, how they stand.
func (r *run) settle(ctx context.Context, p int32, v *log.Visitor, bound time.Duration) (replicas []int32, reason string) {
	end := time.Now().Add(bound)
	for {
		replicas, reason = r.ends(p, v, replicas)
		if reason == "" || time.Now().After(end) || ctx.Err() != nil {
			return replicas, reason
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// ends compares the ends of all copies with the visible end.
func (r *run) ends(p int32, v *log.Visitor, known []int32) (replicas []int32, reason string) {
	visible := v.End()
	if visible.Code != 0 {
		return known, fmt.Sprintf("the leader does not tell the visible end (code %d)", visible.Code)
	}
	view, err := v.View(visible.Node)
	if err != nil {
		return known, fmt.Sprintf("n%d gives no view: %v", visible.Node, err)
	}
	replicas = slices.Sorted(slices.Values(view.Partitions[p].Replicas))
	for _, node := range replicas {
		own := v.CopyEnd(node)
		switch {
		case own.Code != 0:
			return replicas, fmt.Sprintf("n%d does not tell the end of its copy (code %d)", node, own.Code)
		case own.Offset != visible.Offset:
			return replicas, fmt.Sprintf("the copy on n%d ends at %d, the visible end is %d", node, own.Offset, visible.Offset)
		}
	}
	return replicas, ""
}
