package group

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/broker/fault"
)

// phase is where a coordinator is in its life; it only goes forward.
type phase uint8

const (
	loading phase = iota
	active
	ended
)

// Coordinator holds the groups of one partition of the internal topic.
//
// Group state (members, epochs, assignments) is changed at once and every answer that may show the change waits for the append that has it; offsets are changed when their
// append is committed. So what anybody is told is in the log for good (R41), and what the log holds, in its order, is what replay gives.
type Coordinator struct {
	cfg     Config
	now     time.Time
	phase   phase
	code    int16 // what a request is answered once the coordinator has ended
	topics  *Topics
	groups  map[string]*group
	out     []Effect
	ids     uint64 // member ids made
	appends uint64 // the newest Append's id
	pending []*pending
	held    int       // answers that wait
	heldDue time.Time // no deadline of a held answer is before this
	due     time.Time // no group is due before this; zero: none is
	checked time.Time // when retention was looked at last

	bytes     int       // of the log since the last snapshot
	snapshot  int       // bytes of the last snapshot
	compacts  bool      // requests wait until nothing is pending, so that a snapshot can be written
	queued    []Request // those that wait
	uncovered int       // appends of the newest snapshot that are not committed yet
}

// pending is an append that has not been committed yet, in the order of the ids.
type pending struct {
	id      uint64
	answer  *Appended // has come, but appends before it are open
	offsets []offsetChange
	vital   bool   // without it the state is ahead of the log
	group   *group // whose state the append has, nil for offsets only
	replies []*held
	then    func() // done at the commit, before the answers
}

// held is an answer that waits for an append.
type held struct {
	token    Token
	request  kmsg.Request
	response kmsg.Response
	until    time.Time
	done     bool
}

// New makes a coordinator that waits for its log.
func New(cfg Config) *Coordinator {
	return &Coordinator{cfg: cfg, topics: NewTopics(nil), groups: map[string]*group{}}
}

// Active tells whether the coordinator has loaded and has not ended.
func (c *Coordinator) Active() bool { return c.phase == active }

// Step takes an input and gives the effects, to be carried out in order. Time does not run backwards: an earlier now counts as the latest one seen.
func (c *Coordinator) Step(now time.Time, in Input) []Effect {
	if now.After(c.now) {
		c.now = now
	}
	c.out = nil
	switch in := in.(type) {
	case Load:
		c.load(in)
	case Loaded:
		c.loaded()
	case Request:
		c.request(in)
	case Appended:
		c.appended(in)
	case TopicsChanged:
		c.topicsChanged(in.Topics)
	case Resign:
		c.end(kerr.NotCoordinator.Code)
	case Tick:
		c.tick()
	}
	c.compact()
	return c.out
}

// request answers or keeps a request.
func (c *Coordinator) request(in Request) {
	switch {
	case c.phase == loading && !(fault.On(fault.ServeBeforeLoaded) && in.Body.Key() == kmsg.OffsetFetch.Int16()):
		c.reply(in.Token, Refusal(in.Body, kerr.CoordinatorLoadInProgress.Code)) // R41
		return
	case c.phase == ended:
		c.reply(in.Token, Refusal(in.Body, c.code))
		return
	}
	if c.compacts {
		c.queued = append(c.queued, in)
		return
	}
	switch q := in.Body.(type) {
	case *kmsg.JoinGroupRequest:
		c.join(in, q)
	case *kmsg.SyncGroupRequest:
		c.sync(in, q)
	case *kmsg.HeartbeatRequest:
		c.heartbeat(in, q)
	case *kmsg.LeaveGroupRequest:
		c.leave(in, q)
	case *kmsg.OffsetCommitRequest:
		c.commit(in, q)
	case *kmsg.OffsetFetchRequest:
		c.fetch(in, q)
	case *kmsg.OffsetDeleteRequest:
		c.deleteOffsets(in, q)
	case *kmsg.ListGroupsRequest:
		c.list(in, q)
	case *kmsg.DescribeGroupsRequest:
		c.describe(in, q)
	case *kmsg.DeleteGroupsRequest:
		c.deleteGroups(in, q)
	case *kmsg.ConsumerGroupHeartbeatRequest:
		c.consumerHeartbeat(in, q)
	case *kmsg.ConsumerGroupDescribeRequest:
		c.describeConsumers(in, q)
	default:
		panic(fmt.Sprintf("group: %s is not a request for a coordinator", kmsg.NameForKey(in.Body.Key())))
	}
}

func (c *Coordinator) reply(t Token, body kmsg.Response) { c.out = append(c.out, Reply{t, body}) }

// append writes records. changes are applied once they are committed; g is the group whose state the records have, nil if they have only offsets.
func (c *Coordinator) append(g *group, entries []entry, changes []offsetChange) *pending {
	c.appends++
	p := &pending{id: c.appends, offsets: changes, group: g, vital: g != nil}
	c.pending = append(c.pending, p)
	if g != nil {
		g.last = p
	}
	batch := encode(c.now, entries)
	c.bytes += int(batch.Length)
	c.out = append(c.out, Append{ID: p.id, Batch: batch})
	return p
}

// answer gives an answer about a group, after all that the group has written is committed (R41).
func (c *Coordinator) answer(g *group, in Request, body kmsg.Response) {
	if g == nil || g.last == nil {
		c.reply(in.Token, body)
		return
	}
	c.hold(g.last, in, body)
}

// hold gives an answer after an append is committed, or an error if that takes too long or fails.
func (c *Coordinator) hold(p *pending, in Request, body kmsg.Response) *held {
	h := &held{token: in.Token, request: in.Body, response: body, until: c.now.Add(c.cfg.CommitTimeout)}
	if c.held == 0 || h.until.Before(c.heldDue) {
		c.heldDue = h.until
	}
	p.replies = append(p.replies, h)
	c.held++
	return h
}

