package main

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"ackproof/conformance/program"
)

func records(values ...string) (all []program.Event) {
	for i, v := range values {
		all = append(all, program.Event{Offset: int64(i), Value: v})
	}
	return all
}

// What passes is of no worth if nothing can fail.
func TestComplete(t *testing.T) {
	a, b, c := program.Value(5), program.Value(6), program.Value(7)
	for _, x := range []struct {
		name    string
		records []program.Event
		once    bool
		want    string // in the error; "" for none
	}{
		{"each once", records(b, a, c), true, ""},
		{"one twice", records(a, b, a, c), true, "twice: record 5"},
		{"one twice where that may be", records(a, b, a, c), false, ""},
		{"one missing", records(a, c), false, "the first that is missing is 6"},
		{"none", nil, true, "the first that is missing is 5"},
		{"one too many", records(a, b, c, program.Value(8)), false, "was not sent"},
		{"an altered one", records(a, b, c[1:]), false, "was not sent"},
	} {
		err := complete("taken", x.records, 5, 3, x.once)
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%s: %v, want %q", x.name, err, x.want)
		}
	}
}

func TestAcknowledged(t *testing.T) {
	if err := acknowledged(records("", "", ""), 3); err != nil {
		t.Error(err)
	}
	if acknowledged(records("", ""), 3) == nil {
		t.Error("two of three are enough")
	}
	if acknowledged(records(program.Value(0), program.Value(0)), 2) == nil {
		t.Error("one acknowledged twice and one never pass")
	}
}

func TestAcksAgree(t *testing.T) {
	log := []*kgo.Record{{Partition: 1, Offset: 4, Value: []byte("x")}}
	for _, x := range []struct {
		acked program.Event
		want  bool
	}{
		{program.Event{Partition: 1, Offset: 4, Value: "x"}, true},
		{program.Event{Partition: 1, Offset: 4}, true}, // of a library that does not say which record it was
		{program.Event{Partition: 1, Offset: 4, Value: "y"}, false},
		{program.Event{Partition: 1, Offset: 5, Value: "x"}, false},
		{program.Event{Partition: 0, Offset: 4}, false},
		{program.Event{Partition: 0, Offset: -1, Value: "x"}, true}, // of one that does not say where it lies
	} {
		if err := acksAgree([]program.Event{x.acked}, log); (err == nil) != x.want {
			t.Errorf("%+v: %v", x.acked, err)
		}
	}
}
