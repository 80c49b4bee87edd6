package histories

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

var anyEvent = rapid.Custom(func(t *rapid.T) Event {
	small := func(name string) int32 {
		return rapid.OneOf(rapid.Just(int32(0)), rapid.Int32Range(-3, 9), rapid.Int32()).Draw(t, name)
	}
	large := func(name string) int64 {
		return rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(-3, 9), rapid.Int64()).Draw(t, name)
	}
	ev := Event{
		Seq: rapid.Uint64().Draw(t, "seq"), Time: time.Duration(large("time")), Type: Type(rapid.IntRange(0, 3).Draw(t, "type")),
		Kind: Kind(rapid.IntRange(0, 12).Draw(t, "kind")), Process: small("process"), Session: small("session"), Partition: small("partition"),
		Node: small("node"), Offset: large("offset"), HighWatermark: large("high"), LeaderEpoch: small("epoch"),
		Code: rapid.Int16().Draw(t, "code"), Pipelined: rapid.Bool().Draw(t, "pipelined"),
		Note: rapid.SampledFrom([]string{"", "load", "kill n2", "drain", "ü\x00"}).Draw(t, "note"),
	}
	if ev.Op = ev.Seq; rapid.Bool().Draw(t, "completes") {
		ev.Op = rapid.Uint64().Draw(t, "op")
	}
	for range rapid.IntRange(0, 3).Draw(t, "runs") {
		ev.Runs = append(ev.Runs, Run{large("run offset"), small("producer"), large("sequence"), small("count"), Defect(rapid.IntRange(0, 2).Draw(t, "defect"))})
	}
	for range rapid.IntRange(0, 3).Draw(t, "steps") {
		word := rapid.SampledFrom([]string{"", "x", "load", strings.Repeat("long", 100)})
		ev.Steps = append(ev.Steps, Step{
			Do: Do(rapid.IntRange(0, 30).Draw(t, "do")), Key: word.Draw(t, "key"), Value: anyDatum.Draw(t, "value"), Old: anyDatum.Draw(t, "old"),
			Offset: large("step offset"), Number: large("number"),
		})
	}
	return ev
})

var anyDatum = rapid.Custom(func(t *rapid.T) Datum {
	switch f := Form(rapid.IntRange(0, 3).Draw(t, "form")); f {
	case Int:
		return IntDatum(rapid.Int64().Draw(t, "int"))
	case Text:
		return Datum{Form: Text, Text: rapid.SampledFrom([]string{"", "x", "\x00"}).Draw(t, "text")}
	case List:
		return Datum{Form: List, List: rapid.SliceOfN(rapid.Int64(), 0, 3).Draw(t, "list")}
	default:
		return Datum{}
	}
})

var sameEvents = cmpopts.EquateEmpty()

// write encodes events, with a block end after each number in flushes.
func write(t testing.TB, h Header, events []Event, flushes map[int]bool) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b, h)
	for i := range events {
		w.Write(&events[i])
		if flushes[i] {
			w.Flush()
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := Header{Run: rapid.Uint64().Draw(rt, "run"), Seed: rapid.Int64().Draw(rt, "seed"), Names: rapid.SampledFrom([][]string{nil, {"load", "drain"}}).Draw(rt, "names")}
		if rapid.Bool().Draw(rt, "started") {
			h.Start = time.Unix(0, rapid.Int64Range(math.MinInt64+1, math.MaxInt64).Draw(rt, "start")).UTC()
		}
		events := rapid.SliceOfN(anyEvent, 0, 20).Draw(rt, "events")
		b := write(t, h, events, rapid.MapOf(rapid.IntRange(0, 20), rapid.Bool()).Draw(rt, "flushes"))
		r, err := NewReader(bytes.NewReader(b))
		if err != nil {
			rt.Fatal(err)
		}
		if d := cmp.Diff(h, r.Header(), sameEvents); d != "" {
			rt.Fatal(d)
		}
		got, err := r.ReadAll()
		if err != nil {
			rt.Fatal(err)
		}
		if d := cmp.Diff(events, got, sameEvents); d != "" {
			rt.Fatal(d)
		}
		if _, cut := r.Truncated(); cut {
			rt.Fatal("whole file read as truncated")
		}
	})
}

// sample is a history of three blocks of two events.
func sample(t testing.TB) ([]byte, []Event) {
	var events []Event
	for i := range uint64(6) {
		events = append(events, Event{Seq: i + 1, Op: i + 1, Time: time.Duration(i) * time.Second, Kind: Append, Process: int32(i), Note: "n" + itoa(i), Runs: []Run{{Producer: 1, Sequence: int64(i), Count: 1}}})
	}
	return write(t, Header{Run: 9, Names: []string{"load"}}, events, map[int]bool{1: true, 3: true}), events
}

