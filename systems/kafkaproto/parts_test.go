package kafkaproto

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/systems"
)

func seen(node int, index int64, controller int, partitions ...kmsg.MetadataResponseTopicPartition) view {
	return view{node: node, index: index, controller: controller, topic: kmsg.MetadataResponseTopic{Partitions: partitions}}
}

func led(by, epoch int32, isr ...int32) kmsg.MetadataResponseTopicPartition {
	return kmsg.MetadataResponseTopicPartition{Leader: by, LeaderEpoch: epoch, Replicas: []int32{1, 2, 3}, ISR: isr}
}

func TestNewestViewWins(t *testing.T) {
	part := func(leader int, epoch int32, isr ...int) systems.PartitionRoles {
		return systems.PartitionRoles{Leader: leader, LeaderEpoch: epoch, Replicas: []int{1, 2, 3}, ISR: isr, Offline: []int{}}
	}
	for _, c := range []struct {
		name  string
		views []view
		want  systems.Roles
	}{
		{"larger epoch", []view{seen(1, 9, 1, led(1, 4, 1, 2, 3)), seen(2, 5, 2, led(2, 5, 2, 3)), seen(3, 5, 2, led(2, 5, 2, 3))},
			systems.Roles{Controller: 2, Partitions: []systems.PartitionRoles{part(2, 5, 2, 3)}}},
		{"same epoch, read further", []view{seen(1, 5, 2, led(1, 4, 1, 2, 3)), seen(2, 9, 2, led(1, 4, 1))},
			systems.Roles{Controller: 2, Partitions: []systems.PartitionRoles{part(1, 4, 1)}}},
		{"same epoch, the leader's own view", []view{seen(1, 0, 0, led(2, 5, 1, 2, 3)), seen(2, 0, 0, led(2, 5, 2)), seen(3, 0, 0, led(2, 5, 1, 2, 3))},
			systems.Roles{Partitions: []systems.PartitionRoles{part(2, 5, 2)}}},
		{"a controller of yesterday", []view{{node: 1, controller: 1, epoch: 4}, {node: 2, controller: 3, epoch: 5}, {node: 3, controller: 1, epoch: 4}},
			systems.Roles{Controller: 3, Partitions: []systems.PartitionRoles{{}}}},
		{"nobody leads", []view{seen(1, 5, 0, led(-1, 6))}, systems.Roles{Partitions: []systems.PartitionRoles{{Leader: 0, LeaderEpoch: 6, Replicas: []int{1, 2, 3}, ISR: []int{}, Offline: []int{}}}}},
		{"a partition too many", []view{seen(1, 5, 1, led(1, 1, 1), kmsg.MetadataResponseTopicPartition{Partition: 7})}, systems.Roles{Controller: 1, Partitions: []systems.PartitionRoles{part(1, 1, 1)}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, merge(c.views, 1)); d != "" {
				t.Error(d)
			}
		})
	}
}

// Whatever a node answers, the client ends with an answer or an error.
func TestRoundTripDistrustsAnswers(t *testing.T) {
	good := kmsg.NewPtrMetadataResponse()
	good.Version = 12
	frame := func(body []byte) []byte {
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	}
	for _, c := range []struct {
		name   string
		answer []byte
		want   string // "" for an answer
	}{
		{"right", frame(good.AppendTo([]byte{0, 0, 0, 1, 0})), ""},
		{"closed", nil, "EOF"},
		{"half a header", []byte{0, 0, 0}, "EOF"},
		{"too short", []byte{0, 0, 0, 3, 0, 0, 0, 1}, "3 bytes"},
		{"too long", []byte{0xff, 0, 0, 0, 0, 0, 0, 1}, "expected 4 to"},
		{"for another request", frame(good.AppendTo([]byte{0, 0, 0, 2, 0})), "correlation id 2"},
		{"cut short", frame(good.AppendTo([]byte{0, 0, 0, 1, 0}))[:12], "EOF"},
		{"header tags", frame(good.AppendTo([]byte{0, 0, 0, 1, 1})), "tagged fields"},
		{"no header", frame([]byte{0, 0, 0, 1}), "tagged fields"},
		{"rubbish", frame([]byte{0, 0, 0, 1, 0, 0xff}), "decode"},
	} {
		t.Run(c.name, func(t *testing.T) {
			here, there := net.Pipe()
			defer here.Close()
			go func() {
				defer there.Close()
				var size [4]byte
				io.ReadFull(there, size[:])
				io.CopyN(io.Discard, there, int64(binary.BigEndian.Uint32(size[:])))
				there.Write(c.answer)
			}()
			q := kmsg.NewPtrMetadataRequest()
			q.Version = 12
			_, err := RoundTrip(here, q)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, expected %q", err, c.want)
			}
		})
	}
}
