package fault

import "slices"

// World says where a bug can be met.
type World uint8

// The worlds.
const (
	Sim   World = 1 << iota // the simulator
	Real                    // processes, sockets and files
	Store                   // the store alone, crashed at every change of its disk (sim/crash)
	Both  = Sim | Real
)

// String is "sim", "real", "both" or "store".
func (w World) String() string {
	switch w {
	case Sim:
		return "sim"
	case Real:
		return "real"
	case Both:
		return "both"
	case Store:
		return "store"
	}
	return "nowhere"
}

// Entry is what the catalogue says of a bug.
type Entry struct {
	Bug
	Breaks    []string // rules: "R1"
	Anomalies []string // what the harness may report of it, as model.Anomaly spells it; the usual one first
	World     World
	Needs     Needs
}

// Needs is what a run has to have for the bug to show. The zero value: replication 3, min.insync.replicas 2, acks=all, no flush before the ack, and kills,
// pauses and partitions, which is the default of `ackproof test`.
type Needs struct {
	MinISR     int      // min.insync.replicas, 0: any
	Flush      bool     // the mode that flushes before the ack
	Idempotent bool     // producers are idempotent
	InFlight   bool     // several batches of one producer are in flight
	Faults     []string // kinds of faults beyond kill, pause and partition: power, wipe, disk, slow
	Admin      []string // requests of an administrator: delete-records, recreate-topic, transfer-leader
	Groups     bool     // consumer groups are at work
	Polls      bool     // end or start offsets are asked for while the faults go on
}

