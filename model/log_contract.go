package model

import "fmt"

// LogContract completes a contract whose configuration is filled in with the promises of a replicated log in Kafka's terms, each with the
// anomalies that this configuration permits. The faults in view are crashes, pauses and network partitions of nodes whose disks keep what
// was written; no configuration permits what these cannot cause in a broker that follows the replication rules:
//
//   - acks=0: nothing was acknowledged; whatever is called an ack is the client's own belief.
//   - acks=1: the leader alone has the record. At any change of leader it may be gone and its offset given away. Reads end at the high
//     watermark, so no reader can have seen it: acknowledgements may disagree with the log, reads may not, and no read is dirty.
//   - unclean election: a replica that lacks committed records may lead. Then acknowledged and read records may go, ends may fall, and
//     offsets may be filled anew. Copies must still agree in the end: divergence is never permitted (R8–R13, R17).
//   - min.insync.replicas=1: the last in-sync replica alone may acknowledge; with clean elections nobody else may lead, so that process faults
//     make the partition unavailable and lose nothing.
//   - idempotence off: a retry may double a record, and a late attempt may overtake. Idempotence needs acks=all.
//   - loss of power or of a disk: what was not flushed is gone from that copy. In-sync copies that were spared keep it, whatever the flush mode; but when every copy
//     lost its power or its disk, or was itself restarted or out of the in-sync set before one of the others was whole again, then records may be gone, read or
//     not, and their offsets be given away. Only where the faults did that (PowerLoss) is it permitted.
func LogContract(c Contract) Contract {
	c.Promises = []Promise{
		{Claim: NoLoss, Text: lossText(c)},
		{Claim: AtLeastOnce, Text: "Whoever reads a partition from its start to its end is given every acknowledged record that the log holds."},
		{Claim: SessionReads, Text: "Within one assignment a reader only moves forward."},
		{Claim: Order, Text: "Records of one producer session to one partition keep their order."},
		{Claim: RealTimeOrder, Text: "A record that was acknowledged or read before another was sent has the lower offset, while both are in the log."},
		{Claim: OffsetAgreement, Text: offsetText(c)},
		{Claim: NoPhantom, Text: "Only what was written to the topic is read, unaltered, and never before it was sent or after it was refused."},
		{Claim: NoDirtyRead, Text: "What was read stays in the log."},
		{Claim: NoDuplicate, Text: duplicateText(c)},
		{Claim: VisibleEnd, Text: "The visible end and the start of a partition never go back, as far as answers of the same or a newer leader tell."},
		{Claim: Liveness, Text: fmt.Sprintf("Within %d ms after healing every partition has a leader and a full in-sync set, accepts writes and can be read to its end.", c.LivenessBoundMS)},
	}
	for i := range c.Promises {
		c.Promises[i].Permits = c.permits(c.Promises[i].Claim)
	}
	return c
}

// Validate tells whether the configuration makes sense.
func (c Contract) Validate() error {
	switch {
	case c.Acks < -1 || c.Acks > 1:
		return fmt.Errorf("contract: acks=%d, expected 0, 1 or −1 (all)", c.Acks)
	case c.Partitions < 1:
		return fmt.Errorf("contract: %d partitions, expected at least 1", c.Partitions)
	case c.Replication < 1:
		return fmt.Errorf("contract: replication %d, expected at least 1", c.Replication)
	case c.MinISR < 1 || c.MinISR > c.Replication:
		return fmt.Errorf("contract: min.insync.replicas=%d, expected 1 to the replication factor %d", c.MinISR, c.Replication)
	}
	return nil
}

const powerCause = "power or disks were lost while no other copy was whole"

const uncleanCause = "unclean.leader.election.enable=true"

// MayForget tells whether committed records, read ones too, may go and their offsets be filled anew.
func (c Contract) MayForget() bool { return c.Unclean || c.PowerLoss }

// Outlived tells whether what permits the loss of a record was over before the event with that number, at which the sending of the record began.
func (c Contract) Outlived(because string, begun uint64) bool {
	return because == powerCause && c.PowerLossUntil > 0 && begun > c.PowerLossUntil
}

// weakAcks is the cause that lets acknowledged records go with a leader, "" if there is none.
func (c Contract) weakAcks() string {
	if c.Acks >= 0 {
		return fmt.Sprintf("acks=%d", c.Acks)
	}
	return ""
}

