package histories

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
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

// TestIndependentTransactions: the keys of a transaction on an independent key are kept apart from those of others.
func TestIndependentTransactions(t *testing.T) {
	f, err := NewFile(strings.NewReader(`{:process 0, :type :invoke, :f :txn, :value [1 [[:r 23 nil]]]}`+"\n"+`{:process 1, :type :invoke, :f :txn, :value [12 [[:r 3 nil]]]}`), "", EDN)
	if err != nil {
		t.Fatal(err)
	}
	events, err := f.ReadAll()
	if err != nil || len(events) != 2 || events[0].Steps[0].Key != "1/23" || events[1].Steps[0].Key != "12/3" {
		t.Errorf("%+v, %v; want reads of 1/23 and 12/3", events, err)
	}
}

// TestNotesThatLookLikeKeys: a note that closes the operation it stands in is a text.
func TestNotesThatLookLikeKeys(t *testing.T) {
	const note = ":a 1} {:b 2"
	var b bytes.Buffer
	w := NewEDNWriter(&b)
	if err := w.Write(&Event{Seq: 1, Op: 1, Kind: Object, Note: note, Steps: []Step{{Do: Write, Value: IntDatum(1)}}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	f, err := NewFile(bytes.NewReader(b.Bytes()), "", EDN)
	if err != nil {
		t.Fatal(err)
	}
	if events, err := f.ReadAll(); err != nil || len(events) != 1 || events[0].Note != note {
		t.Errorf("%s\nis read as %+v, %v; want one event with the note %q", b.Bytes(), events, err, note)
	}
}

// TestPositionsOfPolls: a poll begins where the one before it ended, and an assign with a seek to the beginning begins a new session there.
func TestPositionsOfPolls(t *testing.T) {
	const in = `{:process 0, :type :invoke, :f :assign, :value [0], :seek-to-beginning? true}
{:process 0, :type :ok, :f :assign, :value [0], :seek-to-beginning? true}
{:process 0, :type :invoke, :f :poll, :value [[:poll]]}
{:process 0, :type :ok, :f :poll, :value [[:poll {0 [[0 1] [1 2]]}]]}
{:process 0, :type :invoke, :f :poll, :value [[:poll]]}
{:process 0, :type :ok, :f :poll, :value [[:poll {0 [[4 5]]}]]}
{:process 0, :type :invoke, :f :assign, :value [0], :seek-to-beginning? true}
{:process 0, :type :ok, :f :assign, :value [0], :seek-to-beginning? true}
{:process 0, :type :invoke, :f :poll, :value [[:poll]]}
{:process 0, :type :ok, :f :poll, :value [[:poll {0 [[1 2]]}]]}
`
	f, err := NewFile(strings.NewReader(in), "", EDN)
	if err != nil {
		t.Fatal(err)
	}
	events, err := f.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var from []int64
	var sessions []int32
	for _, ev := range events {
		if ev.Type == Invoke {
			from, sessions = append(from, ev.Offset), append(sessions, ev.Session)
		}
	}
	if !slices.Equal(from, []int64{0, 2, 0}) || sessions[0] != sessions[1] || sessions[1] == sessions[2] {
		t.Errorf("polls from %v in the sessions %v, want them from 0, 2 and 0, the last in another session", from, sessions)
	}
}

// TestControlCharacters: each comes back as itself.
func TestControlCharacters(t *testing.T) {
	note := "\x7f"
	for c := range rune(' ') {
		note += string(c)
	}
	native := write(t, Header{Run: 1}, []Event{{Seq: 1, Kind: Phase, Type: Info, Note: note}}, nil)
	if again := convertTo(t, Native, open(t, convertTo(t, JSONLines, open(t, native, "")), "")); !bytes.Equal(native, again) {
		t.Errorf("native differs after JSON lines")
	}
}

// TestNoProcessGoesOnAfterInfo: of two operations of a pipelined process the second one's outcome is unknown; the third gets a process that is still good.
func TestNoProcessGoesOnAfterInfo(t *testing.T) {
	var b bytes.Buffer
	w := NewEDNWriter(&b)
	run := func(n int64) []Run { return []Run{{Sequence: n, Count: 1}} }
	for _, ev := range []Event{
		{Seq: 1, Op: 1, Kind: Append, Process: 1, Pipelined: true, Runs: run(0)},
		{Seq: 2, Op: 2, Kind: Append, Process: 1, Pipelined: true, Runs: run(1)},
		{Seq: 3, Op: 2, Kind: Append, Type: Info, Process: 1},
		{Seq: 4, Op: 4, Kind: Append, Process: 1, Pipelined: true, Runs: run(2)},
	} {
		if err := w.Write(&ev); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	f, err := NewFile(bytes.NewReader(b.Bytes()), "", EDN)
	if err == nil {
		_, err = f.ReadAll()
	}
	if err != nil {
		t.Errorf("%v\n%s", err, b.Bytes())
	}
}
