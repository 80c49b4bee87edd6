package main

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func said(name string, lines ...answer) *system {
	return &system{name: name, asked: lines}
}

func TestCompare(t *testing.T) {
	line := func(step, path, value string, version int16) answer {
		return answer{at{"case", step, path}, version, value}
	}
	ours := said("ours", line("a", "ErrorCode", "none", 0), line("a", "ErrorCode", "none", 1), line("a", "ErrorCode", "none", 2),
		line("a", "Topics[x]", "there", 1), line("a", "Topics[x].ErrorCode", "none", 1), line("b", "ErrorCode", "none", 0))
	theirs := said("theirs", line("a", "ErrorCode", "bad", 0), line("a", "ErrorCode", "bad", 1), line("a", "ErrorCode", "none", 2))
	var got []string
	for _, d := range compare(ours, theirs, "") {
		got = append(got, d.String())
	}
	want := []string{
		"case / a, v0 to v1: ErrorCode: ours none, theirs bad",
		"case / a, v1: Topics[x]: ours there, theirs (absent)", // and not what is in it
		"case / b, v0: (the step): ours asked, theirs not asked",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if again := compare(ours, ours, ""); len(again) > 0 {
		t.Errorf("it differs from itself: %v", again[0])
	}
}

func TestReasons(t *testing.T) {
	all := reasons{{pattern: "fetch/*/*Aborted*", text: "yes"}}
	if got := all.of(&difference{at: at{"fetch", "at the end", "Topics[0].Partitions[0].AbortedTransactions"}}); got != "yes" || !all[0].used {
		t.Errorf("%q", got)
	}
	if got := all.of(&difference{at: at{"fetch", "at the end", "Topics[0].ErrorCode"}}); got != "" {
		t.Errorf("a reason for another field: %q", got)
	}
	if _, err := readReasons(); err != nil {
		t.Error(err)
	}
}

// What differs without a meaning is masked; codes, offsets and lengths are not.
func TestFlatten(t *testing.T) {
	r := kmsg.NewPtrMetadataResponse()
	r.ClusterID, r.ControllerID = kmsg.StringPtr("abc"), 3
	topic := kmsg.NewMetadataResponseTopic()
	topic.Topic, topic.TopicID, topic.ErrorCode = kmsg.StringPtr("differ-1"), [16]byte{1}, 3
	p := kmsg.NewMetadataResponseTopicPartition()
	p.Leader, p.LeaderEpoch, p.Replicas = 2, 7, []int32{1, 2, 3}
	topic.Partitions = append(topic.Partitions, p)
	r.Topics = append(r.Topics, topic)
	got := flatten(&talk{topic: "differ-1", id: [16]byte{1}}, r)
	for path, want := range map[string]string{
		"ClusterID": `"<text>"`, "ControllerID": "<broker>", "Topics[<topic>].TopicID": "<id>", "Topics[<topic>].ErrorCode": "UNKNOWN_TOPIC_OR_PARTITION",
		"Topics[<topic>].Partitions[0].Leader": "<broker>", "Topics[<topic>].Partitions[0].LeaderEpoch": "7", "Topics[<topic>].Partitions[0].Replicas": "3",
	} {
		if got[path] != want {
			t.Errorf("%s is %q, want %q", path, got[path], want)
		}
	}
}

// What was recorded is read as it was written.
func TestRecorded(t *testing.T) {
	s, err := recorded()
	if err != nil {
		t.Fatal(err)
	}
	if s.serves[1].max < 18 || index(s)[key{at{"produce", "acks=2", "Topics[<topic>].Partitions[0].ErrorCode"}, 9}] != "INVALID_REQUIRED_ACKS" {
		t.Errorf("Fetch up to %d, %d fields", s.serves[1].max, len(s.asked))
	}
}
