package harness

import (
	"io"
	"strings"
	"testing"
	"time"

	"ackproof/histories"
	"ackproof/linearizability"
	"ackproof/model"
)

// quiet is an Observer that keeps only notes.
type quiet struct{ notes []string }

func (q *quiet) Planned(int64, string, model.Contract, int) {}
func (q *quiet) Phase(string, time.Duration)                {}
func (q *quiet) Tick(time.Duration, string)                 {}
func (q *quiet) Note(text string)                           { q.notes = append(q.notes, text) }

// watching is a run whose journal has a tap to the online checker.
func watching(claims ...model.Claim) (*run, *quiet) {
	q := &quiet{}
	r := &run{Test: Test{Options: Options{Claims: claims}, Observer: q}, contract: model.LogContract(model.Contract{Partitions: 1, Replication: 3, MinISR: 2, Acks: -1, Idempotent: true, Dense: true})}
	r.journal = histories.NewRecorder(io.Discard, histories.Header{})
	r.certain = certainty{reached: make(chan struct{}), online: linearizability.NewOnline(r.contract)}
	r.journal.Tap(r.watchLog)
	return r, q
}

// acknowledge appends one record of a producer and has it acknowledged.
func acknowledge(r *run, producer int32, offset int64) {
	op := r.journal.Invoke(histories.Event{Kind: histories.Append, Process: producer, Runs: []histories.Run{{Producer: producer, Count: 1}}})
	r.journal.Complete(histories.Event{Kind: histories.Append, Type: histories.OK, Op: op, Process: producer, Offset: offset})
}

func ended(r *run) bool {
	select {
	case <-r.certain.reached:
		return true
	default:
		return false
	}
}

func TestACertainViolationEndsTheLoad(t *testing.T) {
	r, q := watching()
	acknowledge(r, 1, 0)
	if ended(r) {
		t.Fatal("the load ends after one acknowledged record")
	}
	acknowledge(r, 2, 0)
	acknowledge(r, 3, 0)
	if !ended(r) || len(q.notes) != 1 || !strings.Contains(q.notes[0], "offset-agreement, inconsistent-offset in p0: offset 0 holds record 0 of producer 1, and record 0 of producer 2") {
		t.Fatalf("two records at one offset: ended %t, notes %q", ended(r), q.notes)
	}
	if bug := r.unconfirmed(model.Violated); bug != "" {
		t.Errorf("confirmed by the check, and yet: %s", bug)
	}
	if bug := r.unconfirmed(model.Held); !strings.Contains(bug, "offset 0 holds") {
		t.Errorf("not confirmed by the check: %q", bug)
	}
}

func TestAViolationThatNobodyAskedForDoesNot(t *testing.T) {
	r, q := watching(model.NoLoss)
	acknowledge(r, 1, 0)
	acknowledge(r, 2, 0)
	if ended(r) || len(q.notes) != 0 || r.unconfirmed(model.Held) != "" {
		t.Errorf("ended %t, notes %q", ended(r), q.notes)
	}
}
