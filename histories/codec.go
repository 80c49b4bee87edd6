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
// numbers in a dictionary, which the header begins and any later event may continue; so are the keys and texts of steps.
//
// Version 2 added Object events and their steps. Version 1, which is still read, had no kinds above Phase, no steps, and coded a word of
// the dictionary as its number, with the number that comes next for a new one.
const (
	fileMagic     = "ackproof history 1\n"
	blockHead     = 16
	flushBytes    = 64 << 10
	maxBlock      = 64 << 20 // payload, bytes; larger is taken for damage
	formatVersion = 2
	maxNames      = 1 << 16 // words that events may add to the dictionary; so it stays small however long the run
	maxName       = 256     // bytes of a word that goes into the dictionary
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

// kindFollows in the bits of the kind says that a byte with the kind (7 bits) and stepsFollow comes before the other fields.
const (
	kindFollows = 7
	stepsFollow = 1 << 7
)

// Fields of a step, in its second byte above the form of the value (3 bits).
const (
	hasKey = 1 << (3 + iota)
	hasOld
	hasStepOffset
	hasStepNumber
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
	added int // words that the dictionary got after the header
}

// word appends a string through the dictionary: 0 and the text of one that stays outside, 1 and the text of one that joins, or 2 + its number.
func (e *encoder) word(b []byte, s string) []byte {
	if n, known := e.names[s]; known {
		return binary.AppendUvarint(b, n+2)
	}
	joins := byte(0)
	if e.added < maxNames && len(s) <= maxName {
		joins = 1
		e.names[s] = uint64(len(e.names))
		e.added++
	}
	b = append(b, joins)
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func (e *encoder) appendEvent(b []byte, ev *Event) []byte {
	head := byte(ev.Type) & 3 << 3
	plain := ev.Kind < kindFollows && len(ev.Steps) == 0
	if plain {
		head |= byte(ev.Kind)
	} else {
		head |= kindFollows
	}
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
	if !plain {
		kind := byte(ev.Kind) &^ stepsFollow
		if len(ev.Steps) > 0 {
			kind |= stepsFollow
		}
		b = append(b, kind)
	}
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
	if len(ev.Steps) > 0 {
		b = e.appendSteps(b, ev.Steps)
	}
	if head&flagNote != 0 {
		b = e.word(b, ev.Note)
	}
	return b
}

func (e *encoder) appendSteps(b []byte, steps []Step) []byte {
	b = binary.AppendUvarint(b, uint64(len(steps)))
	for i := range steps {
		s := &steps[i]
		has := byte(s.Value.Form) & 7
		for bit, set := range [...]bool{s.Key != "", !s.Old.isZero(), s.Offset != 0, s.Number != 0} {
			if set {
				has |= hasKey << bit
			}
		}
		b = append(b, byte(s.Do), has)
		if has&hasKey != 0 {
			b = e.word(b, s.Key)
		}
		b = e.appendDatum(b, &s.Value)
		if has&hasOld != 0 {
			b = append(b, byte(s.Old.Form)&7)
			b = e.appendDatum(b, &s.Old)
		}
		if has&hasStepOffset != 0 {
			b = binary.AppendVarint(b, s.Offset)
		}
		if has&hasStepNumber != 0 {
			b = binary.AppendVarint(b, s.Number)
		}
	}
	return b
}

// appendDatum writes what the form has; the form itself stands before it.
func (e *encoder) appendDatum(b []byte, d *Datum) []byte {
	switch d.Form {
	case Int:
		b = binary.AppendVarint(b, d.Int)
	case Text:
		b = e.word(b, d.Text)
	case List:
		b = binary.AppendUvarint(b, uint64(len(d.List)))
		for _, n := range d.List {
			b = binary.AppendVarint(b, n)
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
	b := c.b[c.at:]
	switch { // the usual lengths by hand
	case len(b) > 0 && b[0] < 0x80:
		c.at++
		return uint64(b[0])
	case len(b) > 1 && b[1] < 0x80:
		c.at += 2
		return uint64(b[0]&0x7f) | uint64(b[1])<<7
	case len(b) > 2 && b[2] < 0x80:
		c.at += 3
		return uint64(b[0]&0x7f) | uint64(b[1]&0x7f)<<7 | uint64(b[2])<<14
	}
	v, n := binary.Uvarint(b)
	if n <= 0 {
		c.bad, c.at = true, len(c.b)
		return 0
	}
	c.at += n
	return v
}

func (c *cursor) varint() int64 {
	if at := c.at; at < len(c.b) && c.b[at] < 0x80 { // the usual length
		c.at++
		return int64(c.b[at]>>1) ^ -int64(c.b[at]&1)
	}
	return c.longVarint()
}

func (c *cursor) longVarint() int64 {
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

func readHeader(payload []byte) (h Header, version uint64, err error) {
	c := cursor{b: payload}
	if version = c.uvarint(); !c.bad && (version < 1 || version > formatVersion) {
		return Header{}, 0, errors.New("format version " + itoa(version) + ", expected 1 or 2")
	}
	h = Header{Run: c.uvarint(), Seed: c.varint()}
	if start := c.varint(); start != math.MinInt64 {
		h.Start = time.Unix(0, start).UTC()
	}
	for n := c.uvarint(); n > 0 && !c.bad; n-- {
		h.Names = append(h.Names, c.str())
	}
	if c.bad || c.at != len(payload) {
		return Header{}, 0, errHeader
	}
	return h, version, nil
}

// decoder turns payloads back into events.
type decoder struct {
	cursor
	delta
	names   []string
	version uint64
	room    []int64 // for lists, which stay valid; shared by several that are short
}

const listRoom = 512 // numbers

// word reads a string of the dictionary.
func (d *decoder) word() string {
	n := d.uvarint()
	if d.version == 1 { // without the two special numbers; the number that comes next is a new word
		switch known := uint64(len(d.names)); {
		case n < known:
			n += 2
		case n == known:
			n = 1
		default:
			n = math.MaxUint64
		}
	}
	switch {
	case n >= 2 && n-2 < uint64(len(d.names)):
		return d.names[n-2]
	case n >= 2:
		d.bad = true
		return ""
	}
	s := d.str()
	if n == 1 && !d.bad {
		d.names = append(d.names, s)
	}
	return s
}

// event reads one event into ev, using the memory of ev.Runs and of ev.Steps again. It answers false if the payload is not what an encoder writes.
func (d *decoder) event(ev *Event) bool {
	if len(d.b)-d.at < 2 {
		return false
	}
	head, has := d.b[d.at], d.b[d.at+1]
	d.at += 2
	runs, steps := ev.Runs[:0], ev.Steps[:0]
	*ev = Event{Kind: Kind(head & 7), Type: Type(head >> 3 & 3), Pipelined: head&flagPipelined != 0}
	hasSteps := false
	switch {
	case d.version == 1 && ev.Kind >= Object: // the marks, before Object came in between
		ev.Kind++
	case d.version > 1 && ev.Kind == kindFollows:
		if d.at == len(d.b) {
			return false
		}
		ev.Kind, hasSteps = Kind(d.b[d.at]&^stepsFollow), d.b[d.at]&stepsFollow != 0
		d.at++
	}
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
	if hasSteps {
		if steps = d.steps(steps); steps == nil {
			return false
		}
	}
	ev.Steps = steps
	if head&flagNote != 0 {
		ev.Note = d.word()
	}
	return !d.bad
}

// steps reads the steps of an event into the memory of old ones; nil if they are not what an encoder writes.
func (d *decoder) steps(steps []Step) []Step {
	n := d.uvarint()
	if n == 0 || n > uint64(len(d.b)-d.at)/2 { // a step takes at least two bytes
		return nil
	}
	for ; n > 0; n-- {
		if len(d.b)-d.at < 2 {
			return nil
		}
		s := Step{Do: Do(d.b[d.at])}
		has := d.b[d.at+1]
		d.at += 2
		if has&hasKey != 0 {
			s.Key = d.word()
		}
		if !d.datum(&s.Value, Form(has&7)) {
			return nil
		}
		if has&hasOld != 0 {
			if d.at == len(d.b) {
				return nil
			}
			d.at++
			if !d.datum(&s.Old, Form(d.b[d.at-1])) {
				return nil
			}
		}
		if has&hasStepOffset != 0 {
			s.Offset = d.varint()
		}
		if has&hasStepNumber != 0 {
			s.Number = d.varint()
		}
		steps = append(steps, s)
	}
	return steps
}

func (d *decoder) datum(v *Datum, form Form) bool {
	v.Form = form
	switch form {
	case Nil:
	case Int:
		v.Int = d.varint()
	case Text:
		v.Text = d.word()
	case List:
		n := d.uvarint()
		if n > uint64(len(d.b)-d.at) {
			return false
		}
		if n >= uint64(len(d.room)) {
			d.room = make([]int64, max(n, listRoom))
		}
		v.List, d.room = d.room[:n:n], d.room[n:]
		for i := range v.List {
			v.List[i] = d.varint()
		}
	default:
		return false
	}
	return !d.bad
}
