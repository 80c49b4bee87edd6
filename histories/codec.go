package histories

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"time"
)

// The native format: a file magic, then blocks. Every block is
//
//	kind u8 ('H' header, 'E' events) · 3 zero bytes · length u32 · CRC32C of the payload u32 · CRC32C of these 12 bytes u32 · payload
//
// little-endian. The check of the block's own head tells a damaged length from a file that was cut off. The first block, and only the
// first, is the header. Inside a block numbers are varints, and sequence and time are deltas that start at zero in each block. Notes are
// numbers in a dictionary, which the header begins and any later event may continue.
const (
	fileMagic     = "ackproof history 1\n"
	blockHead     = 16
	flushBytes    = 64 << 10
	maxBlock      = 64 << 20 // payload, bytes; larger is taken for damage
	formatVersion = 1
)

const (
	headerBlock byte = 'H'
	eventBlock  byte = 'E'
)

// Fields of an event that are absent when zero, as bits of its second byte.
const (
	hasSession = 1 << iota
	hasPartition
	hasNode
	hasOffset
	hasHighWatermark
	hasLeaderEpoch
	hasCode
	hasRuns
)

// Flags of the first byte, above kind (3 bits) and type (2 bits).
const (
	flagNote      = 1 << 5
	flagPipelined = 1 << 6
	flagNewOp     = 1 << 7 // Op equals Seq
)

func sealBlock(head []byte, kind byte, payload []byte) {
	le := binary.LittleEndian
	head[0], head[1], head[2], head[3] = kind, 0, 0, 0
	le.PutUint32(head[4:], uint32(len(payload)))
	le.PutUint32(head[8:], crc32.Checksum(payload, castagnoli))
	le.PutUint32(head[12:], crc32.Checksum(head[:12], castagnoli))
}

func appendHeader(b []byte, h Header) []byte {
	b = binary.AppendUvarint(b, formatVersion)
	b = binary.AppendUvarint(b, h.Run)
	b = binary.AppendVarint(b, h.Seed)
	start := int64(math.MinInt64) // no start
	if !h.Start.IsZero() {
		start = h.Start.UnixNano()
	}
	b = binary.AppendVarint(b, start)
	b = binary.AppendUvarint(b, uint64(len(h.Names)))
	for _, n := range h.Names {
		b = binary.AppendUvarint(b, uint64(len(n)))
		b = append(b, n...)
	}
	return b
}

// delta is what consecutive events of one block are coded against.
type delta struct {
	seq  uint64
	time time.Duration
}

// encoder turns events into the payload of blocks.
type encoder struct {
	delta
	names map[string]uint64
}

func (e *encoder) appendEvent(b []byte, ev *Event) []byte {
	head := byte(ev.Kind)&7 | byte(ev.Type)&3<<3
	if ev.Note != "" {
		head |= flagNote
	}
	if ev.Pipelined {
		head |= flagPipelined
	}
	if ev.Op == ev.Seq {
		head |= flagNewOp
	}
	var has byte
	for i, set := range [...]bool{ev.Session != 0, ev.Partition != 0, ev.Node != 0, ev.Offset != 0, ev.HighWatermark != 0, ev.LeaderEpoch != 0, ev.Code != 0, len(ev.Runs) != 0} {
		if set {
			has |= 1 << i
		}
	}
	b = append(b, head, has)
	b = binary.AppendVarint(b, int64(ev.Seq-e.seq))
	b = binary.AppendVarint(b, int64(ev.Time-e.time))
	e.seq, e.time = ev.Seq, ev.Time
	if head&flagNewOp == 0 {
		b = binary.AppendVarint(b, int64(ev.Seq-ev.Op))
	}
	b = binary.AppendVarint(b, int64(ev.Process))
	for i, v := range [...]int64{int64(ev.Session), int64(ev.Partition), int64(ev.Node), ev.Offset, ev.HighWatermark, int64(ev.LeaderEpoch), int64(ev.Code)} {
		if has&(1<<i) != 0 {
			b = binary.AppendVarint(b, v)
		}
	}
	if has&hasRuns != 0 {
		b = binary.AppendUvarint(b, uint64(len(ev.Runs)))
		offset := ev.Offset
		for _, r := range ev.Runs {
			// Count and defect share a number; the offset is coded against the end of the run before.
			b = binary.AppendVarint(b, int64(r.Count)<<2|int64(r.Defect&3))
			b = binary.AppendVarint(b, r.Offset-offset)
			b = binary.AppendVarint(b, int64(r.Producer))
			b = binary.AppendVarint(b, r.Sequence)
			offset = r.Offset + int64(r.Count)
		}
	}
	if head&flagNote != 0 {
		n, known := e.names[ev.Note]
		if !known {
			n = uint64(len(e.names))
			e.names[ev.Note] = n
		}
		b = binary.AppendUvarint(b, n)
		if !known {
			b = binary.AppendUvarint(b, uint64(len(ev.Note)))
			b = append(b, ev.Note...)
		}
	}
	return b
}

