package histories

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		here := Origin{rapid.Uint64().Draw(t, "run"), rapid.Uint32().Draw(t, "topic"), rapid.Int32().Draw(t, "partition")}
		v := Value{here, rapid.Int32().Draw(t, "producer"), rapid.Int64().Draw(t, "sequence")}
		size := rapid.IntRange(0, 200).Draw(t, "size")
		b := EncodeValue([]byte("before"), v, size)[len("before"):]
		if len(b) != max(size, ValueSize) {
			t.Fatalf("%d bytes, want %d", len(b), max(size, ValueSize))
		}
		if got, d := DecodeValue(b, here); got != v || d != Sound {
			t.Fatalf("%+v, %v; want %+v, sound", got, d, v)
		}
		there := here
		switch rapid.IntRange(0, 2).Draw(t, "elsewhere") {
		case 0:
			there.Run++
		case 1:
			there.Topic++
		case 2:
			there.Partition++
		}
		if got, d := DecodeValue(b, there); got != v || d != Foreign {
			t.Fatalf("elsewhere: %+v, %v; want %+v, foreign", got, d, v)
		}
		b[rapid.IntRange(0, len(b)-1).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if got, d := DecodeValue(b, here); d != Corrupt || got != (Value{}) {
			t.Fatalf("one bit changed: %+v, %v; want corrupt", got, d)
		}
	})
	if _, d := DecodeValue(nil, Origin{}); d != Corrupt {
		t.Fatalf("nothing at all is %v, want corrupt", d)
	}
}

func TestAppendRecord(t *testing.T) {
	var runs []Run
	add := func(offset int64, producer int32, seq int64, d Defect) {
		runs = AppendRecord(runs, offset, Value{Producer: producer, Sequence: seq}, d)
	}
	add(4, 1, 7, Sound)
	add(5, 1, 8, Sound)
	add(6, 1, 10, Sound) // a value is missing
	add(8, 1, 11, Sound) // an offset is missing
	add(9, 2, 12, Sound)
	add(10, 2, 13, Foreign)
	add(11, 0, 0, Corrupt)
	add(12, 0, 0, Corrupt)
	want := []Run{{4, 1, 7, 2, Sound}, {6, 1, 10, 1, Sound}, {8, 1, 11, 1, Sound}, {9, 2, 12, 1, Sound}, {10, 2, 13, 1, Foreign}, {11, 0, 0, 2, Corrupt}}
	if d := cmp.Diff(want, runs); d != "" {
		t.Fatal(d)
	}
}
