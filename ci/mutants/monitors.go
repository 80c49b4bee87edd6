package main

var commitChecker = Checker{"committed offsets", []string{"linearizability"}, "^TestCommits", []Mutant{
	{"linearizability/commits.go", `w.refused || w.write != nil && w.write.inv > r.end`, `w.write != nil && w.write.inv > r.end`, "refused commits are candidates"},
	{"linearizability/commits.go", `case writes[0].write != nil && writes[0].write.Offset != r.Offset:`, `case false:`, "metadata may come back with another offset"},
	{"linearizability/commits.go", `case w.write.outcome != histories.OK && w.reads == 0:`, `case w.write.outcome != histories.OK:`, "commits of unknown outcome are ignored although they were read"},
	{"linearizability/commits.go", `return all[i].f >= old.s })`, `return all[i].f > 0 })`, "no newer value is looked for"},
	{"linearizability/commits.go", `newer.s > old.f && newer.f > old.f {`, `newer.s > 0 && newer.f > old.f {`, "values that overlap count as replaced"},
	{"linearizability/commits.go", `if newest == nil || byEnd[i].Number > newest.Number {`, `if true {`, "the last generation wins, not the newest"},
	{"linearizability/commits.go", `if newest != nil && newest.Number > s.Number {`, `if newest != nil && newest.Number >= s.Number {`, "a generation fences itself"},
	{"linearizability/commits.go", `byEnd[i].end < s.inv; i++ {`, `byEnd[i].inv < s.inv; i++ {`, "commits that overlap are fenced"},
	{"linearizability/commits.go", `	case s.Offset < 0:
		return histories.Datum{}
	case s.Value`, `	case s.Value`, "no offset is an offset"},
	{"linearizability/commits.go", `s.inv > k.s {
		k.last, k.s`, `s.inv < k.s {
		k.last, k.s`, "the first beginning is kept instead of the last"},
	{"linearizability/commits_online.go", `newer == nil || newer.s <= old.f {`, `newer == nil {`, "values are forgotten before they are superseded"},
	{"linearizability/commits_online.go", `		if g.inv > inv {
			return t
		}
		t.merge`, `		t.merge`, "what ended after a read began counts against it"},
	{"linearizability/commits_online.go", `if k.fences[i].by.end < s.inv {`, `if k.fences[i].by.inv < s.inv {`, "online: commits that overlap are fenced"},
	{"linearizability/commits.go", `if writes[0].refused { // refused`, `if false { // refused`, "what is refused later may be read before"},
	{"linearizability/commits.go", `between != nil && w.write.ret() < between.inv {`, `between != nil && w.write.inv < between.inv {`, "of equal commits those that overlap another count as replaced"},
	{"linearizability/commits_online.go", `		k.gates[i+1].top.merge(g.top)
`, ``, "a read that ends takes what it had seen with it"},
}}

