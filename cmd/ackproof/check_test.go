package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ackproof/histories"
	"ackproof/model"
)

// writeHistory writes a native history to a file of the test.
func writeHistory(t *testing.T, events ...histories.Event) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "some.bin")
	var b bytes.Buffer
	w := histories.NewWriter(&b, histories.Header{Run: 0xabc, Seed: 3})
	for i, ev := range events {
		ev.Seq, ev.Time = uint64(i+1), time.Duration(i+1)*time.Millisecond
		if ev.Op == 0 {
			ev.Op = ev.Seq
		}
		if err := w.Write(&ev); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// logOfTwo is a history in which two records are acknowledged and the drain finds these runs.
func logOfTwo(found ...histories.Run) []histories.Event {
	return []histories.Event{
		{Kind: histories.Append, Process: 1, Runs: []histories.Run{{Producer: 1, Count: 2}}},
		{Kind: histories.Append, Process: 1, Type: histories.OK, Op: 1},
		{Kind: histories.Fetch, Process: 2, Session: 1},
		{Kind: histories.Fetch, Process: 2, Session: 1, Type: histories.OK, Op: 3, HighWatermark: 2, Runs: []histories.Run{{Producer: 1, Count: 1}}},
		{Kind: histories.Phase, Type: histories.Info, Note: "drain"},
		{Kind: histories.Fetch, Process: 2, Session: 2},
		{Kind: histories.Fetch, Process: 2, Session: 2, Type: histories.OK, Op: 6, HighWatermark: -1, Runs: found},
		{Kind: histories.Fetch, Process: 2, Session: 2, Offset: int64(len(found))},
		{Kind: histories.Fetch, Process: 2, Session: 2, Type: histories.OK, Op: 8, HighWatermark: -1},
	}
}

func TestCheckAndVerify(t *testing.T) {
	whole := writeHistory(t, logOfTwo(histories.Run{Producer: 1, Count: 1}, histories.Run{Offset: 1, Producer: 1, Sequence: 1, Count: 1})...)
	if code, stdout, stderr := outcome(t, command(t, "check", whole)); code != 0 || !strings.Contains(stdout, "verdict    HELD") {
		t.Errorf("a whole log: exit %d\n%s%s", code, stdout, stderr)
	}

	lost := writeHistory(t, logOfTwo(histories.Run{Producer: 1, Count: 1})...)
	dir := filepath.Join(t.TempDir(), "proofs")
	code, stdout, stderr := outcome(t, command(t, "check", lost, "--claims", "no-loss", "--certificates", dir, "--json"))
	var r model.Results
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 1 {
		t.Fatalf("a lost record: exit %d (%v)\n%s", code, err, stderr)
	}
	if len(r.Claims) != 1 || len(r.Claims[0].Anomalies) != 1 || r.Claims[0].Anomalies[0].Kind != model.LostAcked || r.Exit != 1 || r.Workload != "log" || r.Seed != 3 {
		t.Fatalf("a lost record: %s", stdout)
	}
	certificate := r.Claims[0].Anomalies[0].Certificate
	if code, stdout, stderr := outcome(t, command(t, "verify", certificate)); code != 0 || !strings.HasPrefix(stdout, "accepted: lost-acked: Record 1 of producer 1 ") {
		t.Errorf("its certificate: exit %d\n%s%s", code, stdout, stderr)
	}
	if code, stdout, _ := outcome(t, command(t, "verify", certificate, "--history", whole)); code != 1 || !strings.Contains(stdout, "rejected") {
		t.Errorf("its certificate with another history: exit %d\n%s", code, stdout)
	}
	raw, err := os.ReadFile(certificate)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		raw  string
		code int
	}{
		"another number":    {strings.Replace(string(raw), `"end_seq": 2`, `"end_seq": 3`, 1), 1},
		"an unknown field":  {strings.Replace(string(raw), `"role"`, `"rule"`, 1), 254},
		"half of it":        {string(raw[:len(raw)/2]), 254},
		"more than it":      {string(raw) + "{}", 254},
		"no such history":   {strings.Replace(string(raw), "some.bin", "none.bin", 1), 254},
		"nothing to verify": {strings.Replace(string(raw), "lost-acked", "unavailable-after-heal", 1), 1},
	} {
		if err := os.WriteFile(certificate, []byte(c.raw), 0o644); err != nil {
			t.Fatal(err)
		}
		code, stdout, stderr := outcome(t, command(t, "verify", certificate, "--json"))
		if code != c.code || (stdout == "") != (code == 254) {
			t.Errorf("%s: exit %d, expected %d\n%s%s", what, code, c.code, stdout, stderr)
		}
	}
}

