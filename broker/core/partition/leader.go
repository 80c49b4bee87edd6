package partition

import (
	"fmt"
	"slices"
	"time"

	"ackproof/broker/fault"
)

// leadership is what a leader keeps for one epoch.
type leadership struct {
	epochStart int64 // log end when this epoch began
	progress   map[int32]*progress
	proposal   *proposal
	notBefore  time.Time        // no new proposal before: the last one was refused
	local      []waitingProduce // acks=1: until the batch is in this log
	quorum     []waitingProduce // acks=all: until the high watermark has passed it
}

// refusalPause keeps a leader from asking at every fetch for a member that the controller does not take yet.
const refusalPause = 100 * time.Millisecond

// progress is one follower, as its fetches show it.
type progress struct {
	brokerEpoch int64
	end         int64 // it has fetched at this offset, so it holds everything below; −1: not yet in this epoch (R10)
	start       int64 // its log start, −1 unknown
	toldHW      int64 // the high watermark that it was last given
	toldStart   int64
	caughtUp    time.Time // when it last held everything that there was (R15)
	lastFetch   time.Time
	endThen     int64 // the leader's log end at lastFetch
}

// proposal is an ISR that the controller has been asked for and has not decided.
type proposal struct {
	isr   []Member  // with the registrations under which the leader saw them: a retry must not vouch for a later one (KIP-903)
	asked int       // requests sent
	at    time.Time // the last one
}

type waitingProduce struct {
	token    Token
	base     int64
	end      int64
	deadline time.Time
}

type waitingDelete struct {
	token    Token
	offset   int64
	deadline time.Time
}

// becomeLeader begins an epoch at the log end. R12: the epoch is recorded, durably, also if nothing is ever written in it; storage effects
// keep their order, so the record stands before the first batch of the epoch does.
func (r *Replica) becomeLeader() {
	r.lead = leadership{epochStart: r.next, progress: map[int32]*progress{}}
	began := r.next
	if fault.On(fault.EpochStartsAtHW) {
		began = r.hw
	}
	if !r.epochs.assign(r.state.LeaderEpoch, began) {
		r.fail(fmt.Errorf("R12: elected for epoch %d, but the log holds records of epoch %d", r.state.LeaderEpoch, r.epochs.last(r.next)))
		return
	}
	for _, id := range r.state.Replicas {
		if id != r.cfg.Self {
			r.lead.progress[id] = r.newProgress(id)
			if fault.On(fault.FollowersTakenForCaughtUp) {
				r.lead.progress[id].end = r.next
			}
		}
	}
	r.checkpoint()
	r.advanceHW() // alone in the ISR there is nobody to wait for
}

// brokerEpoch is the registration of an unfenced broker, −1 if it has none.
func (r *Replica) brokerEpoch(id int32) int64 {
	if epoch, ok := r.state.BrokerEpochs[id]; ok {
		return epoch
	}
	return -1
}

func (r *Replica) newProgress(id int32) *progress {
	// Everybody gets one full lag time from the beginning of the epoch on.
	return &progress{brokerEpoch: r.brokerEpoch(id), end: -1, start: -1, toldHW: -1, toldStart: -1, caughtUp: r.now}
}

// stateOfEpochChanged: same leader epoch, other ISR, broker epochs or configuration.
func (r *Replica) stateOfEpochChanged(newSet bool) {
	for _, id := range r.state.Replicas {
		if id == r.cfg.Self {
			continue
		}
		p, epoch := r.lead.progress[id], r.brokerEpoch(id)
		// R19: after a restart nothing that the former incarnation fetched counts any more.
		if p == nil || (epoch != -1 && p.brokerEpoch != -1 && epoch != p.brokerEpoch) {
			r.lead.progress[id] = r.newProgress(id)
		} else if epoch != -1 {
			p.brokerEpoch = epoch
		}
	}
	if newSet {
		r.lead.proposal = nil // decided, one way or the other (R16)
	}
	r.advanceHW()
	r.answerDeletes()
}

// resign ends the epoch: every waiting request fails, whatever the high watermark becomes later (R5).
func (r *Replica) resign(code int16) {
	for _, w := range append(r.lead.local, r.lead.quorum...) {
		if code == codeNotLeader && fault.On(fault.AckOnDemotion) {
			r.replyProduce(w.token, 0, w.base)
			continue
		}
		r.replyProduce(w.token, code, -1)
	}
	for _, d := range r.deletes {
		r.emit(DeleteReply{Token: d.token, Code: code, LowWatermark: -1})
	}
	r.lead, r.deletes = leadership{}, nil
}