// deduplicates tells whether retries are recognised: idempotence needs acks=all.
func (c Contract) deduplicates() bool { return c.Idempotent && c.Acks == -1 }

func (c Contract) permits(claim Claim) map[Anomaly]string {
	because := make(map[Anomaly]string)
	permit := func(cause string, anomalies ...Anomaly) {
		for _, a := range anomalies {
			if _, known := because[a]; cause != "" && !known {
				because[a] = cause
			}
		}
	}
	unclean, retries, power := "", "", ""
	if c.Unclean {
		unclean = uncleanCause
	}
	if c.PowerLoss {
		power = powerCause
	}
	if !c.deduplicates() {
		retries = "idempotence off"
	}
	switch claim {
	case NoLoss:
		permit(c.weakAcks(), LostAcked)
		permit(unclean, LostAcked)
		permit(power, LostAcked)
	case AtLeastOnce:
		// A reader that was past the point to which the log was cut does not see what came to stand before its position.
		permit(unclean, Undelivered, PollSkip)
		permit(power, Undelivered, PollSkip)
	case Order:
		permit(retries, Reordered)
	case RealTimeOrder:
		permit(unclean, ReorderedRealtime)
		permit(power, ReorderedRealtime)
	case OffsetAgreement:
		permit(unclean, InconsistentOffset)
		permit(power, InconsistentOffset)
		permit(c.weakAcks(), InconsistentOffset)
	case NoDirtyRead:
		permit(unclean, DirtyRead)
		permit(power, DirtyRead)
	case NoDuplicate:
		permit(retries, Duplicate)
		permit(power, Duplicate) // the memory of a producer's sequence numbers may be gone with its batches
	case VisibleEnd:
		// Whoever leads may not have heard of a deletion either.
		permit(unclean, StaleEndOffset, StartAboveHW, StartOffsetBackwards)
		permit(power, StaleEndOffset, StartAboveHW, StartOffsetBackwards)
	case Liveness:
		permit(power, UnavailableAfterHeal) // a copy that knows that it is incomplete refuses to lead, which is better than to forget
	}
	if len(because) == 0 {
		return nil
	}
	return because
}

// Promise finds the promise of a claim.
func (c Contract) Promise(claim Claim) (Promise, bool) {
	for _, p := range c.Promises {
		if p.Claim == claim {
			return p, true
		}
	}
	return Promise{}, false
}

// Permitted gives the cause for which an anomaly under a claim is permitted, "" if it is a violation. seen tells that readers saw both sides
// of it: two reads that disagree are permitted by nothing that only weakens acknowledgements.
func (c Contract) Permitted(claim Claim, a Anomaly, seen bool) string {
	p, _ := c.Promise(claim)
	because := p.Permits[a]
	if a == InconsistentOffset && seen && !c.Unclean && because != powerCause {
		return ""
	}
	return because
}

func lossText(c Contract) string {
	switch {
	case c.Acks == 0:
		return "Nothing is promised: with acks=0 nothing is acknowledged."
	case c.Acks == 1:
		return "An acknowledged record is kept while its leader leads; a change of leader may lose it (acks=1)."
	case c.Unclean:
		return "An acknowledged record is kept unless a replica without it is elected (unclean election is on)."
	case c.MinISR == 1:
		return "An acknowledged record is never lost by crashes, pauses or partitions, as long as the disk of the last in-sync replica lives (min.insync.replicas=1)."
	case !c.FlushEach:
		return "An acknowledged record is never lost by crashes, pauses or partitions of nodes; the loss of power on all replicas at once is not covered (no flush before the ack)."
	}
	return "An acknowledged record is never lost, by crashes, pauses, partitions or the loss of power."
}

func offsetText(c Contract) string {
	if c.weakAcks() != "" && !c.Unclean {
		return "One offset, one record, for all who read and on every replica; an acknowledged record may lose its offset to another (" + c.weakAcks() + ")."
	}
	return "One offset, one record, for ever, for everyone, on every replica."
}

func duplicateText(c Contract) string {
	if c.deduplicates() {
		return "A record of an idempotent producer appears once."
	}
	return "A record may appear more than once (idempotence off)."
}
