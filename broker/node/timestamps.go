package node

import (
	"encoding/binary"
	"fmt"

	"ackproof/broker/record"
)

// firstSince finds the first record of a batch with a timestamp of at least ts, and gives its offset and timestamp. A compressed batch, or one whose
// records cannot be read, counts as one record with the batch's offset and largest timestamp: a reader then begins a little early, never late.
// (Decompressing a stranger's batch for an index look-up could cost a thousand times its size.)
func firstSince(raw []byte, ts int64) (offset, timestamp int64, err error) {
	b, _, err := record.Parse(raw)
	if err != nil {
		return -1, -1, err
	}
	if b.Codec() == 0 {
		body := raw[record.HeaderBytes:b.Length]
		for range b.Count {
			rest, timeDelta, offsetDelta, err := nextRecord(body)
			if err != nil {
				break
			}
			if at := b.BaseTimestamp + timeDelta; at >= ts {
				return b.BaseOffset + offsetDelta, at, nil
			}
			body = rest
		}
	}
	return b.BaseOffset, b.MaxTimestamp, nil
}

// nextRecord reads the deltas of the record at the start of body and gives what follows it.
func nextRecord(body []byte) (rest []byte, timeDelta, offsetDelta int64, err error) {
	one, rest, err := record.Next(body)
	if err != nil {
		return nil, 0, 0, err
	}
	one = one[1:] // attributes
	timeDelta, n := binary.Varint(one)
	if n <= 0 {
		return nil, 0, 0, fmt.Errorf("%w: timestamp delta", record.ErrRecords)
	}
	offsetDelta, n = binary.Varint(one[n:])
	if n <= 0 || offsetDelta < 0 {
		return nil, 0, 0, fmt.Errorf("%w: offset delta %d", record.ErrRecords, offsetDelta)
	}
	return rest, timeDelta, offsetDelta, nil
}
