package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ackproof/histories"
)

// written is the path of a file.
func written(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCheckRefusesBadInput: whatever is wrong with a file, in whichever format, check says in one line which file and where, and what it found; it exits with 254 and
// gives no verdict. What is expected instead is for the tests of package histories to see.
func TestCheckRefusesBadInput(t *testing.T) {
	edn := `{:process 0, :type :invoke, :f :read, :value nil}` + "\n"
	ednOK := strings.Replace(edn, ":invoke", ":ok", 1)
	elle := func(ops ...string) string { return "[" + strings.Join(ops, ",\n") + "]" }
	elleRead := `{"type":"invoke","process":0,"f":"read","value":null}`
	log := "INFO  jepsen.util - 0\t:invoke\t:read\tnil\n"
	s2 := `{"event":{"Start":"Read"},"client_id":0,"op_id":0}` + "\n"
	line := func(seq, op int, typ, more string) string {
		return fmt.Sprintf(`{"seq":%d,"time":%d,"type":"%s","kind":"append","op":%d,"process":1%s}`+"\n", seq, seq, typ, op, more)
	}
	run := func(sequence string) string {
		return `,"runs":[{"producer":1,"sequence":` + sequence + `,"count":1}]`
	}
	jsonl := line(1, 1, "invoke", run("0"))
	var b bytes.Buffer
	w := histories.NewWriter(&b, histories.Header{Run: 1})
	for seq := uint64(1); seq < 100; seq++ {
		ev := histories.Event{Seq: seq, Op: seq, Kind: histories.Fetch, Process: int32(seq)}
		if err := w.Write(&ev); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	native := b.String()
	damaged := []byte(native)
	damaged[len(damaged)/2] ^= 1
	twice := bytes.Buffer{}
	w = histories.NewWriter(&twice, histories.Header{Run: 1})
	for _, ev := range []histories.Event{{Seq: 1, Op: 1, Kind: histories.Fetch, Process: 1}, {Seq: 2, Op: 2, Kind: histories.Fetch, Process: 1}} {
		if err := w.Write(&ev); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 1<<24)
	const big = "9223372036854775808" // 2⁶³
	for _, c := range []struct{ what, file, in, where, found string }{
		{"truncated", "a.edn", edn + edn[:20], ":2: ", "ends inside"},
		{"truncated", "a.json", elleRead[:20], ":1: ", "ends inside"},
		{"truncated", "b.json", "[" + elleRead + ",\n", ":2: ", "ends inside"},
		{"truncated", "a.log", log[:len(log)-6], ":1: ", "expected process, type, f and value"},
		{"truncated", "s2.jsonl", s2 + s2[:30], ":2: ", "ends inside"},
		{"truncated", "a.jsonl", jsonl + jsonl[:30], ":2: ", "ends inside"},
		{"damaged", "a.bin", string(damaged), ": byte ", "damaged"},
		{"mixed up", "a.edn", edn + jsonl, ":2: ", "expected a keyword"},
		{"mixed up", "a.jsonl", jsonl + edn, ":2: ", "expected a value"},
		{"mixed up", "s2.jsonl", s2 + jsonl, ":2: ", "expected a field"},
		{"mixed up", "a.bin", native[:40] + edn, ": byte ", "damaged"},
		{"wrong format", "a.edn", "PK\x03\x04", ": ", `begins with "PK`},
		{"wrong format", "a.bin", "ackproof histories", ": ", `begins with "ackproof`},
		{"empty", "a.bin", "", ": byte 0", "expected"},
		{"gigantic", "a.edn", edn + `{:value "` + long + `"}`, ":2: ", "16777216 bytes"},
		{"gigantic", "a.json", `[{"f":"` + long + `"}]`, ":1: ", "16777216 bytes"},
		{"gigantic", "a.log", log + long + "x", ":2: ", "16777216 bytes"},
		{"gigantic", "s2.jsonl", s2 + `{"event":{"Start":"` + long + `"}}`, ":2: ", "16777216 bytes"},
		{"gigantic", "a.jsonl", jsonl + `{"seq":2,"note":"` + long + `"}`, ":2: ", "16777216 bytes"},
		{"duplicate value", "a.jsonl", jsonl + line(2, 1, "ok", "") + line(3, 3, "invoke", run("0")), ": event 3: ", "a second time, expected unique values"},
		{"duplicate value", "a.edn", `{:process 0, :type :invoke, :f :send, :value [[:send 0 1]]}{:process 1, :type :invoke, :f :send, :value [[:send 0 1]]}`, ": event 2: ", "a second time"},
		{"no invocation", "a.edn", ednOK, ":1: ", "not invoked"},
		{"no invocation", "a.json", elle(strings.Replace(elleRead, "invoke", "ok", 1)), ":1: ", "not invoked"},
		{"no invocation", "a.log", strings.Replace(log, ":invoke", ":ok", 1), ":1: ", "not invoked"},
		{"no invocation", "s2.jsonl", `{"event":{"Finish":"ReadFailure"},"client_id":0,"op_id":0}`, ":1: ", "has not started"},
		{"no invocation", "a.jsonl", line(1, 5, "ok", ""), ": event 1: ", "not open"},
		{"two open", "a.edn", edn + edn, ":2: ", "one operation at a time"},
		{"two open", "a.json", elle(elleRead, elleRead), ":2: ", "one operation at a time"},
		{"two open", "a.log", log + log, ":2: ", "one operation at a time"},
		{"two open", "s2.jsonl", s2 + strings.Replace(s2, `"op_id":0`, `"op_id":1`, 1), ": event 2: ", "still open"},
		{"two open", "a.jsonl", jsonl + line(2, 2, "invoke", run("1")), ": event 2: ", "still open"},
		{"two open", "a.bin", twice.String(), ": event 2: ", "still open"},
		{"clock back", "a.edn", strings.Replace(edn, ":f", ":time 5, :f", 1) + strings.Replace(ednOK, ":f", ":time 4, :f", 1), ":2: ", ":time 4"},
		{"clock back", "a.json", elle(strings.Replace(elleRead, `"f"`, `"time":5,"f"`, 1), `{"type":"ok","time":4,"process":0,"f":"read","value":null}`), ":2: ", ":time 4"},
		{"clock back", "a.jsonl", jsonl + strings.Replace(line(2, 1, "ok", ""), `"time":2`, `"time":0`, 1), ": event 2: ", "expected times that do not go back"},
		{"negative offset", "a.edn", `{:process 0, :type :invoke, :f :send, :value [[:send 0 1]]}` + "\n" + `{:process 0, :type :ok, :f :send, :value [[:send 0 [-4 1]]]}`, ":2: ", "offset -4, expected 0"},
		{"negative offset", "s2.jsonl", s2 + `{"event":{"Finish":{"ReadSuccess":{"tail":-2,"stream_hash":0}}},"client_id":0,"op_id":0}`, ":2: ", "-2, expected an integer from 0"},
		{"negative offset", "a.jsonl", jsonl + line(2, 1, "ok", `,"offset":-4`), ": event 2: ", "offset -4, expected"},
		{"above 2⁶³", "a.edn", `{:process 0, :type :invoke, :f :write, :value ` + big + `}`, ":1: ", big + ", expected"},
		{"above 2⁶³", "a.json", elle(`{"type":"invoke","process":0,"f":"write","value":` + big + `}`), ":1: ", big + ", expected"},
		{"above 2⁶³", "a.log", "INFO  jepsen.util - 0\t:invoke\t:write\t" + big + "\n", ":1: ", big + ", expected"},
		{"above 2⁶⁴", "s2.jsonl", `{"event":{"Start":{"Append":{"num_records":1,"record_hashes":[18446744073709551616]}}},"client_id":0,"op_id":0}`, ":1: ", "18446744073709551616, expected"},
		{"above 2⁶³", "a.jsonl", line(1, 1, "invoke", run(big)), ":1: ", big + ", expected"},
	} {
		code, stdout, stderr := outcome(t, command(t, "check", written(t, c.file, c.in)))
		if code != 254 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, c.file) || !strings.Contains(stderr, c.where) || !strings.Contains(stderr, c.found) || len(stderr) > 700 {
			t.Errorf("%s, %s: exit %d, want 254 and one line with %q and %q\n%s%s", c.what, c.file, code, c.where, c.found, stdout, stderr)
		}
	}
}

// TestCheckOfLessThanAHistory: an empty history, one of noise, and one that was cut off are no pass, and the last two say so.
func TestCheckOfLessThanAHistory(t *testing.T) {
	var whole bytes.Buffer
	w := histories.NewWriter(&whole, histories.Header{Run: 1})
	for seq := uint64(1); seq <= 4; seq++ { // a write and a read of it
		ev := histories.Event{Seq: seq, Op: seq - (seq+1)%2, Type: histories.Type((seq + 1) % 2), Kind: histories.Object, Process: 1, Steps: []histories.Step{{Value: histories.IntDatum(1), Offset: -1}}}
		if seq <= 2 {
			ev.Steps[0].Do = histories.Write
		} else if seq == 3 {
			ev.Steps[0].Value = histories.Datum{}
		}
		if err := w.Write(&ev); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	held := whole.Len()
	if err := w.Write(&histories.Event{Seq: 5, Kind: histories.Phase, Type: histories.Info}); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := outcome(t, command(t, "check", written(t, "whole.bin", whole.String()[:held]))); code != 0 {
		t.Fatalf("what comes before the cut: exit %d, want 0\n%s%s", code, stdout, stderr)
	}
	for _, c := range []struct{ file, in, want string }{
		{"empty.edn", "", "not-tested"}, {"empty.json", "[]", "not-tested"}, {"empty.jsonl", "\n", "not-tested"}, {"empty.log", "", "not-tested"},
		{"noise.log", "nothing\nof use\n", "2 lines of"}, {"cut.bin", whole.String()[:whole.Len()-3], "the history is cut off at byte"},
	} {
		if code, stdout, stderr := outcome(t, command(t, "check", written(t, c.file, c.in))); code != 2 || !strings.Contains(stdout, c.want) {
			t.Errorf("%s: exit %d, want 2 and %q\n%s%s", c.file, code, c.want, stdout, stderr)
		}
	}
}
