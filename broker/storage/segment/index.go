package segment

import (
	"encoding/binary"
	"hash/crc32"
	"sort"

	"ackproof/broker/record"
)

// Sizes of the entries of Kafka's index files.
const (
	offsetEntry = 8  // offset relative to the segment's base (4), position (4)
	timeEntry   = 12 // timestamp (8), offset relative to the segment's base (4)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// index is a segment's sparse index, as the very bytes of Kafka's two index files: about one entry of each per log.index.interval.bytes of the log.
//
// An offset entry names the last offset of a batch and where that batch begins. A time entry says: up to the batch that ends at this offset, no
// timestamp is above this one, and that batch is the first to have it.
type index struct {
	offsets []byte
	times   []byte
	since   int64 // bytes of the log since the last offset entry
}

// add takes the next batch, which begins at pos; largest is the largest timestamp so far, this batch included, and holder the last offset of the first
// batch that has it.
func (x *index) add(base int64, h record.Header, pos, interval, largest, holder int64) {
	if x.since > interval {
		x.offsets = binary.BigEndian.AppendUint32(x.offsets, uint32(h.LastOffset()-base))
		x.offsets = binary.BigEndian.AppendUint32(x.offsets, uint32(pos))
		x.addTime(base, largest, holder)
		x.since = 0
	}
	x.since += int64(h.Length)
}

// addTime adds a time entry unless it says nothing new.
func (x *index) addTime(base, largest, holder int64) {
	if n := len(x.times); n > 0 && largest <= x.timeAt(n/timeEntry-1) {
		return
	}
	x.times = binary.BigEndian.AppendUint64(x.times, uint64(largest))
	x.times = binary.BigEndian.AppendUint32(x.times, uint32(holder-base))
}

func (x *index) timeAt(i int) int64 { return int64(binary.BigEndian.Uint64(x.times[i*timeEntry:])) }

// place is where a batch begins that the index names, and the offset of its last record relative to the segment's base. The zero value is the beginning.
type place struct{ last, pos int64 }

// find gives the last place at or before the batch that holds the offset, which is relative to the segment's base.
func (x *index) find(relative int64) place {
	return x.lastOf(func(p place) bool { return p.last <= relative })
}

// before gives the last place that is not behind the position and whose batch ends below the offset. All batches before it then do so too.
func (x *index) before(pos, relative int64) place {
	return x.lastOf(func(p place) bool { return p.pos <= pos && p.last < relative })
}

// lastOf gives the last place for which ok holds; it must hold for all before that one, and for none behind it.
func (x *index) lastOf(ok func(place) bool) place {
	at := func(i int) place {
		e := x.offsets[i*offsetEntry:]
		return place{last: int64(binary.BigEndian.Uint32(e)), pos: int64(binary.BigEndian.Uint32(e[4:]))}
	}
	n := sort.Search(len(x.offsets)/offsetEntry, func(i int) bool { return !ok(at(i)) })
	if n == 0 {
		return place{}
	}
	return at(n - 1)
}

// findTime gives a place at or before the first batch whose largest timestamp is ts or above.
func (x *index) findTime(ts int64) place {
	n := sort.Search(len(x.times)/timeEntry, func(i int) bool { return x.timeAt(i) > ts })
	if n == 0 {
		return place{}
	}
	return x.find(int64(binary.BigEndian.Uint32(x.times[(n-1)*timeEntry+8:])))
}

// sum is the checksum of both files. Kafka's format has no room for one; a log keeps it elsewhere, because a wrong time entry would not be noticed.
func (x *index) sum() uint32 {
	return crc32.Update(crc32.Checksum(x.offsets, castagnoli), castagnoli, x.times)
}
