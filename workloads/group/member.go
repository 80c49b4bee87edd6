package group

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"ackproof/histories"
	"ackproof/workloads"
	"ackproof/workloads/kafka"
	"ackproof/workloads/log"
)

// member is one member of a group, from its birth to its end: one sequential client.
type member struct {
	*Workload
	group   Group
	env     workloads.Env
	kafka   *kafka.Client
	process int32 // of what it does in the group
	reader  int32 // of its reads of the log, which are part of its polls
	self    kafka.Member
	joined  bool
	places  map[int32]*place // what it owns
	beat    time.Duration    // when the next heartbeat is due
	commit  time.Duration    // when the next commit is due
	tell    bool             // KIP-848: say in the next heartbeat what it owns
	commits int              // asked for so far
	retired bool             // it left an operation open, or crashed: it must not be heard of again
	fate    fate
	end     time.Duration // when its fate strikes; 0: never
	calm    bool          // it does what it has to, and nothing else: no rewinds, no dawdling
}

// place is where a member stands in a partition.
type place struct {
	ready     bool // the position is known
	position  int64
	committed int64 // by this member, −1: nothing yet
	session   int32
	outside   int  // reads in a row that found no such position
	atEnd     bool // the last read was empty, at the visible end
}

// fate is how a member ends.
type fate int

const (
	leaves   fate = iota // commits, gives everything back and says good-bye
	crashes              // between the one and the other of processing and committing
	stalls               // sleeps through its session, and then goes on as if nothing had happened
	restarts             // of static members: gives everything back in order, says nothing, and is back soon
)

const (
	readWait  = 40 * time.Millisecond // how long a broker may hold a poll that has nothing to return
	pollBytes = 256 << 10
	// codeOffsetOutOfRange is Kafka's OFFSET_OUT_OF_RANGE.
	codeOffsetOutOfRange = 1
)

// lives are the lives of one worker: one member after the other, all of them with the same instance id if they are static.
func (w *Workload) lives(g Group, instance string, env workloads.Env, links map[int32]string) {
	shortest, longest := 2*time.Second, 8*time.Second
	if w.cfg.Storm {
		shortest, longest = w.cfg.Session/4, 2*w.cfg.Session
		env.Sleep(between(env, 0, w.cfg.Session)) // not all of them at once
	}
	w.progress.begin(g.Name, env.Now())
	defer func() { w.progress.end(g.Name, env.Now()) }()
	for !env.Stopped() {
		m := w.newMember(g, env, links)
		m.self.Instance = instance
		if m.fate = fate(env.Rand().IntN(int(restarts))); instance != "" && env.Rand().IntN(2) == 0 {
			m.fate = restarts
		}
		m.end = env.Now() + between(env, shortest, longest)
		m.live()
		m.kafka.Close()
		env.Sleep(between(env, 50*time.Millisecond, 700*time.Millisecond))
	}
}

func (w *Workload) newMember(g Group, env workloads.Env, links map[int32]string) *member {
	return &member{
		Workload: w, group: g, env: env, kafka: w.client(env, links), process: w.log.NewProcess(), reader: w.log.NewProcess(),
		self: kafka.Member{Group: g.Name, Generation: -1}, places: map[int32]*place{},
	}
}

// live works until the member has ended or the run stops.
func (m *member) live() {
	for !m.env.Stopped() && !m.retired {
		if m.end > 0 && m.env.Now() >= m.end {
			switch {
			case m.fate == leaves:
				m.leave()
				return
			case m.fate == restarts:
				m.rest()
				return
			case m.fate == stalls && m.joined && len(m.places) > 0:
				m.stall()
				m.fate, m.end = crashes, m.env.Now()+between(m.env, time.Second, 4*time.Second)
				continue
			case m.env.Now() >= m.end+2*time.Second: // it had nothing to do in the middle of which it could crash, and nothing to stall with
				return
			}
		}
		m.turn()
		m.env.Sleep(between(m.env, 5*time.Millisecond, 20*time.Millisecond))
	}
}

// turn is one round of everything: membership, positions, a poll of each partition.
func (m *member) turn() {
	m.tend()
	if m.joined {
		m.lookUp()
		m.work()
	}
}

// tend does what the protocol asks for.
func (m *member) tend() {
	if m.group.Protocol == Consumer {
		m.tendConsumer()
	} else {
		m.tendClassic()
	}
}

