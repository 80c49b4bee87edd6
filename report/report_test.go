package report

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"pgregory.net/rapid"

	"ackproof/model"
)

// violated is a run in which much went wrong.
func violated() Run {
	proof := &model.Certificate{
		Claim: model.NoLoss, Anomaly: model.LostAcked, Partition: 3, Offset: 1042,
		Sentence: "The write was acknowledged at offset 1042, and the final read, which began later, found another record there.",
		Operations: []model.ProofOp{
			{Role: "write", Op: 10, EndSeq: 14, Invoked: 1_204_000_000, Ended: 1_310_000_000, Text: "process 4 appended producer 4 sequence 17 to p3, acknowledged at offset 1042 by n1"},
			{Role: "final read", Op: 90, EndSeq: 95, Invoked: 4_617_000_000, Ended: 4_702_000_000, Text: "process 61 read p3 from 0 to the empty read at 2000"},
		},
	}
	return Run{
		Results: model.Results{
			Version: 1, Seed: 7, System: model.SystemInfo{Name: "reference", Version: "abc"}, Workload: "log", Verdict: model.Violated, Exit: 1,
			Operations: model.Operations{OK: 12345, Fail: 67, Info: 8}, Records: model.Records{Acked: 99120, Indeterminate: 3, Read: 1234567},
			Faults: []model.FaultResult{
				{Kind: "kill", Targets: []string{"n1"}, Role: "leader of p3", FromMS: 1200, ToMS: 2400, Effective: true, Proof: "pid 41 gone; 3 leaders moved"},
				{Kind: "partition", Targets: []string{"n1", "n2"}, Role: "followers of p1", FromMS: 12300, ToMS: 14800, Proof: strings.Repeat("all links answered ", 9)},
			},
			LeaderChanges: 3, UnavailableMS: map[string]int64{"max": 2840, "p0": 2840},
			Claims: []model.ClaimResult{
				{ID: model.NoLoss, Verdict: model.Violated, Evidence: map[string]int64{"acked": 99120, "read_back": 99119},
					Anomalies: []model.AnomalyResult{{Kind: model.LostAcked, Count: 1, Certificate: "certificates/no-loss-1.json", Proof: proof, Where: []string{"p3@1042"}}}},
				{ID: model.Order, Verdict: model.Held, Evidence: map[string]int64{"records": 99119}},
				{ID: model.NoDuplicate, Verdict: model.NotTested, Reason: "no fault had an effect"},
				{ID: model.SessionReads, Verdict: model.NotTested, Reason: "no fault had an effect"},
				{ID: model.OffsetAgreement, Verdict: model.Undecided, Reason: "17 of 18 copies were read to their end",
					Permitted: []model.PermittedLoss{{Kind: model.InconsistentOffset, Count: 1200, Because: "acks=1"}}},
			},
			SecondOpinion: model.SecondOpinion{By: "porcupine", Windows: 40, Operations: 3012, Agreed: true},
			Drain:         model.Drain{Partitions: 6, ReplicasRead: 17},
		},
		Opinion: "2 windows not decided",
		Notes:   []string{"n2 ended by itself 3.1 s into the run (exit status 2); the end of its log:\n  | assertion failed: high watermark fell\n  | goroutine 1"},
		Dir:     "store/reference-log/x", Report: "store/reference-log/x/report.html", Replay: "ackproof test --replay store/reference-log/x",
	}
}

