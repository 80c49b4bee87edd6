package linearizability

import (
	"fmt"

	"ackproof/histories"
	"ackproof/model"
)

// drainMark settles which reads are final: those that began in the drain, or after the last transaction that appends has ended.
func (t *transactions) drainMark() {
	if t.drain > 0 {
		return
	}
	for i := range t.steps {
		if s := &t.steps[i]; s.does == appends {
			x := &t.all[s.txn]
			t.drain = max(t.drain, x.inv, x.end)
		}
	}
}

// torn finds transactions of which the logs, as they were read in the end, have some records and not others, or none although they
// went through. All final reads of a log together are taken to go from its start to the furthest place that one of them reached.
func (t *transactions) torn() {
	found := make([]bool, len(t.writer))
	until := make([]int64, len(t.objects))   // versions below it are there or missing
	complete := make([]bool, len(t.objects)) // and everything above it is missing
	by := make([]int32, len(t.objects))      // who reached it
	for n := range t.all {
		if x := &t.all[n]; x.outcome != histories.OK || x.inv <= t.drain {
			continue
		}
		for _, s := range t.of(int32(n)) {
			switch {
			case s.does == finds:
				found[int64(t.objects[s.key].base)+s.at] = true
				if s.at >= until[s.key] && !complete[s.key] {
					until[s.key], by[s.key] = s.at+1, int32(n)
				}
			case s.does == nothing && s.at >= 0:
				complete[s.key], by[s.key] = true, int32(n)
			}
		}
	}
	for i, w := range t.writer {
		if found[i] && w != none {
			t.readBack++
		}
	}
	for n := range t.all {
		x := &t.all[n]
		if !x.committed {
			continue
		}
		here, gone := none, none // steps
		unknown := int64(0)
		for i := x.first; i < x.first+x.steps; i++ {
			s := &t.steps[i]
			switch {
			case s.does != appends:
			case s.at >= 0 && found[int64(t.objects[s.key].base)+s.at]:
				here = i
			case complete[s.key] || s.at >= 0 && s.at < until[s.key]:
				if gone == none {
					gone = i
				}
			default:
				unknown++
			}
		}
		switch {
		case gone != none && here != none:
			t.note(model.TornTxn, fmt.Sprint(t.op(int32(n))), func(c *txnCertificate) {
				there, away := &t.steps[here], &t.steps[gone]
				c.about(&t.objects[away.key], away.value)
				c.relate(int32(n), t.reader(&t.objects[there.key], int(there.at)), writeRead, &t.objects[there.key], there.value)
				c.Sentence = fmt.Sprintf("Of the transaction %s the record %d of %s is there, as %s read, but %d of %s is not: the final read %s of that log went past its place without it.", c.op(int32(n)),
					there.value, t.objects[there.key].name, c.op(t.reader(&t.objects[there.key], int(there.at))), away.value, t.objects[away.key].name, c.op(by[away.key]))
			})
		case unknown > 0:
			if t.unread == 0 {
				t.firstUnread = fmt.Sprintf("operation %d", t.op(int32(n)))
			}
			t.unread += unknown
			t.unreadTxns++
		case gone != none && x.outcome == histories.OK:
			t.note(model.LostAcked, fmt.Sprint(t.op(int32(n))), func(c *txnCertificate) {
				away := &t.steps[gone]
				c.about(&t.objects[away.key], away.value)
				c.Sentence = fmt.Sprintf("%s committed at %s, but of its records none is there: %d of %s is not in the final read %s.", c.op(int32(n)), t.stamp(x.end), away.value, t.objects[away.key].name, c.op(by[away.key]))
			})
		case gone != none:
			t.note(model.DirtyRead, fmt.Sprint(t.op(int32(n))), func(c *txnCertificate) {
				away := &t.steps[gone]
				if away.at < 0 { // another of its records was read
					for i := x.first; i < x.first+x.steps; i++ {
						if s := &t.steps[i]; s.does == appends && s.at >= 0 {
							away = s
						}
					}
				}
				log := &t.objects[away.key]
				c.about(log, away.value)
				c.Sentence = fmt.Sprintf("%s, of unknown outcome, appended %d to %s, and %s read it, but the final read %s of that log went past its place without it.",
					c.op(int32(n)), away.value, log.name, c.op(t.reader(log, int(away.at))), c.op(by[away.key]))
			})
		}
	}
}
