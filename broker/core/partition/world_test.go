package partition

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"ackproof/broker/record"
	"ackproof/broker/storage"
)

// world is a small cluster round one partition: replicas, their logs, a network that loses and delays but keeps the order of each connection,
// and a controller that keeps R16-R19. Processes die; where a flush is promised (S1), what was not flushed may die with them. One seed, one run. It
// judges what clients were told by what the logs hold.
type world struct {
	rng    *rand.Rand
	now    time.Time
	flush  bool
	faults bool // at the moment
	nodes  []*node
	ctl    ctl
	net    []packet
	cut    map[[2]int32]bool

	named   map[[2]int64]uint32 // (epoch, offset) → checksum, for ever
	seen    map[int64]uint32    // offset → checksum that a consumer was shown
	acked   map[int64]uint32    // offset → checksum of what acks=all was told
	visible int64               // the largest end that a leader in office told a consumer (R21)
	doomed  int64               // below: somebody asked to delete it
	deleted int64               // below: deletion was acknowledged (R25)
	sent    map[any]record.Header
	clients []client
	stats   map[string]int
	fail    func(format string, args ...any)
}

// node is one broker: a replica over a log that survives a crash, and effects that do not.
type node struct {
	id      int32
	up      bool
	epoch   int64
	r       *Replica
	log     []record.Batch
	start   int64 // offset at which the log begins
	flushed int64 // below: survives the loss of power
	cp      storage.Checkpoint
	queue   []Effect  // storage effects under way
	fetchAt bool      // a fetch is in flight
	asleep  time.Time // until when it does nothing
}

type packet struct {
	from, to int32
	run      func()
}

// client is an idempotent producer with up to three batches in flight. It repeats each until it is acknowledged.
type client struct {
	pid     int64
	next    int32 // the oldest batch that is not acknowledged
	flights [inFlight]flight
}

const inFlight = 3

// flight is one batch of a client on its way.
type flight struct {
	sent, open, acked bool
	at                int32 // where it was sent last
}

func (c *client) flight(batch int32) *flight { return &c.flights[batch%inFlight] }

// batch makes a client's batch: records in turn one and two, so that histories may differ by a single record.
func (c *client) batch(number int32) record.Batch {
	first := number * 3 / 2
	values := [][]byte{fmt.Appendf(nil, "%d/%d", c.pid, first)}
	if number%2 == 1 {
		values = append(values, fmt.Appendf(nil, "%d/%d", c.pid, first+1))
	}
	return record.Build(record.Spec{ProducerID: c.pid, BaseSequence: first, Timestamp: began.UnixMilli(), Values: values})
}

// ctl is the controller's state of the partition.
type ctl struct {
	State
	elr    []int32
	fenced map[int32]bool
	epochs int64
}

// codeIneligibleReplica is a refusal of the controller; the replica treats all refusals alike and does not name it.
const codeIneligibleReplica int16 = 107

var began = time.UnixMilli(1_700_000_000_000)

func newWorld(seed uint64, flush bool, fail func(string, ...any)) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 1)), now: began, flush: flush, cut: map[[2]int32]bool{}, fail: fail,
		named: map[[2]int64]uint32{}, seen: map[int64]uint32{}, acked: map[int64]uint32{}, sent: map[any]record.Header{}, stats: map[string]int{}}
	w.ctl = ctl{State: State{Leader: noLeader, LeaderEpoch: -1, Replicas: []int32{1, 2, 3}, ISR: []int32{1, 2, 3}, MinISR: 2, MaxBytes: 1 << 20, BrokerEpochs: map[int32]int64{}}, fenced: map[int32]bool{}}
	for id := int32(1); id <= 3; id++ {
		n := &node{id: id}
		w.nodes = append(w.nodes, n)
		w.boot(n)
	}
	w.ctl.PartitionEpoch = 0
	w.elect()
	for i := range 3 {
		w.clients = append(w.clients, client{pid: int64(100 + i)})
	}
	return w
}

func (w *world) node(id int32) *node { return w.nodes[id-1] }

