package nemesis

import (
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"
)

// blocked writes lanes as "dialer>acceptor", "<" for the way back, sorted.
func blocked(lanes []Lane) []string {
	var out []string
	for _, l := range lanes {
		dir := ">"
		if l.Back {
			dir = "<"
		}
		out = append(out, l.Dialer.String()+dir+l.Acceptor.String())
	}
	sort.Strings(out)
	return slices.Compact(out)
}

func TestShapes(t *testing.T) {
	three, four, five := []int{1, 2, 3}, []int{1, 2, 3, 4}, []int{1, 2, 3, 4, 5}
	clients := []int{1, 2, 3, 4}
	for _, c := range []struct {
		name    string
		cut     Cut
		targets []int
		nodes   []int
		want    string // dialer > acceptor: forward lanes, < back lanes
	}{
		{"isolate", Cut{Shape: Isolate}, []int{1}, three, "n1<n2 n1<n3 n1>n2 n1>n3 n2<n1 n2>n1 n3<n1 n3>n1"},
		{"isolate two", Cut{Shape: Isolate}, []int{1, 2}, three, "n1<n3 n1>n3 n2<n3 n2>n3 n3<n1 n3<n2 n3>n1 n3>n2"},
		{"isolate with clients", Cut{Shape: Isolate, Clients: []int{2}}, []int{3}, []int{2, 3}, "c2<n3 c2>n3 n2<n3 n2>n3 n3<n2 n3>n2"},
		{"out", Cut{Shape: OneWayOut, Clients: []int{4}}, []int{1}, three, "c4<n1 n1>n2 n1>n3 n2<n1 n3<n1"},
		{"answers", Cut{Shape: ClientLink, Clients: []int{4}, Answers: true}, []int{1}, three, "c4<n1"},
		{"in", Cut{Shape: OneWayIn, Clients: []int{4}}, []int{1}, three, "c4>n1 n1<n2 n1<n3 n2>n1 n3>n1"},
		{"dial-in", Cut{Shape: DialIn}, []int{2}, three, "n1<n2 n1>n2 n3<n2 n3>n2"},
		{"follower-web", Cut{Shape: FollowerWeb}, []int{2, 3}, three, "n2<n3 n2>n3 n3<n2 n3>n2"},
		{"bridge", Cut{Shape: Bridge}, []int{1}, three, "n2<n3 n2>n3 n3<n2 n3>n2"},
		{"client-link", Cut{Shape: ClientLink}, []int{1}, three, "c1<n1 c1>n1 c3<n1 c3>n1"},
		{"client-link, chosen", Cut{Shape: ClientLink, Clients: []int{2}}, []int{1}, three, "c2<n1 c2>n1"},
		{"ring of four", Cut{Shape: Ring}, []int{2}, four, "n1<n4 n1>n4 n2<n3 n2>n3 n3<n2 n3>n2 n4<n1 n4>n1"},
		{"ring of three", Cut{Shape: Ring}, []int{2}, three, "n1<n2 n1>n2 n2<n1 n2>n1"},
		{"ring of five", Cut{Shape: Ring}, []int{1}, five,
			"n1<n3 n1<n4 n1>n3 n1>n4 n2<n4 n2<n5 n2>n4 n2>n5 n3<n1 n3<n5 n3>n1 n3>n5 n4<n1 n4<n2 n4>n1 n4>n2 n5<n2 n5<n3 n5>n2 n5>n3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := blocked(c.cut.Lanes(c.targets, nil, c.nodes, clients, rand.New(rand.NewPCG(1, 1))))
			if strings.Join(got, " ") != c.want {
				t.Errorf("holds\n%s, expected\n%s", strings.Join(got, " "), c.want)
			}
		})
	}
}

// Everybody on a ring sees a majority, and no two the same one.
func TestRingMajorities(t *testing.T) {
	for n := 4; n <= 9; n++ {
		seen := map[string]int{}
		for a := range n {
			var sees []byte
			for b := range n {
				lost := slices.ContainsFunc(ringCuts(n), func(p [2]int) bool { return p == [2]int{min(a, b), max(a, b)} })
				if !lost {
					sees = append(sees, byte('0'+b))
				}
			}
			if len(sees) <= n/2 {
				t.Errorf("%d of %d sees only %s", a, n, sees)
			}
			if len(sees) == n {
				t.Errorf("%d of %d sees everybody", a, n)
			}
			if before, twice := seen[string(sees)]; twice {
				t.Errorf("%d and %d of %d see the same majority %s", before, a, n, sees)
			}
			seen[string(sees)] = a
		}
	}
}