// TestCheckOfFixtures: the verdict on every fixture of every format.
func TestCheckOfFixtures(t *testing.T) {
	for _, c := range []struct {
		file, flags string
		code        int
		says        string
	}{
		// One anomaly each, in Jepsen's EDN of its kafka workload.
		{"testdata/legal.edn", "--claims no-loss,no-phantom,real-time-order,read-after-ack", 0, "model log"},
		{"testdata/reordered-realtime.edn", "--claims all", 1, "reordered-realtime × 1"},
		{"testdata/stale-empty-read.edn", "--claims all", 1, "stale-read × 1"},
		{"testdata/stale-empty-read.edn", "--claims no-loss,real-time-order", 0, "HELD"},
		{"testdata/stale-second-reader.edn", "--claims all", 1, "stale-read × 1"},
		{"testdata/future-read.edn", "--claims all", 1, "future-read × 1"},
		{"testdata/unfillable-gap.edn", "--claims all", 1, "unfillable-gap × 1"},
		{"testdata/torn.edn", "", 254, "testdata/torn.edn:2: "},
		{"testdata/unjoined.edn", "", 254, "testdata/unjoined.edn:2: "},

		{"../../histories/testdata/kafka.edn", "", 1, "nonmonotonic-poll × 1"},
		{"../../histories/testdata/register.edn", "", 0, "model register"},
		{"../../histories/testdata/cas-register.edn", "", 0, "model cas-register"},
		{"../../histories/testdata/cas-register.log", "", 0, "model cas-register"},
		{"../../histories/testdata/multi-register.edn", "", 0, "model multi-register"},
		{"../../histories/testdata/mutex.edn", "", 0, "model mutex"},
		{"../../histories/testdata/key-value.edn", "", 0, "model kv"},
		{"../../histories/testdata/set.edn", "", 0, "model set"},
		{"../../histories/testdata/queue.edn", "", 1, "phantom × 2"},
		{"../../histories/testdata/queue.edn", "--model queue", 1, "model total-queue"},
		{"../../histories/testdata/queue.edn", "--model fifo", 254, "has drains"},
		{"../../histories/testdata/list-append.edn", "", 0, "model list-append"},
		{"../../histories/testdata/list-append.json", "", 1, "VIOLATED    serializability"},
		{"../../histories/testdata/s2.jsonl", "", 1, "nonlinearizable × 1"},

		// Groups, queues and transactions, in JSON lines.
		{"testdata/group-legal.jsonl", "", 0, "model groups"},
		{"testdata/group-skip.jsonl", "", 1, "(g/0@2)"},
		{"testdata/group-skip.jsonl", "--claims commit-safety", 0, "HELD"},
		{"testdata/group-skip.jsonl", "--model log --drained --claims no-phantom", 2, "not-tested"},
		{"testdata/group-skip.jsonl", "--model commits", 2, "undecided"},
		{"testdata/double-owner.jsonl", "", 1, "double-owner × 1 (g/0@1)"},
		{"testdata/committed-offset-regression.jsonl", "", 1, "committed-offset-regression × 1 (g/0@3)"},
		{"testdata/committed-offset-regression.jsonl", "--model groups", 1, "committed-offset-regression × 1 (g/0@3)"},
		{"testdata/lease-legal.jsonl", "--claims all", 0, "HELD"},
		{"testdata/early-redelivery.jsonl", "", 1, "early-redelivery × 1"},
		{"testdata/early-redelivery.jsonl", "--model groups", 254, "other objects than groups"},
		{"testdata/fifo-inversion.jsonl", "--model fifo", 1, "fifo-inversion × 1"},
		{"testdata/false-empty.jsonl", "--model fifo", 1, "false-empty × 1"},
		{"testdata/dedup-leak.jsonl", "--model fifo --dedup-window 5m", 1, "dedup-leak × 1"},
		{"testdata/dedup-leak.jsonl", "--model fifo", 0, "HELD"},
		{"testdata/write-skew.jsonl", "", 1, "G2-item × 1"},
		{"testdata/write-skew.jsonl", "--isolation serializable", 1, "G2-item × 1"},
		{"testdata/write-skew.jsonl", "--isolation snapshot-isolation", 0, "transactions that are snapshot-isolation"},
		{"testdata/torn-txn.jsonl", "", 1, "torn-txn × 1"},
		{"testdata/torn-txn.jsonl", "--claims serializability", 0, "HELD"},
	} {
		args := append([]string{"check", c.file}, strings.Fields(c.flags)...)
		dir := filepath.Join(t.TempDir(), "certificates")
		code, stdout, stderr := outcome(t, command(t, append(args, "--certificates", dir)...))
		if code != c.code || !strings.Contains(stdout+stderr, c.says) {
			t.Errorf("check %s %s: exit %d, expected %d and %q\n%s%s", c.file, c.flags, code, c.code, c.says, stdout, stderr)
		}
		proofs, err := filepath.Glob(filepath.Join(dir, "*.json"))
		if err != nil || (len(proofs) > 0) != (code == 1) {
			t.Errorf("check %s %s: exit %d with certificates %v (%v)", c.file, c.flags, code, proofs, err)
		}
		for _, proof := range proofs {
			verifyBothWays(t, proof)
		}
	}
}