// TestCut: a history cut at any byte is read up to its last whole block, and says that it was cut.
func TestCut(t *testing.T) {
	b, events := sample(t)
	seen := make(map[int]bool)
	for n := range len(b) {
		r, err := NewReader(bytes.NewReader(b[:n]))
		if err != nil {
			var f *FormatError
			if !errors.As(err, &f) {
				t.Fatalf("cut at %d: %v, want a FormatError", n, err)
			}
			continue
		}
		got, err := r.ReadAll()
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		if d := cmp.Diff(events[:len(got)], got, sameEvents); d != "" {
			t.Fatalf("cut at %d: %s", n, d)
		}
		seen[len(got)] = true
		at, cut := r.Truncated()
		if !cut && at != int64(n) {
			t.Fatalf("cut at %d: not seen as truncated", n)
		}
	}
	if d := cmp.Diff(map[int]bool{0: true, 2: true, 4: true}, seen); d != "" {
		t.Fatal(d)
	}
}

// TestDamage: a history with any one bit changed is refused with a place, or is read as it was.
func TestDamage(t *testing.T) {
	b, _ := sample(t)
	for bit := range len(b) * 8 {
		d := bytes.Clone(b)
		d[bit/8] ^= 1 << (bit % 8)
		r, err := NewReader(bytes.NewReader(d))
		if err == nil {
			_, err = r.ReadAll()
		}
		var f *FormatError
		if !errors.As(err, &f) || !errors.Is(err, ErrMalformed) {
			t.Fatalf("bit %d changed: %v, want a FormatError", bit, err)
		}
		if f.Offset < 0 || f.Offset > int64(bit/8) {
			t.Fatalf("bit %d changed: the error names byte %d, which lies behind it", bit, f.Offset)
		}
	}
}

func TestOpen(t *testing.T) {
	b, events := sample(t)
	path := filepath.Join(t.TempDir(), "history.bin")
	if _, err := Open(path); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("missing file: %v", err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	n := 0
	for _, err := range r.All() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != len(events) {
		t.Fatalf("%d events, want %d", n, len(events))
	}
	var ev Event
	if err := r.Next(&ev); err != io.EOF {
		t.Fatalf("after the end: %v, want io.EOF", err)
	}
}

func FuzzReader(f *testing.F) {
	b, _ := sample(f)
	f.Add(b)
	f.Add(b[:len(b)-3])
	f.Add([]byte(fileMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := NewReader(bytes.NewReader(b))
		if err != nil {
			return
		}
		events, err := r.ReadAll()
		if err != nil {
			return
		}
		// What was read can be written and read again.
		again, err := NewReader(bytes.NewReader(write(t, r.Header(), events, nil)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := again.ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(events, got, sameEvents); d != "" {
			t.Fatal(d)
		}
	})
}

// FuzzEvents feeds the decoder below the checksums, which keep random bytes away from it in FuzzReader.
func FuzzEvents(f *testing.F) {
	enc := encoder{names: map[string]uint64{}}
	f.Add(enc.appendEvent(nil, &Event{Seq: 1, Op: 1, Kind: Append, Offset: 9, Note: "x", Runs: []Run{{Count: 1}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		d := decoder{cursor: cursor{b: b}, version: formatVersion}
		join := NewJoiner()
		var ev Event
		for d.at < len(d.b) && d.event(&ev) {
			join.Join(&ev)
		}
	})
}

// TestVersion1: files from before Object events are read as what they meant.
func TestVersion1(t *testing.T) {
	r, err := Open("testdata/version-1.bin")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := []Event{
		{Seq: 1, Op: 1, Kind: Phase, Type: Info, Note: "load"},
		{Seq: 2, Op: 2, Time: 10, Kind: Append, Process: 1, Partition: 2, Runs: []Run{{Producer: 1, Sequence: 7, Count: 3}}, Note: "first"},
		{Seq: 3, Op: 2, Time: 20, Kind: Append, Type: OK, Process: 1, Partition: 2, Offset: 40},
		{Seq: 4, Op: 4, Time: 30, Kind: Fault, Type: Info, Note: "kill n2"},
		{Seq: 5, Op: 5, Time: 40, Kind: CopyEnd, Process: 1, Node: 3, Note: "first"},
		{Seq: 6, Op: 5, Time: 50, Kind: CopyEnd, Type: OK, Process: 1, Node: 3, Offset: 43, HighWatermark: 43},
		{Seq: 7, Op: 7, Time: 60, Kind: Phase, Type: Info, Note: "drain"},
	}
	if d := cmp.Diff(want, got, sameEvents); d != "" {
		t.Fatal(d)
	}
}
