package main

var replica = Checker{"broker: replication", []string{"broker/core/partition"}, "^Test[RSW]", []Mutant{
	{"broker/core/partition/leader.go", `hw = min(hw, p.end)`, `hw = max(hw, min(hw, p.end))`, "R1: the high watermark is the leader's log end"},
	{"broker/core/partition/leader.go", `	for _, m := range r.lead.proposal.isr {
		if !slices.Contains(union, m.Broker) {`, `	for _, m := range r.lead.proposal.isr {
		if false {`, "R2: who is to come in does not count yet"},
	{"broker/core/partition/leader.go", `func (r *Replica) advanceHW() {
	if len(r.state.ISR) < r.minISR()`, `func (r *Replica) advanceHW() {
	if false && len(r.state.ISR) < r.minISR()`, "R3: records are committed below min.insync.replicas"},
	{"broker/core/partition/leader.go", `case in.Acks == -1 && len(r.state.ISR) < r.minISR():`, `case in.Acks == -1 && len(r.state.ISR) < r.minISR()-1:`, "R4: one replica too few is enough"},
	{"broker/core/partition/leader.go", `		r.replyProduce(w.token, code, -1)
	}
	for _, d := range r.deletes {`, `		r.replyProduce(w.token, 0, w.base)
	}
	for _, d := range r.deletes {`, "R5: requests that wait are acknowledged when the lead is lost"},
	{"broker/core/partition/read.go", `reply.UpTo == in.Offset {
		r.fetches = append(r.fetches, waitingFetch{in: in})`, `reply.UpTo == in.Offset {
`, "R6: a fetch that waits is not registered"},
	{"broker/core/partition/read.go", `bound := r.hw // R1`, `bound := r.end // R1`, "R1: consumers see what is not committed"},
	{"broker/core/partition/follower.go", `to := max(min(own, in.Diverging.Start), r.start)`, `to := max(in.Diverging.Start, r.start); _ = own`, "R9: a follower cuts where the leader says, whatever its own epochs say"},
	{"broker/core/partition/epochs.go", `end = l.list[i+1].Start
			}`, `end = l.list[i].Start
			}`, "R9: an epoch ends where it began"},
	{"broker/core/partition/read.go", `case asked < r.state.LeaderEpoch:
		return codeFencedLeaderEpoch`, `case asked < r.state.LeaderEpoch:
		return 0`, "R10: who asks in an older epoch is answered"},
	{"broker/core/partition/leader.go", `in.ReplicaEpoch != p.brokerEpoch:
		return`, `in.ReplicaEpoch < 0:
		return`, "R10: fetches of a former incarnation count"},
	{"broker/core/partition/read.go", `e != in.LastFetchedEpoch || off < in.Offset &&`, `e != in.LastFetchedEpoch && off < in.Offset &&`, "R11: a history that went on in an old epoch is not noticed"},
	{"broker/core/partition/read.go", `if follower && in.Offset <= r.next {`, `if false {`, "R11: a follower that is ahead for a moment is told to begin anew"},
	{"broker/core/partition/follower.go", `	r.epochs.dropFrom(to)
	replay`, `	replay`, "R12: the list of epochs is not cut with the log"},
	{"broker/core/partition/leader.go", `	r.checkpoint()
	r.advanceHW() // alone`, `	r.advanceHW() // alone`, "R12: the epoch of a new leader is not recorded"},
	{"broker/core/partition/follower.go", `case b.BaseOffset != next:`, `case b.BaseOffset < next:`, "R13: a follower appends behind a gap"},
	{"broker/core/partition/follower.go", `case b.LeaderEpoch < epoch || b.LeaderEpoch > r.state.LeaderEpoch:`, `case b.LeaderEpoch > r.state.LeaderEpoch:`, "R13: epochs may fall"},
	{"broker/core/partition/leader.go", `p.end >= r.hw && (p.end >= r.lead.epochStart || fault.On(fault.ISRExpandTooEarly)) {`, `p.end >= r.hw || fault.On(fault.ISRExpandTooEarly) {`, "R14: a replica comes in below the start of the epoch"},
	{"broker/core/partition/leader.go", `p.end >= r.hw && (p.end >=`, `p.end >= r.hw-1 && (p.end >=`, "R14: a replica comes in with one committed record less"},
	{"broker/core/partition/leader.go", `.caughtUp) > r.cfg.LagTime`, `.lastFetch) > r.cfg.LagTime`, "R15: who fetches stays in sync, however far behind"},
	{"broker/core/partition/leader.go", `in.Offset >= p.endThen && p.lastFetch.After(p.caughtUp) {`, `false {`, "R15: only who reaches the present end is caught up"},
	{"broker/core/partition/leader.go", `case r.lead.proposal.asked == 1:`, `case true:`, "R16: a refusal forgets a copy that is still under way"},
	{"broker/core/partition/leader.go", `epoch != -1 && p.brokerEpoch != -1 && epoch != p.brokerEpoch`, `epoch < p.brokerEpoch`, "R19: what a former incarnation fetched still counts"},
	{"broker/core/partition/follower.go", `r.hw = max(r.hw, min(r.follow.leaderHW, r.end))
	if in.LogStart`, `r.hw = max(r.hw, r.follow.leaderHW)
	if in.LogStart`, "R21: a follower takes the high watermark before the records"},
	{"broker/core/partition/read.go", `case r.hw < r.lead.epochStart &&`, `case false &&`, "R21: a new leader tells its old high watermark"},
	{"broker/core/partition/replica.go", `r.hw = min(max(cp.HighWatermark, r.start), r.end)`, `r.hw = r.start`, "R22: the high watermark begins at the start after a restart"},
	{"broker/core/partition/leader.go", `case offset < 0 || offset > r.hw:`, `case offset < 0 || offset > r.end:`, "R25: uncommitted records can be deleted"},
	{"broker/core/partition/leader.go", `p.start >= r.start && p.end`, `p.end`, "R25: a replica that has what was deleted comes in"},
	{"broker/core/partition/leader.go", `	for _, id := range r.maximalISR() {
		if p := `, `	for _, id := range r.state.ISR {
		if p := `, "R25: deletion does not wait for a replica that may have come in"},
	{"broker/core/partition/leader.go", ` || len(r.state.ISR) < r.minISR() {
		return
	}
	low`, ` {
		return
	}
	low`, "R25: deletion is answered while replicas outside of the in-sync set are eligible"},
	{"broker/core/partition/follower.go", `			r.reset(b[0].BaseOffset)`, `			return`, "R25: a follower cannot begin in the middle of a batch"},
	{"broker/core/partition/leader.go", `low = min(low, p.start)`, `low = max(low, p.start)`, "R25: deletion is answered before all replicas have deleted"},
	{"broker/core/partition/replica.go", `s.LeaderEpoch < r.state.LeaderEpoch || s.PartitionEpoch < r.state.PartitionEpoch {`, `s.LeaderEpoch < r.state.LeaderEpoch {`, "R26: old news of the in-sync set is taken"},
	{"broker/core/partition/producers.go", `int32((int64(s) + 1) & 0x7fffffff)`, `s + 1`, "R28: sequences do not wrap"},
	{"broker/core/partition/producers.go", `b.First == h.BaseSequence && b.Last == h.LastSequence()`, `b.First == h.BaseSequence`, "R28: another batch with the same first sequence passes for a repeat"},
	{"broker/core/partition/producers.go", `if len(p.Batches) == remembered {`, `if len(p.Batches) == 1 {`, "R28: only the last batch is recognised"},
	{"broker/core/partition/producers.go", `return b.End > to })`, `return b.Base > to })`, "R29: producer state survives the batch that was cut"},
	{"broker/core/partition/producers.go", `case h.ProducerEpoch < p.Epoch:
		return judgement{code: codeInvalidProducerEpoch}
`, ``, "R30: a fenced producer may go on"},
	{"broker/core/partition/replica.go", `	if r.cfg.FlushEach && !fault.On(fault.AckBeforeFsync) {
		return r.flushed
	}
`, ``, "S1: what is not flushed counts"},
}}