// boot starts a broker: a new epoch, fenced until it has registered (R19).
func (w *world) boot(n *node) {
	w.ctl.epochs++
	n.up, n.epoch, n.queue, n.fetchAt = true, w.ctl.epochs, nil, false
	b := storage.Bounds{Start: n.start, Durable: n.flushed, End: n.end()}
	n.cp = n.cp.Within(b)
	var replay []record.Header
	for _, batch := range n.log {
		if batch.NextOffset() > ReplayFrom(n.cp, b) {
			replay = append(replay, batch.Header)
		}
	}
	r, err := New(Config{Self: n.id, LagTime: 100 * time.Millisecond, FlushEach: w.flush, CheckpointEach: 50 * time.Millisecond}, n.cp, b, replay)
	if err != nil {
		w.fail("boot %d: %v", n.id, err)
	}
	n.r = r
	w.ctl.BrokerEpochs = cloneMap(w.ctl.BrokerEpochs)
	w.ctl.BrokerEpochs[n.id] = n.epoch
	w.ctl.fenced[n.id] = false
}

func cloneMap(m map[int32]int64) map[int32]int64 {
	out := map[int32]int64{}
	for k, v := range m {
		out[k] = v
	}
	return out
}

func (n *node) end() int64 {
	if len(n.log) == 0 {
		return n.start
	}
	return n.log[len(n.log)-1].NextOffset()
}

// kill ends the process: what was under way to the log is gone, what was written stays, unless the power goes with it.
func (w *world) kill(n *node, power bool) {
	n.up, n.queue = false, nil
	if power {
		for len(n.log) > 0 && n.end() > n.flushed && w.rng.IntN(4) > 0 {
			n.log = n.log[:len(n.log)-1]
			w.stats["unflushed"]++
		}
	}
	w.net = slices.DeleteFunc(w.net, func(p packet) bool { return p.from == n.id || p.to == n.id })
	for _, other := range w.nodes {
		other.fetchAt = false // a fetch may have been among them
	}
	for i := range w.clients {
		for j := range w.clients[i].flights {
			if f := &w.clients[i].flights[j]; f.at == n.id {
				f.open = false // the connection is gone; it will repeat
			}
		}
	}
	w.stats["kill"]++
}

// fence takes the broker out of leadership and ISR; with ELR as in KIP-966 (R17, R18).
func (w *world) fence(n *node, unclean bool) {
	c := &w.ctl
	c.BrokerEpochs = cloneMap(c.BrokerEpochs)
	delete(c.BrokerEpochs, n.id)
	c.fenced[n.id] = true
	isr := slices.DeleteFunc(slices.Clone(c.ISR), func(id int32) bool { return id == n.id })
	if len(isr) < len(c.ISR) {
		if len(isr) < c.MinISR {
			for _, id := range c.ISR {
				if !slices.Contains(isr, id) && !slices.Contains(c.elr, id) {
					c.elr = append(c.elr, id)
				}
			}
		}
		c.ISR = isr
		c.PartitionEpoch++
	}
	_ = unclean // a crash of the process loses nothing that was written, so the member may stay eligible in this world
	if c.Leader == n.id {
		c.Leader = noLeader
		c.LeaderEpoch++
		c.PartitionEpoch++
	}
	w.elect()
}

func (w *world) elect() {
	c := &w.ctl
	if c.Leader == noLeader {
		from := c.ISR
		if len(c.ISR) == 0 {
			from = c.elr
		}
		for _, i := range w.rng.Perm(len(c.Replicas)) { // whoever may lead has to be good enough
			if id := c.Replicas[i]; slices.Contains(from, id) && !c.fenced[id] {
				c.Leader = id
				c.LeaderEpoch++
				c.PartitionEpoch++
				if len(c.ISR) == 0 {
					c.ISR = []int32{id}
					c.elr = slices.DeleteFunc(c.elr, func(e int32) bool { return e == id })
				}
				w.stats["election"]++
				break
			}
		}
	}
}

// transfer gives the lead to another member of the in-sync set; the former leader learns of it like everybody else.
func (w *world) transfer() {
	c := &w.ctl
	to := int32(1 + w.rng.IntN(3))
	if c.Leader == noLeader || to == c.Leader || !slices.Contains(c.ISR, to) || c.fenced[to] {
		return
	}
	c.Leader = to
	c.LeaderEpoch++
	c.PartitionEpoch++
	w.stats["election"]++
}

