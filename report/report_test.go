package report

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"ackproof/model"
)

// violated is a run in which much went wrong.
func violated() Run {
	proof := &model.Certificate{
		Claim: model.NoLoss, Anomaly: model.LostAcked, Partition: 3, Offset: 1042,
		Sentence: "The write was acknowledged at offset 1042, and the final read, which began later, found another record there.",
		Operations: []model.ProofOp{
			{Role: "write", Text: "process 4 appended producer 4 sequence 17 to p3, acknowledged at offset 1042 by n1"},
			{Role: "final read", Text: "process 61 read p3 from 0 to the empty read at 2000"},
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
		Dir:     "store/reference-log/x", Replay: "ackproof test --replay store/reference-log/x",
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
		"effective: kill n1, leader of p3: pid 41 gone; 3 leaders moved", "no effect: partition n1 n2, followers of p1",
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
	for _, want := range []string{"6 partitions × 3 copies", "acks=1", "idempotence off", "a change of leader may lose it", "lost-acked (acks=1)", "duplicate (idempotence off)"} {
		if !strings.Contains(flat, want) {
			t.Errorf("the contract lacks %q: %s", want, flat)
		}
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
