package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// system is a cluster that is asked.
type system struct {
	name      string
	bootstrap []string
	serves    map[int16]span
	brokers   map[int32]string // addresses
	asked     []answer
}

// span is a range of versions, both ends included.
type span struct{ min, max int16 }

// answer is one line of what a system says: a field of an answer, or that there was none.
type answer struct {
	at      // where
	version int16
	value   string
}

// at names a field: of the answer to a step of a case.
type at struct{ which, step, path string }

// talk is one case on one system, in one version of its API.
type talk struct {
	*system
	peer  *system // that it is compared with
	ctx   context.Context
	which string
	v     int16 // version of the API that the case is about
	key   int16
	conns map[int32]net.Conn
	// Names of the topic and the group of this case in this version, and what the system calls them; they are masked in answers.
	topic, group string
	id           [16]byte
	members      []string
}

// errSystem ends a case that cannot go on: what it needs could not be set up.
type errSystem struct{ error }

func (t *talk) fail(format string, args ...any) { panic(errSystem{fmt.Errorf(format, args...)}) }

const (
	anyBroker int32 = -1
	askTime         = 15 * time.Second
	clientID        = "differ"
)

// open gives the talk's connection to a broker.
func (t *talk) open(broker int32) net.Conn {
	if c := t.conns[broker]; c != nil {
		return c
	}
	address := t.bootstrap[0]
	if broker != anyBroker {
		address = t.brokers[broker]
	}
	c, err := net.DialTimeout("tcp", address, askTime)
	if err != nil {
		t.fail("broker %d at %q: %w", broker, address, err)
	}
	t.conns[broker] = c
	return c
}

func (t *talk) close() {
	for _, c := range t.conns {
		c.Close()
	}
}

// The ways in which there is no answer.
var (
	errClosed = errors.New("connection closed")
	errSilent = errors.New("no answer")
)

// send sends a frame without its length, and gives the frame that comes back.
func (t *talk) send(broker int32, frame []byte) ([]byte, error) {
	c := t.open(broker)
	c.SetDeadline(time.Now().Add(askTime))
	_, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...))
	var size [4]byte
	if err == nil {
		_, err = io.ReadFull(c, size[:])
	}
	var back []byte
	if err == nil {
		back = make([]byte, binary.BigEndian.Uint32(size[:]))
		_, err = io.ReadFull(c, back)
	}
	if err == nil {
		return back, nil
	}
	c.Close()
	delete(t.conns, broker)
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		return nil, errSilent
	}
	return nil, errClosed
}

// request asks in the version that q has.
func (t *talk) request(broker int32, q kmsg.Request) (kmsg.Response, error) {
	const correlation = 7
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID)).AppendRequest(nil, q, correlation)[4:]
	back, err := t.send(broker, frame)
	if err != nil {
		return nil, err
	}
	return read(back, q, correlation)
}

func read(back []byte, q kmsg.Request, correlation uint32) (kmsg.Response, error) {
	if len(back) < 5 || binary.BigEndian.Uint32(back) != correlation {
		return nil, fmt.Errorf("not an answer: %.40x", back)
	}
	back = back[4:]
	resp := q.ResponseKind()
	if resp.IsFlexible() && q.Key() != 18 {
		if back[0] != 0 {
			return nil, fmt.Errorf("not an answer: tags in its header")
		}
		back = back[1:]
	}
	if err := resp.ReadFrom(back); err != nil {
		return nil, fmt.Errorf("not an answer: %w", err)
	}
	return resp, nil
}

// ask asks a broker and keeps the answer under the name of the step.
func (t *talk) ask(step string, broker int32, q kmsg.Request) kmsg.Response {
	if q.Key() == t.key {
		q.SetVersion(t.v)
	} else {
		q.SetVersion(min(q.MaxVersion(), t.serves[q.Key()].max))
	}
	resp, err := t.request(broker, q)
	if err != nil {
		t.note(step, "", err.Error())
		return nil
	}
	for path, value := range flatten(t, resp) {
		t.note(step, path, value)
	}
	return resp
}

func (t *talk) note(step, path, value string) {
	t.asked = append(t.asked, answer{at{t.which, step, path}, t.v, value})
}

// prepare asks for something that is no matter of the case; it must succeed.
func prepare[R kmsg.Response](t *talk, broker int32, q kmsg.Request) R {
	q.SetVersion(min(q.MaxVersion(), t.serves[q.Key()].max))
	resp, err := t.request(broker, q)
	if err != nil {
		t.fail("%s: %w", kmsg.NameForKey(q.Key()), err)
	}
	return resp.(R)
}