// alter is AlterPartition (R16).
func (w *world) alter(from int32, in AlterISR) ISRAnswer {
	c := &w.ctl
	a := ISRAnswer{LeaderEpoch: in.LeaderEpoch}
	switch {
	case from != c.Leader || in.LeaderEpoch != c.LeaderEpoch:
		a.Code = codeFencedLeaderEpoch
	case in.PartitionEpoch != c.PartitionEpoch:
		a.Code = codeInvalidUpdateVersion
	default:
		var isr []int32
		for _, m := range in.ISR {
			if e, ok := c.BrokerEpochs[m.Broker]; !ok || e != m.Epoch {
				a.Code = codeIneligibleReplica
				return a
			}
			isr = append(isr, m.Broker)
		}
		if len(isr) < c.MinISR {
			for _, id := range c.ISR {
				if !slices.Contains(isr, id) && !slices.Contains(c.elr, id) {
					c.elr = append(c.elr, id)
				}
			}
		} else {
			c.elr = nil
		}
		c.elr = slices.DeleteFunc(c.elr, func(id int32) bool { return slices.Contains(isr, id) })
		if w.faults && len(isr) > len(c.ISR) && w.rng.IntN(8) == 0 { // the moment when two views of the set differ is worth a fault of its own
			w.cut[[2]int32{0, from}] = true
			w.sleep(w.node(isr[len(isr)-1]))
		}
		c.ISR = isr
		c.PartitionEpoch++
		a.PartitionEpoch, a.ISR = c.PartitionEpoch, slices.Clone(isr)
		w.stats["isr"]++
	}
	return a
}

// step feeds an input and carries out what needs no disk.
func (w *world) step(n *node, in Input) {
	for _, e := range slices.Clone(n.r.Step(w.now, in)) {
		switch e := e.(type) {
		case Append, Flush, Truncate, Trim, Reset, Checkpoint:
			n.queue = append(n.queue, e)
		case AlterISR:
			epoch := n.epoch
			w.send(n.id, 0, func() {
				a := w.alter(n.id, e)
				w.send(0, n.id, func() {
					if n.up && n.epoch == epoch {
						w.step(n, a)
					}
				})
			})
		case ProduceReply:
			w.answered(n, e)
		case FetchReply:
			w.fetched(n, e)
		case OffsetReply:
			w.told(n, e)
		case DeleteReply:
			if e.Code == 0 {
				w.deleted = max(w.deleted, e.LowWatermark)
				w.stats["deleted"]++
			}
		case Offline:
			w.fail("replica %d went offline: %v", n.id, e.Err)
		}
	}
}

func (w *world) send(from, to int32, run func()) { w.net = append(w.net, packet{from, to, run}) }

// disk carries out the node's oldest storage effect.
func (w *world) disk(n *node) {
	e := n.queue[0]
	n.queue = n.queue[1:]
	switch e := e.(type) {
	case Append:
		for _, b := range e.Batches {
			if b.BaseOffset != n.end() {
				w.fail("R13: node %d appends at %d, its log ends at %d", n.id, b.BaseOffset, n.end())
			}
			b, _, _ = record.Parse(slices.Clone(b.Bytes()))
			key := [2]int64{int64(b.LeaderEpoch), b.BaseOffset}
			if sum, ok := w.named[key]; ok && sum != b.CRC {
				w.fail("(epoch %d, offset %d) names two records", b.LeaderEpoch, b.BaseOffset)
			}
			w.named[key] = b.CRC
			n.log = append(n.log, b)
		}
		w.step(n, Appended{n.end()})
	case Flush:
		n.flushed = n.end()
		w.step(n, Flushed{n.end()})
	case Truncate:
		w.stats["truncate"]++
		n.log = slices.DeleteFunc(n.log, func(b record.Batch) bool { return b.LastOffset() >= e.To })
		n.cp, n.flushed = e.Checkpoint, n.end()
		w.step(n, Cut{Bounds: n.bounds(), Replayed: n.headers(e.Replay)})
	case Trim:
		n.cp = e.Checkpoint
		for w.rng.IntN(2) == 0 && len(n.log) > 0 && n.log[0].NextOffset() <= n.cp.LogStart { // what is trimmed may go, or stay a while
			n.start, n.log = n.log[0].NextOffset(), n.log[1:]
		}
		w.step(n, Cut{Bounds: n.bounds()})
	case Reset:
		w.stats["reset"]++
		n.log, n.start, n.flushed, n.cp = nil, e.Start, e.Start, e.Checkpoint
		w.step(n, Cut{Bounds: n.bounds()})
	case Checkpoint:
		n.cp = e.Checkpoint
	}
}

func (n *node) bounds() storage.Bounds {
	return storage.Bounds{Start: n.start, Durable: max(n.start, n.flushed), End: n.end()}
}

func (n *node) headers(want bool) []record.Header {
	if !want {
		return nil
	}
	out := []record.Header{}
	for _, b := range n.log {
		out = append(out, b.Header)
	}
	return out
}

// follow lets a follower ask its leader.
func (w *world) follow(n *node) {
	s, ok := n.r.FollowState()
	if !ok || n.fetchAt {
		return
	}
	n.fetchAt = true
	epoch := n.epoch
	w.send(n.id, s.Leader, func() {
		l := w.node(s.Leader)
		if !l.up {
			n.fetchAt = false
			return
		}
		w.step(l, Fetch{Token: followToken{n, epoch, s}, Replica: n.id, ReplicaEpoch: epoch, LeaderEpoch: s.LeaderEpoch,
			LastFetchedEpoch: s.LastFetchedEpoch, Offset: s.Offset, KnownHW: -1, LogStart: s.LogStart})
	})
}

type followToken struct {
	n     *node
	epoch int64
	s     FollowState
}

type readToken struct{ from int64 }

// fetched is the leader's answer: to a follower over the network, to a consumer at once.
func (w *world) fetched(l *node, e FetchReply) {
	var batches []record.Batch
	for _, b := range l.log {
		if e.Code == 0 && b.LastOffset() >= e.Offset && b.NextOffset() <= e.UpTo && len(batches) < 4 {
			batches = append(batches, b)
		}
	}
	switch t := e.Token.(type) {
	case readToken:
		for _, b := range batches {
			if sum, ok := w.seen[b.BaseOffset]; ok && sum != b.CRC {
				w.fail("consumers saw two records at offset %d", b.BaseOffset)
			}
			w.seen[b.BaseOffset] = b.CRC
			w.stats["read"]++
		}
	case followToken:
		w.send(l.id, t.n.id, func() {
			t.n.fetchAt = false
			if !t.n.up || t.n.epoch != t.epoch {
				return
			}
			var own []record.Batch
			for _, b := range batches {
				c, _, _ := record.Parse(slices.Clone(b.Bytes()))
				own = append(own, c)
			}
			w.step(t.n, Fetched{LeaderEpoch: t.s.LeaderEpoch, Offset: t.s.Offset, Code: e.Code, HighWatermark: e.HighWatermark,
				LogStart: e.LogStart, Diverging: e.Diverging, Batches: own})
		})
	}
}

// offsetToken is the timestamp that a consumer asked for.
type offsetToken struct{ timestamp int64 }

// poll lets a consumer ask for the end or the start.
func (w *world) poll(n *node) {
	at := int64(-1)
	if w.rng.IntN(3) == 0 {
		at = earliest
	}
	w.step(n, ListOffsets{Token: offsetToken{at}, Replica: -1, LeaderEpoch: -1, Timestamp: at})
}

// told judges what the leader in office says of its bounds. A former leader that does not know of its end may say what was true before.
func (w *world) told(n *node, e OffsetReply) {
	if e.Code != 0 || n.id != w.ctl.Leader || e.LeaderEpoch != w.ctl.LeaderEpoch {
		return
	}
	if e.Token.(offsetToken).timestamp == earliest {
		if e.Offset < w.deleted {
			w.fail("R25: the log starts at %d, but deletion below %d was acknowledged", e.Offset, w.deleted)
		}
		return
	}
	if e.Offset < w.visible {
		w.fail("R21: the visible end is %d, and it was %d", e.Offset, w.visible)
	}
	w.visible = e.Offset
	w.stats["end"]++
}

// deleteRecords asks for the deletion of something that is committed.
func (w *world) deleteRecords(n *node) {
	s := n.r.Status()
	if s.Role != Leader || s.HighWatermark == s.LogStart {
		return
	}
	offset := s.LogStart + 1 + w.rng.Int64N(s.HighWatermark-s.LogStart)
	w.doomed = max(w.doomed, offset)
	w.step(n, DeleteRecords{Token: "delete", Offset: offset, Deadline: w.now.Add(200 * time.Millisecond)})
}

type produceToken struct {
	client int
	batch  int32
}

// produce lets a client send, or repeat, one of its batches to a node, rightly or wrongly taken for the leader.
func (w *world) produce(i int) {
	c := &w.clients[i]
	number := c.next
	if c.next > 0 { // the first has been acknowledged, so that the producer is known
		number += int32(w.rng.IntN(inFlight))
	}
	f := c.flight(number)
	if f.open || f.acked || number > c.next && !c.flight(number-1).sent {
		return
	}
	to := w.ctl.Leader
	if to == noLeader || w.rng.IntN(5) == 0 {
		to = int32(1 + w.rng.IntN(3))
	}
	n := w.node(to)
	if !n.up {
		return
	}
	f.sent, f.open, f.at = true, true, to
	b := c.batch(number)
	w.sent[produceToken{i, number}] = b.Header
	w.step(n, Produce{Token: produceToken{i, number}, Batch: b, Acks: -1, Deadline: w.now.Add(200 * time.Millisecond)})
}

