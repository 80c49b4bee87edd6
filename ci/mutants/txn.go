package main

var txnChecker = Checker{"transactions", []string{"linearizability"}, "^Test(Transaction|Torn)", []Mutant{
	// Versions.
	{"linearizability/txn_order.go", `if s.does == appends && s.at >= 0 {
				x.committed = true`, `if s.does == appends && s.at >= 0 && false {
				x.committed = true`, "transactions of unknown outcome are ignored although they were read"},
	{"linearizability/txn_order.go", `if s == none || t.all[t.steps[s].txn].outcome != histories.Fail {`, `if s == none || t.all[t.steps[s].txn].outcome == histories.OK {`, "reading from a transaction of unknown outcome is an aborted read"},
	{"linearizability/txn_order.go", `if s == none || !t.steps[s].again {`, `if true {`, "intermediate reads are overlooked"},
	{"linearizability/txn_order.go", `case x.seen >= 0 && s.at != x.seen+x.own:`, `case x.seen >= 0 && s.at < x.seen+x.own:`, "a transaction may see more than it had seen before"},
	{"linearizability/txn_order.go", `} else if other != n {
					version`, `} else if false {
					version`, "lost updates are overlooked"},
	{"linearizability/txn_order.go", `for _, does := range [...]txnDoes{finds, appends} {`, `for _, does := range [...]txnDoes{appends, finds} {`, "who was told is believed before who read"},
	{"linearizability/txn_order.go", `case x.order[at] != s.value:`, `case x.order[at] > s.value:`, "half of the disagreements about an offset are overlooked"},

	// Edges.
	{"linearizability/txn_graph.go", `b.edge(before[int64(t.objects[s.key].base)+s.at-1], int32(n), writeRead)`, `b.edge(before[int64(t.objects[s.key].base)], int32(n), writeRead)`, "a read depends on the first version"},
	{"linearizability/txn_graph.go", `past(int32(n), s.key, s.at)
			case finds:`, `past(int32(n), s.key, s.at+1)
			case finds:`, "a read misses the version after the next"},
	{"linearizability/txn_graph.go", `b.edge(before[int(x.base)+i-1], t.writer[int(x.base)+i], writeWrite)`, `b.edge(t.writer[int(x.base)+i-1], t.writer[int(x.base)+i], writeWrite)`, "an aborted version breaks the chain of writes"},
	{"linearizability/txn_graph.go", `after[i] = after[i+1]`, `after[i] = none`, "an aborted version ends what a read has missed"},
	{"linearizability/txn_graph.go", `t.all[t.ended[j]].end < t.all[n].inv; j++ {`, `t.all[t.ended[j]].inv < t.all[n].inv; j++ {`, "transactions that overlap have an order in time"},
	{"linearizability/txn_graph.go", `b.edge(x.before, int32(n), inProcess)`, `b.edge(none, int32(n), inProcess)`, "the order of a process is ignored"},
	{"linearizability/txn_graph.go", `b.edge(node, next, onwards)`, `b.edge(none, next, onwards)`, "the chain of time is cut"},
	{"linearizability/txn_graph.go", `	source(writer, writeWrite)
`, ``, "an unseen append need not come after the last writer"},
	{"linearizability/txn_graph.go", `b.edge(n, from[i+1], kind[n])`, `b.edge(n, from[i], kind[n])`, "a transaction must come before itself"},

	// Components and cycles.
	{"linearizability/txn_graph.go", `low[parent] = min(low[parent], low[v])`, `low[parent] = min(low[parent], index[v])`, "what a node reaches is not handed up"},
	{"linearizability/txn_graph.go", `if low[w] > unseen {`, `if true {`, "closed components are joined again"},
	{"linearizability/txn_graph.go", `as -= many`, `as--`, "all components count as one"},
	{"linearizability/txn_cycle.go", `edgeInto(2*to+1, k)`, `edgeInto(2*to, k)`, "snapshot isolation forbids neighbouring anti-dependencies"},
	{"linearizability/txn_cycle.go", `edgeInto(2*to+i%2, k)`, `edgeInto(2*to, k)`, "behind a node that stands for several an anti-dependency is forgotten"},
	{"linearizability/txn_cycle.go", `if class.level < t.options.Level {`, `if class.level > t.options.Level {`, "levels look for each other's cycles"},
	{"linearizability/txn_cycle.go", `case misses == 1:`, `case misses <= 2:`, "G2-item is called G-single"},

	// Torn transactions.
	{"linearizability/txn_torn.go", `x.inv <= t.drain {`, `x.inv <= 0 {`, "every read counts as final"},
	{"linearizability/txn_torn.go", `s.at >= 0 && s.at < until[s.key]:`, `s.at >= 0:`, "records behind the furthest read count as missing"},
	{"linearizability/txn_torn.go", `case unknown > 0:`, `case unknown > 1:`, "one record that may be missing is no reason to doubt"},
	{"linearizability/txn_torn.go", `if !x.committed {
			continue`, `if x.outcome != histories.OK {
			continue`, "only acknowledged transactions can be torn"},
}}
