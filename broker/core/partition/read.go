package partition

import (
	"ackproof/broker/fault"
	"ackproof/broker/record"
	"ackproof/broker/storage"
)

func one(b record.Batch) []record.Batch { return []record.Batch{b} }

// waitingFetch is a registered fetch. It is registered in the step that found nothing, so that no wake-up falls between (R6).
type waitingFetch struct {
	in   Fetch
	told bool // that there is News
}

// Kafka's special timestamps of ListOffsets.
const (
	earliest      int64 = -2
	earliestLocal int64 = -4
)

// checkEpoch compares the epoch that a request takes for the current one with the real one, both ways (R10, KIP-320).
func (r *Replica) checkEpoch(asked int32) int16 {
	switch {
	case asked == noEpoch || asked == r.state.LeaderEpoch:
		return 0
	case asked < r.state.LeaderEpoch:
		return codeFencedLeaderEpoch
	default:
		return codeUnknownLeaderEpoch
	}
}

// readable says whether this replica answers reads of the asker at all.
func (r *Replica) readable(needLeader bool, epoch int32) int16 {
	switch {
	case r.role == Failed:
		return codeStorageError
	case r.role == Idle, needLeader && r.role != Leader:
		return codeNotLeader
	}
	return r.checkEpoch(epoch)
}

func (r *Replica) fetch(in Fetch) {
	follower := in.Replica >= 0
	reply := FetchReply{Token: in.Token, Offset: in.Offset, UpTo: in.Offset, HighWatermark: -1, LogStart: -1, Leader: noLeader, LeaderEpoch: noEpoch}
	reply.Code = r.readable(follower || in.LeaderOnly, in.LeaderEpoch)
	if reply.Code == 0 && follower && r.lead.progress[in.Replica] == nil {
		reply.Code = codeNotLeader // not a replica of this partition: its metadata are old
	}
	if reply.Code != 0 {
		if reply.Code == codeNotLeader || reply.Code == codeFencedLeaderEpoch {
			reply.Leader, reply.LeaderEpoch = r.state.Leader, r.state.LeaderEpoch // KIP-951, R27: never older than what the asker knows
		}
		r.emit(reply)
		return
	}
	reply.HighWatermark, reply.LogStart = r.hw, r.start

	end := r.end
	bound := r.hw // R1: consumers see what is committed
	if follower || (r.role == Leader && fault.On(fault.FetchAboveHW)) {
		bound = end
	}
	if in.LastFetchedEpoch != noEpoch && in.Offset >= r.start {
		// R11: where the asker's history leaves this one, it is told so and given no data; its offset counts for nothing.
		if e, off := r.epochs.endOf(in.LastFetchedEpoch, end); e == noEpoch {
			reply.Code = codeOffsetOutOfRange // the histories differ from the first record on
			r.emit(reply)
			return
		} else if e != in.LastFetchedEpoch || off < in.Offset && !(off == in.Offset-1 && fault.On(fault.DivergenceOffByOne)) {
			reply.Diverging = &storage.EpochStart{Epoch: e, Start: off}
			if follower && fault.On(fault.DivergingFetchCounts) {
				r.followerFetched(in)
			}
			r.emit(reply)
			return
		}
	}
	if follower && in.Offset <= r.next {
		// A follower of the former leader may be ahead of our own log by what is still on its way there. It holds the same records, or it had been told of
		// a divergence above; out of range would have it throw its log away.
		end = max(end, in.Offset)
	}
	if in.Offset < r.start || in.Offset > end {
		reply.Code = codeOffsetOutOfRange
		if r.role == Follower && in.Offset > end {
			reply.Code = codeOffsetNotAvailable // KIP-392: the leader may have it
		}
		r.emit(reply)
		return
	}
	if follower {
		r.followerFetched(in)
		p := r.lead.progress[in.Replica]
		known := p.toldHW
		if in.KnownHW >= 0 {
			known = in.KnownHW
		}
		reply.HighWatermark = r.hw // the fetch itself may have moved it
		later := r.hw > known && in.Patient
		news := r.hw > known && !in.Patient || r.start > p.toldStart
		reply.UpTo = end
		if in.Wait && in.Offset == end && !news {
			r.fetches = append(r.fetches, waitingFetch{in, later})
			reply.Registered = true
		}
		switch {
		case reply.Registered && later:
			p.toldHW = known
		case in.Wait, reply.UpTo > in.Offset:
			p.toldHW, p.toldStart = r.hw, r.start // an empty answer without Wait may not be sent at all
		}
		r.emit(reply)
		if reply.Registered && later {
			r.emit(News{in.Token})
		}
		return
	}
	// R21: between high watermark and log end there is nothing to see yet, which is no error.
	reply.UpTo = max(in.Offset, bound)
	if in.Wait && reply.UpTo == in.Offset {
		r.fetches = append(r.fetches, waitingFetch{in: in})
		reply.Registered = true
	}
	r.emit(reply)
}

