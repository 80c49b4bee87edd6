package histories

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// fuzzImporter is what must hold of any input in any format: no panic, an error of the class and with a place or else a history that
// JSON lines carry without loss, and memory bounded by the input.
func fuzzImporter(t *testing.T, format Format, in []byte) {
	f, err := NewFile(bytes.NewReader(in), "fuzzed", format)
	if err == nil {
		var again bytes.Buffer
		lines := NewJSONWriter(&again, f.Header())
		join := NewJoiner()
		n := 0
		var ev Event
		for err = f.Next(&ev); err == nil; err = f.Next(&ev) {
			n++
			lines.Write(&ev)
			join.Join(&ev) // whatever it answers
		}
		// An event takes a byte at least, but for a poll, which names its partitions later.
		if n > len(in)+1 {
			t.Fatalf("%d events out of %d bytes", n, len(in))
		}
		if err == io.EOF {
			err = nil
			lines.Flush()
			back, err := NewFile(&again, "again", JSONLines)
			if err != nil {
				t.Fatal(err)
			}
			events, err := back.ReadAll()
			if err != nil || len(events) != n {
				t.Fatalf("%d of %d events back: %v", len(events), n, err)
			}
			fuzzEDN(t, events)
		}
	}
	if err != nil && !errors.Is(err, ErrMalformed) {
		t.Fatalf("%v is no ErrMalformed", err)
	}
}

// fuzzEDN writes events that have been read as EDN, if they are a history at all, and reads them again.
func fuzzEDN(t *testing.T, events []Event) {
	join := NewJoiner()
	for i := range events {
		if _, err := join.Join(&events[i]); err != nil {
			return
		}
	}
	var b bytes.Buffer
	w := NewEDNWriter(&b)
	for i := range events {
		if w.Write(&events[i]) != nil {
			return
		}
	}
	if err := w.Flush(); err != nil && !errors.Is(err, ErrMalformed) {
		t.Fatal(err)
	}
	f, err := NewFile(bytes.NewReader(b.Bytes()), "written", EDN)
	if err == nil {
		_, err = f.ReadAll()
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, b.Bytes())
	}
}

func seeds(tb testing.TB, format Format) [][]byte {
	var out [][]byte
	for name, f := range fixtures {
		if f == format || format == EDNTxn && f == EDN {
			b, err := os.ReadFile(filepath.Join("testdata", name))
			if err != nil {
				tb.Fatal(err)
			}
			out = append(out, b)
		}
	}
	if format == JSONLines {
		out = append(out, encode(tb, JSONLines, benchHistory(3)))
		golden, err := os.ReadFile("testdata/key-value.edn.golden.jsonl")
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, golden)
	}
	if format == Native {
		b, _ := sample(tb)
		out = append(out, b)
	}
	return out
}

func fuzzFormat(f *testing.F, format Format) {
	for _, b := range seeds(f, format) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, in []byte) { fuzzImporter(t, format, in) })
}

func FuzzNative(f *testing.F)    { fuzzFormat(f, Native) }
func FuzzJSONLines(f *testing.F) { fuzzFormat(f, JSONLines) }
func FuzzEDN(f *testing.F)       { fuzzFormat(f, EDN) }
func FuzzEDNTxn(f *testing.F)    { fuzzFormat(f, EDNTxn) }
func FuzzElleJSON(f *testing.F)  { fuzzFormat(f, ElleJSON) }
func FuzzJepsenLog(f *testing.F) { fuzzFormat(f, JepsenLog) }
func FuzzS2(f *testing.F)        { fuzzFormat(f, S2) }

// TestMutants feeds every importer with damaged fixtures: bytes and lines changed, cut out, doubled and swapped, words of the format put in.
// ACKPROOF_MUTANTS is how many for each format (default 1000).
func TestMutants(t *testing.T) {
	n := 1000
	if v := os.Getenv("ACKPROOF_MUTANTS"); v != "" {
		var err error
		if n, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
	}
	for _, format := range Formats() {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(1, 2))
			from := seeds(t, format)
			for range n {
				in := bytes.Clone(from[r.IntN(len(from))])
				for range 1 + r.IntN(4) {
					in = mutate(r, in)
				}
				fuzzImporter(t, format, in)
			}
		})
	}
}

// TestMutantsOfOld has what mutants once brought to light.
func TestMutantsOfOld(t *testing.T) {
	for _, c := range []struct {
		name   string
		format Format
		in     string
		wrong  string // "": it is a history
	}{
		{"a poll that nobody asked for", EDNTxn, "{:process 1, :type :invoke, :f :txn, :value [[:send 1 1]]}\n{:process 1, :type :ok, :f :txn, :value [[:send 1 [0 1]] [:poll]]}", "old:2: a poll"},
		{"a reader that begins while it sends", EDN, `{:process 2, :type :invoke, :f :txn, :value [[:poll] [:send 0 2]]}
{:process 2, :type :ok, :f :txn, :value [[:poll {1 [[0 1]]}] [:send 0 [1 2]]]}`, ""},
	} {
		fuzzImporter(t, c.format, []byte(c.in))
		f, err := NewFile(strings.NewReader(c.in), "old", c.format)
		if err == nil {
			_, err = f.ReadAll()
		}
		if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s: %v, want an error with %q", c.name, err, c.wrong)
		}
	}
}

var words = []string{"nil", "null", ":ok", ":invoke", ":info", ":fail", "[", "]", "{", "}", "\"", "\\", "#", "#_", "-1", "9223372036854775807", "9223372036854775808",
	"[:poll]", "[[:send 0 1]]", ":nemesis", ":process 0", "\n", ",", ";", "\x00", "\xff", ":f :txn", "\"op\":1", "0", "[:r 1 nil]", ":key"}

func mutate(r *rand.Rand, b []byte) []byte {
	if len(b) == 0 {
		return []byte(words[r.IntN(len(words))])
	}
	i := r.IntN(len(b))
	switch r.IntN(7) {
	case 0:
		b[i] ^= 1 << r.IntN(8)
	case 1:
		return b[:i]
	case 2:
		return append(b[:i:i], b[min(len(b), i+1+r.IntN(8)):]...)
	case 3:
		w := words[r.IntN(len(words))]
		return append(append(b[:i:i], w...), b[i:]...)
	case 4: // a word in the place of another
		w := words[r.IntN(len(words))]
		end := i
		for end < len(b) && !isEnd(b[end]) {
			end++
		}
		return append(append(b[:i:i], w...), b[end:]...)
	default: // a line doubled, cut out, or moved
		lines := bytes.SplitAfter(b, []byte("\n"))
		i, j := r.IntN(len(lines)), r.IntN(len(lines))
		switch r.IntN(3) {
		case 0:
			lines[i], lines[j] = lines[j], lines[i]
		case 1:
			lines[i] = nil
		case 2:
			lines[i] = bytes.Repeat(lines[j], 2)
		}
		return bytes.Join(lines, nil)
	}
	return b
}
