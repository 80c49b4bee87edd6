package linearizability

import (
	"fmt"
	"slices"
	"strings"

	"ackproof/model"
)

// circle is one class of cycles: what they are made of, and the edge without which they would belong to the class above.
type circle struct {
	of    dependencies
	need  dependency
	apart bool // no write-after-read follows another: the cycles that snapshot isolation forbids
	level Level
}

var circles = []circle{
	{writeWrite.set(), writeWrite, false, ReadCommitted},                                       // G0
	{writeWrite.set() | writeRead.set(), writeRead, false, ReadCommitted},                      // G1c
	{writeWrite.set() | writeRead.set() | readWrite.set(), readWrite, true, SnapshotIsolation}, // G-single, G-nonadjacent
	{writeWrite.set() | writeRead.set() | readWrite.set(), readWrite, false, Serializable},     // G2-item
}

const dependenciesOnly = dependencies(1<<writeWrite | 1<<writeRead | 1<<readWrite)

// cycle is a cycle of transactions; kinds[i] is that of the edge from txns[i] to the next.
type cycle struct {
	txns  []int32
	kinds []dependency
}

// anomaly names the cycle by its edges.
func (c cycle) anomaly() model.Anomaly {
	var reads, misses, neighbours int
	for i, k := range c.kinds {
		switch k {
		case writeRead:
			reads++
		case readWrite:
			misses++
			if c.kinds[(i+1)%len(c.kinds)] == readWrite {
				neighbours++
			}
		}
	}
	switch {
	case misses == 0 && reads == 0:
		return model.G0
	case misses == 0:
		return model.G1c
	case misses == 1:
		return model.GSingle
	case neighbours == 0:
		return model.GNonadjacent
	}
	return model.G2Item
}

// order is what the cycle needs beside dependencies: "", "-process" or "-realtime".
func (c cycle) order() string {
	switch {
	case slices.Contains(c.kinds, inTime):
		return "-realtime"
	case slices.Contains(c.kinds, inProcess):
		return "-process"
	}
	return ""
}

// cycles finds the cycles that break the level. The one pass over the whole graph finds the components; all else looks only inside them.
func (t *transactions) cycles() {
	g := t.graph(false)
	components := g.components()
	for _, nodes := range components {
		t.explain(g.part(nodes), nodes)
	}
	if t.options.Level == SnapshotIsolation && len(components) > 0 && t.hidden != nil {
		t.settleHidden()
	}
}

// explain names the cycles of one component: of dependencies alone if there are any, else with the order of processes, else with real time.
func (t *transactions) explain(g *txnGraph, nodes []int32) {
	orders := []dependencies{0}
	if t.options.Sessions || t.options.Level == StrictSerializable {
		orders = append(orders, inProcess.set())
		g = t.withProcesses(g, nodes)
	}
	if t.options.Level == StrictSerializable {
		orders = append(orders, inTime.set())
	}
	for _, order := range orders {
		var all *txnGraph // the view of the last class, in which every cycle is
		var cyclic [][]int32
		if len(orders) > 1 || t.options.Level <= Serializable {
			all = g.view(dependenciesOnly|order, false)
			if cyclic = all.components(); len(cyclic) == 0 {
				continue
			}
		}
		found := false
		var apart []int32 // of each node of the view of the third class its component
		for _, class := range circles {
			if class.level < t.options.Level {
				continue
			}
			v, components := all, cyclic
			if class.apart || class.of != dependenciesOnly {
				v = g.view(class.of|order, class.apart)
				components = v.components()
			}
			for _, c := range v.search(class, components, &apart) {
				for i, n := range c.txns {
					c.txns[i] = nodes[n]
				}
				found = true
				t.noteCycle(c)
			}
		}
		if found {
			return
		}
	}
}

// view is the graph with some edges only. If write-after-reads must keep apart each node is there twice: 2n is n reached otherwise, 2n+1 is n reached by a
// write-after-read, out of which no other leads. A closed walk of that graph is one in which no two of them follow each other.
func (g *txnGraph) view(of dependencies, apart bool) *txnGraph {
	of |= onwards.set()
	twice := int32(1)
	if apart {
		twice = 2
	}
	v := emptyGraph(int(twice*g.nodes()), int(twice)*len(g.to))
	v.real = twice * g.real
	for i := range twice * g.nodes() {
		for _, e := range g.edges(i / twice) {
			k := kindOfEdge(e)
			switch to := target(e); {
			case k.set()&of == 0:
			case !apart:
				v.to = append(v.to, e)
			case k == readWrite && i%2 == 0:
				v.to = append(v.to, edgeInto(2*to+1, k))
			case k == readWrite: // does not follow another
			case k == onwards:
				v.to = append(v.to, edgeInto(2*to+i%2, k))
			default:
				v.to = append(v.to, edgeInto(2*to, k))
			}
		}
		v.endRow()
	}
	return v
}

// searchBudget bounds the edges that are looked at for the shortest cycle of one kind in one component; the first search always ends.
const searchBudget = 4_000_000

