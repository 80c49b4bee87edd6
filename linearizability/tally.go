package linearizability

import (
	"slices"

	"ackproof/model"
)

// finding is one anomaly at one offset, with what is needed to prove it. Record numbers and operations are none where there is none.
type finding struct {
	claim         model.Claim
	anomaly       model.Anomaly
	part          *part
	offset        int64
	above         int64 // an offset that was known to exist, of a gap or a stale read
	record, other int32
	a, b          int32 // operations
	seen          bool  // readers saw both sides
	// hidden: the model of the second opinion cannot see it although it knows the kind.
	hidden bool
}

// tally collects findings and evidence of one check.
type tally struct {
	h        *history
	contract model.Contract
	found    map[findingKey]*bucket
	records  model.Records

	readBack, trimmed, openAcks int64 // acknowledged records
	readEarly, openReads        int64 // records read before the drain
	compared                    int64 // an offset that was read again and held the same record
	unread                      map[*part]int64
	sessions, reads, seen       int64
	readers                     int64 // sessions that read from start to end
	readerless                  []*part
	appends, offsets, answers   int64
	holes                       int64 // unread offsets that only batches of unknown outcome could fill
	staleReads                  int64
	room                        bounds
}

func newTally(h *history, c model.Contract) *tally {
	return &tally{h: h, contract: c, found: make(map[findingKey]*bucket), unread: make(map[*part]int64)}
}

type findingKey struct {
	claim   model.Claim
	anomaly model.Anomaly
	because string // "" for a violation
}

// bucket is all findings of one key.
type bucket struct {
	count  int64
	places []place
	first  finding // at the lowest offset of the lowest partition
}

type place struct {
	partition int32
	offset    int64
}

func (a place) compare(b place) int {
	if a.partition != b.partition {
		return cmpInt(a.partition, b.partition)
	}
	return cmpInt(a.offset, b.offset)
}

// placesKept bounds the places remembered per kind; the smallest of them are listed.
const placesKept = 4096

// expressible are the anomalies that the model of the second opinion must see as well.
var expressible = []model.Anomaly{model.LostAcked, model.InconsistentOffset, model.ReorderedRealtime, model.FutureRead, model.DirtyRead, model.Phantom,
	model.CorruptValue, model.ForeignRecord}

func (t *tally) add(f finding) {
	switch f.anomaly {
	case model.LostAcked, model.DirtyRead, model.InconsistentOffset:
		if f.offset >= 0 {
			f.part.broken = min(f.part.broken, f.offset)
		}
	}
	key := findingKey{f.claim, f.anomaly, t.contract.Permitted(f.claim, f.anomaly, f.seen)}
	if f.anomaly == model.LostAcked && key.because != "" && t.contract.Outlived(key.because, t.h.moments.at(t.h.ops.at(f.a).inv).seq) {
		key.because = ""
	}
	b := t.found[key]
	if b == nil {
		b = &bucket{}
		t.found[key] = b
	}
	b.count++
	at := place{f.part.number, f.offset}
	if b.count == 1 || at.compare(place{b.first.part.number, b.first.offset}) < 0 {
		b.first = f
	}
	if len(b.places) < placesKept {
		b.places = append(b.places, at)
	}
	must := !f.hidden && slices.Contains(expressible, f.anomaly)
	switch w := f.record; {
	case f.anomaly == model.LostAcked && f.offset < 0:
		must = false // an append without a position is no step of the model unless the log has it
	case f.anomaly == model.ReorderedRealtime && t.h.ackedAt(w) != f.offset && t.h.writerOf(w).count > 1:
		must = false // one stray record of several
	case f.anomaly == model.ReorderedRealtime && t.h.ackedAt(w) >= 0 && t.h.ackedAt(w) != f.offset:
		must = false // a second copy
	}
	for _, op := range [...]int32{f.a, f.b} {
		if op != none {
			t.h.ops.at(op).suspect |= mayFail
		}
	}
	for _, r := range [...]int32{f.record, f.other} {
		if r != none {
			t.h.writerOf(r).suspect |= mayFail
		}
	}
	if culprit := f.culprit(); must && culprit != none {
		t.h.ops.at(culprit).suspect |= mustFail
	}
}

// culprit is the operation without which the rest of the history would be explained.
func (f *finding) culprit() int32 {
	switch f.anomaly {
	case model.FutureRead, model.Phantom, model.CorruptValue, model.ForeignRecord:
		return f.b
	case model.InconsistentOffset:
		if f.a == none {
			return f.b
		}
	}
	return f.a
}
