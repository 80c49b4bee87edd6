package harness

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ackproof/histories"
	"ackproof/model"
	"ackproof/systems"
	"ackproof/workloads/log"
)

// The harness itself is put to the test: a run that holds is judged again by a harness with one defect. The answer may be anything but a pass.

const perPartition = 120 // records, one per append

// still is a system of which nothing is asked any more.
type still struct{ systems.System }

func (still) Info() model.SystemInfo { return model.SystemInfo{Name: "still"} }

// judged makes a run of what was recorded and gives its exit code: that of the results, or of the infrastructure that failed.
func judged(t *testing.T, events []histories.Event, facts model.Facts) (exit int, why string) {
	t.Helper()
	dir, err := newRunDir(t.TempDir(), sound(), time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	r := &run{
		Test: Test{Options: sound(), Observer: &silence{}}, dir: dir, system: still{}, counters: log.NewCounters(2), facts: facts, faults: facts.Faults,
		contract: model.LogContract(model.Contract{System: "test", Partitions: 2, Replication: 3, MinISR: 2, Acks: -1, Idempotent: true, Dense: true}),
	}
	for p := range int32(2) {
		r.counters.Ack(p, perPartition)
	}
	var file bytes.Buffer
	out := histories.NewWriter(&file, histories.Header{Run: 1})
	for i := range events {
		_ = out.Write(&events[i]) // the error comes with Flush
	}
	if err := errors.Join(out.Flush(), os.WriteFile(dir.file(historyFile), file.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	j, err := r.judge()
	if err != nil {
		return model.ExitInfrastructure, err.Error()
	}
	r.assemble(j)
	for _, c := range r.results.Claims {
		why += fmt.Sprintf("%s %s (%s); ", c.ID, c.Verdict, c.Reason)
	}
	return r.results.Exit, strings.Join(r.notes, "; ") + why
}

// book writes the history of a run by hand.
type book struct{ events []histories.Event }

func (b *book) add(ev histories.Event) histories.Event {
	ev.Seq = uint64(len(b.events) + 1)
	ev.Time = time.Duration(ev.Seq) * time.Millisecond
	if ev.Op == 0 {
		ev.Op = ev.Seq
	}
	b.events = append(b.events, ev)
	return ev
}

func (b *book) operation(ask, answer histories.Event) {
	op := b.add(ask)
	answer.Type, answer.Kind, answer.Op, answer.Process, answer.Session, answer.Node, answer.Partition = histories.OK, op.Kind, op.Op, op.Process, op.Session, op.Node, op.Partition
	b.add(answer)
}

func (b *book) phase(name string) {
	b.add(histories.Event{Kind: histories.Phase, Type: histories.Info, Note: name})
}

func (b *book) read(kind histories.Kind, p, session, node int32, from int64, count int32) {
	var runs []histories.Run
	if count > 0 {
		runs = []histories.Run{{Offset: from, Producer: p + 1, Sequence: from, Count: count}}
	}
	b.operation(histories.Event{Kind: kind, Process: 20 + p, Session: session, Node: node, Partition: p, Offset: from}, histories.Event{Offset: from, Runs: runs, HighWatermark: -1})
}

// sane is a run in which everything holds and everything was put to the test: two partitions, written, read as they grow, read back from every copy.
func sane() ([]histories.Event, model.Facts) {
	b := &book{}
	b.phase("load")
	for i := range int64(perPartition) {
		for p := range int32(2) {
			b.operation(histories.Event{Kind: histories.Append, Process: p + 1, Partition: p, Runs: []histories.Run{{Producer: p + 1, Sequence: i, Count: 1}}}, histories.Event{Offset: i})
			b.read(histories.Fetch, p, 10+p, 0, i, 1)
			b.operation(histories.Event{Kind: histories.EndOffset, Process: 30 + p, Partition: p}, histories.Event{Offset: i + 1, LeaderEpoch: 1})
		}
	}
	b.phase("heal")
	b.phase("drain")
	for p := range int32(2) {
		b.operation(histories.Event{Kind: histories.EndOffset, Process: 30 + p, Partition: p}, histories.Event{Offset: perPartition, LeaderEpoch: 1})
		for node := range int32(3) {
			b.operation(histories.Event{Kind: histories.CopyEnd, Process: 30 + p, Partition: p, Node: node + 1}, histories.Event{Offset: perPartition, HighWatermark: perPartition})
		}
		b.read(histories.Fetch, p, 20+p, 0, 0, perPartition)
		b.read(histories.Fetch, p, 20+p, 0, perPartition, 0)
		for node := range int32(3) {
			b.read(histories.CopyRead, p, 0, node+1, 0, perPartition)
			b.read(histories.CopyRead, p, 0, node+1, perPartition, 0)
		}
	}
	b.phase(endMark)
	return b.events, model.Facts{
		Faults: []model.FaultResult{{Kind: "kill", Targets: []string{"n1"}, Effective: true}}, LeaderChanges: 2,
		DrainComplete: true, CopiesRead: 6, CopiesWanted: 6, Liveness: model.Recovery{Checked: true, BoundMS: 1000},
	}
}

func TestTheSaneRunHolds(t *testing.T) {
	events, facts := sane()
	if exit, why := judged(t, events, facts); exit != model.ExitHeld {
		t.Fatalf("exit %d: %s", exit, why)
	}
}

// A nemesis that does nothing: it carries out no fault, or only such as have no effect.
func TestMutationANemesisThatDoesNothing(t *testing.T) {
	events, facts := sane()
	for name, faults := range map[string][]model.FaultResult{
		"no fault":       nil,
		"without effect": {{Kind: "kill", Targets: []string{"n1"}, Proof: "still there"}, {Kind: "pause", Targets: []string{"n2"}}},
	} {
		facts.Faults = faults
		if exit, why := judged(t, events, facts); exit != model.ExitUndecided || !strings.Contains(why, "no fault that could break it had an effect") {
			t.Errorf("%s: exit %d: %s", name, exit, why)
		}
	}
}

// A recorder that drops an event, whichever, after it was given its number: the run has failed. One that never gave it a number must at least not hide
// an acknowledgement.
func TestMutationARecorderThatDropsAnEvent(t *testing.T) {
	events, facts := sane()
	// Of the load, which goes on as it begins, the first few.
	for i := range events {
		if i > 20 && i < len(events)-60 {
			continue
		}
		lost := slices.Delete(slices.Clone(events), i, i+1)
		if exit, why := judged(t, lost, facts); exit != model.ExitInfrastructure || !strings.Contains(why, "the recorder has lost") {
			t.Fatalf("without event %d, %v %v: exit %d: %s", i+1, events[i].Type, events[i].Kind, exit, why)
		}
	}

	// The answer to an append, unnumbered: the append is open, which breaks nothing, but the client knows better.
	var last uint64
	for _, ev := range events {
		if ev.Kind == histories.Append && ev.Type == histories.OK {
			last = ev.Seq
		}
	}
	rest := renumbered(events, func(ev histories.Event) bool { return ev.Seq != last })
	if exit, why := judged(t, rest, facts); exit != model.ExitCrash || !strings.Contains(why, "told of 240 acknowledged records, the check knows of 239") {
		t.Errorf("without an acknowledgement: exit %d: %s", exit, why)
	}
}

// renumbered gives the events that pass, as if nothing else had been recorded.
func renumbered(events []histories.Event, keep func(histories.Event) bool) []histories.Event {
	b := &book{}
	numbers := map[uint64]uint64{}
	for _, ev := range events {
		if !keep(ev) {
			continue
		}
		old := ev.Seq
		if ev.Op == old {
			ev.Op = 0
		} else {
			ev.Op = numbers[ev.Op]
		}
		numbers[old] = b.add(ev).Seq
	}
	return b.events
}

// A drain that stops early, and believes that it has reached the end.
func TestMutationADrainThatStopsEarly(t *testing.T) {
	events, facts := sane()
	drain := slices.IndexFunc(events, func(ev histories.Event) bool { return ev.Note == "drain" })
	for name, keep := range map[string]func(histories.Event) bool{
		"nothing is read": func(ev histories.Event) bool { return int(ev.Seq) <= drain+1 || ev.Note == endMark },
		"one partition is not read": func(ev histories.Event) bool {
			return int(ev.Seq) <= drain || ev.Partition == 0
		},
	} {
		if exit, why := judged(t, renumbered(events, keep), facts); exit != model.ExitUndecided {
			t.Errorf("%s: exit %d: %s", name, exit, why)
		}
	}
	half := renumbered(events, func(ev histories.Event) bool {
		return int(ev.Seq) <= drain || !ev.Kind.IsRead() || ev.Offset < perPartition
	})
	for i := range half {
		if ev := &half[i]; i > drain && len(ev.Runs) > 0 {
			ev.Runs = slices.Clone(ev.Runs)
			ev.Runs[0].Count /= 2
		}
	}
	if exit, why := judged(t, half, facts); exit != model.ExitUndecided {
		t.Errorf("half is read: exit %d: %s", exit, why)
	}
	facts.CopiesRead = 5
	if exit, why := judged(t, events, facts); exit != model.ExitUndecided || !strings.Contains(why, "5 of 6 copies") {
		t.Errorf("one copy is not read: exit %d: %s", exit, why)
	}
}

// A checker that skips a partition: as if nothing had been recorded of it.
func TestMutationACheckerThatSkipsAPartition(t *testing.T) {
	events, facts := sane()
	for skipped := range int32(2) {
		rest := renumbered(events, func(ev histories.Event) bool { return !ev.Kind.IsOperation() || ev.Partition != skipped })
		if exit, why := judged(t, rest, facts); exit == model.ExitHeld || exit == model.ExitViolated {
			t.Errorf("p%d is skipped: exit %d: %s", skipped, exit, why)
		}
	}
}

// A part of the harness that died, and one that was not asked.
func TestMutationAPartThatDied(t *testing.T) {
	events, facts := sane()
	broken := facts
	broken.Broken = "the visitor to p1 died: index out of range"
	if exit, why := judged(t, events, broken); exit != model.ExitUndecided || !strings.Contains(why, "the visitor to p1 died") {
		t.Errorf("a death: exit %d: %s", exit, why)
	}
	unwatched := facts
	unwatched.Liveness = model.Recovery{}
	if exit, why := judged(t, events, unwatched); exit != model.ExitUndecided {
		t.Errorf("a heal that does not look: exit %d: %s", exit, why)
	}
	incomplete := facts
	incomplete.DrainComplete, incomplete.DrainReason = false, "p1 has no leader"
	if exit, why := judged(t, events, incomplete); exit == model.ExitViolated {
		t.Errorf("an incomplete drain: exit %d: %s", exit, why)
	}
}
