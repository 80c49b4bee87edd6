package histories

import (
	"bytes"
	"fmt"
	"syscall"
	"testing"
	"time"
)

// benchFile reads a whole history again and again and prints what that costs.
func benchFile(b *testing.B, format Format, data []byte, operations int) {
	b.Helper()
	b.SetBytes(int64(len(data)))
	events := 0
	before := cpu(b)
	for b.Loop() {
		f, err := NewFile(bytes.NewReader(data), "bench", format)
		if err != nil {
			b.Fatal(err)
		}
		events = 0
		for _, err := range f.All() {
			if err != nil {
				b.Fatal(err)
			}
			events++
		}
	}
	b.ReportMetric(float64(events*b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(operations*b.N)/b.Elapsed().Seconds(), "operations/s")
	b.ReportMetric(float64(operations*b.N)/(cpu(b)-before).Seconds(), "operations/CPU-s")
	b.ReportMetric(float64(len(data))/float64(events), "B/event")
}

// cpu is the processor time that the process has used: on a busy machine it says more than the clock.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// benchHistory is the usual mix of a run: appends and reads of several partitions.
func benchHistory(n int) []Event {
	var events []Event
	for i := range int64(n) {
		inv, ok := benchEvents()
		inv.Process, inv.Partition = int32(i%8), int32(i%6)
		inv.Runs = []Run{{Producer: int32(i % 8), Sequence: i / 8, Count: 1}}
		ok.Offset = i / 6
		if i%2 == 1 {
			ok.Runs = []Run{{Offset: i, Producer: int32(i % 8), Sequence: i / 8, Count: 1}}
			inv.Kind, inv.Runs, inv.Offset, inv.Session = Fetch, nil, i, int32(i%8)
			ok.Kind, ok.Offset, ok.Session, ok.HighWatermark = Fetch, i, int32(i%8), i
		}
		inv.Seq, inv.Op, inv.Time = uint64(2*i+1), uint64(2*i+1), 2000*1000
		ok.Seq, ok.Op, ok.Time, ok.Process, ok.Partition = uint64(2*i+2), inv.Op, inv.Time+1000, inv.Process, inv.Partition
		events = append(events, inv, ok)
	}
	return events
}

func encode(tb testing.TB, to Format, events []Event) []byte {
	tb.Helper()
	var b bytes.Buffer
	w, err := NewEventWriter(&b, to, Header{Run: 1})
	if err != nil {
		tb.Fatal(err)
	}
	for i := range events {
		if err := w.Write(&events[i]); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func BenchmarkNative(b *testing.B) {
	benchFile(b, Native, encode(b, Native, benchHistory(50_000)), 50_000)
}

func BenchmarkJSONLines(b *testing.B) {
	benchFile(b, JSONLines, encode(b, JSONLines, benchHistory(50_000)), 50_000)
}

// BenchmarkEDN reads Jepsen's kafka workload.
func BenchmarkEDN(b *testing.B) {
	var buf bytes.Buffer
	const n = 50_000
	for p := range 8 {
		for _, typ := range []string{"invoke", "ok"} {
			fmt.Fprintf(&buf, "{:type :%s, :process %d, :f :assign, :value [%d], :seek-to-beginning? true}\n", typ, p, p)
		}
	}
	for i := range n / 2 {
		p, at := i%8, 2000*i
		fmt.Fprintf(&buf, "{:index %d, :time %d, :type :invoke, :process %d, :f :send, :value [[:send %d %d]]}\n", 4*i, at, p, p, i/8)
		fmt.Fprintf(&buf, "{:index %d, :time %d, :type :ok, :process %d, :f :send, :value [[:send %d [%d %d]]]}\n", 4*i+1, at+500, p, p, i/8, i/8)
		fmt.Fprintf(&buf, "{:index %d, :time %d, :type :invoke, :process %d, :f :poll, :value [[:poll]]}\n", 4*i+2, at+1000, p)
		fmt.Fprintf(&buf, "{:index %d, :time %d, :type :ok, :process %d, :f :poll, :value [[:poll {%d [[%d %d]]}]]}\n", 4*i+3, at+1500, p, p, i/8, i/8)
	}
	benchFile(b, EDN, buf.Bytes(), n)
}

// BenchmarkEDNRegister reads a compare-and-set register.
func BenchmarkEDNRegister(b *testing.B) {
	var buf bytes.Buffer
	const n = 50_000
	for i := range n {
		f, asked, got := ":read", "nil", fmt.Sprint(i%5)
		if i%2 == 1 {
			f, asked = ":cas", fmt.Sprintf("[%d %d]", i%5, i%3)
			got = asked
		}
		fmt.Fprintf(&buf, "{:process %d, :type :invoke, :f %s, :value %s}\n{:process %d, :type :ok, :f %s, :value %s}\n", i%8, f, asked, i%8, f, got)
	}
	benchFile(b, EDN, buf.Bytes(), n)
}
