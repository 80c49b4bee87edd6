package histories

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write what the fixtures of testdata are read as")

// fixtures are the histories of testdata, with the format that their first bytes must show.
var fixtures = map[string]Format{
	"kafka.edn": EDN, "register.edn": EDN, "cas-register.edn": EDN, "multi-register.edn": EDN, "mutex.edn": EDN, "key-value.edn": EDN,
	"list-append.edn": EDN, "queue.edn": EDN, "set.edn": EDN, "list-append.json": ElleJSON, "cas-register.log": JepsenLog, "s2.jsonl": S2,
	"version-1.bin": Native,
}

func convertTo(tb testing.TB, to Format, from *File) []byte {
	tb.Helper()
	var b bytes.Buffer
	if _, err := Convert(&b, to, from); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// open reads bytes as a history whose format is guessed.
func open(tb testing.TB, b []byte, path string) *File {
	tb.Helper()
	f, err := NewFile(bytes.NewReader(b), path, "")
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// TestFixtures: every format is recognised, read as its golden file says in JSON lines, and well-formed.
func TestFixtures(t *testing.T) {
	for name, format := range fixtures {
		t.Run(name, func(t *testing.T) {
			f, err := OpenAny(filepath.Join("testdata", name), "")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if f.Format() != format {
				t.Errorf("taken for %s, want %s", f.Format(), format)
			}
			golden(t, name, convertTo(t, JSONLines, f))
		})
	}
	t.Run("kafka.edn as transactions", func(t *testing.T) {
		f, err := OpenAny("testdata/kafka.edn", EDNTxn)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		golden(t, "kafka-txn.edn", convertTo(t, JSONLines, f))
	})
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden.jsonl")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); d != "" {
		t.Fatal(d)
	}
	join := NewJoiner()
	for ev, err := range open(t, got, path).All() {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := join.Join(&ev); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLossless: native and JSON lines turn into each other and back without the change of a byte, wherever blocks were ended.
func TestLossless(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		events := rapid.SliceOfN(anyEvent, 1, 20).Draw(rt, "events")
		h := Header{Run: rapid.Uint64().Draw(rt, "run"), Seed: rapid.Int64().Draw(rt, "seed"), Names: []string{"load", "\xff"}}
		native := write(t, h, events, rapid.MapOf(rapid.IntRange(0, 20), rapid.Bool()).Draw(rt, "flushes"))
		lines := convertTo(t, JSONLines, open(t, native, ""))
		if again := convertTo(t, Native, open(t, lines, "")); !bytes.Equal(native, again) {
			rt.Fatalf("native differs after JSON lines:\n%s", lines)
		}
		if again := convertTo(t, JSONLines, open(t, convertTo(t, Native, open(t, lines, "")), "")); !bytes.Equal(lines, again) {
			rt.Fatalf("JSON lines differ after native:\n%s\n%s", lines, again)
		}
	})
}

// TestLosslessLong has blocks that fill up.
func TestLosslessLong(t *testing.T) {
	native := encode(t, Native, benchHistory(6_000))
	if again := convertTo(t, Native, open(t, convertTo(t, JSONLines, open(t, native, "")), "")); !bytes.Equal(native, again) {
		t.Fatal("native differs after JSON lines")
	}
}

// TestEDNAndBack: what was read of EDN and written as EDN is read as the same events.
func TestEDNAndBack(t *testing.T) {
	for name, format := range fixtures {
		if format == Native || name == "s2.jsonl" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			read := func(f *File, err error) []Event {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				events, err := f.ReadAll()
				if err != nil {
					t.Fatal(err)
				}
				// EDN has other processes where one had several operations open, or several sessions.
				for i := range events {
					if events[i].Kind != Object {
						events[i].Process, events[i].Session, events[i].Pipelined = 0, 0, false
					}
				}
				return events
			}
			path := filepath.Join("testdata", name)
			before := read(OpenAny(path, ""))
			f, err := OpenAny(path, "")
			if err != nil {
				t.Fatal(err)
			}
			edn := convertTo(t, EDN, f)
			after := read(NewFile(bytes.NewReader(edn), "", ""))
			if d := cmp.Diff(before, after, sameEvents); d != "" {
				t.Fatalf("%s\n%s", d, edn)
			}
		})
	}
}