// minISR is how many replicas must be in sync for a record to be committed.
func (r *Replica) minISR() int { return max(1, r.state.MinISR) }

func (r *Replica) produce(in Produce) {
	b := in.Batch
	switch {
	case r.role == Failed:
		r.replyProduce(in.Token, codeStorageError, -1)
		return
	case r.role != Leader, r.cutting > 0: // producer state is not known before the cut is done
		r.replyProduce(in.Token, codeNotLeader, -1)
		return
	case b.Length > r.state.MaxBytes && r.state.MaxBytes > 0:
		r.replyProduce(in.Token, codeMessageTooLarge, -1)
		return
	case b.Count < 1, b.LastOffsetDelta != b.Count-1, b.Control(), b.Transactional():
		r.replyProduce(in.Token, codeInvalidRecord, -1)
		return
	case in.Acks == -1 && len(r.state.ISR) < r.minISR(): // R4, first half
		if fault.On(fault.DedupeBeforeAppend) && r.producers.judge(b.Header) == (judgement{}) {
			b.Assign(r.next, r.state.LeaderEpoch)
			r.producers.update(b.Header) // B20: registered, and then refused
		}
		r.replyProduce(in.Token, codeNotEnoughReplicas, -1)
		return
	}
	verdict := r.producers.judge(b.Header) // R28, R30
	if verdict.code != 0 {
		r.replyProduce(in.Token, verdict.code, -1)
		return
	}
	w := waitingProduce{token: in.Token, deadline: in.Deadline}
	if d := verdict.duplicate; d != nil {
		// A repeat gets the answer of the original, and so waits for what the original waits for.
		w.base, w.end = d.Base, d.End
	} else {
		b.Assign(r.next, r.state.LeaderEpoch)
		w.base, w.end = b.BaseOffset, b.NextOffset()
		r.next = w.end
		r.producers.update(b.Header)
		r.emit(Append{Batches: one(b), Keep: true})
		if r.cfg.FlushEach {
			r.emit(Flush{})
		}
	}
	switch {
	case in.Acks == 0:
		r.replyProduce(in.Token, 0, w.base)
	case in.Acks == 1, fault.On(fault.AckBeforeISR):
		r.lead.local = append(r.lead.local, w)
		r.answerLocal()
	case w.end <= r.hw: // a repeat that is committed already
		r.replyProduce(in.Token, 0, w.base)
	default:
		r.lead.quorum = append(r.lead.quorum, w)
	}
}

func (r *Replica) replyProduce(t Token, code int16, base int64) {
	reply := ProduceReply{Token: t, Code: code, BaseOffset: base, LogStart: r.start, Leader: noLeader, LeaderEpoch: noEpoch}
	if code == codeNotLeader {
		reply.Leader, reply.LeaderEpoch = r.state.Leader, r.state.LeaderEpoch
	}
	r.emit(reply)
}

// answerLocal answers acks=1 for what this log holds (S1: where a flush is promised, holds durably). Requests are in order of their offsets
// but for repeats, which lie below the end or behind the original.
func (r *Replica) answerLocal() {
	r.lead.local = answer(r.lead.local, r.counted(), func(w waitingProduce) { r.replyProduce(w.token, 0, w.base) })
}

// answerQuorum answers acks=all for what is committed. R4, second half: the size of the ISR is checked again.
func (r *Replica) answerQuorum() {
	r.lead.quorum = answer(r.lead.quorum, r.hw, func(w waitingProduce) {
		if len(r.state.ISR) < r.minISR() && !fault.On(fault.MinISRAtAppendOnly) {
			r.replyProduce(w.token, codeNotEnoughAfterAppend, -1)
			return
		}
		r.replyProduce(w.token, 0, w.base)
	})
}

// answer calls reply for the requests at the head of the queue that end at or below the offset, and gives the rest.
func answer(queue []waitingProduce, below int64, reply func(waitingProduce)) []waitingProduce {
	n := 0
	for n < len(queue) && queue[n].end <= below {
		reply(queue[n])
		n++
	}
	return slices.Delete(queue, 0, n)
}