// owns lists the partitions that the member owns, in order.
func (m *member) owns() []int32 { return slices.Sorted(maps.Keys(m.places)) }

// stall sleeps through the session, and until others have most likely taken over, and does then what a client does that did not notice: it polls, processes and commits.
func (m *member) stall() {
	m.env.Sleep(m.cfg.Session + between(m.env, 700*time.Millisecond, 2500*time.Millisecond))
	if !m.env.Stopped() {
		m.commit = 0
		m.work()
	}
}

// work polls each partition once, and processes and commits in the order that the configuration says.
func (m *member) work() {
	for _, p := range m.owns() {
		at := m.places[p]
		if at == nil || !at.ready || m.retired { // it may have been lost meanwhile
			continue
		}
		if !m.calm && m.env.Rand().IntN(200) == 0 {
			m.rewind(at)
		}
		from := at.position
		steps := m.poll(p, at)
		if len(steps) == 0 {
			continue
		}
		if m.cfg.Before && (!m.commitUpTo(map[int32]int64{p: at.position}) || m.strikes()) {
			if !m.retired && m.places[p] == at { // not accepted, and so not to be processed: it is polled again
				at.position, at.session = from, m.log.NewSession()
			}
			continue
		}
		m.processAll(p, steps)
		if !m.cfg.Before && m.strikes() {
			return
		}
	}
	if (!m.cfg.Before || m.calm) && !m.retired && m.env.Now() >= m.commit {
		m.commitDone()
		m.commit = m.env.Now() + between(m.env, 30*time.Millisecond, 250*time.Millisecond)
	}
}

// strikes tells whether the member crashes here and now.
func (m *member) strikes() bool {
	if m.end > 0 && m.fate == crashes && m.env.Now() >= m.end {
		m.retired = true
	}
	return m.retired
}

// rewind seeks back, as consumers do that want to see something again.
func (m *member) rewind(at *place) {
	at.position = max(0, at.position-1-m.env.Rand().Int64N(300))
	at.session = m.log.NewSession()
}

// poll reads once from the member's position and records what it was given, which the steps say. A poll that fails gives nothing.
func (m *member) poll(p int32, at *place) (given []histories.Step) {
	event := object(m.process, histories.Step{Do: histories.Delivered, Key: m.group.Key(p), Offset: at.position})
	event.Op = m.journal.Invoke(event)
	got := log.Read(m.journal, m.kafka, log.ReadSpec{
		Kind: histories.Fetch, Origin: m.cfg.Log.Origin(p), Process: m.reader, Session: at.session, Partition: p, From: at.position, Bytes: pollBytes, Wait: readWait,
	})
	event.Node, event.Code, event.Type = got.Node, got.Code, histories.Fail
	if got.Code == 0 {
		event.Type = histories.OK
		for _, r := range got.Runs {
			if n := len(given); n > 0 && given[n-1].Offset+given[n-1].Number == r.Offset {
				given[n-1].Number += int64(r.Count)
				continue
			}
			given = append(given, histories.Step{Do: histories.Delivered, Key: event.Steps[0].Key, Offset: r.Offset, Number: int64(r.Count)})
		}
		if len(given) > 0 {
			event.Steps = given
		}
		at.atEnd = got.Next == at.position && at.position >= got.End
		at.position, at.outside = got.Next, 0
	}
	m.journal.Complete(event)
	switch {
	case got.Code == 0:
	case got.Code == codeOffsetOutOfRange:
		m.kafka.Forget(p)
		if at.outside++; at.outside > 20 { // the position is gone for good: by auto.offset.reset=earliest
			at.position, at.session, at.outside = 0, m.log.NewSession(), 0
		}
		m.env.Sleep(100 * time.Millisecond)
	default:
		m.kafka.Forget(p)
		m.env.Sleep(between(m.env, 10*time.Millisecond, 50*time.Millisecond))
	}
	return given
}

