package bench

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/dustin/go-humanize"
)

// Result is what was measured; with --json it is printed as it is. Fields are never renamed or removed within a version.
type Result struct {
	Version      int      `json:"version"`
	Bootstrap    []string `json:"bootstrap"`
	ReadySeconds *float64 `json:"ready_seconds,omitempty"` // from the start of the cluster's processes until it was ready; only if the caller started them
	Topic        Topic    `json:"topic"`
	Size         int      `json:"size"` // bytes of a value
	Acks         string   `json:"acks"` // "0", "1" or "all"
	Clients      int      `json:"clients"`
	Sync         bool     `json:"sync"`
	Produce      Phase    `json:"produce"`
	Consume      *Phase   `json:"consume,omitempty"`
	Servers      []Server `json:"servers"`
}

// Topic is what was loaded.
type Topic struct {
	Name        string `json:"name"`
	Brokers     int    `json:"brokers"`
	Partitions  int    `json:"partitions"`
	Replication int    `json:"replication"`
}

// Phase is one measured phase. MB and GB are 10⁶ and 10⁹ bytes of values.
type Phase struct {
	Records          int64    `json:"records"`
	Bytes            int64    `json:"bytes"`
	Seconds          float64  `json:"seconds"`
	MBPerSecond      float64  `json:"mb_per_s"`
	RecordsPerSecond float64  `json:"records_per_s"`
	Latency          *Latency `json:"latency_ms,omitempty"`
	ServerCPUPerGB   *float64 `json:"server_cpu_s_per_gb,omitempty"` // all server processes together, user and kernel
	ClientCPUPerGB   float64  `json:"client_cpu_s_per_gb"`
}

// Latency has quantiles in ms, from handing a record to the client until its acknowledgement; without Sync that includes the time in the client's buffers.
type Latency struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// Server is one server process.
type Server struct {
	PID     int   `json:"pid"`
	PeakRSS int64 `json:"peak_rss_bytes"` // since the process started
}

// newPhase computes the rates; latency (µs) may be nil.
func newPhase(records, bytes int64, elapsed time.Duration, latency *hdrhistogram.Histogram) Phase {
	s := elapsed.Seconds()
	p := Phase{Records: records, Bytes: bytes, Seconds: s, MBPerSecond: float64(bytes) / 1e6 / s, RecordsPerSecond: float64(records) / s}
	if latency != nil {
		ms := func(quantile float64) float64 { return float64(latency.ValueAtQuantile(quantile)) / 1000 }
		p.Latency = &Latency{P50: ms(50), P90: ms(90), P99: ms(99), P999: ms(99.9), Max: float64(latency.Max()) / 1000}
	}
	return p
}

// WriteText prints the result for people.
func (r Result) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s, replication %d, values of %s bytes, acks=%s, %s", count(r.Topic.Brokers, "broker"), count(r.Topic.Partitions, "partition"),
		r.Topic.Replication, humanize.Comma(int64(r.Size)), r.Acks, count(r.Clients, "client"))
	if r.Sync {
		b.WriteString(" with one record in flight each")
	}
	b.WriteString("\n")
	if r.ReadySeconds != nil {
		fmt.Fprintf(&b, "ready    %.2f s after the start\n", *r.ReadySeconds)
	}
	r.Produce.write(&b, "produce")
	if r.Consume != nil {
		r.Consume.write(&b, "consume")
	}
	for i, s := range r.Servers {
		if i == 0 {
			b.WriteString("memory   peak resident")
		}
		fmt.Fprintf(&b, "  pid %d %s", s.PID, humanize.IBytes(uint64(s.PeakRSS)))
	}
	if len(r.Servers) > 0 {
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (p Phase) write(b *strings.Builder, name string) {
	fmt.Fprintf(b, "%-8s %8.1f MB/s  %10s records/s  (%s records in %.2f s)\n", name, p.MBPerSecond, humanize.Comma(int64(p.RecordsPerSecond)), humanize.Comma(p.Records), p.Seconds)
	if l := p.Latency; l != nil {
		fmt.Fprintf(b, "         latency ms  p50 %.2f  p90 %.2f  p99 %.2f  p99.9 %.2f  max %.2f\n", l.P50, l.P90, l.P99, l.P999, l.Max)
	}
	fmt.Fprintf(b, "         CPU s per GB  client %.2f", p.ClientCPUPerGB)
	if p.ServerCPUPerGB != nil {
		fmt.Fprintf(b, "  servers %.2f", *p.ServerCPUPerGB)
	}
	b.WriteString("\n")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%s %ss", humanize.Comma(int64(n)), noun)
}
