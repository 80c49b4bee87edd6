package kafkaproto

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxAnswer bounds what a node may make us read.
const maxAnswer = 16 << 20

// RoundTrip sends one request over conn and reads its answer. Everything else about connections is the caller's, deadlines included.
func RoundTrip(conn net.Conn, q kmsg.Request) (kmsg.Response, error) {
	const correlation = 1
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID("ackproof"))
	if _, err := conn.Write(f.AppendRequest(nil, q, correlation)); err != nil {
		return nil, fmt.Errorf("send api key %d: %w", q.Key(), err)
	}
	var head [8]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return nil, fmt.Errorf("read the answer to api key %d: %w", q.Key(), err)
	}
	size, got := binary.BigEndian.Uint32(head[:4]), int32(binary.BigEndian.Uint32(head[4:]))
	if size < 4 || size > maxAnswer || got != correlation {
		return nil, fmt.Errorf("answer to api key %d: %d bytes with correlation id %d, expected 4 to %d with %d", q.Key(), size, got, maxAnswer, correlation)
	}
	body := make([]byte, size-4)
	if _, err := io.ReadFull(conn, body); err != nil {
		return nil, fmt.Errorf("read the answer to api key %d: %w", q.Key(), err)
	}
	resp := q.ResponseKind()
	resp.SetVersion(q.GetVersion())
	if resp.IsFlexible() && q.Key() != kmsg.ApiVersions.Int16() { // their header ends with tagged fields, of which Kafka defines none
		if len(body) == 0 || body[0] != 0 {
			return nil, fmt.Errorf("answer to api key %d: tagged fields in the header, expected none", q.Key())
		}
		body = body[1:]
	}
	if err := resp.ReadFrom(body); err != nil {
		return nil, fmt.Errorf("decode the answer to api key %d: %w", q.Key(), err)
	}
	return resp, nil
}

// Ask is one round trip over a connection of its own.
func Ask(addr string, q kmsg.Request, timeout time.Duration) (kmsg.Response, error) {
	conn, err := net.DialTimeout("tcp", addr, timeout)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(timeout))
	return RoundTrip(conn, q)
}

// Ping is the cheapest exchange of the protocol, which a node answers from the moment when it listens: ApiVersions. See systems.Prober.
func Ping(conn net.Conn) error {
	q := kmsg.NewPtrApiVersionsRequest()
	q.Version = 0
	resp, err := RoundTrip(conn, q)
	if err != nil {
		return err
	}
	if code := resp.(*kmsg.ApiVersionsResponse).ErrorCode; code != 0 {
		return fmt.Errorf("ApiVersions answered with error code %d", code)
	}
	return nil
}

// Time asks the node at the other end of conn what time it takes it to be, by DescribeQuorum: in its answer, a node that leads says that it was up to date with itself
// now, in milliseconds. Kafka's brokers that do not lead the control plane do not answer; the reference broker's do. The deadline is the caller's.
func Time(conn net.Conn, node int) (time.Time, error) {
	resp, err := RoundTrip(conn, quorumRequest())
	if err != nil {
		return time.Time{}, err
	}
	for _, t := range resp.(*kmsg.DescribeQuorumResponse).Topics {
		for _, p := range t.Partitions {
			for _, v := range p.CurrentVoters {
				if int(v.ReplicaID) == node && v.LastCaughtUpTimestamp > 0 {
					return time.UnixMilli(v.LastCaughtUpTimestamp), nil
				}
			}
		}
	}
	return time.Time{}, fmt.Errorf("DescribeQuorum does not say when n%d was up to date, expected its own time", node)
}
