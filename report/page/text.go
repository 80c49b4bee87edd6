package page

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
)

// number writes 12345 as 12,345.
func number[N int | int64](n N) string { return humanize.Comma(int64(n)) }

// plural is "1 fault", "2 faults".
func plural[N int | int64](n N, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return number(n) + " " + thing
}

// span writes a length of time with three digits.
func span(d time.Duration) string {
	switch s := d.Seconds(); {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%.1f ms", 1000*s)
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", 1000*s)
	case s < 100:
		return fmt.Sprintf("%.2f s", s)
	default:
		return fmt.Sprintf("%.0f s", s)
	}
}

// moment writes a time of the run.
func moment(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }
