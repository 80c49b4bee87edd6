package group

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/record"
)

// world is a coordinator, its log, and clients of two groups, one of each protocol. Everything that may happen is drawn: what clients ask (sensible or not), when appends are committed,
// when the coordinator fails and how much of what was not committed survives it. It judges what clients are told by what the log holds and by what they were told before.
type world struct {
	draw func(n int) int // 0 … n−1
	fail func(format string, args ...any)
	cfg  Config
	now  time.Time
	c    *Coordinator

	log       []record.Batch // a batch's offset is its index
	trimmed   int            // batches at the front that are gone
	committed int            // batches, with those that are gone
	open      []Append
	lives     byte
	tokens    int
	waits     map[int]func(kmsg.Response)

	clients []*client
	told    map[int32]map[int32]string // generation of the classic group → partition → member
	synced  int32                      // newest generation in which anybody was told an assignment
	stats   map[string]int
}

// client is a member of one of the groups, or wants to be one.
type client struct {
	i        int // its place
	consumer bool
	alive    bool
	id       string
	epoch    int32 // generation, or member epoch
	owns     parts // KIP-848: what it reads
	revoking bool  // it takes its time to give back
	newest   parts // KIP-848: what it was told to have
	joined   *kmsg.JoinGroupResponse
	waiting  bool
	asked    int // heartbeats
	offset   int64
	most     int32 // KIP-848: highest epoch that it was told
}

const (
	classicName  = "k"
	consumerName = "c"
)

func newWorld(draw func(int) int, fail func(string, ...any)) *world {
	w := &world{draw: draw, fail: fail, cfg: testConfig(), now: began, waits: map[int]func(kmsg.Response){}, told: map[int32]map[int32]string{}, stats: map[string]int{}}
	w.cfg.InitialRebalanceDelay, w.cfg.OffsetsRetention, w.cfg.RetentionCheck = time.Second, 5*time.Minute, 30*time.Second
	w.cfg.CompactAfter = 4000
	for i := range 6 {
		w.clients = append(w.clients, &client{i: i, consumer: i%2 == 1, alive: true})
	}
	w.boot()
	return w
}

// load makes a coordinator that has been given so many batches.
func (w *world) load(batches, compactAfter int) *Coordinator {
	w.lives++
	cfg := w.cfg
	cfg.Seed, cfg.CompactAfter = [16]byte{w.lives}, compactAfter
	c := New(cfg)
	c.Step(w.now, TopicsChanged{testTopics})
	for _, e := range c.Step(w.now, Load{w.log[w.trimmed:batches]}) {
		w.fail("load: %v", e)
	}
	return c
}

// replayed is what the first so many batches say.
func (w *world) replayed(batches int) *Coordinator {
	c := w.load(batches, 0)
	c.Step(w.now, Loaded{})
	return c
}

func (w *world) boot() {
	w.committed = len(w.log)
	w.c, w.open = w.load(len(w.log), w.cfg.CompactAfter), nil
	w.step(Loaded{})
}

// step feeds an input. Nothing is committed by it.
func (w *world) step(in Input) {
	for _, e := range w.c.Step(w.now, in) {
		switch e := e.(type) {
		case Append:
			w.open = append(w.open, e)
			w.log = append(w.log, e.Batch)
		case Reply:
			n := e.Token.(int)
			then, ok := w.waits[n]
			if !ok {
				w.fail("request %d is answered twice", n)
			}
			delete(w.waits, n)
			then(e.Body)
		case Trim:
			w.stats["trim"]++
			if w.trimmed = int(e.Offset); w.trimmed > w.committed {
				w.fail("trimmed to %d, only %d batches are committed", w.trimmed, w.committed)
			}
		case Failed:
			w.stats["failed"]++
			w.crash()
		}
	}
	if w.c.groups[classicName] == nil {
		w.synced, w.told = 0, map[int32]map[int32]string{} // deleted: generations begin anew
	}
}

func (w *world) send(q kmsg.Request, then func(kmsg.Response)) {
	w.tokens++
	w.waits[w.tokens] = then
	w.step(Request{Token: w.tokens, Body: q, ClientID: "x", Host: "/h"})
}

// commit answers the oldest n appends.
func (w *world) commit(n int) {
	for ; n > 0 && len(w.open) > 0; n-- {
		id := w.open[0].ID
		w.open = w.open[1:]
		w.committed++
		w.step(Appended{ID: id, Offset: int64(w.committed - 1)})
	}
}

