package main

var objectChecker = Checker{"registers and other objects", []string{"linearizability"}, "^TestObjects", []Mutant{
	{"linearizability/objects_unique.go", `if op.end < z.f {`, `if op.end > z.f {`, "a zone begins with the last end"},
	{"linearizability/objects_unique.go", `if op.inv > z.s {`, `if op.inv < z.s {`, "a zone ends with the first beginning"},
	{"linearizability/objects_unique.go", `if a.f < b.s && b.f < a.s {`, `if a.f < b.s || b.f < a.s {`, "zones that have to come one after the other contradict each other"},
	{"linearizability/objects_unique.go", `op.end < u.h.ops[z.write].inv {`, `false {`, "a value may be read before it was written"},
	{"linearizability/objects_unique.go", `case s.Do == histories.Read || op.outcome == histories.Fail:`, `case s.Do == histories.Read:`, "refused writes are written"},
	{"linearizability/objects_unique.go", `if n > 0 { // by`, `if n > 1 { // by`, "a backward zone is not compared with the first"},
	{"linearizability/objects_unique.go", `if u.zones[before].s > u.zones[i].s {`, `if u.zones[before].s < u.zones[i].s {`, "the zone that reaches least is compared"},
	{"linearizability/objects_unique.go", `_, again := u.zone(&s.Value); again ||`, `_, again := u.zone(&s.Value); again && false ||`, "values that repeat are taken for unique"},
	{"linearizability/objects_cells.go", `case porcupine.Unknown:
			d.undecided`, `case "":
			d.undecided`, "a search without an answer holds"},
	{"linearizability/objects_stream.go", `if op.outcome == histories.Fail {
				continue
			}`, ``, "refused appends to a stream have happened"},
	{"linearizability/objects_stream.go", `call.Unknown = op.indeterminate()`, `call.Unknown = false`, "appends of unknown outcome must have happened"},
	{"linearizability/objects_stream.go", `call.Match = &s.Number`, `call.Match = nil`, "match-sequence conditions are ignored"},
	{"linearizability/objects_stream.go", `call.Token = &s.Value.Text`, `call.Token = nil`, "fencing tokens are ignored"},
	{"model/objects_stream.go", `(!s.fenced || s.token != *c.Token)`, `s.fenced && s.token != *c.Token`, "an unfenced stream takes any token"},
	{"model/objects_stream.go", `*c.Match != s.tail {`, `*c.Match > s.tail {`, "a conditional append may come late"},
	{"model/objects_stream.go", `return []any{state, next}`, `return []any{state}`, "an append of unknown outcome has not happened"},
	{"model/objects.go", `return []any{state, next}`, `return []any{state}`, "a call of unknown outcome has not happened"},
}}

var setChecker = Checker{"set", []string{"linearizability"}, "^TestSet", []Mutant{
	{"linearizability/objects_set.go", `known := min(e.ack, e.minRet)`, `known := e.ack`, "an element that was only read may go again"},
	{"linearizability/objects_set.go", `after+1, func`, `after+2, func`, "the first read that began after the acknowledgement is left out"},
	{"linearizability/objects_set.go", `case e.minRet < e.inv:`, `case false:`, "an element may be found before it was added"},
	{"linearizability/objects_set.go", `if from == len(reads) && len(e.reads) == 0 {`, `if len(e.reads) == 0 {`, "what nobody found is undecided"},
	{"linearizability/objects_set.go", `case without.inv <= e.maxRet:`, `case false:`, "elements that come back count as lost"},
	{"linearizability/objects_set.go", `case e.ack != forever:
			all.lost`, `case true:
			all.lost`, "unacknowledged elements count as lost"},
	{"linearizability/objects_set.go", `e.reads[k-1] == int32(n) {`, `false {`, "elements that are found twice in one read are overlooked"},
	{"linearizability/objects_set.go", `e.add == none || ret < e.ack {`, `true {`, "the last add of an element wins"},
	{"linearizability/objects_set.go", `case op.outcome == histories.Fail:
			get(s.Value.Int).refuse = i
`, ``, "refused adds have happened"},
}}

var totalQueueChecker = Checker{"total queue", []string{"linearizability"}, "^Test(Queue|ObjectsPlanted|ObjectsUndecided)", []Mutant{
	{"linearizability/objects_queue.go", `if p.got > p.tried {`, `if p.got > p.acks {`, "an enqueue of unknown outcome counts as a duplicate"},
	{"linearizability/objects_queue.go", `h.ops[p.early].end < p.inv:`, `false:`, "an element may be dequeued before it was enqueued"},
	{"linearizability/objects_queue.go", `if op.inv > entered {`, `if true {`, "any empty reply proves that the queue is drained"},
	{"linearizability/objects_queue.go", `if end == none || h.ops[end].inv < p.acked {`, `if end == none {`, "a drain before the acknowledgement proves a loss"},
	{"linearizability/objects_queue.go", `case drained || lost <= takers:`, `case lost <= takers:`, "a drain of unknown outcome takes one element at most"},
	{"linearizability/objects_queue.go", `op.indeterminate() && do != histories.Enqueue`, `op.indeterminate() && do == histories.Drain`, "dequeues of unknown outcome take nothing"},
	{"linearizability/objects_queue.go", `min(len(missing), lost-takers)`, `min(len(missing), lost)`, "what dequeues of unknown outcome may have taken counts as lost"},
	{"linearizability/objects_queue.go", `			p.tried++
`, `			p.tried = 1
`, "several enqueues of one value count as one"},
	{"linearizability/objects_queue.go", `s.Do == histories.Enqueue && op.outcome == histories.Fail:`, `false:`, "refused enqueues have happened"},
}}
