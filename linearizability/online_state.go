package linearizability

import (
	"slices"
	"sort"
)

const (
	onlineBlock  = 1024             // offsets under one hash
	onlineWindow = 16 * onlineBlock // offsets of which each record is known
)

// stamped is a record, by producer and sequence number.
type stamped struct {
	producer int32
	sequence int64
}

type slotState uint8

const (
	unheard slotState = iota
	held              // a record stands there
	vacant            // a read went past it without a record
)

// slot is what is known of one offset.
type slot struct {
	sequence int64
	producer int32
	state    slotState
	seen     bool // by a read, not by an acknowledgement alone
}

// watched is what Online knows of one partition.
type watched struct {
	number       int32
	reach        int64  // largest offset that a completed operation knew of, −1 none
	slots        []slot // of offsets [base, base+onlineWindow), offset k at k modulo onlineWindow; nil before the first
	base         int64  // a multiple of onlineBlock
	settled      int64  // offsets below were judged for order
	hashes       map[int64]uint64
	ends, starts stairs
}

func newWatched(number int32) *watched {
	return &watched{number: number, reach: -1, hashes: make(map[int64]uint64)}
}

func (p *watched) slot(k int64) *slot { return &p.slots[k%onlineWindow] }

// reachTo moves the window so that it holds an offset; leaving is given the offsets that leave it, in order.
func (p *watched) reachTo(offset int64, leaving func(from, to int64)) {
	block := offset - offset%onlineBlock
	if p.slots == nil {
		p.slots = make([]slot, onlineWindow)
		p.base = max(0, block-onlineWindow/2) // others may be a little behind
		p.settled = p.base
	}
	base := block - onlineWindow + onlineBlock
	if base <= p.base {
		return
	}
	end := min(base, p.base+onlineWindow)
	leaving(p.base, end)
	for from := p.base; from < end; from += onlineBlock {
		if sum, whole := p.sum(from); whole {
			p.hashes[from/onlineBlock] = sum
		}
		for k := from; k < from+onlineBlock; k++ {
			*p.slot(k) = slot{}
		}
	}
	p.base, p.settled = base, max(p.settled, base)
}

// sum is the hash of a block in the window; whole is false if the record of one of its offsets is not known.
func (p *watched) sum(from int64) (sum uint64, whole bool) {
	for k := from; k < from+onlineBlock; k++ {
		s := p.slot(k)
		if s.state != held {
			return 0, false
		}
		sum = mix(sum, stamped{s.producer, s.sequence})
	}
	return sum, true
}

// put notes the record of an offset. It answers true, and the other, if another is known to stand there.
func (p *watched) put(offset int64, v stamped, seen bool) (conflict bool, other slot) {
	if offset < p.base {
		return false, slot{}
	}
	s := p.slot(offset)
	switch {
	case s.state != held:
		*s = slot{v.sequence, v.producer, held, seen}
	case s.producer == v.producer && s.sequence == v.sequence:
		s.seen = s.seen || seen
	default:
		return true, *s
	}
	return false, slot{}
}

// void notes that a read went past [from, to) without a record.
func (p *watched) void(from, to int64) {
	if p.slots == nil {
		return
	}
	for k := max(from, p.base); k < min(to, p.base+onlineWindow); k++ {
		if s := p.slot(k); s.state == unheard {
			s.state = vacant
		}
	}
}

// agrees compares the hash of the block that ends at an offset with what was known of it, and keeps it if nothing was.
func (p *watched) agrees(last int64, sum uint64) bool {
	block := last / onlineBlock
	if last >= p.base {
		return true // compared one by one
	}
	known, ok := p.hashes[block]
	if !ok {
		p.hashes[block] = sum
	}
	return !ok || known == sum
}

// mix chains a record to a hash (splitmix64).
func mix(sum uint64, v stamped) uint64 {
	x := sum ^ uint64(v.sequence)*0x9e3779b97f4a7c15 ^ uint64(uint32(v.producer))<<32
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// chain is the hash of the block that a session is reading through.
type chain struct {
	next   int64
	sum    uint64
	active bool // since the block's first offset nothing was left out
}

// take adds a record; whole tells that it was the last of a block that was read from its first offset.
func (c *chain) take(offset int64, v stamped) (whole bool, sum uint64) {
	switch {
	case offset%onlineBlock == 0:
		*c = chain{active: true}
	case !c.active || offset != c.next:
		c.active = false
		return false, 0
	}
	c.sum, c.next = mix(c.sum, v), offset+1
	return offset%onlineBlock == onlineBlock-1, c.sum
}

type readerKey struct{ partition, session, process int32 }

// reader is what one session has seen.
type reader struct {
	next  int64
	end   uint64 // when its last read ended
	block chain
}

// generations keeps the sessions used last, between sessionsKept and twice as many.
type generations struct{ young, old map[readerKey]*reader }

const sessionsKept = 2048

func newGenerations() generations { return generations{young: make(map[readerKey]*reader)} }

func (g *generations) get(key readerKey) *reader {
	r := g.young[key]
	if r != nil {
		return r
	}
	if r = g.old[key]; r == nil {
		r = &reader{next: -1}
	}
	if len(g.young) == sessionsKept {
		g.old, g.young = g.young, make(map[readerKey]*reader)
	}
	g.young[key] = r
	return r
}

// spans is a set of numbers, as stretches [from, to) in order.
type spans []struct{ from, to int64 }

// at is the first stretch that ends behind n.
func (s spans) at(n int64) int {
	if k := len(s); k == 0 || s[k-1].to <= n { // the usual case: numbers rise
		return k
	}
	return sort.Search(len(s), func(i int) bool { return s[i].to > n })
}

func (s *spans) add(from, to int64) {
	if k := len(*s); k > 0 && (*s)[k-1].to == from { // the usual case: numbers rise
		(*s)[k-1].to = to
		return
	}
	i := sort.Search(len(*s), func(i int) bool { return (*s)[i].to >= from })
	j := i
	for j < len(*s) && (*s)[j].from <= to {
		from, to = min(from, (*s)[j].from), max(to, (*s)[j].to)
		j++
	}
	*s = slices.Replace(*s, i, j, struct{ from, to int64 }{from, to})
}

// covers tells whether all of [from, to) is in the set.
func (s spans) covers(from, to int64) bool {
	i := s.at(from)
	return i < len(s) && s[i].from <= from && to <= s[i].to
}

// meets tells whether any of [from, to) is.
func (s spans) meets(from, to int64) bool {
	i := s.at(from)
	return i < len(s) && s[i].from < to
}
