package partition

import (
	"encoding/json"
	"fmt"
	"slices"

	"ackproof/broker/fault"
	"ackproof/broker/record"
)

// remembered is the number of last batches of a producer that a repeat is recognised by (R28); Kafka allows five requests in flight.
const remembered = 5

// producerTable is the state of idempotent producers. It follows the log: every replica builds it from the batches (R29).
type producerTable struct {
	byID map[int64]*producer
}

// producer is one producer id. Fields are exported for the snapshot.
type producer struct {
	Epoch   int16       `json:"e"`
	Batches []sentBatch `json:"b"` // oldest first, at most `remembered`, never empty
	Forgot  bool        `json:"f"` // older batches were dropped
}

// sentBatch is one appended batch of a producer.
type sentBatch struct {
	First int32 `json:"s"` // first and last sequence
	Last  int32 `json:"l"`
	Base  int64 `json:"o"` // base offset
	End   int64 `json:"n"` // next offset
	Time  int64 `json:"t"` // largest timestamp, ms
}

func (t *producerTable) len() int { return len(t.byID) }

// judgement of a batch by its sequence.
type judgement struct {
	code      int16      // 0: append it
	duplicate *sentBatch // not nil: it has been appended before, there
}

// judge checks a batch against R28 and R30.
func (t *producerTable) judge(h record.Header) judgement {
	if h.ProducerID == record.NoProducer {
		return judgement{}
	}
	if h.ProducerEpoch < 0 || h.BaseSequence < 0 {
		return judgement{code: codeInvalidRecord}
	}
	p := t.byID[h.ProducerID]
	switch {
	case p == nil:
		// Nothing is known: a new producer, or one that expired. Like Kafka since KIP-360, any first sequence is taken.
		return judgement{}
	case h.ProducerEpoch < p.Epoch:
		return judgement{code: codeInvalidProducerEpoch}
	case h.ProducerEpoch > p.Epoch:
		if h.BaseSequence != 0 {
			return judgement{code: codeOutOfOrderSequence}
		}
		return judgement{}
	}
	for i := range p.Batches {
		if b := p.Batches[i]; b.First == h.BaseSequence && b.Last == h.LastSequence() {
			if fault.On(fault.RepeatOfAnotherBatch) {
				b = p.Batches[len(p.Batches)-1]
			}
			return judgement{duplicate: &b}
		}
	}
	if last := p.Batches[len(p.Batches)-1].Last; h.BaseSequence != nextSequence(last) && !fault.On(fault.SequenceGapAccepted) {
		return judgement{code: codeOutOfOrderSequence}
	}
	return judgement{}
}

// nextSequence wraps to 0 after 2³¹−1 (R28).
func nextSequence(s int32) int32 { return int32((int64(s) + 1) & 0x7fffffff) }

// update notes a batch that stands in the log (R29).
func (t *producerTable) update(h record.Header) {
	if h.ProducerID == record.NoProducer || h.Control() {
		return
	}
	if t.byID == nil {
		t.byID = map[int64]*producer{}
	}
	p := t.byID[h.ProducerID]
	if p == nil || h.ProducerEpoch > p.Epoch {
		p = &producer{Epoch: h.ProducerEpoch}
		t.byID[h.ProducerID] = p
	}
	if len(p.Batches) == remembered {
		p.Batches = slices.Delete(p.Batches, 0, 1)
		p.Forgot = true
	}
	p.Batches = append(p.Batches, sentBatch{First: h.BaseSequence, Last: h.LastSequence(), Base: h.BaseOffset, End: h.NextOffset(), Time: h.MaxTimestamp})
}

// truncate forgets what stood at or above the offset. It reports whether something that is still in the log has been forgotten, too: then
// the table must be built anew from the log.
func (t *producerTable) truncate(to int64) (replay bool) {
	for id, p := range t.byID { //order-free: each producer is cut on its own
		had := len(p.Batches)
		p.Batches = slices.DeleteFunc(p.Batches, func(b sentBatch) bool { return b.End > to })
		if len(p.Batches) == had {
			continue
		}
		// Fewer than five are left of a longer history, or an epoch bump has hidden the batches of the epoch before.
		if p.Forgot || p.Epoch > 0 {
			replay = true
		}
		if len(p.Batches) == 0 {
			delete(t.byID, id)
		}
	}
	return replay
}

// expire forgets producers whose last batch is older than the time (ms).
func (t *producerTable) expire(before int64) {
	for id, p := range t.byID { //order-free: each producer is judged on its own
		if p.Batches[len(p.Batches)-1].Time < before {
			delete(t.byID, id)
		}
	}
}

// snapshot encodes the table; equal tables give equal bytes, since encoding/json sorts the keys.
func (t *producerTable) snapshot() []byte {
	if len(t.byID) == 0 {
		return nil
	}
	b, err := json.Marshal(t.byID)
	if err != nil {
		panic("producer table: " + err.Error()) // plain integers cannot fail to encode
	}
	return b
}

func (t *producerTable) restore(b []byte) error {
	t.byID = nil
	if len(b) == 0 {
		return nil
	}
	if err := json.Unmarshal(b, &t.byID); err != nil {
		return err
	}
	for id, p := range t.byID { //order-free: any bad entry is an error
		if p == nil || len(p.Batches) == 0 || len(p.Batches) > remembered {
			return fmt.Errorf("producer %d has no batches, or more than %d", id, remembered)
		}
	}
	return nil
}