func TestTheSummaryTellsEverythingInEightyColumns(t *testing.T) {
	text := Summary(violated())
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
			t.Errorf("%d characters: %s", n, line)
		}
		if strings.TrimRight(line, " \n") != strings.TrimRight(line, "\n") {
			t.Errorf("spaces at the end: %q", line)
		}
	}
	flat := strings.Join(strings.Fields(text), " ")
	for _, want := range []string{
		"seed 7 (repeat with: ackproof test --replay store/reference-log/x)",
		"VIOLATED", "acknowledged records are kept", "acked 99,120, read back 99,119; lost-acked × 1 (p3@1042)",
		"The write was acknowledged at offset 1042", "final read: process 61 read p3", "certificates/no-loss-1.json",
		"assertion failed: high watermark fell",
		"1 of 2 had an effect; 3 leader changes; longest time without an acknowledged record 2.8 s",
		"1.2–2.4 kill n1, leader of p3: pid 41 gone; 3 leaders moved", "no effect partition n1 n2, followers of p1: all links answered",
		"report store/reference-log/x/report.html",
		"inconsistent-offset × 1,200, because of acks=1 (under offset-agreement)",
		"no-duplicate, session-reads: no fault had an effect", "offset-agreement: 17 of 18 copies",
		"porcupine agrees: 3,012 operations in 40 windows; 2 windows not decided", "not complete: 6 partitions, 17 copies",
		"1: at least one claim is violated",
	} {
		if !strings.Contains(flat, want) {
			t.Errorf("the summary lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Error("the summary has control sequences")
	}
}

func TestADisagreementShouts(t *testing.T) {
	r := violated()
	r.Results.SecondOpinion.Agreed, r.Results.Exit = false, model.ExitCrash
	if text := Summary(r); !strings.Contains(text, "DISAGREES") || !strings.Contains(text, "ackproof itself is at fault") {
		t.Errorf("%s", text)
	}
}

func TestTheContractIsTold(t *testing.T) {
	c := model.LogContract(model.Contract{System: "reference", Workload: "log", Partitions: 6, Replication: 3, MinISR: 2, Acks: 1})
	flat := strings.Join(strings.Fields(Contract(c)), " ")
	for _, want := range []string{"6 partitions × 3 copies", "acks=1", "idempotence off", "a change of leader may lose it", "10 more promises", "lost-acked (acks=1)", "duplicate (idempotence off)"} {
		if !strings.Contains(flat, want) {
			t.Errorf("the contract lacks %q: %s", want, flat)
		}
	}
	c.Acks, c.Idempotent = -1, true
	if text := Contract(model.LogContract(c)); strings.Count(text, "\n") > 6 {
		t.Errorf("a contract that permits nothing takes more than six lines:\n%s", text)
	}
}

func TestProgressWithoutATerminalIsLinesAndQuietIsNothing(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		var out bytes.Buffer
		p := NewProgress(&out, quiet)
		p.Planned(3, "ackproof test --replay x", model.Contract{}, 2)
		p.Phase("load", time.Second)
		p.Tick(time.Second, "too soon for a line")
		p.last = time.Now().Add(-lineEvery)
		p.Tick(6*time.Second, "12 records")
		p.Note("n1 ended")
		p.Done()
		text := out.String()
		if quiet {
			if text != "" {
				t.Errorf("quiet says %q", text)
			}
			continue
		}
		if !strings.HasPrefix(text, "seed 3 ") || !strings.Contains(text, "load 6 s: 12 records\n") || strings.Contains(text, "too soon") || !strings.Contains(text, "n1 ended\n") {
			t.Errorf("progress: %q", text)
		}
	}
}

