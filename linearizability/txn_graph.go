package linearizability

import (
	"slices"

	"ackproof/histories"
)

// dependency is the kind of an edge of the graph of transactions.
type dependency uint8

const (
	writeWrite dependency = iota // the next version is the other's
	writeRead                    // the other read it
	readWrite                    // the other wrote the next version after what was read
	inProcess                    // the same process went on with the other
	inTime                       // it had ended before the other began
	onwards                      // out of a node that stands for several: the kind is that of the edge into it
)

// kinds is a set of dependencies.
type dependencies uint8

func (d dependency) set() dependencies { return 1 << d }

// txnGraph is a directed graph with kinds on its edges, in compressed rows. Nodes below real are transactions; the others stand for several edges.
type txnGraph struct {
	real  int32
	start []int32  // node → its first edge, and one more
	to    []uint32 // node<<3 | kind
}

// edge is one edge while a graph is built.
type txnEdge struct {
	from int32
	to   uint32
}

func edgeTo(from, to int32, d dependency) txnEdge { return txnEdge{from, edgeInto(to, d)} }
func edgeInto(to int32, d dependency) uint32      { return uint32(to)<<3 | uint32(d) }

// target and kind take an edge apart.
func target(e uint32) int32          { return int32(e >> 3) }
func kindOfEdge(e uint32) dependency { return dependency(e & 7) }

// newTxnGraph sorts edges into rows.
func newTxnGraph(nodes, real int32, edges []txnEdge) *txnGraph {
	g := &txnGraph{real: real, start: make([]int32, nodes+1), to: make([]uint32, len(edges))}
	for _, e := range edges {
		g.start[e.from+1]++
	}
	for i := range nodes {
		g.start[i+1] += g.start[i]
	}
	fill := slices.Clone(g.start[:nodes])
	for _, e := range edges {
		g.to[fill[e.from]] = e.to
		fill[e.from]++
	}
	return g
}

// emptyGraph has no nodes yet: each row is added to to, and ended with endRow.
func emptyGraph(nodes, edges int) *txnGraph {
	return &txnGraph{start: make([]int32, 1, nodes+1), to: make([]uint32, 0, edges)}
}

func (g *txnGraph) endRow() { g.start = append(g.start, int32(len(g.to))) }

func (g *txnGraph) nodes() int32 { return int32(len(g.start) - 1) }

func (g *txnGraph) edges(n int32) []uint32 { return g.to[g.start[n]:g.start[n+1]] }

// components finds the strongly connected components of at least two nodes (Tarjan, without recursion). Each is sorted.
func (g *txnGraph) components() [][]int32 {
	n := g.nodes()
	const unseen, closed = 0, -1
	low := make([]int32, n)   // unseen, the least number that can be reached, counted from 1, closed, or closed−i: closed in the i-th component, counted from 1
	index := make([]int32, n) // number of a node in the order of visits; next edge while it is on the path
	next := make([]int32, n)
	var path, stack []int32
	count, many := int32(0), int32(0)
	for root := range n {
		if low[root] != unseen || g.start[root] == g.start[root+1] {
			continue
		}
		path = append(path, root)
		for len(path) > 0 {
			v := path[len(path)-1]
			if low[v] == unseen {
				count++
				low[v], index[v], next[v] = count, count, g.start[v]
				stack = append(stack, v)
			}
			deeper := false
			for end := g.start[v+1]; next[v] < end; {
				w := target(g.to[next[v]])
				next[v]++
				if low[w] == unseen {
					if g.start[w] == g.start[w+1] { // a node without a way out is a component of its own
						low[w] = closed
						continue
					}
					path = append(path, w)
					deeper = true
					break
				}
				if low[w] > unseen {
					low[v] = min(low[v], low[w])
				}
			}
			if deeper {
				continue
			}
			path = path[:len(path)-1]
			if len(path) > 0 {
				parent := path[len(path)-1]
				low[parent] = min(low[parent], low[v])
			}
			if low[v] != index[v] {
				continue
			}
			from, as := len(stack)-1, int32(closed)
			if stack[from] != v {
				many++
				as -= many
			}
			for ; stack[from] != v; from-- {
				low[stack[from]] = as
			}
			low[v] = as
			stack = stack[:from]
		}
	}
	return gather(low, closed, many)
}

// gather gives the nodes of each of so many components, the i-th of which is marked as closed−i: sorted, and by the least of each.
func gather(marks []int32, closed, many int32) [][]int32 {
	size, place := make([]int32, many+1), make([]int32, many+1)
	for _, m := range marks {
		if m < closed {
			size[closed-m]++
		}
	}
	found := make([][]int32, 0, many)
	for n, m := range marks {
		if m >= closed {
			continue
		}
		i := closed - m
		if place[i] == 0 {
			found = append(found, make([]int32, 0, size[i]))
			place[i] = int32(len(found))
		}
		c := &found[place[i]-1]
		*c = append(*c, int32(n))
	}
	return found
}

