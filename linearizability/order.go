package linearizability

import (
	"slices"

	"ackproof/model"
)

// producerOrder finds records that stand after a later one of the same producer in the same partition. Of a record that stands there more
// than once the first place counts. It returns how many records it looked at, and how many there are besides whose order of sending is not known.
func (h *history) producerOrder(t *tally) (looked, unordered int64) {
	byNumber := make(map[int32]*part, len(h.parts))
	for _, p := range h.parts {
		byNumber[p.number] = p
	}
	ids := make([]int32, 0, len(h.producers))
	for id := range h.producers {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		named := id < 0 // its sequence numbers are names and no order of sending (histories.KeyProducer)
		type furthest struct{ position, record int32 }
		last := make(map[int32]furthest) // by partition
		for _, s := range h.producers[id].spans {
			for r := s.first; r < s.first+s.count; r++ {
				number := h.ops[h.writer[r]].partition
				p := byNumber[number]
				at := t.position[r]
				if at < 0 || !p.trust(int(at), t.contract) {
					continue
				}
				if named {
					unordered++
					continue
				}
				looked++
				before, any := last[number]
				if !any || at > before.position {
					last[number] = furthest{at, r}
					continue
				}
				t.add(finding{claim: model.Order, anomaly: model.Reordered, part: p, offset: p.base + int64(at), record: r, other: before.record, a: h.writer[r], b: h.writer[before.record], seen: true})
			}
		}
	}
	return looked, unordered
}