var fifoChecker = Checker{"FIFO queue", []string{"linearizability"}, "^TestFIFO", []Mutant{
	{"linearizability/fifo.go", `return all[i].send.inv > a.send.ret() })])`, `return all[i].send.inv > a.send.inv })])`, "sends that overlap have an order"},
	{"linearizability/fifo.go", `all[i].first.end < next[i].first.end) {`, `all[i].first.end > next[i].first.end) {`, "the last delivery counts, not the first"},
	{"linearizability/fifo.go", `if a.missed < a.first.inv {`, `if a.missed < a.first.end {`, "deliveries that overlap have an order"},
	{"linearizability/fifo.go", `k.lostReceive != nil && k.lostReceive.inv < a.missed:`, `false:`, "receives of unknown outcome are ignored"},
	{"linearizability/fifo.go", `if len(lost) > 0 && lost[0].inv < a.missed {`, `if len(lost) > 0 {`, "a dequeue of unknown outcome excuses what was missed before it began"},
	{"linearizability/fifo.go", `			lost = lost[1:]
`, ``, "one dequeue of unknown outcome excuses everything"},
	{"linearizability/fifo.go", `} else if !leased(d) {`, `} else {`, "redelivery after a lease counts as a duplicate"},
	{"linearizability/fifo.go", `case m == nil || m.send.inv > d.end:`, `case m == nil:`, "a message may be delivered before it was sent"},
	{"linearizability/fifo.go", `case m.send.outcome == histories.Fail:`, `case false:`, "refused messages may be delivered"},
	{"linearizability/fifo.go", `apart > int64(float64(r.window)*(1-r.drift)) {`, `apart > int64(float64(r.window)*(1+r.drift)) {`, "drift widens the deduplication window against the queue"},
	{"linearizability/fifo.go", `sums[i+1] = change{ch.at, sums[i].later + ch.later, sums[i].forever + ch.forever}`, `sums[i+1] = change{ch.at, ch.later, ch.forever}`, "only the last message that came counts against an empty reply"},
	{"linearizability/fifo.go", `case m.first != nil && m.first.inv > m.send.end:`, `case false:`, "messages that were delivered later do not count against an empty reply"},
	{"linearizability/fifo.go", `m.most.send.Number < b.least.send.Number`, `m.most.send.Number > b.least.send.Number`, "sequence numbers of the queue are read the wrong way round"},
	{"linearizability/fifo.go", `if top == nil || numbered[i].send.Number > top.send.Number {`, `if top == nil {`, "what was there before a message without a number is taken for the first that was there"},
	{"linearizability/fifo.go", `	m.least = top
`, ``, "nothing with a number comes before a message without one"},
	{"linearizability/fifo.go", `all[i].send.inv > m.send.ret() })]
		}
	}
	out`, `all[i].send.inv > m.send.inv })]
		}
	}
	out`, "a message without a number comes before all that were sent later"},
	{"linearizability/fifo.go", `m.send.Number > 0 && !m.copied`, `m.send.Number > 0`, "the number of a recognised copy is taken for its own"},
	{"linearizability/fifo.go", `			case m.first != nil && !leased(d):
				c.twice(m.send, m.first, d)
`, ``, "what was refused in the end may be delivered twice before"},
	{"linearizability/fifo_online.go", `least: k.top}`, `}`, "online: nothing with a number comes before a message without one"},
	{"linearizability/fifo_online.go", `b.send.inv > a.first.end && !b.numbered()`, `b.send.inv > a.send.inv && !b.numbered()`, "online: what was sent while a message was open came in after it"},
	{"linearizability/fifo_online.go", `			if raise(b) {
				overtaking = append(overtaking, b)
			}
`, ``, "online: a number that becomes known late says nothing of what was delivered meanwhile"},
	{"linearizability/fifo_online.go", `		k.mixed = true
`, ``, "online: a message without a number comes before none"},
	{"linearizability/fifo_online.go", `		if a.precedes(o) {
			m.miss(k, a, o)
		}
	}
	for`, `	}
	for`, "online: a late number does not show that the message was overtaken"},
	{"linearizability/fifo_online.go", `		if a.first == nil && a.precedes(b) {
			m.miss(k, a, b)
		}
`, ``, "online: numbers decide nothing while messages wait"},
	{"linearizability/fifo_online.go", `old := o.send.end < oldest`, `old := true`, "online: numbers are forgotten while sends are open"},
	{"linearizability/fifo_online.go", `return o.first.end < oldest`, `return true`, "online: deliveries are forgotten while sends are open"},
	{"linearizability/fifo_online.go", `case a.first != nil && (a.missed > a.first.inv || excused):`, `case a.first != nil && excused:`, "online: deliveries that overlap have an order"},
	{"linearizability/fifo_online.go", `case excused || len(a.partners) > 0 || len(k.lost) > 0 && before(k.lost[0]):`, `case excused || len(a.partners) > 0:`, "online: a lost Dequeue excuses nothing"},
	{"linearizability/fifo_online.go", `if len(p.left) == 0 {
					return true
				}
				open = true`, `return true`, "online: an empty Dequeue is right as soon as few messages were left"},
	{"linearizability/fifo_online.go", `late = late || a.first != nil && a.first.inv > p.at
`, ``, "online: a delivery that began later may explain an empty queue"},
	{"linearizability/fifo.go", `if ended != nil && ended.in() < m.send.inv {`, `if false {`, "sequence numbers need not agree with real time"},
	{"linearizability/fifo.go", `case proof == nil || proof.inv < m.send.end:`, `case proof == nil:`, "an empty reply before the acknowledgement proves a loss"},
}}

