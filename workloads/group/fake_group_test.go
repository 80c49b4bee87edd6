package group

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// fakeGroup is a coordinator of one group in memory, of either protocol: as simple as the protocols allow, and without a log.
type fakeGroup struct {
	w          *world
	members    map[string]*fakeMember
	committed  map[int32]fakeOffset
	generation int32
	joining    bool // a round of joins is open
	synced     bool // the leader has assigned
	leader     string
	names      int
	owner      map[int32]string // KIP-848: who has a partition
	// Bugs.
	forgets, unfenced, doubles bool
}

type fakeMember struct {
	id       string
	until    time.Duration // end of the session
	rounds   time.Duration // how long it is waited for
	metadata []byte
	waits    bool // in a join
	given    []byte
	epoch    int32
}

type fakeOffset struct {
	offset   int64
	metadata string
}

func (g *fakeGroup) ids() []string { return slices.Sorted(maps.Keys(g.members)) }

// expire puts members out whose session is over.
func (g *fakeGroup) expire() {
	for _, id := range g.ids() {
		if m := g.members[id]; g.w.now > m.until && !m.waits {
			g.remove(id)
		}
	}
}

func (g *fakeGroup) remove(id string) {
	if g.members[id] == nil {
		return
	}
	delete(g.members, id)
	g.joining = true
	for p, owner := range g.owner {
		if owner == id {
			delete(g.owner, p)
		}
	}
}

func (g *fakeGroup) name() string {
	g.names++
	return fmt.Sprintf("m%d", g.names)
}

// join waits until everybody has joined, or the time is over.
func (g *fakeGroup) join(e *fakeEnv, q *kmsg.JoinGroupRequest) kmsg.Response {
	resp := q.ResponseKind().(*kmsg.JoinGroupResponse)
	g.expire()
	if q.MemberID == "" {
		resp.ErrorCode, resp.MemberID = 79, g.name()
		return resp
	}
	m := g.members[q.MemberID]
	if m == nil {
		m = &fakeMember{id: q.MemberID}
		g.members[m.id] = m
	}
	m.metadata, m.waits, m.given = q.Protocols[0].Metadata, true, nil
	m.rounds = g.w.now + time.Duration(q.RebalanceTimeoutMillis)*time.Millisecond
	g.joining, g.synced = true, false
	for g.joining {
		all := true
		for _, id := range g.ids() {
			all = all && g.members[id].waits
		}
		if all || g.w.now > m.rounds {
			for _, id := range g.ids() {
				if !g.members[id].waits {
					delete(g.members, id)
				}
			}
			g.generation++
			g.joining, g.leader = false, g.ids()[0]
			break
		}
		e.pass(5 * time.Millisecond)
		if g.members[m.id] != m {
			resp.ErrorCode = 25
			return resp
		}
		g.expire()
	}
	m.waits = false
	m.until = g.w.now + time.Duration(q.SessionTimeoutMillis)*time.Millisecond
	resp.Generation, resp.MemberID, resp.LeaderID = g.generation, m.id, g.leader
	if m.id == g.leader {
		for _, id := range g.ids() {
			one := kmsg.NewJoinGroupResponseMember()
			one.MemberID, one.ProtocolMetadata = id, g.members[id].metadata
			resp.Members = append(resp.Members, one)
		}
	}
	return resp
}

// fence tells what is wrong with a member and its generation.
func (g *fakeGroup) fence(id string, generation int32) int16 {
	g.expire()
	switch m := g.members[id]; {
	case m == nil:
		return 25
	case generation != g.generation:
		return 22
	default:
		m.until = max(m.until, g.w.now+2*time.Second)
		return 0
	}
}

func (g *fakeGroup) sync(q *kmsg.SyncGroupRequest, code int16) kmsg.Response {
	resp := q.ResponseKind().(*kmsg.SyncGroupResponse)
	if code == 0 {
		code = g.fence(q.MemberID, q.Generation)
	}
	if code == 0 && q.MemberID == g.leader && !g.joining {
		for _, a := range q.GroupAssignment {
			if m := g.members[a.MemberID]; m != nil {
				m.given = a.MemberAssignment
			}
		}
		g.synced = true
	}
	if code == 0 && (g.joining || !g.synced) {
		code = 27 // a real one would wait
	}
	if resp.ErrorCode = code; code == 0 {
		resp.MemberAssignment = g.members[q.MemberID].given
	}
	return resp
}

func (g *fakeGroup) beat(q *kmsg.HeartbeatRequest) int16 {
	code := g.fence(q.MemberID, q.Generation)
	if code == 0 && g.joining {
		return 27
	}
	return code
}

