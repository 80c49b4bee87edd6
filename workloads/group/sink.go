package group

import (
	"math/bits"
	"sync"
)

// Sink is where processing takes effect: it remembers the offsets that it has seen, so that a record takes effect once, however often it is processed. Safe for concurrent use.
type Sink struct {
	mu      sync.Mutex
	seen    map[string][]uint64 // by key: a bit per offset
	repeats int64
}

func newSink() *Sink { return &Sink{seen: map[string][]uint64{}} }

// apply processes the records [from, to) of a key.
func (s *Sink) apply(key string, from, to int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen[key]
	for int64(len(seen)) <= to/64 {
		seen = append(seen, 0)
	}
	for o := from; o < to; o++ {
		bit := uint64(1) << (o % 64)
		if seen[o/64]&bit != 0 {
			s.repeats++
		}
		seen[o/64] |= bit
	}
	s.seen[key] = seen
}

// Counts tells how many records took effect, in all groups together, and how many repetitions did not.
func (s *Sink) Counts() (applied, repeats int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, seen := range s.seen {
		for _, word := range seen {
			applied += int64(bits.OnesCount64(word))
		}
	}
	return applied, s.repeats
}
