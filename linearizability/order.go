package linearizability

import (
	"slices"

	"ackproof/model"
)

// producerOrder finds records that stand after a later one of the same producer in the same partition. Of a record that stands there more
// than once the first place counts. It returns how many records it looked at, and how many there are besides whose order of sending is not known.
func (h *history) producerOrder(t *tally) (looked, unordered int64) {
	type furthest struct{ producer, position, record int32 }
	last := make([]furthest, len(h.parts)) // of the producer that it names
	for i := range last {
		last[i].record = none
	}
	for _, id := range slices.Sorted(slices.Values(h.producers.keys)) {
		named := id < 0 // its sequence numbers are names and no order of sending (histories.KeyProducer)
		producer := h.producers.find(id)
		for _, s := range producer.spans {
			for _, r := range producer.records[s.first:][:s.count] {
				at := h.records.at(r).position
				p := h.owners[r>>blockBits]
				if at < 0 || !p.trust(int(at), t.contract) {
					continue
				}
				if named {
					unordered++
					continue
				}
				looked++
				before := &last[p.place]
				if before.record == none || before.producer != id || at > before.position {
					*before = furthest{id, at, r}
					continue
				}
				t.add(finding{claim: model.Order, anomaly: model.Reordered, part: p, offset: p.base + int64(at), record: r, other: before.record, a: h.records.at(r).writer, b: h.records.at(before.record).writer, seen: true})
			}
		}
	}
	return looked, unordered
}