func (w *world) answered(n *node, e ProduceReply) {
	t := e.Token.(produceToken)
	c := &w.clients[t.client]
	if t.batch < c.next {
		if e.Code == 0 {
			w.note(t, e.BaseOffset) // a late answer to a batch that was repeated elsewhere: the same promise
		}
		return
	}
	f := c.flight(t.batch)
	if f.at == n.id {
		f.open = false
	}
	if e.Code != 0 {
		w.stats[fmt.Sprint("code ", e.Code)]++
		return
	}
	w.note(t, e.BaseOffset)
	f.acked, f.open = true, false
	for f = c.flight(c.next); f.acked; f = c.flight(c.next) {
		*f = flight{}
		c.next++
	}
	w.stats["acked"]++
}

func (w *world) note(t produceToken, base int64) {
	sum := w.sent[t].CRC
	if old, ok := w.acked[base]; ok && old != sum {
		w.fail("two records were acknowledged at offset %d", base)
	}
	w.acked[base] = sum
}

// act makes one random move.
func (w *world) act(faults bool) {
	w.faults = faults
	w.now = w.now.Add(time.Duration(w.rng.IntN(2000)) * time.Microsecond)
	n := w.nodes[w.rng.IntN(3)]
	if n.up && w.now.Before(n.asleep) {
		return
	}
	switch x := w.rng.IntN(100); {
	case x < 30 && len(w.net) > 0:
		i := w.rng.IntN(len(w.net))
		p := w.net[i]
		for j := range w.net[:i] { // the order inside a connection is kept
			if w.net[j].from == p.from && w.net[j].to == p.to {
				i, p = j, w.net[j]
				break
			}
		}
		if w.cut[[2]int32{p.from, p.to}] || p.to != 0 && w.now.Before(w.node(p.to).asleep) {
			return
		}
		w.net = slices.Delete(w.net, i, i+1)
		p.run()
	case x < 55 && n.up && len(n.queue) > 0:
		w.disk(n)
	case x < 70 && n.up:
		w.follow(n)
	case x < 80 && faults:
		w.produce(w.rng.IntN(len(w.clients)))
	case x < 86 && n.up:
		w.step(n, Tick{})
	case x < 92 && n.up:
		s := w.ctl.State
		s.ISR = slices.Clone(s.ISR)
		w.step(n, Assign{s})
	case x < 93 && n.up:
		w.poll(n)
	case faults && x == 93 && w.rng.IntN(6) == 0 && n.up:
		w.deleteRecords(n)
	case x < 96 && n.up:
		from := n.r.Status().LogStart
		if hw := n.r.Status().HighWatermark; hw > from+6 {
			from = hw - 6
		}
		w.step(n, Fetch{Token: readToken{from}, Replica: -1, ReplicaEpoch: -1, LeaderEpoch: -1, LastFetchedEpoch: -1, Offset: from, KnownHW: -1})
	case faults && x == 96 && w.rng.IntN(6) == 0 && n.up && w.ups() > 1:
		w.kill(n, w.flush && w.rng.IntN(2) == 0)
	case faults && x == 96 && w.rng.IntN(40) == 0 && w.flush: // the promise of a flush is one for the day when all lights go out
		for _, n := range w.nodes {
			if n.up {
				w.kill(n, true)
			}
		}
		w.stats["blackout"]++
	case faults && x == 97 && !n.up && w.rng.IntN(4) == 0:
		if !w.ctl.fenced[n.id] {
			w.fence(n, true) // R19: back inside the session time-out, and fenced all the same
		}
		w.boot(n)
		w.elect()
	case faults && x == 97 && n.up && w.rng.IntN(8) == 0:
		w.sleep(n)
	case faults && x == 98 && !n.up && !w.ctl.fenced[n.id]:
		w.fence(n, true) // the session has run out
	case faults && x == 99 && w.rng.IntN(12) == 0:
		w.transfer()
	case faults && x == 99 && w.rng.IntN(3) == 0:
		if len(w.cut) > 2 || w.rng.IntN(4) == 0 {
			clear(w.cut)
			return
		}
		w.cut[[2]int32{int32(w.rng.IntN(4)), int32(w.rng.IntN(4))}] = true // 0 is the controller
	}
}

