package partition

import (
	"fmt"

	"ackproof/broker/fault"
	"ackproof/broker/record"
)

// following is what a follower keeps for one epoch.
type following struct {
	leaderHW int64
}

// becomeFollower begins to follow. Nothing is cut yet: the first fetch carries the epoch of the last record, and the leader answers where the
// histories part (R8, R11).
func (r *Replica) becomeFollower() {
	r.follow = following{leaderHW: -1}
	if fault.On(fault.TruncateToHW) && r.hw < r.next {
		r.truncate(r.hw)
	}
}

// FollowState is what the next fetch from the leader asks. ok is false if there is nothing to ask now: the replica does not follow, or a storage effect is
// under way, without which it may not claim an offset (R1).
func (r *Replica) FollowState() (FollowState, bool) {
	if r.role != Follower || r.cutting > 0 || r.counted() != r.next {
		return FollowState{}, false
	}
	last := r.epochs.last(r.next)
	if r.follow.leaderHW >= 0 && fault.On(fault.EpochEndWithoutEpoch) {
		last = noEpoch // B07: what was cut once is not looked at again
	}
	return FollowState{
		Leader: r.state.Leader, LeaderEpoch: r.state.LeaderEpoch, Offset: r.next,
		LastFetchedEpoch: last, LogStart: r.start, HighWatermark: r.hw,
	}, true
}

// fetched takes the leader's answer.
func (r *Replica) fetched(in Fetched) {
	if r.role != Follower || in.LeaderEpoch != r.state.LeaderEpoch || in.Offset != r.next || r.cutting > 0 {
		return // an answer to a question of another time
	}
	switch {
	case in.Code == codeOffsetOutOfRange:
		// R25: the leader's log begins above our end. (An end above the leader's is answered by a diverging epoch.) The whole log, epoch list and producer state go.
		if in.LogStart >= 0 {
			r.reset(in.LogStart)
		}
	case in.Code != 0:
		// The shell backs off and asks again.
	case in.Diverging != nil:
		// R11: cut to where both histories still agree; the next fetch asks with the epoch that is then the last one (R9, KIP-279).
		_, own := r.epochs.endOf(in.Diverging.Epoch, r.next)
		if fault.On(fault.EpochEndWithoutEpoch) { // B07: the offset alone decides, whatever the epoch that ends there
			r.follow.leaderHW = in.HighWatermark
			if own = r.next; in.Diverging.Start >= r.next {
				return
			}
		}
		to := max(min(own, in.Diverging.Start), r.start)
		if to >= r.next {
			r.fail(fmt.Errorf("R11: the leader of epoch %d answers a diverging epoch %d that ends at %d, but offset %d with epoch %d does not contradict it",
				in.LeaderEpoch, in.Diverging.Epoch, in.Diverging.Start, in.Offset, r.epochs.last(r.next)))
			return
		}
		r.truncate(to)
	default:
		if b := in.Batches; len(b) > 0 && r.start == r.next && b[0].BaseOffset < r.next && r.next < b[0].NextOffset() {
			r.reset(b[0].BaseOffset) // R25: the leader's log begins within this batch, and ours with it; the records below are deleted with the next answer
		}
		if err := r.follows(in.Batches); err != nil {
			r.fail(err)
			return
		}
		r.take(in)
	}
}

// follows checks that the batches continue this log exactly: offsets, order of epochs; the checksum has been checked by whoever made the Batch (R13, S8).
func (r *Replica) follows(batches []record.Batch) error {
	next, epoch := r.next, r.epochs.last(r.next)
	for _, b := range batches {
		switch {
		case b.BaseOffset != next:
			return fmt.Errorf("R13: the leader sent a batch at offset %d, expected %d", b.BaseOffset, next)
		case b.LeaderEpoch < epoch || b.LeaderEpoch > r.state.LeaderEpoch:
			return fmt.Errorf("R13: the leader of epoch %d sent a batch of epoch %d at offset %d, after one of epoch %d", r.state.LeaderEpoch, b.LeaderEpoch, next, epoch)
		}
		next, epoch = b.NextOffset(), b.LeaderEpoch
	}
	return nil
}

func (r *Replica) take(in Fetched) {
	for _, b := range in.Batches {
		r.epochs.appended(b.LeaderEpoch, b.BaseOffset)
		if !fault.On(fault.ProducerStateLeaderOnly) {
			r.producers.update(b.Header) // R29
		}
		r.next = b.NextOffset()
	}
	if len(in.Batches) > 0 {
		r.emit(Append{Batches: in.Batches})
		if r.cfg.FlushEach {
			r.emit(Flush{})
		}
	}
	// R21: the leader's watermark is news of what was committed a moment ago. It is kept until the records are here.
	r.follow.leaderHW = max(r.follow.leaderHW, in.HighWatermark)
	r.hw = max(r.hw, min(r.follow.leaderHW, r.end))
	if in.LogStart > r.start && in.LogStart <= r.hw && !fault.On(fault.StartOffsetNotDurable) {
		r.raiseStart(in.LogStart) // R25
	}
	r.wakeReady()
}

// truncate cuts the log at `to`, and everything that moves with it in one effect (R8, R12, R29, S6).
func (r *Replica) truncate(to int64) {
	r.epochs.dropFrom(to)
	replay := !fault.On(fault.ProducerStateNotCut) && r.producers.truncate(to)
	r.replaying = r.replaying || replay
	r.next, r.end, r.flushed, r.hw = to, min(r.end, to), min(r.flushed, to), min(r.hw, to)
	r.cutting++
	r.emit(Truncate{To: to, Checkpoint: r.Checkpoint(), Replay: replay})
	r.savedHW = r.hw
}

// reset begins the log anew at start.
func (r *Replica) reset(start int64) {
	r.epochs, r.producers, r.replaying = epochList{}, producerTable{}, false
	r.start, r.hw, r.end, r.next, r.flushed = start, start, start, start, start
	r.cutting++
	r.emit(Reset{Start: start, Checkpoint: r.Checkpoint()})
	r.savedHW = r.hw
}
