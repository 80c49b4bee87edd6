package page

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"io"
	"iter"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ackproof/histories"
	"ackproof/model"
)

// script records a small run: two writers and a reader of p0, whose leader n1 is killed and followed by n2, and which loses the record at offset 1.
func script(note string) []histories.Event {
	var events []histories.Event
	seq := uint64(0)
	at := time.Duration(0)
	add := func(ev histories.Event) uint64 {
		seq++
		at += time.Millisecond
		ev.Seq, ev.Time = seq, at
		if ev.Op == 0 {
			ev.Op = seq
		}
		events = append(events, ev)
		return seq
	}
	mark := func(kind histories.Kind, index int64, note string) {
		add(histories.Event{Kind: kind, Offset: index, Note: note})
	}
	write := func(process int32, n int64, offset int64, node int32) {
		runs := []histories.Run{{Producer: process, Sequence: n, Count: 1}}
		op := add(histories.Event{Kind: histories.Append, Process: process, Runs: runs})
		add(histories.Event{Type: histories.OK, Kind: histories.Append, Op: op, Process: process, Offset: offset, Node: node, Runs: runs})
	}
	read := func(kind histories.Kind, process int32, from int64, node int32, runs ...histories.Run) {
		op := add(histories.Event{Kind: kind, Process: process, Session: int32(seq), Offset: from})
		add(histories.Event{Type: histories.OK, Kind: kind, Op: op, Process: process, Session: int32(seq), Offset: from, Node: node, Runs: runs})
	}
	mark(histories.Phase, 0, "load")
	write(1, 0, 0, 1)
	write(1, 1, 1, 1)
	read(histories.Fetch, 3, 0, 1, histories.Run{Producer: 1, Count: 2})
	mark(histories.Fault, 0, "began: kill of n1 took effect")
	lost := add(histories.Event{Kind: histories.Append, Process: 1, Runs: []histories.Run{{Producer: 1, Sequence: 2, Count: 1}}})
	at += 2 * time.Second
	add(histories.Event{Type: histories.Info, Kind: histories.Append, Op: lost, Process: 1, Code: histories.NoAnswer, Note: note})
	mark(histories.Fault, 0, "healed: kill of n1 healed")
	write(2, 0, 1, 2)
	mark(histories.Phase, 0, "heal")
	mark(histories.Phase, 0, "drain")
	read(histories.Fetch, 4, 0, 2, histories.Run{Producer: 1, Count: 1}, histories.Run{Offset: 1, Producer: 2, Count: 1})
	read(histories.CopyRead, 4, 0, 1, histories.Run{Producer: 1, Count: 1}, histories.Run{Offset: 1, Producer: 2, Count: 1})
	add(histories.Event{Kind: histories.Fetch, Process: 5, Session: 9}) // never ends
	mark(histories.Phase, 0, "end")
	return events
}

// violated is the run of the script, with texts that mean harm.
func violated(evil string) *Run {
	events := script(evil)
	proof := model.Certificate{Version: 1, Claim: model.NoLoss, Anomaly: model.LostAcked, Partition: 0, Offset: 1, Sentence: "The record is gone: " + evil,
		Operations: []model.ProofOp{
			{Role: "write", Op: 4, EndSeq: 5, Invoked: 4e6, Ended: 5e6, Process: 1, What: "append", Text: evil},
			{Role: "final", Op: 16, EndSeq: 17, Invoked: 2016e6, Ended: 2017e6, Process: 4, What: "fetch", Text: "fetch of p0"},
		}}
	claims := []model.ClaimResult{
		{ID: model.NoLoss, Verdict: model.Violated, Evidence: map[string]int64{"acked": 3},
			Anomalies: []model.AnomalyResult{{Kind: model.LostAcked, Count: 1, Certificate: "certificates/no-loss-1.json", Where: []string{"p0@1"}}},
			Permitted: []model.PermittedLoss{{Kind: model.InconsistentOffset, Count: 2, Because: evil}}},
		{ID: model.Order, Verdict: model.Held},
		{ID: model.NoDuplicate, Verdict: model.NotTested, Reason: evil},
	}
	return &Run{
		Results: model.Results{Version: 1, Seed: 7, System: model.SystemInfo{Name: "reference", Version: evil}, Workload: "log", Verdict: model.Violated, Exit: 1, Claims: claims,
			Faults:     []model.FaultResult{{Kind: "kill", Targets: []string{"n1"}, Role: "leader of p0", FromMS: 7, ToMS: 2010, Effective: true, Proof: evil}},
			Operations: model.Operations{OK: 6, Info: 1}, SecondOpinion: model.SecondOpinion{By: "porcupine", Agreed: true}, Seconds: model.Seconds{Load: 2}},
		Facts: model.Facts{Notes: []string{"n2 ended by itself: " + evil}}, Contract: model.LogContract(model.Contract{Partitions: 1, Replication: 2, MinISR: 2, Acks: -1}),
		Proofs: []Proof{{Path: "certificates/no-loss-1.json", Certificate: proof}}, Dir: "store/x", Replay: "ackproof test --replay store/x", Schedule: `{"faults": []}`,
		Series: Series{Runs: 2, Violated: 1, Previous: &Earlier{Name: evil, Differs: []string{evil},
			Results: model.Results{Claims: []model.ClaimResult{{ID: model.NoLoss, Verdict: model.Held}, {ID: model.Order, Verdict: model.Held}}}}},
		Environment: []Pair{{evil, evil}},
		Events:      func() iter.Seq2[histories.Event, error] { return histories.Events(events) },
	}
}

func written(t *testing.T, run *Run) string {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, run); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestThePageAnswersInOrder(t *testing.T) {
	page := written(t, violated("plain"))
	at := 0
	for _, want := range []string{"VIOLATED", "exit 1: at least one claim is violated", "1 of 1 fault had an effect (kill × 1)", "n2 ended by itself: plain", "acknowledged records are kept",
		"lost-acked × 1", "inconsistent-offset × 2, because of plain", "The record is gone", "returned before", "ackproof verify store/x/certificates/no-loss-1.json",
		"Partition 0, offsets 0 to 12", "copy on n1", `<span class="quiet">8 operations</span>`, "kill n1", "Gaps, the longest first", "kill n1 (n1 led the partition)",
		"Compared with the run before", "ackproof test --replay store/x", "What was not tested", "not-tested: no-duplicate: plain"} {
		i := strings.Index(page[at:], want)
		if i < 0 {
			t.Fatalf("the page lacks %q after byte %d", want, at)
		}
		at += i
	}
}

// What comes from outside is text, wherever it stands: no element, no attribute, no control character of it gets into the page.
func TestNothingFromOutsideIsMoreThanText(t *testing.T) {
	evil := "</script><img src=x onerror=alert(1)>\" onload=\"alert(2)\x1b[31m\x00\u202e\xff</style><!--{{.}}"
	run := violated(evil)
	run.Results.Claims[1].ID = model.Claim(evil)
	run.Results.Workload, run.Results.Verdict = evil, model.Verdict(evil)
	run.Proofs[0].Anomaly = model.Anomaly(evil)
	run.Dir, run.Replay, run.Schedule, run.Command = evil, evil, evil, evil
	page := written(t, run)
	for _, bad := range []string{"<img", "onerror=alert(1)>", "\x1b", "\x00", "\u202e", "\xff", "<!--", `" onload="`} {
		if strings.Contains(page, bad) {
			i := strings.Index(page, bad)
			t.Errorf("the page contains %q: …%q…", bad, page[max(0, i-80):min(len(page), i+40)])
		}
	}
	if !strings.Contains(page, `\x1b[31m`) || !strings.Contains(page, `&lt;img src=x`) {
		t.Error("the texts are not shown")
	}
	if n := strings.Count(page, "<script"); n != columnCount+2 {
		t.Errorf("%d script elements, expected %d", n, columnCount+2)
	}
}

func TestThePageAsksNobody(t *testing.T) {
	page := written(t, violated("plain"))
	if !strings.Contains(page, `http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;; script-src &#39;sha256-`) {
		t.Errorf("no strict policy: %.600s", page)
	}
	if found := regexp.MustCompile(`(?i)(src|href|action)\s*=\s*"?(https?:|//)|@import|url\([^#]|\sstyle=|\son[a-z]+=`).FindString(page); found != "" {
		t.Errorf("the page has %q", found)
	}
}

func TestPackedOperationsAreTheOperations(t *testing.T) {
	got, pic := unpackAll(t, written(t, violated("no answer came")))
	if pic.Operations != 8 || len(pic.Faults) != 1 || len(pic.Leaders) != 1 || len(pic.Leaders[0].Spans) != 2 || len(pic.Gaps) != 1 {
		t.Errorf("the picture: %+v", pic)
	}
	want := []packed{
		{2, 3, 3000, 1000, 1, histories.Append, histories.OK, 0, 0, 1, 1, ""},
		{4, 5, 5000, 1000, 1, histories.Append, histories.OK, 0, 1, 1, 1, ""},
		{6, 7, 7000, 1000, 3, histories.Fetch, histories.OK, 0, 0, 2, 1, ""},
		{9, 10, 2010000, 2001000, 1, histories.Append, histories.Info, 0, -1, 1, 0, "no answer: no answer came"},
		{12, 13, 2013000, 1000, 2, histories.Append, histories.OK, 0, 1, 1, 2, ""},
		{16, 17, 2017000, 1000, 4, histories.Fetch, histories.OK, 0, 0, 2, 2, ""},
		{18, 19, 2019000, 1000, 4, histories.CopyRead, histories.OK, 0, 0, 2, 1, ""},
		{20, 0, 2021000, 1000, 5, histories.Fetch, histories.Invoke, 0, 0, 0, 0, ""},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(packed{})); diff != "" {
		t.Error(diff)
	}
}

// failer is a test, or a part of a property.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func dataOf(t failer, page, id string) []byte {
	t.Helper()
	_, rest, ok := strings.Cut(page, `id="`+id+`">`)
	text, _, closed := strings.Cut(rest, "</script>")
	if !ok || !closed {
		t.Fatalf("the page has no data %q", id)
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return raw
}

func unpack(t failer, page, name string) (numbers []uint64) {
	t.Helper()
	raw, err := io.ReadAll(flate.NewReader(bytes.NewReader(dataOf(t, page, "col-"+name))))
	if err != nil {
		t.Fatalf("%v", err)
	}
	for len(raw) > 0 {
		v, n := binary.Uvarint(raw)
		if n <= 0 {
			t.Fatalf("column %s: a number that ends too early", name)
		}
		numbers, raw = append(numbers, v), raw[n:]
	}
	return numbers
}
