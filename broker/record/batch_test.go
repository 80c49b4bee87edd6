package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
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

// recount gives the batch another number of records, with the right checksum.
func recount(b Batch, count int32) []byte {
	raw := slices.Clone(b.Bytes())
	binary.BigEndian.PutUint32(raw[23:], uint32(count-1))
	binary.BigEndian.PutUint32(raw[57:], uint32(count))
	return seal(raw)
}

func seal(raw []byte) []byte {
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], castagnoli))
	return raw
}

func TestCheckRecords(t *testing.T) {
	long := Build(Spec{Values: [][]byte{make([]byte, 300), nil, make([]byte, 70_000)}}) // lengths of one, two and three bytes
	change := func(at int, to byte) []byte {
		raw := slices.Clone(sample().Bytes())
		raw[HeaderBytes+at] = to
		return seal(raw)
	}
	compressed := slices.Clone(sample().Bytes())
	compressed[22] |= 4
	for name, tc := range map[string]struct {
		raw []byte
		ok  bool
	}{
		"three records":             {sample().Bytes(), true},
		"long records":              {long.Bytes(), true},
		"more are counted":          {recount(sample(), 4), false},
		"two billion are counted":   {recount(sample(), 1<<31-1), false},
		"fewer are counted":         {recount(sample(), 2), false},
		"a length beyond the batch": {change(0, 120), false},
		"a negative length":         {change(0, 13), false},
		"a length without an end":   {change(0, 0x80), false},
		"too short for a record":    {change(0, 2), false},
		"compressed":                {recount(Batch{raw: compressed}, 9), true},
	} {
		b, rest, err := Parse(tc.raw)
		if err != nil || len(rest) > 0 {
			t.Fatalf("%s: %d bytes left, %v", name, len(rest), err)
		}
		if err := b.CheckRecords(); (err == nil) != tc.ok || err != nil && !(errors.Is(err, ErrRecords) && errors.Is(err, ErrCorrupt)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, count := range []int32{0, -1} {
		if _, _, err := Parse(recount(sample(), count)); !errors.Is(err, ErrRecords) {
			t.Errorf("%d records: %v, expected ErrRecords", count, err)
		}
	}
}

// BenchmarkCheck is what a leader does with a batch of 1 MB before it appends it: the checksum, and the walk over the records.
func BenchmarkCheck(b *testing.B) {
	for _, size := range []int{100, 1000} {
		values := make([][]byte, 1_000_000/size)
		for i := range values {
			values[i] = make([]byte, size)
		}
		batch := Build(Spec{Values: values})
		b.Run(fmt.Sprintf("checksum/%d B", size), func(b *testing.B) {
			b.SetBytes(int64(batch.Length))
			for b.Loop() {
				if _, _, err := Parse(batch.Bytes()); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("records/%d B", size), func(b *testing.B) {
			b.SetBytes(int64(batch.Length))
			for b.Loop() {
				if err := batch.CheckRecords(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sample().Bytes())
	f.Fuzz(func(t *testing.T, raw []byte) {
		all, err := ParseAll(raw)
		n := 0
		for _, b := range all {
			n += len(b.Bytes())
			if err := b.CheckRecords(); err != nil && !errors.Is(err, ErrRecords) {
				t.Error(err)
			}
		}
		if err == nil && n != len(raw) {
			t.Errorf("%d of %d bytes are in batches, without an error", n, len(raw))
		}
	})
}