func TestAProofIsDrawn(t *testing.T) {
	write := model.ProofOp{Role: "write", Op: 10, EndSeq: 14, Invoked: 1_204_000_000, Ended: 1_310_000_000}
	read := model.ProofOp{Role: "final read", Op: 90, EndSeq: 95, Invoked: 4_617_000_000, Ended: 4_702_000_000}
	for _, c := range []struct {
		name string
		ops  []model.ProofOp
		want string
	}{
		{"one after the other, whatever their order in the sentence", []model.ProofOp{read, write}, `
           write        ├────────┤                   1.204–1.310 s
                                 ╰╌ then ╌╮
           final read                     ├────────┤ 4.617–4.702 s
`},
		{"at the same time", []model.ProofOp{write, {Role: "reader", Op: 12, EndSeq: 20, Invoked: 1_204_000_500, Ended: 1_400_000_000}}, `
           write        ├─────────────────┤          1.204000–1.310000 s

           reader                ├─────────────────┤ 1.204001–1.400000 s
`},
		{"one that never ended, and one that plays two parts", []model.ProofOp{write, {Role: "lost \x1b[31m", Op: 12, Invoked: 1_250_000_000, Ended: -1}, {Role: "again", Op: 10, EndSeq: 14, Invoked: 1_204_000_000, Ended: 1_310_000_000}}, `
           write/again  ├──────────────────────────┤ 1.204–1.310 s

           lost \x1b[3…              ├─────────────► 1.250 s – never
`},
		{"nanoseconds apart", []model.ProofOp{{Role: "known", Op: 1, EndSeq: 2, Invoked: 100, Ended: 200}, {Role: "late", Op: 3, EndSeq: 4, Invoked: 300, Ended: 400}}, `
           known        ├────────┤                   100ns–200ns
                                 ╰╌ then ╌╮
           late                           ├────────┤ 300ns–400ns
`},
		{"one alone", []model.ProofOp{write}, "\n"},
	} {
		if got := "\n" + drawing(c.ops); got != c.want {
			t.Errorf("%s:\n%s\nexpected:\n%s", c.name, got, c.want)
		}
	}
}

// Whatever operations a proof has: no panic, and no line beyond the width.
func TestDrawingsKeepToTheWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ops []model.ProofOp
		for range rapid.IntRange(0, 6).Draw(t, "operations") {
			op := model.ProofOp{Role: rapid.String().Draw(t, "role"), Op: rapid.Uint64Range(1, 20).Draw(t, "begin"), Invoked: rapid.Int64Range(0, 9e12).Draw(t, "invoked")}
			op.EndSeq = op.Op + rapid.Uint64Range(0, 20).Draw(t, "length")
			if op.EndSeq == op.Op {
				op.EndSeq, op.Ended = 0, -1
			} else {
				op.Ended = op.Invoked + rapid.Int64Range(0, 9e12).Draw(t, "lasted")
			}
			ops = append(ops, op)
		}
		for line := range strings.Lines(drawing(ops)) {
			if uniseg.StringWidth(strings.TrimRight(line, "\n")) > width {
				t.Errorf("%s", line)
			}
		}
	})
}

func TestWhatDoesNotPrintIsShown(t *testing.T) {
	for in, want := range map[string]string{
		"plain, größer, 漢字, 👍🏽":              "plain, größer, 漢字, 👍🏽",
		"\x1b[31mred\x07":                    `\x1b[31mred\x07`,
		"a\xffb\xc3":                         `a\xffb\xc3`,
		"turned \u202e round \u2066":         `turned \u202e round \u2066`,
		"a\rb\x00":                           `a\x0db\x00`,
		"line\n\ttab":                        "line\n\ttab",
		"\ufffd is a letter of its own":      "\ufffd is a letter of its own",
		"<b>bold</b> & \U000e0041 invisible": "<b>bold</b> & \\U000e0041 invisible",
	} {
		if got := Visible(in); got != want {
			t.Errorf("%q: %q, expected %q", in, got, want)
		}
	}
	r := violated()
	evil := "<i>\x1b]0;title\x07\xff" + strings.Repeat("x", 200) + " 漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字"
	r.Notes, r.Opinion, r.Results.System.Version = []string{evil + "\n" + "| \x1b[2J"}, evil, evil
	proof := r.Results.Claims[0].Anomalies[0].Proof
	proof.Sentence, proof.Operations[0].Text, proof.Operations[0].Role = evil, evil, evil
	r.Results.Faults[0].Proof, r.Results.Faults[1].Proof = evil, evil
	r.Results.Claims[2].Reason, r.Results.Claims[0].Anomalies[0].Where = evil, []string{evil}
	text := Summary(r)
	if strings.ContainsAny(text, "\x1b\x07") || !utf8.ValidString(text) {
		t.Errorf("%q", text)
	}
	for line := range strings.Lines(text) {
		if n := uniseg.StringWidth(strings.TrimRight(line, "\n")); n > width {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}