// release answers a held request once.
func (c *Coordinator) release(h *held, code int16) {
	if h.done {
		return
	}
	h.done = true
	c.held--
	if code != 0 {
		h.response = Refusal(h.request, code)
	}
	c.reply(h.token, h.response)
}

// appended works off the appends at the head that have been answered: commits are seen in the order of the log.
func (c *Coordinator) appended(in Appended) {
	if c.phase == ended {
		return
	}
	for _, p := range c.pending {
		if p.id == in.ID {
			p.answer = &in
		}
	}
	for len(c.pending) > 0 && c.pending[0].answer != nil {
		p := c.pending[0]
		c.pending = c.pending[1:]
		if p.group != nil && p.group.last == p {
			p.group.last = nil
		}
		code := p.answer.Code
		if code != 0 && (p.vital || !refusedBeforeAppend(code)) {
			// The state is ahead of the log, or the log may be ahead of the state: only the log knows now.
			c.settle(p, code)
			c.end(appendError(code))
			c.out = append(c.out, Failed{Code: code})
			return
		}
		if code == 0 {
			for _, o := range p.offsets {
				c.applyOffset(o)
			}
			if p.then != nil {
				p.then()
			}
		}
		c.settle(p, code)
	}
}

// barrier is a record that changes nothing. Once it is committed, this broker was the leader when it was written.
func barrier() entry { return offsetEntry("", "", -1, nil) }

// settle answers everything that waits for an append.
func (c *Coordinator) settle(p *pending, code int16) {
	for _, h := range p.replies {
		c.release(h, appendError(code))
	}
}

// refusedBeforeAppend tells the errors after which the records are certainly not in the log.
func refusedBeforeAppend(code int16) bool {
	return code == kerr.NotEnoughReplicas.Code || code == kerr.MessageTooLarge.Code || code == kerr.RecordListTooLarge.Code
}

// appendError is what a client is told when its records could not be committed, as in Kafka.
func appendError(code int16) int16 {
	switch code {
	case 0:
		return 0
	case kerr.NotLeaderForPartition.Code, kerr.FencedLeaderEpoch.Code, kerr.KafkaStorageError.Code, kerr.NotCoordinator.Code:
		return kerr.NotCoordinator.Code
	case kerr.MessageTooLarge.Code, kerr.RecordListTooLarge.Code:
		return kerr.InvalidCommitOffsetSize.Code
	}
	return kerr.CoordinatorNotAvailable.Code
}

// end answers everybody who waits, and every later request, with the code.
func (c *Coordinator) end(code int16) {
	if c.phase == ended {
		return
	}
	c.phase, c.code = ended, code
	for _, in := range c.queued {
		c.reply(in.Token, Refusal(in.Body, code))
	}
	c.queued = nil
	for _, p := range c.pending {
		for _, h := range p.replies {
			c.release(h, code)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.groups)) {
		if k := c.groups[id].classic; k != nil {
			for _, m := range k.members {
				c.answerWaiting(k, m, code)
			}
		}
	}
	c.groups, c.pending = map[string]*group{}, nil
}

// tick looks at everything that is due.
func (c *Coordinator) tick() {
	if c.phase != active {
		return
	}
	if c.held > 0 && !c.now.Before(c.heldDue) {
		c.heldDue = c.now.Add(c.cfg.CommitTimeout)
		for _, p := range c.pending {
			for _, h := range p.replies {
				switch {
				case h.done:
				case !c.now.Before(h.until):
					c.release(h, kerr.CoordinatorNotAvailable.Code)
				case h.until.Before(c.heldDue):
					c.heldDue = h.until
				}
			}
		}
	}
	retention := c.now.Sub(c.checked) >= c.cfg.RetentionCheck
	if retention {
		c.checked = c.now
	} else if c.due.IsZero() || c.now.Before(c.due) {
		return
	}
	c.due = time.Time{}
	for _, id := range slices.Sorted(maps.Keys(c.groups)) {
		g := c.groups[id]
		due := g.due
		g.due = time.Time{}
		switch {
		case due.IsZero() || c.now.Before(due):
		case g.classic != nil:
			c.classicDue(g)
			due = g.due
		case g.consumer != nil:
			c.consumerDue(g)
			due = g.due
		}
		if !due.IsZero() {
			c.wake(g, due)
		}
		if retention {
			c.expire(g)
		}
	}
}

// Due is when the next Tick has something to do; an earlier one does no harm.
func (c *Coordinator) Due() time.Time {
	due := c.checked.Add(c.cfg.RetentionCheck)
	if c.phase != active {
		return c.now.Add(c.cfg.RetentionCheck)
	}
	if !c.due.IsZero() && c.due.Before(due) {
		due = c.due
	}
	if c.held > 0 && c.heldDue.Before(due) {
		due = c.heldDue
	}
	return due
}

// wake makes sure that the group is looked at when t has come.
func (c *Coordinator) wake(g *group, t time.Time) {
	if g.due.IsZero() || t.Before(g.due) {
		g.due = t
	}
	if c.due.IsZero() || t.Before(c.due) {
		c.due = t
	}
}

// newMemberID makes an id that no other coordinator makes: from the client's id, the seed and a counter.
func (c *Coordinator) newMemberID(clientID string) string {
	c.ids++
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(c.cfg.Seed[:], c.ids))
	if len(clientID) > 255 {
		clientID = clientID[:255]
	}
	return fmt.Sprintf("%s-%x-%x-%x-%x-%x", clientID, sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
