package group

import (
	"bytes"
	"cmp"
	"slices"
)

// parts is a set of partitions, in ascending order and without repeats. Immutable once it is stored somewhere.
type parts []part

func comparePart(a, b part) int {
	if c := bytes.Compare(a.topic[:], b.topic[:]); c != 0 {
		return c
	}
	return cmp.Compare(a.index, b.index)
}

// sorted makes a set of a list, in place.
func (p parts) sorted() parts {
	slices.SortFunc(p, comparePart)
	return slices.Compact(p)
}

func (p parts) has(x part) bool {
	_, found := slices.BinarySearchFunc(p, x, comparePart)
	return found
}

// where gives the members of the set that keep accepts.
func (p parts) where(keep func(part) bool) parts {
	var out parts
	for _, x := range p {
		if keep(x) {
			out = append(out, x)
		}
	}
	return out
}

func (p parts) and(q parts) parts { return p.where(q.has) }

func (p parts) minus(q parts) parts { return p.where(func(x part) bool { return !q.has(x) }) }

func (p parts) or(q parts) parts { return append(slices.Clone(p), q...).sorted() }

func (p parts) equal(q parts) bool { return slices.Equal(p, q) }

// ofTopic is a topic's part of a set.
type ofTopic struct {
	id      [16]byte
	indexes []int32
}

func (p parts) byTopic() []ofTopic {
	var out []ofTopic
	for _, x := range p {
		if len(out) == 0 || out[len(out)-1].id != x.topic {
			out = append(out, ofTopic{id: x.topic})
		}
		last := &out[len(out)-1]
		last.indexes = append(last.indexes, x.index)
	}
	return out
}
