package histories

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

// The cases here are those that ci/mutants showed no other test to notice.

// TestOpenOperationsAreCounted: of two pipelined operations one ends; the other still keeps the process from anything that is not pipelined.
func TestOpenOperationsAreCounted(t *testing.T) {
	join := NewJoiner()
	var err error
	for _, ev := range []Event{
		{Seq: 1, Op: 1, Kind: Fetch, Pipelined: true},
		{Seq: 2, Op: 2, Kind: Fetch, Pipelined: true},
		{Seq: 3, Op: 1, Kind: Fetch, Type: OK},
		{Seq: 4, Op: 4, Kind: Fetch},
	} {
		if err != nil {
			t.Fatalf("refused before the last event: %v", err)
		}
		_, err = join.Join(&ev)
	}
	if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "still open") {
		t.Errorf("%v, want an error with %q", err, "still open")
	}
}

// TestNarrow: numbers fit the bits of their field, or are bad.
func TestNarrow(t *testing.T) {
	for _, c := range []struct {
		n    int64
		fits bool
	}{{-1 << 31, true}, {1<<31 - 1, true}, {-1<<31 - 1, false}, {1 << 31, false}} {
		in := cursor{b: binary.AppendVarint(nil, c.n)}
		if got := in.narrow(32); in.bad == c.fits || c.fits && got != c.n {
			t.Errorf("%d in 32 bits: %d, bad is %v, want it to fit: %v", c.n, got, in.bad, c.fits)
		}
	}
}

// TestHeaderEndsWhereItsFieldsEnd: nothing of a header is skipped.
func TestHeaderEndsWhereItsFieldsEnd(t *testing.T) {
	payload := appendHeader(nil, Header{Run: 7, Names: []string{"a"}})
	if _, _, err := readHeader(payload); err != nil {
		t.Fatal(err)
	}
	if _, _, err := readHeader(append(payload, 0)); err == nil {
		t.Error("a header with a byte too many is accepted")
	}
}
