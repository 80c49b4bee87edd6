package linearizability

import (
	"encoding/binary"
	"math"
	"slices"
	"time"
)

// instant is the number of an event in the order of the journal, from 1; 0 is none. It says before and after as sequence numbers do, in half the room.
type instant uint32

// endless is later than every event.
const endless instant = math.MaxUint32

// moments keeps sequence number and time of every event, for proofs: about three bytes each.
type moments struct {
	n      instant
	last   eventStamp
	groups []momentGroup
	open   []byte // steps of the last group
}

type eventStamp struct {
	seq  uint64
	time time.Duration
}

// momentGroup has the first of some events, and the steps to the others as varints: twice the time, and one more if a step of the sequence number follows, which
// is else 1.
type momentGroup struct {
	eventStamp
	steps []byte
}

const momentsInGroup = 256

// add notes the next event. Neither number may fall.
func (m *moments) add(seq uint64, at time.Duration) instant {
	if m.n%momentsInGroup == 0 {
		m.close()
		m.groups = append(m.groups, momentGroup{eventStamp: eventStamp{seq, at}})
	} else {
		step, time := seq-m.last.seq, uint64(at-m.last.time)<<1
		if step == 1 {
			m.open = binary.AppendUvarint(m.open, time)
		} else {
			m.open = binary.AppendUvarint(binary.AppendUvarint(m.open, time|1), step)
		}
	}
	m.n++
	m.last = eventStamp{seq, at}
	return m.n
}

// close gives the last group its steps.
func (m *moments) close() {
	if k := len(m.groups); k > 0 {
		m.groups[k-1].steps = slices.Clone(m.open)
		m.open = m.open[:0]
	}
}

// at is the moment of an event; all must have been added, and close called. That of none is zero.
func (m *moments) at(n instant) eventStamp {
	if n == 0 {
		return eventStamp{}
	}
	g := m.groups[(n-1)/momentsInGroup]
	at := g.eventStamp
	for range (n - 1) % momentsInGroup {
		step, k := binary.Uvarint(g.steps)
		g.steps = g.steps[k:]
		at.time += time.Duration(step >> 1)
		if step&1 == 0 {
			at.seq++
			continue
		}
		step, k = binary.Uvarint(g.steps)
		g.steps = g.steps[k:]
		at.seq += step
	}
	return at
}
