package page

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"ackproof/histories"
)

// latencies are the times that operations took which went through, by kind, apart for calm times and times in which a fault lasted.
type latencies struct {
	calm, hurt [histories.Fault]*hdrhistogram.Histogram
}

// Bounds of what is counted, in µs, and the digits that are kept.
const (
	latencyMost   = int64(24 * time.Hour / time.Microsecond)
	latencyDigits = 3
)

func (l *latencies) add(k histories.Kind, took time.Duration, calm bool) {
	at := &l.hurt[k]
	if calm {
		at = &l.calm[k]
	}
	if *at == nil {
		*at = hdrhistogram.New(1, latencyMost, latencyDigits)
	}
	// Times out of bounds count as the bound.
	_ = (*at).RecordValue(min(max(took.Microseconds(), 1), latencyMost))
}

// latencyRow is one line of the table.
type latencyRow struct {
	Kind, When               string
	Count                    int64
	P50, P90, P99, P999, Max time.Duration
}

func (l *latencies) rows() (rows []latencyRow) {
	for k := range histories.Fault {
		for _, part := range []struct {
			when string
			h    *hdrhistogram.Histogram
		}{{"no fault", l.calm[k]}, {"during faults", l.hurt[k]}} {
			if part.h == nil {
				continue
			}
			at := func(q float64) time.Duration {
				return time.Duration(part.h.ValueAtQuantile(q)) * time.Microsecond
			}
			rows = append(rows, latencyRow{Kind: k.String(), When: part.when, Count: part.h.TotalCount(), P50: at(50), P90: at(90), P99: at(99), P999: at(99.9),
				Max: time.Duration(part.h.Max()) * time.Microsecond})
		}
	}
	return rows
}
