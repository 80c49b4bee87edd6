package wire

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/storage"
)

// file makes an open file with that content.
func file(t *testing.T, content []byte) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "segment")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// sent gives what arrives at the other end of a TCP connection.
func sent(t *testing.T, o *outgoing) []byte {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan []byte, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			got <- nil
			return
		}
		defer c.Close()
		all, _ := io.ReadAll(c)
		got <- all
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := o.writeTo(c, 10*time.Second); err != nil {
		t.Error(err)
	}
	c.Close()
	return <-got
}

// TestFetchEncodesAsKmsgDoes compares the hand-made frame with kmsg's for every version, with records in memory, in a file and in both.
func TestFetchEncodesAsKmsgDoes(t *testing.T) {
	big := bytes.Repeat([]byte("0123456789abcdef"), 70_000) // more than one piece
	f := file(t, append([]byte("skipped"), big...))
	rack := "r1"
	for version := int16(4); version <= 18; version++ {
		mine := &FetchResponse{Version: version, Topics: []FetchTopic{
			{Name: "a", ID: [16]byte{1}, Partitions: []FetchPartition{
				{Partition: 0, HighWatermark: 9, LogStart: 2, Leader: -1, LeaderEpoch: -1, Records: storage.NewRecords([]storage.Chunk{
					{Memory: []byte("in memory")}, {File: f, Offset: 7, Length: len(big)}, {Memory: big},
				}, nil)},
				{Partition: 1, HighWatermark: -1, LogStart: -1, ErrorCode: 6, Leader: 3, LeaderEpoch: 8, NullAborted: true},
				{Partition: 2, HighWatermark: 4, LogStart: 0, Leader: -1, LeaderEpoch: -1, Diverging: &storage.EpochStart{Epoch: 5, Start: 77}},
			}},
			{Name: "empty", ID: [16]byte{2}},
		}}
		theirs := kmsg.NewPtrFetchResponse()
		theirs.Version = version
		for _, t := range mine.Topics {
			kt := kmsg.NewFetchResponseTopic()
			kt.Topic, kt.TopicID = t.Name, t.ID
			for _, p := range t.Partitions {
				kp := kmsg.NewFetchResponseTopicPartition()
				kp.Partition, kp.ErrorCode, kp.HighWatermark, kp.LastStableOffset, kp.LogStartOffset = p.Partition, p.ErrorCode, p.HighWatermark, p.HighWatermark, p.LogStart
				kp.CurrentLeader.LeaderID, kp.CurrentLeader.LeaderEpoch = p.Leader, p.LeaderEpoch
				if !p.NullAborted {
					kp.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{}
				}
				if d := p.Diverging; d != nil {
					kp.DivergingEpoch.Epoch, kp.DivergingEpoch.EndOffset = d.Epoch, d.Start
				}
				records, err := p.Records.Bytes()
				if err != nil {
					panic(err)
				}
				kp.RecordBatches = records
				kt.Partitions = append(kt.Partitions, kp)
			}
			theirs.Topics = append(theirs.Topics, kt)
		}
		if version >= 16 {
			mine.Brokers = []kmsg.FetchResponseBroker{{NodeID: 3, Host: "h", Port: 9}, {NodeID: 4, Host: "i", Port: 10, Rack: &rack}}
			theirs.Brokers = mine.Brokers
		}
		var o outgoing
		o.set(42, mine)
		if got, want := sent(t, &o), AppendResponse(nil, 42, theirs); !bytes.Equal(got, want) {
			t.Errorf("v%d: %d bytes, kmsg makes %d; they differ from byte %d on", version, len(got), len(want), differs(got, want))
		}
	}
}

func differs(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// TestSendFromPlainReader covers the way without sendfile.
func TestSendFromPlainReader(t *testing.T) {
	o := outgoing{scratch: []byte("[]")}
	o.cut(1, []storage.Chunk{{File: bytes.NewReader([]byte("0123456789")), Offset: 2, Length: 5}})
	if got := sent(t, &o); string(got) != "[23456]" {
		t.Errorf("got %q", got)
	}
}

// TestSendShortFile: a file that has lost its end is an error, and not a frame with a hole.
func TestSendShortFile(t *testing.T) {
	for _, src := range []io.ReaderAt{file(t, []byte("short")), bytes.NewReader([]byte("short"))} {
		here, there := tcpPair(t)
		o := outgoing{scratch: []byte("[]")}
		o.cut(1, []storage.Chunk{{File: src, Offset: 1, Length: 100}})
		if err := o.writeTo(here, time.Second); err == nil {
			t.Errorf("%T: no error", src)
		}
		here.Close()
		there.Close()
	}
}

func tcpPair(t *testing.T) (here, there net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if here, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if there, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return here, there
}
