package main

var onlineChecker = Checker{"log, online", []string{"linearizability"}, "^TestOnline", []Mutant{
	{"linearizability/online.go", `if base <= b.reach {`, `if base < b.reach {`, "an append may take the very offset that was known before it began"},
	{"linearizability/online.go", `p.reach = max(p.reach, offset-1)`, `p.reach = max(p.reach, offset)`, "an acknowledgement counts one offset too many"},
	{"linearizability/online.go", `acks: c.Acks == -1 && !c.MayForget()`, `acks: true`, "acknowledgements are believed whatever the contract"},
	{"linearizability/online.go", `o.contract.Permitted(claim, a, seen) == ""`, `true`, "what the contract permits is reported"},
	{"linearizability/online.go", `case s.sequence < w.high:`, `case s.sequence > w.high+1:`, "gaps in a producer's numbers are taken for disorder"},
	{"linearizability/online.go", `case w.placed.meets(s.sequence, s.sequence+1):`, `case false:`, "second copies are overlooked"},
	{"linearizability/online.go", `if r.Offset < s.next {`, `if r.Offset <= s.next {`, "the next offset in a row counts as a step back"},
	{"linearizability/online.go", `s != nil && b.op >= s.end`, `s != nil`, "reads at once have an order"},
	{"linearizability/online.go", `if w.refused.meets(from, to) {`, `if false {`, "refused records may be read"},
	{"linearizability/online.go", `!w.sent.covers(from, to)`, `!w.sent.meets(from, to)`, "a run is genuine if one of its records is"},
	{"linearizability/online.go", `at <= u.reach {`, `at < u.reach {`, "a record may lie at the very offset that was known before it was sent"},
	{"linearizability/online.go", `compare(b.ends, model.StaleEndOffset)`, `compare(p.ends, model.StaleEndOffset)`, "answers that overlap are compared"},
	{"linearizability/online_state.go", `case s.producer == v.producer && s.sequence == v.sequence:`, `case s.sequence == v.sequence:`, "producers are not told apart"},
	{"linearizability/online_state.go", `return !ok || known == sum`, `return !ok || known|sum != 0`, "blocks behind the window are not compared"},
}}