// processAll processes what a poll gave, and records it.
func (m *member) processAll(p int32, given []histories.Step) {
	switch { // slow processing
	case m.calm:
	case m.cfg.Storm:
		m.env.Sleep(between(m.env, m.cfg.Heartbeat/4, m.cfg.Heartbeat))
	case m.env.Rand().IntN(20) == 0:
		m.env.Sleep(between(m.env, 5*time.Millisecond, 80*time.Millisecond))
	}
	event := object(m.process)
	for _, s := range given {
		s.Do = histories.Processed
		event.Steps = append(event.Steps, s)
	}
	event.Op = m.journal.Invoke(event)
	for _, s := range given {
		m.sink.apply(s.Key, s.Offset, s.Offset+s.Number)
	}
	m.progress.made(m.group.Name, m.env.Now())
	event.Type = histories.OK
	m.journal.Complete(event)
}

// commitDone commits whatever was processed and is not committed yet.
func (m *member) commitDone() bool { return m.commitOf(m.owns()) }

// commitOf commits what was processed of some partitions.
func (m *member) commitOf(parts []int32) bool {
	done := map[int32]int64{}
	for _, p := range parts {
		if at := m.places[p]; at != nil && at.ready && at.position != at.committed {
			done[p] = at.position
		}
	}
	return len(done) == 0 || m.commitUpTo(done)
}

// commitUpTo commits once and records it; it tells whether all of it was accepted. A commit of unknown outcome retires the member.
func (m *member) commitUpTo(upTo map[int32]int64) bool {
	event := object(m.process)
	ask := map[int32]kafka.CommittedOffset{}
	m.commits++
	metadata := fmt.Sprintf("p%d-%d", m.process, m.commits)
	step := func(p int32) histories.Step {
		return histories.Step{Do: histories.Commit, Key: m.group.Key(p), Offset: upTo[p], Number: int64(m.self.Generation), Value: histories.Datum{Form: histories.Text, Text: metadata}}
	}
	parts := slices.Sorted(maps.Keys(upTo))
	for _, p := range parts {
		ask[p] = kafka.CommittedOffset{Offset: upTo[p], Metadata: metadata}
		event.Steps = append(event.Steps, step(p))
	}
	event.Op = m.journal.Invoke(event)
	got := m.kafka.Commit(m.self, m.group.Protocol == Consumer, ask)
	event.Node, event.Code = got.Node, got.Code
	switch got.Outcome {
	case kafka.Applied:
		event.Type, event.Steps = histories.OK, nil
		for _, p := range parts {
			if got.Accepted[p] {
				event.Steps = append(event.Steps, step(p))
			}
		}
	case kafka.NotApplied:
		event.Type = histories.Fail
	default:
		event.Type = histories.Info
	}
	m.journal.Complete(event)
	for p := range got.Accepted {
		if at := m.places[p]; at != nil && event.Type == histories.OK {
			at.committed = upTo[p]
		}
	}
	if event.Type == histories.Info {
		m.retired = true
		return false
	}
	m.heed(got.Code)
	return event.Type == histories.OK && len(got.Accepted) == len(upTo)
}

// heed draws the consequences of a code that a coordinator answered with.
func (m *member) heed(code int16) {
	switch code {
	case kafka.CodeUnknownMember, kafka.CodeFencedMemberEpoch:
		m.self.ID = ""
		m.lost()
	case kafka.CodeFencedInstance: // somebody else is this static member by now
		m.lost()
		m.retired = true
	case kafka.CodeIllegalGeneration:
		m.lost()
	case kafka.CodeRebalanceInProgress, kafka.CodeStaleMemberEpoch:
		m.beat, m.tell = 0, true // the next heartbeat tells what there is to do
	}
}

// lost ends the membership: others own the partitions by now.
func (m *member) lost() {
	m.revoked(m.owns())
	m.joined, m.self.Generation = false, -1
}

// own takes in what the member is to have, by its generation; what it has not got yet it looks up. What it keeps is its own in the new generation too, at a position of its own.
func (m *member) own(all []int32) {
	kept := object(m.process)
	for _, p := range all {
		if at := m.places[p]; at == nil {
			m.places[p] = &place{committed: -1}
		} else if at.ready {
			kept.Steps = append(kept.Steps, m.assigned(p, -1))
		}
	}
	if len(kept.Steps) > 0 {
		kept.Op = m.journal.Invoke(kept)
		kept.Type = histories.OK
		m.journal.Complete(kept)
	}
}

func (m *member) assigned(p int32, offset int64) histories.Step {
	return histories.Step{Do: histories.Assigned, Key: m.group.Key(p), Offset: offset, Number: int64(m.self.Generation)}
}

