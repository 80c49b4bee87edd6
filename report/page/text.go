package page

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
)

// visible makes text of what came from outside (keys, notes, logs, messages): bytes that are no UTF-8, control characters and whatever changes the direction or
// the look of other text are written as escapes. What is left is for the template to escape.
func visible(s string) string {
	if strings.IndexFunc(s, hidden) < 0 && utf8.ValidString(s) {
		return s
	}
	var out strings.Builder
	for i, w := 0, 0; i < len(s); i += w {
		r, size := utf8.DecodeRuneInString(s[i:])
		w = size
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, s[i])
		case hidden(r) && r < 0x100:
			fmt.Fprintf(&out, `\x%02x`, r)
		case hidden(r):
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

func hidden(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029')
}

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
