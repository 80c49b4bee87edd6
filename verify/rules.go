package verify

import (
	"slices"

	"ackproof/histories"
	"ackproof/model"
)

// rules say for each kind of anomaly what the cited operations, which are known to be quoted rightly, have to show.
var rules = map[model.Anomaly]struct {
	claim model.Claim
	prove func(p *proof)
}{
	model.LostAcked:            {model.NoLoss, lost},
	model.DirtyRead:            {model.NoDirtyRead, dirty},
	model.Undelivered:          {model.AtLeastOnce, skipped},
	model.PollSkip:             {model.AtLeastOnce, skipped},
	model.NonmonotonicPoll:     {model.SessionReads, wentBack},
	model.Reordered:            {model.Order, reordered},
	model.ReorderedRealtime:    {model.RealTimeOrder, againstRealTime},
	model.InconsistentOffset:   {model.OffsetAgreement, conflict},
	model.ReplicaDivergence:    {model.OffsetAgreement, divergence},
	model.UnfillableGap:        {model.OffsetAgreement, gap},
	model.Phantom:              {model.NoPhantom, phantom},
	model.FutureRead:           {model.NoPhantom, future},
	model.CorruptValue:         {model.NoPhantom, corrupt},
	model.ForeignRecord:        {model.NoPhantom, foreign},
	model.Duplicate:            {model.NoDuplicate, duplicate},
	model.StaleEndOffset:       {model.VisibleEnd, fell(histories.EndOffset, histories.EndOffset)},
	model.StartOffsetBackwards: {model.VisibleEnd, fell(histories.StartOffset, histories.StartOffset)},
	model.StartAboveHW:         {model.VisibleEnd, fell(histories.StartOffset, histories.EndOffset)},
	model.StaleRead:            {model.ReadAfterAck, stale},
}

// role finds the operation that plays a part, nil if there is none.
func (p *proof) role(name string) *operation {
	for i, c := range p.Operations {
		if c.Role == name {
			return p.cited[i]
		}
	}
	return nil
}

// as demands the operation that plays a part; where it is missing an empty one goes on in its place.
func (p *proof) as(name string) *operation {
	if o := p.role(name); p.need(o != nil, "no operation plays the part %q", name) {
		return o
	}
	return &operation{}
}

// final tells whether an operation is one of the drain: asked for when it had begun or, in a history without phases, when all was acknowledged.
func (p *proof) final(o *operation) bool {
	from := p.drain
	for _, a := range p.ops {
		if p.drain == 0 && a.begin.Kind == histories.Append && a.ok() {
			from = max(from, a.end.Seq)
		}
	}
	return o.ok() && o.begin.Partition == p.Partition && o.begin.Seq > from
}

// passes tells whether a read asked from the offset or below, and was given something above it or at it.
func passes(o *operation, offset int64) bool {
	return o.ok() && o.begin.Kind.IsRead() && o.begin.Offset <= offset && o.next() > offset && len(o.end.Runs) > 0
}

// gone demands that the final log does not have v at the certificate's offset: a final read passed it without v, or the log ended below, asked later than since.
func (p *proof) gone(v []value, since *operation) {
	for _, o := range p.ops {
		p.need(o.begin.Kind != histories.StartOffset || !o.ok() || o.end.Offset <= max(p.Offset, 0), "the log starts above the offset")
	}
	if o := p.role("final"); o != nil {
		p.need(p.final(o) && passes(o, p.Offset) && differs(v, o.at(p.Offset)), "the final read does not show another record or none at the offset")
		return
	}
	e := p.as("end")
	end, empty := e.end.Offset, true
	if e.begin.Kind.IsRead() {
		end, empty = e.next(), len(e.end.Runs) == 0
	}
	reads := e.begin.Kind.IsRead() || e.begin.Kind == histories.EndOffset || e.begin.Kind == histories.CopyEnd
	p.need(p.final(e) && reads && empty && since.before(e) && (p.Offset < 0 || end <= p.Offset), "nothing shows that the final log ended before the offset")
	for _, o := range p.ops {
		p.need(!p.final(o) || o.next() <= end, "the final log went on behind %d", end)
	}
}

func lost(p *proof) {
	w := p.as("write")
	p.need(w.begin.Kind == histories.Append && w.ok() && w.begin.Partition == p.Partition, "the write was not acknowledged")
	if !p.need(len(w.at(p.Offset)) > 0, "nothing was acknowledged at offset %d", p.Offset) {
		return
	}
	v := w.at(p.Offset)[0]
	for _, c := range p.Operations { // acknowledged without an offset: the record that is quoted
		if c.Role == "write" && p.Offset < 0 && p.need(len(c.Quote.Records) > 0, "no record is quoted") {
			v = value{producer: c.Quote.Records[0].Producer, sequence: c.Quote.Records[0].Sequence}
		}
	}
	p.gone([]value{v}, w)
	for _, o := range p.ops {
		for k, found := range o.records() {
			p.need(found != v || !o.begin.Kind.IsRead() || !p.final(o) || p.log(k) != v, "the final log has the record after all, at offset %d", k)
		}
	}
}