// consumerBeat is KIP-848: every member shall have its range, and gets what nobody else has any more.
func (g *fakeGroup) consumerBeat(q *kmsg.ConsumerGroupHeartbeatRequest, code int16) kmsg.Response {
	resp := q.ResponseKind().(*kmsg.ConsumerGroupHeartbeatResponse)
	g.expire()
	m := g.members[q.MemberID]
	switch {
	case code != 0:
	case q.MemberEpoch < 0:
		g.remove(q.MemberID)
		resp.MemberEpoch = q.MemberEpoch
		return resp
	case q.MemberEpoch == 0:
		m = &fakeMember{id: g.name()}
		g.members[m.id] = m
		g.joining = true
	case m == nil:
		code = 25
	}
	if resp.ErrorCode = code; code != 0 {
		return resp
	}
	if g.joining { // members have come or gone
		g.joining = false
		g.generation++
	}
	m.until = g.w.now + 2*time.Second
	wanted := ranges(g.ids(), fakePartitions)[m.id]
	var owned []int32
	for _, t := range q.Topics {
		owned = append(owned, t.Partitions...)
	}
	assigned := []int32{}
	late := false // it has not given back what it shall not have
	for p := range int32(fakePartitions) {
		switch mine := g.owner[p] == m.id; {
		case mine && !slices.Contains(wanted, p):
			if q.Topics != nil && !slices.Contains(owned, p) {
				delete(g.owner, p)
			} else {
				late = true
			}
		case slices.Contains(wanted, p) && (mine || g.owner[p] == "" || g.doubles):
			g.owner[p] = m.id
			assigned = append(assigned, p)
		}
	}
	if !late {
		m.epoch = g.generation
	}
	resp.MemberID, resp.MemberEpoch = &m.id, m.epoch
	resp.Assignment = &kmsg.ConsumerGroupHeartbeatResponseAssignment{Topics: []kmsg.ConsumerGroupHeartbeatResponseAssignmentTopic{{TopicID: [16]byte{9}, Partitions: assigned}}}
	return resp
}

func (g *fakeGroup) commit(q *kmsg.OffsetCommitRequest, code int16) kmsg.Response {
	resp := q.ResponseKind().(*kmsg.OffsetCommitResponse)
	switch {
	case code != 0:
	case q.Version >= 9:
		g.expire()
		if m := g.members[q.MemberID]; m == nil {
			code = 25
		} else if m.epoch != q.Generation {
			code = 113
		}
	default:
		code = g.fence(q.MemberID, q.Generation)
	}
	if g.unfenced {
		code = 0
	}
	topic := kmsg.OffsetCommitResponseTopic{Topic: q.Topics[0].Topic}
	for _, p := range q.Topics[0].Partitions {
		if code == 0 && (!g.forgets || p.Offset%7 != 0) {
			g.committed[p.Partition] = fakeOffset{p.Offset, *p.Metadata}
		}
		topic.Partitions = append(topic.Partitions, kmsg.OffsetCommitResponseTopicPartition{Partition: p.Partition, ErrorCode: code})
	}
	resp.Topics = append(resp.Topics, topic)
	return resp
}

func (b *fakeBroker) fetchOffsets(q *kmsg.OffsetFetchRequest, code int16) kmsg.Response {
	resp := q.ResponseKind().(*kmsg.OffsetFetchResponse)
	found := func(group string, p int32) kmsg.OffsetFetchResponseTopicPartition {
		out := kmsg.OffsetFetchResponseTopicPartition{Partition: p, Offset: -1, Metadata: kmsg.StringPtr("")}
		if c, any := b.groups[group].committed[p]; any {
			out.Offset, out.Metadata = c.offset, &c.metadata
		}
		return out
	}
	if q.Version < 8 {
		resp.ErrorCode = code
		topic := kmsg.OffsetFetchResponseTopic{Topic: q.Topics[0].Topic}
		for _, p := range q.Topics[0].Partitions {
			topic.Partitions = append(topic.Partitions, found(q.Group, p))
		}
		resp.Topics = append(resp.Topics, topic)
		return resp
	}
	one := kmsg.OffsetFetchResponseGroup{Group: q.Groups[0].Group, ErrorCode: code}
	topic := kmsg.OffsetFetchResponseGroupTopic{Topic: q.Groups[0].Topics[0].Topic}
	for _, p := range q.Groups[0].Topics[0].Partitions {
		topic.Partitions = append(topic.Partitions, kmsg.OffsetFetchResponseGroupTopicPartition(found(one.Group, p)))
	}
	one.Topics = append(one.Topics, topic)
	resp.Groups = append(resp.Groups, one)
	return resp
}
