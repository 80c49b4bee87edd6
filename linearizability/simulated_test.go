package linearizability

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ackproof/histories"
	"ackproof/model"
)

// cluster is a log as a Kafka-like cluster keeps it, small enough to be obviously right: a leader's log with a high watermark, changes of
// leader that cut the log to what the configuration allows, and clients who watch. Its histories are legal under its contract by construction.
type cluster struct {
	script
	r        *rand.Rand
	c        model.Contract
	log      []entry
	start    int64
	high     int64 // high watermark
	epoch    int32
	sequence [3]int64
	open     []*sending
	readers  []*reading
	sessions int32
	acked    map[entry]int64 // value → offset, −1 without
}

type entry struct {
	producer int32
	sequence int64
}

type sending struct {
	first   entry
	n       int
	offset  int64 // where the leader has it, −1 not appended, −2 gone with a leader
	copies  int
	end     func(histories.Event)
	replied bool
}

type reading struct {
	session  int32
	position int64
	end      func(...histories.Run)
	runs     []histories.Run
	read     bool
}

func newCluster(r *rand.Rand, c model.Contract) *cluster {
	s := &cluster{r: r, c: model.LogContract(c), epoch: 1, acked: make(map[entry]int64)}
	for range 3 {
		s.sessions++
		s.readers = append(s.readers, &reading{session: s.sessions})
	}
	return s
}

// run takes steps; every so often it comes to rest, so that the history can be cut there.
func (s *cluster) run(steps int) {
	s.phase("load")
	for i := range steps {
		if i%60 > 50 {
			s.settle()
			continue
		}
		s.step()
	}
	s.drainAll()
}

func (s *cluster) step() {
	r := s.r
	switch r.IntN(14) {
	case 0, 1, 2:
		if len(s.open) < 4 {
			p := int32(r.IntN(len(s.sequence)))
			if slices.ContainsFunc(s.open, func(o *sending) bool { return o.first.producer == p }) {
				return
			}
			o := &sending{first: entry{p, s.sequence[p]}, n: 1 + r.IntN(3), offset: -1}
			s.sequence[p] += int64(o.n)
			o.end = s.send(p, o.first.sequence, int32(o.n))
			s.open = append(s.open, o)
		}
	case 3, 4, 5:
		if len(s.open) > 0 {
			s.append(s.open[r.IntN(len(s.open))])
		}
	case 6, 7:
		s.high += r.Int64N(int64(len(s.log)) - s.high + 1)
	case 8, 9:
		if len(s.open) > 0 {
			s.reply(s.open[r.IntN(len(s.open))])
		}
	case 10, 11:
		s.read(s.readers[r.IntN(len(s.readers))])
	case 12:
		end := s.begin(histories.Event{Kind: histories.EndOffset})
		answer := histories.Event{Offset: s.high, LeaderEpoch: s.epoch}
		if r.IntN(3) == 0 {
			s.step()
		}
		end(answer)
	case 13:
		switch r.IntN(4) {
		case 0:
			s.elect()
		case 1:
			if s.c.Dense && r.IntN(4) == 0 {
				s.start += r.Int64N(min(3, s.high-s.start) + 1)
			}
			s.answer(histories.StartOffset, s.start, s.epoch)
		}
	}
}

func (s *cluster) append(o *sending) {
	if o.offset == -2 || o.offset >= 0 && (s.c.Idempotent || o.copies > 1) {
		return
	}
	o.copies++
	o.offset = int64(len(s.log))
	for i := range o.n {
		s.log = append(s.log, entry{o.first.producer, o.first.sequence + int64(i)})
	}
}

