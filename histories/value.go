package histories

import (
	"encoding/binary"
	"hash/crc32"
)

// Origin is where a value belongs: a value that is read anywhere else is Foreign.
type Origin struct {
	Run       uint64 // id of the run, from the header
	Topic     uint32 // TopicHash of the topic's incarnation
	Partition int32
}

// Value is what the payload of one record says about itself. (Producer, Sequence) is unique over the run, so origin, order and
// corruption need no table of all values.
type Value struct {
	Origin
	// Producer is one producer session: who starts a new session (a new producer id or epoch) goes on under a new number, since order and
	// idempotence are promised within one session only.
	Producer int32
	Sequence int64 // rises in the order of sending
}

// ValueSize is the least size of an encoded value, in bytes.
const ValueSize = 36

const valueMagic = 0x31504b41 // "AKP1"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// EncodeValue appends v to dst, padded to size bytes (ValueSize if size is smaller). The checksum covers the padding.
func EncodeValue(dst []byte, v Value, size int) []byte {
	size = max(size, ValueSize)
	at := len(dst)
	dst = append(dst, make([]byte, size)...)
	b := dst[at:]
	le := binary.LittleEndian
	le.PutUint32(b, valueMagic)
	le.PutUint64(b[8:], v.Run)
	le.PutUint32(b[16:], uint32(v.Producer))
	le.PutUint64(b[20:], uint64(v.Sequence))
	le.PutUint32(b[28:], uint32(v.Partition))
	le.PutUint32(b[32:], v.Topic)
	// Padding that differs from record to record: a block of another record, or of zeros, does not pass for this one.
	x := uint64(v.Sequence)*0x9e3779b97f4a7c15 ^ uint64(uint32(v.Producer))<<32 ^ v.Run
	for i := ValueSize; i < size; i += 8 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		if i+8 <= size {
			le.PutUint64(b[i:], x)
			continue
		}
		for j := i; j < size; j++ {
			b[j] = byte(x >> (8 * (j - i)))
		}
	}
	le.PutUint32(b[4:], crc32.Checksum(b[8:], castagnoli))
	return dst
}

// DecodeValue reads the payload of a record found at here. The value is zero if the payload is Corrupt; if it is Foreign, the value says
// where it came from.
func DecodeValue(b []byte, here Origin) (Value, Defect) {
	le := binary.LittleEndian
	if len(b) < ValueSize || le.Uint32(b) != valueMagic || le.Uint32(b[4:]) != crc32.Checksum(b[8:], castagnoli) {
		return Value{}, Corrupt
	}
	v := Value{
		Origin:   Origin{Run: le.Uint64(b[8:]), Topic: le.Uint32(b[32:]), Partition: int32(le.Uint32(b[28:]))},
		Producer: int32(le.Uint32(b[16:])),
		Sequence: int64(le.Uint64(b[20:])),
	}
	if v.Origin != here {
		return v, Foreign
	}
	return v, Sound
}

// TopicHash names one incarnation of a topic inside values: a topic that was deleted and made anew has another id.
func TopicHash(name string, id [16]byte) uint32 {
	h := crc32.Update(0, castagnoli, []byte(name))
	return crc32.Update(h, castagnoli, id[:])
}

// AppendRecord adds one decoded record to the runs of a reply, in the order of the reply. It lengthens the last run where it can.
func AppendRecord(runs []Run, offset int64, v Value, d Defect) []Run {
	if n := len(runs); n > 0 {
		r := &runs[n-1]
		next := r.Offset+int64(r.Count) == offset && r.Count < 1<<30
		if next && r.Defect == d && (d == Corrupt || r.Producer == v.Producer && r.Sequence+int64(r.Count) == v.Sequence) {
			r.Count++
			return runs
		}
	}
	return append(runs, Run{Offset: offset, Producer: v.Producer, Sequence: v.Sequence, Count: 1, Defect: d})
}