// until tries again until done says so.
func (t *talk) until(what string, done func() bool) {
	for end := time.Now().Add(askTime); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) || t.ctx.Err() != nil {
			t.fail("%s: not in time", what)
		}
	}
}

// metadata of a topic, as one broker sees it.
func (t *talk) metadata(broker int32, topic string) *kmsg.MetadataResponse {
	q := kmsg.NewPtrMetadataRequest()
	one := kmsg.NewMetadataRequestTopic()
	one.Topic = &topic
	q.Topics = append(q.Topics, one)
	return prepare[*kmsg.MetadataResponse](t, broker, q)
}

// make makes the case's topic: one partition, three replicas, all in sync and known to all brokers.
func (t *talk) make() {
	q := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = t.topic, 1, 3
	q.Topics, q.TimeoutMillis = append(q.Topics, topic), 10_000
	if r := prepare[*kmsg.CreateTopicsResponse](t, anyBroker, q); r.Topics[0].ErrorCode != 0 {
		t.fail("create a topic: %s", code(r.Topics[0].ErrorCode))
	}
	for id := range t.brokers {
		t.until("a new topic", func() bool {
			m := t.metadata(id, t.topic).Topics[0]
			t.id = m.TopicID
			return m.ErrorCode == 0 && len(m.Partitions) == 1 && m.Partitions[0].ErrorCode == 0 && len(m.Partitions[0].ISR) == 3
		})
	}
	// Brokers learn of a topic before they lead and follow it.
	t.until("the new topic's leader", func() bool {
		return prepare[*kmsg.ListOffsetsResponse](t, t.leader(), t.listOffsets(-1)).Topics[0].Partitions[0].ErrorCode == 0
	})
}

// leader and follower of the topic's partition.
func (t *talk) leader() int32 { return t.metadata(anyBroker, t.topic).Topics[0].Partitions[0].Leader }
func (t *talk) follower() int32 {
	p := t.metadata(anyBroker, t.topic).Topics[0].Partitions[0]
	return p.Replicas[slices.IndexFunc(p.Replicas, func(r int32) bool { return r != p.Leader })]
}

// coordinator of the case's group.
func (t *talk) coordinator() (id int32) {
	t.until("the coordinator", func() bool {
		q := kmsg.NewPtrFindCoordinatorRequest()
		q.CoordinatorKeys = []string{t.group}
		c := prepare[*kmsg.FindCoordinatorResponse](t, anyBroker, q).Coordinators[0]
		id = c.NodeID
		if c.ErrorCode != 0 {
			return false
		}
		h := kmsg.NewPtrHeartbeatRequest() // it may still be loading
		h.Group, h.MemberID, h.Generation = t.group, "nobody", 1
		switch prepare[*kmsg.HeartbeatResponse](t, id, h).ErrorCode {
		case 14, 15, 16: // COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR
			return false
		}
		return true
	})
	return id
}

// meet learns what a cluster serves, and its brokers.
func meet(ctx context.Context, name, bootstrap string) (*system, error) {
	s := &system{name: name, bootstrap: strings.Split(bootstrap, ","), serves: map[int16]span{3: {0, 12}}, brokers: map[int32]string{}}
	t := &talk{system: s, ctx: ctx, conns: map[int32]net.Conn{}}
	defer t.close()
	q := kmsg.NewPtrApiVersionsRequest()
	q.Version, q.ClientSoftwareName, q.ClientSoftwareVersion = 3, clientID, "1"
	resp, err := t.request(anyBroker, q)
	if err != nil {
		return nil, fmt.Errorf("%s at %s: %w", name, bootstrap, err)
	}
	for _, k := range resp.(*kmsg.ApiVersionsResponse).ApiKeys {
		s.serves[k.ApiKey] = span{k.MinVersion, k.MaxVersion}
	}
	m := kmsg.NewPtrMetadataRequest()
	m.Version = 12
	resp, err = t.request(anyBroker, m)
	if err != nil {
		return nil, fmt.Errorf("%s at %s: %w", name, bootstrap, err)
	}
	for _, b := range resp.(*kmsg.MetadataResponse).Brokers {
		s.brokers[b.NodeID] = net.JoinHostPort(b.Host, fmt.Sprint(b.Port))
	}
	// Any broker passes on what is for the controller, but kfake's do not.
	if address := s.brokers[resp.(*kmsg.MetadataResponse).ControllerID]; address != "" {
		s.bootstrap = []string{address}
	}
	if len(s.brokers) != 3 {
		return nil, fmt.Errorf("%s at %s has %d brokers, expected 3", name, bootstrap, len(s.brokers))
	}
	return s, nil
}
