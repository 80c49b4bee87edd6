package campaign

import (
	"fmt"
	"strings"
	"time"

	"ackproof/model"
	"ackproof/sim"
)

// Describe tells one result to people: configuration, faults, claims.
func Describe(r *sim.Result, took time.Duration) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	c := r.Case
	line("result", "%s", strings.ToUpper(string(r.Verdict())))
	line("seed", "%d", c.Seed)
	line("cluster", "%d nodes, %d partitions, replication %d, min.insync.replicas %d, store %s", c.Nodes, c.Partitions, c.Replication, c.MinISR, c.Store)
	line("load", "acks %s, idempotent %t, unclean election %t, flush before ack %t, %d records/s for %v", acks(c.Acks), c.Idempotent, c.Unclean, c.FlushEach, c.Rate, c.Load())
	if g := c.Groups; g != nil {
		line("groups", "%v, %d members each (%d static), session %d ms, commit before processing %t, storm %t; internal topic of %d partitions, compacted after %d bytes",
			g.Protocols, g.Members, g.Static, g.SessionMS, g.Before, g.Storm, g.Partitions, g.CompactBytes)
	}
	line("world", "%d events, %v virtual in %v; event log %016x, history %s", r.Events, r.Virtual.Round(time.Millisecond), took.Round(time.Millisecond), r.Hash, r.HistoryHash())
	line("work", "%d records acknowledged, %d leader changes", r.Answer.Records.Acked, r.Facts.LeaderChanges)
	for _, f := range r.Faults {
		effect := "no effect"
		if f.Effective {
			effect = "effective"
		}
		line("fault", "%.3f-%.3f s %s of %s (%s), %s: %s", float64(f.FromMS)/1000, float64(f.ToMS)/1000, f.Kind, strings.Join(f.Targets, " "), f.Role, effect, f.Proof)
	}
	for _, claim := range r.Answer.Claims {
		text := string(claim.Verdict)
		if claim.Reason != "" {
			text += ": " + claim.Reason
		}
		line("claim", "%-18s %s", claim.ID, text)
		for _, p := range claim.Permitted {
			line("", "%-18s permitted: %d %s because of %s", "", p.Count, p.Kind, p.Because)
		}
		for _, a := range claim.Anomalies {
			line("", "%-18s %d %s", "", a.Count, a.Kind)
			if a.Proof != nil {
				line("", "%-18s %s", "", a.Proof.Sentence)
			}
		}
	}
	for _, text := range r.Facts.Notes {
		line("note", "%s", text)
	}
	for _, text := range r.Broken {
		line("inside", "%s", text)
	}
	if r.Sighting != "" {
		line("sighting", "%s", r.Sighting)
	}
	if r.Verdict() == model.Violated {
		line("", "the same seed gives the same run")
	}
	return b.String()
}

func acks(n int) string {
	if n == -1 {
		return "all"
	}
	return fmt.Sprint(n)
}
