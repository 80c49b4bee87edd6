package campaign

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"ackproof/model"
	"ackproof/sim"
)

// Story tells a violated run as a numbered list: the faults, the turns of the partition that they led to, and the operations of the proof, in the order of
// time, and at the end what is wrong. It is meant for short schedules.
func Story(r *sim.Result) string {
	proof := smallest(r)
	partition := int32(-1)
	if proof != nil {
		partition = proof.Partition
	}
	type line struct {
		at   time.Duration
		what string
	}
	var lines []line
	for _, t := range r.Turns {
		if t.Partition < 0 || partition < 0 || t.Partition == partition {
			lines = append(lines, line{t.At, t.What})
		}
	}
	if proof != nil {
		for _, op := range proof.Operations {
			at := time.Duration(op.Ended)
			if op.Ended < 0 {
				at = time.Duration(op.Invoked)
			}
			lines = append(lines, line{at, fmt.Sprintf("%s: %s", op.Role, op.Text)})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	if last := lastProof(proof); last > 0 { // what came after the proof was complete is the healing
		lines = slices.DeleteFunc(lines, func(l line) bool { return l.at > last })
	}
	var b strings.Builder
	for i, l := range lines {
		fmt.Fprintf(&b, "%3d. %8.3f s  %s\n", i+1, l.at.Seconds(), l.what)
	}
	for _, text := range r.Broken {
		fmt.Fprintf(&b, "     inside: %s\n", text)
	}
	if proof != nil {
		fmt.Fprintf(&b, "     %s, %s: %s\n", proof.Claim, proof.Anomaly, proof.Sentence)
	}
	return b.String()
}

// smallest is the proof with the fewest operations.
func smallest(r *sim.Result) *model.Certificate {
	var best *model.Certificate
	for _, c := range r.Answer.Claims {
		for _, a := range c.Anomalies {
			if a.Proof != nil && (best == nil || len(a.Proof.Operations) < len(best.Operations)) {
				best = a.Proof
			}
		}
	}
	return best
}

func lastProof(c *model.Certificate) (last time.Duration) {
	if c == nil {
		return 0
	}
	for _, op := range c.Operations {
		last = max(last, time.Duration(max(op.Ended, op.Invoked)))
	}
	return last
}