// advanceHW is the commit rule: the high watermark is the smallest log end over the in-sync set (R1). While a change of the set is in flight both
// sets count (R2): an expansion at once, a shrink only after the controller's answer. Below min.insync.replicas nothing is committed (R3).
func (r *Replica) advanceHW() {
	if len(r.state.ISR) < r.minISR() && !fault.On(fault.MinISRAtAppendOnly) {
		return
	}
	hw := r.counted()
	for _, id := range r.maximalISR() {
		if id == r.cfg.Self {
			continue
		}
		p := r.lead.progress[id]
		if p == nil {
			return
		}
		hw = min(hw, p.end)
	}
	if fault.On(fault.HWByMinISR) {
		hw = r.heldByMinISR()
	}
	if hw > r.hw {
		r.hw = hw
		r.answerQuorum()
		r.wakeReady()
	}
}

// heldByMinISR is B37: the offset below which min.insync.replicas of the set have everything, the others be they where they are.
func (r *Replica) heldByMinISR() int64 {
	ends := []int64{r.counted()}
	for _, id := range r.state.ISR {
		if p := r.lead.progress[id]; p != nil {
			ends = append(ends, min(p.end, r.counted()))
		}
	}
	slices.Sort(ends)
	return ends[max(0, len(ends)-r.minISR())]
}

// maximalISR is the committed set with what has been proposed to come in (R2).
func (r *Replica) maximalISR() []int32 {
	if r.lead.proposal == nil || fault.On(fault.ISRWidenAckGap) {
		return r.state.ISR
	}
	union := slices.Clone(r.state.ISR)
	if fault.On(fault.ISRShrinkAtOnce) && len(r.lead.proposal.isr) < len(union) {
		union = nil // B36: who is proposed to leave does not count any more
	}
	for _, m := range r.lead.proposal.isr {
		if !slices.Contains(union, m.Broker) {
			union = append(union, m.Broker)
		}
	}
	return union
}

// followerFetched notes what a follower's fetch proves: it holds everything below the offset that it asks from.
func (r *Replica) followerFetched(in Fetch) {
	p := r.lead.progress[in.Replica]
	switch {
	case p.brokerEpoch == -1:
		p.brokerEpoch = in.ReplicaEpoch // not registered yet, as far as is known here: what it proves, it proves for that incarnation only
	case in.ReplicaEpoch != -1 && in.ReplicaEpoch != p.brokerEpoch:
		return // of another incarnation than the registered one (R10, KIP-903)
	}
	// R15: caught up now if it asks from the end; caught up at its last fetch if it has since fetched all that there was then.
	if in.Offset >= r.end {
		p.caughtUp = r.now
	} else if in.Offset >= p.endThen && p.lastFetch.After(p.caughtUp) {
		p.caughtUp = p.lastFetch
	}
	p.lastFetch, p.endThen = r.now, r.end
	p.end, p.start = in.Offset, in.LogStart // also if it is less than before: it says what it holds now
	r.advanceHW()
	r.answerDeletes()

	// R14: it comes in when it holds everything committed and everything before this epoch, by a fetch in this epoch; and nothing that was deleted (R25).
	if !slices.Contains(r.state.ISR, in.Replica) && r.lead.proposal == nil && !r.now.Before(r.lead.notBefore) && r.registered(in.Replica, in.ReplicaEpoch) &&
		p.start >= r.start && p.end >= r.hw && (p.end >= r.lead.epochStart || fault.On(fault.ISRExpandTooEarly)) {
		r.propose(append(r.members(r.state.ISR), Member{in.Replica, p.brokerEpoch}))
	}
}

// registered tells whether the broker is unfenced under this very registration (R16, R19).
func (r *Replica) registered(id int32, epoch int64) bool {
	known, ok := r.state.BrokerEpochs[id]
	return ok && (epoch == -1 || epoch == known)
}

// propose asks the controller for another ISR.
func (r *Replica) propose(isr []Member) {
	r.lead.proposal = &proposal{isr: isr}
	r.ask()
}

// members gives replicas of the current set with their registrations.
func (r *Replica) members(ids []int32) []Member {
	out := make([]Member, len(ids))
	for i, id := range ids {
		out[i] = Member{id, r.brokerEpoch(id)}
	}
	return out
}

// ask sends the proposal, again if it must be: the controller compares the partition epoch, so that it takes effect at most once (R16).
func (r *Replica) ask() {
	p := r.lead.proposal
	p.asked++
	p.at = r.now
	r.emit(AlterISR{LeaderEpoch: r.state.LeaderEpoch, PartitionEpoch: r.state.PartitionEpoch, ISR: slices.Clone(p.isr)})
}

