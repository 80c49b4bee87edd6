package linearizability

import (
	"iter"
	"strings"

	"ackproof/histories"
)

// Effects is what the members of consumer groups made of what they were given, all groups together. It is no verdict: what is processed twice or never, although it was delivered, is the
// doing of members that commit before or after they process.
type Effects struct {
	Processed int64 // records that took effect, each counted once
	Repeats   int64 // records that were processed again
	// Unprocessed are acknowledged records that nobody processed, without those that were trimmed, that lie below the group's first position, or that the reset policy passed over.
	Unprocessed int64
	Rebalances  int64 // generations after the first, of all groups
}

// GroupEffects counts the effects in a history of groups. Memory as that of CheckGroups.
func GroupEffects(events iter.Seq2[histories.Event, error]) (e Effects, err error) {
	m := NewGroupMonitor(MonitorOptions{})
	generations := map[string]map[int64]bool{}
	seen := map[string]*stretches{}
	for ev, err := range events {
		if err != nil {
			return e, err
		}
		if ev.Type == histories.OK && ev.Kind == histories.Object {
			for _, s := range ev.Steps {
				switch s.Do {
				case histories.Assigned:
					group := s.Key[:max(0, strings.LastIndexByte(s.Key, '/'))]
					if generations[group] == nil {
						generations[group] = map[int64]bool{}
					}
					generations[group][s.Number] = true
				case histories.Processed:
					if seen[s.Key] == nil {
						seen[s.Key] = &stretches{}
					}
					fresh := seen[s.Key].lacks(s.Offset, s.Offset+s.Number-1)
					e.Processed += fresh
					e.Repeats += s.Number - fresh
					seen[s.Key].add(s.Offset, s.Offset+s.Number-1)
				}
			}
		}
		if _, err := m.Step(&ev); err != nil {
			return e, err
		}
	}
	for _, numbers := range generations {
		e.Rebalances += int64(len(numbers) - 1)
	}
	for key, k := range m.keys {
		acked, done := m.acked[k.partition], seen[key]
		if k.base < 0 || acked == nil {
			continue
		}
		if done == nil {
			done = &stretches{}
		}
		for i := range acked.to {
			e.Unprocessed += done.lacks(max(acked.from[i], k.base, k.reset, m.trimmed[k.partition]), acked.to[i])
		}
	}
	return e, nil
}

// lacks counts the numbers of [from, to] that the set has not.
func (s *stretches) lacks(from, to int64) (n int64) {
	for from <= to {
		first, last, any := s.missing(from, to)
		if !any {
			return n
		}
		n += last - first + 1
		from = last + 1
	}
	return n
}