func (s *cluster) reply(o *sending) {
	end := histories.Event{Type: histories.OK, Offset: o.offset}
	switch {
	case s.c.Acks == 0:
		end.Offset = -1
	case s.c.Acks == 1 && o.offset >= 0:
	case s.c.Acks == -1 && o.offset >= 0 && s.high >= o.offset+int64(o.n):
	case s.r.IntN(3) > 0:
		return
	case o.offset == -1 && s.r.IntN(2) == 0:
		end = histories.Event{Type: histories.Fail, Code: 19}
	default:
		end = histories.Event{Type: histories.Info, Code: 7}
	}
	s.finish(o, end)
}

func (s *cluster) finish(o *sending, end histories.Event) {
	if !o.replied {
		o.end(end)
		o.replied = true
		for i := range o.n {
			if end.Type == histories.OK {
				at := end.Offset
				if at >= 0 {
					at += int64(i)
				}
				s.acked[entry{o.first.producer, o.first.sequence + int64(i)}] = at
			}
		}
	}
	if i := slices.Index(s.open, o); i >= 0 {
		s.open = slices.Delete(s.open, i, i+1)
	}
}

func (s *cluster) read(r *reading) {
	switch {
	case r.end == nil:
		r.end = s.fetch(r.session, r.position)
		r.runs, r.read = nil, false
	case !r.read:
		r.read = true
		if r.position > s.high && s.c.Unclean || r.position < s.start {
			r.runs = nil
			s.sessions++
			r.end() // an empty answer; then the reader begins anew
			*r = reading{session: s.sessions, position: s.start}
			return
		}
		for k := r.position; k < min(s.high, r.position+4); k++ {
			r.runs = histories.AppendRecord(r.runs, k, s.value(k), histories.Sound)
		}
	default:
		r.end(r.runs...)
		for _, run := range r.runs {
			r.position = run.Offset + int64(run.Count)
		}
		r.end = nil
	}
}

func (s *cluster) value(k int64) histories.Value {
	return histories.Value{Producer: s.log[k].producer, Sequence: s.log[k].sequence}
}

// elect makes a replica leader whose log may be shorter: down to the high watermark, or below it if the election is unclean.
func (s *cluster) elect() {
	least := s.high
	if s.c.Unclean {
		least = max(s.start, least-4)
	}
	end := least + s.r.Int64N(int64(len(s.log))-least+1)
	s.log = s.log[:end]
	s.high = min(s.high, end)
	s.epoch++
	for _, o := range s.open {
		if o.offset+int64(o.n) > end {
			o.offset = -2
		}
	}
}

// settle brings everything to rest.
func (s *cluster) settle() {
	s.high = int64(len(s.log))
	for len(s.open) > 0 {
		o := s.open[0]
		switch {
		case s.c.Acks == 0:
			s.finish(o, histories.Event{Type: histories.OK, Offset: -1})
		case o.offset >= 0:
			s.finish(o, histories.Event{Type: histories.OK, Offset: o.offset})
		default:
			s.finish(o, histories.Event{Type: histories.Info, Code: 7})
		}
	}
	for _, r := range s.readers {
		for r.end != nil {
			s.read(r)
		}
	}
}

func (s *cluster) drainAll() {
	s.settle()
	s.phase("drain")
	end := int64(len(s.log))
	s.answer(histories.EndOffset, end, s.epoch)
	s.sessions++
	for node := range int32(4) { // 0: the leader's log, by an ordinary reader
		for at := s.start; ; {
			var runs []histories.Run
			for k := at; k < min(end, at+5); k++ {
				runs = histories.AppendRecord(runs, k, s.value(k), histories.Sound)
			}
			if node == 0 {
				s.fetch(s.sessions, at)(runs...)
			} else {
				s.copyRead(node, at, runs...)
			}
			if at = min(end, at+5); len(runs) == 0 {
				break
			}
		}
	}
	s.phase("end")
}

// lost counts acknowledged records that are not in the log and were not trimmed.
func (s *cluster) lost() (n int64) {
	for v, at := range s.acked {
		if !slices.Contains(s.log[s.start:], v) && (at >= s.start || at < 0 && s.start == 0) {
			n++
		}
	}
	return n
}

