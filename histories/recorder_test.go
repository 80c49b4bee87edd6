package histories

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRecorder(t *testing.T) {
	var b bytes.Buffer
	r := NewRecorder(&b, Header{Run: 3})
	var tapped []Event
	r.Tap(func(ev Event) { tapped = append(tapped, ev) })
	r.Mark(Event{Kind: Phase, Type: Info, Note: "load"})
	var wg sync.WaitGroup
	for process := range int32(4) {
		wg.Go(func() {
			for i := range int64(500) {
				op := r.Invoke(Event{Kind: Append, Process: process, Runs: []Run{{Producer: process, Sequence: i, Count: 1}}})
				r.Complete(Event{Type: OK, Kind: Append, Process: process, Op: op, Offset: i})
			}
		})
	}
	wg.Wait()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	in, err := NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	events, err := in.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(tapped, events, sameEvents); d != "" {
		t.Fatalf("taps saw something else than the file:\n%s", d)
	}
	if len(events) != 4001 {
		t.Fatalf("%d events, want 4001", len(events))
	}
	join := NewJoiner()
	for i := range events {
		if _, err := join.Join(&events[i]); err != nil {
			t.Fatal(err)
		}
	}
}

// full takes n bytes and then fails.
type full struct{ n int }

var errFull = errors.New("disk full")

func (w *full) Write(b []byte) (int, error) {
	if w.n -= len(b); w.n < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestWriteErrorStays(t *testing.T) {
	r := NewRecorder(&full{200}, Header{})
	taps := 0
	r.Tap(func(Event) { taps++ })
	for range 100 {
		r.Mark(Event{Kind: Phase, Type: Info, Note: "load"})
	}
	if err := r.Err(); err != nil {
		t.Fatalf("before anything was written: %v", err)
	}
	if err := r.Flush(); !errors.Is(err, errFull) {
		t.Fatalf("flush: %v, want %v", err, errFull)
	}
	r.Mark(Event{Kind: Phase, Type: Info, Note: "heal"})
	if err := r.Close(); !errors.Is(err, errFull) || taps != 101 {
		t.Fatalf("close: %v after %d taps, want %v after 101", err, taps, errFull)
	}
	late := NewRecorder(io.Discard, Header{})
	if err := late.Close(); err != nil {
		t.Fatal(err)
	}
	late.Mark(Event{Kind: Phase})
	if late.Err() == nil {
		t.Fatal("an event after Close was dropped in silence")
	}
}

func TestClockOfTheCaller(t *testing.T) {
	var b bytes.Buffer
	now := time.Duration(0)
	r := NewRecorderClock(&b, Header{}, func() time.Duration { now += time.Millisecond; return now })
	op := r.Invoke(Event{Kind: EndOffset})
	r.Complete(Event{Kind: EndOffset, Type: OK, Op: op})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	in, err := NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	events, err := in.ReadAll()
	if err != nil || len(events) != 2 || events[0].Time != time.Millisecond || events[1].Time != 2*time.Millisecond {
		t.Fatalf("%+v, %v", events, err)
	}
}

func benchEvents() (inv, ok Event) {
	return Event{Kind: Append, Process: 3, Partition: 2, Node: 1, Runs: []Run{{Producer: 7, Sequence: 123456, Count: 1}}},
		Event{Kind: Append, Type: OK, Process: 3, Partition: 2, Node: 1, Offset: 98765}
}

func BenchmarkRecorder(b *testing.B) {
	r := NewRecorder(io.Discard, Header{})
	inv, ok := benchEvents()
	for b.Loop() {
		ok.Op = r.Invoke(inv)
		r.Complete(ok)
	}
	b.ReportMetric(float64(2*b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkRecorderShared records from eight goroutines.
func BenchmarkRecorderShared(b *testing.B) {
	r := NewRecorder(io.Discard, Header{})
	var wg sync.WaitGroup
	n := b.N
	b.ResetTimer()
	for range 8 {
		wg.Go(func() {
			inv, ok := benchEvents()
			for range n / 8 {
				ok.Op = r.Invoke(inv)
				r.Complete(ok)
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(2*n)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkReader(b *testing.B) {
	var buf bytes.Buffer
	r := NewRecorder(&buf, Header{})
	inv, ok := benchEvents()
	const n = 100_000
	for range n / 2 {
		ok.Op = r.Invoke(inv)
		r.Complete(ok)
	}
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		in, err := NewReader(bytes.NewReader(buf.Bytes()))
		if err != nil {
			b.Fatal(err)
		}
		var ev Event
		for in.Next(&ev) == nil {
		}
	}
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(buf.Len())/n, "B/event")
}
