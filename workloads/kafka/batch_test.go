package kafka

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// stored gives the bytes of a batch as a broker would keep it at an offset.
func stored(base int64, values ...[]byte) []byte {
	raw := Batch{Values: values, ProducerID: -1, Epoch: -1, Sequence: -1}.encode(1000)
	binary.BigEndian.PutUint64(raw, uint64(base))
	return raw
}

func TestRecordsGivesBackWhatWasEncoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var raw []byte
		var want []Record
		offset := rapid.Int64Range(0, 1<<40).Draw(t, "base")
		from := offset + rapid.Int64Range(0, 12).Draw(t, "from")
		for range rapid.IntRange(1, 4).Draw(t, "batches") {
			values := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 300), 1, 9).Draw(t, "values")
			raw = append(raw, stored(offset, values...)...)
			for _, v := range values {
				if offset >= from {
					want = append(want, Record{Offset: offset, Value: v})
				}
				offset++
			}
		}
		var got []Record
		if err := Records(raw, from, func(r Record) { got = append(got, r) }); err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Fatalf("%d records, expected %d", len(got), len(want))
		}
		for i := range want {
			if got[i].Offset != want[i].Offset || !bytes.Equal(got[i].Value, want[i].Value) || got[i].Damaged {
				t.Fatalf("record %d is %v, expected %v", i, got[i], want[i])
			}
		}
	})
}

func TestAChangedByteIsDamageAndTheNextBatchIsStillRead(t *testing.T) {
	raw := append(stored(10, []byte("one"), []byte("two")), stored(12, []byte("three"))...)
	raw[batchHeaderBytes+8] ^= 1
	var got []string
	if err := Records(raw, 0, func(r Record) { got = append(got, fmt.Sprintf("%d %s %t", r.Offset, r.Value, r.Damaged)) }); err != nil {
		t.Fatal(err)
	}
	want := []string{"10  true", "11  true", "12 three false"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("got %q, expected %q", got, want)
	}
}

func TestACutOffBatchEndsTheAnswer(t *testing.T) {
	raw := append(stored(0, []byte("one")), stored(1, []byte("two"))...)
	n := 0
	if err := Records(raw[:len(raw)-3], 0, func(Record) { n++ }); err != nil || n != 1 {
		t.Fatalf("%d records and error %v, expected 1 and none", n, err)
	}
}

func TestBytesThatAreNoBatchAreAnError(t *testing.T) {
	if err := Records(bytes.Repeat([]byte{7}, 200), 0, func(Record) {}); !errors.Is(err, errBatch) {
		t.Fatalf("error %v, expected %v", err, errBatch)
	}
}

func TestNoBytesPanic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := stored(3, []byte("abcdef"), []byte("ghi"))
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			raw[rapid.IntRange(0, len(raw)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		if rapid.Bool().Draw(t, "with a right checksum") {
			fixChecksum(raw)
		}
		// Whatever stands there, the answer is records, damage or an error.
		_ = Records(raw, 0, func(Record) {})
	})
}

func fixChecksum(raw []byte) {
	binary.BigEndian.PutUint32(raw[17:], checksum(raw))
}