var configurations = []model.Contract{
	{Acks: -1, Idempotent: true},
	{Acks: -1},
	{Acks: -1, Idempotent: true, Unclean: true},
	{Acks: 1},
	{Acks: 1, Unclean: true},
	{Acks: 0},
}

func configuration(i int) model.Contract {
	c := configurations[i%len(configurations)]
	c.System, c.Partitions, c.Replication, c.MinISR, c.Dense = "test", 1, 3, 2, true
	return c
}

// TestLegalUnderItsContract: nothing that a configuration allows is called a violation, and what was lost is counted exactly.
func TestLegalUnderItsContract(t *testing.T) {
	lost, duplicates, windows := int64(0), int64(0), 0
	for i := range scaled(t, 1200) {
		s := newCluster(rand.New(rand.NewPCG(7, uint64(i))), configuration(i))
		s.run(500 + 3000*(i%50/49)) // a long one now and then, of many windows
		a := decide(t, &s.script, s.c, whole())
		violated, permitted := a.anomalies()
		if len(violated) > 0 {
			t.Fatalf("history %d under %+v: %v\n%s", i, s.c, violated, proofs(a))
		}
		if permitted[model.LostAcked] != s.lost() {
			t.Fatalf("history %d under acks=%d unclean=%v: %d lost, want %d", i, s.c.Acks, s.c.Unclean, permitted[model.LostAcked], s.lost())
		}
		for _, claim := range a.Claims {
			if claim.Verdict != model.Held && claim.Verdict != model.NotTested {
				t.Fatalf("history %d under %+v: %s is %s: %s", i, s.c, claim.ID, claim.Verdict, claim.Reason)
			}
		}
		o, err := SecondOpinion(a, OpinionOptions{})
		if err != nil {
			t.Fatalf("history %d: %v", i, err)
		}
		lost += s.lost()
		duplicates += permitted[model.Duplicate]
		windows += o.Windows
	}
	if lost == 0 || duplicates == 0 || windows < 1300 {
		t.Fatalf("%d lost, %d duplicates, %d windows: the histories prove nothing", lost, duplicates, windows)
	}
	t.Logf("%d permitted losses, %d permitted duplicates, %d windows confirmed", lost, duplicates, windows)
}

func proofs(a *Answer) (out string) {
	for _, c := range a.Claims {
		for _, x := range c.Anomalies {
			out += fmt.Sprintf("%s ×%d: %s\n", x.Kind, x.Count, x.Proof.Sentence)
			for _, op := range x.Proof.Operations {
				out += "   " + op.Text + "\n"
			}
		}
	}
	return out
}

// spoil changes one answer of a history.
func spoil(r *rand.Rand, s *cluster) {
	for {
		ev := &s.events[r.IntN(len(s.events))]
		if ev.Type != histories.OK || !ev.Kind.IsOperation() {
			continue
		}
		switch {
		case ev.Kind == histories.Append && r.IntN(4) == 0:
			ev.Type, ev.Offset = histories.Fail, 0
		case ev.Kind == histories.Append && ev.Offset >= 0:
			ev.Offset = max(0, ev.Offset+r.Int64N(5)-2)
		case ev.Kind == histories.EndOffset || ev.Kind == histories.StartOffset:
			ev.Offset = max(0, ev.Offset+r.Int64N(5)-2)
		case len(ev.Runs) > 0:
			ev.Runs = slices.Clone(ev.Runs)
			x := &ev.Runs[r.IntN(len(ev.Runs))]
			switch r.IntN(5) {
			case 0:
				x.Sequence = max(0, x.Sequence+r.Int64N(5)-2)
			case 1:
				x.Defect = histories.Corrupt
			case 2:
				x.Producer = r.Int32N(4)
			case 3:
				ev.Runs = slices.Delete(ev.Runs, 0, 1)
			case 4:
				x.Offset = max(0, x.Offset+r.Int64N(3)-1)
			}
		default:
			continue
		}
		return
	}
}