// log is the record that the final log has at an offset: as the first read of the drain says, or where none passed, of a copy.
func (p *proof) log(offset int64) value {
	for _, kind := range [...]histories.Kind{histories.Fetch, histories.CopyRead} {
		for _, o := range p.ops {
			if all := o.at(offset); len(all) > 0 && o.begin.Kind == kind && all[0].defect == histories.Sound && p.final(o) {
				return all[0]
			}
		}
	}
	return value{producer: -1}
}

func dirty(p *proof) {
	r := p.as("reader")
	if p.need(r.begin.Kind.IsRead() && r.begin.Partition == p.Partition && len(r.at(p.Offset)) > 0 && !p.final(r), "no read before the drain returned a record at the offset") {
		p.gone(r.at(p.Offset), r)
	}
}

// claims gives the records that cited operations put at the certificate's offset, and those that they put elsewhere.
func (p *proof) claims() (here []value, elsewhere map[value]int64) {
	elsewhere = make(map[value]int64)
	for _, o := range p.cited {
		for k, v := range o.records() {
			switch {
			case !o.ok() || o.begin.Partition != p.Partition || k < 0:
			case k == p.Offset:
				here = append(here, v)
			default:
				elsewhere[v] = k
			}
		}
	}
	return here, elsewhere
}

func conflict(p *proof) {
	here, elsewhere := p.claims()
	for _, v := range here {
		if v != here[0] {
			return
		}
	}
	if p.need(len(here) > 0, "nobody speaks of the offset") {
		_, other := elsewhere[here[0]]
		p.need(other, "the operations agree on the record of the offset")
		for _, o := range p.ops {
			p.need(!p.final(o) || !o.begin.Kind.IsRead() || !slices.Contains(o.at(p.Offset), here[0]), "the final log has the record at the offset")
		}
	}
}

func divergence(p *proof) {
	a, b := p.as("copy"), p.as("other")
	p.need(a.begin.Kind == histories.CopyRead && b.begin.Kind.IsRead() && p.final(a) && p.final(b), "not two reads of the drain")
	for _, o := range []*operation{a, b} {
		p.need(len(o.at(p.Offset)) > 0 || passes(o, p.Offset), "a read did not come past the offset")
	}
	p.need(differs(a.at(p.Offset), b.at(p.Offset)), "both reads agree on the offset")
}

func duplicate(p *proof) {
	here, elsewhere := p.claims()
	twice := false
	for _, v := range here {
		_, again := elsewhere[v]
		twice = twice || again && v.defect == histories.Sound
	}
	p.need(twice, "no record stands at the offset and at another")
}

func reordered(p *proof) {
	here, elsewhere := p.claims()
	found := false
	for _, v := range here {
		for w, k := range elsewhere {
			found = found || w.producer == v.producer && w.sequence < v.sequence && k > p.Offset
		}
	}
	p.need(found, "no earlier record of the producer lies behind the offset")
}

// length is how long the log had been for certain when a cited operation ended.
func (p *proof) length(o *operation) int64 {
	if !p.need(o.ok() && o.begin.Partition == p.Partition, "the operation that is to have known more has no answer") {
		return -1
	}
	switch o.begin.Kind {
	case histories.EndOffset:
		return o.end.Offset
	case histories.Append:
		long := int64(-1)
		_, at := p.claims()
		for k, v := range o.records() {
			long = max(long, k+1)
			if other, ok := at[v]; ok && k < 0 { // acknowledged without an offset: a cited read says where it is
				long = max(long, other+1)
			}
		}
		return long
	}
	long := o.end.HighWatermark
	if len(o.end.Runs) > 0 {
		long = max(long, o.next())
	}
	return long
}

func againstRealTime(p *proof) {
	late, known := p.as("late"), p.as("known")
	here, _ := p.claims()
	lies := false
	for _, v := range here {
		lies = lies || late.begin.Kind == histories.Append && late.has(v)
	}
	p.need(lies, "nothing shows that the late record lies at the offset")
	p.need(known.before(late) && p.length(known) > p.Offset, "the offset was not known to exist before the record was sent")
}

func stale(p *proof) {
	reader, known := p.as("stale"), p.as("known")
	saw := int64(-1)
	switch k := reader.begin.Kind; {
	case k == histories.EndOffset:
		saw = reader.end.Offset
	case k == histories.Fetch && len(reader.end.Runs) == 0:
		if saw = reader.begin.Offset; reader.end.HighWatermark >= 0 {
			saw = min(saw, reader.end.HighWatermark)
		}
	case k == histories.Fetch:
		saw = reader.end.HighWatermark
	}
	p.need(reader.ok() && reader.begin.Partition == p.Partition && saw == p.Offset && (reader.begin.Kind == histories.EndOffset || reader.begin.Node == 0), "the reader did not see the log end at the offset")
	p.need(known.before(reader) && p.length(known) > p.Offset, "the offset was not known to exist before the read began")
}

