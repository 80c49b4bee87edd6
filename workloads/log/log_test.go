package log

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/histories"
	"ackproof/workloads/kafka"
)

// everyNth does something to each nth produce request.
func everyNth(n int, fault fakeFault) func(string, kmsg.Request) fakeFault {
	count := 0
	return func(_ string, req kmsg.Request) fakeFault {
		if _, ok := req.(*kmsg.ProduceRequest); ok {
			if count++; count%n == 0 {
				return fault
			}
		}
		return fakeFault{}
	}
}

func TestIdempotentWritesWhoseAnswerIsLostAreSettledByARetry(t *testing.T) {
	w := newWorld(t, nil)
	w.broker.fault = everyNth(3, fakeFault{lose: true})
	w.work("writer", 2*time.Second)
	ops := w.history()
	var records int64
	for _, op := range ops {
		if op.end.Type != histories.OK {
			t.Fatalf("operation %d ended as %v, expected ok: the retry finds it in the log", op.invoke.Op, op.end.Type)
		}
		records += int64(op.invoke.Runs[0].Count)
	}
	if len(ops) < 50 || records != w.broker.end {
		t.Fatalf("%d writes of %d records, the log holds %d: expected the same, from many writes", len(ops), records, w.broker.end)
	}
	if w.counters.Acked(0) != records {
		t.Fatalf("%d records counted, expected %d", w.counters.Acked(0), records)
	}
}

func TestPlainWritesWhoseAnswerIsLostAreUnknownAndEndTheProducer(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Idempotent = false })
	w.broker.fault = everyNth(5, fakeFault{lose: true})
	w.work("writer", 2*time.Second)
	gone := map[int32]bool{}
	unknown := 0
	for _, op := range w.history() {
		if gone[op.invoke.Process] {
			t.Fatalf("process %d went on after it had left an operation open", op.invoke.Process)
		}
		if op.invoke.Runs[0].Producer != op.invoke.Process {
			t.Fatalf("process %d writes as producer %d, expected its own number", op.invoke.Process, op.invoke.Runs[0].Producer)
		}
		if op.end.Type == histories.Info {
			unknown++
			gone[op.invoke.Process] = true
			if op.end.Code != histories.NoAnswer {
				t.Fatalf("code %d, expected that of a lost answer", op.end.Code)
			}
		}
	}
	if unknown < 5 {
		t.Fatalf("%d unknown writes, expected one in five", unknown)
	}
}

func TestRefusedWritesFailAndTheirValuesAreNotUsedAgain(t *testing.T) {
	w := newWorld(t, nil)
	w.broker.fault = everyNth(4, fakeFault{code: 19})
	w.work("writer", 2*time.Second)
	next := int64(0)
	failed := 0
	for _, op := range w.history() {
		if op.invoke.Runs[0].Sequence != next {
			t.Fatalf("values begin at %d, expected %d", op.invoke.Runs[0].Sequence, next)
		}
		next += int64(op.invoke.Runs[0].Count)
		if op.end.Type == histories.Fail {
			failed++
		}
	}
	if failed == 0 {
		t.Fatal("no write failed")
	}
}

func TestWritesThatCannotBeSentFail(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Idempotent = false })
	w.broker.fault = func(node string, req kmsg.Request) fakeFault {
		return fakeFault{refuse: req == nil && node == "n1"} // the leader
	}
	w.work("writer", time.Second)
	ops := w.history()
	if len(ops) == 0 {
		t.Fatal("no write was tried")
	}
	for _, op := range ops {
		if op.end.Type != histories.Fail || op.end.Code != kafka.NoRoute {
			t.Fatalf("a write that was never sent ended as %v with code %d", op.end.Type, op.end.Code)
		}
	}
}

func TestARefusalAfterALostAttemptIsUnknown(t *testing.T) {
	w := newWorld(t, nil)
	tries := 0
	w.broker.fault = func(_ string, req kmsg.Request) fakeFault {
		if _, ok := req.(*kmsg.ProduceRequest); !ok {
			return fakeFault{}
		}
		if tries++; tries == 1 {
			return fakeFault{lose: true}
		}
		return fakeFault{code: 19}
	}
	w.work("writer", 100*time.Millisecond)
	if first := w.history()[0]; first.end.Type != histories.Info {
		t.Fatalf("the first write ended as %v, expected info: its first attempt may be in the log", first.end.Type)
	}
}