// rewrite changes the log itself from some moment on, as every later reader sees it: a record is gone, or two have changed places.
func rewrite(r *rand.Rand, s *cluster) {
	if len(s.log) < 2 {
		return
	}
	k, since := r.Int64N(int64(len(s.log))-1), r.IntN(len(s.events))
	gone := r.IntN(2) == 0
	for i := since; i < len(s.events); i++ {
		ev := &s.events[i]
		if ev.Type != histories.OK || !ev.Kind.IsRead() {
			continue
		}
		var runs []histories.Run
		for _, x := range ev.Runs {
			for j := range x.Count {
				offset, v, d := x.Offset+int64(j), histories.Value{Producer: x.Producer, Sequence: x.Sequence + int64(j)}, x.Defect
				switch {
				case offset == k && gone:
					continue
				case offset == k && !gone:
					v = s.value(k + 1)
				case offset == k+1 && !gone:
					v = s.value(k)
				}
				runs = histories.AppendRecord(runs, offset, v, d)
			}
		}
		ev.Runs = runs
	}
}

// TestSpoiled: whatever is changed in a history, porcupine agrees with the exact checkers, losses and duplicates are counted as a plain reading of
// their definitions counts them, and every certificate names one to four operations of the history.
func TestSpoiled(t *testing.T) {
	seen := make(map[model.Anomaly]int)
	for i := range scaled(t, 3000) {
		r := rand.New(rand.NewPCG(11, uint64(i)))
		s := newCluster(r, configuration(i))
		s.run(200)
		if r.IntN(3) == 0 {
			rewrite(r, s)
		} else {
			for range 1 + r.IntN(3) {
				spoil(r, s)
			}
		}
		f := whole()
		if i%5 == 0 {
			f.DrainComplete, f.DrainReason = false, "the test says so"
		}
		a := decide(t, &s.script, s.c, f, model.ReadAfterAck)
		if _, err := SecondOpinion(a, OpinionOptions{}); err != nil {
			t.Fatalf("history %d under acks=%d unclean=%v idempotent=%v: %v\n%s", i, s.c.Acks, s.c.Unclean, s.c.Idempotent, err, proofs(a))
		}
		violated, permitted := a.anomalies()
		for k := range violated {
			seen[k]++
		}
		for _, c := range a.Claims {
			for _, x := range c.Anomalies {
				if n := len(x.Proof.Operations); n < 1 || n > 4 {
					t.Fatalf("history %d: %s is proved by %d operations, want 1 to 4", i, x.Kind, n)
				}
				for _, op := range x.Proof.Operations {
					if ev := s.events[op.Op-1]; ev.Type != histories.Invoke || ev.Process != op.Process {
						t.Fatalf("history %d: %s is proved by operation %d, which is no invocation of process %d", i, x.Kind, op.Op, op.Process)
					}
				}
			}
		}
		lost, end, start := plainLosses(s.events, f.DrainComplete)
		if got := violated[model.LostAcked] + permitted[model.LostAcked]; got != lost {
			t.Fatalf("history %d: %d lost, a plain count says %d\n%s", i, got, lost, proofs(a))
		}
		for k, n := range map[model.Anomaly]int64{model.StaleEndOffset: end, model.StartOffsetBackwards: start} {
			if got := violated[k] + permitted[k]; got != n {
				t.Fatalf("history %d: %d %s, a plain count says %d", i, got, k, n)
			}
		}
	}
	for _, k := range []model.Anomaly{model.LostAcked, model.Undelivered, model.PollSkip, model.NonmonotonicPoll, model.Reordered, model.ReorderedRealtime,
		model.InconsistentOffset, model.ReplicaDivergence, model.UnfillableGap, model.Phantom, model.FutureRead, model.CorruptValue, model.DirtyRead,
		model.Duplicate, model.StaleEndOffset, model.StartOffsetBackwards} {
		if seen[k] == 0 {
			t.Errorf("no history showed %s", k)
		}
	}
	t.Logf("histories with each violation: %v", seen)
}