// part is the graph within some nodes, which are numbered anew in their order, transactions first.
func (g *txnGraph) part(nodes []int32) *txnGraph {
	if int32(len(nodes)) == g.nodes() {
		return g
	}
	number := numbering(nodes, g.nodes())
	p := emptyGraph(len(nodes), 0)
	for _, n := range nodes {
		if n < g.real {
			p.real++
		}
		for _, e := range g.edges(n) {
			if to := number(target(e)); to != none {
				p.to = append(p.to, edgeInto(to, kindOfEdge(e)))
			}
		}
		p.endRow()
	}
	return p
}

// numbering finds the place of a node among some, −1 if it is not one of them: by a map where they are few, else by an array.
func numbering(nodes []int32, of int32) func(int32) int32 {
	if int32(len(nodes)) < of/16 {
		number := make(map[int32]int32, len(nodes))
		for i, n := range nodes {
			number[n] = int32(i)
		}
		return func(n int32) int32 {
			if i, ok := number[n]; ok {
				return i
			}
			return none
		}
	}
	number := slices.Repeat([]int32{none}, int(of))
	for i, n := range nodes {
		number[n] = int32(i)
	}
	return func(n int32) int32 { return number[n] }
}

// withProcesses adds the order of processes to a component, as a chain for each: so a short cycle remains short however much its process did in between. What lies between
// two transactions of a component in the order of their process belongs to it too.
func (t *transactions) withProcesses(g *txnGraph, nodes []int32) *txnGraph {
	number := numbering(nodes[:g.real], int32(len(t.all)))
	edges := make([]txnEdge, 0, len(g.to)+3*int(g.real))
	for n := range g.nodes() {
		for _, e := range g.edges(n) {
			if kindOfEdge(e) != inProcess {
				edges = append(edges, txnEdge{n, e})
			}
		}
	}
	after := g.nodes() // after+n is the place in the chain behind n
	for n, original := range nodes[:g.real] {
		n := int32(n)
		edges = append(edges, edgeTo(n, after+n, inProcess))
		if before := t.all[original].before; before != none && number(before) != none {
			edges = append(edges, edgeTo(after+number(before), n, onwards), edgeTo(after+number(before), after+n, onwards))
		}
	}
	return newTxnGraph(g.nodes()+g.real, g.real, edges)
}

// graph builds the graph of the transactions. guess puts appends that nobody read in some order, that of their invocations.
func (t *transactions) graph(guess bool) *txnGraph {
	b := &txnBuilder{t: t, nodes: int32(len(t.all)), guess: guess}
	b.edges = make([]txnEdge, 0, 2*len(t.steps)+3*len(t.all))
	b.versions()
	t.dependencies = int64(len(b.edges))
	switch {
	case t.options.Level == StrictSerializable: // which includes the order of processes
		b.time()
	case t.options.Sessions:
		b.processes()
	}
	return newTxnGraph(b.nodes, int32(len(t.all)), b.edges)
}

type txnBuilder struct {
	t     *transactions
	nodes int32
	edges []txnEdge
	guess bool
}

func (b *txnBuilder) edge(from, to int32, d dependency) {
	if from != none && to != none && from != to {
		b.edges = append(b.edges, edgeTo(from, to, d))
	}
}

func (b *txnBuilder) node() int32 {
	b.nodes++
	return b.nodes - 1
}

// versions adds what follows from the order of versions: who wrote the next one, who read one, who read one and not the next.
func (b *txnBuilder) versions() {
	t := b.t
	// before and after: the writer that counts at a version or the next below it, and at a version or the next above it. They differ from the writer
	// only where a version was written by nobody or by a transaction that was aborted.
	before, after := t.writer, t.writer
	if slices.Contains(t.writer, none) {
		before, after = slices.Clone(t.writer), slices.Clone(t.writer)
		for k := range t.objects {
			from, to := int(t.objects[k].base), int(t.objects[k].base)+len(t.objects[k].order)
			for i := from + 1; i < to; i++ {
				if before[i] == none {
					before[i] = before[i-1]
				}
			}
			for i := to - 2; i >= from; i-- {
				if after[i] == none {
					after[i] = after[i+1]
				}
			}
		}
	}
	ordered := !(t.logs && t.options.Interleaved)
	if ordered {
		for k := range t.objects {
			x := &t.objects[k]
			for i := 1; i < len(x.order); i++ {
				if t.writer[int(x.base)+i] != none {
					b.edge(before[int(x.base)+i-1], t.writer[int(x.base)+i], writeWrite)
				}
			}
		}
	}
	last := make([][]int32, len(t.objects)) // of each object, who read it to the last version that anybody saw
	past := func(n, k int32, seen int64) {
		x := &t.objects[k]
		if seen < int64(len(x.order)) {
			if w := after[int64(x.base)+seen]; w != none {
				b.edge(n, w, readWrite)
				return
			}
		}
		if m := len(last[k]); m == 0 || last[k][m-1] != n {
			last[k] = append(last[k], n)
		}
	}
	for n := range t.all {
		if t.all[n].outcome != histories.OK {
			continue
		}
		for i := t.all[n].first; i < t.all[n].first+t.all[n].steps; i++ {
			s := &t.steps[i]
			switch s.does {
			case reads:
				if s.at > 0 {
					b.edge(before[int64(t.objects[s.key].base)+s.at-1], int32(n), writeRead)
				}
				past(int32(n), s.key, s.at)
			case finds:
				b.edge(t.writer[int64(t.objects[s.key].base)+s.at], int32(n), writeRead)
				if ordered && t.options.WholeReads && !t.goesOn(int32(n), i) {
					past(int32(n), s.key, s.at+1)
				}
			case nothing:
				if ordered && s.at >= 0 {
					past(int32(n), s.key, s.at)
				}
			}
		}
	}
	if ordered {
		for k := range t.objects {
			b.unseen(&t.objects[k], last[k], before)
		}
	}
}

