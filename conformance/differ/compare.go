package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

type key struct {
	at
	version int16
}

func index(s *system) map[key]string {
	all := make(map[key]string, len(s.asked))
	for _, a := range s.asked {
		all[key{a.at, a.version}] = a.value
	}
	return all
}

// difference is a field that is not the same, in some versions.
type difference struct {
	at
	ours, theirs string // "" where that one has not got it
	versions     []int16
	reason       string
}

func (d *difference) String() string {
	text := fmt.Sprintf("%s / %s, %s: %s: ours %s, theirs %s", d.which, d.step, inWords(d.versions), cmp.Or(d.path, "answer"), cmp.Or(d.ours, "(absent)"), cmp.Or(d.theirs, "(absent)"))
	if d.reason != "" {
		text += ": " + d.reason
	}
	return text
}

// inWords says v1, v3 to v5.
func inWords(versions []int16) string {
	var parts []string
	for i := 0; i < len(versions); {
		j := i
		for j+1 < len(versions) && versions[j+1] == versions[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, fmt.Sprintf("v%d", versions[i]))
		} else {
			parts = append(parts, fmt.Sprintf("v%d to v%d", versions[i], versions[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}

// compare gives what differs between two systems that were asked the same; of fields below a part that only one has, only the part.
func compare(ours, theirs *system, prefix string) []*difference {
	a, b := index(ours), index(theirs)
	type same struct {
		at
		ours, theirs string
	}
	found := map[same]*difference{}
	all := maps.Clone(a)
	maps.Copy(all, b)
	inA, inB := steps(a), steps(b)
	for k := range all {
		if a[k] == b[k] || !strings.HasPrefix(k.which, prefix) {
			continue
		}
		step := key{at{k.which, k.step, ""}, k.version}
		if !inA[step] || !inB[step] {
			k.path = "(the step)"
			if _, done := found[same{k.at, mark(inA[step]), mark(inB[step])}]; done && slices.Contains(found[same{k.at, mark(inA[step]), mark(inB[step])}].versions, k.version) {
				continue
			}
			add(found, same{k.at, mark(inA[step]), mark(inB[step])}, k, mark(inA[step]), mark(inB[step]))
			continue
		}
		if !within(a, k) || !within(b, k) {
			continue // the element that only one has is enough
		}
		add(found, same{k.at, a[k], b[k]}, k, a[k], b[k])
	}
	list := slices.Collect(maps.Values(found))
	for _, d := range list {
		slices.Sort(d.versions)
	}
	slices.SortFunc(list, func(x, y *difference) int {
		return cmp.Or(cmp.Compare(x.which, y.which), cmp.Compare(x.step, y.step), cmp.Compare(x.path, y.path), cmp.Compare(x.versions[0], y.versions[0]))
	})
	return list
}

// within tells whether all elements round a field are there.
func within(all map[key]string, k key) bool {
	for i, c := range k.path {
		if c != ']' || i == len(k.path)-1 {
			continue
		}
		if all[key{at{k.which, k.step, k.path[:i+1]}, k.version}] == "" {
			return false
		}
	}
	return true
}

func add[K comparable](found map[K]*difference, s K, k key, ours, theirs string) {
	d := found[s]
	if d == nil {
		d = &difference{at: k.at, ours: ours, theirs: theirs}
		found[s] = d
	}
	d.versions = append(d.versions, k.version)
}

func mark(asked bool) string {
	if asked {
		return "asked"
	}
	return "not asked"
}

// steps gives the steps that were gone, with an empty path.
func steps(all map[key]string) map[key]bool {
	gone := map[key]bool{}
	for k := range all {
		gone[key{at{k.which, k.step, ""}, k.version}] = true
	}
	return gone
}

func answers(s *system) int { return len(steps(index(s))) }