// wakeReady wakes the fetches that may find something now, and tells patient followers of a newer high watermark.
func (r *Replica) wakeReady() {
	if len(r.fetches) == 0 {
		return
	}
	stay := r.fetches[:0]
	for _, w := range r.fetches {
		ready := w.in.Offset < r.start
		if w.in.Replica >= 0 {
			p := r.lead.progress[w.in.Replica]
			ready = ready || p == nil || r.end > w.in.Offset || r.start > p.toldStart
			if !ready && r.hw > p.toldHW {
				ready = !w.in.Patient
				if w.in.Patient && !w.told {
					w.told = true
					r.emit(News{w.in.Token})
				}
			}
		} else {
			ready = ready || r.hw > w.in.Offset || (r.end > w.in.Offset && fault.On(fault.FetchAboveHW))
		}
		if ready {
			r.emit(Wake{w.in.Token})
		} else {
			stay = append(stay, w)
		}
	}
	clear(r.fetches[len(stay):])
	r.fetches = stay
}

// wakeAll wakes every registered fetch: the role has changed.
func (r *Replica) wakeAll() {
	for _, w := range r.fetches {
		r.emit(Wake{w.in.Token})
	}
	r.fetches = nil
}

func (r *Replica) listOffsets(in ListOffsets) {
	reply := OffsetReply{Token: in.Token, Offset: -1, LeaderEpoch: noEpoch}
	local := in.Replica == -2 // a debugging consumer asks this very copy, leader or not
	reply.Code = r.readable(!local, in.LeaderEpoch)
	if reply.Code == 0 {
		reply.LeaderEpoch = r.state.LeaderEpoch
		switch {
		case in.Timestamp == earliest || in.Timestamp == earliestLocal:
			reply.Offset = r.start
		case local || in.Replica >= 0:
			reply.Offset = r.end
		case r.hw < r.lead.epochStart && !fault.On(fault.EndOffsetBackwards) && !(fault.On(fault.HWResetOnRestart) && r.hw == r.start):
			// R21, KIP-207: a new leader does not know yet what its predecessor committed.
			reply.Code, reply.LeaderEpoch = codeOffsetNotAvailable, noEpoch
		default:
			reply.Offset = r.hw
		}
	}
	r.emit(reply)
}

func (r *Replica) epochEnd(in EpochEnd) {
	reply := EpochEndReply{Token: in.Token, Epoch: noEpoch, EndOffset: -1}
	reply.Code = r.readable(true, in.LeaderEpoch)
	if reply.Code == 0 && in.Epoch >= 0 && in.Epoch <= r.state.LeaderEpoch {
		if e, end := r.epochs.endOf(in.Epoch, r.end); e != noEpoch {
			reply.Epoch, reply.EndOffset = e, end
		}
	}
	r.emit(reply)
}