var control = Checker{"broker: control plane", []string{"broker/core/controller"}, "^Test(Scripts|Nothing|Long|Any)", []Mutant{
	{"broker/core/controller/alterpartition.go", `case q.PartitionEpoch < p.PartitionEpoch:
		return kerr.InvalidUpdateVersion
`, ``, "R16: an in-sync set is changed without comparing epochs"},
	{"broker/core/controller/alterpartition.go", `case q.LeaderEpoch < p.LeaderEpoch:
		return kerr.FencedLeaderEpoch
`, ``, "R16: a deposed leader may change the in-sync set"},
	{"broker/core/controller/alterpartition.go", `case sender != p.Leader:
		return kerr.InvalidRequest
`, ``, "R16: anybody may change the in-sync set"},
	{"broker/core/controller/alterpartition.go", `m.BrokerEpoch != e.image.Brokers[m.BrokerID].Epoch && !unknown {`, `m.BrokerEpoch > e.image.Brokers[m.BrokerID].Epoch && !unknown {`, "R16: a former incarnation comes into the in-sync set"},
	{"broker/core/controller/alterpartition.go", `if !e.image.Active(m.BrokerID) {
			return kerr.IneligibleReplica
		}
`, ``, "R16: a fenced broker comes into the in-sync set"},
	{"broker/core/controller/alterpartition.go", `lost: none, confirm: true})`, `lost: none})`, "R16: asking for the set as it is does not move the epoch"},
	{"broker/core/controller/elections.go", `p.Leader = first(p.Replicas, inISR)`, `p.Leader = first(p.Replicas, active)`, "R17: anybody who is alive is elected"},
	{"broker/core/controller/elections.go", `p.ISR, p.ELR = []int32{p.Leader}, without(p.ELR, p.Leader)`, `p.ISR = []int32{p.Leader}`, "R18: who is elected from the ELR stays in it"},
	{"broker/core/controller/elections.go", `len(p.ELR) == 0 && l != none && active(l)`, `l != none && active(l)`, "R17: the last known leader is elected although others have more"},
	{"broker/core/controller/elections.go", `if unclean || e.flags`, `if true || e.flags`, "R17: unclean election whatever the configuration"},
	{"broker/core/controller/elections.go", `if had && id != ch.lost && !slices.Contains(next.ISR, id) {`, `if had && !slices.Contains(next.ISR, id) {`, "R18: who stopped uncleanly stays eligible"},
	{"broker/core/controller/elections.go", `if len(next.ISR) >= minISR &&`, `if len(next.ISR) > minISR &&`, "R18: the ELR is not emptied when the in-sync set is just large enough"},
	{"broker/core/controller/elections.go", `		next.LeaderEpoch++
`, ``, "R26: a new leader leads in the old epoch"},
	{"broker/core/controller/brokers.go", `r.Version >= 3 && r.PreviousBrokerEpoch == old.Epoch`, `true`, "R18: every stop passes for a clean one"},
	{"broker/core/controller/brokers.go", `		e.takeOut(r.BrokerID, !clean && e.flags&keepLost == 0)
`, `		_ = clean
`, "R19: a restart leaves a broker in its in-sync sets"},
	{"broker/core/controller/brokers.go", `case b.Fenced && !r.WantFence && !r.WantShutdown && resp.IsCaughtUp:`, `case b.Fenced && !r.WantFence && !r.WantShutdown:`, "R19: a broker is let in before it knows its own registration"},
	{"broker/core/controller/brokers.go", `	case old.Epoch != r.BrokerEpoch:
		resp.ErrorCode = kerr.StaleBrokerEpoch.Code
		return resp
	}
	b := *old`, `	}
	b := *old`, "R19: heartbeats of a former incarnation count"},
	{"broker/core/controller/brokers.go", `		e.image.NextProducerID += block
`, ``, "R30: producer ids are given out twice"},
	{"broker/core/controller/leader.go", `		o.since, o.silent = now, now
	}
	for _, id`, `	}
	for _, id`, "R20: a controller that was stopped itself takes silence for death"},
	{"broker/core/controller/leader.go", `o == nil || o.offset < int64(s.left) {`, `o == nil {`, "a broker shuts down before all others know that it leads nothing"},
}}