// cursor reads varints from a payload. After the first bad one everything reads as zero and bad stays set.
type cursor struct {
	b   []byte
	at  int
	bad bool
}

func (c *cursor) uvarint() uint64 {
	if c.at < len(c.b) && c.b[c.at] < 0x80 {
		c.at++
		return uint64(c.b[c.at-1])
	}
	v, n := binary.Uvarint(c.b[c.at:])
	if n <= 0 {
		c.bad, c.at = true, len(c.b)
		return 0
	}
	c.at += n
	return v
}

func (c *cursor) varint() int64 {
	u := c.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// narrow reads a number that must fit the bits of a smaller field.
func (c *cursor) narrow(bits uint) int64 {
	v := c.varint()
	if limit := int64(1) << (bits - 1); v < -limit || v >= limit {
		c.bad = true
		return 0
	}
	return v
}

func (c *cursor) str() string {
	n := c.uvarint()
	if n > uint64(len(c.b)-c.at) {
		c.bad, c.at = true, len(c.b)
		return ""
	}
	s := string(c.b[c.at : c.at+int(n)])
	c.at += int(n)
	return s
}

var errHeader = errors.New("the header ends too early or has a number out of range")

func readHeader(payload []byte) (Header, error) {
	c := cursor{b: payload}
	if v := c.uvarint(); v != formatVersion && !c.bad {
		return Header{}, errors.New("format version " + itoa(v) + ", expected 1")
	}
	h := Header{Run: c.uvarint(), Seed: c.varint()}
	if start := c.varint(); start != math.MinInt64 {
		h.Start = time.Unix(0, start).UTC()
	}
	for n := c.uvarint(); n > 0 && !c.bad; n-- {
		h.Names = append(h.Names, c.str())
	}
	if c.bad || c.at != len(payload) {
		return Header{}, errHeader
	}
	return h, nil
}

// decoder turns payloads back into events.
type decoder struct {
	cursor
	delta
	names []string
}

// event reads one event into ev, using the memory of ev.Runs again. It answers false if the payload is not what an encoder writes.
func (d *decoder) event(ev *Event) bool {
	if len(d.b)-d.at < 2 {
		return false
	}
	head, has := d.b[d.at], d.b[d.at+1]
	d.at += 2
	runs := ev.Runs[:0]
	*ev = Event{Kind: Kind(head & 7), Type: Type(head >> 3 & 3), Pipelined: head&flagPipelined != 0}
	d.seq += uint64(d.varint())
	d.time += time.Duration(d.varint())
	ev.Seq, ev.Time, ev.Op = d.seq, d.time, d.seq
	if head&flagNewOp == 0 {
		ev.Op = ev.Seq - uint64(d.varint())
	}
	ev.Process = int32(d.narrow(32))
	if has&hasSession != 0 {
		ev.Session = int32(d.narrow(32))
	}
	if has&hasPartition != 0 {
		ev.Partition = int32(d.narrow(32))
	}
	if has&hasNode != 0 {
		ev.Node = int32(d.narrow(32))
	}
	if has&hasOffset != 0 {
		ev.Offset = d.varint()
	}
	if has&hasHighWatermark != 0 {
		ev.HighWatermark = d.varint()
	}
	if has&hasLeaderEpoch != 0 {
		ev.LeaderEpoch = int32(d.narrow(32))
	}
	if has&hasCode != 0 {
		ev.Code = int16(d.narrow(16))
	}
	if has&hasRuns != 0 {
		n := d.uvarint()
		if n > uint64(len(d.b)-d.at)/4 { // a run takes at least four bytes
			return false
		}
		offset := ev.Offset
		for ; n > 0; n-- {
			count := d.varint()
			r := Run{Defect: Defect(count & 3)}
			if count >>= 2; count < math.MinInt32 || count > math.MaxInt32 || r.Defect > Foreign {
				return false
			}
			r.Count = int32(count)
			r.Offset = offset + d.varint()
			r.Producer = int32(d.narrow(32))
			r.Sequence = d.varint()
			offset = r.Offset + int64(r.Count)
			runs = append(runs, r)
		}
	}
	ev.Runs = runs
	if head&flagNote != 0 {
		switch n := d.uvarint(); {
		case n < uint64(len(d.names)):
			ev.Note = d.names[n]
		case n == uint64(len(d.names)) && !d.bad:
			ev.Note = d.str()
			d.names = append(d.names, ev.Note)
		default:
			return false
		}
	}
	return !d.bad
}