var queueChecker = Checker{"work queue", []string{"linearizability"}, "^TestWorkQueue", []Mutant{
	{"linearizability/queue.go", `at = max(at, s.until)`, `at = max(at, 0)`, "leases do not last"},
	{"linearizability/queue.go", `if op.outcome == histories.OK && at > op.endTime {`, `if op.outcome == histories.OK && at >= op.endTime {`, "a lease may not end with the very next delivery"},
	{"linearizability/queue.go", `r.process == op.process && r.end < op.inv {`, `r.end < op.inv {`, "anybody may give a lease back"},
	{"linearizability/queue.go", `case op.of != s.holder:
`, `case false:
`, "whoever lost the lease may still give it back"},
	{"linearizability/queue.go", `s.until = at + term
	default:`, `s.until = op.endTime + term
	default:`, "an extension begins when it is answered"},
	{"linearizability/queue.go", `op.Do == histories.Ack && op.outcome == histories.OK && op.end < r.inv`, `op.Do == histories.Ack && op.end < r.inv`, "an acknowledgement of unknown outcome forbids redelivery"},
	{"linearizability/queue.go", `if op.outcome == histories.OK {
			must |= 1 << i`, `if op.outcome != histories.Fail {
			must |= 1 << i`, "operations of unknown outcome must have happened"},
	{"linearizability/queue.go", `op.inv > first {
				continue`, `op.inv > forever {
				continue`, "operations may take effect before they began"},
	{"linearizability/queue.go", `float64(s.Number) * (1 - r.drift)`, `float64(s.Number) * (1 + r.drift)`, "drift lengthens the leases that the queue must keep"},
	{"linearizability/queue.go", `a.holder == b.holder && a.until <= b.until && a.at <= b.at`, `a.holder == b.holder && a.until >= b.until && a.at <= b.at`, "of two states the one with the longer lease is kept"},
	{"linearizability/queue.go", `case len(p.sends) == 0 || p.sends[0].inv > r.end:`, `case len(p.sends) == 0:`, "a message may be received before it was sent"},
	{"linearizability/queue.go", `c.drain != 0 && e.inv > c.drain`, `c.drain != 0`, "an empty reply before the drain proves a loss"},
	{"linearizability/queue_online.go", `			i.deleted(k, s)
		}
		m.forget`, `		}
		m.forget`, "online: who lost the lease cannot delete a message"},
	{"linearizability/queue_online.go", `if i.free > now {`, `if false {`, "online: somebody else's lease is forgotten with the message"},
	{"linearizability/queue_online.go", `		void = min(void, k.open[0].inv)
`, ``, "online: an extension is not made void by a receive that is open"},
	{"linearizability/queue_online.go", `if op.end <= k.void && !slices.Contains(k.doubtful, i) {`, `if false {`, "online: a message that was in doubt is not judged again"},
	{"linearizability/queue_online.go", `		i.acked = s
		k.ended`, `		k.ended`, "online: deletion is forgotten"},
	{"linearizability/queue_online.go", `case i.acked != nil && i.acked.end < s.inv:`, `case i.acked != nil:`, "online: a receive that overlaps the deletion comes after it"},
	{"linearizability/queue_online.go", `	k.void = min(k.void, s.inv)
		return`, `	return`, "online: a receive of unknown outcome makes no extension void"},
	{"linearizability/queue_online.go", `if m.drain != 0 && s.inv > m.drain && (k.empty`, `if s.inv > m.drain && (k.empty`, "online: an empty reply proves a loss without a drain"},
	{"linearizability/queue_online.go", `if i.received || i.send == nil`, `if i.send == nil`, "online: what was handed out is lost"},
	{"linearizability/queue_online.go", `return op.ret() > inv && op.outcome != histories.Info })`, `return false })`, "online: states are moved over operations that are open"},
	{"linearizability/queue_online.go", `	m.handed(s)
	k.longest = max(k.longest, time.Duration(s.Number))`, `	m.handed(s)`, "online: the longest lease is not known"},
}}

var groupChecker = Checker{"consumer groups", []string{"linearizability"}, "^TestGroup", []Mutant{
	{"linearizability/groups.go", `k.given.add(0, ev.Offset-1)`, `k.given.add(0, ev.Offset-2)`, "the last trimmed offset is due"},
	{"linearizability/groups.go", `newer.end < s.inv && newer.process != s.process {`, `newer.inv < s.inv && newer.process != s.process {`, "commits that overlap are fenced"},
	{"linearizability/groups.go", `if e.generation > 0 && e.generation == s.Number && e.rival == nil {`, `if e.generation > 0 && e.rival == nil {`, "owners of different generations are rivals"},
	{"linearizability/groups.go", `if r := e.rival; r != nil && r.end < s.inv {`, `if r := e.rival; r != nil {`, "a poll that overlaps the other's assignment shows two owners"},
	{"linearizability/groups.go", `if k.committed == 0 || k.committed > s.inv { // the reset`, `if false { // the reset`, "where the reset policy lets an owner begin counts as skipped"},
	{"linearizability/groups.go", `m.missing(k, k.base, s.Offset-1)
		if k.marks`, `m.missing(k, k.base, s.Offset)
		if k.marks`, "a commit gives up the offset that it names"},
	{"linearizability/groups.go", `c.outcome == histories.OK && c.end < s.inv && (last == nil`, `c.outcome == histories.OK && (last == nil`, "commits that overlap a look-up must be found by it"},
	{"linearizability/groups.go", `k.unknown != nil && k.unknown.Offset <= s.Offset {`, `false {`, "commits of unknown outcome are ignored"},
	{"linearizability/groups.go", `e.next >= 0 && s.Offset > e.next {`, `e.next >= 0 && s.Offset > e.next+1 {`, "one skipped offset is overlooked"},
	{"linearizability/groups.go", `		e.next = end
`, ``, "the position of a member does not move"},
	{"linearizability/groups.go", `		delete(k.epochs, s.process)
`, ``, "who gave a partition up still owns it"},
	{"linearizability/groups.go", `a.add(ev.Offset, ev.Offset+n-1)`, `a.add(ev.Offset, ev.Offset+n)`, "an append acknowledges one record too many"},
}}