// lookUp finds out where to begin in partitions that are new.
func (m *member) lookUp() {
	var parts []int32
	for _, p := range m.owns() {
		if !m.places[p].ready {
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 || m.retired {
		return
	}
	event := object(m.process)
	for _, p := range parts {
		event.Steps = append(event.Steps, found(m.group, p, kafka.CommittedOffset{Offset: -1}), m.assigned(p, -1))
	}
	event.Op = m.journal.Invoke(event)
	offsets, node, code := m.kafka.FetchCommitted(m.self, m.group.Protocol == Consumer, parts)
	event.Node, event.Code, event.Type = node, code, histories.Fail
	if code == 0 {
		event.Type, event.Steps = histories.OK, nil
		for _, p := range parts {
			event.Steps = append(event.Steps, found(m.group, p, offsets[p]))
			begin := offsets[p].Offset
			if begin < 0 {
				begin = m.reset(p)
			}
			if begin >= 0 {
				event.Steps = append(event.Steps, m.assigned(p, begin))
				*m.places[p] = place{ready: true, position: begin, committed: offsets[p].Offset, session: m.log.NewSession()}
			}
		}
	}
	m.journal.Complete(event)
	if code != 0 {
		m.heed(code)
		m.env.Sleep(between(m.env, 10*time.Millisecond, 50*time.Millisecond))
	}
}

// reset is auto.offset.reset: where to begin without a committed offset, −1 if that cannot be learned now.
func (m *member) reset(p int32) int64 {
	timestamp := kafka.Earliest
	if m.group.Latest {
		timestamp = kafka.Latest
	}
	answer := m.kafka.Offset(p, 0, timestamp)
	if answer.Code != 0 {
		m.kafka.Forget(p)
		return -1
	}
	return answer.Offset
}

// giveBack gives partitions back in good order: what was processed is committed first. Some members take their time over it and finish what the log has for them: they still own it.
func (m *member) giveBack(parts []int32) {
	if len(parts) == 0 || m.retired {
		return
	}
	if !m.calm && m.env.Rand().IntN(3) == 0 {
		m.env.Sleep(between(m.env, 50*time.Millisecond, 600*time.Millisecond))
		for _, p := range parts {
			if at := m.places[p]; !m.cfg.Before && at != nil && at.ready {
				if given := m.poll(p, at); len(given) > 0 {
					m.processAll(p, given)
				}
			}
		}
	}
	if !m.cfg.Before && !m.commitOf(parts) && m.retired {
		return
	}
	m.revoked(parts)
}

// revoked records that the member owns partitions no longer.
func (m *member) revoked(parts []int32) {
	event := object(m.process)
	for _, p := range parts {
		if at := m.places[p]; at != nil && at.ready {
			event.Steps = append(event.Steps, histories.Step{Do: histories.Revoked, Key: m.group.Key(p), Number: int64(m.self.Generation)})
		}
		delete(m.places, p)
	}
	if len(event.Steps) == 0 {
		return
	}
	event.Op = m.journal.Invoke(event)
	event.Type = histories.OK
	m.journal.Complete(event)
}

// leave ends the membership in good order.
func (m *member) leave() {
	m.giveBack(m.owns())
	if !m.joined || m.retired {
		return
	}
	if m.group.Protocol == Consumer {
		m.self.Generation = kafka.EpochLeave
		m.kafka.ConsumerBeat(m.self, kafka.Beat{TopicID: m.cfg.Log.TopicID})
	} else {
		m.kafka.Leave(m.self)
	}
	m.joined = false
}

// rest ends the life of a static member whose place is to be kept: it has given everything back in good order, and says no good-bye (KIP-345); by KIP-848 it says that it will be back.
func (m *member) rest() {
	m.giveBack(m.owns())
	if m.joined && !m.retired && m.group.Protocol == Consumer {
		m.self.Generation = kafka.EpochPause
		m.kafka.ConsumerBeat(m.self, kafka.Beat{TopicID: m.cfg.Log.TopicID})
	}
	m.joined = false
}

// dropped gives what of owned is not in all.
func dropped(owned, all []int32) []int32 {
	return slices.DeleteFunc(slices.Clone(owned), func(p int32) bool { return slices.Contains(all, p) })
}