// plainLosses applies the definitions of lost-acked, stale-end-offset and start-offset-backwards literally, in quadratic time.
func plainLosses(events []histories.Event, drained bool) (lost, ends, starts int64) {
	type answer struct{ inv, end histories.Event }
	var all []answer
	var drainSeq uint64
	for _, ev := range events {
		if ev.Kind == histories.Phase && ev.Note == "drain" {
			drainSeq = ev.Seq
		}
		if ev.Type == histories.OK && ev.Kind.IsOperation() {
			all = append(all, answer{events[ev.Op-1], ev})
		}
	}
	logStart := int64(0)
	for _, a := range all {
		if a.end.Kind == histories.StartOffset {
			logStart = max(logStart, a.end.Offset)
		}
	}
	for _, b := range all {
		for _, a := range all {
			if a.end.Kind == b.end.Kind && a.end.Seq < b.inv.Seq && a.end.LeaderEpoch <= b.end.LeaderEpoch && a.end.Offset > b.end.Offset {
				if b.end.Kind == histories.EndOffset {
					ends++
					break
				}
				if b.end.Kind == histories.StartOffset {
					starts++
					break
				}
			}
		}
	}
	// The final log.
	owner := make(map[entry]histories.Event) // who sent it
	failed := make(map[entry]bool)
	for _, ev := range events {
		if ev.Kind == histories.Append && ev.Type == histories.Invoke {
			for i := range ev.Runs[0].Count {
				owner[entry{ev.Runs[0].Producer, ev.Runs[0].Sequence + int64(i)}] = ev
			}
		}
		if ev.Kind == histories.Append && ev.Type == histories.Fail {
			inv := events[ev.Op-1]
			for i := range inv.Runs[0].Count {
				failed[entry{inv.Runs[0].Producer, inv.Runs[0].Sequence + int64(i)}] = true
			}
		}
	}
	final := make(map[entry]bool)
	first := make(map[int64]entry)
	passedBy := make(map[int64]bool)
	end, proved := int64(-1), uint64(0)
	for _, kind := range []histories.Kind{histories.Fetch, histories.CopyRead, histories.EndOffset} {
		for _, a := range all {
			if a.end.Kind != kind || a.inv.Seq < drainSeq {
				continue
			}
			reach := a.inv.Offset
			if kind == histories.EndOffset {
				reach = a.end.Offset
			}
			for _, run := range a.end.Runs {
				reach = max(reach, run.Offset+int64(run.Count))
				for i := range run.Count {
					v := entry{run.Producer, run.Sequence + int64(i)}
					if _, sent := owner[v]; !sent || failed[v] || run.Defect != histories.Sound {
						continue
					}
					if _, taken := first[run.Offset+int64(i)]; !taken {
						first[run.Offset+int64(i)] = v
						final[v] = true
					}
				}
			}
			if len(a.end.Runs) > 0 {
				for k := a.inv.Offset; k < reach; k++ {
					passedBy[k] = true
				}
			}
			if reach > end {
				end, proved = reach, 0
			}
			if reach == end && len(a.end.Runs) == 0 {
				proved = max(proved, a.inv.Seq)
			}
		}
	}
	complete := drained && proved > 0
	for k := logStart; k < end; k++ {
		complete = complete && passedBy[k]
	}
	for _, a := range all {
		if a.end.Kind != histories.Append {
			continue
		}
		for i := range a.inv.Runs[0].Count {
			v := entry{a.inv.Runs[0].Producer, a.inv.Runs[0].Sequence + int64(i)}
			at := a.end.Offset
			switch {
			case final[v]:
			case at < 0:
				if complete && logStart == 0 {
					lost++
				}
			case at+int64(i) < logStart:
			case passedBy[at+int64(i)] || complete && at+int64(i) >= end:
				lost++
			}
		}
	}
	return lost, ends, starts
}