// sleep stops a process for up to three times the lag limit.
func (w *world) sleep(n *node) {
	n.asleep = w.now.Add(time.Duration(w.rng.IntN(300)) * time.Millisecond)
}

func (w *world) ups() int {
	n := 0
	for _, x := range w.nodes {
		if x.up {
			n++
		}
	}
	return n
}

// heal ends all faults and runs until everybody agrees, within a bound.
func (w *world) heal() {
	w.cut = map[[2]int32]bool{}
	for _, n := range w.nodes {
		if !n.up {
			if !w.ctl.fenced[n.id] {
				w.fence(n, true)
			}
			w.boot(n)
			w.elect()
		}
	}
	for range 400_000 {
		w.act(false)
		if w.quiet() {
			return
		}
	}
	w.fail("liveness: not quiet after healing: controller %+v; proposal %+v; %+v %+v %+v", w.ctl, w.node(max(1, w.ctl.Leader)).r.lead.proposal, w.nodes[0].r.Status(), w.nodes[1].r.Status(), w.nodes[2].r.Status())
}

func (w *world) quiet() bool {
	if len(w.ctl.ISR) != 3 {
		return false
	}
	for _, n := range w.nodes {
		s := n.r.Status()
		if len(n.queue) > 0 || s.LeaderEpoch != w.ctl.LeaderEpoch || s.HighWatermark != s.LogEnd || s.LogEnd != w.nodes[0].end() || s.LogEnd != n.end() {
			return false
		}
	}
	return true
}

// judge compares the logs with each other and with everything that clients were told.
func (w *world) judge() {
	start := int64(0)
	for _, n := range w.nodes {
		start = max(start, n.r.Status().LogStart)
	}
	if start > w.doomed {
		w.fail("R25: the log starts at %d, and nobody asked to delete more than what is below %d", start, w.doomed)
	}
	log := w.nodes[0].from(start)
	for _, n := range w.nodes[1:] {
		if other := n.from(start); len(other) != len(log) {
			w.fail("logs of nodes 1 and %d have %d and %d batches from offset %d on", n.id, len(log), len(other), start)
			return
		}
	}
	at := map[int64]uint32{}
	last := map[int64]record.Header{}
	for i, b := range log {
		for _, n := range w.nodes[1:] {
			if o := n.from(start)[i]; o.CRC != b.CRC || o.BaseOffset != b.BaseOffset || o.LeaderEpoch != b.LeaderEpoch {
				w.fail("nodes 1 and %d differ at offset %d", n.id, b.BaseOffset)
			}
		}
		at[b.BaseOffset] = b.CRC
		if before, ok := last[b.ProducerID]; ok && b.BaseSequence != before.LastSequence()+1 {
			w.fail("R28: producer %d has sequence %d at offset %d, after %d at offset %d", b.ProducerID, b.BaseSequence, b.BaseOffset, before.BaseSequence, before.BaseOffset)
		}
		last[b.ProducerID] = b.Header
	}
	for _, off := range slices.Sorted(maps.Keys(w.acked)) {
		if at[off] != w.acked[off] && off >= start {
			w.fail("the acknowledged record at offset %d is lost", off)
		}
	}
	for _, off := range slices.Sorted(maps.Keys(w.seen)) {
		if at[off] != w.seen[off] && off >= start {
			w.fail("the record that consumers read at offset %d is gone", off)
		}
	}
	for _, n := range w.nodes[1:] {
		if a, b := w.nodes[0].producers(start), n.producers(start); !maps.EqualFunc(a, b, slices.Equal) {
			w.fail("R29: producer state of nodes 1 and %d differs: %v and %v", n.id, a, b)
		}
	}
}

// producers is what the replica knows of each producer's batches from the offset on; of those below, a copy that began later knows less.
func (n *node) producers(offset int64) map[int64][]sentBatch {
	out := map[int64][]sentBatch{}
	for id, p := range n.r.producers.byID {
		if b := slices.DeleteFunc(slices.Clone(p.Batches), func(b sentBatch) bool { return b.Base < offset }); len(b) > 0 {
			out[id] = b
		}
	}
	return out
}

// from is the log from the first batch that begins at or above the offset.
func (n *node) from(offset int64) []record.Batch {
	i := slices.IndexFunc(n.log, func(b record.Batch) bool { return b.BaseOffset >= offset })
	if i < 0 {
		return nil
	}
	return n.log[i:]
}
