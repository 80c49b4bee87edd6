package main

var logChecker = Checker{"log", []string{"linearizability"}, "^Test(Planted|Undecided|Permitted|Oracle|Spoiled|Legal)", []Mutant{
	// What each offset holds.
	{"linearizability/part.go", `o.outcome == histories.OK && o.inv > p.finalFrom`, `o.outcome == histories.OK`, "every read counts as one of the drain"},
	{"linearizability/part.go", `end, proves = h.reach(o), o.count == 0`, `end, proves = h.reach(o), true`, "a read that returned records proves the end"},
	{"linearizability/part.go", `for i := max(o.offset-p.base, 0); i < to; i++ {`, `for i := max(o.offset-p.base, 0) + 1; i < to; i++ {`, "the first offset of a read of the drain does not count as passed"},
	{"linearizability/part.go", `case known == none:
				p.at[i] = record
				o.last`, `case known != record:
				p.at[i] = record
				o.last`, "the last read of the drain wins"},
	{"linearizability/part.go", `if covered < p.end {`, `if covered < p.end-1 {`, "a drain that missed the last offset is complete"},
	{"linearizability/part.go", `case p.endOp == none:`, `case false:`, "the end of the log needs no proof"},
	{"linearizability/part.go", `if end != p.end {`, `if end > p.end {`, "a shorter copy is no reason to doubt the end"},
	{"linearizability/part.go", `case w.inv > h.ops.at(op).end:`, `case w.inv > h.ops.at(op).end && false:`, "reads from the future are accepted"},
	{"linearizability/part.go", `case w.outcome == histories.Fail:
		anomaly = model.Phantom`, `case w.outcome == histories.Info:
		anomaly = model.Phantom`, "an append of unknown outcome must not be read, a refused one may"},
	{"linearizability/part.go", `case w.partition != p.number:`, `case false:`, "records of other partitions are accepted"},
	{"linearizability/part.go", `case p.complete && o.end < p.finalFrom:`, `case o.end < p.finalFrom:`, "a loss without an offset needs no complete drain"},
	{"linearizability/part.go", `case known != none, final >= 0:
				t.add(conflict)`, `case known != none:
				t.add(conflict)`, "a record that moved to another offset is no conflict"},
	{"linearizability/part.go", `case gone && offset >= p.start:`, `case gone && offset > p.start:`, "the first record that is not trimmed may be lost"},
	{"linearizability/part.go", `	return c.Acks == -1
`, `	return true
`, "acknowledgements are believed whatever the contract"},
	{"linearizability/part.go", `	case c.MayForget():
		return false
`, ``, "early reads are believed under unclean election"},
	{"linearizability/load.go", `p.start = max(p.start, ev.Offset)`, `p.start = ev.Offset`, "the last start of the log wins"},
	{"linearizability/part.go", `else if int(*at) != i {`, `else if int(*at) > i {`, "a second copy of a record is no duplicate"},
	{"linearizability/part.go", `for k := max(from, p.base, p.start); k < to; k++ {`, `for k := max(from, p.base); k < to; k++ {`, "a copy must hold what was trimmed"},
	{"linearizability/tally.go", `b.count++`, `b.count = 1`, "anomalies of one kind are counted once"},

	// Real time.
	{"linearizability/sweep.go", `for i := n - 2; i >= 0; i-- {`, `for i := n - 2; i > 0; i-- {`, "the backward pass stops before the first offset"},
	{"linearizability/sweep.go", `if i >= 0 && i < n && by < b.by[i] {`, `if i >= 0 && i < n {`, "the last operation that knew an offset wins, not the earliest"},
	{"linearizability/sweep.go", `lower(int(o.last), o.end, op)`, `lower(int(o.last)-1, o.end, op)`, "a read bounds the offset before its last"},
	{"linearizability/sweep.go", `int(min(end-1-p.base, p.broken-1-p.base, int64(n)-1))`, `int(min(end-p.base, p.broken-1-p.base, int64(n)-1))`, "an answer counts one offset too many"},
	{"linearizability/sweep.go", `min(end-1-p.base, p.broken-1-p.base, int64(n)-1)`, `min(end-1-p.base, int64(n)-1)`, "answers count offsets whose records did not stay"},
	{"linearizability/sweep.go", `w.outcome == histories.OK &&
			(w.offset < 0`, `
			(w.offset < 0`, "an append of unknown outcome bounds by its end"},
	{"linearizability/sweep.go", `if h.ops.at(w).inv < b.by[i] {`, `if h.ops.at(w).inv < b.by[i] || h.ops.at(w).outcome != histories.OK {`, "appends of unknown outcome may be as late as they like"},
	{"linearizability/sweep.go", `case o.kind == histories.EndOffset && !t.contract.MayForget():
				lower(counted(o.offset), o.end, op)`, `case false:`, "ends of the log that were answered bound nothing"},
	{"linearizability/sweep.go", `b.by[i] >= o.inv {
			continue`, `b.by[i] >= o.end {
			continue`, "a reader must see what came into being while it read"},
	{"linearizability/sweep.go", `end = min(end, o.high)`, `end = max(end, o.high)`, "an empty read is judged by its high watermark alone"},
	{"linearizability/sweep.go", `o.outcome != histories.OK || o.follower {`, `o.outcome != histories.OK {`, "followers must be fresh"},

	// Holes.
	{"linearizability/sweep.go", `h.ops.at(free[0]).inv < b.by[i] {`, `h.ops.at(free[0]).inv > 0 {`, "any append of unknown outcome fits any hole"},
	{"linearizability/sweep.go", `				free = free[1:]
`, ``, "one append of unknown outcome fills all holes"},
	{"linearizability/sweep.go", `!(o.indeterminate() || o.outcome == histories.OK && o.offset < 0)`, `!(o.outcome == histories.OK && o.offset < 0)`, "appends of unknown outcome fill no holes"},
	{"linearizability/sweep.go", `if h.records.at(o.first+j).position < 0 {`, `if j >= 0 {`, "an append that stands elsewhere fills a hole"},
	{"linearizability/sweep.go", `if p.marks[i]&passed != 0 {
			hole(i, true)`, `if false {
			hole(i, true)`, "a hole that the drain read past may still be filled"},
	{"linearizability/sweep.go", `t.holes += unread`, `t.holes = 0`, "batches are taken to fit"},

	// Order of producers, sessions, ends.
	{"linearizability/order.go", `before.producer != id || at > before.position {`, `before.producer != id || at > 0 {`, "only a record at the first offset can be out of order"},
	{"linearizability/order.go", `before := &last[p.place]`, `before := &last[0]`, "partitions share an order"},
	{"linearizability/order.go", `*before = furthest{id, at, r}`, `*before = furthest{id, 0, r}`, "the furthest place of a producer is forgotten"},
	{"linearizability/sessions.go", `if o.inv < s.end {`, `if false {`, "reads at once have an order"},
	{"linearizability/sessions.go", `if r.offset < floor {`, `if r.offset <= floor {`, "the next offset in a row counts as a step back"},
	{"linearizability/sessions.go", `else if r.offset > position {`, `else if r.offset > position+1 {`, "one skipped offset is overlooked"},
	{"linearizability/sessions.go", `position = max(position, r.offset+int64(r.count))`, `position = r.offset + int64(r.count)`, "a session's position falls with a read that goes back"},
	{"linearizability/sessions.go", `whole := s.first <= p.start && p.complete && s.reached`, `whole := p.complete && s.reached`, "a late reader must have had everything"},
	{"linearizability/sessions.go", `if whole && h.writerOf(p.at[at]).outcome == histories.OK {`, `if whole {`, "records of unknown outcome are due to readers"},
	{"linearizability/sessions.go", `k.from = max(k.from, p.start)`, `k.from += 0`, "trimmed records are due to readers"},
	{"linearizability/sessions.go", `if o.session == 0 {
			id.process = o.process
		}`, ``, "processes without sessions share one"},
	{"linearizability/ends.go", `h.ops.at(returned[0]).end < o.inv {`, `h.ops.at(returned[0]).inv < o.inv {`, "answers that overlap are compared"},
	{"linearizability/ends.go", `slices.Sorted(slices.Values(returned))`, `slices.Clone(returned)`, "answers are judged in the order in which they ended"},
	{"linearizability/ends.go", `return s[i].epoch > epoch })`, `return s[i].epoch >= epoch })`, "answers of one leader epoch are not compared"},
	{"linearizability/ends.go", `s.upTo(o.epoch); ok && before.offset > o.offset`, `s.upTo(1 << 30); ok && before.offset > o.offset`, "a deposed leader is judged by its successor"},
	{"linearizability/ends.go", `to < len(s) && s[to].offset <= n.offset`, `to < len(s) && s[to].epoch == n.epoch`, "lower answers of later epochs stay"},
	{"linearizability/ends.go", `best.offset >= n.offset {`, `best.offset <= n.offset {`, "the smallest answer is kept instead of the largest"},
	{"linearizability/ends.go", `				starts = starts.add(n)`, `				ends = ends.add(n)`, "starts and ends share a staircase"},

	// What is held together by the facts.
	{"linearizability/check.go", `case facts.Broken != "":`, `case false:`, "a harness that broke proves as much as one that did not"},
	{"linearizability/check.go", `if t.openAcks > 0 {`, `if t.openAcks > 1 {`, "one record that may be lost is no reason to doubt"},
	{"linearizability/check.go", `case facts.CopiesRead < facts.CopiesWanted:`, `case facts.CopiesRead == 0:`, "one copy is enough to compare"},
	{"linearizability/check.go", `case len(r.Anomalies) > 0:
		r.Verdict = model.Violated
	case facts.Broken != "":
		r.Verdict, r.Reason = model.Undecided, "the harness broke: "+facts.Broken
`, `case facts.Broken != "":
		r.Verdict, r.Reason = model.Undecided, "the harness broke: "+facts.Broken
	case len(r.Anomalies) > 0:
		r.Verdict = model.Violated
`, "a broken harness excuses a violation"},
	{"linearizability/load.go", `records[follow] == records[0]+follow; {`, `true; {`, "a run of records reaches past what one producer wrote in a row"},
	{"linearizability/load.go", `p.outage = outage{since: ev.Time, last: p.outage.last}`, `p.outage.longest = 0`, "the time without an acknowledgement begins before the load"},
	{"linearizability/load.go", `if r.Defect == histories.Sound {`, `if true {`, "a value that is damaged counts as the record that it names"},
	{"linearizability/load.go", `follow == r.Count {`, `follow > 0 {`, "a run of which the beginning is in a row counts as in a row"},
	{"linearizability/part.go", `t.least = min(t.least, offset)`, ``, "an end that was told of below the start is nowhere"},
	{"linearizability/moments.go", `if step == 1 {`, `if step <= 2 {`, "a gap in the sequence numbers of events is lost"},
	{"linearizability/moments.go", `for range (n - 1) % momentsInGroup {`, `for range n % momentsInGroup {`, "a proof has the time of the event after"},
	{"linearizability/blocks.go", `first = l.blocks[len(l.blocks)-more]`, `first = l.blocks[len(l.blocks)-1]`, "values in a row over several blocks begin in the last"},
	{"linearizability/load.go", `p.spans[n-1].from+int64(p.spans[n-1].count) == r.Sequence {`, `true {`, "a gap in the sequence numbers of a producer is overlooked"},
}}

var secondOpinion = Checker{"second opinion", []string{"linearizability"}, "^Test(Disagreement|Legal|Planted)", []Mutant{
	{"linearizability/window.go", `return in.sound && length >= in.length, length`, `return in.sound, length`, "the model's reads may come from the future"},
	{"linearizability/window.go", `return in.lasting && next, in.offset + in.n`, `return next, in.offset + in.n`, "the model forgets what was acknowledged"},
	{"linearizability/window.go", `open == 0 && since >= windowLeast {`, `since >= windowLeast {`, "windows are cut through open appends"},
	{"linearizability/window.go", `now.reading = min(now.reading, o.inv)`, `now.reading = max(now.reading, o.inv)`, "a read that spans a quiet moment is in no window"},
	{"linearizability/window.go", `	w.suspect = 0
`, ``, "a window answers for what is not in it"},
	{"linearizability/opinion.go", `case v == porcupine.Illegal && w.suspect == 0:`, `case v == porcupine.Illegal && w.suspect != 0:`, "porcupine's finding is ignored"},
	{"linearizability/opinion.go", `case v == porcupine.Ok && w.suspect&mustFail != 0:`, `case v == porcupine.Ok && w.suspect != 0 && false:`, "an invented anomaly is believed"},
}}
