package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"ackproof/broker/record"
)

// guardBytes is the size of a guard entry. A batch has at least record.HeaderBytes, so that the size tells which of both an entry is.
const guardBytes = 24

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// guard is an entry of our own. A batch's checksum covers neither its base offset nor its leader epoch; a guard, which has a checksum, stands
// before the first batch of each segment and of each leader epoch and says both. The batches behind it must have that epoch, and each must
// begin where the one before ended. So both fields are protected without a prefix to each batch, which would cost a copy of it.
type guard struct {
	index  uint64 // of this entry; ties the content of a segment to the name of its file
	offset int64  // of the next batch
	epoch  int32  // leader epoch of the batches up to the next guard
}

func (g guard) encode() []byte {
	raw := make([]byte, guardBytes)
	be := binary.BigEndian
	be.PutUint32(raw[4:], uint32(g.epoch))
	be.PutUint64(raw[8:], uint64(g.offset))
	be.PutUint64(raw[16:], g.index)
	be.PutUint32(raw, crc32.Checksum(raw[4:], castagnoli))
	return raw
}

func decodeGuard(raw []byte) (guard, error) {
	be := binary.BigEndian
	if sum := crc32.Checksum(raw[4:guardBytes], castagnoli); sum != be.Uint32(raw) {
		return guard{}, fmt.Errorf("%w: guard with checksum %08x, it says %08x", errBad, sum, be.Uint32(raw))
	}
	return guard{index: be.Uint64(raw[16:]), offset: int64(be.Uint64(raw[8:])), epoch: int32(be.Uint32(raw[4:]))}, nil
}

// errBad: an entry is not what must be there. Whether that is a torn tail or damage depends on where it is.
var errBad = errors.New("bad entry")

// chain is what is known about the next entry from those before it.
type chain struct {
	index   uint64
	offset  int64
	epoch   int32
	guarded bool // a guard of this segment has been seen
}

// guard takes the next entry, a guard.
func (c *chain) guard(g guard) error {
	if g.index != c.index || g.offset != c.offset {
		return fmt.Errorf("%w: guard of entry %d and offset %d, expected entry %d and offset %d", errBad, g.index, g.offset, c.index, c.offset)
	}
	c.index++
	c.epoch, c.guarded = g.epoch, true
	return nil
}

// batch takes the next entry, a batch.
func (c *chain) batch(h record.Header) error {
	switch {
	case !c.guarded:
		return fmt.Errorf("%w: a segment begins with a guard, found a batch", errBad)
	case h.BaseOffset != c.offset:
		return fmt.Errorf("%w: base offset %d, expected %d", errBad, h.BaseOffset, c.offset)
	case h.LeaderEpoch != c.epoch:
		return fmt.Errorf("%w: leader epoch %d, expected %d", errBad, h.LeaderEpoch, c.epoch)
	}
	c.index++
	c.offset = h.NextOffset()
	return nil
}