func TestATailReaderReadsAllAndRecordsEmptyReads(t *testing.T) {
	w := newWorld(t, nil)
	w.work("writer", time.Second)
	w.work("tail reader", time.Second)
	position, empty := int64(0), 0
	for _, op := range w.history() {
		if op.invoke.Kind != histories.Fetch {
			continue
		}
		if op.invoke.Offset != position || op.end.Offset != position {
			t.Fatalf("a read asks from %d, expected %d", op.invoke.Offset, position)
		}
		if op.end.HighWatermark != w.broker.end {
			t.Fatalf("high watermark %d, expected %d", op.end.HighWatermark, w.broker.end)
		}
		for _, r := range op.end.Runs {
			if r.Offset != position || r.Defect != histories.Sound {
				t.Fatalf("run %+v, expected sound records from offset %d on", r, position)
			}
			position += int64(r.Count)
		}
		if len(op.end.Runs) == 0 {
			empty++
		}
	}
	if position != w.broker.end || empty == 0 {
		t.Fatalf("read up to %d with %d empty reads, expected %d and some", position, empty, w.broker.end)
	}
}

func TestAFollowersWatermarkIsNoVisibleEnd(t *testing.T) {
	w := newWorld(t, nil)
	w.work("writer", 200*time.Millisecond)
	w.work("follower reader", 8*time.Second)
	nodes := map[int32]bool{}
	for _, op := range w.history() {
		if op.invoke.Kind == histories.Fetch {
			nodes[op.end.Node] = true
			if op.end.HighWatermark != -1 {
				t.Fatalf("high watermark %d of a follower is recorded, expected −1", op.end.HighWatermark)
			}
		}
	}
	if len(nodes) != 3 {
		t.Fatalf("copies on %v were read, expected all three", nodes)
	}
}

func TestAReaderOutOfRangeBeginsAnewUnderANewAssignment(t *testing.T) {
	w := newWorld(t, nil)
	w.work("writer", 300*time.Millisecond)
	w.work("tail reader", 300*time.Millisecond)
	w.broker.trim = 1
	before := w.workload.session.Load()
	env := w.env(10 * time.Second)
	c := &client{Workload: w.workload, env: env, process: w.workload.NewProcess(), links: map[int32]string{1: "n1"}}
	c.open(true)
	c.readFrom(0, w.broker.end, func(int64, bool) bool { return !env.Stopped() })
	var sessions []int32
	restarted := false
	for _, op := range w.history() {
		if op.invoke.Process != c.process {
			continue
		}
		if len(sessions) == 0 || sessions[len(sessions)-1] != op.invoke.Session {
			sessions = append(sessions, op.invoke.Session)
			restarted = restarted || len(sessions) > 1 && op.invoke.Offset == 0
		}
		if op.end.Type == histories.Fail && op.end.Code != 1 {
			t.Fatalf("code %d, expected OFFSET_OUT_OF_RANGE", op.end.Code)
		}
	}
	if !restarted || sessions[0] <= before {
		t.Fatalf("sessions %v, expected a second one that begins at 0", sessions)
	}
}

func TestPollersAskForBothEnds(t *testing.T) {
	w := newWorld(t, nil)
	w.work("writer", 200*time.Millisecond)
	w.work("poller", 3*time.Second)
	asked := map[histories.Kind]int{}
	for _, op := range w.history() {
		asked[op.invoke.Kind]++
		switch op.invoke.Kind {
		case histories.EndOffset:
			if op.end.Offset != w.broker.end || op.end.LeaderEpoch != 4 {
				t.Fatalf("end %d in epoch %d, expected %d in 4", op.end.Offset, op.end.LeaderEpoch, w.broker.end)
			}
		case histories.StartOffset:
			if op.end.Offset != 0 || op.end.LeaderEpoch != 4 {
				t.Fatalf("start %d in epoch %d, expected 0 in 4, the epoch that was asked", op.end.Offset, op.end.LeaderEpoch)
			}
		}
	}
	if asked[histories.EndOffset] < 30 || asked[histories.StartOffset] < 3 {
		t.Fatalf("asked %v, expected some thirty ends a second and a few starts", asked)
	}
}

