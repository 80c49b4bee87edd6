package log

import (
	"fmt"
	"slices"
	"time"

	"ackproof/workloads/kafka"
)

// What a visitor demands of a system that is said to be whole again, and how it reads everything back.

// Bounds of the drain. Reading takes long when there is much to read, not when something is wrong.
const (
	SettleBound = 10 * time.Second // until all copies have the same end
	readBound   = 60 * time.Second // for one log, the longest that is read
	lookAgain   = 50 * time.Millisecond
)

// NodeView is what one node says of the topic.
type NodeView struct {
	Node int32
	View kafka.View
	Err  error
}

// Complaints tells of nodes that do not answer or disagree, of partitions without a leader and of in-sync sets that are not full; none if all is well.
func Complaints(views []NodeView, partitions, replication int) []string {
	var out []string
	for _, v := range views {
		if v.Err != nil {
			out = append(out, fmt.Sprintf("n%d gives no view: %v", v.Node, v.Err))
		}
	}
	for p := range int32(partitions) {
		var first *NodeView
		for i := range views {
			v := &views[i]
			if v.Err != nil {
				continue
			}
			said, ok := v.View.Partitions[p]
			if first == nil {
				first = v
			}
			before := first.View.Partitions[p]
			var complaint string
			switch {
			case !ok:
				complaint = fmt.Sprintf("n%d does not know p%d", v.Node, p)
			case said.Node <= 0:
				complaint = fmt.Sprintf("p%d has no leader", p)
			case said.Leader != before.Leader:
				complaint = fmt.Sprintf("n%d says that n%d leads p%d in epoch %d, n%d says n%d in epoch %d",
					first.Node, before.Node, p, before.Epoch, v.Node, said.Node, said.Epoch)
			case len(said.ISR) < replication:
				complaint = fmt.Sprintf("p%d has the in-sync set %v, expected %d members", p, said.ISR, replication)
			}
			if complaint != "" {
				out = append(out, complaint)
				break
			}
		}
	}
	return out
}

// WriteAndRead demands an accepted write and its reading until the end, within the bound; "" if both were seen. An acknowledgement that did not wait for all copies may be gone with its
// leader, and leadership may well move once everything is whole again: then the write is made anew.
func (v *Visitor) WriteAndRead(bound time.Duration) string {
	env, p := v.c.env, v.c.partition
	end := env.Now() + bound
	position, written := int64(-1), false
	for {
		if !written || v.c.cfg.Acks != -1 {
			if wrote, err := v.Write(); err == nil && wrote.Outcome == kafka.Applied {
				written, position = true, wrote.Offset
			}
		}
		if written {
			if position < 0 { // acknowledged without a position
				position = max(0, v.End().Offset-1)
			}
			if got := v.ReadAt(position); got.Code == 0 && got.Next > position {
				return ""
			}
		}
		if env.Now() > end || env.Stopped() {
			if !written {
				return fmt.Sprintf("p%d accepts no write", p)
			}
			return fmt.Sprintf("p%d does not give back what it acknowledged at offset %d", p, position)
		}
		env.Sleep(lookAgain)
	}
}

// Drain reads the partition's log to its end, and then every copy of it, once what is visible is all that there is. It tells how many copies were read to
// their ends and, if that is not all or not settled, why. settled false means that the cluster is known not to be whole: then Drain reads what it can
// reach, for evidence, and does not wait long.
func (v *Visitor) Drain(settled bool) (copies int, reason string) {
	settle, read := SettleBound, readBound
	if !settled {
		settle, read = time.Second, 5*time.Second
	}
	replicas, reason := v.settle(settle)
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
func (v *Visitor) settle(bound time.Duration) (replicas []int32, reason string) {
	env := v.c.env
	end := env.Now() + bound
	for {
		replicas, reason = v.ends(replicas)
		if reason == "" || env.Now() > end || env.Stopped() {
			return replicas, reason
		}
		env.Sleep(lookAgain)
	}
}

// ends compares the ends of all copies with the visible end.
func (v *Visitor) ends(known []int32) (replicas []int32, reason string) {
	visible := v.End()
	if visible.Code != 0 {
		return known, fmt.Sprintf("the leader does not tell the visible end (code %d)", visible.Code)
	}
	view, err := v.View(visible.Node)
	if err != nil {
		return known, fmt.Sprintf("n%d gives no view: %v", visible.Node, err)
	}
	replicas = slices.Sorted(slices.Values(view.Partitions[v.c.partition].Replicas))
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