// verifyBothWays demands that a certificate is accepted, and rejected as soon as one digit of it is another.
func verifyBothWays(t *testing.T, path string) {
	t.Helper()
	if code, stdout, stderr := outcome(t, command(t, "verify", path)); code != 0 {
		t.Errorf("verify %s: exit %d\n%s%s", path, code, stdout, stderr)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		if raw[i] < '0' || raw[i] > '9' || i%7 > 0 { // each seventh byte will do: package linearizability tries all
			continue
		}
		changed := bytes.Clone(raw)
		changed[i] = '0' + (raw[i]-'0'+1)%10
		if err := os.WriteFile(path, changed, 0o644); err != nil {
			t.Fatal(err)
		}
		var exit exitError
		if err := runVerify(path, "", false, io.Discard); !errors.As(err, &exit) || exit.code != model.ExitViolated && exit.code != model.ExitUsage {
			t.Errorf("verify %s with byte %d changed: %v", path, i, err)
		}
	}
}

func TestCheckByContract(t *testing.T) {
	lost := writeHistory(t, logOfTwo(histories.Run{Producer: 1, Count: 1})...)
	contract := filepath.Join(t.TempDir(), "contract.json")
	if err := os.WriteFile(contract, []byte(`{"partitions": 1, "replication": 3, "min_insync": 2, "acks": 1}`), 0o644); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := outcome(t, command(t, "check", lost, "--claims", "no-loss", "--contract", contract))
	if code != 0 || !strings.Contains(stdout, "permitted  lost-acked × 1, because of acks=1") {
		t.Errorf("a loss that acks=1 permits: exit %d\n%s%s", code, stdout, stderr)
	}
}

func TestCheckOfNothingIsNoPass(t *testing.T) {
	if code, stdout, stderr := outcome(t, command(t, "check", writeHistory(t))); code != 2 || !strings.Contains(stdout, "not-tested") {
		t.Errorf("an empty history: exit %d\n%s%s", code, stdout, stderr)
	}
}

func TestCheckOfARegister(t *testing.T) {
	step := func(op uint64, end histories.Type, do histories.Do, v histories.Datum) histories.Event {
		return histories.Event{Kind: histories.Object, Process: 1, Op: op, Type: end, Steps: []histories.Step{{Do: do, Value: v, Offset: -1}}}
	}
	write := func(op uint64, end histories.Type, n int64) histories.Event {
		return step(op, end, histories.Write, histories.IntDatum(n))
	}
	events := []histories.Event{write(0, histories.Invoke, 1), write(1, histories.OK, 1), write(0, histories.Invoke, 2), write(3, histories.OK, 2),
		step(0, histories.Invoke, histories.Read, histories.Datum{}), step(5, histories.OK, histories.Read, histories.IntDatum(1))}
	stale := writeHistory(t, events...)
	if code, stdout, stderr := outcome(t, command(t, "check", stale)); code != 1 || !strings.Contains(stdout, "model register") || !strings.Contains(stdout, "nonlinearizable × 1") {
		t.Errorf("a stale read: exit %d\n%s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := outcome(t, command(t, "check", writeHistory(t, events[:4]...), "--model", "register")); code != 2 || !strings.Contains(stdout, "no answer says anything") {
		t.Errorf("two writes that nobody read: exit %d\n%s%s", code, stdout, stderr)
	}
	fresh := append(events[:2:2], step(0, histories.Invoke, histories.Read, histories.Datum{}), step(3, histories.OK, histories.Read, histories.IntDatum(1)))
	if code, stdout, stderr := outcome(t, command(t, "check", writeHistory(t, fresh...))); code != 0 {
		t.Errorf("a write and a read of it: exit %d\n%s%s", code, stdout, stderr)
	}
	for _, args := range [][]string{{"--model", "log"}, {"--claims", "no-loss"}, {"--contract", "x"}} {
		if code, stdout, stderr := outcome(t, command(t, append([]string{"check", stale}, args...)...)); code != 254 || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: exit %d\n%s%s", args, code, stdout, stderr)
		}
	}
}