// search finds one short cycle of a class in each component of its view that has one.
//
// The third class leaves in apart the component of each node of its view, from 1; the fourth passes over the write-after-reads within one of them.
func (g *txnGraph) search(class circle, components [][]int32, apart *[]int32) []cycle {
	var found []cycle
	if class.apart {
		*apart = make([]int32, g.nodes())
	}
	for number, nodes := range components {
		if class.apart {
			for _, n := range nodes {
				(*apart)[n] = int32(number + 1)
			}
		}
		c := g.part(nodes)
		original := func(n int32) int32 {
			if n = nodes[n]; class.apart {
				n /= 2
			}
			return n
		}
		var best cycle
		budget := searchBudget
		s := newShortest(c)
		for from := range c.nodes() {
			for _, e := range c.edges(from) {
				if kindOfEdge(e) != class.need {
					continue
				}
				if class.need == readWrite && !class.apart {
					if a := (*apart)[2*original(from)]; a != 0 && a == (*apart)[2*original(target(e))+1] {
						continue
					}
				}
				if budget < 0 {
					continue
				}
				limit := int32(1) << 30
				if best.txns != nil {
					limit = int32(len(best.txns))
				}
				path := s.search(from, e, limit, &budget)
				if path == nil {
					continue
				}
				var x cycle
				for _, p := range path {
					if p.node < c.real {
						x.txns = append(x.txns, original(p.node))
						x.kinds = append(x.kinds, p.out)
					}
				}
				if x = x.simple(); slices.Contains(x.kinds, class.need) && (best.txns == nil || len(x.txns) < len(best.txns)) {
					best = x
				}
			}
		}
		if best.txns != nil {
			found = append(found, best)
		}
	}
	return found
}

// simple cuts a walk in which write-after-reads keep apart down to one that meets no transaction twice. Of the two loops at a transaction that is met twice
// at least one keeps them apart too.
func (c cycle) simple() cycle {
	for i := 0; i < len(c.txns); i++ {
		for j := i + 1; j < len(c.txns); j++ {
			if c.txns[i] != c.txns[j] {
				continue
			}
			inner := cycle{c.txns[i:j:j], c.kinds[i:j:j]}
			outer := cycle{slices.Concat(c.txns[:i], c.txns[j:]), slices.Concat(c.kinds[:i], c.kinds[j:])}
			if inner.anomaly() != model.G2Item {
				return inner.simple()
			}
			return outer.simple()
		}
	}
	return c
}

// shortest looks for shortest paths in one graph, by the number of transactions.
type shortest struct {
	g     *txnGraph
	round int32
	seen  []int32 // the round in which a node was reached
	far   []int32
	back  []txnEdge // the edge by which it was reached, from the other side: its node, and kind
	queue [2][]int32
}

func newShortest(g *txnGraph) *shortest {
	n := g.nodes()
	return &shortest{g: g, seen: make([]int32, n), far: make([]int32, n), back: make([]txnEdge, n)}
}

type hop struct {
	node int32
	out  dependency
}

// search finds the shortest cycle through the edge e out of from, with fewer than limit transactions; nil if there is none.
func (s *shortest) search(from int32, e uint32, limit int32, budget *int) []hop {
	s.round++
	start := target(e)
	weight := func(n int32) int32 {
		if n < s.g.real {
			return 1
		}
		return 0
	}
	s.seen[start], s.far[start] = s.round, weight(start)
	now, later := append(s.queue[0][:0], start), s.queue[1][:0]
	for far := s.far[start]; len(now) > 0 && far < limit; far++ {
		for i := 0; i < len(now); i++ {
			n := now[i]
			if s.far[n] != far {
				continue
			}
			if n == from {
				s.queue = [2][]int32{now, later}
				var path []hop
				for at, out := from, kindOfEdge(e); ; {
					path = append(path, hop{at, out})
					if at == start {
						break
					}
					b := s.back[at]
					at, out = b.from, dependency(b.to)
				}
				slices.Reverse(path)
				return path
			}
			for _, e := range s.g.edges(n) {
				*budget--
				to := target(e)
				d := far + weight(to)
				if s.seen[to] == s.round && s.far[to] <= d {
					continue
				}
				s.seen[to], s.far[to], s.back[to] = s.round, d, txnEdge{n, uint32(kindOfEdge(e))}
				if d == far {
					now = append(now, to)
				} else {
					later = append(later, to)
				}
			}
		}
		now, later = later, now[:0]
	}
	s.queue = [2][]int32{now, later}
	return nil
}

// settleHidden looks whether snapshot isolation can do with the appends that nobody saw in some order. Their true order is not known; that of
// their invocations explains the history, or it stays undecided.
func (t *transactions) settleHidden() {
	if f := t.found; f[model.G0] != nil || f[model.G1c] != nil || f[model.GSingle] != nil || f[model.GNonadjacent] != nil || f[model.LostUpdate] != nil {
		return
	}
	g := t.graph(true)
	class, order := circles[2], dependencies(0)
	if t.options.Sessions {
		order = inProcess.set()
	}
	for _, nodes := range g.components() {
		if len(g.part(nodes).view(class.of|order, true).components()) > 0 {
			t.unordered = fmt.Sprintf("several committed appends to %q were read by nobody, so their order is not known, and with that of their invocations there would be an anomaly; a final read of it would settle it", t.hidden.name)
			return
		}
	}
}

// noteCycle notes a cycle under its name.
func (t *transactions) noteCycle(x cycle) {
	first := 0
	for i, n := range x.txns {
		if n < x.txns[first] {
			first = i
		}
	}
	x.txns = slices.Concat(x.txns[first:], x.txns[:first])
	x.kinds = slices.Concat(x.kinds[first:], x.kinds[:first])
	name := x.anomaly()
	var where []string
	for _, n := range x.txns {
		where = append(where, fmt.Sprint(t.op(n)))
		if len(where) == 8 && len(x.txns) > 9 {
			where = append(where, "…")
			break
		}
	}
	t.noteSized(name, strings.Join(where, "→"), len(x.txns), func(c *txnCertificate) {
		for _, n := range x.txns {
			c.op(n)
		}
		clauses := make([]string, len(x.txns))
		for i, n := range x.txns {
			clauses[i] = c.why(n, x.txns[(i+1)%len(x.txns)], x.kinds[i])
		}
		c.Sentence = strings.Join(clauses, "; ") + "; so each would have to come before itself (" + string(name) + x.order() + ")."
	})
}