// gap: a final read passed the offset without a record, or it is one of more holes than there are records that may fill them: unseen, of unknown place, sent in time.
func gap(p *proof) {
	known := p.as("known")
	p.need(p.length(known) > p.Offset, "no offset above was known to exist")
	if f := p.role("final"); f != nil {
		p.need(p.final(f) && passes(f, p.Offset) && len(f.at(p.Offset)) == 0, "the final read did not pass the offset without a record")
		return
	}
	start, seen, filled := int64(0), make(map[value]bool), make(map[int64]bool)
	for _, o := range p.ops {
		if o.begin.Kind == histories.StartOffset && o.ok() {
			start = max(start, o.end.Offset)
		}
		for k, v := range o.records() {
			if k >= 0 && o.ok() {
				seen[v], filled[k] = true, true
			}
		}
	}
	p.need(!filled[p.Offset] && p.Offset >= start, "the offset holds a record")
	holes, fit := p.Offset-start+1, int64(0)
	for k := range filled {
		if start <= k && k <= p.Offset {
			holes--
		}
	}
	for _, o := range p.ops {
		if o.begin.Kind == histories.Append && !(o.done && o.end.Type == histories.Fail) && o.begin.Seq < known.end.Seq {
			for _, v := range o.records() {
				if !seen[v] {
					fit++
				}
			}
		}
	}
	p.need(fit < holes, "%d records of unknown place could have filled the %d holes up to the offset", fit, holes)
}

// returned demands a read of the partition that returned a value at the offset for which a condition holds.
func (p *proof) returned(r *operation, bad func(v value) bool, good string) {
	p.need(r.begin.Kind.IsRead() && r.begin.Partition == p.Partition && slices.ContainsFunc(r.at(p.Offset), bad), "the read returned nothing at the offset, or %s", good)
}

func phantom(p *proof) {
	if w := p.role("write"); w != nil {
		refused := w.begin.Kind == histories.Append && w.done && w.end.Type == histories.Fail
		p.returned(p.as("reader"), func(v value) bool { return refused && w.has(v) }, "the record was not refused")
		return
	}
	p.returned(p.as("reader"), func(v value) bool { return v.defect == histories.Sound && !p.wrote[v] }, "the record was sent")
}

func future(p *proof) {
	r, w := p.as("reader"), p.as("write")
	p.returned(r, func(v value) bool { return w.begin.Kind == histories.Append && w.has(v) && r.before(w) }, "the record was sent before the read ended")
}

func corrupt(p *proof) {
	p.returned(p.as("reader"), func(v value) bool { return v.defect == histories.Corrupt }, "the value is sound")
}

func foreign(p *proof) {
	w := p.role("write")
	p.returned(p.as("reader"), func(v value) bool {
		return v.defect == histories.Foreign && w == nil || w != nil && w.begin.Kind == histories.Append && w.has(v) && w.begin.Partition != p.Partition
	}, "the record belongs here")
}

// fell compares two answers about the ends of the log, the second of a leader that is not older.
func fell(first, second histories.Kind) func(p *proof) {
	return func(p *proof) {
		a, b := p.as("before"), p.as("after")
		p.need(a.ok() && b.ok() && a.begin.Kind == first && b.begin.Kind == second && a.before(b) && a.begin.Partition == b.begin.Partition && b.begin.Partition == p.Partition, "not two answers one after the other")
		p.need(0 <= a.end.LeaderEpoch && a.end.LeaderEpoch <= b.end.LeaderEpoch && a.end.Offset > b.end.Offset && b.end.Offset == p.Offset, "the answers do not contradict each other")
	}
}

func (o *operation) sameSession(r *operation) bool {
	return o.ok() && o.begin.Kind == histories.Fetch && o.begin.Partition == r.begin.Partition && o.begin.Session == r.begin.Session && (r.begin.Session != 0 || o.begin.Process == r.begin.Process)
}

func wentBack(p *proof) {
	r := p.as("reader")
	floor := r.begin.Offset
	if b := p.role("before"); b != nil {
		p.need(b.sameSession(r) && b.before(r), "not two reads of one session, one after the other")
		floor = max(floor, b.next())
	}
	back := false
	for k := range r.records() {
		back = back || k == p.Offset && k < floor
		floor = max(floor, k+1)
	}
	p.need(r.ok() && r.begin.Kind == histories.Fetch && r.begin.Partition == p.Partition && back, "the reader was not given an offset that it had passed")
}

// skipped: the session began at or below the offset, came past it, and no read of it returned what is there.
func skipped(p *proof) {
	r, w := p.as("reader"), p.as("write")
	here, _ := p.claims()
	lies := false
	for _, v := range here {
		lies = lies || w.begin.Kind == histories.Append && w.has(v)
	}
	p.need(lies, "nothing shows that the record lies at the offset")
	first, given := int64(-1), false
	for _, o := range p.ops {
		if o.sameSession(r) {
			if first < 0 {
				first = o.begin.Offset
			}
			given = given || len(o.at(p.Offset)) > 0
		}
	}
	p.need(r.sameSession(r) && r.begin.Partition == p.Partition && first >= 0 && first <= p.Offset && r.next() > p.Offset && !given, "the session did not pass the offset without being given what is there")
	p.need(p.Anomaly != model.Undelivered || w.ok(), "the record was not acknowledged")
}