func (r *Replica) isrAnswer(in ISRAnswer) {
	if r.role != Leader || r.lead.proposal == nil || in.LeaderEpoch != r.state.LeaderEpoch {
		return
	}
	switch {
	case in.Code == 0 && in.PartitionEpoch > r.state.PartitionEpoch:
		r.state.PartitionEpoch, r.state.ISR = in.PartitionEpoch, slices.Clone(in.ISR)
		r.stateOfEpochChanged(true)
	case in.Code == 0, in.Code == codeInvalidUpdateVersion, in.Code == codeFencedLeaderEpoch:
		// Decided already, or void: the metadata log brings the outcome.
	case r.lead.proposal.asked == 1:
		r.lead.proposal, r.lead.notBefore = nil, r.now.Add(refusalPause) // refused, and no copy of the request is under way
	default:
		// Refused, but an earlier copy may still arrive and be accepted: its members go on counting (R2) until the partition epoch has
		// moved. Asking for the set as it is moves it.
		r.confirm()
	}
}

// confirm asks for the current set while the proposal goes on counting.
func (r *Replica) confirm() {
	p := r.lead.proposal
	held := p.isr
	p.isr = r.members(r.state.ISR)
	r.ask()
	p.isr = held
}

// leaderTick: time-outs, shrinking the ISR, asking again.
func (r *Replica) leaderTick() {
	late := func(w waitingProduce) bool { return !r.now.Before(w.deadline) }
	for _, queue := range []*[]waitingProduce{&r.lead.local, &r.lead.quorum} {
		*queue = slices.DeleteFunc(*queue, func(w waitingProduce) bool {
			if late(w) && fault.On(fault.AckOnTimeout) {
				r.replyProduce(w.token, 0, w.base)
			} else if late(w) {
				r.replyProduce(w.token, codeRequestTimedOut, -1)
			}
			return late(w)
		})
	}
	r.deletes = slices.DeleteFunc(r.deletes, func(d waitingDelete) bool {
		late := !r.now.Before(d.deadline)
		if late {
			r.emit(DeleteReply{Token: d.token, Code: codeRequestTimedOut, LowWatermark: -1})
		}
		return late
	})

	if p := r.lead.proposal; p != nil {
		if r.now.Sub(p.at) >= r.cfg.LagTime/2 {
			r.ask() // R20: without an answer the set stays as it is, and whoever left it silently holds up the high watermark
		}
		return
	}
	// R15: whoever has not been caught up for the lag time leaves.
	stay := slices.DeleteFunc(slices.Clone(r.state.ISR), func(id int32) bool {
		return id != r.cfg.Self && r.now.Sub(r.lead.progress[id].caughtUp) > r.cfg.LagTime
	})
	if len(stay) < len(r.state.ISR) {
		r.propose(r.members(stay))
	}
}

func (r *Replica) deleteRecords(in DeleteRecords) {
	offset := in.Offset
	if offset == -1 {
		offset = r.hw
	}
	switch {
	case r.role == Failed:
		r.emit(DeleteReply{Token: in.Token, Code: codeStorageError, LowWatermark: -1})
	case r.role != Leader:
		r.emit(DeleteReply{Token: in.Token, Code: codeNotLeader, LowWatermark: -1})
	case offset < 0 || offset > r.hw: // R25: what is not committed is not deleted
		r.emit(DeleteReply{Token: in.Token, Code: codeOffsetOutOfRange, LowWatermark: -1})
	default:
		r.deletes = append(r.deletes, waitingDelete{in.Token, offset, in.Deadline})
		if offset > r.start {
			r.raiseStart(offset)
			r.wakeReady()
		} else {
			r.answerDeletes()
		}
	}
}

// raiseStart moves the log start up, durably (R25).
func (r *Replica) raiseStart(start int64) {
	r.start = start
	r.epochs.trim(start)
	r.cutting++
	r.emit(Trim{r.Checkpoint()})
}

// answerDeletes answers DeleteRecords once the log start has moved on everybody who may lead next: on the in-sync replicas, those that may have come in
// without our knowledge included (R2), and not while the set is so small that others are eligible (R18, as R3).
func (r *Replica) answerDeletes() {
	if len(r.deletes) == 0 || r.cutting > 0 || len(r.state.ISR) < r.minISR() {
		return
	}
	low := r.start
	for _, id := range r.maximalISR() {
		if p := r.lead.progress[id]; p != nil && !fault.On(fault.StartOffsetNotDurable) {
			low = min(low, p.start)
		}
	}
	r.deletes = slices.DeleteFunc(r.deletes, func(d waitingDelete) bool {
		done := d.offset <= low
		if done {
			r.emit(DeleteReply{Token: d.token, LowWatermark: low})
		}
		return done
	})
}