// crash is a failover: what is committed survives, and of the rest as much as was copied. Whoever waits learns nothing.
func (w *world) crash() {
	w.stats["crash"]++
	keep := w.committed + w.draw(len(w.log)-w.committed+1)
	w.log = w.log[:keep]
	w.waits = map[int]func(kmsg.Response){}
	for _, k := range w.clients {
		k.waiting = false
	}
	w.boot()
}

// act makes one move.
func (w *world) act() {
	switch w.draw(20) {
	case 0, 1, 2:
		w.commit(1 + w.draw(3))
	case 3:
		w.commit(len(w.open))
	case 4, 5:
		w.now = w.now.Add(time.Duration(w.draw(3000)) * time.Millisecond)
		w.step(Tick{})
	case 6:
		if w.draw(8) == 0 {
			w.crash()
		}
	case 7:
		if w.draw(8) == 0 && len(w.open) > 0 { // the newest append is refused or its end is unknown
			last := w.open[len(w.open)-1]
			w.open = w.open[:len(w.open)-1]
			code := kerr.NotEnoughReplicasAfterAppend.Code
			if w.draw(2) == 0 {
				code = kerr.NotEnoughReplicas.Code
				w.log = w.log[:len(w.log)-1]
			}
			w.step(Appended{ID: last.ID, Code: code})
		}
	case 8:
		w.fetch()
	case 9:
		if w.draw(10) == 0 {
			w.deleteSomething()
		}
	default:
		k := w.clients[w.draw(len(w.clients))]
		switch {
		case !k.alive:
			w.renew(k)
		case k.consumer:
			w.actConsumer(k)
		default:
			w.actClassic(k)
		}
	}
}

func (w *world) actClassic(k *client) {
	switch op := w.draw(12); {
	case op == 0:
		k.alive = false // without a word
	case op == 1 && k.id != "":
		q := leaveRequest(k.id)
		q.Group = classicName
		w.send(q, func(kmsg.Response) {})
		k.alive = false
	case op <= 4:
		if k.waiting && w.draw(10) > 0 {
			return
		}
		q := joinRequest(k.id)
		q.Group = classicName
		if w.draw(4) == 0 {
			q.Protocols[0].Metadata = consumerMetadata("a", "b") // its subscription changes now and then
		}
		k.waiting = true
		w.send(q, func(r kmsg.Response) { w.joined(k, r.(*kmsg.JoinGroupResponse)) })
	case op <= 7 && k.joined != nil:
		r := k.joined
		q := syncRequest(k.id, r.Generation, nil)
		q.Group = classicName
		for i, m := range r.Members { // partition i of topic a, as one byte; who leads gives everybody one, in order, and the rest to the first
			give := []byte{byte(i)}
			if i == 0 {
				for p := len(r.Members); p < 4; p++ {
					give = append(give, byte(p))
				}
			}
			if i < 4 {
				q.GroupAssignment = append(q.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: m.MemberID, MemberAssignment: give})
			}
		}
		w.send(q, func(resp kmsg.Response) { w.assigned(k, r.Generation, resp.(*kmsg.SyncGroupResponse)) })
	case op <= 9:
		q := heartbeatRequest(k.id, k.epoch)
		q.Group = classicName
		w.send(q, func(r kmsg.Response) { w.lost(k, r.(*kmsg.HeartbeatResponse).ErrorCode) })
	default:
		generation := k.epoch - int32(w.draw(5)/4) // sometimes as a zombie would
		w.commitOffset(k, classicName, generation, func(code int16) {
			if code == 0 && generation < w.synced {
				w.fail("R38: a commit of generation %d is accepted after generation %d was handed out", generation, w.synced)
			}
		})
	}
}

func (w *world) joined(k *client, r *kmsg.JoinGroupResponse) {
	k.waiting = false
	switch r.ErrorCode {
	case 0:
		if k.id == r.MemberID && r.Generation < k.epoch && k.joined == nil {
			w.fail("generation %d after %d", r.Generation, k.epoch)
		}
		k.id, k.epoch, k.joined = r.MemberID, r.Generation, r
		w.stats["joined"]++
	case kerr.MemberIDRequired.Code:
		k.id = r.MemberID
	default:
		w.lost(k, r.ErrorCode)
	}
}

func (w *world) lost(k *client, code int16) {
	if code == kerr.UnknownMemberID.Code {
		w.renew(k)
	}
}

// renew puts a new client in the place of one that is gone. What the old one still waits for concerns the new one no more.
func (w *world) renew(k *client) {
	if w.clients[k.i] == k {
		w.clients[k.i] = &client{i: k.i, consumer: k.consumer, alive: true}
	}
}

