package record

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"
)

func sample() Batch {
	return Build(Spec{BaseOffset: 40, LeaderEpoch: 3, ProducerID: 9, ProducerEpoch: 2, BaseSequence: 1<<31 - 2, Timestamp: 1234,
		Values: [][]byte{[]byte("a"), []byte("bb"), nil}})
}

func TestHeader(t *testing.T) {
	b, rest, err := Parse(append(slices.Clone(sample().Bytes()), 1, 2, 3))
	if err != nil || len(rest) != 3 {
		t.Fatalf("rest %v, error %v", rest, err)
	}
	if b.NextOffset() != 43 || b.LastSequence() != 0 || b.Count != 3 || b.MaxTimestamp != 1234 || b.Control() || b.Transactional() || b.Codec() != 0 {
		t.Errorf("unexpected header %+v", b.Header)
	}
	b.Assign(100, 7)
	again, _, err := Parse(b.Bytes())
	if err != nil || again.BaseOffset != 100 || again.LeaderEpoch != 7 {
		t.Errorf("R13: offset and epoch lie outside of the checksum: %+v, %v", again.Header, err)
	}
}

// TestS8EveryByteIsChecked damages each byte in turn: nothing but the fields that belong to the leader may change unnoticed.
func TestS8EveryByteIsChecked(t *testing.T) {
	whole := sample().Bytes()
	for i := range whole {
		bad := slices.Clone(whole)
		bad[i] ^= 0x40
		_, _, err := Parse(bad)
		if outside := i < 8 || (i >= 12 && i < 16); outside != (err == nil) {
			t.Errorf("byte %d damaged: error %v", i, err)
		}
	}
	for n := range whole {
		if _, _, err := Parse(whole[:n]); !errors.Is(err, ErrShort) {
			t.Errorf("cut to %d bytes: %v, expected ErrShort", n, err)
		}
	}
	old := slices.Clone(whole)
	old[16] = 1
	if _, _, err := Parse(old); !errors.Is(err, ErrMagic) {
		t.Errorf("magic 1: %v", err)
	}
	for _, length := range []uint32{0, 48, 1 << 31, 1<<32 - 1} {
		bad := slices.Clone(whole)
		binary.BigEndian.PutUint32(bad[8:], length)
		if _, _, err := Parse(bad); !errors.Is(err, ErrCorrupt) {
			t.Errorf("length %d: %v, expected ErrCorrupt", length, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sample().Bytes())
	f.Fuzz(func(t *testing.T, raw []byte) {
		all, err := ParseAll(raw)
		n := 0
		for _, b := range all {
			n += len(b.Bytes())
		}
		if err == nil && n != len(raw) {
			t.Errorf("%d of %d bytes are in batches, without an error", n, len(raw))
		}
	})
}
