package linearizability

import (
	"ackproof/histories"
	"ackproof/model"
)

// quote says what the history has of an operation, with those of its records that stand at the finding's offset or are the finding's records.
func (c *certificate) quote(i int32) *model.Quote {
	h, o := c.t.h, c.t.h.ops.at(i)
	q := &model.Quote{Outcome: o.outcome.String(), Partition: o.partition, Node: o.node, Session: o.session, Code: o.code, Epoch: o.epoch, Offset: o.offset,
		HighWatermark: o.high, Next: -1}
	add := func(offset int64, producer int32, sequence int64, defect histories.Defect) {
		r := model.QuotedRecord{Offset: offset, Producer: producer, Sequence: sequence}
		if defect != histories.Sound {
			r.Defect = defect.String()
		}
		q.Records = append(q.Records, r)
	}
	mine := func(record int32) bool { return record != none && (record == c.f.record || record == c.f.other) }
	switch {
	case o.kind == histories.Append:
		for j := range o.count {
			at := int64(-1)
			if o.offset >= 0 {
				at = o.offset + int64(j)
			}
			if mine(o.first+j) || at >= 0 && at == c.f.offset {
				producer, sequence := h.value(o.first + j)
				add(at, producer, sequence, histories.Sound)
			}
		}
	case o.kind.IsRead():
		q.Next = h.reach(o)
		h.chunks(o, func(offset int64, record, n int32, r histories.Run) {
			for j := range n {
				at := offset + int64(j)
				switch {
				case record == none && at == c.f.offset:
					add(at, r.Producer, r.Sequence, r.Defect)
				case record != none && (at == c.f.offset || mine(record+j)):
					producer, sequence := h.value(record + j)
					add(at, producer, sequence, histories.Sound)
				}
			}
		})
	}
	return q
}

// quoteStep says what the history has of one step of an operation on objects.
func quoteStep(s histories.Step) model.QuotedStep {
	return model.QuotedStep{Does: s.Do.String(), Object: s.Key, Value: s.Value.String(), Old: s.Old.String(), Offset: s.Offset, Number: s.Number}
}