// assigned judges an assignment: one owner per partition and generation, and it is in the log.
func (w *world) assigned(k *client, generation int32, r *kmsg.SyncGroupResponse) {
	if r.ErrorCode != 0 {
		w.lost(k, r.ErrorCode)
		return
	}
	w.stats["synced"]++
	if generation < w.synced {
		w.fail("generation %d is handed out after %d", generation, w.synced)
	}
	w.synced = generation
	if w.told[generation] == nil {
		w.told[generation] = map[int32]string{}
	}
	for _, p := range r.MemberAssignment {
		if other := w.told[generation][int32(p)]; other != "" && other != k.id {
			w.fail("partition %d of generation %d has two owners: %s and %s", p, generation, other, k.id)
		}
		w.told[generation][int32(p)] = k.id
	}
	log := w.replayed(w.committed)
	g := log.groups[classicName]
	if g == nil || g.classic == nil || g.classic.generation != generation || g.classic.byID[k.id] == nil || string(g.classic.byID[k.id].assignment) != string(r.MemberAssignment) {
		w.fail("R41: %s is told %v in generation %d, which is not in the log", k.id, r.MemberAssignment, generation)
	}
}

func (w *world) actConsumer(k *client) {
	if k.id == "" {
		w.tokens++
		k.id = fmt.Sprintf("m%d", w.tokens)
	}
	switch op := w.draw(12); {
	case op == 0:
		k.alive = false
	case op == 1:
		if k.epoch > 0 {
			q := beat(k.id, -1)
			q.Group = consumerName
			w.send(q, func(kmsg.Response) {})
		}
		k.alive = false
	case op <= 8:
		if k.waiting && w.draw(10) > 0 {
			return
		}
		if !k.revoking || w.draw(3) == 0 {
			k.revoking = false
			k.owns = k.owns.and(k.newest) // it gives back
		}
		q := beat(k.id, k.epoch)
		q.Group = consumerName
		if k.epoch == 0 {
			k.owns, k.newest = nil, nil
		} else if w.draw(3) > 0 {
			q = owning(q, k.owns)
		}
		if w.draw(8) == 0 {
			q.SubscribedTopicNames = [][]string{{"a"}, {"a", "b"}, {"b"}}[w.draw(3)]
		}
		k.waiting = true
		k.asked++
		asked := k.asked
		w.send(q, func(r kmsg.Response) {
			if asked == k.asked { // only the newest question's answer is listened to
				w.beaten(k, r.(*kmsg.ConsumerGroupHeartbeatResponse))
			}
		})
	default:
		epoch := k.epoch - int32(w.draw(5)/4)
		most := k.most
		w.commitOffset(k, consumerName, epoch, func(code int16) {
			if code == 0 && epoch < most && epoch >= 0 {
				w.fail("a commit of member epoch %d is accepted although %s was told epoch %d", epoch, k.id, most)
			}
		})
	}
}

// beaten judges the answer to a heartbeat: R42, and R41.
func (w *world) beaten(k *client, r *kmsg.ConsumerGroupHeartbeatResponse) {
	k.waiting = false
	switch r.ErrorCode {
	case 0:
	case kerr.UnknownMemberID.Code, kerr.FencedMemberEpoch.Code:
		w.renew(k)
		return
	default:
		return
	}
	if w.clients[k.i] != k {
		return
	}
	k.epoch, k.most = r.MemberEpoch, max(k.most, r.MemberEpoch)
	w.stats["beaten"]++
	log := w.replayed(w.committed)
	if g := log.groups[consumerName]; g == nil || g.consumer == nil || g.consumer.members[k.id] == nil {
		w.fail("R41: %s is told epoch %d and is not in the log", k.id, r.MemberEpoch)
	} else if m := g.consumer.members[k.id]; m.epoch < r.MemberEpoch {
		w.fail("R41: %s is told epoch %d, the log has %d", k.id, r.MemberEpoch, m.epoch)
	}
	ps, told := given(r)
	if !told {
		return
	}
	k.newest = ps
	k.revoking = len(k.owns.minus(ps)) > 0
	k.owns = k.owns.or(ps)
	for _, other := range w.clients {
		if !other.consumer || other == k || other.id == "" {
			continue
		}
		// A client that the coordinator has put out may not know yet; it is fenced. Everybody else owns what it has not given back.
		g := w.c.groups[consumerName]
		if g == nil || g.consumer == nil || g.consumer.members[other.id] == nil || g.consumer.members[other.id].epoch == 0 {
			continue
		}
		if both := other.owns.and(ps); len(both) > 0 {
			w.fail("R42: %s is given %v, which %s has not given back (epochs %d and %d)", k.id, both, other.id, k.epoch, other.epoch)
		}
	}
	if len(ps) > 0 {
		w.stats["given"]++
	}
}