// unseen adds that appends which committed and which nobody saw come after everything that anybody saw: after the last version, and after those
// who read up to it. One node in the middle saves the product of their numbers. A transaction that is on both sides must not come after itself, so it
// goes round: the ones on both sides stand in a row, with nodes that lead to all of them up to a place and to all from a place on.
//
//	last writer, readers ──► all ──► rest ──► appends of others
//	                          └────► up to the last in the row
//	the i-th in the row ──► rest, up to i−1, from i+1
func (b *txnBuilder) unseen(x *txnObject, readers, before []int32) {
	t := b.t
	var sinks []int32
	for _, s := range x.appends {
		if n := t.steps[s].txn; t.steps[s].at < 0 && t.all[n].committed && t.steps[s].does == appends {
			sinks = append(sinks, n)
		}
	}
	if t.logs && !t.options.WholeReads {
		sinks = nil // a record without an offset may stand where nobody looked
	}
	if len(sinks) == 0 {
		return
	}
	slices.Sort(sinks)
	sinks = slices.Compact(sinks)
	if b.guess {
		for i := 1; i < len(sinks); i++ {
			b.edge(sinks[i-1], sinks[i], writeWrite)
		}
	} else if len(sinks) > 1 && t.hidden == nil {
		t.hidden = x
	}
	writer := none
	if n := len(x.order); n > 0 {
		writer = before[int(x.base)+n-1]
	}
	var row, others []int32
	kind := make(map[int32]dependency)
	for _, n := range sinks {
		if _, reader := slices.BinarySearch(readers, n); reader || n == writer {
			kind[n] = readWrite
			if n == writer {
				kind[n] = writeWrite
			}
			row = append(row, n)
		} else {
			others = append(others, n)
		}
	}
	all, rest := b.node(), b.node()
	b.edge(all, rest, onwards)
	for _, n := range others {
		b.edge(rest, n, onwards)
	}
	source := func(n int32, d dependency) {
		if _, both := kind[n]; n != none && !both {
			b.edge(n, all, d)
		}
	}
	source(writer, writeWrite)
	for _, n := range readers {
		if n != writer {
			source(n, readWrite)
		} else {
			source(n, writeWrite)
		}
	}
	upTo, from := make([]int32, len(row)), make([]int32, len(row))
	for i, n := range row {
		upTo[i], from[i] = b.node(), b.node()
		b.edge(upTo[i], n, onwards)
		b.edge(from[i], n, onwards)
		if i > 0 {
			b.edge(upTo[i], upTo[i-1], onwards)
			b.edge(from[i-1], from[i], onwards)
		}
	}
	for i, n := range row {
		b.edge(n, rest, kind[n])
		if i > 0 {
			b.edge(n, upTo[i-1], kind[n])
		}
		if i+1 < len(row) {
			b.edge(n, from[i+1], kind[n])
		}
	}
	if len(row) > 0 {
		b.edge(all, upTo[len(row)-1], onwards)
	}
}

// time adds real time: a chain of nodes, one for each stretch of completions without an invocation between them. Who ended leads into the chain, and the chain
// leads to who began after it.
func (b *txnBuilder) time() {
	t := b.t
	node, j := none, 0
	for n := range t.all {
		fresh := false
		for ; j < len(t.ended) && t.all[t.ended[j]].end < t.all[n].inv; j++ {
			if !fresh {
				next := b.node()
				b.edge(node, next, onwards)
				node, fresh = next, true
			}
			b.edge(t.ended[j], node, inTime)
		}
		if t.all[n].committed {
			b.edge(node, int32(n), onwards)
		}
	}
}

// processes adds the order of each process.
func (b *txnBuilder) processes() {
	for n := range b.t.all {
		if x := &b.t.all[n]; x.committed {
			b.edge(x.before, int32(n), inProcess)
		}
	}
}
