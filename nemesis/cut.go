package nemesis

import (
	"math/rand/v2"
	"slices"
)

// Lanes are what the cut holds when it is drawn round the targets. against are the nodes that Against names, nodes are all nodes in the order of their ids; pick
// decides what the shape leaves open.
func (c Cut) Lanes(targets, against, nodes, clients []int, pick *rand.Rand) []Lane {
	lanes := c.lanes(targets, against, nodes, clients, pick)
	for i := range lanes {
		lanes[i].Plane = c.Plane
	}
	return lanes
}

func (c Cut) lanes(targets, against, nodes, clients []int, pick *rand.Rand) []Lane {
	inside, others := map[int]bool{}, []int(nil)
	for _, t := range targets {
		inside[t] = true
	}
	for _, n := range nodes {
		if !inside[n] && (c.Against == "" || slices.Contains(against, n)) {
			others = append(others, n)
		}
	}
	var out []Lane
	between := func(as, bs []int, ab, ba bool) {
		for _, a := range as {
			for _, b := range bs {
				if ab {
					out = append(out, Flow(NodeParty(a), NodeParty(b))...)
				}
				if ba {
					out = append(out, Flow(NodeParty(b), NodeParty(a))...)
				}
			}
		}
	}
	switch c.Shape {
	case Isolate:
		between(targets, others, true, true)
	case OneWayOut:
		between(targets, others, true, false)
	case OneWayIn:
		between(targets, others, false, true)
	case Bridge:
		order := shuffled(others, pick)
		between(order[:len(order)/2], order[len(order)/2:], true, true)
	case Ring:
		for _, p := range ringCuts(len(nodes)) {
			order := append(append([]int(nil), targets...), others...)
			between([]int{order[p[0]]}, []int{order[p[1]]}, true, true)
		}
	case FollowerWeb:
		for i, t := range targets {
			between([]int{t}, targets[i+1:], true, true)
		}
	case DialIn:
		for _, o := range others {
			for _, t := range targets {
				out = append(out, Lane{Dialer: NodeParty(o), Acceptor: NodeParty(t)}, Lane{Dialer: NodeParty(o), Acceptor: NodeParty(t), Back: true})
			}
		}
	}
	cut := c.Clients
	if c.Shape == ClientLink && len(cut) == 0 {
		for i := 0; i < len(clients); i += 2 {
			cut = append(cut, clients[i])
		}
	}
	for _, k := range cut {
		for _, t := range targets { // nodes do not dial clients: one link has both directions
			if c.Shape != OneWayOut && !c.Answers {
				out = append(out, Lane{Dialer: ClientParty(k), Acceptor: NodeParty(t)})
			}
			if c.Shape != OneWayIn {
				out = append(out, Lane{Dialer: ClientParty(k), Acceptor: NodeParty(t), Back: true})
			}
		}
	}
	return out
}

// ringCuts are the pairs of places on a ring of n that lose each other, so that everybody sees just a majority made of his nearest
// neighbours, and no two the same one. Below 4 there is no such ring: one pair is cut.
func ringCuts(n int) [][2]int {
	if n < 4 {
		return [][2]int{{0, 1}}
	}
	reach := (n/2 + 1) / 2 // neighbours to each side: 2·reach + 1 ≥ n/2 + 1
	var cuts [][2]int
	for a := range n {
		for b := a + 1; b < n; b++ {
			if min(b-a, n-b+a) > reach {
				cuts = append(cuts, [2]int{a, b})
			}
		}
	}
	return cuts
}

func shuffled(ids []int, pick *rand.Rand) []int {
	out := append([]int(nil), ids...)
	pick.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}