// Catalogue is every bug of this broker, in the order of the ids. It is the one place that says what a bug breaks, how that shows and where.
func Catalogue() []Entry {
	return []Entry{
		{Bug: AckBeforeISR, Breaks: list("R1", "R4"), Anomalies: lost, World: Both},
		{Bug: MinISRAtAppendOnly, Breaks: list("R3", "R4"), Anomalies: lost, World: Both},
		{Bug: ISRExpandTooEarly, Breaks: list("R14"), Anomalies: lost, World: Both},
		{Bug: ISRWidenAckGap, Breaks: list("R2"), Anomalies: lost, World: Both, Needs: Needs{Faults: list("slow")}},
		{Bug: UncleanElection, Breaks: list("R17"), Anomalies: lost, World: Both},
		{Bug: TruncateToHW, Breaks: list("R8", "R11"), Anomalies: lost, World: Both},
		{Bug: EpochEndWithoutEpoch, Breaks: list("R9", "R11"), Anomalies: diverged, World: Both},
		{Bug: DivergingFetchCounts, Breaks: list("R10", "R11"), Anomalies: lost, World: Both},
		{Bug: FetchAboveHW, Breaks: list("R1"), Anomalies: dirty, World: Both},
		{Bug: HWResetOnRestart, Breaks: list("R21", "R22"), Anomalies: list("stale-end-offset", "unavailable-after-heal"), World: Both, Needs: Needs{Polls: true}},
		{Bug: EndOffsetBackwards, Breaks: list("R21"), Anomalies: list("stale-end-offset"), World: Both, Needs: Needs{Polls: true}},
		{Bug: AckBeforeFsync, Breaks: list("S1"), Anomalies: lost, World: Both, Needs: Needs{Flush: true, Faults: list("power")}},
		{Bug: SwallowWriteError, Breaks: list("S3", "S4"), Anomalies: lost, World: Both, Needs: Needs{Faults: list("disk")}},
		{Bug: TornTailAccepted, Breaks: list("R23", "S2"), Anomalies: list("corrupt-value", "phantom", "unavailable-after-heal"), World: Store, Needs: Needs{Faults: list("power")}},
		{Bug: DamageIsCut, Breaks: list("R23", "S2"), Anomalies: lost, World: Store, Needs: Needs{Faults: list("disk")}},
		{Bug: RestartedStaysInSync, Breaks: list("R19", "R18"), Anomalies: lost, World: Both, Needs: Needs{Faults: list("wipe")}},
		{Bug: VoteNotDurable, Breaks: list("R26"), Anomalies: list("lost-acked", "inconsistent-offset", "unavailable-after-heal"), World: Both, Needs: Needs{Faults: list("slow")}},
		{Bug: ProducerStateLostOnRoll, Breaks: list("R29"), Anomalies: list("duplicate", "reordered"), World: Both, Needs: Needs{Idempotent: true}},
		{Bug: ProducerStateLeaderOnly, Breaks: list("R29"), Anomalies: list("duplicate", "reordered"), World: Both, Needs: Needs{Idempotent: true}},
		{Bug: DedupeBeforeAppend, Breaks: list("R28", "R29"), Anomalies: lost, World: Both, Needs: Needs{Idempotent: true}},
		{Bug: SequenceGapAccepted, Breaks: list("R28"), Anomalies: list("reordered", "duplicate"), World: Both, Needs: Needs{Idempotent: true, InFlight: true}},
		{Bug: CommitBeforeReplicated, Breaks: list("R41"), Anomalies: list("committed-offset-regression"), World: Both, Needs: Needs{Groups: true}},
		{Bug: CommitWithoutFence, Breaks: list("R38"), Anomalies: list("double-owner", "zombie-commit", "committed-offset-regression"), World: Both, Needs: Needs{Groups: true}},
		{Bug: ServeBeforeLoaded, Breaks: list("R41"), Anomalies: list("group-skip", "committed-offset-regression"), World: Both, Needs: Needs{Groups: true}},
		{Bug: DoubleAssignment, Breaks: list("R42"), Anomalies: list("double-owner", "zombie-commit"), World: Both, Needs: Needs{Groups: true}},
		{Bug: StartOffsetNotDurable, Breaks: list("R25"), Anomalies: list("start-offset-backwards"), World: Both, Needs: Needs{Admin: list("delete-records"), Polls: true}},
		{Bug: RecreateReusesLog, Breaks: list("R24"), Anomalies: list("foreign-record", "inconsistent-offset", "lost-acked"), World: Both, Needs: Needs{Admin: list("recreate-topic")}},
		{Bug: AckOnDemotion, Breaks: list("R5"), Anomalies: lost, World: Both},
		{Bug: UncleanStopStaysEligible, Breaks: list("R18"), Anomalies: lost, World: Both, Needs: Needs{Faults: list("power")}},
		{Bug: DivergenceOffByOne, Breaks: list("R11"), Anomalies: diverged, World: Both},
		{Bug: RepeatOfAnotherBatch, Breaks: list("R28"), Anomalies: list("inconsistent-offset", "lost-acked"), World: Both, Needs: Needs{Idempotent: true, InFlight: true}},
		{Bug: AckOnTimeout, Breaks: list("R4"), Anomalies: lost, World: Both},
		{Bug: ISRShrinkAtOnce, Breaks: list("R2", "R20"), Anomalies: lost, World: Both},
		{Bug: HWByMinISR, Breaks: list("R1"), Anomalies: lost, World: Both},
		{Bug: FollowersTakenForCaughtUp, Breaks: list("R10", "R14"), Anomalies: lost, World: Both},
		{Bug: ProducerStateNotCut, Breaks: list("R29"), Anomalies: lost, World: Both, Needs: Needs{Idempotent: true}},
		{Bug: EpochStartsAtHW, Breaks: list("R12", "R8"), Anomalies: list("unavailable-after-heal", "lost-acked"), World: Both},
		{Bug: ELRNotEmptied, Breaks: list("R18"), Anomalies: lost, World: Both},
		{Bug: FlushErrorForgotten, Breaks: list("S3", "S4"), Anomalies: lost, World: Sim, Needs: Needs{Flush: true, Faults: list("disk", "power")}},
		{Bug: MarkerTooEarly, Breaks: list("R23", "S1"), Anomalies: lost, World: Store, Needs: Needs{Faults: list("power")}},
		{Bug: NamesNotFlushed, Breaks: list("S5", "S1"), Anomalies: lost, World: Store, Needs: Needs{Faults: list("power")}},
		{Bug: CutInTwoSteps, Breaks: list("S6"), Anomalies: lost, World: Store, Needs: Needs{Faults: list("power")}},
	}
}

// How the bugs show most often. Which of the names comes first in a run depends on what the clients read before the loss.
var (
	lost     = list("lost-acked", "inconsistent-offset", "dirty-read", "stale-end-offset", "replica-divergence")
	dirty    = list("dirty-read", "inconsistent-offset", "future-read")
	diverged = list("inconsistent-offset", "replica-divergence", "dirty-read", "lost-acked", "duplicate", "unavailable-after-heal")
)

func list(s ...string) []string { return s }

// All lists every bug of this broker, in the order of the ids.
func All() []Bug {
	var out []Bug
	for _, p := range Catalogue() {
		out = append(out, p.Bug)
	}
	return out
}

// Find returns the bug with that id or name.
func Find(idOrName string) (Bug, bool) {
	all := All()
	i := slices.IndexFunc(all, func(b Bug) bool { return b.ID == idOrName || b.Name == idOrName })
	if i < 0 {
		return Bug{}, false
	}
	return all[i], true
}