// TestTransactionsAndBack: transactions of the kafka workload that were kept whole become that workload again.
func TestTransactionsAndBack(t *testing.T) {
	f, err := OpenAny("testdata/kafka.edn", EDNTxn)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	edn := convertTo(t, EDN, f)
	again, err := NewFile(bytes.NewReader(edn), "", EDNTxn)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "kafka-txn.edn", convertTo(t, JSONLines, again))
}

// TestBadInput: what is not understood is refused with file, line or byte, with what is there and what was expected.
func TestBadInput(t *testing.T) {
	op := `{:process 0, :type :invoke, :f :read, :value nil}` + "\n"
	s2 := `{"event":{"Start":"Read"},"client_id":0,"op_id":0}` + "\n"
	event := `{"seq":1,"time":0,"type":"invoke","kind":"fetch","op":1}` + "\n"
	native, _ := sample(t)
	damaged := bytes.Clone(native)
	damaged[len(damaged)/2] ^= 1
	for _, c := range []struct {
		name, in string
		want     []string // parts of the message
	}{
		{"wrong format", "PK\x03\x04 a zip file", []string{"wrong format: ", `begins with "PK`}},
		{"wrong format.bin", "ackproof histories are not this", []string{"wrong format.bin: ", "byte 0", "begins with", "expected"}},
		{"empty.bin", "", []string{"empty.bin: ", "byte 0", "expected"}},
		{"damaged.bin", string(damaged), []string{"damaged.bin: ", "byte ", "damaged"}},
		{"mixed.edn", op + event, []string{"mixed.edn:2: ", "colon"}},
		{"mixed.jsonl", event + op, []string{"mixed.jsonl:2: ", "expected"}},
		{"truncated.edn", op + op[:20], []string{"truncated.edn:2: ", "ends inside"}},
		{"truncated.json", `[{"type":"invoke","process":0,"f":"read","value":null},` + "\n", []string{"truncated.json:2: ", "ends inside", "expected"}},
		{"truncated.jsonl", event + event[:30], []string{"truncated.jsonl:2: ", "ends inside"}},
		{"gigantic.edn", op + `{:value "` + strings.Repeat("x", maxForm+2) + `"}`, []string{"gigantic.edn:2: ", "more than 16777216 bytes"}},
		{"gigantic.log", "INFO  jepsen.util - 0\t:invoke\t:read\tnil\n" + strings.Repeat("x", maxForm+2), []string{"gigantic.log:2: ", "more than 16777216 bytes"}},
		{"deep.edn", "{:value " + strings.Repeat("[", 70) + strings.Repeat("]", 70) + "}", []string{"deep.edn:1: ", "64 levels"}},
		{"unbalanced.edn", op + "}", []string{"unbalanced.edn:2: ", "'}'"}},
		{"after.edn", "[" + op + "] " + op, []string{"after.edn:2: ", "after the end"}},
		{"line.edn", op + "{:process 0,\n\n:type :invoke, :f 1x}", []string{"line.edn:4: ", `"1x"`, "expected a number"}},
		{"completion.edn", strings.Replace(op, ":invoke", ":ok", 1), []string{"completion.edn:1: ", "not invoked"}},
		{"two open.edn", op + op, []string{"two open.edn:2: ", "process 0", "one operation at a time"}},
		{"other.edn", op + `{:process 0, :type :ok, :f :write, :value 1}`, []string{"other.edn:2: ", ":write", ":read open"}},
		{"closed.edn", op + strings.Replace(op, ":invoke", ":info", 1) + op, []string{"closed.edn:3: ", "after an :info", "expected a new number"}},
		{"clock.edn", `{:process 0, :time 5, :type :invoke, :f :read}{:process 0, :time 4, :type :ok, :f :read}`, []string{"clock.edn:1: ", ":time 4", "5"}},
		{"index.edn", `{:process 0, :index 5, :type :invoke, :f :read}{:process 0, :index 5, :type :ok, :f :read}`, []string{"index.edn:1: ", ":index 5", "6 or more"}},
		{"large.edn", `{:process 0, :type :invoke, :f :write, :value 9223372036854775808}`, []string{"large.edn:1: ", "9223372036854775808", "2⁶³"}},
		{"fraction.edn", `{:process 0, :type :invoke, :f :write, :value 1.5}`, []string{"fraction.edn:1: ", "1.5", "expected nil"}},
		{"type.edn", `{:process 0, :type :done, :f :write, :value 1}`, []string{"type.edn:1: ", ":done", "expected :invoke"}},
		{"f.edn", `{:process 0, :type :invoke, :f :frobnicate, :value 1}`, []string{"f.edn:1: ", ":frobnicate", "expected one of"}},
		{"missing.edn", `{:process 0, :type :invoke, :value 1}`, []string{"missing.edn:1: ", "without :f"}},
		{"twice.edn", `{:process 0, :process 1, :type :invoke, :f :read}`, []string{"twice.edn:1: ", ":process stands twice"}},
		{"cas.edn", `{:process 0, :type :invoke, :f :cas, :value 1}`, []string{"cas.edn:1: ", "[old new]"}},
		{"micro.edn", `{:process 0, :type :invoke, :f :txn, :value [[:append 1 1] [:burn 2 nil]]}`, []string{"micro.edn:1: ", "[:burn 2 nil]"}},
		{"no steps.edn", `{:process 0, :type :invoke, :f :txn, :value []}`, []string{"no steps.edn:1: ", "at least one"}},
		{"key.edn", `{:process 0, :type :invoke, :f :write, :value [1 5]}{:process 0, :type :ok, :f :write, :value [2 5]}`, []string{"key.edn:1: ", "key 2, expected that of the invocation, 1"}},
		{"fewer.edn", `{:process 0, :type :invoke, :f :send, :value [[:send 0 1] [:send 0 2]]}{:process 0, :type :ok, :f :send, :value [[:send 0 [0 1]]]}`, []string{"fewer.edn:1: ", "1 sends are completed, expected the 2"}},
		{"changed.edn", `{:process 0, :type :invoke, :f :write, :value 1}{:process 0, :type :ok, :f :write, :value 2}`, []string{"another value"}},
		{"keys.edn", `{:process 0, :type :invoke, :f :get, :key 1}{:process 1, :type :invoke, :f :get, :key "1"}`, []string{"keys.edn:1: ", "expected numbers"}},
		{"negative.edn", `{:process 0, :type :invoke, :f :send, :value [[:send 0 1]]}` + "\n" + `{:process 0, :type :ok, :f :send, :value [[:send 0 [-4 1]]]}`, []string{"negative.edn:2: ", "offset -4", "expected 0"}},
		{"value.edn", `{:process 0, :type :invoke, :f :send, :value [[:send 0 -1]]}`, []string{"value.edn:1: ", "value -1"}},
		{"send.edn", `{:process 0, :type :invoke, :f :send, :value [[:send 0]]}`, []string{"send.edn:1: ", "expected [:send k v]"}},
		{"poll.edn", `{:process 0, :type :invoke, :f :poll, :value [[:poll]]}{:process 0, :type :ok, :f :poll, :value [[:poll {0 [[1]]}]]}`, []string{"poll.edn:1: ", "expected [offset v]"}},
		{"swapped.edn", `{:process 0, :type :invoke, :f :send, :value [[:send 0 1]]}{:process 0, :type :ok, :f :send, :value [[:send 0 [0 2]]]}`, []string{"swapped.edn:1: ", "does not have"}},
		{"comma.json", `[{"type":"invoke","process":0,"f":"read","value":null} {"type":"ok","process":0,"f":"read","value":null}]`, []string{"comma.json:1: ", "expected a comma"}},
		{"last comma.json", `[{"type":"invoke","process":0,"f":"read","value":null},]`, []string{"last comma.json:1: ", "comma before the end"}},
		{"word.json", `[{"type":"invoke","process":0,"f":"read","value":nil}]`, []string{"word.json:1: ", `"nil"`, "JSON value"}},
		{"escape.json", `[{"type":"invoke","process":0,"f":"write","value":"\ud800"}]`, []string{"escape.json:1: ", "half of a pair"}},
		{"value.log", "INFO  jepsen.util - 0\t:invoke\t:write\t[1\n", []string{"value.log:1: "}},
		{"unknown.jsonl", `{"seq":1,"time":0,"type":"invoke","kind":"fetch","op":1,"colour":3}`, []string{"unknown.jsonl:1: ", `"colour"`}},
		{"kind.jsonl", `{"seq":1,"time":0,"type":"invoke","kind":"fetsch","op":1}`, []string{"kind.jsonl:1: ", "fetsch", "expected one of"}},
		{"range.jsonl", `{"seq":1,"time":0,"type":"invoke","kind":"fetch","op":1,"process":3000000000}`, []string{"range.jsonl:1: ", "3000000000", "out of range"}},
		{"needed.jsonl", `{"time":0,"type":"invoke","kind":"fetch","op":1}`, []string{"needed.jsonl:1: ", "without one of seq"}},
		{"version.jsonl", `{"format":"ackproof history","version":2}`, []string{"version.jsonl:1: ", "expected 1"}},
		{"twice.jsonl", `{"seq":1,"seq":2,"time":0,"type":"invoke","kind":"fetch","op":1}`, []string{"twice.jsonl:1: ", `"seq" stands twice`}},
		{"open.s2", s2 + s2, []string{"open.s2:2: ", "op_id 0"}},
		{"finish.s2", `{"event":{"Finish":"ReadFailure"},"client_id":0,"op_id":0}`, []string{"finish.s2:1: ", "has not started"}},
		{"client.s2", s2 + `{"event":{"Finish":"ReadFailure"},"client_id":1,"op_id":0}`, []string{"client.s2:2: ", "of client 0"}},
		{"outcome.s2", s2 + `{"event":{"Finish":"AppendDefiniteFailure"},"client_id":0,"op_id":0}`, []string{"outcome.s2:2: ", "AppendDefiniteFailure"}},
		{"hashes.s2", `{"event":{"Start":{"Append":{"num_records":2,"record_hashes":[1]}}},"client_id":0,"op_id":0}`, []string{"hashes.s2:1: ", "num_records 2", "expected as many"}},
		{"hash.s2", s2 + `{"event":{"Finish":{"ReadSuccess":{"tail":2}}},"client_id":0,"op_id":0}`, []string{"hash.s2:2: ", "stream_hash"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			format := Format("")
			if strings.HasSuffix(c.name, ".bin") {
				format = Native
			}
			f, err := NewFile(strings.NewReader(c.in), c.name, format)
			if err == nil {
				_, err = f.ReadAll()
			}
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("%v, want an ErrMalformed", err)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%v, want %q in it", err, part)
				}
			}
			if len(err.Error()) > 600 {
				t.Errorf("a message of %d bytes", len(err.Error()))
			}
			if f != nil {
				if again := f.Next(new(Event)); again != err && again.Error() != err.Error() {
					t.Errorf("then %v: the error does not stay", again)
				}
			}
		})
	}
}

// TestEmpty: nothing at all is an empty history of a text format.
func TestEmpty(t *testing.T) {
	for _, name := range []string{"", "x.edn", "x.jsonl", "x.json", "x.log"} {
		for _, in := range []string{"", " \n"} {
			events, err := open(t, []byte(in), name).ReadAll()
			if err != nil || len(events) != 0 {
				t.Errorf("%s: %d events, %v", name, len(events), err)
			}
		}
	}
	for _, in := range []string{"[]", "()", "; nothing\n[ ]"} {
		if events, err := open(t, []byte(in), "").ReadAll(); err != nil || len(events) != 0 {
			t.Errorf("%s: %d events, %v", in, len(events), err)
		}
	}
}

func TestNoise(t *testing.T) {
	f, err := OpenAny("testdata/cas-register.log", "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.ReadAll(); err != nil || f.Noise() != 3 {
		t.Fatalf("%d lines of noise, %v; want 3", f.Noise(), err)
	}
}