// A deposed leader must not be held against an answer to a deletion, of which nobody knows in which epoch it was given.
func TestADeletionIsOfNoEpochAndTheStartIsAskedForAtOnce(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Deletes = true })
	w.work("writer", 200*time.Millisecond)
	w.work("poller", 300*time.Millisecond)
	w.work("deleter", 10*time.Second)
	deletions, last := 0, histories.Event{Note: "none"}
	for _, op := range w.history() {
		switch {
		case op.invoke.Kind != histories.StartOffset:
			continue
		case op.invoke.Note == "delete-records":
			if deletions++; op.end.Type != histories.OK || op.end.LeaderEpoch != -1 {
				t.Fatalf("the deletion ends as %v in epoch %d, expected ok in none", op.end.Type, op.end.LeaderEpoch)
			}
			if last.Note == "delete-records" {
				t.Fatal("two deletions in a row")
			}
		case op.end.LeaderEpoch != 4 || op.end.Offset != last.Offset:
			t.Fatalf("start %d in epoch %d, expected %d in 4", op.end.Offset, op.end.LeaderEpoch, last.Offset)
		}
		last = op.end
	}
	if deletions < 2 {
		t.Fatalf("%d deletions", deletions)
	}
}

func TestNobodyBeginsAnythingInABreath(t *testing.T) {
	breaths := Breaths{Seed: 3, Period: 500 * time.Millisecond, Length: 100 * time.Millisecond}
	w := newWorld(t, func(c *Config) { c.Breaths = breaths })
	w.work("writer", 3*time.Second)
	w.work("tail reader", 3*time.Second)
	w.work("poller", 3*time.Second)
	for _, op := range w.history() {
		reader := op.invoke.Kind != histories.Append
		if breaths.rest(0, reader, op.invoke.Time) > 0 {
			t.Fatalf("%v begins at %v, in a breath", op.invoke.Kind, op.invoke.Time)
		}
	}
	if w.clock < 9*time.Second {
		t.Fatalf("the clients worked for %v only", w.clock)
	}
}

func TestBreathsComeOncePerPeriodAndDifferBetweenPartitions(t *testing.T) {
	b := Breaths{Seed: 9, Period: time.Second, Length: 100 * time.Millisecond}
	begins := map[int32]time.Duration{}
	for p := range int32(4) {
		rested := 0
		for now := time.Duration(0); now < 10*time.Second; now += time.Millisecond {
			if b.rest(p, false, now) > 0 {
				if rested++; rested == 1 {
					begins[p] = now
				}
			}
		}
		if rested < 950 || rested > 1050 {
			t.Errorf("p%d rests for %d ms of 10 s, expected about 1000", p, rested)
		}
	}
	if begins[0] == begins[1] && begins[1] == begins[2] {
		t.Error("all partitions rest at the same time")
	}
}

func TestTheDrainReadsUpToAnEmptyReadAndEveryCopy(t *testing.T) {
	w := newWorld(t, nil)
	w.work("writer", 500*time.Millisecond)
	v := w.workload.Visit(w.env(time.Hour), 0, map[int32]string{1: "n1", 2: "n2", 3: "n3"})
	if wrote, err := v.Write(); err != nil || wrote.Outcome != kafka.Applied {
		t.Fatalf("write: %+v, %v", wrote, err)
	}
	if got := v.ReadAll(time.Second); got.Code != 0 || got.Next != w.broker.end {
		t.Fatalf("read %+v, expected up to %d", got, w.broker.end)
	}
	for node := int32(1); node <= 3; node++ {
		if got := v.Copy(node, w.broker.end, time.Second); got.Code != 0 || got.Next != w.broker.end {
			t.Fatalf("copy %d: %+v, expected up to %d", node, got, w.broker.end)
		}
	}
	// An end that the copy cannot give is not reached, and that is said.
	if got := v.Copy(2, w.broker.end+5, time.Second); got.Code == 0 {
		t.Fatal("a copy that is too short passed for complete")
	}
	last := map[histories.Kind]operation{}
	copies := 0
	for _, op := range w.history() {
		last[op.invoke.Kind] = op
		if op.invoke.Kind == histories.CopyEnd {
			copies++
			if op.end.Offset != w.broker.end || op.end.HighWatermark != w.broker.end || op.end.Node == 0 {
				t.Fatalf("end of a copy: %+v", op.end)
			}
		}
	}
	if copies != 3 || len(last[histories.Fetch].end.Runs) != 0 {
		t.Fatalf("%d ends of copies, expected 3; the last read returned %d runs, expected none", copies, len(last[histories.Fetch].end.Runs))
	}
}