func TestCheckOfQueues(t *testing.T) {
	process := int32(0)
	var events []histories.Event
	whole := func(do histories.Do, message, lease int64) { // an operation that ends at once
		process++
		asked := histories.Step{Do: do, Value: histories.IntDatum(message), Number: -1, Offset: -1}
		got := asked
		if do == histories.Receive || do == histories.Dequeue {
			asked.Value = histories.Datum{}
			got.Number = lease
		}
		op := uint64(len(events) + 1)
		events = append(events, histories.Event{Kind: histories.Object, Process: process, Steps: []histories.Step{asked}},
			histories.Event{Kind: histories.Object, Process: process, Op: op, Type: histories.OK, Steps: []histories.Step{got}})
	}
	whole(histories.Enqueue, 1, 0)
	whole(histories.Receive, 1, int64(time.Hour))
	whole(histories.Receive, 1, int64(time.Hour))
	if code, stdout, stderr := outcome(t, command(t, "check", writeHistory(t, events...))); code != 1 || !strings.Contains(stdout, "model queue") || !strings.Contains(stdout, "early-redelivery × 1") {
		t.Errorf("handed out twice within an hour's lease: exit %d\n%s%s", code, stdout, stderr)
	}
	events = nil
	whole(histories.Enqueue, 1, 0)
	whole(histories.Enqueue, 2, 0)
	whole(histories.Dequeue, 2, -1)
	whole(histories.Dequeue, 1, -1)
	if code, stdout, stderr := outcome(t, command(t, "check", writeHistory(t, events...), "--model", "fifo")); code != 1 || !strings.Contains(stdout, "fifo-inversion × 1") {
		t.Errorf("the second came out first: exit %d\n%s%s", code, stdout, stderr)
	}
}

func TestCheckRefuses(t *testing.T) {
	whole := writeHistory(t, logOfTwo(histories.Run{Producer: 1, Count: 2})...)
	raw, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(t.TempDir(), "damaged.bin")
	raw[len(raw)-1]++
	if err := os.WriteFile(damaged, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	open := writeHistory(t, histories.Event{Kind: histories.Fetch, Type: histories.OK, Op: 7})
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{damaged}, "damaged.bin: history: byte "},
		{[]string{open}, "event 1: completes operation 7, which is not open"},
		{[]string{whole, "--model", "rope"}, `--model is "rope"`},
		{[]string{whole, "--format", "csv"}, `--format is "csv"`},
		{[]string{whole, "--claims", ""}, "--claims is empty"},
		{[]string{whole, "--claims", "eternity"}, `eternity`},
		{[]string{whole, "--contract", damaged}, "--contract"},
		{[]string{whole, "--isolation", "serializable"}, "--isolation with the model log, expected it with list-append"},
		{[]string{"testdata/write-skew.jsonl", "--isolation", "none"}, "expected one of [strict-serializable"},
		{[]string{"testdata/write-skew.jsonl", "--dedup-window", "5m"}, "expected it with fifo"},
		{[]string{"testdata/early-redelivery.jsonl", "--drift", "1"}, "--drift is 1, expected from 0 to below 1"},
		{[]string{"testdata/dedup-leak.jsonl", "--model", "fifo", "--dedup-window", "-1s"}, "--dedup-window is -1s"},
		{[]string{filepath.Join(t.TempDir(), "none")}, "no such file"},
		{nil, "arg"},
	} {
		code, stdout, stderr := outcome(t, command(t, append([]string{"check"}, c.args...)...))
		if code != 254 || stdout != "" || !strings.Contains(stderr, c.says) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("check %v: exit %d, stdout %q, stderr %q; want 254 and %q", c.args, code, stdout, stderr, c.says)
		}
	}
}
