package kafka

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The harness reads and writes record batches by code of its own and shares none with the reference broker: a common mistake would hide itself.

const batchHeaderBytes = 61

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	errBatch   = errors.New("not a record batch of format 2 (KIP-98)")
)

// Batch is what a producer sends: consecutive records without keys for one partition.
type Batch struct {
	Partition int32
	Values    [][]byte
	// ProducerID −1 stands for a producer without idempotence; Epoch and Sequence are then −1 too.
	ProducerID int64
	Epoch      int16
	Sequence   int32 // of the first record
}

// encode makes the bytes of the batch; ms is the time of every record in ms since the Unix epoch.
func (b Batch) encode(ms int64) []byte {
	var records []byte
	var body []byte
	for i, v := range b.Values {
		body = append(body[:0], 0)                      // attributes
		body = binary.AppendVarint(body, 0)             // time delta
		body = binary.AppendVarint(body, int64(i))      // offset delta
		body = binary.AppendVarint(body, -1)            // no key
		body = binary.AppendVarint(body, int64(len(v))) // value
		body = append(body, v...)
		body = binary.AppendVarint(body, 0) // no headers
		records = binary.AppendVarint(records, int64(len(body)))
		records = append(records, body...)
	}
	rb := kmsg.RecordBatch{
		Length:               int32(batchHeaderBytes - 12 + len(records)),
		PartitionLeaderEpoch: -1,
		Magic:                2,
		LastOffsetDelta:      int32(len(b.Values) - 1),
		FirstTimestamp:       ms,
		MaxTimestamp:         ms,
		ProducerID:           b.ProducerID,
		ProducerEpoch:        b.Epoch,
		FirstSequence:        b.Sequence,
		NumRecords:           int32(len(b.Values)),
		Records:              records,
	}
	raw := rb.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[17:], checksum(raw))
	return raw
}

// checksum is that of the batch's bytes behind the field that holds it.
func checksum(batch []byte) uint32 { return crc32.Checksum(batch[21:], castagnoli) }

// Record is one record as a reader saw it.
type Record struct {
	Offset int64
	Value  []byte // nil if Damaged
	// Damaged: the batch's checksum is wrong or its records make no sense; every offset that its header claims is reported so.
	Damaged bool
}

// Records calls visit for every record from offset `from` on in the answer to a fetch, in order. The last batch may be cut short, as
// Kafka's protocol allows. Control batches are left out. It fails if the bytes are no record batches.
func Records(raw []byte, from int64, visit func(Record)) error {
	for len(raw) >= batchHeaderBytes {
		be := binary.BigEndian
		base := int64(be.Uint64(raw))
		length := int64(int32(be.Uint32(raw[8:]))) + 12
		if magic := raw[16]; magic != 2 || length < batchHeaderBytes {
			return fmt.Errorf("%w: at base offset %d magic %d, length %d", errBatch, base, magic, length)
		}
		if length > int64(len(raw)) {
			return nil
		}
		batch := raw[:length]
		raw = raw[length:]
		attributes, lastDelta := be.Uint16(batch[21:]), int64(int32(be.Uint32(batch[23:])))
		if lastDelta < 0 || lastDelta > length {
			lastDelta = 0 // a damaged header: claim one offset only
		}
		if base+lastDelta < from || attributes&(1<<5) != 0 {
			continue
		}
		records, err := decodeBatch(batch, base)
		if err != nil {
			for o := max(base, from); o <= base+lastDelta; o++ {
				visit(Record{Offset: o, Damaged: true})
			}
			continue
		}
		for _, r := range records {
			if r.Offset >= from {
				visit(r)
			}
		}
	}
	return nil
}

// decodeBatch checks one whole batch and splits it into its records.
func decodeBatch(batch []byte, base int64) ([]Record, error) {
	be := binary.BigEndian
	if checksum(batch) != be.Uint32(batch[17:]) {
		return nil, fmt.Errorf("%w: checksum", errBatch)
	}
	if codec := be.Uint16(batch[21:]) & 7; codec != 0 {
		return nil, fmt.Errorf("%w: compression codec %d, and no client of this test compresses", errBatch, codec)
	}
	count := int(int32(be.Uint32(batch[57:])))
	rest := batch[batchHeaderBytes:]
	if count < 0 || count > len(rest) {
		return nil, fmt.Errorf("%w: %d records", errBatch, count)
	}
	out := make([]Record, 0, count)
	for range count {
		size, n := binary.Varint(rest)
		if n <= 0 || size < 0 || size > int64(len(rest)-n) {
			return nil, fmt.Errorf("%w: record length", errBatch)
		}
		r, err := decodeRecord(rest[n:n+int(size)], base)
		if err != nil {
			return nil, err
		}
		out, rest = append(out, r), rest[n+int(size):]
	}
	return out, nil
}

var errRecord = fmt.Errorf("%w: record fields", errBatch)

// decodeRecord reads one record's offset and value; keys and headers are passed over.
func decodeRecord(body []byte, base int64) (Record, error) {
	if len(body) < 1 {
		return Record{}, errRecord
	}
	body = body[1:] // attributes
	number := func() (int64, bool) {
		v, n := binary.Varint(body)
		if n <= 0 {
			return 0, false
		}
		body = body[n:]
		return v, true
	}
	bytes := func() ([]byte, bool) {
		size, ok := number()
		if !ok || size > int64(len(body)) {
			return nil, false
		}
		if size < 0 {
			return nil, true
		}
		v := body[:size:size]
		body = body[size:]
		return v, true
	}
	_, ok1 := number() // time delta
	delta, ok2 := number()
	_, ok3 := bytes() // key
	value, ok4 := bytes()
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return Record{}, errRecord
	}
	return Record{Offset: base + delta, Value: value}, nil
}
