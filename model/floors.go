package model

import (
	"fmt"
	"slices"
	"strings"
)

// Floor is the least that a run must have shown before a claim without a violation counts as held. Zero fields ask for nothing.
type Floor struct {
	Evidence      map[string]int64 // least counts, by the names that the claim's result uses
	Faults        []string         // kinds of faults of which at least one must have had an effect
	LeaderChanges int              // not asked for where a partition has one copy only
}

// Floors are the floors of all claims. A claim that is not among them never counts as held, unless there are none at all: then nothing is asked for.
type Floors map[Claim]Floor

// anyFault are the kinds that take a node away from the others for a while.
var anyFault = []string{"kill", "pause", "partition", "power-loss", "disk-wipe", "bit-flip", "truncate", "machine-death", "link-clog", "memory", "crash-at-call", "error-at-call"}

// faultOrStorm is anyFault, and a storm that consumer groups make by themselves.
var faultOrStorm = append([]string{RebalanceStorm}, anyFault...)

// TestFloors are the floors of a test. They are deliberately low for a run of half a minute: they catch runs in which nothing
// happened, they do not measure confidence.
//
// no-loss, no-phantom and no-duplicate are those of logs and sets; those of queues are in TestQueueFloors.
//
//	claim              evidence                                   faults  leader changes
func TestFloors() Floors {
	return Floors{
		NoLoss:          {counts("acked", 100, "read_back", 100), anyFault, 1},
		AtLeastOnce:     {counts("acked", 100, "readers", 1), anyFault, 0},
		SessionReads:    {counts("reads", 20, "records", 100), anyFault, 0},
		Order:           {counts("records", 100), anyFault, 0},
		RealTimeOrder:   {counts("appends", 100, "offsets", 100), anyFault, 1},
		OffsetAgreement: {counts("acked", 100, "compared", 100), anyFault, 1},
		NoPhantom:       {counts("records", 100), anyFault, 0},
		NoDirtyRead:     {counts("read_early", 100), anyFault, 1},
		NoDuplicate:     {counts("records", 100), anyFault, 0},
		VisibleEnd:      {counts("answers", 20), anyFault, 1},
		ReadAfterAck:    {counts("appends", 100, "reads", 20), anyFault, 1},
		Liveness:        {nil, faultOrStorm, 0},
		CommitSafety:    {counts("commits", 20, "reads", 5), anyFault, 1},
		GroupDelivery:   {counts("assignments", 2, "commits", 5, "delivered", 100), faultOrStorm, 0},
		Lease:           {counts("receives", 100), anyFault, 1},
		FIFO:            {counts("acked", 100, "dequeued", 100), anyFault, 1},
		DedupWindow:     {counts("identified", 20), anyFault, 1},
		Atomicity:       {counts("transactions", 20, "read_back", 20), anyFault, 1},
		Serializability: {counts("transactions", 20, "reads", 20), anyFault, 1},
		Linearizable:    {counts("operations", 100, "telling", 20), anyFault, 1},
	}
}

// TestQueueFloors are TestFloors where no-loss, no-phantom and no-duplicate are claims of a queue.
func TestQueueFloors() Floors {
	f := TestFloors()
	f[NoLoss] = Floor{counts("acked", 100, "received", 100), anyFault, 1}
	f[NoPhantom] = Floor{counts("received", 100), anyFault, 0}
	f[NoDuplicate] = Floor{counts("received", 100), anyFault, 0}
	return f
}

// HistoryFloors are the floors for a history of which nothing else is known: only something must have been there to look at.
func HistoryFloors() Floors {
	return Floors{
		NoLoss:          {Evidence: counts("acked", 1, "read_back", 1)},
		AtLeastOnce:     {Evidence: counts("acked", 1, "readers", 1)},
		SessionReads:    {Evidence: counts("reads", 1)},
		Order:           {Evidence: counts("records", 1)},
		RealTimeOrder:   {Evidence: counts("offsets", 1)},
		OffsetAgreement: {Evidence: counts("compared", 1)},
		NoPhantom:       {Evidence: counts("records", 1)},
		NoDirtyRead:     {Evidence: counts("read_early", 1)},
		NoDuplicate:     {Evidence: counts("records", 1)},
		VisibleEnd:      {Evidence: counts("answers", 2)},
		ReadAfterAck:    {Evidence: counts("reads", 1)},
		Liveness:        {},
	}
}

func counts(pairs ...any) map[string]int64 {
	m := make(map[string]int64, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = int64(pairs[i+1].(int))
	}
	return m
}

// Missing says what the run lacks to put the claim to the test, "" if nothing.
func (f Floors) Missing(claim Claim, evidence map[string]int64, c Contract, facts Facts) string {
	floor, known := f[claim]
	if !known && len(f) > 0 {
		return "nothing says how much evidence the claim needs"
	}
	var lacks []string
	names := make([]string, 0, len(floor.Evidence))
	for name := range floor.Evidence {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if least := floor.Evidence[name]; evidence[name] < least {
			lacks = append(lacks, fmt.Sprintf("%s %d of at least %d", name, evidence[name], least))
		}
	}
	if len(floor.Faults) > 0 && !slices.ContainsFunc(facts.Faults, func(r FaultResult) bool { return r.Effective && slices.Contains(floor.Faults, r.Kind) }) {
		lacks = append(lacks, "no fault that could break it had an effect (wanted one of "+strings.Join(floor.Faults, ", ")+")")
	}
	if c.Replication > 1 && facts.LeaderChanges < floor.LeaderChanges {
		lacks = append(lacks, fmt.Sprintf("leader changes %d of at least %d", facts.LeaderChanges, floor.LeaderChanges))
	}
	return strings.Join(lacks, "; ")
}