func (w *world) commitOffset(k *client, group string, epoch int32, judge func(code int16)) {
	if k.id == "" {
		return
	}
	k.offset++
	offset, partition := k.offset, int32(w.draw(4))
	q := commitRequest(k.id, epoch, "a", partition, offset)
	q.Group = group
	q.Topics[0].Partitions[0].Metadata = kmsg.StringPtr(fmt.Sprintf("%s/%d", k.id, offset))
	w.send(q, func(r kmsg.Response) {
		code := r.(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode
		judge(code)
		if code != 0 {
			return
		}
		w.stats["commit"]++
		want := fmt.Sprintf("%s/%d", k.id, offset)
		found := false
		for _, b := range w.log[w.trimmed:w.committed] {
			decode(b, func(e entry) error { found = found || bytes.Contains(e.value, []byte(want)); return nil })
		}
		if !found {
			w.fail("R41: commit %s is acknowledged and not in the committed log", want)
		}
	})
}

// fetch reads offsets back: what is shown is what the committed log says, in full.
func (w *world) fetch() {
	for _, name := range []string{classicName, consumerName} {
		q := kmsg.NewPtrOffsetFetchRequest()
		q.Version = 8
		q.Groups = []kmsg.OffsetFetchRequestGroup{{Group: name}}
		w.send(q, func(r kmsg.Response) {
			g := r.(*kmsg.OffsetFetchResponse).Groups[0]
			if g.ErrorCode != 0 {
				return
			}
			got := map[topicPartition]string{}
			for _, t := range g.Topics {
				for _, p := range t.Partitions {
					got[topicPartition{t.Topic, p.Partition}] = *p.Metadata
				}
			}
			want := map[topicPartition]string{}
			if g := w.replayed(w.committed).groups[name]; g != nil {
				for at, o := range g.offsets {
					want[at] = o.metadata
				}
			}
			if !maps.Equal(got, want) {
				w.fail("R41: group %s shows offsets %v, the committed log has %v", name, got, want)
			}
			w.stats["fetch"]++
		})
	}
}

func (w *world) deleteSomething() {
	name := []string{classicName, consumerName}[w.draw(2)]
	if w.draw(2) == 0 {
		q := kmsg.NewPtrDeleteGroupsRequest()
		q.Groups = []string{name}
		w.send(q, func(kmsg.Response) {})
		return
	}
	q := kmsg.NewPtrOffsetDeleteRequest()
	q.Group = name
	q.Topics = []kmsg.OffsetDeleteRequestTopic{{Topic: "a", Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: int32(w.draw(4))}}}}
	w.send(q, func(kmsg.Response) {})
}

// finish lets everything come to an end: everybody who waits is answered, and a replay of the log is the state.
func (w *world) finish() {
	for range 1200 {
		w.commit(len(w.open))
		w.now = w.now.Add(100 * time.Millisecond)
		if !w.now.Before(w.c.Due()) { // as the shell does
			w.step(Tick{})
		}
	}
	w.commit(len(w.open))
	if len(w.waits) > 0 {
		w.fail("%d requests are never answered", len(w.waits))
	}
	live, log := dump(w.c), dump(w.replayed(len(w.log)))
	if live != log {
		w.fail("R41: the state is not what the log says\nlive:\n%s\nlog:\n%s", live, log)
	}
}

// dump is all that has to survive a failover, as text.
func dump(c *Coordinator) string {
	s := ""
	for _, id := range slices.Sorted(maps.Keys(c.groups)) {
		g := c.groups[id]
		for _, at := range g.sortedOffsets() {
			o := g.offsets[at]
			s += fmt.Sprintf("%s: %v %d %q %d\n", id, at, o.offset, o.metadata, o.committed)
		}
		if k := g.classic; k != nil && k.generation > 0 && k.state == stateStable {
			s += fmt.Sprintf("%s: generation %d, %s led by %s\n", id, k.generation, k.protocol, k.leader)
			for _, m := range k.members {
				s += fmt.Sprintf("  %s %v\n", m.id, m.assignment)
			}
		}
		if k := g.consumer; k != nil {
			s += fmt.Sprintf("%s: epoch %d, target of %d, topics %x\n", id, k.epoch, k.targetEpoch, k.topicsHash)
			for _, id := range k.ids() {
				m := k.members[id]
				s += fmt.Sprintf("  %s %v epoch %d (%d) state %d has %v gives back %v shall have %v\n", id, m.topics, m.epoch, m.previousEpoch, m.state, m.assigned, m.revoking, k.target[id])
			}
		}
	}
	return s
}
